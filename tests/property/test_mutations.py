"""The tests themselves: every mutant of the product turns some of them red, and the product as it is leaves all of those green.

A mutant is put into a copy of the checkout, and the tests named beside it run there, in a process of their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.property.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
PARTS = ("fabrictool", "deploys", "checks", "tests", "docs", "pyproject.toml")
TESTS_FAILED = 1  # pytest's exit status; 2 and more: it could not run them


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    """A copy of what the tests need. Captures are only read. Not below pytest's own folder: every pytest that starts closes that to
    other users, also while a test looks at it as one."""
    top = Path(tempfile.mkdtemp(prefix="mutants-"))
    for name in PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, top / name, ignore=shutil.ignore_patterns("__pycache__", "captures"))
        else:
            shutil.copy(source, top / name)
    (top / "tests" / "captures").symlink_to(ROOT / "tests" / "captures")
    yield top
    shutil.rmtree(top, ignore_errors=True)


def run(tree: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """Exit status and the end of the output."""
    pytest_words = ["pytest", "-q", "-x", "-p", "no:xdist", f"--basetemp={tree / 'tmp'}", *tests]
    words = ["tests.property.suite", *tests[1:]] if tests[0] == "suite" else pytest_words
    env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-m", *words], cwd=tree, env=env, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, (done.stdout + done.stderr)[-3000:]


def killed(tests: tuple[str, ...], status: int, said: str) -> bool:
    """A test failed, or a law did; a crash of either proves nothing."""
    return status == TESTS_FAILED and ("held " if tests[0] == "suite" else " failed") in said


@pytest.mark.parametrize("mutant", MUTANTS, ids=[m.name for m in MUTANTS])
def test_every_mutant_is_killed(mutant: Mutant, tree: Path) -> None:
    path = tree / mutant.file
    text = path.read_text()
    assert text.count(mutant.old) == 1, f"{mutant.file} does not hold {mutant.old!r} once: the mutant has to follow the source"
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        status, said = run(tree, mutant.tests)
    finally:
        path.write_text(text)
    assert killed(mutant.tests, status, said), f"{mutant.name} lives: exit status {status}\n{said}"


@pytest.mark.parametrize("tests", sorted({m.tests for m in MUTANTS}), ids=lambda t: "+".join(w.rsplit("/", 1)[-1] for w in t))
def test_the_same_tests_are_green_without_a_mutant(tests: tuple[str, ...], tree: Path) -> None:
    status, said = run(tree, tests)
    assert status == 0, said
    assert not killed(tests, status, said)


def test_the_copy_is_what_runs(tree: Path) -> None:
    """Not the checkout: a mutant would never be seen."""
    code = "import fabrictool, tests.property.mutants as m; print(fabrictool.__file__, m.__file__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True,
                          text=True, check=True)
    assert [Path(p).is_relative_to(tree) for p in done.stdout.split()] == [True, True]
