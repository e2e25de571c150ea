"""docs/commands.md is what --help says; FABRICTOOL_GOLDEN=write renews it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from fabrictool.cli import COMMANDS, cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
HEAD = """# Commands

What `fabrictool COMMAND --help` says. Exit codes: [exit-codes.md](exit-codes.md); codes of findings: [codes.md](codes.md).
"""


def _pages(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for sub in command.list_commands(click.Context(command)):
            got = command.get_command(click.Context(command), sub)
            assert got is not None
            yield from _pages(got, f"{name} {sub}")


def _all() -> list[tuple[str, click.Command]]:
    top = click.Context(cli)
    found: list[tuple[str, click.Command]] = []
    for entry in COMMANDS:
        command = cli.get_command(top, entry.name)
        assert command is not None
        found += _pages(command, entry.name)
    return found


def _help(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"fabrictool {name}", help_option_names=["-h", "--help"], terminal_width=80,
                            max_content_width=80, color=False)
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


def test_commands_page_is_current() -> None:
    text = HEAD + "".join(f"\n## {name}\n\n```text\n{_help(name, command)}\n```\n" for name, command in _all())
    if os.environ.get("FABRICTOOL_GOLDEN") == "write":
        PAGE.write_text(text, encoding="utf-8")
    assert text == PAGE.read_text(encoding="utf-8"), "run the tests once with FABRICTOOL_GOLDEN=write and look at the difference"


def test_every_command_and_every_option_says_what_it_is() -> None:
    bare = [f"{name}: {param.name}" for name, command in _all() for param in command.params
            if isinstance(param, click.Option) and not (param.help or "").strip() and not param.hidden]
    assert bare == []
    assert [name for name, command in _all() if not (command.help or "").strip()] == []
