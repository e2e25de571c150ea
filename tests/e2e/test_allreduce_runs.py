"""A run over two nodes, as a user asks for it: whose environment it takes, when it is refused, and how it ends when a rank breaks."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet, outside
from tests.e2e.fleet import Ended
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
PROGRAM = "/usr/local/bin/standby"
LOCK = "/run/fabrictool.lock"


@pytest.fixture(scope="module")
def shared() -> Iterator[Lab]:
    with built("runs", 2) as lab:
        done = fleet.apply(lab)
        assert done.rc == 0, done.all
        lab.keep()
        yield lab


@pytest.fixture
def lab(shared: Lab) -> Lab:
    shared.restore()
    return shared


def check(lab: Lab, *words: str, collective: str = "") -> Ended:
    """`check allreduce` with one gated run; with other settings if given."""
    text = re.sub(r"^collective: .*$", f"collective: {collective or '{launcher: mpirun, size: 8MiB, runs: 1}'}",
                  (lab.layout.root / "lab.yaml").read_text(), flags=re.M)
    path = lab.layout.root / "one.yaml"
    path.write_text(text)
    return fleet.tool("check", "allreduce", "-i", str(path), "-o", "json", *words)


def found(ended: Ended, status: str) -> set[tuple[str, str]]:
    """(code, nodes) of the findings with this status."""
    return {(f.code, f.node) for f in fleet.findings(ended) if f.status == status}


def evidence(ended: Ended) -> dict[str, object]:
    (result,) = fleet.report(ended)["results"]
    return dict(result["evidence"])


def nothing_left(lab: Lab) -> None:
    for node in lab.nodes:
        assert lab.exec(node, ["sh", "-c", f"ls -d /run/fabrictool {LOCK}"]).out == ""
        assert not re.search(r"standby|all_reduce|mpirun|orted|fabrictool-|guard\.sh", outside.processes(lab, node))


def test_a_healthy_pair(lab: Lab) -> None:
    done = check(lab)
    assert done.rc == 0, outside.short(done)
    assert evidence(done)["consumer"] == "file:/etc/fabrictool/nccl.env"
    nothing_left(lab)


def test_ranks_get_what_the_running_container_has(lab: Lab) -> None:
    """The container of one node was started by hand with another value: its ranks, and only its, show that."""
    for node, value in (("spark01", "4"), ("spark02", "2")):
        env = lab.read_file(node, "/etc/fabrictool/nccl.env")
        assert env is not None
        other = re.sub("NCCL_IB_QPS_PER_CONNECTION=4", f"NCCL_IB_QPS_PER_CONNECTION={value}", env)
        lab.write_file(node, "/root/by-hand.env", other)
        made = lab.exec(node, ["docker", "run", "-d", "--name", "vllm-1", "--network", "host", "--env-file", "/root/by-hand.env", "img"])
        assert made.ok, made.err
    done = check(lab)
    assert evidence(done)["consumer"] == "docker:vllm-1", outside.short(done)
    assert {nodes for _, nodes in found(done, "fail")} == {"spark02"}, outside.short(done)
    assert any("NCCL_IB_QPS_PER_CONNECTION" in f.got and "2" in f.got for f in fleet.findings(done) if f.status == "fail")
    nothing_left(lab)


def test_busy_gpus_are_left_alone(lab: Lab) -> None:
    with lab.edit_state("spark02") as state:
        state.compute.append({"pid": 1, "name": "/usr/bin/python3", "kind": "C", "gpu": 0, "memory_mib": 512})
    done = check(lab)
    assert done.rc == 3, outside.short(done)
    assert found(done, "unknown") == {("GPU_BUSY", "spark02")}
    assert "/usr/bin/python3 (1)" in done.out
    assert not [c for n in lab.nodes for c in lab.commands(n) if c["tool"] == "all_reduce_perf"]
    nothing_left(lab)
    forced = check(lab, "--force")
    assert forced.rc == 0, outside.short(forced)
    assert ("GPU_BUSY", "spark02") in found(forced, "warn")


def test_another_run_is_at_work(lab: Lab) -> None:
    lab.write_file("spark02", f"{LOCK}/run", "20991231T000000Z-00000000\n")
    done = check(lab)
    assert done.rc == 3, outside.short(done)
    assert found(done, "unknown") == {("LOCKED", "spark02")}
    assert lab.read_file("spark02", f"{LOCK}/run") == "20991231T000000Z-00000000\n"
    lab.remove_file("spark02", LOCK)
    nothing_left(lab)


def test_a_tool_that_one_node_lacks(lab: Lab) -> None:
    lab.hide_tool("spark02", "all_reduce_perf_mpi")
    lab.hide_tool("spark02", "all_reduce_perf")
    done = check(lab)
    assert done.rc == 3, outside.short(done)
    assert found(done, "unknown") == {("TOOL_MISSING", "spark02")}
    lab.show_tool("spark02", "all_reduce_perf_mpi")
    lab.show_tool("spark02", "all_reduce_perf")
    nothing_left(lab)


def test_one_node_is_no_fabric(lab: Lab) -> None:
    done = check(lab, "-l", "spark01")
    assert done.rc == 3, outside.short(done)
    assert found(done, "unknown") == {("SINGLE_NODE", "spark01")}


def test_a_rank_that_breaks_ends_the_run(lab: Lab) -> None:
    """No MPI sees that here: the other node's rank would wait until its limit."""
    ask = '#!/bin/sh\ncase "$*" in *version_info*) echo 3.12.1; exit 0 ;; esac\n'
    lab.write_file("spark01", PROGRAM, f"{ask}exec sleep 7002\n", 0o755)
    lab.write_file("spark02", PROGRAM, f"{ask}echo broken >&2\nexit 5\n", 0o755)
    begin = time.monotonic()
    done = check(lab, collective=f"{{launcher: direct, python: {PROGRAM}, size: 8MiB, runs: 3}}")
    assert done.rc == 1, outside.short(done)
    assert time.monotonic() - begin < 180  # the node's own limit: 195 s for each of four runs
    assert ("RANK_DIED", "spark02") in found(done, "fail"), outside.short(done)
    assert evidence(done)["runs"] == 1  # a second one would end alike
    nothing_left(lab)
