"""All that runs on nodes: POSIX sh by shellcheck's and the shells' own word."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import fabrictool.node
from fabrictool.snapshot import Section, collector
from tests.snapshot.shells import SHELLS

SCRIPTS = sorted(Path(str(fabrictool.node.__file__)).parent.glob("*.sh"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_shellcheck(path: Path) -> None:
    done = subprocess.run(["shellcheck", "-s", "sh", "-S", "warning", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("shell", [pytest.param(argv, id=name) for name, argv in SHELLS.items() if shutil.which(argv[0])])
def test_every_shell_can_parse_it(shell: tuple[str, ...]) -> None:
    texts = {p.name: p.read_text(encoding="ascii") for p in SCRIPTS}
    texts["program"] = collector.script([Section("a", "echo 'it'\"s\"")])
    for name, text in texts.items():
        done = subprocess.run([*shell, "-n", "-s"], input=text.encode(), capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b""), name


def test_there_are_scripts() -> None:
    assert {"collect.sh", "record.sh", "run.sh"} <= {p.name for p in SCRIPTS}
