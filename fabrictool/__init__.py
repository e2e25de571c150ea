"""Provision GPU nodes and RoCE fabrics, and prove them."""

__version__ = "0.1.0"
