"""The command line: one file per command in this package, imported only when it is the one that runs.

`--help` imports none of them (pyinfra and pydantic cost half a second). Reports go to stdout, everything else to stderr.
"""

from __future__ import annotations

import difflib
import errno
import os
import re
import select
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import click

from fabrictool import __version__
from fabrictool.exits import Exit, Stop


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: `fabrictool.cli.<module>` has it as its attribute `command`."""

    name: str
    module: str
    help: str


COMMANDS = (
    Entry("init", "init", "write a commented spec to start from"),
    Entry("lint", "lint", "check a spec and name every problem with file:line:column"),
    Entry("schema", "schema", "print the JSON Schema of the spec, for editors"),
    Entry("inventory", "inventory", "show the nodes, and how each is reached"),
    Entry("snapshot", "snapshot", "save the raw state of all nodes in a bundle"),
    Entry("plan", "plan", "show what differs from the spec, and the steps that would set it"),
    Entry("apply", "apply", "set what plan shows, read it back, report what is left"),
    Entry("drift", "drift", "like plan, for a schedule: exit 2 when nodes differ"),
    Entry("check", "check", "judge nodes by named checks"),
    Entry("diagnose", "diagnose", "say what pasted output shows: logs, tool output, files"),
    Entry("explain", "explain", "the manual page of a check, a code or an exit code"),
    Entry("doctor", "doctor", "look at this workstation: Python, SSH, keys, lab"),
    Entry("lab", "lab", "an embedded fleet on this machine, to rehearse on"),
    Entry("demo", "demo", "the main job from end to end, on a lab"),
)


UNDELIVERED = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # what a stdout that goes to a file or a dead terminal answers


class Pipe(Exception):  # carries a BrokenPipeError past click
    """click would end the process with 1 for any broken pipe, which here means that a check failed."""


class Lazy(click.Group):
    """A group whose commands are modules, listed from the table and imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [e.name for e in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = next((e for e in COMMANDS if e.name == cmd_name), None)
        if entry is None:
            return None
        command = import_module(f"fabrictool.cli.{entry.module}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"fabrictool.cli.{entry.module}.command is not a click command")
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            hint = f" Did you mean {near[0]!r}?" if near else f" Commands: {', '.join(self.list_commands(ctx))}."
            raise click.UsageError(f"there is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise Pipe from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(e.name, e.help) for e in COMMANDS])


@click.command(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]},
               epilog="Exit: 0 all well, 1 failed, 2 nodes differ, 3 no verdict for something, 64 wrong command line, "
                      "78 bad spec or empty selection, 70 a bug here, 130 interrupted. More: fabrictool explain exit")
@click.version_option(__version__, "--version", prog_name="fabrictool")
def cli() -> None:
    """Set up GPU nodes and their RoCE fabric from one YAML file, and prove them."""


def complain(text: str) -> None:
    """Say it on stderr, whatever bytes are in it and whether or not anyone still listens. What it quotes may be of a hostile file: only
    line ends and tabs pass as they are."""
    from fabrictool.report.clean import clean

    text = "".join(part if part in ("\n", "\t") else clean(part) for part in re.split(r"([\n\t])", text))
    try:
        stream = sys.stderr
        stream.write(text.encode(stream.encoding or "ascii", "backslashreplace").decode(stream.encoding or "ascii") + "\n")
        stream.flush()
    except (OSError, ValueError):
        pass


def _spec_error(error: Exception) -> bool:
    """Whether it is the loader's error, without importing the loader for the question."""
    return any(t.__name__ == "SpecError" and t.__module__.startswith("fabrictool.spec") for t in type(error).__mro__)


def _bug(error: BaseException, debug: bool) -> Exit:
    if debug:
        complain("".join(traceback.format_exception(error)).rstrip())
    complain(f"fabrictool: this is a bug: {type(error).__name__}: {error}\n"
             f"  nothing is proven by this run. Please report it where you got fabrictool {__version__},\n"
             f"  with the command line{'' if debug else ', and the traceback that FABRICTOOL_DEBUG=1 shows'}.")
    return Exit.BUG


def _stdout_gone() -> bool:
    """Whether stdout is a pipe that nobody reads any more."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), select.POLLOUT)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


def _mute_stdout() -> None:
    """After a broken pipe: what Python still flushes at its end goes nowhere instead of raising again."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass


def run(argv: Sequence[str]) -> int:
    """The exit status of one command line. Commands return an `Exit` (None = 0), or raise `Stop`, `SpecError`, click errors."""
    debug = bool(os.environ.get("FABRICTOOL_DEBUG")) or any(a in ("-v", "-vv", "--verbose") for a in argv)
    try:
        code = cli.main(args=list(argv), prog_name="fabrictool", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except Stop as stop:
        complain(f"fabrictool: {stop.message}")
        return stop.exit
    except click.UsageError as error:
        error.show(sys.stderr)
        return Exit.USAGE
    except click.ClickException as error:  # a file that cannot be opened and the like: still the command line's fault
        complain(f"fabrictool: {error.format_message()}")
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error.__cause__ or error.__context__, EOFError):  # click.confirm raises `from None`
            complain("\nfabrictool: there is nobody to ask: stdin is closed; nothing was changed.\n"
                     "  Say -y (and --allow flap for steps that take a link down), or run it on a terminal.")
            return Exit.USAGE
        complain("fabrictool: interrupted; what was under way is unknown")
        return Exit.INTERRUPTED
    except (Pipe, BrokenPipeError) as error:
        if _stdout_gone():  # the reader went away (`| head`): not worth a word, but nothing was delivered either
            _mute_stdout()
            return Exit.NO_VERDICT
        return _bug(error.__cause__ or error, debug)
    except OSError as error:
        if error.errno not in UNDELIVERED:
            return _bug(error, debug)
        _mute_stdout()
        complain(f"fabrictool: the report could not be written: {error.strerror}: make room, or send it elsewhere")
        return Exit.NO_VERDICT
    except Exception as error:  # noqa: BLE001 (the last line: users never see a traceback they did not ask for)
        if _spec_error(error):
            complain(str(error))
            return Exit.SPEC
        return _bug(error, debug)


def _standard_streams() -> None:
    """Closed ones (`>&-`, some schedulers) lead nowhere: the exit status still counts, and no socket takes their numbers."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != fd:
                os.dup2(null, fd)
                os.close(null)
            setattr(sys, name, open(fd, mode, encoding="utf-8", errors="backslashreplace", closefd=False))  # noqa: SIM115 (stays open)


def main() -> int:
    """The console entry point."""
    _standard_streams()
    return run(sys.argv[1:])
