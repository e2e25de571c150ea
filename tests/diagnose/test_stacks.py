"""One dump is one moment: it tells where a process stands, never that it hangs; and one that is gone has no stack."""

from __future__ import annotations

import pytest

from fabrictool.model import Code, Finding, Status
from fabrictool.snapshot.sniff import Input
from tests.diagnose.table import CAPTURES, codes, findings, judged, of_text


def dump(name: str) -> str:
    return (CAPTURES / "stacks" / f"{name}.txt").read_text(encoding="utf-8")


GONE = dump("loop-1-plain")


def only(text: str) -> Finding:
    (one,) = findings(of_text(text))
    return one


@pytest.mark.parametrize("name", ["loop-0-plain", "loop-0-native", "store-0-native", "exchange-0-native", "ncclinit-0-native"])
def test_one_dump_of_a_start_is_no_hang(name: str) -> None:
    for text in (dump(name), dump(name).replace("\n", "\r\n")):
        (told,) = of_text(text)
        (one,) = told.findings
        assert one.status is Status.UNKNOWN
        assert "one dump does not tell" in one.why
        assert "second dump" in one.remedy
        assert any("a dump is one moment" in text for text in told.unproven)


def test_faulthandler_speaks_after_its_time_limit() -> None:
    text = dump("loop-0-plain")
    assert only(text).status is Status.UNKNOWN
    limit = "Timeout (0:10:00)!\nThread 0x00007f7494d09140 (most recent call first):\n" \
        '  File "/x/torch/distributed/rendezvous.py", line 199 in _create_c10d_store\n'
    assert only(limit).status is Status.FAIL
    assert only(limit.split("\n", 1)[1]).status is Status.UNKNOWN


@pytest.mark.parametrize("text", [GONE, GONE.replace("\n", "\r\n"), "".join(GONE.splitlines(keepends=True)[:4])])
def test_py_spy_finds_no_such_process(text: str) -> None:
    one = only(text)
    assert (one.code, one.status) == (Code.RANK_DIED, Status.UNKNOWN)
    assert "Failed to get process executable name" in one.lines[0]
    assert "No such file or directory" in one.lines[1]
    assert "waits for another" not in one.why


def test_why_py_spy_came_to_no_stack() -> None:
    denied = GONE.replace("No such file or directory (os error 2)", "Permission denied (os error 13)")
    assert only(denied).code is Code.NEEDS_ROOT
    assert only("Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'\n").code \
        is Code.NEEDS_ROOT
    assert only(GONE.splitlines()[0]).code is Code.NOTHING_KNOWN  # cut before the cause
    assert Code.RANK_DIED not in codes(of_text("Error: No such file or directory (os error 2)\n"))


def test_a_rank_that_starts_beside_one_that_is_gone() -> None:
    (told,) = judged(Input("0", dump("loop-0-plain")), Input("1", GONE))
    assert {(f.code, f.status) for f in told.findings} == {(Code.RANK_HANGS, Status.UNKNOWN), (Code.RANK_DIED, Status.UNKNOWN)}
    assert any("1 in this input stands where a rank waits" in f.why for f in told.findings)
