"""Run what users run, in a process of its own from `/`, against a lab: the command line and plain pyinfra, also at a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabrictool.lab.handle import Lab

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOYS = ROOT / "deploys"
LIMIT_S = 300  # a loaded machine with two cores, and tools that hang until their own limit
CLI = (sys.executable, "-c", "import sys; from fabrictool.cli import main; sys.exit(main())")
PYINFRA = (str(Path(sys.executable).with_name("pyinfra")),)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. At a terminal `out` holds both streams."""

    rc: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return f"exit {self.rc}\n{self.out}\n{self.err}"


def environment(**more: str) -> dict[str, str]:
    """The caller's, with the checkout importable and no ssh agent or settings of this machine's user in the way."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FABRICTOOL", "PYINFRA")) and k != "SSH_AUTH_SOCK"}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200", "NO_COLOR": "1", **more}


def spec(lab: Lab) -> str:
    return str(lab.layout.root / "lab.yaml")


def inventory(lab: Lab) -> str:
    """The three-line Python file that plain pyinfra takes."""
    return str(lab.layout.root / "lab.py")


def run(argv: tuple[str, ...], **env: str) -> Ended:
    done = subprocess.run(argv, cwd="/", env=environment(**env), capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          stdin=subprocess.DEVNULL)
    return Ended(done.returncode, done.stdout, done.stderr)


def tool(*words: str) -> Ended:
    """`fabrictool WORDS`."""
    return run((*CLI, *words))


def apply(lab: Lab, *words: str) -> Ended:
    return tool("apply", "-i", spec(lab), "-y", "--allow", "flap", *words)


def pyinfra(lab: Lab, deploy: Path, *options: str) -> Ended:
    """`pyinfra OPTIONS lab.py DEPLOY`, as a user without our command line would run it."""
    return run((*PYINFRA, *options, inventory(lab), str(deploy)))


def at_terminal(argv: tuple[str, ...], answer: str, after: str) -> Ended:
    """Run `argv` at a pseudo-terminal; when it has printed `after`, type `answer`."""
    child, master = pty.fork()
    if child == 0:
        os.chdir("/")
        os.execvpe(argv[0], list(argv), environment(TERM="dumb"))
    said, typed, deadline = b"", False, time.monotonic() + LIMIT_S
    try:
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux: the other side has closed
                break
            said += part
            if not typed and after.encode() in said:
                os.write(master, answer.encode() + b"\n")
                typed = True
    finally:
        os.close(master)  # hangs it up, should it still run
    _, status = os.waitpid(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), said.decode(errors="replace"), "")


@dataclass(frozen=True, slots=True)
class Said:
    """One finding of a JSON report, without what differs from run to run."""

    node: str
    check: str
    code: str
    status: str
    id: str
    got: str
    want: str


def report(ended: Ended) -> Mapping[str, Any]:
    """The JSON document on stdout."""
    document = json.loads(ended.out)
    assert isinstance(document, dict), ended.all
    return document


def findings(ended: Ended) -> frozenset[Said]:
    """Every finding of a report on stdout: also what is as wanted, if it was asked for with -v."""
    found = [(result["check"], f) for result in report(ended)["results"] for f in result["findings"]]
    return frozenset(Said(",".join(f["subject"]["nodes"]), check, f["code"], f["status"], f["id"], f["got"], f["want"])
                     for check, f in found)


def bad(ended: Ended) -> set[tuple[str, str]]:
    """(node, code) of every finding that is not as wanted."""
    return {(f.node, f.code) for f in findings(ended) if f.status in ("fail", "unknown", "warn")}


def writes(lab: Lab, node: str) -> list[tuple[object, object]]:
    """The calls of stand-ins that changed anything, by the stand-ins' own log."""
    return [(c["tool"], c["argv"]) for c in lab.commands(node) if c["changed"]]
