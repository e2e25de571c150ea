"""A command at a terminal, talked to step by step, or interrupted: what `fleet.at_terminal` does not do."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.e2e.fleet import CLI, LIMIT_S, Ended, environment

STEPS, FLAP = "Run these steps?", "Do that too?"  # what apply asks
CTRL_C = b"\x03"


class Talk:
    """The command's side of a pseudo-terminal."""

    def __init__(self, pid: int, master: int) -> None:
        self._pid, self._master, self._said, self._seen = pid, master, b"", 0

    def await_text(self, text: str) -> None:
        """Read until `text` was printed, after what an earlier call has waited for. AssertionError when it never is."""
        deadline = time.monotonic() + LIMIT_S
        while (at := self._said.find(text.encode(), self._seen)) < 0:
            assert time.monotonic() < deadline, f"{text!r} was not printed:\n{self._text()}"
            assert self._read(), f"ended without printing {text!r}:\n{self._text()}"
        self._seen = at + len(text)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def ctrl_c(self) -> Ended:
        """Press Ctrl-C until it ends. Once may be too early: Python loses a signal that comes just before it reads its terminal."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            os.write(self._master, CTRL_C)
            pause = time.monotonic() + 3
            while time.monotonic() < pause:
                if not self._read():
                    return self.end()
            assert time.monotonic() < deadline, f"Ctrl-C does not end it:\n{self._text()}"

    def end(self) -> Ended:
        """Wait for its end; both streams are in `out`."""
        deadline = time.monotonic() + LIMIT_S
        while self._read():
            assert time.monotonic() < deadline, f"does not end:\n{self._text()}"
        return Ended(os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1]), self._text(), "")

    def close(self) -> None:
        os.close(self._master)
        with suppress(ChildProcessError, ProcessLookupError):
            if os.waitpid(self._pid, os.WNOHANG)[0] == 0:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)

    def _text(self) -> str:
        return self._said.decode(errors="replace").replace("\r\n", "\n")

    def _read(self) -> bool:
        """False when the other side has closed."""
        if not select.select([self._master], [], [], 1)[0]:
            return True
        try:
            part = os.read(self._master, 65536)
        except OSError:  # Linux: the other side has closed
            return False
        self._said += part
        return bool(part)


@contextmanager
def talk(*words: str) -> Iterator[Talk]:
    """`fabrictool WORDS` at a terminal; ended, if it has not by itself."""
    argv = (*CLI, *words)
    pid, master = pty.fork()
    if pid == 0:
        os.chdir("/")
        os.execvpe(argv[0], list(argv), environment(TERM="dumb"))
    line = Talk(pid, master)
    try:
        yield line
    finally:
        line.close()


@contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """`fabrictool WORDS` in a process group of its own, its streams in files below `folder`; killed, if it has not ended."""
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        job = subprocess.Popen((*CLI, *words), cwd="/", env=environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                               start_new_session=True)
        try:
            yield job
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()


def interrupt(job: subprocess.Popen[bytes], folder: Path) -> Ended:
    """What Ctrl-C does: SIGINT to the whole process group."""
    os.killpg(job.pid, signal.SIGINT)
    rc = job.wait(LIMIT_S)
    return Ended(rc, (folder / "out").read_text(), (folder / "err").read_text())
