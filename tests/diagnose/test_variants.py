"""The same verdict whatever is wrapped around a text, both verdicts for two texts in one, and no text that makes it raise."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Code, Status
from fabrictool.snapshot.sniff import Input
from tests.diagnose.table import CAPTURES, ROWS, WRITTEN, Row, codes, findings, judged, of_bytes, of_text
from tests.diagnose.wraps import WRAPS

FEW = {name: WRAPS[name] for name in ("crlf", "colours", "kubectl", "journal", "fence")}
SOME = ("qos-trust-pcp", "dcb-map", "gids-no-ipv4", "hosts-loopback", "nccl-tcp", "run-wrong", "ethtool-discards", "env-gid-pinned",
        "devinfo-down", "ss-syn-sent", "kernel-xid-79", "qos-healthy", "run-healthy-with-log", "gloo-loopback", "ucx-tcp")
# Pieces of one node tell about each other: these families are no two separate texts.
TOGETHER = ({"env", "qos"}, {"env", "ip"}, {"env", "dcb"}, {"dcb", "qos"}, {"nccl", "run"}, {"nccl", "qos"}, {"env", "devinfo"},
            {"env", "rdma"}, {"nccl", "gloo"}, {"env", "ibdev2netdev"}, {"run", "qos"}, {"kernel", "program"},
            {"gloo", "program"}, {"own", "program"}, {"own", "gloo"}, {"own", "faulthandler"}, {"own", "nccl"}, {"own", "run"},
            {"slurm", "run"}, {"slurm", "nccl"}, {"slurm", "own"}, {"slurm", "program"}, {"slurm", "gloo"}, {"slurm", "python"},
            {"python", "program"}, {"python", "gloo"}, {"python", "own"}, {"python", "run"}, {"python", "nccl"},
            {"netplan", "mail"})  # words right below a file of YAML make it none


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
@pytest.mark.parametrize("row", [r for r in WRITTEN if r.name in SOME], ids=lambda r: r.name)
def test_every_wrap(row: Row, wrap: Callable[[str], str]) -> None:
    assert codes(of_text(wrap(row.text))) == row.codes


@pytest.mark.parametrize("wrap", FEW.values(), ids=FEW)
@pytest.mark.parametrize("row", WRITTEN, ids=lambda r: r.name)
def test_every_text(row: Row, wrap: Callable[[str], str]) -> None:
    assert codes(of_text(wrap(row.text))) == row.codes


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_packed(row: Row) -> None:
    assert codes(of_bytes(gzip.compress(row.text.encode()))) == row.codes


def apart(a: Row, b: Row) -> bool:
    return a.family != b.family and {a.family, b.family} not in TOGETHER


@pytest.mark.parametrize("seed", range(4))
def test_two_texts_in_one_give_both_verdicts(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(40):
        a, b = dice.sample(WRITTEN, 2)
        if not apart(a, b):
            continue
        want = codes(of_text(a.text)) | codes(of_text(b.text))
        if "mail" in (a.name, b.name):
            want -= {Code.NOTHING_KNOWN} if not {"kernel-calm", "program-calm"} & {a.name, b.name} else set()
        assert codes(of_text(a.text + b.text)) == want, (a.name, b.name)
        assert codes(of_text(f"{a.text}\n\n{b.text}")) == want, (a.name, b.name)
        assert codes(judged(Input("a", a.text), Input("b", b.text))) == want, (a.name, b.name)


def test_words_around_a_text_change_nothing() -> None:
    for row in WRITTEN:
        if row.name != "mail":
            assert codes(of_text(f"Hello,\nplease look at this:\n\n{row.text}\nMany thanks\n")) == row.codes, row.name


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_cut_at_any_line_never_raises(row: Row) -> None:
    lines = row.text.splitlines(keepends=True)
    step = max(1, len(lines) // 25)
    for n in range(0, len(lines), step):
        assert Code.BUG not in codes(of_text("".join(lines[:n]))), n


def test_a_cut_setting_is_no_pass() -> None:
    """Half a print of mlnx_qos shows no PFC: that is never well."""
    lines = next(r for r in WRITTEN if r.name == "qos-healthy").text.splitlines(keepends=True)
    for n in range(1, len(lines)):
        found = findings(of_text("".join(lines[:n])))
        whole = n >= len(lines) - 1
        assert whole or any(f.status is not Status.PASS for f in found), n


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(ROWS), st.data())
def test_flipped_bytes_never_raise(row: Row, data: st.DataObject) -> None:
    raw = bytearray(row.text.encode()[:20_000])
    for _ in range(data.draw(st.integers(1, 12))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    assert Code.BUG not in codes(of_bytes(bytes(raw)))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=600))
def test_any_bytes(raw: bytes) -> None:
    assert Code.BUG not in codes(of_bytes(raw))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([line for r in WRITTEN for line in r.text.splitlines()]), max_size=40))
def test_lines_in_any_order(lines: list[str]) -> None:
    assert Code.BUG not in codes(of_text("\n".join(lines)))


@pytest.mark.parametrize("row", [r for r in ROWS if r.name.startswith("nccl-tests/") and r.name.endswith(".txt")], ids=lambda r: r.name)
def test_other_hosts_pids_devices_and_sizes(row: Row) -> None:
    """The verdict hangs on what is said, not on this machine's names."""
    text = re.sub(r"\bvm\b", "gpu-node-17", row.text)
    text = re.sub(r"(?<=gpu-node-17:)(\d+):(\d+)", lambda m: f"{int(m[1]) + 70000}:{int(m[2]) + 70000}", text)
    text = re.sub(r"(?<=Pid )( *)(\d+)", lambda m: f"{m[1]}{int(m[2]) + 70000}", text)
    text = text.replace("eth0", "ens17np0").replace("H200", "H20").replace("192.0.2.", "198.51.100.")
    assert codes(of_text(text)) == row.codes


def test_stacks_of_two_ranks_name_the_one_apart() -> None:
    pair = [Input(n, (CAPTURES / "stacks" / f"exchange-{n}-native.txt").read_text()) for n in ("0", "1")]
    told = [f for f in findings(judged(*pair)) if f.status is Status.FAIL]
    assert {f.code for f in told} == {Code.RANK_HANGS}
    assert any("pid 914 stands elsewhere" in f.got for f in told)
