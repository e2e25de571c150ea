"""torch.cuda: what an AllReduce test asks for."""

from __future__ import annotations

import os

from ._runtime import RUNTIME, VERSION


class nccl:
    """torch.cuda.nccl"""

    @staticmethod
    def version() -> tuple[int, int, int]:
        return VERSION


class Event:
    """A point of the stream, in microseconds of its own clock."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.at_us = 0.0

    def record(self) -> None:
        RUNTIME.flush()
        self.at_us = RUNTIME.stream_us

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds."""
        return (end.at_us - self.at_us) / 1000


def is_available() -> bool:
    return device_count() > 0


def device_count() -> int:
    try:
        count = int(RUNTIME.hardware().ask("look")["count"])
    except OSError:
        return 0
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return count if seen is None else min(count, len([w for w in seen.split(",") if w]))


def get_device_name(index: int = 0) -> str:
    return str(RUNTIME.hardware().ask("look")["model"])


def set_device(index: int) -> None:
    RUNTIME.index = index


def synchronize() -> None:
    RUNTIME.flush()
