"""What the README shows is what works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from fabrictool.cli import cli, run

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
(SPEC,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
LINES = [line.split("#")[0].strip() for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]


def test_the_spec_is_short_and_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(SPEC.splitlines()) <= 10
    path = tmp_path / "two.yaml"
    path.write_text(SPEC, encoding="utf-8")
    assert run(["lint", "-i", str(path), "--strict"]) == 0, capsys.readouterr().err
    assert run(["inventory", "-i", str(path)]) == 0
    assert "spark02" in capsys.readouterr().out
    path.write_text(SPEC.replace("mtu:", "mtuu:"), encoding="utf-8")
    assert run(["lint", "-i", str(path)]) == 78


@pytest.mark.parametrize("line", [ln for ln in LINES if "fabrictool " in ln])
def test_every_command_line_can_be_parsed(line: str) -> None:
    name, *rest = shlex.split(line)[1:]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, name
    known = {o for p in command.params for o in p.opts}
    assert [w for w in rest if w.startswith("-") and w not in known] == []


def test_command_lines_are_there() -> None:
    assert sum("fabrictool " in ln for ln in LINES) >= 5
