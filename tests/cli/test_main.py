"""The front door: usage errors, exit codes, what goes to which stream, and that --help imports nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click
import pytest

import fabrictool
from fabrictool import cli
from fabrictool.exits import Exit, Stop
from fabrictool.spec.problems import Mark, SpecError, error

ROOT = Path(fabrictool.__file__).parent.parent


def process(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from fabrictool.cli import main; sys.exit(main())"
    kept = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR", "FABRICTOOL_DEBUG")}
    return subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, timeout=60, check=False,
                          env={**kept, "PYTHONPATH": str(ROOT), **env})


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | int | None]:
    """A command `fake` that does what the list says: raises the exception, or returns the number."""
    does: list[BaseException | int | None] = []

    @click.command("fake")
    @click.option("--number", type=int)
    @click.option("-v", "--verbose", count=True)
    def command(number: int | None, verbose: int) -> int | None:
        what = does[0]
        if isinstance(what, BaseException):
            raise what
        return what

    module = ModuleType("fabrictool.cli.fake")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fabrictool.cli.fake", module)
    monkeypatch.setattr(cli, "COMMANDS", (*cli.COMMANDS, cli.Entry("fake", "fake", "for this test")))
    return does


@pytest.mark.parametrize("entry", cli.COMMANDS, ids=lambda e: e.name)
def test_every_command_is_there_and_has_help(entry: cli.Entry, capsys: pytest.CaptureFixture[str]) -> None:
    command = import_module(f"fabrictool.cli.{entry.module}").command
    assert command.help
    assert cli.run([entry.name, "--help"]) == 0
    out = capsys.readouterr()
    assert f"Usage: fabrictool {entry.name}" in out.out
    assert out.err == ""


def test_help_imports_no_command_and_nothing_heavy() -> None:
    probe = "import sys; from fabrictool.cli import run; run(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    for heavy in ("pyinfra", "gevent", "pydantic", "paramiko", "rich", "yaml", "ClusterShell", "fabrictool.cli.plan", "fabrictool.report"):
        assert f"'{heavy}'" not in done.stderr, heavy
    for entry in cli.COMMANDS:
        assert f"  {entry.name} " in done.stdout
        assert entry.help in done.stdout


@pytest.mark.parametrize(("argv", "said"), [
    ((), "Usage: fabrictool"), (("pln",), "Did you mean 'plan'?"), (("zzz",), "Commands: init"), (("--nope",), "--nope"),
    (("explain", "a", "b"), "unexpected extra argument"), (("explain", "QOS_TRUTS"), "did you mean 'QOS_TRUST'?"),
    (("fake", "--number", "x"), "not a valid integer"),
])
def test_usage_errors_are_64_on_stderr(argv: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str],
                                       fake: list[BaseException | int | None]) -> None:
    fake.append(None)
    assert cli.run(argv) == 64
    out = capsys.readouterr()
    assert out.out == ""
    assert said in out.err
    assert "Traceback" not in out.err


@pytest.mark.parametrize(("does", "code", "said"), [
    (None, 0, ""), (Exit.DRIFT, 2, ""), (0, 0, ""), (Exit.NO_VERDICT, 3, ""),
    (Stop(Exit.SPEC, "spark4.yaml: no node is left by -l"), 78, "no node is left"),
    (SpecError([error(Mark("a.yaml", 3, 5), "unknown key \"mtuu\"", do="did you mean \"mtu\"?"), error(Mark("a.yaml", 9, 1), "two")]),
     78, "a.yaml:3:5"),
    (KeyboardInterrupt(), 130, "interrupted"), (EOFError(), 64, "nobody to ask"),
    (RuntimeError("odd"), 70, "RuntimeError: odd"), (BrokenPipeError(errno.EPIPE, "a socket"), 70, "BrokenPipeError"),
])
def test_what_a_command_does_and_what_comes_out(does: BaseException | int | None, code: int, said: str,
                                                capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
                                                fake: list[BaseException | int | None]) -> None:
    monkeypatch.delenv("FABRICTOOL_DEBUG", raising=False)
    fake.append(does)
    assert cli.run(["fake"]) == code
    out = capsys.readouterr()
    assert out.out == ""
    assert said in out.err
    assert "Traceback" not in out.err
    if isinstance(does, SpecError):
        assert "a.yaml:9:1" in out.err  # all problems at once


@pytest.mark.parametrize("how", ["-v", "FABRICTOOL_DEBUG"])
def test_a_bug_shows_its_traceback_only_when_asked(how: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
                                                   fake: list[BaseException | int | None]) -> None:
    fake.append(ValueError("deep"))
    if how == "FABRICTOOL_DEBUG":
        monkeypatch.setenv("FABRICTOOL_DEBUG", "1")
    assert cli.run(["fake", *(["-v"] if how == "-v" else [])]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_version_and_console_entry() -> None:
    done = process("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"fabrictool, version {fabrictool.__version__}")
    assert process("pln").returncode == 64


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = ("import sys, os; from fabrictool.cli import run\n"
            "r, w = os.pipe(); os.close(r); os.dup2(w, 1)\n"
            "sys.exit(run(['explain']))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.stderr == ""
    assert done.returncode == 3


def test_stderr_that_cannot_take_a_character_is_no_crash() -> None:
    done = process("explain", "größe", PYTHONIOENCODING="ascii")
    assert done.returncode == 64
    assert r"gr\xf6\xdfe" in done.stderr
