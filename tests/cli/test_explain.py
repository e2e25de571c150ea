"""`explain`: its pages are for a terminal, not Markdown."""

from __future__ import annotations

import pytest

from fabrictool.cli import run
from fabrictool.exits import Exit


@pytest.mark.parametrize("name", ["exit", "3"])
def test_the_exit_codes_are_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Exit codes"
    assert [line for line in lines if line.startswith(("|", "#")) or len(line) > 80 or line != line.rstrip()] == []
    first = [line.split()[0] for line in lines if line.strip()]
    assert [str(int(e)) for e in Exit if str(int(e)) not in first] == []
    assert [line.split() for line in lines if line.startswith("fail, without steps")] == [["fail,", "without", "steps", "1", "1", "1"]]
