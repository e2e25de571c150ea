"""How the tools fail: release by release, and on request. Right text, right stream, right status, right state afterwards."""

from __future__ import annotations

import pytest

from fabrictool.lab.nodeside.standins.behaviour import MODES
from tests.lab.standins import CAPTURES, A, blocks, call, spark

MASK = "0,0,0,1,0,0,0,0"
FOUR = ("Priority trust state is not supported on your system\nBuffers commands are not supported on your system\n"
        "Rate limit is not supported on your system!\nETS features are not supported on your system\n")
ERAS = ("2017", "5.1", "5.9.1", "23.10", "24.04", "24.10", "25.01", "26.04", "26.07")


@pytest.mark.parametrize("interface", ["lo", "nosuch0", "enP7s7"])
def test_no_dcb_and_no_interface_look_alike(interface: str) -> None:
    got = call(spark(), f"mlnx_qos -i {interface}")
    assert (got.rc, got.out, got.err) == (1, FOUR, "")


def test_a_function_without_dcb_is_refused_by_all() -> None:
    node = spark()
    node.functions[A].dcb = False
    assert call(node, f"mlnx_qos -i {A}").out == FOUR
    assert call(node, f"dcb -j pfc show dev {A}") .err == "Attribute read: Operation not supported\n"
    assert call(node, f"dcb pfc set dev {A} prio-pfc 3:on").rc == 1


@pytest.mark.parametrize(("era", "stream", "last"), [
    ("2017", "out", "Netlink error: Operation not supported (95)"), ("5.9.1", "out", "Netlink error: Operation not supported (95)"),
    ("24.04", "err", 'TypeError: can only concatenate str (not "OSError") to str'),
    ("26.07", "err", 'TypeError: can only concatenate str (not "OSError") to str')])
def test_pfc_where_there_is_no_dcb(era: str, stream: str, last: str) -> None:
    node = spark()
    node.era = era
    got = call(node, f"mlnx_qos -i lo -f {MASK}")
    assert got.rc == 1
    if era == "2017":
        assert got.out.endswith("ETS features are not supported on your system\n")
        return
    assert getattr(got, stream).splitlines()[-1] == last
    assert "Operation not supported (95)" in getattr(got, stream)


@pytest.mark.parametrize(("era", "out", "err"), [
    ("5.9.1", "Netlink error: Operation not permitted (1)\n", ""), ("24.10", "", "TypeError"),
    ("25.01", "Netlink error: Operation not permitted (1)\n", "")])
def test_without_privilege(era: str, out: str, err: str) -> None:
    node = spark()
    node.era = era
    got = call(node, f"mlnx_qos -i {A} -f {MASK}", root=False)
    assert (got.rc, got.out) == (1, out)
    assert err in got.err
    assert bool(got.err) == bool(err)
    assert node.functions[A].pfc == [0] * 8


def test_every_release_prints_its_own_state() -> None:
    texts = {}
    for era in ERAS:
        node = spark()
        node.era = era
        texts[era] = call(node, f"mlnx_qos -i {A}").out
    assert texts["2017"].startswith("PFC configuration\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0 ")
    assert "\n\ntc: 1 ratelimit: unlimited, tsa: vendor\n\t priority:  0\ntc: 0 " in texts["2017"]
    for era, text in texts.items():
        if era != "2017":
            assert text.startswith("DCBX mode: OS controlled\nPriority trust state: pcp\n"), era
            assert ("default priority:" in text) == (era in ("5.9.1", "23.10", "24.04", "24.10")), era
            suffix = {"5.1": "0,\n", "5.9.1": "0,total_size=262016\n"}.get(era, "0,max_buffer_size=262016\n")
            assert f"Receive buffer size (bytes): 262016,0,0,0,0,0,0,{suffix}" in text, era
            assert text.index("tc: 0") < text.index("tc: 1") if era not in ("5.1", "5.9.1") else text.index("tc: 0") > text.index("tc: 1")
    assert call(spark(), "mlnx_qos --version").out == "mlnx_qos 1.2\n"


def test_options_that_a_release_does_not_know() -> None:
    for era, options in (("2017", ("--trust dscp", "-d os", "--dscp2prio set,26,3")), ("5.9.1", (f"-F {MASK}", "-P 3")),
                         ("26.07", ("--defltprio set,3",))):
        node = spark()
        node.era = era
        for option in options:
            got = call(node, f"mlnx_qos -i {A} {option}")
            assert (got.rc, got.out) == (2, ""), (era, option)
            assert "no such option" in got.err


def test_a_driver_without_buffers() -> None:
    node = spark()
    node.functions[A].buffer_size = []
    node.era = "24.10"
    old = call(node, f"mlnx_qos -i {A}")
    assert old.rc == 0
    assert "Buffers commands are not supported on your system\n" in old.out
    assert "Receive buffer" not in old.out
    assert "\tbuffer" not in old.out
    node.era = "25.01"
    new = call(node, f"mlnx_qos -i {A}")
    assert (new.rc, new.err.splitlines()[-1]) == (1, "AttributeError: 'KeyError' object has no attribute 'errno'")
    assert call(node, f"dcb -j buffer show dev {A}").err == "Attribute not found: Success\n"


def test_lldpad_is_warned_of_before_anything_else() -> None:
    node = spark()
    node.lldpad = True
    warning = "****** WARNING: lldpad service is running and may overwrite your settings ******\n\nDCBX"
    assert call(node, f"mlnx_qos -i {A}").out.startswith(warning)
    assert call(spark(), f"mlnx_qos -i {A}").out.startswith("DCBX")
    assert call(spark(), f"lldptool -t -n -i {A}").rc == 1
    assert call(node, f"lldptool -t -i {A} adminStatus").out == "adminStatus=rxtx\n"


# --- on request ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["missing", "no-python"])
def test_not_there_at_all(mode: str) -> None:
    got = call(spark(), f"mlnx_qos -i {A}", mode=mode)
    assert (got.rc, got.out) == (127, "")
    assert got.err


@pytest.mark.parametrize(("mode", "last"), [("no-module", "ModuleNotFoundError: No module named 'dcbnetlink'"),
                                            ("no-ps", "FileNotFoundError: [Errno 2] No such file or directory: 'ps'")])
def test_dies_at_once(mode: str, last: str) -> None:
    got = call(spark(), f"mlnx_qos -i {A}", mode=mode)
    assert (got.rc, got.out, got.err.splitlines()[-1]) == (1, "", last)


@pytest.mark.parametrize(("mode", "rc", "pfc", "trust"), [
    ("ok", 0, True, True), ("set-traceback", 1, False, False), ("applied-traceback", 1, True, True), ("applied-error", 1, True, True),
    ("lies", 0, False, False), ("refuses", 1, False, False), ("stale", 0, True, True), ("half", 1, False, True)])
def test_what_is_left_of_a_set(mode: str, rc: int, pfc: bool, trust: bool) -> None:
    node = spark()
    first = call(node, f"mlnx_qos -i {A} -f {MASK}", mode=mode)
    second = call(node, f"mlnx_qos -i {A} --trust dscp", mode=mode)
    assert (first.rc, second.rc) == (rc, rc)
    assert (any(node.functions[A].pfc), node.functions[A].trust == "dscp") == (pfc, trust)
    assert call(node, f"mlnx_qos -i {A}", mode=mode).rc == 0  # reads go on


def test_half_of_two_settings_is_the_first() -> None:
    node = spark()
    assert call(node, f"mlnx_qos -i {A} -f {MASK} --trust dscp", mode="half").rc == 1
    assert (any(node.functions[A].pfc), node.functions[A].trust) == (True, "pcp")
    assert call(node, f"mlnx_qos -i {A} --trust dscp", mode="half").rc == 1
    assert len(node.functions[A].dscp_app) == 32


def test_a_lie_prints_the_old_state() -> None:
    node = spark()
    before = call(node, f"mlnx_qos -i {A}").out
    for words in (f"-f {MASK}", "--trust dscp", f"-p {MASK}"):
        assert call(node, f"mlnx_qos -i {A} {words}", mode="lies").out == before
    node.functions[A].global_pause = True
    assert call(node, f"ethtool -A {A} rx off tx off", mode="lies").rc == 0
    assert node.functions[A].global_pause


def test_a_stale_reader_shows_the_state_after_power_on() -> None:
    node = spark()
    fresh = call(node, f"dcb -j pfc show dev {A}").out
    call(node, f"mlnx_qos -i {A} -f {MASK}")
    assert call(node, f"dcb -j pfc show dev {A}").out != fresh
    assert call(node, f"dcb -j pfc show dev {A}", mode="stale").out == fresh


def test_an_output_cut_short_is_a_prefix() -> None:
    whole = call(spark(), f"mlnx_qos -i {A}").out
    part = call(spark(), f"mlnx_qos -i {A}", mode="cut")
    assert part.rc == 0
    assert whole.startswith(part.out)
    assert 0 < len(part.out) < len(whole)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("command", [f"mlnx_qos -i {A} --trust dscp", f"dcb -j pfc show dev {A}", f"dcb pfc set dev {A} prio-pfc 3:on",
                                     f"ethtool -a {A}", f"ethtool -A {A} rx off", "rdma -j link", "ibv_devinfo", "nvidia-smi -L"])
def test_every_mode_of_every_tool_gives_an_answer(command: str, mode: str) -> None:
    got = call(spark(), command, mode=mode)
    assert 0 <= got.rc <= 255
    assert got.out or got.err or got.rc == 0
    assert not any(word in got.out + got.err for word in ("stale", "applied-", "set-traceback", "no-module"))  # a mode leaves no mark


def test_the_captures_hold_what_this_file_relies_on() -> None:
    texts = [b.out + b.err for b in blocks((CAPTURES / "mlnx_qos" / "26.07.txt").read_text())]
    assert FOUR in texts
    assert any("TypeError" in t for t in texts)
