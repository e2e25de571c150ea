"""The environment of a consumer, as the node's own programs hold it: what ranks get, and that no value leaves the node."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fabrictool.snapshot.consumers import RANKS
from tests.node.nodes import PATH, every_shell, script, sleeper, tools

SECRET = "hunter2-must-not-leave"


def taken(shell: str, out: Path | None, *candidates: str, systemd: str = "", path: str = PATH, **env: str) -> tuple[str, dict[str, str]]:
    """(what it printed, the environment of a shell that has read what it wrote)."""
    done = script(shell, "rankenv.sh", str(out) if out else "-", RANKS.pattern, *candidates, path=path, **env)
    assert (done.returncode, done.stderr) == (0, "")
    assert SECRET not in done.stdout
    if out is None:
        return done.stdout, {}
    got = subprocess.run(["env", "-i", "sh", "-c", f". {out}/env; /usr/bin/env -0"], capture_output=True, check=True).stdout
    pairs = (word.partition("=") for word in got.decode("utf-8", "surrogateescape").split("\0") if word)
    return done.stdout, {name: value for name, _, value in pairs if name not in ("PWD", "_", "SHLVL", "OLDPWD")}


def lines(out: str) -> tuple[str, list[str]]:
    """(the source, names)."""
    rows = out.splitlines()
    assert rows[-1] == "end"
    return rows[0].removeprefix("source "), sorted(r[2:] for r in rows if r.startswith("n "))


@every_shell
def test_a_running_container_gives_what_its_main_process_was_started_with(shell: str, tmp_path: Path) -> None:
    env = {"NCCL_IB_TC": "104", "UCX_TLS": "rc\ntcp", "NCCL_ODD": "it's \"a\" $HOME \\n", "HF_TOKEN": SECRET, "A": f"x\nNCCL_LEAK={SECRET}",
           "TP_SOCKET_IFNAME": "e0", "NVSHMEM_HCA_LIST": "mlx5_0", "CUDA_VISIBLE_DEVICES": "0,1", "LD_PRELOAD_": SECRET}
    with sleeper(**env) as box:
        rows = f"echo {'e' * 64} other; echo {'f' * 64} vllm-a"
        body = f"case $1 in ps) {rows} ;; inspect) [ \"$4\" = {'f' * 64} ] && echo {box.pid} ;; esac"
        path = tools(tmp_path / "bin", docker=body)
        out, got = taken(shell, tmp_path, "docker:vllm-*", "file:/nonesuch", path=path)
    assert lines(out) == ("docker:vllm-a", sorted(got))
    assert got == {k: v for k, v in env.items() if k in got}
    assert set(got) == {"NCCL_IB_TC", "UCX_TLS", "NCCL_ODD", "TP_SOCKET_IFNAME", "NVSHMEM_HCA_LIST", "CUDA_VISIBLE_DEVICES"}


@every_shell
def test_a_stopped_container_gives_what_it_would_be_started_with(shell: str, tmp_path: Path) -> None:
    text = r'["PATH=/bin","NCCL_IB_TC=104","NCCL_ODD=a \"q\" it\u0027s \u003cx\u003e \\ \u0026 \n2","HF_TOKEN=' + SECRET
    text += '","NCCL_IB_TC=96"]'
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "env.json").write_text(text)
    body = f'case "$1 $2" in "ps -a") echo {"f" * 64} vllm-a ;; inspect*) cat "${{0%/*}}/env.json" ;; esac'
    out, got = taken(shell, tmp_path, "docker:vllm-*", path=tools(tmp_path / "bin", docker=body))
    assert lines(out)[0] == "docker:vllm-a"
    assert got == {"NCCL_IB_TC": "96", "NCCL_ODD": 'a "q" it?s <x> \\ & \n2'}


SHOW = """case "$*" in
  *LoadState*) echo loaded ;;
  *MainPID*) cat "${0%/*}/pid" ;;
  *EnvironmentFiles*) cat "${0%/*}/files" ;;
  *Environment*) cat "${0%/*}/environment" ;;
  list-units*) echo "vllm@0.service loaded active running x" ;;
esac"""


@every_shell
def test_a_service_that_does_not_run_gives_what_its_unit_says(shell: str, tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", systemctl=SHOW)
    (tmp_path / "bin" / "pid").write_text("0\n")
    (tmp_path / "bin" / "environment").write_text(
        f'NCCL_IB_TC=104 "NCCL_A=x y" \'NCCL_B=p q\' NCCL_C=back\\\\slash "NCCL_D=say \\"hi\\"" HF_TOKEN={SECRET} NCCL_E=\n')
    first, second = tmp_path / "one.env", tmp_path / "two.env"
    first.write_text(f"# a comment\n; another\n\nNCCL_IB_TC = 96\nNCCL_F=\"q q\"\nNCCL_G='s s'\nexport NCCL_X=1\nKEY={SECRET}\n")
    second.write_text("NCCL_J=\"esc \\\" \\\\ \\$ \\x\"\nNCCL_K=a\\ b\\\"c\nNCCL_L='\\n'\nNCCL_H=long\\\ner\r\n  NCCL_F=last")
    (tmp_path / "bin" / "files").write_text(f"{first} (ignore_errors=no)\n{second} (ignore_errors=yes)\n/nonesuch (ignore_errors=yes)\n")
    out, got = taken(shell, tmp_path, "systemd:vllm", path=path)
    assert lines(out)[0] == "systemd:vllm.service"
    assert got == {"NCCL_IB_TC": "96", "NCCL_A": "x y", "NCCL_B": "p q", "NCCL_C": "back\\slash", "NCCL_D": 'say "hi"', "NCCL_E": "",
                   "NCCL_F": "last", "NCCL_G": "s s", "NCCL_H": "longer", "NCCL_J": 'esc " \\ $ \\x', "NCCL_K": 'a b"c',
                   "NCCL_L": "\\n"}


@every_shell
def test_a_running_service_gives_what_its_process_has(shell: str, tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", systemctl=SHOW)
    (tmp_path / "bin" / "environment").write_text("NCCL_IB_TC=104\n")
    with sleeper(NCCL_IB_TC="96", TOKEN=SECRET) as main:
        (tmp_path / "bin" / "pid").write_text(f"{main.pid}\n")
        out, got = taken(shell, tmp_path, "systemd:vllm@*", path=path)
    assert lines(out)[0] == "systemd:vllm@0.service"
    assert got == {"NCCL_IB_TC": "96"}


@every_shell
def test_a_file_is_read_as_docker_reads_it(shell: str, tmp_path: Path) -> None:
    file = tmp_path / "x.env"
    file.write_bytes(b"#NCCL_A=1\n  NCCL_B=2\r\nNCCL_C='3'\nNCCL_D=a=b # c\nNCCL_E\n\nNCCL_F = 4\nNCCL_B=5\nHF_TOKEN=" + SECRET.encode())
    out, got = taken(shell, tmp_path, f"file:{file}")
    assert lines(out) == (f"file:{file}", ["NCCL_B", "NCCL_C", "NCCL_D"])
    assert got == {"NCCL_B": "5", "NCCL_C": "'3'", "NCCL_D": "a=b # c"}


@every_shell
def test_the_first_candidate_that_is_there_wins(shell: str, tmp_path: Path) -> None:
    (tmp_path / "a.env").write_text("NCCL_A=1\n")
    path = tools(tmp_path / "bin", docker="exit 1", systemctl="exit 1")
    out, got = taken(shell, tmp_path, "docker:x", "systemd:x", "file:/nonesuch", f"file:{tmp_path}/a.env", path=path)
    assert lines(out)[0] == f"file:{tmp_path}/a.env"
    assert got == {"NCCL_A": "1"}
    out, got = taken(shell, tmp_path, "docker:x", "systemd:x", path=path)
    assert (lines(out), got) == (("-", []), {})
    assert lines(taken(shell, None)[0]) == ("-", [])


@every_shell
@pytest.mark.parametrize("hangs", [
    {"docker": "exit 124"}, {"docker": f"[ $1 = inspect ] && exit 124; echo {'f' * 64} x"}, {"systemctl": "exit 124"},
    {"systemctl": SHOW.replace("  *Environment*", "  *Environment*) exit 124 ;;\n  *Other*")}])
def test_a_manager_that_hangs_is_no_proof_that_nothing_runs(shell: str, hangs: dict[str, str], tmp_path: Path) -> None:
    """The ranks would get somebody else's environment, or nobody's. timeout(1) says 124."""
    (tmp_path / "a.env").write_text("NCCL_A=1\n")
    path = tools(tmp_path / "bin", **{"docker": "exit 1", "systemctl": "exit 1", **hangs})
    (tmp_path / "bin" / "pid").write_text("0\n")
    (tmp_path / "bin" / "files").write_text("")
    done = script(shell, "rankenv.sh", "-", RANKS.pattern, "docker:x", "systemd:x", f"file:{tmp_path}/a.env", path=path)
    assert done.returncode == 1
    assert "did not answer in time" in done.stderr
    assert "end" not in done.stdout.splitlines()
    well = tools(tmp_path / "bin", docker="echo cannot connect >&2; exit 1", systemctl="exit 1")
    assert lines(taken(shell, None, "docker:x", "systemd:x", f"file:{tmp_path}/a.env", path=well)[0])[0] == f"file:{tmp_path}/a.env"


@every_shell
def test_what_a_configuration_file_sets_is_named(shell: str, tmp_path: Path) -> None:
    (tmp_path / ".nccl.conf").write_text("NCCL_SOCKET_IFNAME==e0\n#NCCL_X=1\nnot NCCL_Y=2\n")
    assert "conf NCCL_SOCKET_IFNAME" in taken(shell, None, HOME=str(tmp_path))[0].splitlines()
    assert "NCCL_X" not in taken(shell, None, HOME=str(tmp_path))[0]


@pytest.mark.parametrize("text", ["", "\n", "=\n==\n", "NCCL_A\n", "'\n\"\n\\\n", "NCCL_A=$(touch x)`touch y`\n", "NCCL_A='; touch x; '\n"])
def test_nothing_in_a_file_is_ever_run(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.env").write_text(text)
    _, got = taken("dash", tmp_path, f"file:{tmp_path}/x.env")
    assert {p.name for p in tmp_path.iterdir()} == {"x.env", "env", "names"}
    assert got == ({"NCCL_A": text[7:-1]} if text.startswith("NCCL_A=") else {})
