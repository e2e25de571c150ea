"""Shared options: where reports go, and the next command."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import fabrictool
from fabrictool.cli import options
from fabrictool.cli.whatnext import next_line
from fabrictool.exits import Exit, Stop
from fabrictool.model import Code, Status
from fabrictool.report import Mode, Output, Show, emit, parse_outputs, write_atomically
from tests.report.reports import NODES, drifted, finding, passing, plan

CHOSEN = options.Selection(Path("inventories/spark 4.py"), "spark[01-02],!spark03")


def test_text_has_stdout_unless_another_takes_it(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    assert parse_outputs(()) == (Output("text"),)
    assert parse_outputs(("json",)) == (Output("json"),)
    assert parse_outputs((f"json:{file}",)) == (Output("json", file), Output("text"))
    assert parse_outputs(("text", f"json:{file}")) == (Output("text"), Output("json", file))


@pytest.mark.parametrize(("words", "said"), [
    (("jsn",), "did you mean 'json'?"), (("yaml",), "there are: text, json"), (("",), "there are"), (("JSON",), "no format"),
    (("text", "json"), "both go to stdout"), (("text", "text"), "both go to stdout"), (("json:a", "text:./a"), "into one file"),
    (("json:",), "name a file"), (("json:/",), "a folder"), (("json:/no/such/x",), "make the folder"),
])
def test_bad_outputs_are_refused_before_anything_runs(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(Stop) as stop:
        parse_outputs(words)
    assert stop.value.exit is Exit.USAGE
    assert said in stop.value.message


def test_options_arrive_as_documented(tmp_path: Path) -> None:
    seen: dict[str, object] = {}

    @click.command()
    @options.common(options.inventory, options.limit, options.bundle, options.outputs, options.verbose, options.yes, options.allow,
                    options.strict, options.ask_sudo, options.paths)
    def command(**kwargs: object) -> None:
        seen.update(kwargs)

    done = CliRunner().invoke(command, ["-i", "x.yaml", "-l", "a", "-l", "!b", "-vv", "-y", "-K", "--strict", "--allow", "flap"],
                              env={"FABRICTOOL_PATH": f"{tmp_path}{os.pathsep}/b"})
    assert done.exit_code == 0, done.output
    assert seen == {"inventory": Path("x.yaml"), "limit": "a,!b", "bundle": None, "outputs": (Output("text"),), "verbose": 2, "yes": True,
                    "allow": ("flap",), "strict": True, "ask_sudo": True, "paths": (tmp_path, Path("/b"))}
    assert CliRunner().invoke(command, [], env={"FABRICTOOL_INVENTORY": "env.yaml"}).exit_code == 0
    assert (seen["inventory"], seen["limit"]) == (Path("env.yaml"), "")
    assert CliRunner().invoke(command, ["-i", "x", "--from", str(tmp_path / "none")]).exit_code == 2  # run() makes it 64


def test_emit_writes_files_and_returns_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = parse_outputs((f"json:{tmp_path / 'r.json'}", f"text:{tmp_path / 'r.txt'}"))
    assert emit(plan(), outputs, Show(Mode.PLAN)) is Exit.FAILED
    shown = capsys.readouterr()
    assert shown.out == (tmp_path / "r.txt").read_text(encoding="utf-8")
    assert shown.err == ""
    assert (tmp_path / "r.json").read_text().startswith('{\n  "schema_version": "1"')
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.json", "r.txt"]


def test_files_are_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r"
    old = os.umask(0o027)
    try:
        write_atomically(path, "one")
    finally:
        os.umask(old)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("one", 0o640)

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(Stop) as stop:
        emit(plan(), (Output("json", path),), Show())
    assert stop.value.exit is Exit.FAILED
    assert "No space left" in stop.value.message
    assert path.read_text() == "one"
    assert [p.name for p in tmp_path.iterdir()] == ["r"]


@pytest.mark.parametrize("kind", ["text", "json"])
def test_the_verdict_survives_a_closed_pipe(kind: str) -> None:
    code = ("import os, sys\nfrom fabrictool.report import *\nfrom tests.report.reports import drifted, plan\n"
            "r, w = os.pipe(); os.close(r); os.dup2(w, 1)\n"
            "equal = plan({'spark01': drifted()['spark01']})\n"
            "sys.exit(emit(equal, parse_outputs(sys.argv[1:]), Show()))")
    root = Path(fabrictool.__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code, kind], capture_output=True, text=True, timeout=60, check=False, cwd=root,
                          env={**os.environ, "PYTHONPATH": str(root)})
    assert (done.returncode, done.stderr) == (2, "")


def test_next_line_says_what_to_type() -> None:
    where = "-i 'inventories/spark 4.py' -l 'spark[01-02],!spark03'"
    clean = plan({n: tuple(passing(n, p) for p in ("link.x", "qos.x", "env.x")) for n in NODES})
    assert next_line(clean, Mode.PLAN, CHOSEN) == f"fabrictool check {where}"
    equal = plan({n: f for n, f in drifted().items() if n != "spark04"})
    assert next_line(equal, Mode.PLAN, CHOSEN).startswith(f"fabrictool apply {where}    # asks first; some steps take a link down")
    assert next_line(equal, Mode.CHECK, CHOSEN) == f"fabrictool plan {where}"
    assert next_line(equal, Mode.PLAN, CHOSEN, offline=True) == f"fabrictool plan {where}    # on the nodes as they are now"
    assert next_line(clean, Mode.PLAN, CHOSEN, offline=True) == f"fabrictool check {where}"
    bare = plan({"spark01": (finding(),)})
    assert next_line(bare, Mode.PLAN, CHOSEN) == f"fabrictool explain QOS_TRUST    # then: fabrictool plan {where}"
    root = plan({"spark01": (finding(code=Code.NEEDS_ROOT, status=Status.UNKNOWN),)})
    assert next_line(root, Mode.CHECK, CHOSEN).startswith(f"fabrictool check {where} -K")


def test_one_node_is_not_told_to_look_at_itself_again() -> None:
    one = plan({"spark01": (finding(code=Code.SINGLE_NODE, status=Status.UNKNOWN),)})
    all_nodes = next_line(one, Mode.CHECK, replace(CHOSEN, limit="spark01"), names=("allreduce",))
    assert all_nodes.partition("    #")[0] == "fabrictool check -i 'inventories/spark 4.py' allreduce"
    assert "two" in all_nodes
    only = replace(CHOSEN, limit="")  # a fleet of one: no selection would do
    assert next_line(one, Mode.CHECK, only, names=("allreduce",)).startswith("fabrictool explain ")
    failed = plan({"spark01": (finding(), finding(code=Code.SINGLE_NODE, status=Status.UNKNOWN))})
    assert next_line(failed, Mode.CHECK, CHOSEN).startswith("fabrictool explain QOS_TRUST")
