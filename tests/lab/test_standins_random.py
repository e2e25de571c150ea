"""Random command lines: no stand-in ever crashes, and the state keeps its invariants."""

from __future__ import annotations

import importlib
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.standins.behaviour import MODES
from fabrictool.lab.nodeside.state import Node
from fabrictool.lab.nodeside.tool import Call
from tests.lab.standins import A, B, call, links, spark

INTERFACE = st.sampled_from([A, B, "lo", "nosuch0", "enP7s7", "-x", ""])
SLOTS = st.lists(st.sampled_from(["0", "1", "2", "7", "8", "x", "", "-1", "ets", "strict"]), min_size=6, max_size=9).map(",".join)
MASK = st.lists(st.sampled_from("01"), min_size=8, max_size=8).map(",".join)
DSCP = st.one_of(st.just("flush"), st.builds("{},{},{}".format, st.sampled_from(["set", "del", "put"]), st.integers(-2, 66),
                                             st.integers(-1, 9)))
OPTION = st.one_of(
    st.tuples(st.sampled_from(["-f", "-F", "-p", "-s", "-t", "-r", "--prio2buffer", "--buffer_size"]), st.one_of(SLOTS, MASK)),
    st.tuples(st.sampled_from(["--trust"]), st.sampled_from(["dscp", "pcp", "none", ""])),
    st.tuples(st.sampled_from(["--dscp2prio"]), DSCP),
    st.tuples(st.sampled_from(["-d"]), st.sampled_from(["os", "fw", "get", "x"])),
    st.tuples(st.sampled_from(["--cable_len", "-P"]), st.one_of(st.integers(-2, 70000).map(str), st.text(max_size=4))),
    st.tuples(st.sampled_from(["-a", "--version", "--bogus", "-h", "word"])),
)
MLNX = st.builds(lambda i, o: ("mlnx_qos", "-i", i, *(w for group in o for w in group)), INTERFACE, st.lists(OPTION, max_size=3))
WORDS = st.sampled_from(["show", "set", "add", "del", "replace", "flush", "help", "dev", "prio-pfc", "all:off", "3:on", "9:on", "3:",
                         "dscp-prio", "26:3", "26:5", "AF31:4", "64:1", ":", "delay", "7", "x", "", "prio-tc", "1:1", "tc-tsa", "0:ets",
                         "buffer-size", "0:99999999999", "prio-buffer", "host", "lld-managed", "requests", "tc-maxrate", "tc-bw", "0:100"])
DCB = st.builds(lambda f, o, i, w: ("dcb", *f, o, *w[:1], "dev", i, *w[1:]),
                st.lists(st.sampled_from(["-j", "-s", "-N", "-X"]), max_size=2),
                st.sampled_from(["pfc", "app", "ets", "buffer", "dcbx", "maxrate", "apptrust"]), INTERFACE, st.lists(WORDS, max_size=5))
DCB_LOOSE = st.builds(lambda w: ("dcb", *w), st.lists(WORDS, max_size=4))
PAUSE = st.builds(lambda i, w: ("ethtool", "-A", i, *w), INTERFACE,
                  st.lists(st.sampled_from(["rx", "tx", "on", "off", "autoneg", "maybe"]), max_size=5))
OTHER = st.sampled_from([("ethtool", A), ("ethtool", "-S", B), ("rdma", "-j", "link"), ("rdma", "res", "show", "qp"),
                         ("rdma", "link", "x/1"),
                         ("ibv_devinfo", "-v"), ("nvidia-smi", "--query-gpu=", "--format=csv"), ("lldptool", "-i"), ("ibv_devinfo", "-d")])
COMMAND = st.one_of(MLNX, DCB, DCB_LOOSE, PAUSE, OTHER)
ERA = st.sampled_from(["2017", "5.1", "5.9.1", "23.10", "24.10", "25.01", "26.07"])


def run(node: Node, argv: tuple[str, ...], root: bool, mode: str) -> tuple[int, str, str]:
    module = importlib.import_module(f"fabrictool.lab.nodeside.standins.{argv[0].replace('-', '_')}")
    got = module.run(Call(argv[0], list(argv[1:]), node, root, mode, lambda: links(node)))
    return got.rc, got.out, got.err


def sound(node: Node) -> None:
    for fn in node.functions.values():
        table = driver.entries(fn)
        assert (fn.trust == "dscp") == bool(table)
        assert len({d for d, _ in table}) == len(table)
        assert all(fn.dscp_map[d] == p for d, p in table)
        assert len(fn.dscp_map) == 64
        for eight in (fn.pfc, fn.prio_tc, fn.tsa, fn.prio_buffer, fn.buffer_size, fn.tc_bw, fn.maxrate):
            assert len(eight) == 8
        assert set(fn.pfc) <= {0, 1}
        assert set(fn.prio_tc) | set(fn.prio_buffer) <= set(range(8))
        assert sum(fn.buffer_size) <= fn.buffer_total
        assert 0 < fn.cable_len < driver.MAX_CABLE_M


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(COMMAND, st.booleans(), st.sampled_from(("ok", "ok", "ok", *MODES))), min_size=1, max_size=8), ERA, st.booleans())
def test_no_command_line_crashes_a_stand_in_or_breaks_the_state(
        calls: list[tuple[tuple[str, ...], bool, str]], era: str, share: bool) -> None:
    node = spark()
    node.era, node.twins_share = era, share
    for argv, root, mode in calls:
        rc, out, err = run(node, argv, root, mode)
        assert 0 <= rc <= 255
        assert isinstance(out + err, str)
        sound(node)
        if not root:
            assert rc != 0 or argv[0] != "ethtool" or "-A" not in argv


@settings(max_examples=150, deadline=None)
@given(st.lists(MLNX | DCB, max_size=6))
def test_a_user_without_privilege_changes_nothing(commands: list[tuple[str, ...]]) -> None:
    node, before = spark(), spark()
    for argv in commands:
        run(node, argv, False, "ok")
    assert node == before


@settings(max_examples=150, deadline=None)
@given(st.lists(MLNX | DCB | PAUSE, max_size=6))
def test_twins_that_share_never_differ(commands: list[tuple[str, ...]]) -> None:
    node = spark()
    for argv in commands:
        run(node, argv, True, "ok")
    a, b = (call(node, f"mlnx_qos -i {n}").out for n in (A, B))
    assert a == b
    assert json.loads(call(node, f"dcb -j ets show dev {A}").out) == json.loads(call(node, f"dcb -j ets show dev {B}").out)
