"""From counter sections to a reading; the sections themselves under three shells; what a run must carry, from a table made by hand."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from fabrictool.counters import SECTIONS, read
from fabrictool.counters.limits import expected
from fabrictool.model import Absent, Reason, Unreadable, Value
from fabrictool.ports.sections import FILE_END
from fabrictool.snapshot import Captured, Each, Snapshot
from tests.prove.counts import Counts, Function, ethtool_text

A, IF = "rocep1s0f0", "enp1s0f0np0"
SHELLS = pytest.mark.parametrize("sh", ["dash", "bash", "busybox"])


def sections() -> dict[str, Captured]:
    return Counts([Function(A, IF, "p0")], {IF: 1000}).sections()


def test_a_reading() -> None:
    got = read(Snapshot("n", sections()))
    device = got.device(A)
    assert isinstance(device, Value)
    assert device.value.port.get("port_xmit_discards") == Value(0)
    assert device.value.hw.get("out_of_sequence") == Value(17)
    assert device.value.lifespan_ms == Value(10)
    assert "lifespan" not in device.value.hw.names
    assert got.net(IF).get("rx_bytes") == Value(1000)
    assert isinstance(got.nic(IF).get("tx_prio3_bytes"), Value)
    assert isinstance(got.clock.uptime_s, Value)


def test_crlf_changes_nothing() -> None:
    texts = {k: Captured(0, c.out.replace("\n", "\r\n")) for k, c in sections().items()}
    assert read(Snapshot("n", texts)) == read(Snapshot("n", sections()))


def test_absent_and_unread_are_different() -> None:
    without = {k: c for k, c in sections().items() if k != f"counters.rdma[{A}]"}
    assert read(Snapshot("n", without)).device(A) == Absent(f"RDMA device {A}")
    none = read(Snapshot("n", {"ports.ip": Captured(0, "[]")}))
    assert none.error == none.device(A) == Unreadable(Reason.NOT_COLLECTED, "n: no counters were read at this moment")
    lost = read(Snapshot("n", error=Unreadable(Reason.TIMEOUT, "gone")))
    for seen in (lost.device(A), lost.net(IF).get("rx_bytes"), lost.nic(IF).get("rx_bytes")):
        assert seen == Unreadable(Reason.TIMEOUT, "gone")
    assert isinstance(read(Snapshot("n", sections())).nic("nosuch").get("rx_bytes"), Unreadable)


@pytest.mark.parametrize("got", [
    Captured(0, ""),
    Captured(1, "", "grep: Permission denied"), Captured(124, ""), Captured(0, "x" * 100_000), Captured(0, "\udcff\udcfe\n"),
])
def test_a_device_whose_files_cannot_be_read(got: Captured) -> None:
    device = read(Snapshot("n", {**sections(), f"counters.rdma[{A}]": got, "counters.stat": Captured(127, "")})).device(A)
    assert isinstance(device, Value)
    for seen in (device.value.port.get("port_xmit_data"), device.value.hw.get("out_of_sequence"), device.value.lifespan_ms):
        assert isinstance(seen, Unreadable)


def test_where_sysfs_has_no_hw_counters_rdma_tells_them() -> None:
    text = "".join(ln + "\n" for ln in sections()[f"counters.rdma[{A}]"].out.splitlines() if "hw_counters" not in ln)
    device = read(Snapshot("n", {**sections(), f"counters.rdma[{A}]": Captured(0, text)})).device(A)
    assert isinstance(device, Value)
    assert device.value.hw.get("out_of_sequence") == Value(17)
    blind = read(Snapshot("n", {**sections(), f"counters.rdma[{A}]": Captured(0, text), "counters.stat": Captured(0, "[]\n")})).device(A)
    assert isinstance(blind, Value)
    assert isinstance(blind.value.hw.get("out_of_sequence"), Unreadable)


def test_cut_at_every_line_a_counter_is_whole_or_unread() -> None:
    whole = read(Snapshot("n", sections()))
    for key, got in sections().items():
        lines = got.out.splitlines(keepends=True)
        for end in range(len(lines)):
            cut = read(Snapshot("n", {**sections(), key: Captured(0, "".join(lines[:end]))}))
            for table, full in ((cut.nic(IF), whole.nic(IF)), (cut.net(IF), whole.net(IF))):
                assert all(table.get(n) == full.get(n) or isinstance(table.get(n), Unreadable) for n in full.names)
            device, first = cut.device(A), whole.device(A)
            assert isinstance(device, Value)
            assert isinstance(first, Value)
            assert device.value.port.names in (first.value.port.names, frozenset())


def test_a_thousand_flipped_bytes() -> None:
    rng = random.Random(7)
    for _ in range(1000):
        key, got = rng.choice(list(sections().items()))
        raw = bytearray(got.out.encode())
        raw[rng.randrange(len(raw))] = rng.randrange(256)
        read(Snapshot("n", {**sections(), key: Captured(0, raw.decode("utf-8", "surrogateescape"))}))


def run(text: str, item: str, sh: str, path: str = "") -> Captured:
    words = ["busybox", "sh"] if sh == "busybox" else [sh]
    done = subprocess.run([*words, "-c", text, "sh", item], capture_output=True, text=True, timeout=60, check=False,
                          env={"PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]})
    return Captured(done.returncode, done.stdout, done.stderr)


def section(name: str) -> str:
    return next(s.shell for s in SECTIONS if s.name == f"counters.{name}")


@SHELLS
def test_the_ethtool_section(sh: str, tmp_path: Path) -> None:
    queues = "".join(f"     {n}: 5\n" for n in ("rx0_packets", "tx12_csum_none", "ch3_poll", "qos_tx7_bytes"))
    fake = tmp_path / "ethtool"
    fake.write_text(f"#!/bin/sh\n[ \"$1 $2\" = \"-S eth7\" ] || {{ echo 'no stats available' >&2; exit 94; }}\ncat <<'.'\n"
                    f"{ethtool_text({'rx_prio3_bytes': 7, 'rx_64_bytes_phy': 9})}{queues}.\n")
    fake.chmod(0o755)
    got = run(section("ethtool"), "eth7", sh, str(tmp_path))
    assert (got.rc, got.out) == (0, ethtool_text({"rx_prio3_bytes": 7, "rx_64_bytes_phy": 9}))
    refused = run(section("ethtool"), "lo", sh, str(tmp_path))
    assert (refused.rc, refused.out, refused.err) == (94, "", "no stats available\n")


@SHELLS
def test_the_rdma_and_net_sections_on_a_tree(sh: str, tmp_path: Path) -> None:
    port = tmp_path / "class/infiniband" / A / "ports/1"
    for file, text in (("counters/port_xmit_data", "25"), ("counters/symbol_error", "N/A (no PMA)"), ("hw_counters/lifespan", "10"),
                       ("hw_counters/out_of_sequence", "3")):
        (port / file).parent.mkdir(parents=True, exist_ok=True)
        (port / file).write_text(text + "\n")
    (port / "counters" / "refused").mkdir()  # reads with an error, as EINVAL does
    net = tmp_path / "class/net" / IF / "statistics"
    net.mkdir(parents=True)
    (net / "rx_bytes").write_text("77\n")
    out = {}
    for name, item in (("rdma", A), ("net", IF)):
        got = run(section(name).replace("/sys/class", f"{tmp_path}/class"), item, sh)
        out[f"counters.{name}[{item}]"] = Captured(got.rc, got.out.replace(str(tmp_path), "/sys"))
        assert out[f"counters.{name}[{item}]"].out.splitlines()[-1].startswith(FILE_END)
    seen = read(Snapshot("n", out))
    device = seen.device(A)
    assert isinstance(device, Value)
    assert (device.value.port.get("port_xmit_data"), device.value.hw.get("out_of_sequence")) == (Value(25), Value(3))
    assert isinstance(device.value.port.get("symbol_error"), Unreadable)
    assert isinstance(device.value.port.get("refused"), Unreadable)
    assert seen.net(IF).get("rx_bytes") == Value(77)


@SHELLS
def test_the_clock_section(sh: str) -> None:
    got = read(Snapshot("n", {"counters.clock": run(section("clock"), "", sh)})).clock
    assert isinstance(got.uptime_s, Value)
    assert isinstance(got.epoch_s, Value)
    assert isinstance(got.boot, Value)


def test_sections() -> None:
    assert [(s.name, s.each) for s in SECTIONS] == [
        ("counters.clock", Each.NODE), ("counters.rdma", Each.RDMA), ("counters.net", Each.NETDEV), ("counters.ethtool", Each.NETDEV),
        ("counters.stat", Each.NODE)]
    assert not any(s.root for s in SECTIONS)


@pytest.mark.parametrize(("calls", "size", "ranks", "wire"), [
    (49, 268_435_456, 2, 13_153_337_344), (49, 268_435_456, 3, 17_537_783_125), (49, 268_435_456, 4, 19_730_006_016),
    (49, 1_073_741_824, 16, 98_650_030_080), (27, 268_435_456, 4, 10_871_635_968), (1, 1000, 2, 1000),
])
def test_bytes_of_a_ring(calls: int, size: int, ranks: int, wire: int) -> None:
    """Worked out by hand: 49 x 256 MiB is 13153337344, x 2 (n - 1) / n."""
    ring = expected("Ring", calls, size, ranks)
    assert (ring.bytes, ring.exact) == (wire, True)
    other = expected("", calls, size, ranks)
    assert (other.bytes, other.exact) == (calls * size, False)
