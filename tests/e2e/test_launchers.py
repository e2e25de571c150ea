"""Real Open MPI and real Slurm start the ranks of `check allreduce` on two nodes: what they prove, what they miss, what they leave."""

from __future__ import annotations

import re
import signal
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fabrictool.lab import slurm
from fabrictool.lab.handle import Lab
from tests.e2e import carried, fleet, outside
from tests.e2e.talk import started
from tests.lab.fleet import built
from tests.prove.texts import result_json

pytestmark = pytest.mark.lab
LAUNCHERS = ("mpirun", "srun")
NODES = ("spark01", "spark02")
RAIL_A = frozenset({"10.10.1.11", "10.10.1.12"})  # the bootstrap interface's network
REAL = "/usr/local/bin/all_reduce_perf_mpi"
PROGRAM = "/usr/local/bin/perf_of_somebody"
CONSUMER, CONF = "/etc/fabrictool/nccl.env", "/etc/nccl.conf"
WIRE = 411_041_792  # 49 calls x 8 MiB, of which each of two nodes sends all once
ROW = "     8388608       2097152     float     sum      -1    372.3   22.53   22.53       0    372.3   22.53   22.53       0"
MPI = {"pml": "ob1", "btl": "tcp,self", "btl_tcp_if_include": "10.10.1.0/24", "coll_hcoll_enable": "0"}
LIMIT_S = 300  # for a broken test, not a measurement
# What `-J` names, and whether this is only the question for its options.
ARGUMENTS = '#!/bin/sh\ncase "$*" in *--help*) exec ' + REAL + ' "$@" ;; esac\n'


@pytest.fixture(scope="module")
def shared() -> Iterator[Lab]:
    assert slurm.missing() == [], "`./dev test` installs them"
    with built("launch", len(NODES)) as lab:
        done = fleet.apply(lab)
        assert done.rc == 0, done.all
        lab.keep()
        yield lab


@pytest.fixture
def lab(shared: Lab) -> Lab:
    shared.restore()
    return shared


def spec(lab: Lab, launcher: str, program: str = "") -> str:
    """The lab's spec with another launcher. `program`: a script that stands on every node in the place of all_reduce_perf."""
    if launcher == "srun":
        slurm.start(lab)
    named = f", program: {PROGRAM}" if program else ""
    for node in lab.nodes if program else ():
        lab.write_file(node, PROGRAM, program, 0o755)
    text = (lab.layout.root / "lab.yaml").read_text()
    changed = re.sub(r"^collective: .*$", f"collective: {{launcher: {launcher}, size: 8MiB, runs: 1{named}}}", text, flags=re.M)
    path = lab.layout.root / f"{launcher}.yaml"
    path.write_text(changed)
    return str(path)


def everywhere(lab: Lab, old: str, new: str, files: tuple[str, ...] = (CONSUMER, CONF), nodes: tuple[str, ...] = NODES) -> None:
    """Change a line of NCCL's settings by hand; `old`: a pattern."""
    for node in nodes:
        for path in files:
            text = lab.read_file(node, path)
            assert text is not None
            changed = re.sub(old, new, text, flags=re.M)
            assert changed != text
            lab.write_file(node, path, changed)


def left(lab: Lab, run: str) -> list[str]:
    """What is still there of a run: by its id on the whole machine; its folder and lock; Slurm's jobs; units and containers."""
    look = ("ls -d /run/fabrictool/* /run/fabrictool.lock /tmp/fabrictool-* /tmp/ompi.* 2>/dev/null; "
            "[ ! -f /etc/slurm/slurm.conf ] || squeue -h; "
            "systemctl list-units --all --plain --no-legend 'ft-*'; docker ps -a --format '{{.Names}}' | grep ^ft-; true")
    return [*carried.naming(lab, run), *(f"{n} {line}" for n in lab.nodes for line in lab.exec(n, ["sh", "-c", look]).out.splitlines())]


def logs(bundle: Path, run: str = "run1") -> Mapping[str, list[str]]:
    """Node -> the NCCL logs of its ranks, from the file that --save wrote."""
    found: dict[str, list[str]] = {}
    with tarfile.open(bundle) as archive:
        for member in archive:
            got = re.fullmatch(rf"recordings/allreduce/{run}/([^/]+)/nccl\.log@.*\.txt", member.name)
            content = archive.extractfile(member) if got else None
            if got and content:
                found.setdefault(got[1], []).append(content.read().decode())
    return found


def by_check(ended: fleet.Ended) -> dict[str, str]:
    return {r["check"]: r["status"] for r in fleet.report(ended)["results"]}


def run_of(ended: fleet.Ended) -> str:
    return str(fleet.report(ended)["run_id"])


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_healthy_nodes_pass_with_numbers(launcher: str, lab: Lab, tmp_path: Path) -> None:
    everywhere(lab, r"\Z", "NCCL_IB_TIMEOUT=21\n", (CONSUMER,))  # in the consumer's environment and nowhere else
    slow = spec(lab, launcher, f'{ARGUMENTS}sleep 1\nexec {REAL} "$@"\n')  # long enough to be looked at
    with carried.watched(lab) as seen:
        done = fleet.tool("check", "allreduce", "rdma_counters", "lossless_priority", "-i", slow, "-o", "json", "-v",
                          "--save", str(tmp_path / "run.tar.gz"))
    assert (done.rc, by_check(done)) == (0, dict.fromkeys(("allreduce", "rdma_counters", "lossless_priority"), "pass")), outside.short(done)
    run = run_of(done)
    _numbers(done, launcher)
    got = logs(tmp_path / "run.tar.gz")
    assert {node: len(texts) for node, texts in got.items()} == dict.fromkeys(NODES, 1)
    for (text,) in got.values():
        assert "NCCL_IB_TIMEOUT set by environment to 21." in text
        assert "NCCL_ALGO set by environment to Ring" in text
        assert "Using network IB\n" in text
    assert {p.run for p in seen.seen.values()} == {run}
    _started(seen, launcher)
    assert left(lab, run) == []


def _numbers(done: fleet.Ended, launcher: str) -> None:
    """The check's own figures, and that the file beside the text was read and is of this run."""
    result = next(r for r in fleet.report(done)["results"] if r["check"] == "allreduce")
    evidence = result["evidence"]
    assert (evidence["launcher"], evidence["program"], evidence["ranks"]) == (launcher, "nccl-tests", 2)
    assert evidence["expected_per_node_bytes"] == WIRE
    assert 1.0 <= evidence["least_share_of_expected"] <= 1.05
    assert evidence["line_rate_gbytes_per_s"] == 25.0
    assert 21.25 <= evidence["busbw_min_gbytes_per_s"] <= 25.0
    assert evidence["consumer"] == f"file:{CONSUMER}"
    passed = {f["id"].rpartition("|")[2] for f in result["findings"] if f["status"] == "pass"}
    assert {"allreduce.json", "allreduce.agrees", "allreduce.default.json", "allreduce.ended", "allreduce.left", "allreduce.end"} <= passed
    assert {f["got"] for f in result["findings"] if f["id"].endswith("|allreduce.ranks")} == {"2 ranks on 2 nodes"}


def _started(seen: carried.Watched, launcher: str) -> None:
    """Every rank keeps MPI on TCP over the bootstrap interface; what waits on any node has a time limit."""
    ranks = [p for p in seen.seen.values() if REAL in p.argv]
    assert {p.node for p in ranks} == set(NODES)
    for rank in ranks:
        assert {k: rank.environ.get(f"OMPI_MCA_{k}") for k in MPI} == MPI
    talks = {name: peers for name, peers in seen.connected.items() if name not in ("ssh", "srun") and peers}
    assert talks
    assert set().union(*talks.values()) <= RAIL_A
    limits = {(p.node, p.argv[4].rpartition("/")[2]) for p in seen.of("timeout") if p.argv[1:3] == ("-k", "5") and int(p.argv[3]) < LIMIT_S}
    assert limits == {("spark01", launcher), *({("spark02", "sh")} if launcher == "mpirun" else ())}
    assert {p.node for p in seen.of("orted")} == ({"spark02"} if launcher == "mpirun" else set())


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_silent_fallback_to_tcp(launcher: str, lab: Lab) -> None:
    everywhere(lab, "^NCCL_IB_HCA=.*$", "NCCL_IB_HCA=mlx5_77")
    done = fleet.tool("check", "allreduce", "-i", spec(lab, launcher), "-o", "json", "-v")
    assert done.rc == 1, done.all
    (result,) = fleet.report(done)["results"]
    assert (result["status"], result["code"]) == ("fail", "TCP_FALLBACK"), outside.short(done)
    ended = next(f for f in result["findings"] if f["id"].endswith("|allreduce.ended"))
    assert (ended["status"], ended["got"]) == ("pass", "closing line, exit status 0")
    assert {("spark01", "TCP_FALLBACK"), ("spark01", "COUNTERS_FLAT"), ("spark02", "COUNTERS_FLAT")} <= failed(done)
    assert left(lab, run_of(done)) == []


def failed(done: fleet.Ended) -> set[tuple[str, str]]:
    return {(f.node, f.code) for f in fleet.findings(done) if f.status == "fail"}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_rank_dies_in_the_middle(launcher: str, lab: Lab) -> None:
    outside.fault(lab, "spark02", "rank-dead")
    done = fleet.tool("check", "allreduce", "-i", spec(lab, launcher), "-o", "json")
    assert done.rc == 1, done.all
    (result,) = fleet.report(done)["results"]
    consequences = {f.node for f in fleet.findings(done) if (f.code, f.status) == ("RANK_DIED", "unknown")}
    if launcher == "mpirun" and result["code"] == "NO_RESULT":  # it heard of the other rank's end first, and names no signal
        assert consequences == {"spark01"}, outside.short(done)
    else:
        assert (result["status"], result["code"]) == ("fail", "RANK_DIED"), outside.short(done)
        assert failed(done) == {("spark02", "RANK_DIED")}
    assert left(lab, run_of(done)) == []


def test_a_rank_that_was_started_without_the_environment(lab: Lab) -> None:
    """The file is there on both nodes; what starts the program on one drops it."""
    lab.remove_file("spark02", CONF)
    drop = f'{ARGUMENTS}[ "$(hostname)" != spark02 ] || unset NCCL_IB_TC NCCL_IB_QPS_PER_CONNECTION\nexec {REAL} "$@"\n'
    done = fleet.tool("check", "allreduce", "-i", spec(lab, "mpirun", drop), "-o", "json")
    assert done.rc == 1, done.all
    missed = {(f.node, f.id.rpartition(".")[2], f.got) for f in fleet.findings(done) if f.code == "ENV_NOT_PROPAGATED"}
    assert missed == {("spark02", "NCCL_IB_TC", "not set"), ("spark02", "NCCL_IB_QPS_PER_CONNECTION", "not set")}, outside.short(done)


def test_a_result_file_of_another_day(lab: Lab) -> None:
    """What was printed is whole and fast; the file beside it is not of this run."""
    outside.fault(lab, "spark01", "stale-json")
    _stale(lab, fleet.tool("check", "allreduce", "-i", spec(lab, "mpirun"), "-o", "json"))


def test_a_result_file_that_was_there_before(lab: Lab) -> None:
    """nccl-tests leaves it alone and writes to result.json.0, as it says; what the old one holds would fit."""
    lab.write_file("spark01", "/usr/local/share/old.json", result_json(NODES, "NVIDIA GB10", ROW).replace("2026-01-01 10:00:00", "NOW"))
    put = ('for file; do case $file in */result.json) [ -e "$file" ] || '
           'sed "s/NOW/$(date "+%F %T")/" /usr/local/share/old.json >"$file" ;; esac; done')
    lab.write_file("spark02", "/usr/local/share/old.json", "")
    _stale(lab, fleet.tool("check", "allreduce", "-i", spec(lab, "mpirun", f'{ARGUMENTS}{put}\nexec {REAL} "$@"\n'), "-o", "json"))


def _stale(lab: Lab, done: fleet.Ended) -> None:
    assert done.rc == 3, done.all
    (result,) = fleet.report(done)["results"]
    assert (result["status"], {f["code"] for f in result["findings"]}) == ("unknown", {"RESULT_STALE"}), outside.short(done)
    assert left(lab, run_of(done)) == []


def test_the_workstation_dies_while_slurm_runs_the_ranks(lab: Lab, tmp_path: Path) -> None:
    file = spec(lab, "srun", f"{ARGUMENTS}sleep 7001\n")

    def at_work() -> set[str]:
        return {p.node for p in carried.processes(lab) if p.run and p.argv == ("sleep", "7001")}

    with started(tmp_path, "check", "allreduce", "-i", file, "-o", "json") as job:
        outside.until(lambda: job.poll() is not None or at_work() == set(NODES))
        assert job.poll() is None, (tmp_path / "err").read_text()
        (run,) = {p.run for p in carried.processes(lab) if p.run}
        assert lab.exec("spark01", ["squeue", "-h", "-o", "%j"]).out == f"ft-{run}\n"
        job.kill()
        assert job.wait() == -signal.SIGKILL
    outside.until(lambda: left(lab, run) == [], LIMIT_S)
