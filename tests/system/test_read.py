"""Readers of versions, GPUs, topology and PCIe: real captures, other spellings, and damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.model import Absent, Reason, Unreadable, Value
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.system import facts, pci, peermem, read, sections, topology
from fabrictool.system.containers import read as boxes
from fabrictool.system.contents import read as contents
from fabrictool.system.processes import read as processes
from tests.specs import node_spec
from tests.system.nodes import DRIVER, END_FILE, gpu, healthy, host, nic, process
from tests.system.nodes import boxes as boxes_text
from tests.system.texts import ACS_OFF, ACS_ON, DRIVER_H20, LINKS_GPU, LINKS_NIC, PEERMEM, TOPO_H20

CAPTURES = Path(__file__).resolve().parents[1] / "captures" / "nvidia-smi"


def snap(**texts: str | Captured) -> Snapshot:
    """`gpu="..."`: the section system.gpu exited 0 and said that."""
    return Snapshot("n1", {f"system.{k}": v if isinstance(v, Captured) else Captured(0, v) for k, v in texts.items()})


def test_the_real_nvidia_smi() -> None:
    for name in ("performance.txt", "h200x2.txt"):
        assert read.cuda(snap(cuda=(CAPTURES / name).read_text(encoding="utf-8"))) == Value("13.0")
    text = "".join(f"/proc/driver/nvidia/version:{ln}\n" for ln in (CAPTURES / "driver.txt").read_text(encoding="utf-8").splitlines())
    assert read.driver(snap(driver=text + END_FILE)) == Value(read.Driver("580.159.04", True))
    assert topology.parse((CAPTURES / "topo-one-gpu.txt").read_text(encoding="utf-8")) == topology.Topology({})
    real = (CAPTURES / "query.txt").read_text(encoding="utf-8").splitlines()
    columns, cells = real[0].split(", "), real[1].split(", ")
    named = {c.partition(" ")[0]: v for c, v in zip(columns, cells, strict=True)}
    asked = sections.GPU.shell.partition("--query-gpu=")[2].partition(" ")[0].split(",")
    row = ", ".join(named[n] for n in asked)
    (one,) = gpus_of(row + "\nend\n")
    assert (one.name, one.bus, one.driver, one.vbios) == ("NVIDIA H200", "00000000:00:06.0", Value("580.159.04"), Value("96.00.A5.00.1A"))
    assert (one.mig, one.ecc, one.power_limit) == (Value("Disabled"), Value("Enabled"), Value("700.00 W"))


def gpus_of(text: str) -> tuple[read.Gpu, ...]:
    found = read.gpus(snap(gpu=text))
    assert isinstance(found, Value), found
    return found.value


def test_na_is_no_value() -> None:
    (one,) = gpus_of(gpu().out)
    assert all(isinstance(x, Absent) for x in (one.mig, one.ecc, one.power_limit))
    (two,) = gpus_of(gpu().out.replace("[N/A]", "[Not Supported]"))
    assert isinstance(two.mig, Absent)


def test_a_driver_that_does_not_answer() -> None:
    assert read.gpus(snap(gpu=Captured(6, "No devices were found\n"))) == Absent("a GPU (nvidia-smi finds none)")
    failed = read.gpus(snap(gpu=Captured(9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")))
    assert isinstance(failed, Unreadable)
    assert failed.reason is Reason.FAILED
    unknown_field = read.gpus(snap(gpu=Captured(2, 'Field "power.limit" is not a valid field to query.\n')))
    assert isinstance(unknown_field, Unreadable)
    assert read.driver(snap(driver=END_FILE)) == Absent("NVIDIA's kernel module (it is not loaded)")
    assert read.driver(snap(driver=DRIVER + END_FILE)) == Value(read.Driver("580.159.04", True))
    closed = DRIVER_H20.replace("Open Kernel Module for x86_64", "x86_64 Kernel Module")
    assert read.driver(snap(driver=closed + END_FILE)) == Value(read.Driver("580.159.04", False))


def test_packages_and_libraries() -> None:
    packages = "rdma-core 50.0-2 installed\nlibnccl2:amd64 2.28.9-1+cuda13.0 installed\nlibibverbs1 50.0-2 deinstall\nend\n"
    seen = snap(packages=packages, libraries="/usr/lib/libnccl.so.2 -> /opt/nccl/libnccl.so.2.27.3\nend\n")
    assert read.package(seen, "rdma-core") == Value("50.0-2")
    assert read.package(seen, "libibverbs1") == Absent("package libibverbs1")
    assert read.nccl(seen) == Value("2.27.3")
    bare = snap(packages=packages, libraries="/usr/lib/libnccl.so.2 -> /usr/lib/libnccl.so.2\nend\n")
    assert read.nccl(bare) == Value("2.28.9-1+cuda13.0")
    blind = snap(packages="end\n", libraries="/usr/lib/libnccl.so.2 -> /usr/lib/libnccl.so.2\nend\n")
    assert isinstance(read.nccl(blind), Unreadable)
    two = snap(libraries="/a/libnccl.so.2 -> /a/libnccl.so.2.27.3\n/b/libnccl.so.2 -> /b/libnccl.so.2.28.9\nend\n")
    assert read.nccl(two) == Value("2.27.3, 2.28.9")


def test_topology_by_legend_and_by_name() -> None:
    seen = topology.parse(TOPO_H20)
    assert isinstance(seen, topology.Topology)
    assert seen.nearest("mlx5_6") == Value(("PIX", "GPU4"))
    assert seen.distances["mlx5_6"]["GPU0"] == "SYS"
    assert isinstance(seen.nearest("mlx5_4"), Absent)
    old = "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\nGPU0\t X \tNV4\tPHB\t0-7\nGPU1\tNV4\t X \tSYS\t0-7\nmlx5_0\tPHB\tSYS\t X \t\n"
    named = topology.parse(old)
    assert isinstance(named, topology.Topology)
    assert named.nearest("mlx5_0") == Value(("PHB", "GPU0"))


def test_acs_counts_only_between_nic_and_gpu() -> None:
    off, on = pci.parse_acs(ACS_OFF), pci.parse_acs(ACS_ON)
    assert not isinstance(off, Unreadable)
    assert not isinstance(on, Unreadable)
    assert len(off) == len(on) == 32
    assert not any(off.values())
    assert [b for b, redirects in on.items() if redirects] == ["0000:23:00.0"]
    assert pci.parse_acs("") == {}
    found = pci.ways(Snapshot("n1", {"ports.links": Captured(0, LINKS_NIC), sections.PCI_PATHS.name: Captured(0, LINKS_GPU)}))
    assert not isinstance(found, Unreadable)
    nics, gpus = found
    assert len(gpus) == 8
    assert nics["mlx5_0"].below(gpus[0]) == ("0000:20:00.0",)
    assert nics["mlx5_0"].below(gpus[1]) is None
    assert isinstance(pci.parse_acs("garbage\n"), Unreadable)
    assert isinstance(pci.parse_acs(ACS_OFF.replace("ReqRedir-", "ReqRedir?", 1)), Unreadable)


def test_peer_memory() -> None:
    both = peermem.read(snap(modules=PEERMEM + END_FILE, driver=DRIVER_H20 + END_FILE, host=host().out))
    assert both.module == Value("nvidia_peermem")
    assert isinstance(both.dmabuf, Value)
    assert isinstance(peermem.read(snap(modules=END_FILE)).module, Absent)
    assert isinstance(peermem.read(snap(modules="")).module, Unreadable)
    assert isinstance(peermem.read(snap(driver=DRIVER_H20 + END_FILE, host=host("5.11.9").out)).dmabuf, Absent)
    assert isinstance(peermem.read(snap(driver=DRIVER_H20 + END_FILE)).dmabuf, Unreadable)


def test_firmware_needs_its_device() -> None:
    seen = snap(nic=nic().out)
    assert read.firmware(seen, "rocep1s0f0") == Value("28.45.1200 (NVD0000000087)")
    assert isinstance(read.firmware(seen, "mlx5_9"), Unreadable)
    assert isinstance(read.firmware(snap(nic=nic().out.removesuffix(END_FILE)), "rocep1s0f0"), Unreadable)


@pytest.mark.parametrize("name", [n for n in healthy() if n.startswith("system.")])
def test_a_section_that_is_not_there_is_no_fact(name: str) -> None:
    mine = {k: v for k, v in healthy().items() if k != name}
    found = facts(node_spec(), Snapshot("n1", mine))
    for value in found.values():
        assert isinstance(value, Value | Absent | Unreadable)


@given(st.sampled_from(list(healthy())), st.integers(0, 600), st.integers(0, 0x10ff), st.text(max_size=80))
def test_any_text_is_read(name: str, at: int, char: int, text: str) -> None:
    whole = healthy()[name].out
    for damaged in (whole[:at], whole[:at] + chr(char) + whole[at + 1:], text, whole + text):
        seen = Snapshot("n1", {**healthy(), name: Captured(0, damaged)})
        facts(node_spec(), seen)
        boxes(seen)
        processes(seen)
        contents(Snapshot("n1", {sections.CONTENTS: Captured(0, damaged)}))
    assert boxes_text().out.endswith("end\n")
    assert process().out.endswith("end\n")


@given(st.integers(0, 3000), st.integers(0, 0x10ff), st.text(max_size=80))
def test_any_topology_and_any_lspci_is_read(at: int, char: int, text: str) -> None:
    for whole in (TOPO_H20, ACS_ON):
        for damaged in (whole[:at], whole[:at] + chr(char) + whole[at + 1:], text):
            topology.parse(damaged)
            pci.parse_acs(damaged)
