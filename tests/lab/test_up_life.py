"""A lab comes, works, goes, and the machine is as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabrictool.lab import down, node
from fabrictool.lab.errors import LabError
from fabrictool.lab.handle import Lab
from fabrictool.lab.paths import Layout
from fabrictool.lab.plan import NodePlan
from fabrictool.lab.record import Process, processes_in
from fabrictool.lab.status import status
from fabrictool.lab.up import up
from tests.lab.fleet import built, name_for, ssh

pytestmark = pytest.mark.lab
SYSCTLS = ("net/ipv4/ip_forward", "vm/swappiness", "kernel/hostname", "net/ipv6/conf/all/forwarding")


@dataclass(frozen=True)
class Machine:
    """What a lab must not change. Other tests run beside this one, so of mounts and processes only those count that name the lab."""

    links: str
    netns: tuple[str, ...]
    hosts: str
    passwd: str
    sysctls: tuple[str, ...]

    @classmethod
    def now(cls) -> Machine:
        shown = json.loads(subprocess.run(["ip", "-j", "addr"], capture_output=True, text=True, check=True).stdout)
        links = json.dumps([(i["ifname"], i["mtu"], i["flags"], [a.get("local") for a in i["addr_info"]]) for i in shown])
        netns = tuple(sorted(os.listdir("/run/netns"))) if os.path.isdir("/run/netns") else ()
        return cls(links, netns, Path("/etc/hosts").read_text(), Path("/etc/passwd").read_text(),
                   tuple(Path("/proc/sys", s).read_text() for s in SYSCTLS))


def mounts_of(root: Path) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {root}" in line]


def processes_of(root: Path) -> list[str]:
    """Command lines that name the lab's folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = entry.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(root) in text and int(entry.parent.name) != os.getpid():
            found.append(text)
    return found


def all_processes(lab: Lab) -> list[Process]:
    found = processes_in([lab.layout.netns(n) for n in lab.nodes])
    assert lab.record.forwarder is not None
    return [*found, lab.record.forwarder]


def cmdline(process: Process) -> bytes:
    """Empty where it has ended since it was listed (a login's own helpers do)."""
    try:
        return Path(f"/proc/{process.pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def assert_gone(root: Path, killed: list[Process]) -> None:
    assert not root.exists()
    assert mounts_of(root) == []
    assert processes_of(root) == []
    assert [p for p in killed if p.alive] == []


def test_the_machine_is_untouched_while_a_lab_runs_and_after() -> None:
    before = Machine.now()
    with built("life", 2) as lab:
        done = ssh(lab, "spark02", "hostname; echo \"$SSH_CONNECTION\"; id -un")
        host, connection, user = done.stdout.splitlines()
        assert (host, user) == ("spark02", "admin")
        assert connection.split()[0] == "192.168.1.1"
        assert connection.split()[2:] == ["192.168.1.12", "22"]
        assert Machine.now() == before
        ours = all_processes(lab)
        assert len(ours) >= 5  # two nodes with PID 1, tool server and sshd each, and the forwarder
        root = lab.layout.root
        assert mounts_of(root)
        down.clear(lab.layout)
        assert_gone(root, ours)
    assert Machine.now() == before


def test_down_after_everything_was_killed() -> None:
    with built("killed", 2) as lab:
        ours = all_processes(lab)
        for process in ours:
            with suppress(ProcessLookupError):  # one that came up with a login may end by itself, or with its namespace
                os.kill(process.pid, signal.SIGKILL)
        for process in ours:
            process.kill()  # waits
        seen = status(lab)
        assert not seen.whole
        assert not seen.forwarder
        assert not any(n.running for n in seen.nodes)
        root = lab.layout.root
        assert mounts_of(root)
        down.clear(lab.layout)
        assert_gone(root, ours)


def test_down_ends_what_users_left_running_on_nodes() -> None:
    with built("left", 1) as lab:
        leave = "nohup setsid sleep 4321 >/dev/null 2>&1 &"
        assert ssh(lab, "spark01", f"{leave} sudo -n sh -c '{leave}'").returncode == 0
        ours = all_processes(lab)
        lines = [cmdline(p) for p in ours]
        assert sum(b"4321" in line and b"nohup" not in line for line in lines) == 2
        root = lab.layout.root
        down.clear(lab.layout)
        assert_gone(root, ours)


def test_a_lab_without_a_record_can_be_cleared() -> None:
    with built("record", 1) as lab:
        root, ours = lab.layout.root, all_processes(lab)
        forwarder = lab.record.forwarder
        lab.layout.record.write_text("{")
        with pytest.raises(LabError, match="cannot be read"):
            Lab.open(lab.layout.name)
        assert forwarder is not None
        forwarder.kill()  # what only the record knew
        down.clear(lab.layout)
        assert_gone(root, ours)


def test_a_failed_build_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    real = node.start

    def second_fails(layout: Layout, n: NodePlan) -> None:
        if n.number == 2:
            raise LabError("no second node")
        real(layout, n)
        started.append(n.name)

    monkeypatch.setattr(node, "start", second_fails)
    name = name_for("half")
    with pytest.raises(LabError, match="no second node"):
        up(name, 2)
    assert started == ["spark01"]
    root = Layout.of(name).root
    assert_gone(root, [])
    monkeypatch.undo()
    with built("half", 1) as lab:  # the same name is free again
        assert status(lab).whole


def test_labs_side_by_side() -> None:
    with built("one", 1) as one, built("two", 1, "plain") as two:
        assert one.port("spark01") != two.port("node01")
        assert ssh(one, "spark01", "echo here >/tmp/mark; sudo -n sh -c 'echo here >/etc/mark'; cat /etc/mark").stdout == "here\n"
        other = ssh(two, "node01", "hostname; cat /tmp/mark /etc/mark")
        assert other.stdout == "node01\n"
        assert not Path("/etc/mark").exists()
        down.clear(one.layout)
        assert ssh(two, "node01", "hostname").stdout == "node01\n"


def test_the_same_name_twice_is_refused_and_harms_nothing() -> None:
    with built("twice", 1) as lab:
        with pytest.raises(LabError, match="is there already"):
            up(lab.layout.name, 1)
        assert ssh(lab, "spark01", "hostname").stdout == "spark01\n"


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    with built("folder", 1, folder=tmp_path) as lab:
        assert lab.layout.root.parent == tmp_path
        assert ssh(lab, "spark01", "hostname").stdout == "spark01\n"
        lab.forward("spark01", "ok")  # by way of a socket in a long path
        assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == [lab.layout.name]
        assert lab.nodes == Lab.open(lab.layout.name, tmp_path).nodes


@pytest.mark.parametrize("name", ["", "../x", "a b", "A", "x" * 25, "-x"])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(LabError, match="lab name"):
        Layout.of(name)


def test_an_awkward_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="overlay"):
        Layout.of("x", tmp_path / "a,b")


def test_without_root_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="root is needed"):
        up(name_for("user"), 1)
    monkeypatch.undo()
    with built("user", 1) as lab:
        assert status(lab).whole
