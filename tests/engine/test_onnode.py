"""What is sent to a node for a run. In processes of their own: the engine patches sockets and threads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
BEGIN = """
import json
from types import SimpleNamespace
from fabrictool.engine import captured, onnode
from fabrictool.ops.remote import Ran
from fabrictool.snapshot import Snapshot

sent = []
captured.run = lambda host, argv, limit, stdin=None: sent.append(argv) or Ran(True, "rc=0\\n", "")
limits = SimpleNamespace(node_s=60, ours_s=75)
job = SimpleNamespace(run_id="r", folder="/f", limits=limits, port=41000, seats=(SimpleNamespace(node="a"), SimpleNamespace(node="b")))
plan = SimpleNamespace(job=job, launcher=SimpleNamespace(program="torch"))
host = SimpleNamespace(name="a")
"""


def told(body: str) -> Any:
    done = subprocess.run([sys.executable, "-c", f"{BEGIN}{body}"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == "", done.stderr
    return json.loads(done.stdout)


STEPS = """
onnode._root = lambda host: {root}
onnode.make(host, "echo")
onnode.mark(host, "/f", 60)
onnode.lock(host, plan, "take")
onnode.start(host, plan, "run1", SimpleNamespace(number="0", image="", argv=("x",)))
onnode.sweep(host, "r")
print(json.dumps(sent))
"""


def test_the_time_limit_of_what_root_runs_is_roots() -> None:
    """A user's timeout(1) may not send a signal to what sudo runs: it would stay on the node."""
    for argv in (sudo := told(STEPS.format(root=("sudo", "-n")))):
        assert argv[:2] == ["sudo", "-n"]
        assert "timeout" in argv[2:]
        assert "sudo" not in argv[2:]
    plain = told(STEPS.format(root=()))
    assert [a[2:] for a in sudo] == plain
    assert len(plain) == 5


ASKED = """
onnode.read = lambda host, asked, lanes: sent.append(asked) or Snapshot(host.name)
for name in "ab":
    onnode.close(SimpleNamespace(name=name), plan)
    onnode.collect(SimpleNamespace(name=name), plan, "run1")
print(json.dumps([[s.args for s in asked if s.name == "left"][0] for asked in sent]))
"""


def test_only_the_first_node_is_asked_for_the_port_of_the_meeting() -> None:
    """It was free there; on another node some server may listen on a port of that number all the time."""
    assert told(ASKED) == [["r", "close", "41000"], ["r", "over", "41000"], ["r", "close"], ["r", "over"]]
    assert told(f"job.port = 0\n{ASKED}")[0] == ["r", "close"]


ANSWERS = """
print(json.dumps([onnode.failed(onnode.Captured(rc, out)) for rc, out in json.loads({answers!r})]))
"""


def test_what_a_login_shell_prints_is_no_failure_of_a_run() -> None:
    """A .bashrc that greets stands before the answer; one that failed stays one, and no answer is none."""
    well = [[0, "launcher 0 812\n"], [0, "Welcome to node a!\nload 1 2 3\nlauncher 0 812\n"], [0, "0 0 9\r\n1 0 9\r\nbox 0 12\r\n"]]
    broken = [[0, ""], [0, "Welcome\n"], [1, "launcher 0 812\n"], [0, "Welcome\n0 0 9\n1 137 9\n"], [0, "launcher 124 9\n"]]
    assert told(ANSWERS.format(answers=json.dumps([*well, *broken]))) == [False] * len(well) + [True] * len(broken)
