"""NCCL's log: who may say what, where it goes, and the shape of a line."""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

from fabrictool.lab.nodeside.nccl.params import Params

VERSION = "2.28.9+cuda13.0"
LEVELS = {"VERSION": 1, "WARN": 2, "INFO": 3, "ABORT": 4, "TRACE": 5}
DEFAULT = "INIT,BOOTSTRAP,ENV"


class Log:
    """Lines of one process. Nothing is written unless NCCL_DEBUG asks for it."""

    def __init__(self, params: Params, host: str, pid: int, out: TextIO = sys.stdout) -> None:
        self.host, self.pid = host, pid
        self.level = LEVELS.get(params.text("NCCL_DEBUG").upper(), 0)
        self.subsystems = _subsystems(params.text("NCCL_DEBUG_SUBSYS") or DEFAULT)
        self.out = out
        path = params.text("NCCL_DEBUG_FILE")
        if path and self.level > LEVELS["VERSION"]:
            try:
                self.out = open(_name(path, host, pid), "w", buffering=1)  # noqa: SIM115  open as long as the process
            except OSError:
                self.out = out

    def info(self, subsystem: str, text: str, dev: int = 0, tid: int = 0) -> None:
        """`subsystem`: several, where any of them will do: `NET|ENV`."""
        if self.level >= LEVELS["INFO"] and (subsystem == "ALL" or self.subsystems & set(subsystem.split("|"))):
            self._line(f"{self.host}:{self.pid}:{tid or self.pid} [{dev}] NCCL INFO {text}\n")

    def warn(self, where: str, text: str, dev: int = 0, tid: int = 0) -> None:
        """With an empty line before it. `where`: file and line."""
        if self.level >= LEVELS["WARN"]:
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            self._line(f"\n[{stamp}] {self.host}:{self.pid}:{tid or self.pid} [{dev}] {where} NCCL WARN {text}\n")

    def trace(self, where: str, code: int, dev: int = 0, tid: int = 0) -> None:
        """One step of an error on its way up."""
        self.info("ALL", f"{where} -> {code}", dev, tid)

    def version(self, first: bool) -> None:
        """At level INFO every process says it, below only the first one."""
        if self.level >= LEVELS["INFO"]:
            self.info("ALL", f"NCCL version {VERSION}")
        elif first and self.level:
            self._line(f"NCCL version {VERSION}\n")

    def _line(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()


def _name(path: str, host: str, pid: int) -> str:
    return os.path.normpath(path.replace("%h", host).replace("%p", str(pid)))


def _subsystems(text: str) -> set[str]:
    every = {"INIT", "COLL", "P2P", "SHM", "NET", "GRAPH", "TUNING", "ENV", "ALLOC", "CALL", "PROXY", "NVLS", "BOOTSTRAP", "REG", "PROFILE",
             "RAS"}
    words = {w.strip().upper() for w in text.lstrip("^").split(",")}
    chosen = every if "ALL" in words else every & words
    return every - chosen if text.startswith("^") else chosen
