"""The exact words that each launcher uses, and that nothing but names travels by them."""

from __future__ import annotations

import dataclasses

import pytest

from fabrictool.probes.direct import Direct
from fabrictool.probes.launch import Added, Launcher, Seat, Tool, exports
from fabrictool.probes.mpirun import Mpirun
from fabrictool.probes.srun import Srun
from tests.probes.jobs import FOLDER, NCCL_TESTS, PYTHON, RUN_ID, job, option

SRUN = dataclasses.replace(NCCL_TESTS, launcher="srun", pmi="pmix")
PERF = ("/usr/bin/all_reduce_perf", "-b", "268435456", "-e", "268435456", "-g", "1", "-n", "20", "-w", "5", "-c", "1", "-a", "3",
        "-T", "80", "-J", f"{FOLDER}/run1/result.json")
ONE = ("sh", f"{FOLDER}/ranks.sh", "one", FOLDER, "run1")


def test_open_mpi_4() -> None:
    (start,) = Mpirun().starts(job(), "run1")
    assert (start.node, start.number, start.image) == ("spark01", "launcher", "")
    assert start.argv[:6] == ("sh", f"{FOLDER}/ranks.sh", "launch", FOLDER, "run1", "215")
    assert start.argv[-len(ONE + PERF):] == ONE + PERF
    mpirun = start.argv[6:-len(ONE + PERF)]
    assert mpirun == (
        "mpirun", "-np", "4", "--hostfile", f"{FOLDER}/hostfile", "--map-by", "slot", "--bind-to", "none", "--timeout", "200",
        "--leave-session-attached", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "coll_hcoll_enable", "0",
        "--mca", "btl_tcp_if_include", "10.10.1.0/24", "--mca", "plm", "rsh",
        "--mca", "plm_rsh_agent", f"sh {FOLDER}/agent.sh {FOLDER} {RUN_ID} 215", "--mca", "plm_rsh_no_tree_spawn", "1",
        "--mca", "oob_tcp_if_include", "10.10.1.0/24", "-x", "FABRICTOOL_RUN")


def test_open_mpi_5_has_its_runtime_elsewhere() -> None:
    (start,) = Mpirun().starts(job(dataclasses.replace(NCCL_TESTS, mpi=5)), "run1")
    keys = {start.argv[i + 1]: start.argv[i + 2] for i, w in enumerate(start.argv) if w == "--prtemca"}
    assert keys == {"plm": "ssh", "plm_ssh_agent": f"sh {FOLDER}/agent.sh {FOLDER} {RUN_ID} 215", "plm_ssh_no_tree_spawn": "1",
                    "prte_if_include": "10.10.1.0/24", "oob_tcp_if_include": "10.10.1.0/24"}
    mpi = {start.argv[i + 1] for i, w in enumerate(start.argv) if w == "--mca"}
    assert mpi == {"pml", "btl", "coll_hcoll_enable", "btl_tcp_if_include"}


def test_the_hostfile_is_ours() -> None:
    (hosts,) = Mpirun().files(job(nodes=2, gpus=8))
    assert (hosts.name, hosts.text) == ("hostfile", "spark01 slots=8\nspark02 slots=8\n")
    (start,) = Mpirun().starts(job(nodes=2, gpus=8), "run1")
    assert option(start.argv, "-np") == "16"


def test_nodes_in_several_networks() -> None:
    routed = dataclasses.replace(job(), seats=(Seat("a", 0, 1, "10.0.0.1", "10.0.0.0/24"), Seat("b", 1, 1, "10.0.1.1", "10.0.1.0/24")))
    (start,) = Mpirun().starts(routed, "run1")
    assert "10.0.0.0/24,10.0.1.0/24" in start.argv


def test_a_network_of_ipv6_goes_by_its_interface() -> None:
    """Open MPI takes no such network in its lists. Nodes with IPv4 are named by theirs as before."""
    six = dataclasses.replace(job(dataclasses.replace(NCCL_TESTS, mpi=5)), seats=(
        Seat("a", 0, 1, "fd00::1", "fd00::/64", "bond0"), Seat("b", 1, 1, "fd00::2", "fd00::/64", "bond0"),
        Seat("c", 2, 1, "10.0.1.1", "10.0.1.0/24", "eth0")))
    (start,) = Mpirun().starts(six, "run1")
    for key in ("btl_tcp_if_include", "prte_if_include", "oob_tcp_if_include"):
        assert start.argv[start.argv.index(key) + 1] == "bond0,10.0.1.0/24"
    (start,) = Srun().starts(six, "run1")
    assert "OMPI_MCA_btl_tcp_if_include=bond0,10.0.1.0/24" in start.argv


def test_slurm() -> None:
    (start,) = Srun().starts(job(dataclasses.replace(SRUN, gres=True), nodes=2, gpus=8), "run1")
    assert (start.node, start.number) == ("spark01", "launcher")
    kept_off = ("env", "OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,self", "OMPI_MCA_coll_hcoll_enable=0",
                "OMPI_MCA_btl_tcp_if_include=10.10.1.0/24")
    assert start.argv[-len(ONE + kept_off + PERF):] == ONE + kept_off + PERF
    srun = start.argv[6:-len(ONE + kept_off + PERF)]
    assert srun == (
        "srun", f"--job-name=ft-{RUN_ID}", "--nodelist=spark01,spark02", "--nodes=2", "--ntasks=16", "--ntasks-per-node=8",
        "--distribution=block", "--gpus-per-node=8", "--mpi=pmix", "--time=3:20", "--immediate=30", "--kill-on-bad-exit=1",
        "--input=none", "--unbuffered", "--export=FABRICTOOL_RUN,PATH,HOME,USER,LANG")
    (plain,) = Srun().starts(job(dataclasses.replace(SRUN, pmi="")), "run1")
    assert not any(w.startswith(("--mpi", "--gpus")) for w in plain.argv)


def test_direct_starts_every_node() -> None:
    starts = Direct().starts(job(PYTHON, nodes=2, gpus=8, image="img@sha256:0"), "default")
    assert [(s.node, s.number, s.image) for s in starts] == [("spark01", "0", "img@sha256:0"), ("spark02", "8", "img@sha256:0")]
    assert starts[1].argv == (
        "sh", f"{FOLDER}/ranks.sh", "ranks", FOLDER, "default", "215", "8", "8", "16", "10.10.1.11", "41000",
        "/opt/venv/bin/python", "-u", f"{FOLDER}/allreduce.py", "--size", "268435456", "--warmup", "5", "--iterations", "20",
        "--verify", "1", "--start", "120", "--deadline", "200")
    assert starts[0].program[:2] == ("/opt/venv/bin/python", "-u")


@pytest.mark.parametrize("options", ["", "Ta", "J"])
def test_a_build_gets_only_the_options_that_it_knows(options: str) -> None:
    """An unknown one makes it print its usage and end with 0."""
    (start,) = Mpirun().starts(job(dataclasses.replace(NCCL_TESTS, options=options)), "run1")
    perf = start.argv[start.argv.index("/usr/bin/all_reduce_perf"):]
    for letter in "aTJ":
        assert (f"-{letter}" in perf) == (letter in options)


@pytest.mark.parametrize(("launcher", "tool"), [(Mpirun(), NCCL_TESTS), (Srun(), SRUN), (Direct(), PYTHON)])
def test_the_limits_grow_outwards(launcher: Launcher, tool: Tool) -> None:
    """What stands on the command lines is in the order of the layers."""
    for start in launcher.starts(job(tool), "run1"):
        node = int(start.argv[5])
        inner = int(option(start.argv, "--timeout")) if launcher.name == "mpirun" else \
            200 if launcher.name == "srun" else int(option(start.argv, "--deadline"))
        assert inner < node
        if "-T" in start.argv:
            assert int(option(start.argv, "-T")) < inner


@pytest.mark.parametrize(("launcher", "tool"), [(Mpirun(), NCCL_TESTS), (Srun(), SRUN), (Direct(), PYTHON)])
def test_no_value_of_any_environment_is_on_a_command_line(launcher: Launcher, tool: Tool) -> None:
    for start in launcher.starts(job(tool), "run1"):
        assert not [w for w in start.argv if w.startswith(("NCCL_", "UCX_", "GLOO_"))]
        assert not any("NCCL_" in w for w in start.argv)


def test_what_the_tool_adds_to_the_environment() -> None:
    gated = Added(FOLDER).variables("run1", gated=True)
    assert gated == {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV,NET,GRAPH",
                     "NCCL_DEBUG_FILE": f"{FOLDER}/run1/%h.%p.log", "NCCL_ALGO": "Ring"}
    assert "NCCL_ALGO" not in Added(FOLDER).variables("default", gated=False)
    assert Added(FOLDER, pin="bond1").variables("run1", gated=True)["NCCL_SOCKET_IFNAME"] == "=bond1"
    control = Added(FOLDER, pin="bond1", network="Socket", sockets="ens0np0").variables("run1", gated=True)
    assert (control["NCCL_NET"], control["NCCL_SOCKET_IFNAME"]) == ("Socket", "=ens0np0")
    assert exports({"A": "x y", "B": "it's"}) == "export A='x y'\nexport B='it'\"'\"'s'\n"
