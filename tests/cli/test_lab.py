"""`lab`: which lab is meant, and what reaches the node."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fabrictool.cli import lab as command
from fabrictool.cli import run
from fabrictool.exits import Exit
from fabrictool.lab.paths import Layout
from fabrictool.lab.plan import LabPlan, lab_plan
from fabrictool.lab.profiles import profile

NODE = "spark01"


@dataclass
class Fake:
    layout: Layout
    plan: LabPlan = field(default_factory=lambda: lab_plan("x", profile("spark"), 2))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """(name, folder) of the lab that was opened, then the ssh command line."""
    seen: list[object] = []

    def opened(name: str, folder: Path | None) -> Fake:
        seen.append((name, folder))
        return Fake(Layout.of(name, folder))

    monkeypatch.setattr(command, "_open", opened)
    monkeypatch.setattr(os, "execvp", lambda file, argv: seen.append(argv))
    return seen


@pytest.mark.parametrize(("words", "lab", "remote"), [
    (["--name", "two", NODE, "uptime"], ("two", None), ["--", "uptime"]),
    ([NODE, "--name", "two", "--", "uptime"], ("two", None), ["--", "uptime"]),
    ([NODE, "--name=two", "--dir", "/x", "uptime", "-p"], ("two", Path("/x")), ["--", "uptime -p"]),
    ([NODE, "--", "uptime"], ("lab", None), ["--", "uptime"]),
    ([NODE, "docker", "run", "--name", "two", "x y"], ("lab", None), ["--", "docker run --name two 'x y'"]),
    ([NODE, "--name", "two"], ("two", None), []),
])
def test_the_name_of_the_lab_may_stand_after_the_node(sent: list[object], words: list[str], lab: object, remote: list[str]) -> None:
    assert run(["lab", "ssh", *words]) == Exit.OK
    opened, argv = sent
    assert opened == lab
    assert isinstance(argv, list)
    assert argv[argv.index(NODE) + 1:] == remote


@pytest.mark.parametrize("words", [
    ["ssh", NODE, "--name", "Bad!", "--", "uptime"], ["ssh", NODE, "--name="], ["ssh", NODE, "--name"], ["ssh", "--name", "..", NODE],
    *([what, "--name", "a b"] for what in ("up", "down", "status", "reset")), ["status", "--name", ""], ["status", "--name", "a\n"],
])
def test_a_name_that_no_lab_can_have_is_a_wrong_command_line(sent: list[object], words: list[str],
                                                             capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", *words]) == Exit.USAGE
    assert sent == []
    assert "--name needs a value" in (said := capsys.readouterr().err) or "use 1 to 24 of a-z 0-9 _ -" in said


def test_the_twin_a_lab_that_is_not_there_has_a_good_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "status", "--name", "none", "--dir", str(tmp_path)]) == Exit.FAILED
    assert "no lab 'none'" in capsys.readouterr().err
