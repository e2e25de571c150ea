"""What a run needs on a node, as it is found there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.node.nodes import every_shell, script, tools

HELP = (Path(__file__).parent.parent / "captures" / "nccl-tests" / "help.txt").read_text()


def found(shell: str, *args: str, path: str) -> list[str]:
    done = script(shell, "launchtools.sh", *args, path=path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = done.stdout.splitlines()
    assert rows[-1] == "end"
    assert rows[-2].startswith("port ")
    assert 1024 <= int(rows[-2].split()[1]) <= 65535
    return rows[:-2]


@every_shell
def test_mpirun(shell: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "help").write_text(HELP)
    path = tools(tmp_path / "bin", mpirun="echo 'mpirun (Open MPI) 4.1.4'; echo; echo 'Report bugs'",
                 all_reduce_perf='cat "${0%/*}/help"')
    file = tmp_path / "bin" / "all-reduce-perf"
    file.rename(tmp_path / "bin" / "all_reduce_perf")
    assert found(shell, "mpirun", "", "", "", path=path) == [
        f"program {tmp_path}/bin/all_reduce_perf", "options tgbeifnmwNpcodrzyTGCSJaRxDVMuIKh",
        f"mpirun {tmp_path}/bin/mpirun mpirun (Open MPI) 4.1.4"]
    (tmp_path / "bin" / "all_reduce_perf_mpi").symlink_to("all_reduce_perf")
    assert found(shell, "mpirun", "", "", "", path=path)[0] == f"program {tmp_path}/bin/all_reduce_perf_mpi"
    assert found(shell, "mpirun", "/nonesuch/all_reduce_perf", "", "", path=path)[0] == "missing /nonesuch/all_reduce_perf"


@every_shell
def test_nothing_there(shell: str, tmp_path: Path) -> None:
    path = str(tmp_path)
    for tool in ("sh", "timeout", "head", "sed", "tr", "cut", "awk", "cat", "od", "grep"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    assert found(shell, "mpirun", "", "", "", path=path) == ["missing all_reduce_perf_mpi all_reduce_perf", "missing mpirun"]
    assert found(shell, "srun", "", "", "", path=path) == ["missing all_reduce_perf_mpi all_reduce_perf", "missing srun"]
    assert found(shell, "direct", "", "", "", path=path) == ["missing python3"]
    assert found(shell, "direct", "", "/opt/v/bin/python", "", path=path) == ["missing /opt/v/bin/python"]
    assert found(shell, "direct", "", "", "img", path=path) == ["missing docker"]


@every_shell
def test_srun(shell: str, tmp_path: Path) -> None:
    listed = "printf 'MPI plugin types are...\\n\\tnone\\n\\tpmi2\\n\\tpmix\\nspecific pmix plugin versions available: pmix_v4\\n' >&2"
    path = tools(tmp_path / "bin", srun=listed, sinfo="echo gpu:h200:8; echo '(null)'")
    rows = found(shell, "srun", "/bin/true", "", "", path=path)
    assert rows == ["program /bin/true", "options ", f"srun {tmp_path}/bin/srun", "pmi pmix", "gres"]
    path = tools(tmp_path / "bin", srun="echo none >&2", sinfo="echo '(null)'")
    assert found(shell, "srun", "/bin/true", "", "", path=path)[2:] == [f"srun {tmp_path}/bin/srun"]


DOCKER = """[ "$5" != img ] || { echo 'WARNING: Error loading config file' >&2; echo sha256:12; exit 0; }
echo; echo "Error response from daemon: No such image: $5" >&2; exit 1"""


@every_shell
def test_direct(shell: str, tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", python3="echo 3.12.1", docker=DOCKER)
    assert found(shell, "direct", "", "", "", path=path) == [f"python {tmp_path}/bin/python3 3.12.1"]
    assert found(shell, "direct", "", "", "img", path=path) == ["image sha256:12"]
    assert found(shell, "direct", "", "", "other", path=path) == ["missing image other"]


@every_shell
@pytest.mark.parametrize(("body", "said"), [
    ("exit 124", "silent docker 124 "),
    ("echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?' >&2; exit 1",
     "silent docker 1 Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"),
    ("exit 0", "silent docker 0 "), ("echo 'Error: img: image not known' >&2; exit 125", "missing image img"),
])
def test_a_docker_that_gives_no_answer_says_nothing_of_the_image(shell: str, body: str, said: str, tmp_path: Path) -> None:
    assert found(shell, "direct", "", "", "img", path=tools(tmp_path / "bin", docker=body)) == [said]


@every_shell
def test_a_slurm_that_gives_no_answer_does_not_say_that_it_has_no_gpus(shell: str, tmp_path: Path) -> None:
    for body, said in (("exit 124", ["silent sinfo 124 "]), ("echo 'slurm_load_partitions: Unable to contact' >&2; exit 1",
                                                             ["silent sinfo 1 slurm_load_partitions: Unable to contact"]),
                       ("exit 0", []), ("echo gpu:8", ["gres"])):
        path = tools(tmp_path / "bin", srun="echo none >&2", sinfo=body)
        assert found(shell, "srun", "/bin/true", "", "", path=path)[3:] == said


@pytest.mark.parametrize("launcher", ["mpirun", "srun", "direct"])
def test_tools_that_hang_or_fail_end_it(launcher: str, tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", mpirun="exit 1", srun="exit 1", python3="exit 1", sinfo="exit 1")
    assert found("dash", launcher, "/bin/false", "", "", path=path)
