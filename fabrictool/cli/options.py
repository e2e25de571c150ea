"""The options that commands share, as decorators, and what hangs on them: where a report goes.

A command takes only the decorators it means; the parameter each one gives is named in its docstring.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fabrictool.report import Output

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]


def _joined(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> str:
    """An empty -l is an unset variable in a script, never "all nodes"."""
    if any(not v.strip(" ,") for v in value):
        raise click.UsageError("-l names no node: it is empty (an unset variable?). Leave it out for all nodes.", ctx)
    return ",".join(value)


def _outputs(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> tuple[Output, ...]:
    from fabrictool.report import parse_outputs  # lazily: --help needs no renderer

    return parse_outputs(value)


def inventory(f: F) -> F:
    """`inventory: Path`: the spec (.yaml) or the inventory (.py) beside it."""
    return click.option("-i", "--inventory", required=True, envvar="FABRICTOOL_INVENTORY", metavar="FILE",
                        type=click.Path(path_type=Path), help="The spec (.yaml), or the inventory (.py) beside it.")(f)


def limit(f: F) -> F:
    """`limit: str`: host ranges, groups, `!`; several -l are joined with a comma; "" = all nodes."""
    return click.option("-l", "--limit", multiple=True, callback=_joined, metavar="NODES",
                        help="Only these: spark[01-02], a group, !spark03; joined with commas.")(f)


def bundle(f: F) -> F:
    """`bundle: Path | None`: judge this saved snapshot, without the network."""
    return click.option("--from", "bundle", metavar="BUNDLE", default=None,
                        type=click.Path(exists=True, dir_okay=False, path_type=Path),
                        help="Judge a bundle of `fabrictool snapshot`; nothing touches the network.")(f)


def outputs(f: F) -> F:
    """`outputs: tuple[Output, ...]`: where `fabrictool.report.emit` writes, exactly one of them stdout."""
    return click.option("-o", "--output", "outputs", multiple=True, callback=_outputs, metavar="FORMAT[:FILE]",
                        help="text or json; with :FILE into that file. Several may be given; one goes to stdout.")(f)


def verbose(f: F) -> F:
    """`verbose: int`: 1 adds passes and evidence."""
    return click.option("-v", "--verbose", count=True, help="Also what passed, with the evidence.")(f)


def yes(f: F) -> F:
    """`yes: bool`: do not ask."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask.")(f)


def allow(f: F) -> F:
    """`allow: tuple[str, ...]`: risks that -y covers too ("flap")."""
    return click.option("--allow", multiple=True, type=click.Choice(["flap"]),
                        help="With -y: also do steps that take a link down for a moment.")(f)


def strict(f: F) -> F:
    """`strict: bool`: a warning counts as failed."""
    return click.option("--strict", is_flag=True, help="Warnings count as failed (exit 1).")(f)


def ask_sudo(f: F) -> F:
    """`ask_sudo: bool`: ask for the sudo password, once."""
    return click.option("-K", "--ask-sudo", is_flag=True, help="Ask for the sudo password of the nodes.")(f)


def paths(f: F) -> F:
    """`paths: tuple[Path, ...]`: more folders with checks, for `fabrictool.catalog`."""
    return click.option("--path", "paths", multiple=True, envvar="FABRICTOOL_PATH", metavar="DIR",
                        type=click.Path(path_type=Path),
                        help="A folder with more checks (also FABRICTOOL_PATH, as in PATH).")(f)


def common(*decorators: Decorator[F]) -> Decorator[F]:
    """Several of the decorators above, listed in the order in which --help shows them."""
    def wrap(f: F) -> F:
        for decorate in reversed(decorators):
            f = decorate(f)
        return f
    return wrap


def program() -> str:
    """How this program is called here: by its name where PATH finds it, else as it was typed (`.venv/bin/fabrictool`)."""
    typed = sys.argv[0]
    return typed if Path(typed).name == "fabrictool" and shutil.which("fabrictool") is None else "fabrictool"


@dataclass(frozen=True, slots=True)
class Selection:
    """What the user selected, in the words of a command line: for the next command to type."""

    inventory: Path
    limit: str = ""
    ask_sudo: bool = False

    def line(self, command: str, *more: str) -> str:
        """`fabrictool COMMAND -i ... -l ...`, quoted for a shell."""
        words = [program(), command, "-i", os.fspath(self.inventory)]
        words += ["-l", self.limit] if self.limit else []
        words += ["-K"] if self.ask_sudo and command in ("apply", "plan", "drift", "check", "snapshot") else []
        return shlex.join([*words, *more])
