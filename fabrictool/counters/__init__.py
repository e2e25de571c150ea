"""Room: byte, packet and loss counters of RDMA devices, interfaces and ports, and what two readings of them show. Pure."""
