"""The real MPI, called as a program linked with it would call it: only what nccl-tests uses."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

LIBRARY = "libmpi.so.40"  # of Open MPI 4 and 5
SLOT = 8192  # bytes of one rank's message


def launched(environ: Mapping[str, str]) -> bool:
    """Whether an MPI launcher started this process. Without one it is alone, also beside others."""
    return "PMIX_RANK" in environ or "OMPI_COMM_WORLD_RANK" in environ


class Mpi:
    """MPI_COMM_WORLD. OSError when the library is not there."""

    def __init__(self) -> None:
        self._lib = ctypes.CDLL(LIBRARY, mode=ctypes.RTLD_GLOBAL)
        self._lib.MPI_Init(None, None)
        self._world = ctypes.byref(ctypes.c_char.in_dll(self._lib, "ompi_mpi_comm_world"))
        self._byte = ctypes.byref(ctypes.c_char.in_dll(self._lib, "ompi_mpi_byte"))
        self.rank = self._number(self._lib.MPI_Comm_rank)
        self.size = self._number(self._lib.MPI_Comm_size)

    def _number(self, call: object) -> int:
        value = ctypes.c_int()
        call(self._world, ctypes.byref(value))  # type: ignore[operator]  # a function of the library
        return value.value

    def gather(self, mine: bytes) -> list[bytes]:
        """Everybody's message, by rank (MPI_Allgather). ValueError for one that is too long."""
        if len(mine) > SLOT - 4:
            raise ValueError(f"{len(mine)} bytes are too many for one message")
        send = ctypes.create_string_buffer(len(mine).to_bytes(4, "little") + mine, SLOT)
        got = ctypes.create_string_buffer(SLOT * self.size)
        self._lib.MPI_Allgather(send, SLOT, self._byte, got, SLOT, self._byte, self._world)
        slots = [got.raw[i * SLOT:(i + 1) * SLOT] for i in range(self.size)]
        return [s[4:4 + int.from_bytes(s[:4], "little")] for s in slots]

    def broadcast(self, mine: bytes) -> bytes:
        """Rank 0's message (MPI_Bcast): rank 0 does not wait for the others."""
        data = ctypes.create_string_buffer(len(mine).to_bytes(4, "little") + mine if self.rank == 0 else b"", SLOT)
        self._lib.MPI_Bcast(data, SLOT, self._byte, 0, self._world)
        return data.raw[4:4 + int.from_bytes(data.raw[:4], "little")]

    def finish(self) -> None:
        self._lib.MPI_Finalize()
