"""The text for a file with many problems at once, exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrictool.spec.problems import render
from fabrictool.spec.resolve import examine

HERE = Path(__file__).parent


def test_all_problems_are_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    seen = examine(Path("many.yaml"))
    assert render(seen.problems) + "\n" == (HERE / "many.txt").read_text(encoding="utf-8")
    assert seen.site is None


def test_text_of_a_file_cannot_move_the_cursor(tmp_path: Path) -> None:
    path = tmp_path / "s\x1b[2J.yaml"
    path.write_text('"a\\e[2J\\u202e": 1\nsite: "\\a"\n', encoding="utf-8")
    text = render(examine(path).problems)
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "a\\x1b[2J\\u202e" in text
