"""Room: the machine below the fabric: versions, memory locks, GPUs, GPUDirect, the kernel log. Pure."""
