"""`rails` and `gids`: rooms' findings told once, PCIe speed, GPUDirect, and a NIC that is slow for no visible reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fabrictool.model import Code, Evidence, Finding, Reason, Status, SubjectKind, Unproven, Unreadable
from fabrictool.prove import Case, gids, rails
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.system import sections
from tests.env.sample import Spark
from tests.prove.fleets import h20s, sparks
from tests.prove.recordings import Fleet
from tests.system.nodes import END_FILE, host
from tests.system.texts import ACS_OFF, ACS_ON, DRIVER_H20, LINKS_GPU, LINKS_NIC, PEERMEM, TOPO_H20

ROW = "   268435456      67108864     float     sum      -1  {t:.1f}  {a:.2f}  {b:.2f}       0  {t:.1f}  {a:.2f}  {b:.2f}       0"


def slow(fleet: Fleet, busbw: float) -> Fleet:
    """The same bytes at another bus bandwidth, decimal GB/s."""
    ranks = len(fleet.hosts)
    algorithm = busbw * ranks / (2 * (ranks - 1))
    fleet.row = ROW.format(t=268_435_456 / algorithm / 1e3, a=algorithm, b=busbw)
    fleet.rows = {}
    return fleet


def judged(case: Case) -> list[Finding]:
    return [s for s in rails.judge(case) if isinstance(s, Finding)]


def bad(case: Case) -> list[tuple[str, Code, Status]]:
    return [(f.path, f.code, f.status) for f in judged(case) if f.bad]


def changed(case: Case, node: str, texts: Mapping[str, Captured | None]) -> Case:
    mine = {**case.snaps[node].sections, **texts}
    kept = {k: v for k, v in mine.items() if v is not None}
    return replace(case, snaps={**case.snaps, node: replace(case.snaps[node], sections=kept)})


def edited(case: Case, node: str, section: str, old: str, new: str) -> Case:
    got = case.snaps[node].sections[section]
    assert old in got.out
    return changed(case, node, {section: replace(got, out=got.out.replace(old, new))})


def test_a_healthy_fleet_passes() -> None:
    said = list(rails.judge(sparks(4).case()))
    found = [s for s in said if isinstance(s, Finding)]
    assert not [f for f in found if f.bad]
    assert all(f.path.startswith("rails.") for f in found)
    assert {f.path for f in found if f.status is Status.PASS} >= {
        "rails.ports.pcie", "rails.ports.same_port", "rails.link.speed", "rails.rdma.rate", "rails.rdma.state", "rails.measured"}
    measured = [f for f in found if f.path == "rails.measured"]
    assert len(measured) == 8
    assert {f.got for f in measured} == {"91.5 Gb/s"}
    assert [s for s in said if isinstance(s, Evidence)] == [Evidence("slowest_function_gbit_per_s", 91.5)]
    assert not [s for s in said if isinstance(s, Unproven)]


def test_a_slow_nic_in_a_ring_slows_all_and_is_told_as_such() -> None:
    case = slow(sparks(4), 3.25).case()  # 13 Gb/s on each function
    assert bad(case) == [("rails.measured", Code.NIC_DEGRADED, Status.FAIL)]
    (one,) = [f for f in judged(case) if f.bad]
    assert one.subject.kind is SubjectKind.FLEET
    assert "13.0 Gb/s on every rail" in one.got
    assert "--limit" in one.remedy


@pytest.mark.parametrize(("busbw", "degraded"), [(22.9, False), (11.4, False), (6.4, False), (6.2, True), (3.25, True), (2.0, True)])
def test_the_band(busbw: float, degraded: bool) -> None:
    assert (Code.NIC_DEGRADED in {c for _, c, _ in bad(slow(sparks(2), busbw).case())}) is degraded


def test_one_rail_that_carries_little_is_named() -> None:
    fleet = slow(sparks(4), 11.4)
    for run in (*fleet.facts.runs, "default"):
        for node in fleet.wants:
            fleet.flow(run, node, "roceP2p1s0f0").tx //= 6
    (one,) = [f for f in judged(fleet.case()) if f.bad]
    assert (one.code, one.subject.kind, one.subject.rail) == (Code.NIC_DEGRADED, SubjectKind.RAIL, "b")


def test_one_function_of_one_node_is_named() -> None:
    fleet = slow(sparks(4), 11.4)
    for run in fleet.facts.runs:
        fleet.flow(run, "spark03", "rocep1s0f0").tx //= 6
    found = [f for f in judged(fleet.case()) if f.bad]
    assert [(f.code, f.subject.nodes, f.subject.function) for f in found] == [(Code.NIC_DEGRADED, ("spark03",), "enp1s0f0np0")]


def test_a_slow_function_with_a_narrow_slot_has_its_own_cause() -> None:
    case = slow(sparks(2), 3.25).case()
    for node in case.wants:
        for interface in ("enp1s0f0np0", "enP2p1s0f0np0"):
            case = edited(case, node, "ports.net", f"{interface}/device/current_link_width:4", f"{interface}/device/current_link_width:1")
    assert {c for _, c, _ in bad(case)} == {Code.PCIE_WIDTH}


def test_without_a_run_nothing_is_said_of_a_degraded_nic() -> None:
    fleet = sparks(2)
    for case in (replace(fleet.case(), recordings={}), slow(sparks(2), 3.25).case()):
        only = replace(case, recordings={k: replace(r, error=Unreadable(Reason.FAILED, "x")) for k, r in case.recordings.items()})
        said = list(rails.judge(only))
        assert [s.text for s in said if isinstance(s, Unproven)] == [rails.NOT_SHOWN]
        assert not [s for s in said if isinstance(s, Finding) and s.bad]
    fleet.put("run1", "spark01", "rank[0]", Captured(137, ""))
    for run in ("run2", "run3"):
        fleet.put(f"{run}.after", "spark02", "counters.rdma[rocep1s0f0]", None)
        fleet.put(f"{run}.after", "spark02", "counters.ethtool[enp1s0f0np0]", None)
    texts = [s.text for s in rails.judge(fleet.case()) if isinstance(s, Unproven)]
    assert texts == [f"{rails.NOT_SHOWN}; the recorded runs do not tell what each function carried"]


def test_sockets_carry_no_rdma_and_prove_nothing() -> None:
    fleet = slow(sparks(2), 3.25)
    for run in (*fleet.facts.runs, "default"):
        for node in fleet.wants:
            for device in fleet.rails:
                fleet.flow(run, node, device).tx = fleet.flow(run, node, device).rx = 0
    said = list(rails.judge(fleet.case()))
    assert not [s for s in said if isinstance(s, Finding) and s.code is Code.NIC_DEGRADED]
    assert any("no RDMA bytes" in s.text for s in said if isinstance(s, Unproven))


def test_what_the_rooms_find_is_told_here_too() -> None:
    case = edited(sparks(2).case(), "spark02", "ports.net", "enp1s0f0np0/speed:200000", "enp1s0f0np0/speed:100000")
    assert ("rails.link.speed", Code.LINK_SPEED, Status.FAIL) in bad(case)
    width = "enp1s0f0np0/device/current_link_width:"
    narrow = edited(sparks(2).case(), "spark02", "ports.net", f"{width}4", f"{width}2")
    assert [(p, c) for p, c, _ in bad(narrow)] == [("rails.ports.pcie", Code.PCIE_WIDTH)]


@pytest.mark.parametrize(("now", "most", "status"), [("8.0", "32.0", Status.FAIL), ("32.0", "64.0", Status.WARN), ("32.0", "32.0", None)])
def test_pcie_speed(now: str, most: str, status: Status | None) -> None:
    at = "/sys/class/net/enp1s0f0np0/device/"
    case = edited(sparks(2).case(), "spark01", "ports.net", f"{at}current_link_speed:32.0 GT/s PCIe",
                  f"{at}current_link_speed:{now} GT/s PCIe\n{at}max_link_speed:{most} GT/s PCIe")
    assert [(p, c, s) for p, c, s in bad(case)] == ([("rails.pcie_speed", Code.PCIE_WIDTH, status)] if status else [])


def test_an_unreachable_node_is_unknown() -> None:
    case = sparks(2).case()
    lost = replace(case, snaps={**case.snaps, "spark02": Snapshot("spark02", error=Unreadable(Reason.UNREACHABLE, "no route"))})
    assert {s for p, _, s in bad(lost)} == {Status.UNKNOWN}


# GPUDirect

def h20(texts: Mapping[str, Captured | None] | None = None, **gpu: Any) -> Case:
    """Two H20 nodes whose system sections are healthy but for `texts` on gpu01."""
    case = h20s().case()
    wants = {n: replace(w, gpu=replace(w.gpu, **gpu)) if w.gpu else w for n, w in case.wants.items()}
    healthy: dict[str, Captured | None] = {
        sections.HOST_FACTS.name: host(), sections.DRIVER.name: Captured(0, DRIVER_H20 + END_FILE),
        sections.MODULES.name: Captured(0, PEERMEM + END_FILE), sections.TOPOLOGY.name: Captured(0, TOPO_H20),
        sections.BRIDGES.name: Captured(0, ACS_OFF), sections.PCI_PATHS.name: Captured(0, LINKS_GPU), "ports.links": Captured(0, LINKS_NIC)}
    for node in case.wants:
        mine = {**healthy, **(texts or {})} if node == "gpu01" else healthy
        links = case.snaps[node].sections["ports.links"].out
        kept = "".join(f"{ln}\n" for ln in links.splitlines() if "/infiniband/" not in ln and "/exe" not in ln)
        mine = {**mine, "ports.links": Captured(0, kept + LINKS_NIC)}
        case = changed(case, node, mine)
    return replace(case, wants=wants)


def test_gpudirect_where_all_is_well() -> None:
    found = judged(h20())
    assert not [f for f in found if f.bad]
    assert next(f.got for f in found if f.path == "rails.gpudirect") == "nvidia_peermem"
    near = [f for f in found if f.path == "rails.affinity"]
    assert len(near) == 16
    assert {f.got for f in near if f.subject.function == "ens0np0"} == {"GPU0 is near (PIX)"}
    assert {f.got for f in found if f.path == "rails.acs"} == {"none on 1 ways to GPUs"}


NO_MODULE = {sections.MODULES.name: Captured(0, END_FILE)}
CLOSED = {sections.DRIVER.name: Captured(0, DRIVER_H20.replace("Open Kernel Module for x86_64", "x86_64 Kernel Module") + END_FILE)}


@pytest.mark.parametrize(("texts", "path", "status", "required"), [
    ({**NO_MODULE, **CLOSED}, "rails.gpudirect", Status.FAIL, "required"),
    ({**NO_MODULE, **CLOSED}, "rails.gpudirect", Status.WARN, "preferred"),
    ({sections.MODULES.name: Captured(0, PEERMEM.replace("live", "coming") + END_FILE), **CLOSED}, "rails.gpudirect", Status.FAIL,
     "required"),
    ({**NO_MODULE, sections.HOST_FACTS.name: host("5.4.0-150-generic")}, "rails.gpudirect", Status.FAIL, "required"),
    ({sections.TOPOLOGY.name: Captured(0, TOPO_H20.replace("NIC0\tPIX", "NIC0\tSYS"))}, "rails.affinity", Status.FAIL, "required"),
    ({sections.TOPOLOGY.name: Captured(0, TOPO_H20.replace("NIC0\tPIX", "NIC0\tPHB"))}, "rails.affinity", Status.WARN, "required"),
    ({sections.BRIDGES.name: Captured(0, ACS_ON)}, "rails.acs", Status.FAIL, "required"),
    ({sections.BRIDGES.name: Captured(0, ACS_ON)}, "rails.acs", Status.WARN, "preferred"),
])
def test_gpudirect_hindered(texts: Mapping[str, Captured | None], path: str, status: Status, required: str) -> None:
    found = bad(h20(texts, gpudirect=required))
    assert set(found) == {(path, Code.PEER_MEMORY, status)}
    assert not bad(h20(texts, gpudirect="none"))


def test_dmabuf_is_enough() -> None:
    found = judged(h20(NO_MODULE))
    assert not [f for f in found if f.bad]
    assert any("dma-buf: open kernel modules" in f.got for f in found)


@pytest.mark.parametrize(("texts", "path", "code"), [
    ({sections.TOPOLOGY.name: Captured(127, "", "not found")}, "rails.affinity", Code.TOOL_MISSING),
    ({sections.TOPOLOGY.name: Captured(0, "nothing\n")}, "rails.affinity", Code.UNREADABLE),
    ({sections.TOPOLOGY.name: Captured(0, TOPO_H20.replace("NIC0\tPIX", "NIC0\tP?X"))}, "rails.affinity", Code.UNREADABLE),
    ({sections.BRIDGES.name: Captured(127, "", "lspci: not found")}, "rails.acs", Code.TOOL_MISSING),
    ({sections.BRIDGES.name: Captured(0, ACS_OFF.replace("[220 v1] Access Control Services", "<access denied>"))}, "rails.acs",
     Code.NEEDS_ROOT),
    ({sections.PCI_PATHS.name: Captured(0, LINKS_GPU.replace("/proc/self/exe", "/x"))}, "rails.acs", Code.UNREADABLE),
    ({sections.MODULES.name: Captured(0, "")}, "rails.gpudirect", Code.UNREADABLE),
    ({sections.MODULES.name: None}, "rails.gpudirect", Code.UNREADABLE),
])
def test_gpudirect_unread(texts: Mapping[str, Captured | None], path: str, code: Code) -> None:
    closed = {**texts, **CLOSED} if path == "rails.gpudirect" and sections.MODULES.name in texts else texts
    found = bad(h20(closed))
    assert (path, code, Status.UNKNOWN) in found
    assert {s for _, _, s in found} == {Status.UNKNOWN}


def test_a_machine_without_bridges_has_no_acs() -> None:
    bare = {sections.BRIDGES.name: Captured(0, "")}
    assert not bad(h20(bare))


def test_gpudirect_is_not_asked_of_unified_memory() -> None:
    skipped = [f for f in judged(sparks(2).case()) if f.path == "rails.gpudirect"]
    assert {f.status for f in skipped} == {Status.SKIP}


# gids

def gids_bad(case: Case) -> list[tuple[str, Code, Status]]:
    return [(f.path, f.code, f.status) for f in gids.judge(case) if f.bad]


def test_gids_pass_where_the_automatic_choice_finds_them() -> None:
    case = gid_case(Spark())
    found = list(gids.judge(case))
    assert not [f for f in found if f.bad]
    assert {f.path for f in found if f.status is Status.PASS} >= {"gids.rdma.gid", "gids.rdma.device", "gids.pinned"}


def gid_case(spark: Spark) -> Case:
    case = sparks(2).case()
    for node, mine in (("spark01", spark), ("spark02", Spark())):
        case = changed(case, node, {k: v for k, v in mine.snapshot().sections.items() if k.startswith(("env.", "consumers"))})
    return case


def test_no_gid_and_a_pinned_gid() -> None:
    case = gid_case(Spark())
    gone = changed(case, "spark01", {"rdma.gids[rocep1s0f0]": Captured(0, "end of GIDs\n")})
    assert gids_bad(gone) == [("gids.rdma.gid", Code.NO_ROCEV2_GID, Status.FAIL)]
    pinned = gid_case(Spark(files={"/etc/nccl.conf": "NCCL_IB_GID_INDEX=3\n"}))
    assert Code.GID_PINNED in {c for _, c, _ in gids_bad(pinned)}
    assert "gids.pinned" not in {f.path for f in gids.judge(pinned) if "spark01" in f.subject.nodes}


def test_other_findings_of_the_rooms_are_not_gids() -> None:
    case = edited(gid_case(Spark()), "spark01", "rdma.port[rocep1s0f0]", "200 Gb/sec", "100 Gb/sec")
    assert not gids_bad(case)
    drift = gid_case(Spark(files={"/etc/nccl.conf": "NCCL_IB_TC=1\n"}))
    assert not gids_bad(drift)


def test_a_place_that_cannot_be_read_may_pin_one() -> None:
    case = changed(gid_case(Spark()), "spark01", {"env.places": Captured(1, "", denied=True)})
    assert gids_bad(case) == [("gids.env.lint.places", Code.NEEDS_ROOT, Status.UNKNOWN)]
    assert "gids.pinned" not in {f.path for f in gids.judge(case) if "spark01" in f.subject.nodes}
