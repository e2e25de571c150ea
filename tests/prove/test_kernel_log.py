"""`kernel_log`: each kind of trouble, whose it is, what is too old, what cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Code, Evidence, Finding, Reason, Status, Unreadable
from fabrictool.prove import Case, kernel_log
from fabrictool.prove.kernel_window import ago
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.system import journal, sections
from tests.env.sample import BOX, Box, consumers_text
from tests.system.logs import (
    AER,
    CALM,
    CORRECTED,
    FRAMES,
    HUNG,
    LOCKUPS,
    NFS_BACK,
    NFS_LOST,
    NIC,
    OTHER,
    POWER,
    SLOW,
    STAMPS,
    START,
    STORAGE,
    XID_31,
    XID_79,
    oom,
    stamped,
)
from tests.system.nodes import boxes, fleet, log

SCOPE = f"/system.slice/docker-{BOX}.scope"
FOREIGN = f"/system.slice/docker-{OTHER}.scope"
DOWN = "mlx5_core 0000:01:00.0 enp1s0f0np0: Link down\n"
UP = "mlx5_core 0000:01:00.0 enp1s0f0np0: Link up\n"


def judged(case: Case) -> list[Finding]:
    return [s for s in kernel_log.judge(case) if isinstance(s, Finding)]


def at(text: str, *, stamp: str = "journal short-iso", changed: Mapping[str, Captured | None] | None = None, head: str = "",
       tool: str = "journalctl", **spec: Any) -> list[Finding]:
    """What is found on spark01 when its kernel said this."""
    mine = log(text, stamp, **({"head": head} if head else {}), tool=tool)
    found = judged(fleet({"spark01": {journal.NAME: mine, **(changed or {})}}, count=2, **spec))
    assert {f.status for f in found if "spark02" in f.subject.nodes} == {Status.PASS}
    return [f for f in found if "spark01" in f.subject.nodes]


def bad(found: list[Finding]) -> list[tuple[Code, Status]]:
    return [(f.code, f.status) for f in found if f.bad]


def passed(found: list[Finding], path: str) -> str:
    (one,) = [f for f in found if f.path == f"kernel_log.{path}"]
    assert one.status is Status.PASS
    return one.got


def test_calm_nodes_pass_with_evidence() -> None:
    said = list(kernel_log.judge(fleet()))
    found = [s for s in said if isinstance(s, Finding)]
    assert not bad(found)
    assert {f.path for f in found} == {f"kernel_log.{p}" for p in ("oom", "xid", "link", "storage", "server", "hung")}
    assert len(found) == 6 * 4
    assert [s for s in said if isinstance(s, Evidence)] == [Evidence("kernel_log_lines", 40)]


@pytest.mark.parametrize(("text", "code", "status"), [
    (oom(limit=SCOPE), Code.OOM_KILLED, Status.FAIL), (oom(), Code.OOM_KILLED, Status.FAIL),
    (oom(task=FOREIGN), Code.OOM_KILLED, Status.WARN), (oom(task="/"), Code.OOM_KILLED, Status.WARN),
    (XID_79, Code.GPU_XID, Status.FAIL), (XID_31, Code.GPU_XID, Status.WARN),
    (XID_79.replace("79", "63"), Code.GPU_XID, Status.WARN), (XID_79.replace("79", "777"), Code.GPU_XID, Status.WARN),
    ("nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", Code.GPU_XID, Status.FAIL),
    (DOWN, Code.LINK_EVENTS, Status.FAIL), (DOWN + UP, Code.LINK_EVENTS, Status.WARN), ((DOWN + UP) * 5, Code.LINK_EVENTS, Status.FAIL),
    *((text, Code.LINK_EVENTS, Status.FAIL) for text in (*NIC.values(), AER["fatal"], AER["new"], AER["bus"])),
    *((text, Code.LINK_EVENTS, Status.WARN) for text in (*CORRECTED.values(), POWER)),
    (AER["lost"], Code.LINK_EVENTS, Status.FAIL), (AER["lost"].replace(":01:00.0", ":00:09.0"), Code.LINK_EVENTS, Status.WARN),
    *((text, Code.STORAGE_ERROR, Status.FAIL) for text in STORAGE), *((text, Code.STORAGE_TIMEOUT, Status.FAIL) for text in SLOW),
    (NFS_LOST, Code.STORAGE_TIMEOUT, Status.FAIL), (f"{NFS_LOST}\n{NFS_BACK}", Code.STORAGE_TIMEOUT, Status.WARN),
    (HUNG.replace("4101", "4001"), Code.HUNG_TASK, Status.FAIL), (HUNG.replace("4101", "77"), Code.HUNG_TASK, Status.WARN),
    *((text, Code.HUNG_TASK, Status.FAIL) for text in LOCKUPS),
])
def test_one_trouble_is_one_code(text: str, code: Code, status: Status) -> None:
    found = at(CALM + text)
    assert bad(found) == [(code, status)]
    (one,) = [f for f in found if f.bad]
    assert one.why
    assert one.remedy
    assert one.got
    assert len([f for f in found if f.status is Status.PASS]) >= 5


@pytest.mark.parametrize("text", NIC.values())
def test_a_nic_that_the_node_does_not_show_any_more_is_not_called_foreign(text: str) -> None:
    """The very NIC whose errors these are may be gone, and its interface with it: then nothing tells whose address that is."""
    gone: dict[str, Captured | None] = dict.fromkeys(("ports.ip", "ports.net", "ports.links"))
    found = bad(at(CALM + text, changed=gone))
    assert found
    assert {s for _, s in found} <= {Status.UNKNOWN, Status.FAIL}
    foreign = text.replace("0000:01:00.0", "0000:77:00.0").replace("enp1s0f0np0", "eth9")
    assert not bad(at(CALM + foreign))
    assert not bad(at(CALM, changed=gone))


@pytest.mark.parametrize("style", [s for s in STAMPS if s != "plain"])
def test_in_every_form_of_the_log(style: str) -> None:
    head = "clock 1785574800\nuptime 4700.00\nboot 1-2\n" if style.startswith(("dmesg", "kmsg")) else ""
    found = at("Linux version 6.14\n" + CALM + XID_79 + oom(limit=SCOPE), stamp=style, head=head,
               tool="dmesg" if style.startswith("dmesg") else "journalctl")
    assert {c for c, s in bad(found) if s is Status.FAIL} == {Code.GPU_XID, Code.OOM_KILLED}


def test_a_kill_in_another_group_is_not_blamed_on_the_job() -> None:
    others = {sections.CONTAINERS.name: boxes(more=f"c 7 {OTHER} \"/grafana\" \"g:1\" \"sha256:{'ef' * 32}\" \"running\"\n")}
    known = at(oom(task=FOREIGN, limit=FOREIGN), changed=others)
    assert not bad(known)
    assert "not the job's: 1 in container grafana" in passed(known, "oom")
    for group in ("/user.slice/user-1000.slice/session-3.scope", "/system.slice/cron.service", "/"):
        assert not bad(at(oom(task=group, limit=group))), group


def test_whose_a_kill_was_when_the_container_is_gone() -> None:
    gone = {"consumers": Captured(0, consumers_text()), sections.CONTAINERS.name: boxes(status="exited")}
    ended = at(oom(limit=SCOPE), changed=gone)
    assert bad(ended) == [(Code.OOM_KILLED, Status.FAIL)]
    assert "docker:vllm-a" in next(f.got for f in ended if f.bad)
    removed = at(oom(task=FOREIGN, limit=FOREIGN))
    assert bad(removed) == [(Code.OOM_KILLED, Status.WARN)]
    assert "does not know this container" in next(f.why for f in removed if f.bad)
    refused = {sections.CONTAINERS.name: Captured(0, "docker failed 1 permission denied\nend\n"),
               "consumers": Captured(0, consumers_text(docker="docker failed 1 permission denied"))}
    unread = at(oom(limit=SCOPE), changed=refused)
    assert bad(unread) == [(Code.OOM_KILLED, Status.WARN)]
    assert "could not be listed" in next(f.why for f in unread if f.bad)


def test_without_named_consumers_a_kill_warns() -> None:
    env = {"write": [], "consumers": []}
    assert bad(at(oom(limit=SCOPE), env=env)) == [(Code.OOM_KILLED, Status.WARN)]
    assert bad(at(oom(), env=env)) == [(Code.OOM_KILLED, Status.WARN)]


def test_a_service_that_the_spec_names() -> None:
    env = {"write": [], "consumers": ["systemd:vllm"]}
    group = "/system.slice/vllm.service"
    assert bad(at(oom(task=group, limit=group), env=env)) == [(Code.OOM_KILLED, Status.FAIL)]
    assert not bad(at(oom(task="/system.slice/other.service", limit="/system.slice/other.service"), env=env))
    assert not bad(at(oom(limit=SCOPE), env=env))  # a container, and the spec names none


def test_file_system_frames_in_a_kill_are_no_storage_cause() -> None:
    found = at(oom(limit=SCOPE) + FRAMES.format(pid=1, name="x"))
    assert bad(found) == [(Code.OOM_KILLED, Status.FAIL)]
    assert "no I/O error" in passed(found, "storage")
    assert "no disk or file server" in passed(found, "server")


def test_events_of_other_devices_are_not_the_fabrics() -> None:
    management = "igb 0007:01:00.0 enP7s7: NIC Link is Down\nmlx5_core 0009:01:00.0: Port module event[error]: module 0, Cable error, x\n"
    found = at(management)
    assert not bad(found)
    assert "not of the fabric: 0009:01:00.0 1 times; not of the fabric: enP7s7 1 times" in passed(found, "link")


def test_the_function_is_named_and_its_twin_is_not() -> None:
    (one,) = [f for f in at((DOWN + UP) * 5) if f.bad]
    assert (one.subject.function, one.subject.port, one.subject.rail) == ("enp1s0f0np0", "p0", "a")
    (by_pci,) = [f for f in at(NIC["health"].replace("0000:01", "0002:01")) if f.bad]
    assert by_pci.subject.function == "enP2p1s0f0np0"
    assert bad(at((DOWN + UP) * 6, kernel_log={"link_downs": 100})) == [(Code.LINK_EVENTS, Status.WARN)]


def test_the_window_is_the_nodes_own_clock() -> None:
    """The log's last line is 2026-08-01 10:00; a node whose clock stands two days later sees it as old."""
    late = f"clock {int(START + 172_800)}\nuptime 900000.00\nboot 1-2\n"
    found = at(XID_79 + oom(limit=SCOPE) + DOWN + NFS_LOST + HUNG + next(iter(STORAGE)), head=late)
    assert not bad(found)
    assert "older: 1, the last 2 days ago" in passed(found, "xid")
    assert bad(at(XID_79, head=late, kernel_log={"hours": 72})) == [(Code.GPU_XID, Status.FAIL)]
    ahead = f"clock {int(START - 7200)}\nuptime 900000.00\nboot 1-2\n"
    assert bad(at(XID_79, head=ahead)) == [(Code.GPU_XID, Status.FAIL)]


def test_links_that_come_up_one_by_one_after_a_boot_do_not_flap() -> None:
    fresh = f"clock {int(START + 60)}\nuptime 120.00\nboot 1-2\n"
    assert not bad(at((DOWN + UP) * 6, head=fresh))
    assert "since it booted" in passed(at(CALM, head=fresh), "oom")


def test_a_log_that_lost_its_beginning_proves_nothing_and_still_accuses() -> None:
    lost = Captured(0, f"clock 1785574800\nuptime 90000.50\nboot 1-2\nlog dmesg\n{stamped(CALM + XID_79, 'dmesg iso')}rc 0\nend\n")
    found = [f for f in judged(fleet({"spark01": {journal.NAME: lost}}, count=2)) if "spark01" in f.subject.nodes]
    assert (Code.GPU_XID, Status.FAIL) in bad(found)
    unknown = {f.path.partition(".")[2] for f in found if f.status is Status.UNKNOWN}
    assert unknown == {"oom", "link", "storage", "server", "hung"}
    assert all("goes back no further than" in f.why for f in found if f.status is Status.UNKNOWN)


def test_what_cannot_be_read_is_unknown() -> None:
    for got, code in ((Captured(1, "", denied=True), Code.NEEDS_ROOT), (Captured(127, "", "dmesg: not found"), Code.TOOL_MISSING),
                      (Captured(124, ""), Code.TOOL_TIMEOUT), (None, Code.UNREADABLE)):
        found = [f for f in judged(fleet({"spark01": {journal.NAME: got}}, count=2)) if "spark01" in f.subject.nodes]
        assert [(f.path, f.status, f.code) for f in found] == [("kernel_log.read", Status.UNKNOWN, code)]
    dead = Case(fleet(count=1).wants, {"spark01": Snapshot("spark01", error=Unreadable(Reason.UNREACHABLE, "no route"))})
    assert [(f.status, f.code) for f in judged(dead)] == [(Status.UNKNOWN, Code.UNREACHABLE)]


def test_many_events_are_one_finding() -> None:
    found = at("".join(oom(pid=n, limit=SCOPE) for n in range(4001, 4009)))
    (one,) = [f for f in found if f.bad]
    assert "8 times, the last" in one.got
    assert len({f.id for f in found}) == len(found)


@pytest.mark.parametrize(("seconds", "text"), [(None, "does not tell"), (5, "5 s ago"), (60, "1 min ago"), (7200, "2 h ago"),
                                               (200_000, "2 days ago"), (-3, "future")])
def test_ages(seconds: float | None, text: str) -> None:
    assert text in ago(seconds)


TROUBLED = CALM + oom(limit=SCOPE) + XID_79 + (DOWN + UP) * 5 + next(iter(STORAGE)) + "\n" + NFS_LOST + "\n" + LOCKUPS[0] + "\n"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 9000), st.integers(0, 255), st.text(max_size=120))
def test_damage_never_raises_and_a_cut_section_never_passes(at_: int, byte: int, text: str) -> None:
    whole = log(TROUBLED).out
    for damaged in (whole[:at_], text + whole, text):
        found = judged(fleet({"spark01": {journal.NAME: Captured(0, damaged)}}, count=1))
        if damaged != whole and not damaged.endswith("\nend\n"):
            assert [f.status for f in found] == [Status.UNKNOWN]
    flipped = whole[:at_] + chr(byte) + whole[at_ + 1:]
    assert judged(fleet({"spark01": {journal.NAME: Captured(0, flipped)}}, count=1))
    assert Box().pid == 4001
