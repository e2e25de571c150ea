"""`fabrictool demo`: the main job from end to end, on a fleet that it builds and takes down again."""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictool.exits import Exit, Stop

if TYPE_CHECKING:
    from fabrictool.lab.faults import Fault
    from fabrictool.lab.handle import Lab

LIMIT_S = 300  # one command of the demo


class Wrong(Exception):
    """A step of the demo did not end as it has to."""


def _say(text: str) -> None:
    click.echo(click.style(f"\n# {text}", bold=True))


def _run(words: list[str], expected: Exit) -> None:
    """Show the command, run it for real in a process of its own, show all it says, and hold its exit status."""
    click.echo(click.style(f"$ fabrictool {shlex.join(words)}", fg="cyan"))
    sys.stdout.flush()
    program = [sys.executable, "-c", "import sys; from fabrictool.cli import main; sys.exit(main())", *words]
    env = {**os.environ, "COLUMNS": os.environ.get("COLUMNS", "100")}
    try:
        done = subprocess.run(program, env=env, timeout=LIMIT_S, check=False, stderr=subprocess.STDOUT if not sys.stderr.isatty() else None)
    except subprocess.TimeoutExpired as error:
        raise Wrong(f"`fabrictool {shlex.join(words)}` did not end within {LIMIT_S} s") from error
    click.echo(f"(exit {done.returncode})")
    if done.returncode != expected:
        raise Wrong(f"`fabrictool {shlex.join(words)}` ended with {done.returncode}, not {int(expected)}")


def _story(lab: Lab, spec: Path, seed: int, node: str, fault_name: str, fault_text: str) -> None:
    spec_words = ["-i", str(spec)]
    _say("Factory state: MTU 1500, no DSCP trust, no PFC, no NCCL environment, names on loopback. What would be set?")
    _run(["plan", *spec_words], Exit.DRIFT)
    _say("Set it: links flap, so node by node; everything is read back")
    _run(["apply", *spec_words, "-y", "--allow", "flap"], Exit.OK)
    _say("Is the fleet as the spec says?")
    _run(["drift", *spec_words], Exit.OK)
    _say("Prove it: an AllReduce whose bytes must show in the RDMA counters, on the spec's priority, on both rails")
    _run(["check", "allreduce", "rdma_counters", "lossless_priority", *spec_words], Exit.OK)
    _say(f"Something goes wrong on {node} (seed {seed}): {fault_text}")
    _run(["lab", "fault", node, fault_name, "--name", lab.plan.name], Exit.OK)
    _say("Caught?")
    _run(["drift", *spec_words], Exit.DRIFT)
    _say("Repair it, and look again")
    _run(["apply", *spec_words, "-y", "--allow", "flap"], Exit.OK)
    _run(["drift", *spec_words], Exit.OK)


def choose(seed: int, nodes: Sequence[str]) -> tuple[Fault, str]:
    """A fault that drift catches and apply repairs, and the node that gets it. The same seed picks the same."""
    from fabrictool.lab.faults import FAULTS

    shown = [f for f in FAULTS if f.expect["drift"].exit == Exit.DRIFT and f.expect["apply"].exit == Exit.OK
             and (not f.profiles or "spark" in f.profiles)]
    dice = random.Random(seed)
    return dice.choice(shown), dice.choice(list(nodes))


@click.command("demo")
@click.option("--seed", default=1, show_default=True, help="Picks the fault and the node.")
@click.option("--nodes", default=4, show_default=True, type=click.IntRange(2, 16), help="How many nodes.")
@click.option("--name", default="demo", show_default=True, metavar="NAME", help="The lab's name.")
@click.option("--keep", is_flag=True, help="Leave the fleet up, to go on by hand.")
def command(seed: int, nodes: int, name: str, keep: bool) -> Exit:
    """Build a fleet of namespaces on this machine, configure it, prove it, break it, catch that, repair it.

    Needs Linux and root. SSH, links, MTU and files are real; RDMA, NCCL, QoS registers and systemd are stand-ins. Exit 0: every step
    ended as it has to.
    """
    from fabrictool.lab import down, up
    from fabrictool.lab.errors import LabError

    try:
        lab = up.up(name, nodes, "spark", None, say=lambda text: click.echo(f"lab {name}: {text}", err=True))
    except LabError as error:
        raise Stop(Exit.FAILED, str(error)) from error
    click.echo(f"A fleet of {nodes} nodes on this machine: real SSH and links; RDMA, NCCL, QoS registers and systemd are stand-ins.")
    fault, node = choose(seed, lab.nodes)
    try:
        _story(lab, lab.layout.root / "lab.yaml", seed, node, fault.name, fault.summary)
    except Wrong as wrong:
        raise Stop(Exit.FAILED, f"the demo failed: {wrong}; the fleet {name!r} {'is kept' if keep else 'is taken down'}") from wrong
    finally:
        if not keep:
            down.clear(lab.layout)
    click.echo(f"\nDone: configured, proven, broken ({fault.name} on {node}), caught, repaired.")
    return Exit.OK
