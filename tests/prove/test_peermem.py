"""GPUDirect's kernel side in the check `rails`: peer memory, distance, ACS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fabrictool.model import Code, Status
from fabrictool.prove import Case
from fabrictool.snapshot import Captured
from fabrictool.system import sections
from tests.prove.fleets import h20s, sparks
from tests.prove.snaps import changed
from tests.prove.test_rails import bad, judged
from tests.system.nodes import END_FILE, host
from tests.system.texts import ACS_OFF, ACS_ON, DRIVER_H20, LINKS_GPU, LINKS_NIC, PEERMEM, TOPO_H20


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
    """A virtual machine: its GPUs hang on the root, and lspci lists no bridge."""
    flat = re.sub(r"/sys/devices/pci\S+/", "/sys/devices/pci0000:00/", LINKS_GPU)
    found = judged(h20({sections.BRIDGES.name: Captured(0, ""), sections.PCI_PATHS.name: Captured(0, flat)}))
    assert not [f for f in found if f.bad]
    assert {f.got for f in found if f.path == "rails.acs" and f.subject.nodes == ("gpu01",)} == {"no PCIe bridge is shared with a GPU"}


def test_bridges_of_which_lspci_says_nothing_may_redirect() -> None:
    """The kernel shows bridges between NIC and GPU: an lspci that lists none of them, or only some, proves nothing of the others."""
    for text, count in (("", 8), (ACS_OFF[:len(ACS_OFF) // 2], 4)):
        found = [f for f in judged(h20({sections.BRIDGES.name: Captured(0, text)})) if f.bad]
        assert {(f.path, f.status) for f in found} == {("rails.acs", Status.UNKNOWN)}
        assert len(found) == count


def test_gpudirect_is_not_asked_of_unified_memory() -> None:
    skipped = [f for f in judged(sparks(2).case()) if f.path == "rails.gpudirect"]
    assert {f.status for f in skipped} == {Status.SKIP}
