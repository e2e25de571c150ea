"""`fabrictool lab`: an embedded fleet on this machine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from fabrictool.exits import Exit, Stop

if TYPE_CHECKING:
    from fabrictool.lab.handle import Lab

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")
BARE = "; what apply had set is gone too"


def _named(ctx: click.Context, param: click.Parameter | None, name: str) -> str:
    """A name that no lab can have is the command line's fault, not a lab that is missing."""
    from fabrictool.lab.paths import name_problem

    if wrong := name_problem(name):
        raise click.BadParameter(wrong, ctx, param)
    return name


def _where(f: F) -> F:
    """`name: str`, `folder: Path | None`: which lab."""
    f = click.option("--dir", "folder", type=click.Path(path_type=Path), envvar="FABRICTOOL_LAB_DIR", metavar="DIR",
                     help="The folder of labs (default: /run/fabrictool-lab).")(f)
    return click.option("--name", default="lab", show_default=True, envvar="FABRICTOOL_LAB", metavar="NAME", callback=_named,
                        help="Which lab: several can be up side by side.")(f)


def _plain(f: Callable[P, R]) -> Callable[P, R]:
    """LabError becomes a message and exit 1."""
    @functools.wraps(f)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        from fabrictool.lab.errors import LabError

        try:
            return f(*args, **kwargs)
        except LabError as error:
            raise Stop(Exit.FAILED, str(error)) from error
    return wrapped


def _open(name: str, folder: Path | None) -> Lab:
    from fabrictool.lab.handle import Lab

    return Lab.open(name, folder)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """An embedded fleet: nodes that are namespaces of this machine, with real SSH, real links and real files.

    RDMA, QoS registers, GPUs and systemd are stand-ins: nothing that a lab shows is a measurement of hardware.
    """


@command.command("up")
@click.option("--nodes", default=4, show_default=True, type=click.IntRange(1, 64), help="How many nodes.")
@click.option("--profile", default="spark", show_default=True, type=click.Choice(["spark", "h20", "plain"]), help="Which kind.")
@_where
@_plain
def up(nodes: int, profile: str, name: str, folder: Path | None) -> None:
    """Build a lab; prints the inventory to use."""
    from fabrictool.lab import up as build

    lab = build.up(name, nodes, profile, folder, say=lambda text: click.echo(f"lab {name}: {text}", err=True))
    click.echo(f"lab {name}: {nodes} nodes ({profile}) are up")
    click.echo(f"  fabrictool plan -i {lab.layout.root}/lab.yaml")
    click.echo(f"  ssh -F {lab.layout.root}/ssh_config {lab.nodes[0]}")
    click.echo(f"  fabrictool lab down --name {name}")


@command.command("down", short_help="Take a lab down.")
@click.option("--all", "every", is_flag=True, help="All labs of this machine.")
@_where
@_plain
def down(every: bool, name: str, folder: Path | None) -> None:
    """Take a lab down: nothing of it is left, also after kill -9."""
    from fabrictool.lab import down as clear
    from fabrictool.lab.errors import LabError
    from fabrictool.lab.paths import Layout
    from fabrictool.lab.up import locked, need_root

    need_root("take a lab down")
    labs = clear.names(folder) if every else [name]
    for one in labs:
        layout = Layout.of(one, folder)
        if not layout.root.exists():
            raise LabError(f"there is no lab {one!r} under {layout.root.parent}")
        with locked(layout):
            clear.clear(layout)
        click.echo(f"lab {one}: gone")
    if not labs:
        click.echo("no labs")


@command.command("status")
@_where
@_plain
def status(name: str, folder: Path | None) -> Exit:
    """What of a lab lives. Exit 0: all of it; 1: not all."""
    from rich.console import Console
    from rich.table import Table

    from fabrictool.lab.status import status as look

    seen = look(_open(name, folder))
    table = Table(title=f"lab {seen.name}: {seen.profile}, {seen.folder}", title_justify="left")
    for head in ("node", "state", "127.0.0.1 port", "boots", "processes", "stand-ins that misbehave"):
        table.add_column(head)
    for n in seen.nodes:
        state = "up" if n.running and n.booted else "booting" if n.running else "down"
        table.add_row(n.name, state, str(n.port or "-"), str(n.boots), str(n.processes), ", ".join(n.misbehaving) or "-")
    Console(highlight=False).print(table)
    if not seen.forwarder:
        click.echo("the forwarder is gone: no node can be reached; take the lab down and up again", err=True)
    return Exit.OK if seen.whole else Exit.FAILED


@command.command("ssh", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("node")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@_where
@click.pass_context
@_plain
def ssh(ctx: click.Context, node: str, words: tuple[str, ...], name: str, folder: Path | None) -> None:
    """A shell on a node, or a command. --name and --dir may also stand right after NODE; all the rest goes to the node."""
    import os
    import shlex

    from fabrictool.lab.errors import LabError

    words, late = _late(ctx, words)
    lab = _open(_named(ctx, None, late["--name"]) if "--name" in late else name, Path(late["--dir"]) if "--dir" in late else folder)
    lab.plan.node(node)
    remote = [words[0] if len(words) == 1 else shlex.join(words)] if words else []
    argv = ["ssh", "-F", str(lab.layout.root / "ssh_config"), *(["-t"] if not words else []), node, *(["--", *remote] if remote else [])]
    try:
        os.execvp("ssh", argv)
    except OSError as error:
        raise LabError(f"ssh: {error.strerror}: install openssh-client") from error


def _late(ctx: click.Context, words: tuple[str, ...]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """(the command for the node, options of ours that stand before it): no program is called --name."""
    found = {}
    while words and words[0].partition("=")[0] in ("--name", "--dir"):
        option, equals, value = words[0].partition("=")
        if not equals and len(words) < 2:
            raise click.UsageError(f"{option} needs a value", ctx)
        found[option], words = (value, words[1:]) if equals else (words[1], words[2:])
    return words[1:] if words[:1] == ("--",) else words, found


@command.command("reboot", short_help="Reboot a node.")
@click.argument("node")
@_where
@_plain
def reboot(node: str, name: str, folder: Path | None) -> None:
    """Reboot a node: what a real reboot loses is lost, then its persistent configuration and its enabled units run."""
    from fabrictool.lab.up import locked, need_root

    need_root("reboot a node")
    lab = _open(name, folder)
    with locked(lab.layout):
        lab.reboot(node)
    click.echo(f"{node}: rebooted")


@command.command("reset", short_help="Nodes back to the factory state.")
@click.argument("nodes", nargs=-1)
@_where
@_plain
def reset(nodes: tuple[str, ...], name: str, folder: Path | None) -> None:
    """Nodes (all, if none is named) back to the factory state, disk included."""
    from fabrictool.lab.up import locked, need_root

    need_root("reset nodes")
    lab = _open(name, folder)
    with locked(lab.layout):
        lab.reset(*nodes)
    click.echo(f"{', '.join(nodes or lab.nodes)}: as delivered{BARE}")


@command.command("fault")
@click.argument("node", required=False)
@click.argument("names", nargs=-1, metavar="[FAULT]...")
@click.option("--function", default="", metavar="NAME", help="Which function: its rail, interface or RDMA device.")
@click.option("--clear", is_flag=True, help="NODE (all, if none is named) and the switch as delivered: every fault is gone, and "
                                                      "so is what apply had set.")
@click.option("--list", "listing", is_flag=True, help="The faults there are, where they happen, and what plan and check then say.")
@_where
@_plain
def fault(node: str | None, names: tuple[str, ...], function: str, clear: bool, listing: bool, name: str, folder: Path | None) -> None:
    """Make NODE misbehave. FAULT... are names from --list."""
    from fabrictool.lab import faults
    from fabrictool.lab.up import locked, need_root

    if listing:
        from fabrictool.cli import faultlist

        faultlist.show()
        return
    if not clear and (node is None or not names):
        raise click.UsageError("say NODE and FAULT, or --list")
    if clear and names:
        raise click.UsageError("--clear takes every fault of the node away: leave out the names")
    for one in names:
        faults.fault(one)  # a wrong name stops it all, before anything is done
    need_root("change a node")
    lab = _open(name, folder)
    with locked(lab.layout):
        if clear:
            lab.clear(*([node] if node else []))
            click.echo(f"{node or 'all nodes'}: as delivered{BARE}")
        for one in names:
            faults.inject(lab, node or "", one, function)
            click.echo(f"{node}: {one}")
