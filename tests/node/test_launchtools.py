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


@every_shell
def test_direct(shell: str, tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", python3="echo 3.12.1", docker='[ "$5" = img ] && echo sha256:12')
    assert found(shell, "direct", "", "", "", path=path) == [f"python {tmp_path}/bin/python3 3.12.1"]
    assert found(shell, "direct", "", "", "img", path=path) == ["image sha256:12"]
    assert found(shell, "direct", "", "", "other", path=path) == ["missing image other"]


@pytest.mark.parametrize("launcher", ["mpirun", "srun", "direct"])
def test_tools_that_hang_or_fail_end_it(launcher: str, tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", mpirun="exit 1", srun="exit 1", python3="exit 1", sinfo="exit 1")
    assert found("dash", launcher, "/bin/false", "", "", path=path)
