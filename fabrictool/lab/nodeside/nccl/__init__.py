"""A stand-in of NCCL 2.28.9: it chooses interfaces, adapters and transport from what the node has and what its environment says, as
the library does, really connects the ranks over TCP, and logs in the library's words. No GPU is used and nothing is computed.

Over sockets every byte that is reported is really sent. Over RDMA the bytes are counted by the node's adapters (hardware.py), along
paths that have to carry packets of that size. Facts: nccl.md 2 and 3; words and order: captures of 2.28.9.
"""
