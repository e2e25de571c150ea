"""docs/faults.md and `lab fault --list` are the fault table; FABRICTOOL_GOLDEN=write renews the page."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.cli import faultlist, run
from fabrictool.lab.faults import FAULTS, Fault, Outcome
from fabrictool.lab.seen import HEALTHY, TRAFFIC, Seen, Told

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
HEAD = """# Faults of the lab

`fabrictool lab fault NODE FAULT...` makes a node of a lab misbehave as its cause in the real world would; `fabrictool lab fault --clear`
takes all of it away, and what `apply` had set with it. Each row says how every command ends on a node that was healthy and configured
before: its exit status and the codes of what does not pass. `apply` stands for `apply -y --allow flap`, and for what is left after it.
A test walks every row.

Exit codes: [exit-codes.md](exit-codes.md); codes: [codes.md](codes.md).
"""
WIPED = """
## With QoS to be written

Some faults show only when something has to be written: here the QoS registers of the node were lost too (`qos-wiped`).
"""
TRAFFIC_HEAD = """
## With traffic

What checks that make traffic, or judge what was made, say about a whole fleet: `fabrictool check allreduce rdma_counters
lossless_priority rails path_mtu bootstrap_tcp` on four nodes. A test walks both tables, and judges each fleet once more from its bundle.

Four healthy nodes pass, with these numbers (and RDMA on both rails of every node):

"""
FAULTY_HEAD = """
With one fault on one of them (of a rail or the fleet: on all): every finding that does not pass, and what it is about, seen from the
node with the fault. Nothing else stands beside it. In front: the exit status of the check by itself. An empty cell: it passes.

- `next-node`, `previous-node`: whom the node's rank sends to, and receives from.
- `fleet`: one finding about all nodes, because the run does not tell which of them it was.
- `unknown`, `to look at`: no verdict, and a warning; everything else fails. `or`: timing decides which of these nodes tells of it.
"""


def _cell(outcome: Outcome | None) -> str:
    return "" if outcome is None else f"{outcome.exit} {' '.join(f'`{c}`' for c in outcome.codes)}".strip()


def _seen(row: Seen | None) -> str:
    if row is None:
        return ""
    said: dict[str, list[Told]] = {}
    for t in row.told:
        said.setdefault(t.code, []).append(t)
    return f"{row.exit} " + "; ".join(f"`{code}` {_of(told)}" for code, told in said.items())


WORDS = {"fail": "", "unknown": "unknown: ", "warn": "to look at: "}


def _of(told: list[Told]) -> str:
    joint = " or " if all(t.may for t in told) and len(told) > 1 else ", "
    return joint.join(f"{WORDS[t.status]}{t.of.value.replace('-', ' ')}" for t in told)


def _table(head: tuple[str, ...], lines: Iterator[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ("---",) * len(head), *lines)) + "\n"


def _where(f: Fault) -> str:
    return f"{f.scope} ({', '.join(f.profiles)})" if f.profiles else str(f.scope)


def page() -> str:
    """The whole page, from the table alone."""
    every = ((f"`{f.name}`", _where(f), f.summary, *(_cell(f.expect[c]) for c in ("plan", "check", "apply"))) for f in FAULTS)
    wiped = ((f"`{f.name}`", *(_cell(f.wiped.get(c)) for c in ("plan", "apply"))) for f in FAULTS if f.wiped)
    healthy = ((n.check, f"`{n.key}`", n.shown) for n in HEALTHY)
    traffic = ((f"`{f.name}`{'' if f.launcher == 'direct' else f' (launcher {f.launcher})'}", *(_seen(f.traffic.get(c)) for c in TRAFFIC))
               for f in FAULTS if f.traffic is not None)
    return (HEAD + "\n" + _table(("fault", "of (only on)", "what happens", "plan, drift", "check", "apply"), every)
            + WIPED + "\n" + _table(("fault", "plan", "apply"), wiped)
            + TRAFFIC_HEAD + _table(("check", "number", "healthy"), healthy)
            + FAULTY_HEAD + "\n" + _table(("fault", *TRAFFIC), traffic))


def test_the_page_is_the_table() -> None:
    if os.environ.get("FABRICTOOL_GOLDEN") == "write":
        PAGE.write_text(page(), encoding="utf-8")
    assert page() == PAGE.read_text(encoding="utf-8"), "run the tests once with FABRICTOOL_GOLDEN=write and look at the difference"


def test_plan_and_drift_have_one_column_because_they_are_one() -> None:
    assert [f.name for f in FAULTS if f.expect["plan"] != f.expect["drift"]] == []


def test_the_command_lists_every_fault_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "fault", "--list"]) == 0
    shown = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert [line for line in shown if line != line.rstrip()] == []
    assert [re.split(r"  +", line) for line in shown] == [list(faultlist.HEAD), *(list(row) for row in faultlist.rows())]


def test_the_list_says_how_plan_and_check_end() -> None:
    told = {row[0]: row[3:] for row in faultlist.rows()}
    assert list(told) == [f.name for f in FAULTS]
    assert told["trust-pcp"] == ("to set", "fail QOS_TRUST QOS_DSCP_MAP")
    assert told["no-buffer"] == ("fail", "fail QOS_BUFFER")
    assert told["dhcp-profile"] == ("warn", "warn LINK_DHCP_PROFILE")
    assert told["unreachable"] == ("unknown", "unknown UNREACHABLE")
    assert told["bashrc-slow"] == ("ok", "ok")
    assert told["rank-dead"] == ("ok", "ok; allreduce: fail RANK_DIED")
    assert told["nic-13g"] == ("ok", "ok; allreduce: fail LOW_BUSBW, rails: fail NIC_DEGRADED")


def test_a_narrow_terminal_gets_two_lines_a_fault(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    assert run(["lab", "fault", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80 or line != line.rstrip()] == []
    assert len(lines) < 2.5 * len(FAULTS)
    at = next(i for i, line in enumerate(lines) if line.startswith("trust-pcp "))
    assert lines[at].split() == ["trust-pcp", "functions", "to", "set", "fail", "QOS_TRUST", "QOS_DSCP_MAP"]
    assert lines[at + 1] == "  the port trusts the VLAN priority; every DSCP entry is gone"
