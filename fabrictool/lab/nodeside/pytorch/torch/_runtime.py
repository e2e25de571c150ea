"""This process's GPU, its stream and its one process group. PyTorch keeps these for the whole process, and so does its stand-in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabrictool.lab.nodeside.nccl.comm import Comm
from fabrictool.lab.nodeside.nccl.device import Gpu, Hardware
from fabrictool.lab.nodeside.nccl.errors import NAMES, TEXTS, NcclError
from fabrictool.lab.nodeside.nccl.group import Group
from fabrictool.lab.nodeside.nccl.log import Log
from fabrictool.lab.nodeside.nccl.params import Params, home, resolve

if TYPE_CHECKING:
    from ._tensor import Tensor

LIBRARY = "../torch/csrc/distributed/c10d/NCCLUtils.cpp:94"
VERSION = (2, 28, 9)


@dataclass(frozen=True)
class Rule:
    """Element i is scale * (i mod period) + shift; period 0: of i itself."""

    period: int
    scale: float
    shift: float


class DistBackendError(RuntimeError):
    """NCCL gave an error."""


class Runtime:
    """Collectives are queued as on a CUDA stream, and happen when somebody waits for them."""

    def __init__(self) -> None:
        self.index = 0
        self.stream_us = 0.0
        self.group: Group | None = None
        self.comm: Comm | None = None
        self.gpu: Gpu | None = None
        self._hardware: Hardware | None = None
        self._queued: tuple[Tensor, int] | None = None

    def hardware(self) -> Hardware:
        """OSError where there is no GPU service: no lab node."""
        if self._hardware is None:
            self._hardware = Hardware()
        return self._hardware

    def all_reduce(self, tensor: Tensor) -> None:
        if self._queued and self._queued[0] is tensor:
            self._queued = (tensor, self._queued[1] + 1)
            return
        self.flush()
        self._queued = (tensor, 1)

    def flush(self) -> None:
        """Do what is queued. DistBackendError in PyTorch's words."""
        if self._queued is None:
            return
        (tensor, calls), self._queued = self._queued, None
        try:
            comm = self._communicator()
            self.stream_us += sum(comm.all_reduce(tensor.count, tensor.kind.size, calls).per_call_us)
            rules = [Rule(*raw) for raw in comm.gather([tensor.rule.period, tensor.rule.scale, tensor.rule.shift])]
        except NcclError as error:
            self.group = None  # whoever leaves now leaves alone
            last = str(error).partition(" / ")[2]
            raise DistBackendError(f"NCCL error in: {LIBRARY}, {TEXTS[error.code]}, NCCL version {'.'.join(map(str, VERSION))}\n"
                                   f"{NAMES[error.code]}: {TEXTS[error.code]}\nLast error:\n{last}") from error
        ranks = len(rules)
        more = float(ranks) ** (calls - 1)  # after the first call all ranks hold the same
        if len({r.period for r in rules if r.scale}) > 1:
            raise NotImplementedError("stand-in of a fabrictool lab: a sum of tensors of different kinds")
        period = next((r.period for r in rules if r.scale), 0)
        tensor.rule = Rule(period, sum(r.scale for r in rules) * more, sum(r.shift for r in rules) * more)
        assert self.gpu is not None
        tensor.wrong = min(tensor.wrong + self.gpu.wrong * calls, tensor.count)

    def _communicator(self) -> Comm:
        if self.comm is None:
            if self.group is None:
                raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
            hardware = self.hardware()
            self.gpu = hardware.gpu("python3", self.index)
            params = Params({**resolve(os.environ, home()), **self.gpu.plugin})
            log = Log(params, os.uname().nodename.partition(".")[0], os.getpid())
            self.comm = Comm(self.group, [self.index], self.gpu, hardware, log, params)
        return self.comm


RUNTIME = Runtime()
