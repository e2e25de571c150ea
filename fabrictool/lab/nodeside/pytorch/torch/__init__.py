"""A stand-in of PyTorch for lab nodes: just enough for an AllReduce over NCCL that is timed and verified. Nothing is computed.

A tensor is a rule for its elements, not memory: element i is `scale * (i mod period) + shift`. That is exact for what an AllReduce test
does with one, whatever its size. Whoever needs more of PyTorch gets an AttributeError.
"""

from __future__ import annotations

import sys

sys.path.append("/opt/fabrictool-lab/lib")

from . import cuda, distributed, version
from ._tensor import Tensor, arange, device, float32, zeros

__version__ = "2.9.1+fabrictool.lab.stand.in"
__all__ = ["Tensor", "arange", "cuda", "device", "distributed", "float32", "version", "zeros"]
