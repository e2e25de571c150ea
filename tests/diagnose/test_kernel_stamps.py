"""A kernel log is known by any of its stamps, and no other program's lines are taken for one."""

from __future__ import annotations

import pytest

from fabrictool.model import Code, Status
from fabrictool.snapshot.sniff import Input, Kind, sniff
from tests.diagnose.table import codes, findings, of_text
from tests.system.logs import STAMPS, stamped

CALM = "eth0: renamed from veth1\ndocker0: port 1(veth12ab) entered forwarding state"
XID = "NVRM: Xid (PCI:000f:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


@pytest.mark.parametrize("style", [s for s in STAMPS if s not in ("kmsg", "plain", "dmesg -x")])
def test_every_stamp(style: str) -> None:
    for text in (stamped(f"{CALM}\n{XID}", style), stamped(f"{CALM}\n{XID}", style).replace("\n", "\r\n")):
        assert codes(of_text(text)) == {Code.GPU_XID}
        (one,) = [f for f in findings(of_text(text)) if f.bad]
        assert one.lines[0].startswith("paste:3: ")
    (calm,) = findings(of_text(stamped(CALM, style)))
    assert (calm.code, calm.status) == (Code.NOTHING_KNOWN, Status.UNKNOWN)
    assert "kernel log" in calm.got
    assert codes(of_text(stamped(f"{CALM}\n{XID}", style)[:-70])) == {Code.NOTHING_KNOWN}  # cut before the number


def test_dmesg_writes_the_month_and_the_day_as_one_word() -> None:
    assert codes(of_text(f"[Nov29 18:09] {CALM.splitlines()[0]}\n[  +0.000012] {XID}\n")) == {Code.GPU_XID}


@pytest.mark.parametrize(("text", "kind"), [
    ("[12.345] spark01:931:931 [0] NCCL INFO Bootstrap: Using enp1s0f0np0:10.10.1.11<0>\n", Kind.NCCL_LOG),
    ("[12.345] torch.distributed: 2 ranks\n", Kind.PROGRAM),
    ("[0.25, 0.5]\n", Kind.UNKNOWN), ("[0.25] \n", Kind.UNKNOWN), ("[1732903787.123] hello\n", Kind.UNKNOWN),
])
def test_other_lines_in_brackets(text: str, kind: Kind) -> None:
    assert [p.kind for p in sniff(Input("paste", text))] == [kind]
