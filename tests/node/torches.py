"""A few lines that look like PyTorch to `allreduce.py`: one rank, plain lists, and what is to go wrong."""

from __future__ import annotations

from pathlib import Path

TORCH = '''
import os, time
__version__ = "2.9.9+fake"
FAULT = os.environ.get("FAKE_FAULT", "")
if FAULT == "broken":
    raise ImportError("libcudart.so.13: cannot open shared object file")
float32 = "float32"

class version:
    cuda = "13.0"

class Tensor:
    def __init__(self, data): self.data = list(data)
    def copy_(self, other): self.data = list(other.data); return self
    def add_(self, n): self.data = [x + n for x in self.data]; return self
    def sub_(self, n): return self.add_(-n)
    def div_(self, n): self.data = [x / n for x in self.data]; return self
    def remainder_(self, n): self.data = [x % n for x in self.data]; return self
    def __ne__(self, other): return Tensor(a != b for a, b in zip(self.data, other.data))
    def sum(self): return Tensor([sum(self.data)])
    def item(self): return self.data[0]

def zeros(count, dtype, device): return Tensor([0.0] * count)
def arange(count, dtype, device): return Tensor([float(i) for i in range(count)])
def device(kind, index): return (kind, index)

class cuda:
    class Event:
        def __init__(self, enable_timing): self.at = 0.0
        def record(self): self.at = CLOCK[0]
        def elapsed_time(self, other): return (other.at - self.at) * 1000.0
    class nccl:
        @staticmethod
        def version(): return (2, 28, 9)
    @staticmethod
    def is_available():
        if FAULT == "driver": raise RuntimeError("CUDA driver version is insufficient")
        return FAULT != "no-gpu"
    @staticmethod
    def device_count(): return 1
    @staticmethod
    def set_device(index): pass
    @staticmethod
    def get_device_name(index): return "NVIDIA Fake"
    @staticmethod
    def synchronize(): pass

CLOCK = [0.0]
CALLS = []
'''
DISTRIBUTED = '''
import sys, time
import torch

def init_process_group(backend, init_method, rank, world_size, timeout):
    if torch.FAULT == "hangs": time.sleep(600)
    if torch.FAULT == "refused": raise RuntimeError("NCCL error: remote process exited or there was a network error")

def all_reduce(tensor):
    torch.CALLS.append(len(tensor.data) * 4)
    if torch.FAULT == "never-meets" or (torch.FAULT == "stalls" and len(torch.CALLS) == 2): time.sleep(600)
    if torch.FAULT == "slow" and len(torch.CALLS) == 2: time.sleep(1.5)
    torch.CLOCK[0] += 0.002
    if torch.FAULT == "wrong": tensor.data[3] += 1.0

def all_gather_object(out, mine): out[0] = mine

def destroy_process_group():
    print("calls:", len(torch.CALLS), "of", set(torch.CALLS), file=sys.stderr)
'''


def fake(folder: Path) -> Path:
    """A folder for PYTHONPATH. FAKE_FAULT in the environment says what goes wrong: broken, driver, no-gpu, hangs, refused, wrong,
    never-meets, slow, stalls."""
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text(TORCH)
    (folder / "torch" / "distributed.py").write_text(DISTRIBUTED)
    return folder
