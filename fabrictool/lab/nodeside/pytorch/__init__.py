"""Holds a stand-in of PyTorch, which a lab node has in the environment /opt/lab-venv: see torch/__init__.py."""
