"""How a call of the library ends badly."""

from __future__ import annotations

# ncclResult_t
SYSTEM, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE = 2, 3, 4, 5, 6
TEXTS = {
    SYSTEM: "unhandled system error (run with NCCL_DEBUG=INFO for details)",
    INTERNAL: "internal error - please report this issue to the NCCL developers",
    INVALID_ARGUMENT: "invalid argument (run with NCCL_DEBUG=WARN for details)",
    INVALID_USAGE: "invalid usage (run with NCCL_DEBUG=WARN for details)",
    REMOTE: "remote process exited or there was a network error",
}
NAMES = {SYSTEM: "ncclSystemError", INTERNAL: "ncclInternalError", INVALID_ARGUMENT: "ncclInvalidArgument",
         INVALID_USAGE: "ncclInvalidUsage", REMOTE: "ncclRemoteError"}


class NcclError(Exception):
    """`code`: an ncclResult_t; `last`: the last warning, which the program's own message repeats."""

    def __init__(self, code: int, last: str = "") -> None:
        super().__init__(f"{TEXTS[code]} / {last}")
        self.code = code
