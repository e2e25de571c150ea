"""Starting ranks for real: whose they are, what they inherit, how they end. The programs are a few lines of sh."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.node.folders import Folder, folder
from tests.node.nodes import NO_SYSTEMD, PATH, alive, as_root, every_shell, marked, new_run, script, sleeper, text, tools, until

SHOW = 'env | sort; echo "rank $RANK of $WORLD_SIZE, $LOCAL_RANK here, at $MASTER_ADDR:$MASTER_PORT"; id -u; pwd; echo oops >&2'


def start(shell: str, made: Folder, *inner: str, number: str = "0", seconds: int = 60, image: str = "", path: str = PATH,
          systemd: str = NO_SYSTEMD, **env: str) -> subprocess.CompletedProcess[str]:
    """As the engine does: the text on standard input."""
    return subprocess.run([*shell.split(), "-s", made.run, str(made.path), "run1", number, str(seconds), image, "sh",
                           f"{made.path}/ranks.sh", *inner], input=text("rank.sh", systemd).replace(f"path={PATH}", f"path={path}"),
                          capture_output=True, text=True, timeout=120, check=False, env={"PATH": path, **env})


def ranks(made: Folder, body: str, *, count: int = 1, first: int = 0, world: int = 1, seconds: int = 60) -> tuple[str, ...]:
    return ("ranks", str(made.path), "run1", str(seconds), str(first), str(count), str(world), "10.0.0.1", "41000", "sh", "-c", body)


@every_shell
def test_a_rank_gets_its_place_and_the_environment_of_the_consumer(shell: str, tmp_path: Path) -> None:
    env_file = tmp_path / "consumer.env"
    env_file.write_text("NCCL_IB_TC=104\nNCCL_QUOTED='a b' $HOME\nHF_TOKEN=secret\nPATH=/bad\nCUDA_VISIBLE_DEVICES=0\n")
    with folder(shell, consumers=[f"file:{env_file}"], added={"run1": "export NCCL_ALGO=Ring\nexport NCCL_IB_TC=1\n"}) as made:
        assert made.source == f"file:{env_file}"
        done = start(shell, made, *ranks(made, SHOW, first=4, world=8), number="4", NCCL_STRAY="1", AWS_SECRET="2")
        assert done.returncode == 0, done.stderr
        label, status, ms = done.stdout.split()
        assert (label, status) == ("4", "0")
        assert ms.isdigit()
        out = (made.path / "run1" / "4.out").read_text()
        got = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
        assert {k: v for k, v in got.items() if k.startswith(("NCCL", "CUDA", "HF", "AWS"))} == {
            "NCCL_IB_TC": "1", "NCCL_QUOTED": "'a b' $HOME", "NCCL_ALGO": "Ring", "CUDA_VISIBLE_DEVICES": "0"}
        assert got["FABRICTOOL_RUN"] == made.run
        assert got["PATH"] == PATH
        assert "rank 4 of 8, 0 here, at 10.0.0.1:41000" in out
        assert (made.path / "run1" / "4.err").read_text() == "oops\n"


@as_root
@every_shell
def test_ranks_run_as_the_login_user(shell: str) -> None:
    with folder(shell, SUDO_UID="65534") as made:
        done = start(shell, made, *ranks(made, SHOW))
        assert done.returncode == 0, done.stderr
        out = (made.path / "run1" / "0.out").read_text().splitlines()
        assert "65534" in out
        assert "USER=nobody" in out
        assert (made.path / "run1" / "0.rc").stat().st_uid == 65534


@every_shell
def test_all_ranks_of_a_node_run_at_the_same_time(shell: str) -> None:
    meet = 'touch "$0/here.$RANK"; until [ -e "$0/here.0" ] && [ -e "$0/here.1" ]; do sleep 0.05; done; echo met'
    with folder(shell) as made:
        done = start(shell, made, *ranks(made, meet, count=2, world=2), str(made.path / "run1"))
        assert [line.split()[:2] for line in done.stdout.splitlines()] == [["0", "0"], ["1", "0"]]


@every_shell
def test_one_that_fails_takes_the_others_along(shell: str) -> None:
    body = 'if [ "$RANK" = 1 ]; then exit 7; fi; trap "echo told to end; exit 9" TERM; while :; do sleep 0.1; done'
    with folder(shell) as made:
        done = start(shell, made, *ranks(made, body, count=3, world=3), seconds=100)
        ended = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
        assert ended["1"][0] == "7"
        assert ended["0"][0] == ended["2"][0] == "9"
        assert int(ended["1"][1]) < int(ended["0"][1])  # the first to end is the cause
        assert (made.path / "run1" / "0.out").read_text() == "told to end\n"


@every_shell
def test_the_limit_on_the_node_ends_a_rank(shell: str) -> None:
    with folder(shell) as made:
        done = start(shell, made, *ranks(made, "echo begun; sleep 300", seconds=1), seconds=1)
        assert done.stdout.split()[:2] == ["0", "124"]
        assert (made.path / "run1" / "0.out").read_text() == "begun\n"
        assert marked(made.run) == set()


@every_shell
def test_a_rank_that_ignores_its_limit_is_killed_and_counts_as_late(shell: str) -> None:
    with folder(shell) as made:
        done = start(shell, made, *ranks(made, "trap '' TERM; while :; do sleep 0.1; done", seconds=1), seconds=1)
        assert done.stdout.split()[:2] == ["0", "124"]
        assert marked(made.run) == set()


@every_shell
def test_one_killed_from_outside_is_told_from_one_that_was_late(shell: str) -> None:
    with folder(shell) as made:
        done = start(shell, made, *ranks(made, "kill -9 $$"))
        assert done.stdout.split()[:2] == ["0", "137"]


@every_shell
def test_a_sweep_in_the_middle_leaves_nothing(shell: str) -> None:
    """The starter is not of the run: it sees its child end, and ends."""
    body = "setsid sleep 300 & sleep 300"  # one of them has left every process group
    with folder(shell) as made, sleeper(FABRICTOOL_RUN=new_run()) as foreign:
        job = subprocess.Popen([*shell.split(), "-s", made.run, str(made.path), "run1", "0", "100", "", "sh", f"{made.path}/ranks.sh",
                                *ranks(made, body)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PATH": PATH})
        with job:
            assert job.stdin is not None
            job.stdin.write(text("rank.sh"))
            job.stdin.close()
            until(lambda: sum(Path(f"/proc/{p}/comm").read_text() == "sleep\n" for p in marked(made.run) if alive(p)) == 2)
            script(shell, "sweep.sh", made.run, "end")
            assert marked(made.run) == set()
            job.wait(30)
        assert alive(foreign.pid)


SYSTEMD_RUN = """echo "$@" >>"$LOG"
while [ $# -gt 0 ]; do case $1 in --setenv=*) export "${1#--setenv=}" ;; --) shift; break ;; esac; shift; done
exec "$@" """


@every_shell
def test_with_systemd_it_is_a_unit_with_the_run_in_its_name(shell: str, tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", systemd_run=SYSTEMD_RUN)
    with folder(shell) as made:
        done = start(shell, made, *ranks(made, "echo \"it's $RANK\""), path=path, systemd=str(tmp_path), seconds=30)
        assert done.stdout.split()[:2] == ["0", "0"], done.stderr
        if Path("/proc/self").stat().st_uid == 0:
            words = (tmp_path / "bin" / "log").read_text().split()
            assert words[:3] == ["--quiet", "--collect", f"--unit=ft-{made.run}-0"]
            assert words[-3:] == ["--", "sh", f"{made.path}/run1.0.sh"]  # systemd reads $ on a command line, so none is there
            assert {"--property=KillMode=control-group", "--property=RuntimeMaxSec=40", f"--setenv=FABRICTOOL_RUN={made.run}"} <= set(words)
        assert (made.path / "run1" / "0.out").read_text() == "it's 0\n"


DOCKER = """case $1 in run) ;; *) echo "$@" >>"$LOG"; exit 0 ;; esac
echo "$@" >>"$LOG"; env | grep '^NCCL' | sort >>"$LOG"
while [ "$1" != IMG ]; do case $1 in --device | -v | -e | --name | --network | --ipc | --gpus | --ulimit) shift ;; esac; shift; done
shift; exec "$@" """


@every_shell
def test_an_image_runs_in_a_container_of_that_name(shell: str, tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", docker=DOCKER)
    env_file = tmp_path / "consumer.env"
    env_file.write_text("NCCL_IB_TC=104\n")
    with folder(shell, consumers=[f"file:{env_file}"], added={"run1": "export NCCL_DEBUG=INFO\n"}) as made:
        done = start(shell, made, *ranks(made, "echo in the box; echo $NCCL_IB_TC", count=2, world=2), image="IMG", path=path)
        assert sorted(line.split()[0] for line in done.stdout.splitlines()) == ["0", "1", "box"], done.stderr
        log = (tmp_path / "bin" / "log").read_text().splitlines()
        words = log[0].split()
        head = ["run", "--rm", "--name", f"ft-{made.run}-0", "--network", "host", "--ipc", "host", "--pull=never", "--gpus", "all",
                "--ulimit", "memlock=-1", "--init", "-v", f"{made.path}/run1:{made.path}/run1"]
        assert words[:len(head)] == head
        assert {words[i + 1] for i, w in enumerate(words) if w == "-e"} == {"FABRICTOOL_RUN", "FABRICTOOL_BOX", "NCCL_IB_TC", "NCCL_DEBUG"}
        assert "104" not in words
        assert words[words.index("IMG") + 1:][:3] == ["sh", f"{made.path}/ranks.sh", "ranks"]
        assert log[1:3] == ["NCCL_DEBUG=INFO", "NCCL_IB_TC=104"]
        assert log[3] == f"rm -f ft-{made.run}-0"
        assert (made.path / "run1" / "1.out").read_text() == "in the box\n104\n"


@every_shell
def test_a_container_that_does_not_start_says_why(shell: str, tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", docker='[ "$1" = run ] || exit 0; echo "Unable to find image IMG locally" >&2; exit 125')
    with folder(shell) as made:
        done = start(shell, made, *ranks(made, "true"), image="IMG", path=path)
        assert done.stdout.split()[:2] == ["box", "125"]
        assert (made.path / "run1" / "box.err").read_text() == "Unable to find image IMG locally\n"


@every_shell
def test_a_launcher_is_one_process_with_its_own_limit(shell: str) -> None:
    with folder(shell, added={"run1": "export NCCL_DEBUG=INFO\n"}) as made:
        done = start(shell, made, "launch", str(made.path), "run1", "60", "sh", "-c", "echo $NCCL_DEBUG $OMPI_ALLOW_RUN_AS_ROOT; exit 3",
                     number="launcher")
        assert done.stdout.split()[:2] == ["launcher", "3"]
        assert (made.path / "run1" / "launcher.out").read_text() == "INFO 1\n"


@every_shell
def test_an_output_cannot_fill_the_nodes_memory(shell: str) -> None:
    """A rank that floods its output is ended by a signal of its own; one that does not is not."""
    with folder(shell, added={"run1": ""}) as made:
        small = made.path / "ranks.sh"
        small.write_text(small.read_text().replace("ulimit -f 2097152", "ulimit -f 64"))
        done = start(shell, made, *ranks(made, "[ $RANK = 0 ] || exec head -c 1000000 /dev/zero; echo well", count=2, world=2))
        rows = {row[0]: int(row[1]) for row in (line.split() for line in done.stdout.splitlines())}
        assert rows["0"] == 0
        assert rows["1"] != 0
        assert (made.path / "run1" / "1.out").stat().st_size <= 64 * 1024
        assert (made.path / "run1" / "0.out").read_text() == "well\n"


def test_a_rank_of_mpi_keeps_what_mpi_gave_it(tmp_path: Path) -> None:
    with folder(added={"run1": "export NCCL_DEBUG=INFO\n"}) as made:
        done = subprocess.run(["sh", f"{made.path}/ranks.sh", "one", str(made.path), "run1", "env"], capture_output=True, text=True,
                              check=True, env={"PATH": PATH, "OMPI_COMM_WORLD_RANK": "3", "PMIX_RANK": "3", "SLURM_PROCID": "3",
                                               "NCCL_ALGO": "Tree", "MY_TOKEN": "x", "CUDA_VISIBLE_DEVICES": "3", "FABRICTOOL_RUN": "r"})
        got = set(done.stdout.split())
        assert {"OMPI_COMM_WORLD_RANK=3", "PMIX_RANK=3", "SLURM_PROCID=3", "CUDA_VISIBLE_DEVICES=3", "FABRICTOOL_RUN=r",
                "NCCL_DEBUG=INFO"} <= got
        assert not [w for w in got if w.startswith(("NCCL_ALGO", "MY_TOKEN"))]


@pytest.mark.parametrize("command", ["echo it's here; exit 4", "printf '%s\\n' \"a b\" '$HOME'"])
def test_the_agent_gives_the_daemon_the_id_and_a_limit(command: str, tmp_path: Path) -> None:
    """ssh joins its words with blanks and the other side's shell takes them apart again."""
    run = new_run()
    ssh = 'echo "$@" >>"$LOG"; while [ "$1" != -- ]; do shift; done; shift; host=$1; shift; exec sh -c "$*"'
    path = tools(tmp_path / "bin", ssh=ssh)
    told = f"{command}; tr '\\0' '\\n' </proc/$PPID/environ | grep FABRICTOOL"
    done = script("dash", "agent.sh", str(tmp_path), run, "30", "spark02", told, path=path)
    direct = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(direct.stdout)
    words = (tmp_path / "bin" / "log").read_text()
    assert "-o BatchMode=yes" in words
    assert f"test -d {tmp_path} && exec env FABRICTOOL_RUN={run} timeout -k 5 30 sh -c" in words
    gone = script("dash", "agent.sh", f"{tmp_path}/gone", run, "30", "spark02", "echo ran", path=path)
    assert (gone.returncode, gone.stdout) == (1, "")
