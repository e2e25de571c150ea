"""torch.distributed: one process group over NCCL, its ranks met at MASTER_ADDR."""

from __future__ import annotations

import base64
import os
import pickle
from datetime import timedelta
from typing import Any

from fabrictool.lab.nodeside.nccl.group import Alone, Store

from ._runtime import RUNTIME, DistBackendError
from ._tensor import Tensor

__all__ = ["DistBackendError", "all_gather_object", "all_reduce", "barrier", "destroy_process_group", "get_rank", "get_world_size",
           "init_process_group"]


def init_process_group(backend: str, init_method: str = "env://", rank: int = -1, world_size: int = -1,
                       timeout: timedelta = timedelta(minutes=10), **more: Any) -> None:
    """Rank 0 keeps the store. OSError when it is not there in time."""
    if backend != "nccl" or init_method != "env://":
        raise NotImplementedError("stand-in of a fabrictool lab: only nccl by env://")
    rank = int(os.environ["RANK"]) if rank < 0 else rank
    size = int(os.environ["WORLD_SIZE"]) if world_size < 0 else world_size
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    RUNTIME.group = Store(rank, size, host, port, timeout.total_seconds()) if size > 1 else Alone()


def get_rank() -> int:
    return RUNTIME.group.rank if RUNTIME.group else 0


def get_world_size() -> int:
    return RUNTIME.group.size if RUNTIME.group else 1


def all_reduce(tensor: Tensor) -> None:
    """The sum, in place."""
    RUNTIME.all_reduce(tensor)


def all_gather_object(objects: list[Any], mine: Any) -> None:
    RUNTIME.flush()
    assert RUNTIME.group is not None
    sent = base64.b64encode(pickle.dumps(mine))
    objects[:] = [pickle.loads(base64.b64decode(raw)) for raw in RUNTIME.group.gather(sent)]


def barrier() -> None:
    RUNTIME.flush()
    if RUNTIME.group:
        RUNTIME.group.gather(b"")


def destroy_process_group() -> None:
    """In order only where nothing has failed: otherwise the others would be waited for, which have gone."""
    if RUNTIME.group is None:
        return
    RUNTIME.flush()
    if RUNTIME.comm:
        RUNTIME.comm.destroy()
        RUNTIME.comm.words.closing()
    RUNTIME.group.finish()
    RUNTIME.group = RUNTIME.comm = None
