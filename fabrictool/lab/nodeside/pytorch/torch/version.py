"""What this PyTorch says that it was built for."""

cuda = "13.0"
