"""The scripts that run on nodes, run for real under each shell: against processes that this test starts, and files of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.env import model
from fabrictool.env.quoting import Style
from fabrictool.model import Absent, Unreadable, Value
from fabrictool.snapshot import Captured, Snapshot, consumers
from fabrictool.snapshot.collector import resource

SHELLS = [s for s in ("dash", "bash", "busybox sh") if shutil.which(s.split()[0])]
SECRET = "hunter2-must-not-leave"
ENV = {"NCCL_IB_TC": "104", "GLOO_SOCKET_IFNAME": "e0", "UCX_TLS": "rc\ntcp", "HF_TOKEN": SECRET, "A": f"x\nNCCL_LEAK={SECRET}",
       "MY_NCCL_X": SECRET, "VLLM_API_KEY": SECRET, "HOST_IP": "10.0.0.1", "GHOST_IP": SECRET, "PATH": os.environ["PATH"]}
BOX = "f" * 64


def run(shell: str, text: str, path: str = "") -> str:
    env = {"PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"], "LC_ALL": "C"}
    ran = subprocess.run([*shell.split(), "-c", text], capture_output=True, timeout=60, env=env, stdin=subprocess.DEVNULL, check=False)
    return ran.stdout.decode("utf-8", "surrogateescape")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process with secrets in its environment, and a child of it."""
    proc = subprocess.Popen(["sh", "-c", "NCCL_CHILD_ONLY=1 sleep 120 & wait"], env=ENV)
    while not any(f"/{proc.pid}/" in str(p) for p in Path("/proc").glob(f"{proc.pid}/task/*/children") if p.read_text().strip()):
        if proc.poll() is not None:
            break
    yield proc
    for child in Path(f"/proc/{proc.pid}/task/{proc.pid}/children").read_text().split():
        os.kill(int(child), 9)
    proc.kill()
    proc.wait()


def docker(folder: Path, pid: int, ps: str = "", rc: int = 0) -> str:
    """A docker command that knows one container."""
    folder.mkdir(exist_ok=True)
    row = f"{pid} {BOX} \"/vllm-a\" \"2024-01-02T03:04:05.678Z\" \"box \\\\\"host\" \"img\""
    body = f"#!/bin/sh\ncase $1 in ps) {ps or f'echo {BOX}'}; exit {rc} ;; inspect) printf '%s\\n' '{row}' ;; esac\n"
    (folder / "docker").write_text(body.replace('\\\\"', '\\"'))
    (folder / "docker").chmod(0o755)
    return str(folder)


def read(text: str) -> consumers.Consumers:
    got = consumers.read(Snapshot("n", {"consumers": Captured(0, text)}))
    assert isinstance(got, consumers.Consumers), got
    return got


@pytest.mark.parametrize("shell", SHELLS)
def test_consumers_of_a_container(shell: str, sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    out = run(shell, resource("consumers.sh"), docker(tmp_path / "bin", sleeper.pid))
    assert SECRET not in out
    got = read(out)
    (box,) = got.named("docker:vllm-*")  # type: ignore[misc]
    assert box.container is not None
    assert (box.container.name, box.container.hostname) == ("vllm-a", 'box "host')
    assert box.container.created == 1_704_164_645
    envs = [p.env for p in box.processes]
    assert Value({"NCCL_IB_TC": "104", "GLOO_SOCKET_IFNAME": "e0", "UCX_TLS": "rc\ntcp", "HOST_IP": "10.0.0.1"}) in envs
    assert len(box.processes) == 2  # the child belongs to the container too
    assert any(isinstance(e, Value) and e.value.get("NCCL_CHILD_ONLY") == "1" for e in envs)
    assert all(abs(p.started - time.time()) < 3600 for p in box.processes)
    hosts = box.container.files["/etc/hosts"]
    assert isinstance(hosts, Value)
    assert "localhost" in hosts.value.text
    assert isinstance(box.container.files["/etc/nccl.conf"], (Absent, Value))
    assert got.named("docker:other*") == ()


@pytest.mark.parametrize("shell", SHELLS)
def test_docker_that_fails(shell: str, tmp_path: Path) -> None:
    out = run(shell, resource("consumers.sh").replace("/run/docker.sock", str(tmp_path)),
              docker(tmp_path / "bin", 1, "echo 'permission denied while trying to connect' >&2", 1))
    assert isinstance(read(out).named("docker:*"), Unreadable)
    none = run(shell, resource("consumers.sh"), docker(tmp_path / "bin2", 1, "true", 0))
    assert read(none).named("docker:*") == ()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_dead_main_process(shell: str, tmp_path: Path) -> None:
    (box,) = read(run(shell, resource("consumers.sh"), docker(tmp_path / "bin", 999_999_9))).named("docker:*")  # type: ignore[misc]
    assert box.processes == ()
    assert box.container is not None
    assert isinstance(box.container.files["/etc/hosts"], Unreadable)


@pytest.mark.parametrize("shell", SHELLS)
def test_links_in_a_container_are_not_followed(shell: str, tmp_path: Path) -> None:
    """A container whose /etc/hosts points at a file of the host."""
    trap = tmp_path / "trap"
    trap.write_text(f"10.0.0.1 {SECRET}\n")
    script = (f'mount -t tmpfs none /etc && ln -s "{trap}" /etc/hosts && '
              f'printf "NCCL_A=1\\nTOKEN={SECRET}\\n" >/etc/nccl.conf && exec sleep 60')
    proc = subprocess.Popen(["unshare", "-m", "sh", "-c", script], env=ENV, stderr=subprocess.DEVNULL)
    try:
        while proc.poll() is None and "sleep" not in Path(f"/proc/{proc.pid}/comm").read_text():
            pass
        if proc.poll() is not None:
            pytest.skip("no mount namespaces here")
        out = run(shell, resource("consumers.sh"), docker(tmp_path / "bin", proc.pid))
    finally:
        proc.kill()
        proc.wait()
    assert SECRET not in out
    (box,) = read(out).named("docker:*")  # type: ignore[misc]
    assert box.container is not None
    assert isinstance(box.container.files["/etc/hosts"], Unreadable)
    conf = box.container.files["/etc/nccl.conf"]
    assert isinstance(conf, Value)
    assert conf.value.text == "NCCL_A=1\n"


def fake_proc(folder: Path, groups: dict[int, str]) -> str:
    """A /proc of these processes, each with an NCCL variable and in this control group, for a script's text."""
    for pid, group in groups.items():
        here = folder / str(pid)
        here.mkdir(parents=True)
        (here / "environ").write_bytes(b"NCCL_IB_TC=104\0")
        (here / "stat").write_text(f"{pid} (python) S 1 " + " ".join(str(n) for n in range(40)) + "\n")
        (here / "cgroup").write_text(group)
        (here / "maps").write_text("")
    (folder / "stat").write_text("btime 1700000000\n")
    return str(folder)


NESTED = {
    "v2": "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service\n",
    "v2, with a group of its own": "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service/payload\n",
    "v1": "9:memory:/user.slice/user-1000.slice/user@1000.service\n"
          "1:name=systemd:/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service\n0::/\n",
    "of the system": "0::/system.slice/vllm.service\n",
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("group", NESTED.values(), ids=NESTED)
def test_a_service_is_found_where_it_runs(group: str, shell: str, tmp_path: Path) -> None:
    """One of a user's own services runs within user@UID.service, and is named by itself; so is that of the system."""
    proc = fake_proc(tmp_path / "proc", {700: group, 701: "0::/system.slice/other.service\n", 702: "0::/user.slice/session-1.scope\n"})
    got = read(run(shell, resource("consumers.sh").replace("/proc/", f"{proc}/"), docker(tmp_path / "bin", 1, "true")))
    (found,) = got.named("systemd:vllm")  # type: ignore[misc]
    assert (found.label, [p.pid for p in found.processes]) == ("systemd:vllm.service", [700])
    assert [p.pid for c in got.named("systemd:*") for p in c.processes] == [700, 701]  # type: ignore[union-attr]
    assert got.named("systemd:user@1000") == ()


PLACES = {
    "root/.nccl.conf": f"NCCL_IB_TC=0 \nTOKEN={SECRET}\n#NCCL_X=1\n NCCL_B = 2\r\n",
    "root/.bashrc": f"export NCCL_DEBUG=INFO; export HF_TOKEN={SECRET}\nHF={SECRET} NCCL_A='x y' # NCCL_C=1\nNCCL_D=$(hostname)\n",
    "home/eve/.profile": f"sh -c \"NCCL_E=1 TOKEN={SECRET} run\"\n",
    "etc/environment": f"NCCL_IB_HCA=\"mlx5_0\"\nPASS={SECRET}\n",
    "etc/profile.d/zz.sh": f"if true; then export UCX_TLS=tcp; fi\nX={SECRET}\n",
    "etc/systemd/system/vllm.service": f"[Service]\nEnvironment=HF_TOKEN={SECRET} \"NCCL_F=a b\" \\\n  NCCL_G=50%%\n"
                                       f"Environment=NCCL_H=1\n"
                                       f"EnvironmentFile=-ROOT/etc/default/vllm\nExecStart=/bin/env MASTER_ADDR=10.0.0.1 x\n",
    "etc/default/vllm": f"NCCL_I='q'\nKEY={SECRET}\n",
    "etc/systemd/system/other.service": f"[Service]\nEnvironment=A={SECRET}\n",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_places(shell: str, tmp_path: Path) -> None:
    text = resource("envplaces.sh")
    for name, content in PLACES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content.replace("ROOT", str(tmp_path)), newline="")
    for top in ("/root", "/home/", "/etc/", "/usr/lib/systemd", "/usr/local/lib/systemd", "/run/systemd"):
        text = text.replace(f" {top}", f" {tmp_path}{top}")
    out = run(shell, text)
    assert SECRET not in out
    got = model.read(Snapshot("n", {"env.places": Captured(0, out)})).places
    assert isinstance(got, model.Places)
    seen = {(p.path.removeprefix(f"{tmp_path}/"), i.name): i.value for p in got.found for i in p.items}
    assert seen == {
        ("root/.nccl.conf", "NCCL_IB_TC"): "0 ", ("root/.nccl.conf", " NCCL_B "): " 2\r", ("root/.bashrc", "NCCL_DEBUG"): "INFO",
        ("root/.bashrc", "NCCL_A"): "x y", ("root/.bashrc", "NCCL_D"): None, ("home/eve/.profile", "NCCL_E"): None,
        ("etc/environment", "NCCL_IB_HCA"): "mlx5_0", ("etc/profile.d/zz.sh", "UCX_TLS"): "tcp",
        ("etc/systemd/system/vllm.service", "NCCL_F"): "a b", ("etc/systemd/system/vllm.service", "NCCL_G"): "50%",
        ("etc/systemd/system/vllm.service", "NCCL_H"): "1", ("etc/systemd/system/vllm.service", "MASTER_ADDR"): "10.0.0.1",
        ("etc/default/vllm", "NCCL_I"): "q",
    }
    styles = {p.path.removeprefix(f"{tmp_path}/"): p.style for p in got.found}
    assert styles["etc/default/vllm"] is Style.ENVFILE
    assert "etc/systemd/system/other.service" not in styles


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_are_quiet_about_garbage(shell: str, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/environment").write_bytes(b"NCCL_A=\xff\xfe\nNCCL_B=" + b"x" * 100_000 + b"\n\0\0NCCL_C=1\n")
    out = run(shell, resource("envplaces.sh").replace(" /etc/environment", f" {tmp_path}/etc/environment"))
    got = model.read(Snapshot("n", {"env.places": Captured(0, out)})).places
    assert isinstance(got, model.Places)
    mine = next(p for p in got.found if p.path.startswith(str(tmp_path)))
    assert mine.items[0].value == "\udcff\udcfe"
    assert "NCCL_B" not in {i.name for i in mine.items}  # too long to be meant, and said
    assert got.partial == (mine.path,)


PAD = "# " + 77 * "x" + "\n"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("content", "partial"), [
    (PAD * 4000 + "export NCCL_IB_GID_INDEX=1\n", True), ("export NCCL_A='" + 20_000 * "x" + "'\n", True),
    (PAD * 300_000, True), (PAD * 4000, False), ("export NCCL_A=1\n" + PAD * 4000, False), (f"export LS_COLORS='{20_000 * 'x'}'\n", False),
], ids=["set behind the end", "in a long line", "too long to look", "long, and not ours", "set at the start", "a long line, and not ours"])
def test_a_file_that_is_not_read_whole_is_told(content: str, partial: bool, shell: str, tmp_path: Path) -> None:
    file = tmp_path / "root" / ".bashrc"
    file.parent.mkdir()
    file.write_text(content)
    text = resource("envplaces.sh").replace(" /root ", f" {tmp_path}/root ").replace(" /etc/", f" {tmp_path}/etc/")
    got = model.read(Snapshot("n", {"env.places": Captured(0, run(shell, text))})).places
    assert isinstance(got, model.Places)
    assert got.partial == ((str(file),) if partial else ())


@pytest.mark.parametrize("shell", SHELLS)
def test_homes_lie_anywhere(shell: str, tmp_path: Path) -> None:
    home = tmp_path / "data" / "vllm one"
    home.mkdir(parents=True)
    (home / ".nccl.conf").write_text("NCCL_IB_GID_INDEX=1\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(f"root:x:0:0::/root:/bin/sh\nvllm:x:990:990::{home}:/usr/sbin/nologin\nx:x:1:1::/:/bin/sh\n")
    text = resource("envplaces.sh").replace(" /etc/", f" {tmp_path}/etc/")
    got = model.read(Snapshot("n", {"env.places": Captured(0, run(shell, text))})).places
    assert isinstance(got, model.Places)
    assert [i.name for p in got.found for i in p.items if p.path == f"{home}/.nccl.conf"] == ["NCCL_IB_GID_INDEX"]
