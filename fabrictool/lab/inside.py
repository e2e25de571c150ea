"""Run something in a node's namespaces, without SSH."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TIMED_OUT = 124  # as timeout(1) says it


@dataclass(frozen=True)
class Done:
    """How a command ended; streams as text, bytes that are not UTF-8 as surrogates."""

    rc: int
    out: str
    err: str

    @property
    def ok(self) -> bool:
        return self.rc == 0


def run_inside(pid: int, argv: Sequence[str], stdin: str | bytes = b"", timeout_s: float = 60) -> Done:
    """`argv` as root in the namespaces of `pid`."""
    data = stdin.encode("utf-8", "surrogateescape") if isinstance(stdin, str) else stdin
    command = ["nsenter", "--target", str(pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--", *argv]
    env = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8"}
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=timeout_s, check=False, env=env, cwd="/")
    except subprocess.TimeoutExpired as late:
        return Done(TIMED_OUT, _text(late.stdout), _text(late.stderr))
    return Done(done.returncode, _text(done.stdout), _text(done.stderr))


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")
