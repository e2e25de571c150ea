"""The program that makes a run's folder on a node, and what it answers. Pure."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabrictool.probes.launch import File
from fabrictool.snapshot.collector import resource
from fabrictool.snapshot.consumers import RANKS

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{7,63}")
RUN_NAME = re.compile(r"[a-z][a-z0-9]{0,15}")
GUARD = ("guard.sh", "sweep.sh")
COMMON = ("ranks.sh", "agent.sh", "allreduce.py", "rankenv.sh")  # on every node, whichever launcher it is


@dataclass(frozen=True, slots=True)
class Staged:
    """`folder`: the run's, on this node. `source`: the consumer whose environment was taken ("" = none of them is here)."""

    folder: str
    source: str


def folder(run_id: str) -> str:
    """Where stage.sh makes it when it is run by root: the same on every node."""
    return f"/run/fabrictool/{run_id}"


def program(run_id: str, alive_s: int, files: Sequence[File], added: Mapping[str, str], consumers: Sequence[str]) -> str:
    """For the standard input of `sh -s`. `alive_s`: without another sign of life everything ends after so many seconds. `added`: run ->
    lines of environment that the tool adds; each run gets a folder. `consumers`: whose environment is taken, the first that is there.

    Raises ValueError for an id or a name that could not stand in a path.
    """
    if not RUN_ID.fullmatch(run_id) or not all(RUN_NAME.fullmatch(name) for name in added):
        raise ValueError(f"{run_id!r}, {list(added)}: no run id, or no names of runs")
    every = [*(File(name, resource(name)) for name in COMMON), *files, *(File(f"{run}.added", text) for run, text in added.items())]
    # First of all the guard: the workstation may be gone at any moment.
    steps = [f"begin {run_id} {alive_s}", *(_put(File(name, resource(name))) for name in GUARD), "watch", "tell", *map(_put, every)]
    steps += [f"run_folder {name}" for name in added]
    steps += [f"environment {shlex.join((RANKS.pattern, *consumers))}", "echo staged"]
    return "\n".join([
        "\n".join(line for line in resource("stage.sh").splitlines() if not line.lstrip().startswith("#")),
        # One list in braces: when the text arrives cut short, nothing runs.
        "{", " &&\n".join(steps), "}", "",
    ])


def _put(file: File) -> str:
    return f"put {shlex.quote(file.name)} {base64.b64encode(file.text.encode()).decode()}"


def read(out: str) -> Staged | str:
    """What the program printed; or why it did not come to its end."""
    lines = out.replace("\r\n", "\n").split("\n")
    if "staged" not in lines or "end" not in lines:
        return "the run's folder could not be made"
    folder = next((ln.removeprefix("folder ") for ln in lines if ln.startswith("folder ")), "")
    source = next((ln.removeprefix("source ") for ln in lines if ln.startswith("source ")), "-")
    if not folder.startswith("/"):
        return "the run's folder could not be made"
    return Staged(folder, "" if source == "-" else source)
