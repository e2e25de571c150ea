"""Captured texts, prefixes, hostile texts; the GID and class sections under three shells."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Absent, Reason, Unreadable, Value
from fabrictool.rdma import parse
from fabrictool.rdma.model import PortState, RdmaLink
from fabrictool.rdma.sections import GIDS, SECTIONS, TCLASS
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.values import Rate
from tests.qos.blocks import CAPTURES, blocks

LINK = next(b for b in blocks("rdma/rdma-link.json.txt") if b.command == "rdma -j link").got
DEVINFO = next(b for b in blocks("rdma/ibv_devinfo-v.txt")).got
SYSFS = (CAPTURES / "rdma/sys-class-infiniband.txt").read_text()
BASE = "/sys/class/infiniband/rxe0"


def sysfs_section() -> dict[str, str]:
    """The capture's `./ports/1/state: 4: ACTIVE` lines as the section's own."""
    wanted = ("ports/1/state", "ports/1/phys_state", "ports/1/rate", "ports/1/link_layer")
    pairs = (ln.removeprefix("./").split(": ", 1) for ln in SYSFS.splitlines() if ln.startswith("./"))
    text = "".join(f"{BASE}/{k}:{v}\n" for k, v in pairs if k in wanted)
    got = Snapshot("n", {"x": Captured(0, text)}).sysfs("x")
    assert not isinstance(got, Unreadable)
    return dict(got)


def test_a_real_port() -> None:
    files = sysfs_section()
    assert parse.state(files) == Value(PortState.ACTIVE)
    assert parse.numbered(files, "phys_state") == Value((5, "LinkUp"))
    assert parse.rate(files) == Value(Rate.gbit(100))
    assert parse.link_layer(files) == Value("Ethernet")
    assert parse.active_mtu(DEVINFO) == Value(4096)
    assert parse.links(LINK) == {"rxe0": RdmaLink("ACTIVE", "LINK_UP", "eth1")}


def test_down_and_gone() -> None:
    down = (CAPTURES / "rdma/link-down.txt").read_text().splitlines()
    assert parse.links(Captured(0, down[1] + "\n")) == {"rxe0": RdmaLink("DOWN", "DISABLED", "eth1")}
    assert parse.active_mtu(Captured(0, "\n".join(down) + "\n")) == Unreadable(Reason.GARBLED, "ibv_devinfo: several values of active_mtu")
    assert parse.active_mtu(Captured(0, "\n".join(down[-3:]) + "\n")) == Value(1024)
    assert parse.links(Captured(0, "[]\n")) == {}
    gone = parse.active_mtu(Captured(255, "", "No IB devices found\n"))
    assert isinstance(gone, Unreadable)
    assert "No IB devices found" in gone.why
    assert isinstance(parse.links(Captured(1, "", "Failed to open NETLINK_RDMA socket\n")), Absent)
    assert isinstance(parse.links(Captured(1, "", "Wrong device name\n")), Unreadable)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_prefixes_hide_values_and_never_change_one(ending: str) -> None:
    table, override = Captured(0, TABLE), Captured(0, CLASS)
    for got, of in ((DEVINFO, parse.active_mtu), (LINK, parse.links), (table, parse.gids), (override, parse.override)):
        text = got.out.replace("\n", ending)
        full = of(Captured(0, text))  # type: ignore[operator]
        assert full == of(got)  # type: ignore[operator]
        assert not isinstance(full, Unreadable)
        for end in range(len(text)):
            seen = of(Captured(0, text[:end]))  # type: ignore[operator]
            assert isinstance(seen, Unreadable) or seen == full


TABLE = ("gid 0 fe80:0000:0000:0000:5054:00ff:fe00:0101 ndev=eth1 type=RoCE v2\n"
         "gid 1 0000:0000:0000:0000:0000:ffff:c612:0001 ndev=eth1 type=RoCE v2\nend of GIDs\n")
CLASS = "file\nGlobal tclass=106\nend of file\n"


@pytest.mark.parametrize("text", [
    "gid 0 unreadable\nend of GIDs\n", "gid 0 fe80 ndev=eth1 type=RoCE v2\nend of GIDs\n", "noise\nend of GIDs\n", "", "x" * 10_000_000,
    "gid 0 zz80:0000:0000:0000:5054:00ff:fe00:0101 ndev=eth1 type=RoCE v2\nend of GIDs\n",
])
def test_gid_tables_that_are_not_understood(text: str) -> None:
    assert isinstance(parse.gids(Captured(0, text)), Unreadable)


@pytest.mark.parametrize(("name", "text"), [
    ("state", "4: DOWN"), ("state", "9: ACTIVE"), ("state", "ACTIVE"), ("rate", "200000"), ("rate", "fast"), ("link_layer", "Token Ring"),
])
def test_sysfs_that_is_not_understood(name: str, text: str) -> None:
    files = {f"{BASE}/ports/1/{name}": text}
    of = {"state": parse.state, "rate": parse.rate, "link_layer": parse.link_layer}[name]
    assert isinstance(of(files), Unreadable)
    assert isinstance(of(sysfs_section()), Value)
    assert isinstance(of({}), Unreadable)


def test_devinfo_whose_size_and_code_differ() -> None:
    assert isinstance(parse.active_mtu(Captured(0, "\t\t\tactive_mtu:\t\t4096 (3)\n")), Unreadable)


@settings(max_examples=200, deadline=None)
@given(st.text(), st.integers(0, 255), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c), max_leaves=8))
def test_any_text_is_answered(text: str, rc: int, doc: object) -> None:
    for of in (parse.links, parse.gids, parse.active_mtu, parse.override):
        of(Captured(rc, text, text))
    parse.links(Captured(0, json.dumps(doc)))
    parse.state({"/x/state": text})
    parse.rate({"/x/rate": text})


def run(shell: str, item: str, sh: str, root: Path) -> Captured:
    words = ["busybox", "sh"] if sh == "busybox" else [sh]
    text = shell.replace("/sys/class/infiniband", str(root))
    got = subprocess.run([*words, "-c", text, "sh", item], capture_output=True, text=True, timeout=60, check=False,
                         env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
    return Captured(got.returncode, got.stdout, got.stderr)


@pytest.mark.parametrize("sh", ["dash", "bash", "busybox"])
def test_the_gid_section_on_a_tree(sh: str, tmp_path: Path) -> None:
    port = tmp_path / "rocep1s0f0" / "ports" / "1"
    for folder in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
        (port / folder).mkdir(parents=True)
    rows = {0: ("fe80:0000:0000:0000:5054:00ff:fe00:0101", "IB/RoCE v1", "eth1"),
            1: ("0000:0000:0000:0000:0000:ffff:c0a8:6401", "RoCE v2", "eth1"),
            2: ("0000:0000:0000:0000:0000:0000:0000:0000", "", ""), 3: ("0000:0000:0000:0000:0000:ffff:c0a8:6402", "", "eth1")}
    for i, (gid, kind, ndev) in rows.items():
        (port / "gids" / str(i)).write_text(gid + "\n")
        for name, text in (("types", kind), ("ndevs", ndev)):
            if text:
                (port / "gid_attrs" / name / str(i)).write_text(text + "\n")
    got = parse.gids(run(GIDS, "rocep1s0f0", sh, tmp_path))
    assert isinstance(got, Value)
    assert [(g.index, str(g.gid.ipv4 or ""), g.kind, g.netdev) for g in got.value[:2]] == [
        (0, "", Value("IB/RoCE v1"), Value("eth1")), (1, "192.168.100.1", Value("RoCE v2"), Value("eth1"))]
    assert [g.index for g in got.value] == [0, 1, 3]
    assert isinstance(got.value[2].kind, Unreadable)
    assert isinstance(parse.gids(run(GIDS, "nosuch", sh, tmp_path)), Unreadable)


@pytest.mark.parametrize("sh", ["dash", "bash", "busybox"])
def test_the_class_section_on_a_tree(sh: str, tmp_path: Path) -> None:
    (tmp_path / "d" / "tc" / "1").mkdir(parents=True)
    assert isinstance(parse.override(run(TCLASS, "d", sh, tmp_path)), Absent)
    file = tmp_path / "d" / "tc" / "1" / "traffic_class"
    file.write_text("")
    assert isinstance(parse.override(run(TCLASS, "d", sh, tmp_path)), Absent)
    file.write_text("Global tclass=106\n")
    assert parse.override(run(TCLASS, "d", sh, tmp_path)) == Value(106)
    file.unlink()
    file.mkdir()
    assert isinstance(parse.override(run(TCLASS, "d", sh, tmp_path)), Unreadable)


def test_section_names() -> None:
    assert [s.name for s in SECTIONS] == ["rdma.link", "rdma.port", "rdma.gids", "rdma.devinfo", "rdma.tclass"]
