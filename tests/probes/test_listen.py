"""The program that listens and connects on nodes, run here over loopback as it is run there: from its standard input."""

from __future__ import annotations

import ast
import math
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from fabrictool.probes import tcp
from fabrictool.prove.bootstrap_tcp import LISTEN_S
from fabrictool.prove.cover import ALL_PAIRS_UP_TO, cover
from fabrictool.snapshot import Captured
from fabrictool.snapshot.collector import resource

PROGRAM = resource("listen.py")
LIMITS = ("from fabrictool.engine import bootstrap_tcp, sidebyside; from fabrictool.ops import remote; "
          "print(bootstrap_tcp.ANSWER_S, remote.KILL_AFTER_S, sidebyside.AT_ONCE)")


def run(*words: str) -> Captured:
    done = subprocess.run([sys.executable, "-", *words], input=PROGRAM, capture_output=True, text=True, timeout=60, check=False)
    return Captured(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def listener() -> Iterator[tuple[str, str, str]]:
    """Run name, port and process number."""
    name = f"ft-{uuid.uuid4()}"
    found = tcp.listening(run(*tcp.listen(name, "127.0.0.1")))
    assert found is not None
    yield name, *found
    run(*tcp.stop(name, found[1]))


def test_connects_and_leaves_nothing(listener: tuple[str, str, str]) -> None:
    name, port, pid = listener
    words = run("connect", name, "127.0.0.1", port, "5").out.split()
    assert words[:4] == ["connected", "127.0.0.1", "127.0.0.1", port]
    assert run("left", name).out.startswith(f"process {pid} ")
    assert run("stop", name, pid) == Captured(0, "was listening\n", "")
    assert run("stop", name, pid).out == "was gone\n"
    assert run("left", name) == Captured(0, "end\n", "")
    assert run("connect", name, "127.0.0.1", port, "5").out.startswith("refused ECONNREFUSED ")


def test_it_listens_on_the_one_address_only_and_names_its_run(listener: tuple[str, str, str]) -> None:
    _, port, _ = listener
    assert run("connect", "x", "127.0.0.2", port, "5").out.startswith("refused ")
    assert run("connect", "x", "127.0.0.1", port, "5").out.startswith("wrong-answer ")


@pytest.mark.parametrize("count", [2, ALL_PAIRS_UP_TO, ALL_PAIRS_UP_TO + 1, 64])
def test_a_listener_outlives_a_node_that_hangs(count: int) -> None:
    """The others wait for that node's listener, then for its connections, and no healthy pair may meet a listener that has gone."""
    nodes = tuple(map(str, range(count)))
    calls = max(sum(1 for a, _ in cover(nodes) if a == n) for n in nodes)
    answer_s, kill_after_s, at_once = map(int, subprocess.run([sys.executable, "-c", LIMITS], capture_output=True, text=True, timeout=60,
                                                              check=True).stdout.split())
    longest = answer_s + 2 * kill_after_s  # until a command that hangs is given up
    assert longest * (1 + math.ceil(calls / at_once)) < LISTEN_S
    assert tcp.listen("x", "127.0.0.1")[-1] == str(LISTEN_S)


def test_only_addresses_and_numbers_reach_the_argv() -> None:
    for bad in ("spark02", "-c", "10.10.1.2; reboot"):
        with pytest.raises(ValueError):
            tcp.listen("x", bad)
        with pytest.raises(ValueError):
            tcp.connect("x", bad, "1")
        with pytest.raises(ValueError):
            tcp.connect("x", "10.10.1.2", bad)


def test_only_a_process_that_carries_the_name_is_ended(listener: tuple[str, str, str]) -> None:
    name, port, pid = listener
    assert run("stop", f"{name}-other", pid).out == "was gone\n"
    assert run("connect", name, "127.0.0.1", port, "5").rc == 0


def test_what_cannot_be_done_is_said() -> None:
    refused = run("listen", "x", "203.0.113.9", "1")
    assert refused.rc == 1
    assert "cannot listen on 203.0.113.9" in refused.err
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the connection and says nothing
        assert run("connect", "x", "127.0.0.1", str(silent.getsockname()[1]), "0.2").out == "timed-out nothing within 0.2 s\n"


def test_it_runs_on_old_python_with_the_standard_library_alone() -> None:
    tree = ast.parse(PROGRAM, feature_version=(3, 8))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {str(n.module) for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert names <= sys.stdlib_module_names
    assert PROGRAM.isascii()


@pytest.mark.parametrize("text", ["", "listening 10.10.1.1 40000 4711\nbye", "listening 10.10.1.1 40000", "listening 10.10.1.1 x 4711",
                                  "listening\n10.10.1.1 1 2 3", "l" * 999])
def test_only_a_whole_answer_names_a_listener(text: str) -> None:
    assert tcp.listening(Captured(0, text)) is None
    assert tcp.listening(Captured(1, "listening 10.10.1.1 40000 4711\n")) is None
    assert tcp.listening(Captured(0, "listening 10.10.1.1 40000 4711\n")) == ("40000", "4711")
