"""Ctrl-C is heard by who waits, wherever it arrives. In processes of their own: the engine patches sockets and threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BEGIN = """
import os, signal
from fabrictool.engine.interrupt import heard
import gevent

class Closes:
    '''Like paramiko's channel: whatever happens while it is thrown away is dropped.'''
    def __del__(self):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            sum(range(1000))
        except:
            pass

def work():
    Closes()
    gevent.sleep(20)

gevent.spawn_later(0.05, work)
"""
WAIT = """
try:
    gevent.sleep(10)
    print("lost")
except KeyboardInterrupt:
    print("heard")
"""
INDENTED = WAIT.replace("\n", "\n    ")


def run(body: str) -> str:
    done = subprocess.run([sys.executable, "-c", "import fabrictool.engine" + BEGIN + body], cwd=ROOT, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.stderr == "", done.stderr
    return done.stdout.strip()


def test_a_signal_in_a_destructor_is_heard() -> None:
    assert run(f"with heard():{INDENTED}") == "heard"


def test_without_it_such_a_signal_is_lost() -> None:
    """Why it is there. When this fails, it may go."""
    assert run(WAIT.replace("10", "1")) == "lost"


def test_the_usual_handler_is_back_afterwards() -> None:
    body = "with heard():\n    pass\nprint(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert run(body) == "True"


RECORD = """
from fabrictool.engine import probe
from fabrictool.engine.task import Task
from fabrictool.engine.progress import Silent
from fabrictool.snapshot import Recording
ended = []

def good(task):
    return Recording("good", task.run_id)

def slow(task):
    try:
        gevent.sleep(10)
    finally:
        ended.append("slow")
    return Recording("slow", task.run_id)

task = Task(None, {}, {}, Silent(), "r")
try:
    probe.record(["good", "slow", "late"], task, {"good": good, "slow": slow, "late": good})
    print("lost")
except probe.Stopped as stop:
    print(ended, {n: r.error.why if r.error else "" for n, r in stop.recordings.items()})
"""


def test_what_was_recorded_before_it_is_kept() -> None:
    why = "interrupted; what it had started was ended"
    assert run(RECORD) == str(["slow"]) + " " + str({"good": "", "slow": why, "late": why})


@pytest.mark.parametrize("code", ["KeyError('x')", "RuntimeError('boom')"])
def test_a_probe_that_raises_hides_no_other(code: str) -> None:
    body = RECORD.replace("gevent.sleep(10)", f"raise {code}").replace('print("lost")', "pass").replace(
        'probe.record(["good"', 'got = probe.record(["good"') + "\nprint({n: bool(r.error) for n, r in got.items()})"
    assert run(body.replace("gevent.spawn_later(0.05, work)", "")) == str({"good": False, "slow": True, "late": False})
