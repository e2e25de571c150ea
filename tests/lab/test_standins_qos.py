"""What the settings do: the driver's semantics that decide idempotency, through mlnx_qos and dcb alike."""

from __future__ import annotations

import json

import pytest

from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.state import Node
from tests.lab.standins import A, B, call, links, spark

MASK = "0,0,0,1,0,0,0,0"
PFC3 = [0, 0, 0, 1, 0, 0, 0, 0]


def ok(node: Node, command: str) -> str:
    got = call(node, command)
    assert (got.rc, got.err) == (0, ""), got
    return got.out


def test_a_different_mask_flaps_the_port_and_the_same_one_does_nothing() -> None:
    node = spark()
    node.qps = {"rocep1s0f0": 4, "roceP2p1s0f0": 2}
    ok(node, f"mlnx_qos -i {A} -f 0,0,0,0,0,0,0,0")
    assert (node.functions[A].flaps, node.qps) == (0, {"rocep1s0f0": 4, "roceP2p1s0f0": 2})
    assert "\tenabled     0   0   0   1   0   0   0   0   \n\tbuffer      0   0   0   1 " in ok(node, f"mlnx_qos -i {A} -f {MASK}")
    assert (node.functions[A].flaps, node.functions[B].flaps, node.qps) == (1, 1, {})
    ok(node, f"mlnx_qos -i {A} -f {MASK}")
    ok(node, f"mlnx_qos -i {B} -f {MASK}")
    assert (node.functions[A].flaps, node.functions[B].flaps) == (1, 1)


def test_twins_that_do_not_share_are_set_one_by_one() -> None:
    node = spark()
    node.twins_share = False
    node.qps = {"rocep1s0f0": 4, "roceP2p1s0f0": 2}
    ok(node, f"mlnx_qos -i {A} -f {MASK}")
    ok(node, f"mlnx_qos -i {A} --trust dscp")
    assert (node.functions[A].pfc, node.functions[B].pfc) == (PFC3, [0] * 8)
    assert (node.functions[A].trust, node.functions[B].trust) == ("dscp", "pcp")
    assert node.qps == {"roceP2p1s0f0": 2}


def test_twins_that_share_change_together_in_everything() -> None:
    node = spark()
    for words in (f"-f {MASK}", "--trust dscp", "--dscp2prio set,26,5", "-p 0,0,0,1,0,0,0,0", "--cable_len 20", "-d fw"):
        ok(node, f"mlnx_qos -i {A} {words}")
    assert call(node, f"ethtool -A {A} rx off tx off").rc == 0
    shown = [ok(node, f"mlnx_qos -i {n}") for n in (A, B)]
    assert shown[0] == shown[1]
    assert ok(node, f"ethtool -a {B}").splitlines()[1:4] == ["Autonegotiate:\toff", "RX:\t\toff", "TX:\t\toff"]


def test_trust_dscp_writes_the_default_map_and_repairs_nothing_when_it_is_already_there() -> None:
    node = spark()
    out = ok(node, f"mlnx_qos -i {A} --trust dscp")
    assert "\tprio:3 dscp:31,30,29,28,27,26,25,24,\n" in out
    ok(node, f"mlnx_qos -i {A} --dscp2prio set,26,0")
    before = ok(node, f"mlnx_qos -i {A}")
    assert ok(node, f"mlnx_qos -i {A} --trust dscp") == before
    assert node.functions[A].dscp_map[26] == 0
    ok(node, f"mlnx_qos -i {A} --dscp2prio set,26,3")
    assert node.functions[A].dscp_map[26] == 3


def test_the_first_entry_flips_trust_and_the_last_one_back() -> None:
    node = spark()
    ok(node, f"dcb app add dev {A} dscp-prio 26:3")
    assert json.loads(ok(node, f"dcb -j app show dev {A}")) == {"dscp_prio": [[26, 3]]}
    assert "Priority trust state: dscp\ndscp2prio mapping:\n\tprio:3 dscp:26,\nReceive" in ok(node, f"mlnx_qos -i {A}")
    ok(node, f"mlnx_qos -i {A} --dscp2prio del,26,3")
    assert node.functions[A].trust == "pcp"
    assert node.functions[A].dscp_map[26] == 0  # a deleted DSCP has priority 0 in firmware
    assert ok(node, f"dcb -j app show dev {A}") == "{}\n"


def test_a_flush_leaves_every_dscp_on_priority_zero_until_it_is_written_again() -> None:
    node = spark()
    ok(node, f"mlnx_qos -i {A} --trust dscp")
    ok(node, f"mlnx_qos -i {A} --dscp2prio flush")
    assert (node.functions[A].trust, node.functions[A].dscp_map) == ("pcp", [0] * 64)
    ok(node, f"mlnx_qos -i {A} --trust dscp")
    assert node.functions[A].dscp_map == [d >> 3 for d in range(64)]
    ok(node, f"mlnx_qos -i {A} --trust pcp")
    assert node.functions[A].trust == "pcp"


def test_prio_tc_is_not_pfc() -> None:
    node = spark()
    assert "tc: 1 ratelimit: unlimited, tsa: vendor\n\t priority:  3\n" in ok(node, f"mlnx_qos -i {A} -p {MASK}")
    assert node.functions[A].pfc == [0] * 8


def test_several_settings_in_one_call_stop_at_the_first_that_fails_and_keep_what_was_written() -> None:
    node = spark()
    got = call(node, f"mlnx_qos -i {A} -f {MASK} --trust bogus")
    assert (got.rc, got.out) == (1, "Invalid trust state command. Refer to the help.\n")
    assert (node.functions[A].pfc, node.functions[A].trust) == (PFC3, "pcp")


def test_headroom_follows_pfc_until_buffers_are_set_by_hand() -> None:
    node = spark()
    assert "Receive buffer size (bytes): 262016,0,0,0,0,0,0,0,max_buffer_size=262016\n" in ok(node, f"mlnx_qos -i {A}")
    ok(node, f"mlnx_qos -i {A} -f {MASK}")
    assert "Receive buffer size (bytes): 20016,156096,0,0,0,0,0,0,max_buffer_size=262016\n" in ok(node, f"mlnx_qos -i {A}")
    ok(node, f"mlnx_qos -i {A} --prio2buffer 0,0,0,2,0,0,0,0")
    ok(node, f"mlnx_qos -i {A} -f 0,0,0,0,1,0,0,0")
    assert node.functions[A].prio_buffer == [0, 0, 0, 2, 0, 0, 0, 0]
    got = call(node, f"mlnx_qos -i {A} --buffer_size 300000,0,0,0,0,0,0,0")
    assert (got.rc, got.out) == (1, "Buffers commands error\n")
    assert node.functions[A].buffer_size == [20016, 156096, 0, 0, 0, 0, 0, 0]


def test_the_old_bare_cable_length_clears_pfc_and_the_newer_one_keeps_it() -> None:
    for era, kept in (("5.9.1", False), ("23.10", False), ("24.10", True), ("26.07", True)):
        node = spark()
        node.era = era
        ok(node, f"mlnx_qos -i {A} -f {MASK}")
        ok(node, f"mlnx_qos -i {A} --cable_len 5")
        assert (any(node.functions[A].pfc), node.functions[A].cable_len) == (kept, 5), era
        assert call(node, f"mlnx_qos -i {A} --cable_len 5000").rc == 0
        assert node.functions[A].cable_len == 5  # out of range: ignored


def test_dcb_and_mlnx_qos_show_one_state() -> None:
    node = spark()
    ok(node, f"dcb pfc set dev {A} prio-pfc all:off 3:on")
    assert "enabled     0   0   0   1   0   0   0   0" in ok(node, f"mlnx_qos -i {A}")
    assert node.functions[A].flaps == 1
    ok(node, f"dcb pfc set dev {A} prio-pfc 3:on")
    assert node.functions[A].flaps == 1
    ok(node, f"mlnx_qos -i {A} --trust dscp")
    ok(node, f"dcb app replace dev {A} dscp-prio AF31:5")
    assert "\tprio:5 dscp:26," in ok(node, f"mlnx_qos -i {A}")
    ok(node, f"dcb app add dev {A} dscp-prio 26:5")  # mlx5 takes an identical entry again
    ok(node, f"mlnx_qos -i {A} -d fw")
    assert json.loads(ok(node, f"dcb -j dcbx show dev {A}")) == {"cee": True, "ieee": True}
    ok(node, f"dcb dcbx set dev {A} host cee ieee")
    assert "DCBX mode: OS controlled\n" in ok(node, f"mlnx_qos -i {A}")
    ok(node, f"dcb ets set dev {A} prio-tc 1:1 0:0")
    assert node.functions[A].prio_tc == list(range(8))
    ok(node, f"dcb app flush dev {A} dscp-prio")
    assert "Priority trust state: pcp\n" in ok(node, f"mlnx_qos -i {A}")


def test_ets_weights_must_total_a_hundred() -> None:
    node = spark()
    every = "ets," * 7 + "ets"
    got = call(node, f"mlnx_qos -i {A} -s {every} -t 50,0,0,0,0,0,0,0")
    assert (got.rc, got.out) == (1, "Netlink error: Invalid argument (22)\n")
    assert "tc: 3 ratelimit: unlimited, tsa: ets, bw: 50%\n" in ok(node, f"mlnx_qos -i {A} -s {every} -t 50,0,0,50,0,0,0,0")
    assert "tc: 0 ratelimit: 25.0 Gbps, tsa: ets" in ok(node, f"mlnx_qos -i {A} -r 25,0,0,0,0,0,0,0")


def test_a_reboot_wipes_what_hardware_forgets() -> None:
    node = spark()
    fresh = ok(node, f"mlnx_qos -i {A}")
    for words in (f"-f {MASK}", "--trust dscp", "--dscp2prio set,26,5", "-p 0,0,0,1,0,0,0,0", "-d fw", "--cable_len 20"):
        ok(node, f"mlnx_qos -i {A} {words}")
    node.functions[A].buffers_manual = True
    node.functions[A].tclass = "Global tclass=106"
    assert ok(node, f"mlnx_qos -i {A}") != fresh
    driver.reboot(node)
    assert ok(node, f"mlnx_qos -i {A}") == fresh
    assert node.functions[A].tclass == ""


def test_pfc_can_be_set_while_the_link_is_down() -> None:
    node = spark()
    assert call(node, f"mlnx_qos -i {A} -f {MASK}", live=links(node, up=False)).rc == 0
    assert node.functions[A].pfc == PFC3


def test_a_flap_only_ever_touches_a_node() -> None:
    node = spark("a-name-that-no-machine-has")
    touched: list[str] = []
    driver.flap(node, [node.functions[A]], touched.append)
    assert touched == [A]
    driver.flap(node, [node.functions[A]])  # not in a node: counted, no interface asked for
    assert node.functions[A].flaps == 2


@pytest.mark.parametrize("tool", ["mlnx_qos", "dcb"])
def test_sets_need_root_and_reads_do_not(tool: str) -> None:
    node = spark()
    read, write = {"mlnx_qos": (f"mlnx_qos -i {A}", f"mlnx_qos -i {A} -f {MASK}"),
                   "dcb": (f"dcb -j pfc show dev {A}", f"dcb pfc set dev {A} prio-pfc 3:on")}[tool]
    assert call(node, read, root=False).rc == 0
    got = call(node, write, root=False)
    assert got.rc == 1
    assert "Operation not permitted" in got.out + got.err
    assert node.functions[A].pfc == [0] * 8
    assert call(node, write).rc == 0
