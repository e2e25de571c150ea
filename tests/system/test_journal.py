"""The section that holds a node's kernel log: whole, cut, refused, empty, and run for real."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.system import journal
from tests.snapshot.shells import SHELLS, collect, tool_folder
from tests.system.logs import CALM, START, oom, stamped

TOOLS = ("sh", "date", "cut", "cat", "tail", "head", "base64", "gzip", "timeout", "cksum", "id", "tr", "env")
RING = "echo '[1.000000] ring'"
HEAD = "clock 1785574800\nuptime 90000.50\nboot 11111111-2222-3333-4444-555566667777\n"


def section(log: str, tool: str = "journalctl", status: int = 0) -> Captured:
    return Captured(0, f"{HEAD}log {tool}\n{log}rc {status}\nend\n")


def read(got: Captured) -> journal.KernelLog | Unreadable:
    return journal.read(Snapshot("n1", {journal.NAME: got}))


def whole(got: Captured) -> journal.KernelLog:
    log = read(got)
    assert isinstance(log, journal.KernelLog), log
    return log


def reason(got: Captured) -> Reason:
    log = read(got)
    assert isinstance(log, Unreadable), log
    return log.reason


def test_ages_are_told_on_the_nodes_own_clock() -> None:
    log = whole(section(stamped(CALM)))
    assert log.begins is None
    assert log.age_s(log.rows[0]) == 1785574800 - START
    assert log.after_boot_s(log.rows[0]) == 90000.5 - 3600
    ring = whole(section("[    0.000000] Linux version 6.14\n[ 4000.500000] a\n", "dmesg"))
    assert [ring.age_s(r) for r in ring.rows] == [90000.5, 86000.0]
    assert whole(section(stamped("a b", "dmesg -T"), "dmesg")).age_s(whole(section(stamped("a b", "dmesg -T"), "dmesg")).rows[0]) is None


def test_a_log_that_lost_its_beginning_says_since_when_it_is_whole() -> None:
    over = whole(section(stamped("a b", "dmesg"), "dmesg"))
    assert over.begins == pytest.approx(1785574800 - 86000.0)
    long = stamped("x" * 200) * 5000
    cut = whole(section(long[-journal.MOST:]))
    assert cut.begins is not None
    assert all(r.text.startswith("x") for r in cut.rows)


def test_a_journal_that_gave_up_its_oldest_files_says_since_when_it_is_whole() -> None:
    """By the time since the boot: clocks are set while a node boots."""
    log = section(stamped(CALM)).out

    def begins(first: str) -> float | None:
        return whole(Captured(0, log.replace("log journalctl", f"first {first}\nlog journalctl", 1))).begins

    assert begins("80000.250000") == pytest.approx(1785574800 - 90000.5 + 80000.25)
    assert [begins(f) for f in ("    2.113000", "  140.000001", "", "?", "1e9")] == [None] * 5


def test_what_is_not_whole_is_unreadable() -> None:
    text = section(stamped(oom())).out
    assert all(reason(Captured(0, text[:n])) in (Reason.CUT, Reason.GARBLED, Reason.EMPTY) for n in range(0, len(text) - 1, 7))
    assert reason(section("dmesg: read kernel buffer failed: Operation not permitted\n", "dmesg", 1)) is Reason.NEEDS_ROOT
    assert reason(section("Failed to open journal: Input/output error\n", "journalctl", 1)) is Reason.FAILED
    assert reason(section("", "dmesg")) is Reason.EMPTY
    assert reason(Captured(127, "", "journalctl, dmesg: not found")) is Reason.TOOL_MISSING
    assert reason(Captured(1, "", denied=True)) is Reason.NEEDS_ROOT
    assert isinstance(journal.read(Snapshot("n1")), Unreadable)


@given(st.text(max_size=200), st.integers(0, 4000))
def test_a_message_cannot_end_the_section(text: str, at: int) -> None:
    log = stamped("rc 0\nend\nclock 5")
    assert len(whole(section(log)).rows) == 3
    body = section(stamped(oom()))
    read(Captured(0, body.out[:at] + text + body.out[at:]))
    read(Captured(0, text))


def fake(folder: Path, name: str, text: str) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_the_script_asks_for_the_oldest_line(tmp_path: Path) -> None:
    folder = tool_folder(tmp_path / "bin", *TOOLS)
    kernel = 'echo "2026-08-01T10:00:00+0200 n1 kernel: x"'
    for oldest, lost in (("[5000000.500000] n1 sshd[7]: y", True), ("[    1.500000] n1 kernel: y", False), ("Failed", False)):
        fake(folder, "journalctl", f'case " $* " in *" -k "*) {kernel} ;; *monotonic*) echo "{oldest}"; echo "[9000000.0] later" ;; esac')
        log = journal.read(collect(SHELLS["dash"], [journal.section(36)], tools=folder))
        assert isinstance(log, journal.KernelLog), log
        assert (log.begins is not None) is lost
        assert [r.text for r in log.rows] == ["x"]


@pytest.mark.parametrize(("tools", "tool", "said"), [
    ({"journalctl": 'echo "2026-08-01T10:00:00+0200 n1 kernel: from $*"', "dmesg": RING}, "journalctl", "--since=-36hours"),
    ({"journalctl": "exit 0", "dmesg": RING}, "dmesg", "ring"),
    ({"journalctl": "echo refused; exit 1", "dmesg": '[ $# -eq 0 ] || exit 1; echo "[1.000000] ring"'}, "dmesg", "ring"),
])
def test_the_script_itself(tmp_path: Path, tools: dict[str, str], tool: str, said: str) -> None:
    folder = tool_folder(tmp_path / "bin", *TOOLS)
    for name, text in tools.items():
        fake(folder, name, text)
    snap = collect(SHELLS["dash"], [journal.section(36)], tools=folder)
    log = journal.read(snap)
    assert isinstance(log, journal.KernelLog), log
    assert log.tool == tool
    assert said in log.rows[0].text
    for name in tools:
        (folder / name).unlink()
    none = journal.read(collect(SHELLS["dash"], [journal.section(36)], tools=folder))
    assert isinstance(none, Unreadable)
    assert none.reason is Reason.TOOL_MISSING
