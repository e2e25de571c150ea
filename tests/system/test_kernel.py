"""Kernel messages as events: each kind, and for each a message that looks like it and is none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.system.cgroup import owner
from fabrictool.system.events import Device, Event, Hung, Link, Oom, Server, Trouble, Xid
from fabrictool.system.kernel import read
from fabrictool.system.xid import TABLE, Weight, meaning
from tests.system.logs import (
    AER,
    BOX,
    CALM,
    CORRECTED,
    HUNG,
    LOCKUPS,
    NFS_BACK,
    NFS_LOST,
    NIC,
    OLD_OOM,
    OTHER,
    POD,
    POWER,
    SLOW,
    STAMPS,
    STORAGE,
    XID_31,
    XID_79,
    oom,
    stamped,
)

SCOPE = f"/system.slice/docker-{BOX}.scope"


def one(text: str) -> Event:
    found = read(text)
    assert len(found) == 1, [(type(e).__name__, e.line.text) for e in found]
    return found[0]


def test_a_calm_log_has_no_trouble() -> None:
    assert [type(e) for e in read(CALM)] == [Link, Server]
    assert all(e.up if isinstance(e, Link) else isinstance(e, Server) and e.back for e in read(CALM))


@pytest.mark.parametrize("style", STAMPS)
def test_a_container_that_met_its_limit(style: str) -> None:
    kill = one(stamped(oom(limit=SCOPE), style))
    assert isinstance(kill, Oom)
    assert (kill.process, kill.pid) == ("python3", 4101)
    assert kill.scope is not None
    assert kill.scope.container == BOX
    assert kill.victim == kill.scope
    assert "Killed process" in kill.line.raw


def test_the_node_itself_had_no_memory_left() -> None:
    kill = one(oom())
    assert isinstance(kill, Oom)
    assert kill.scope is None
    assert kill.whose is not None
    assert kill.whose.container == BOX


def test_the_limit_may_be_a_parents() -> None:
    pod = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD.replace('-', '_')}.slice"
    kill = one(oom(task=f"{pod}/cri-containerd-{BOX}.scope", limit=pod))
    assert isinstance(kill, Oom)
    assert kill.scope is not None
    assert kill.victim is not None
    assert (kill.scope.pod, kill.scope.container) == (POD, "")
    assert (kill.victim.pod, kill.victim.container) == (POD, BOX)


def test_file_system_frames_of_a_kill_are_no_storage_trouble() -> None:
    assert [type(e) for e in read(oom(limit=SCOPE) + oom(pid=77))] == [Oom, Oom]


def test_old_kernels_say_it_in_other_words() -> None:
    kill = one(OLD_OOM)
    assert isinstance(kill, Oom)
    assert (kill.process, kill.pid) == ("ray::Worker", 4102)
    assert kill.whose is not None
    assert kill.whose.container == BOX
    global_kill = one("Out of memory: Kill process 7 (a) score 900 or sacrifice child\nKilled process 7 (a) total-vm:1kB, anon-rss:0kB\n")
    assert isinstance(global_kill, Oom)
    assert global_kill.scope is None


def test_two_kills_at_once_keep_their_own_groups() -> None:
    rows = (oom(limit=SCOPE) + oom("ray", 55, f"/docker/{OTHER}", f"/docker/{OTHER}")).splitlines()
    facts = [r for r in rows if r.startswith("oom-kill:")]
    killed = [r for r in rows if "Killed process" in r]
    found = read("\n".join((*facts, *reversed(killed))))
    assert {(e.pid, e.victim.container) for e in found if isinstance(e, Oom) and e.victim} == {(4101, BOX), (55, OTHER)}


def test_half_of_a_kill() -> None:
    rows = oom(limit=SCOPE).splitlines()
    only_killed = one(next(r for r in rows if "Killed process" in r))
    assert isinstance(only_killed, Oom)
    assert only_killed.victim is None
    assert only_killed.scope is not None  # some limit, and not the node's memory
    only_facts = one(next(r for r in rows if r.startswith("oom-kill:")))
    assert isinstance(only_facts, Oom)
    assert only_facts.victim is not None
    cut = next(r for r in rows if r.startswith("oom-kill:"))
    assert all(not read(cut[:n]) for n in range(len(cut)))
    strange = one(oom(name="a,pid=1 (x)", pid=9, limit=SCOPE))
    assert isinstance(strange, Oom)
    assert strange.pid == 9


@pytest.mark.parametrize(("path", "shown"), [
    (SCOPE, f"container {BOX[:12]}"), (f"/docker/{BOX}", f"container {BOX[:12]}"), ("/machine.slice/libpod-" + BOX + ".scope/container",
                                                                                   f"container {BOX[:12]}"),
    (f"/kubepods/burstable/pod{POD}/{BOX}", f"container {BOX[:12]} of pod {POD}"), (f"/kubepods/besteffort/pod{POD}", f"pod {POD}"),
    ("/system.slice/vllm.service", "vllm.service"), ("/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope", "run-1.scope"),
    ("/", "no cgroup of its own"), ("/init", "cgroup /init"), ("/docker/" + "ab" * 20, "cgroup /docker/" + "ab" * 20),
])
def test_whose_a_control_group_is(path: str, shown: str) -> None:
    assert str(owner(path)) == shown


def test_xid() -> None:
    dead, fault = one(XID_79), one(XID_31)
    assert isinstance(dead, Xid)
    assert (dead.number, dead.pci, dead.pid, dead.process) == (79, "000f:01:00", None, "")
    assert isinstance(fault, Xid)
    assert (fault.number, fault.pci, fault.pid, fault.process) == (31, "0000:41:00", 12345, "python3")
    old = one("NVRM: Xid (0000:03:00): 13, Graphics Exception: ESR 0x404600=0x80000002")
    assert isinstance(old, Xid)
    assert old.number == 13
    switch = one("nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)")
    assert isinstance(switch, Xid)
    assert (switch.switch, switch.fatal, switch.number) == (True, False, 12028)
    assert not read("NVRM: nvidia-smi prints Xid 79 in its manual")


def test_the_table_of_xids() -> None:
    assert {n for n, m in TABLE.items() if m.weight is Weight.FATAL} >= {48, 62, 64, 74, 79, 95, 119, 120}
    assert {meaning(n).weight for n in (13, 31, 43, 45)} == {Weight.PROGRAM}
    assert {meaning(n).weight for n in (61, 63, 92, 94, 9999)} == {Weight.NOTE}
    assert all(m.text and m.fix for m in (*TABLE.values(), meaning(9999)))


@pytest.mark.parametrize(("text", "interface", "pci", "up"), [
    ("mlx5_core 0000:01:00.0 enp1s0f0np0: Link down", "enp1s0f0np0", "0000:01:00.0", False),
    ("mlx5_core 0000:01:00.0 enp1s0f0np0: Link up", "enp1s0f0np0", "0000:01:00.0", True),
    ("bnxt_en 0000:3b:00.0 ens1f0np0: NIC Link is Down", "ens1f0np0", "0000:3b:00.0", False),
    ("r8169 0002:01:00.0 enP2p1s0: Link is Up - 10Gbps/Full - flow control off", "enP2p1s0", "0002:01:00.0", True),
    ("bond0: (slave ens1f0np0): link status definitely down, disabling slave", "ens1f0np0", "", False),
    ("bonding: bond0: link status definitely down for interface eth4, disabling it", "eth4", "", False),
    ("mlx5_core 0000:01:00.0: Port module event: module 0, Cable unplugged", "", "0000:01:00.0", False),
    ("mlx5_core 0000:01:00.0: Port module event: module 0, Cable plugged", "", "0000:01:00.0", True),
])
def test_links(text: str, interface: str, pci: str, up: bool) -> None:
    got = one(text)
    assert isinstance(got, Link)
    assert (got.interface, got.pci, got.up) == (interface, pci, up)


@pytest.mark.parametrize("text", ["IPv6: ADDRCONF(NETDEV_UP): eth0: link is not ready", "ata1: SATA link down (SStatus 0 SControl 300)",
                                  "vllm: the Link is Downstream", "see mlx5_core 0000:01:00.0 enp1s0f0np0: Link down"])
def test_what_only_looks_like_a_link(text: str) -> None:
    assert not read(text)


def test_devices() -> None:
    for text in NIC.values():
        got = one(text)
        assert isinstance(got, Device), text
        assert got.trouble is Trouble.NIC
        assert got.device == "0000:01:00.0" or got.interface == "enp1s0f0np0"
    for table, trouble in ((AER, Trouble.PCIE), (CORRECTED, Trouble.PCIE_CORRECTED), ({"power": POWER}, Trouble.NIC_POWER)):
        for text in table.values():
            got = one(text)
            assert isinstance(got, Device), text
            assert (got.trouble, got.device) == (trouble, "0000:01:00.0")
    for names, trouble in ((STORAGE, Trouble.STORAGE), (SLOW, Trouble.STORAGE_SLOW)):
        for text, device in names.items():
            got = one(text)
            assert isinstance(got, Device), text
            assert (got.trouble, got.device) == (trouble, device)


def test_servers_and_hung_tasks() -> None:
    lost, back = read(f"{NFS_LOST}\n{NFS_BACK}\n")
    assert isinstance(lost, Server)
    assert isinstance(back, Server)
    assert (lost.server, lost.back, back.back) == ("10.9.0.5", False, True)
    for text in ("CIFS: VFS: \\\\nas1 has not responded in 180 seconds. Reconnecting...", "nfs: server nas1 not responding, timed out",
                 "rpcrdma: connection to 10.9.0.5:20049 closed (-103)"):
        got = one(text)
        assert isinstance(got, Server)
        assert not got.back
    task = one(HUNG)
    assert isinstance(task, Hung)
    assert (task.process, task.pid, task.seconds, task.lockup) == ("python3", 4101, 122, False)
    for text in LOCKUPS:
        got = one(text)
        assert isinstance(got, Hung)
        assert got.lockup


EVERYTHING = "\n".join((oom(limit=SCOPE), OLD_OOM, XID_79, XID_31, *NIC.values(), POWER, *AER.values(), *CORRECTED.values(), *STORAGE,
                        *SLOW, NFS_LOST, NFS_BACK, HUNG, *LOCKUPS, CALM))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(STAMPS)), st.integers(0, 12000), st.integers(0, 255), st.text(max_size=200))
def test_damage_raises_nothing_and_invents_nothing(style: str, at: int, byte: int, text: str) -> None:
    whole = stamped(EVERYTHING, style)
    flipped = whole[:at] + chr(byte) + whole[at + 1:]
    known = {e.line.text for e in read(whole)}
    for damaged in (whole[:at], flipped, whole.replace("\n", "\r\n"), text + whole, whole + text):
        found = read(damaged)
        assert len({e.line.text for e in found} - known) <= 2
    read(text)


def test_long_lines_of_hostile_text_are_read_at_once() -> None:
    for part in ("oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/,task=", ",task=a,pid=1", "mlx5_core 0000:01:00.0: a.b:", "[ ",
                 "BTRFS error (", "INFO: task a:1 ", "Lustre: a: Connection to b ", "pcieport 0000:00:01.0: AER: Corrected error "):
        assert len(read("x\n" + part * 3000)) <= 1
        assert len(read("\n".join([part * 60] * 300))) <= 300
