"""Nodes as they once were: a copy of the disk and of the state, to come back to much faster than by configuring them again."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from fabrictool.lab import node
from fabrictool.lab.errors import LabError
from fabrictool.lab.paths import NodeLayout
from fabrictool.lab.plan import NodePlan

if TYPE_CHECKING:
    from fabrictool.lab.handle import Lab

COPY_S = 60


def _place(here: NodeLayout) -> Path:
    """Beside the disk, in the run folder: gone with the lab, never seen by the node."""
    return here.root / "kept"


def _copy(source: Path, target: Path) -> None:
    """Everything of it: the overlay's own language is in attributes (opaque folders) and device files (whiteouts)."""
    shutil.rmtree(target, ignore_errors=True)
    done = subprocess.run(["cp", "-a", "--", str(source), str(target)], capture_output=True, text=True, timeout=COPY_S, check=False)
    if done.returncode:
        raise LabError(f"{source} could not be copied: {done.stderr.strip()[-300:]}")


def keep(lab: Lab, names: Iterable[str]) -> None:
    """Keep disk and state of running nodes; what was kept before is replaced."""
    for name in names:
        here = lab.node_layout(name)
        _place(here).mkdir(exist_ok=True)
        _copy(here.disk / "up", _place(here) / "up")
        with lab.edit_state(name):  # nobody writes it meanwhile
            shutil.copy2(here.state, _place(here) / "state.json")


def restore(lab: Lab, names: Iterable[str]) -> None:
    """Disk and state as kept, and a boot on it: processes, /run, addresses and running MTUs are those of a fresh start."""
    chosen = tuple(names)
    for name in chosen:
        if not (_place(lab.node_layout(name)) / "state.json").exists():
            raise LabError(f"lab {lab.layout.name}: {name} was not kept")

    def kept(plan: NodePlan, here: NodeLayout) -> None:
        _copy(_place(here) / "up", here.disk / "up")
        node.deliver(lab.plan, plan, here)
        shutil.copy2(_place(here) / "state.json", here.state)

    node.afresh(lab, chosen, kept)
