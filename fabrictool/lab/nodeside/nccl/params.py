"""NCCL's settings: the process's environment, then the user's file, then the system's."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterable, Mapping

SYSTEM_FILE = "/etc/nccl.conf"
# Numbers that the library asks for when a communicator starts, and when queue pairs are made; each is told when it is set.
AT_START = ("CROSS_NIC", "NVLS_ENABLE", "CUMEM_ENABLE", "MNNVL_ENABLE", "NTHREADS", "BUFFSIZE", "MIN_NCHANNELS", "MAX_NCHANNELS",
            "MIN_CTAS", "MAX_CTAS", "P2P_NET_CHUNKSIZE", "IGNORE_CPU_AFFINITY", "RUNTIME_CONNECT", "DMABUF_ENABLE", "NET_GDR_READ",
            "RAS_ENABLE", "LAUNCH_MODE")
WITH_PAIRS = ("IB_MERGE_NICS", "IB_MERGE_VFS", "IB_ROCE_VERSION_NUM", "IB_TIMEOUT", "IB_RETRY_CNT", "IB_PKEY", "IB_USE_INLINE", "IB_SL",
              "IB_AR_THRESHOLD", "IB_PCI_RELAXED_ORDERING", "IB_ADAPTIVE_ROUTING", "IB_FIFO_TC", "IB_RETURN_ASYNC_EVENTS",
              "IB_ECE_ENABLE", "IB_DATA_DIRECT", "IB_SPLIT_DATA_ON_QPS")
LONGEST = 1023  # characters of a value; the rest is cut off


def parse(text: str) -> Iterable[tuple[str, str]]:
    """NAME=VALUE lines of a file: the first `=` splits, nothing is trimmed or unquoted, `#` starts a comment in the first column."""
    for line in text.split("\n"):
        name, eq, value = line.partition("=")
        if eq and not line.startswith("#"):
            yield name, value[:LONGEST]


def home() -> str:
    """Of the user as the password file has it; `HOME` does not count."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def resolve(environ: Mapping[str, str], user_home: str, read: Callable[[str], str] = _read) -> dict[str, str]:
    """Every setting in force. A file never overrides what is there already."""
    found = dict(environ)
    first = environ.get("NCCL_CONF_FILE") or (f"{user_home}/.nccl.conf" if user_home else "")
    for path in (first, SYSTEM_FILE):
        for name, value in parse(read(path)) if path else ():
            found.setdefault(name, value)
    return found


class Params:
    """The settings, each told to the log the first time that it is used."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.tell: Callable[[str, str], None] = lambda subsystem, text: None
        self._told: set[str] = set()

    def text(self, name: str) -> str:
        """A setting that is a word. Told by whoever uses it."""
        return self.values.get(name, "")

    def number(self, name: str, default: int) -> int:
        """A setting that is a number (C's notations). One that is none is told, and the default taken."""
        raw = self.values.get(f"NCCL_{name}", "")
        if not raw:
            return default
        try:
            value = int(raw, 0)
        except ValueError:
            self._once(name, f"Invalid value {raw} for NCCL_{name}, using default {default}.")
            return default
        self._once(name, f"NCCL_{name} set by environment to {value}.")
        return value

    def look_at(self, names: Iterable[str]) -> None:
        """Settings that change nothing here: asked for, and told."""
        for name in names:
            self.number(name, 0)

    def said(self, name: str, text: str, subsystem: str = "ENV") -> None:
        """Tell once, in these words."""
        self._once(name, text, subsystem)

    def _once(self, name: str, text: str, subsystem: str = "ENV") -> None:
        if name not in self._told:
            self._told.add(name)
            self.tell(subsystem, text)
