"""The report for people: golden pages at 80 columns, and what hostile nodes must not be able to do to a terminal."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Code, Finding, Reason, Report, Run, Status, Subject, SubjectKind, Unreadable, WriteFile
from fabrictool.report.exit import Mode
from fabrictool.report.files import instead
from fabrictool.report.json import tree
from fabrictool.report.show import Show
from fabrictool.report.text import render
from fabrictool.room import About
from fabrictool.snapshot import Snapshot
from fabrictool.verdict import Judged, assemble
from tests.report.reports import INFO, NODES, TEXTS, at, drifted, finding, passing, plan

GOLDEN = Path(__file__).parent / "golden"
NEXT = "fabrictool apply -i inventories/spark4.py    # asks first; some steps take a link down for a moment"


def page(report: Report, mode: Mode = Mode.PLAN, **more: object) -> str:
    out = io.StringIO()
    render(report, out, Show(mode, texts=TEXTS, **more))  # type: ignore[arg-type]
    return out.getvalue()


def clean_fleet() -> Report:
    return plan({n: tuple(passing(n, p) for p in ("link.mtu", "qos.trust", "qos.pfc", "env.nccl_conf")) for n in NODES})


def lost_node() -> Report:
    lost = Finding(Code.UNREACHABLE, Subject(SubjectKind.NODE, ("spark02",)), "reach.ssh", "", "no login", "a login over SSH",
                   "connect to host 192.168.1.12 port 22: no route to host", Status.UNKNOWN,
                   remedy="check that `ssh` to the node works from here")
    good = {n: tuple(passing(n, p) for p in ("link.mtu", "qos.trust", "env.nccl_conf")) for n in NODES}
    return plan({**good, "spark02": (lost,)})


PAGES = {
    "plan": lambda: page(plan(), next_line=NEXT),
    "plan-verbose": lambda: page(plan(), verbose=True, next_line=NEXT),
    "plan-clean": lambda: page(clean_fleet(), next_line="fabrictool check -i inventories/spark4.py"),
    "plan-hardware": lambda: page(plan(simulated=False)),
    "plan-unreached": lambda: page(lost_node()),
    "check": lambda: page(plan(command="check"), Mode.CHECK),
    "check-clean": lambda: page(replace(clean_fleet(), command="check"), Mode.CHECK),
    "apply-left": lambda: page(plan({n: f for n, f in drifted().items() if n == "spark04"}, command="apply"), Mode.APPLY),
}


@pytest.mark.parametrize("name", PAGES)
def test_golden(name: str) -> None:
    got, path = PAGES[name](), GOLDEN / f"{name}.txt"
    if os.environ.get("FABRICTOOL_GOLDEN") == "write":
        path.write_text(got, encoding="utf-8")
    assert got == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_prose_fits_80_columns_and_commands_are_never_broken(name: str) -> None:
    for line in PAGES[name]().splitlines():
        if not re.match(r" +(run|undo|write) |next: ", line):
            assert len(line) <= 80, line


def test_equal_nodes_are_said_once_and_others_apart() -> None:
    text = page(plan())
    assert text.count("--trust dscp") == 1
    assert "spark[01-03]  p0/enp1s0f0np0/rail a" in text
    other = {**drifted(), "spark03": (finding("spark03", got="pcp", want="dscp", steps=(Run(("mlnx_qos", "-i", "eth9")),)),)}
    assert "spark[01-02]  p0" in page(plan(other))


def test_simulated_is_said_and_only_then() -> None:
    banner = "simulated: a lab with stand-ins, not hardware"
    assert banner in page(plan(simulated=True))
    assert banner not in page(plan(simulated=False))


def test_steps_are_the_argv_that_runs() -> None:
    argv = ("sh", "-c", "echo 'a b' > \"$1\"", "x", "")
    assert "sh -c 'echo '\"'\"'a b'\"'\"' > \"$1\"' x ''" in page(plan({"spark01": (finding(steps=(Run(argv),)),)}))


@pytest.mark.parametrize(("word", "shown"), [("a\nb", r"$'a\x0ab'"), ("\x1b[2J", r"$'\x1b[2J'"), ("é\n'", r"$'\xc3\xa9\x0a\x27'"),
                                             ("\udcff", r"$'\xff'")])
def test_control_characters_in_argv_are_quoted_as_the_shell_reads_them(word: str, shown: str) -> None:
    assert f"run   tool {shown}\n" in page(plan({"spark01": (finding(steps=(Run(("tool", word)),)),)}))


def test_secrets_are_in_no_report() -> None:
    old = "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345\nA=1\n"
    step = WriteFile("/etc/x.env", "A=2\n", hashlib.sha256(old.encode()).hexdigest())
    leak = "login with --password hunter2hunter2 failed"
    report = plan({"spark01": (finding(got=leak, why=leak, remedy=leak, steps=(step,)),)})
    out = io.StringIO()
    render(report, out, Show(texts={step.before: old}))
    shown = out.getvalue() + json.dumps(tree(report))
    assert "hunter2" not in shown
    assert "hf_abc" not in shown
    assert "-HF_TOKEN=" in shown
    assert "+A=2" in shown


def test_a_flap_is_said_in_words() -> None:
    assert "flap: the link goes down" in page(plan())
    no_flap = {n: [f for f in fs if f.code is not Code.QOS_PFC_MASK] for n, fs in drifted().items()}
    assert "flap" not in page(plan(no_flap))


def test_unknowns_say_why_and_are_no_pass() -> None:
    text = page(plan())
    assert "? unknown TOOL_MISSING  unreadable (tool missing)" in text
    assert "mlnx_qos: not found" in text
    assert text.count("mlnx_qos: not found") == 1  # three settings, one missing tool
    assert "qos.trust, qos.pfc, qos.dscp_map" in text


def test_what_a_bundle_was_made_without_is_said_once() -> None:
    def unread(node: str, what: str, section: str, reason: Reason = Reason.NOT_COLLECTED) -> Finding:
        seen = Snapshot(node, {}).text(section) if reason is Reason.NOT_COLLECTED else Unreadable(reason, f"{section}: no such tool")
        assert isinstance(seen, Unreadable)
        subject = Subject(SubjectKind.NODE, (node,))
        return About(Code.VERSIONS_DIFFER, subject, f"qos.{what}", what).unknown(seen, f"{what}, to be compared", "take a new one")

    asked = (("cuda", "system.cuda"), ("gpu", "system.gpu"), ("nic", "system.nic"), ("ofed", "system.nic"))
    text = page(plan({n: tuple(unread(n, *one) for one in asked) for n in ("spark01", "spark02")}))
    assert text.count("not in this snapshot") == 1
    assert "why   system.cuda, system.gpu, system.nic: not in this snapshot" in text
    assert "what  qos.cuda, qos.gpu, qos.nic, qos.ofed" in text
    other = page(plan({"spark01": (unread("spark01", "cuda", "system.cuda"), unread("spark01", "gpu", "system.gpu", Reason.TOOL_MISSING))}))
    assert "why   system.cuda: not in this snapshot" in other
    assert "why   system.gpu: no such tool" in other


def test_a_lost_node_is_named_once_and_its_rooms_are_not_ok() -> None:
    text = page(lost_node())
    assert text.count("no route to host") == 1
    assert "BLOCKED" not in text
    assert "BLOCKED" in page(lost_node(), verbose=True)
    assert re.search(r"^spark02 +1 unknown +1 unknown +1 unknown +1 unknown", text, re.MULTILINE)
    assert "(exit 3)" in text


def test_new_changed_and_unknown_files() -> None:
    def shown(step: WriteFile, **more: object) -> str:
        return page(plan({"spark01": (finding("spark01", Code.ENV_FILE_DRIFT, "env.f", steps=(step,)),)}), **more)
    new = shown(WriteFile("/etc/new.conf", "A=1\nB=2\n", ""))
    assert "write /etc/new.conf (mode 0644, 8 bytes)" in new
    assert "        +A=1\n        +B=2\n" in new
    assert "+ add" in new
    assert "text is not at hand" in shown(WriteFile("/etc/x", "A=1\n", "f" * 64))
    long = WriteFile("/etc/long", "".join(f"L{i}=1\n" for i in range(100)), "")
    assert "94 more lines" in shown(long)  # of a new file a beginning is enough to see what it is
    assert "L99=1" not in shown(long)
    assert "L99=1" in shown(long, verbose=True)


def test_a_file_that_is_the_same_elsewhere_is_shown_once() -> None:
    def unit(node: str, interface: str, mac: str, end: str = "end", lines: int = 0) -> Finding:
        text = "".join([f"# of {interface}\n", f"match {mac}\n", f"name-{interface}.link\n", "x=1\n" * lines, f"{end}\n"])
        step = WriteFile(f"/etc/{interface}.conf", text, "")
        return Finding(Code.LINK_MTU_PERSISTED, at(node, interface), "link.mtu", "mtu", "none", "9000", steps=(step,))

    one = unit("spark01", "eth0", "02:5b:00:00:01:01")
    other = unit("spark01", "eth1", "02:5b:00:00:01:02")
    peer = unit("spark02", "eth0", "02:5b:00:00:02:01")
    text = page(plan({"spark01": (one, other), "spark02": (peer,)}))
    assert text.count("match") == 1
    told = " ".join(text.split())
    assert ("(the same as /etc/eth0.conf of spark01 above, with eth1 for eth0, 02:5b:00:00:01:02 for 02:5b:00:00:01:01)") in told
    assert "(the same as /etc/eth0.conf of spark01 above, with 02:5b:00:00:02:01 for 02:5b:00:00:01:01)" in told
    assert page(plan({"spark01": (one, other), "spark02": (peer,)}), verbose=True).count("match") == 3
    odd = unit("spark01", "eth1", "a", end="eth0")
    assert "the same as" not in page(plan({"spark01": (unit("spark01", "eth0", "a", end="eth0"), odd)}))
    long = [unit("spark01", "eth0", "a", lines=100), unit("spark01", "eth1", "a", end="else { other }", lines=100)]
    assert "the same as" not in page(plan({"spark01": long}))  # what was left out differs


def test_words_that_stand_for_others() -> None:
    assert instead(("a b", "a"), ("a b", "a")) == {}
    assert instead(("c b", "c"), ("a b", "a")) == {"a": "c"}
    assert instead(("c b", "a"), ("a b", "a")) is None  # not everywhere
    assert instead(("a", "b"), ("a b",)) is None
    assert instead(("+a",), ("-a",)) is None


def test_ascii_streams_get_ascii() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    render(plan({"spark01": (finding(got="größe"), finding("spark01", path="link.x", status=Status.UNKNOWN))}), stream, Show())
    stream.flush()
    text = raw.getvalue().decode("ascii")
    assert r"gr\xf6\xdfe" in text
    assert "x fail" in text
    assert "✗" not in text


def test_no_colour_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert "\x1b" not in page(plan())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = page(plan())
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == PAGES_PLAIN
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", page(plan()))
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[3" not in page(plan())


PAGES_PLAIN = page(plan())
HOSTILE = ["\x1b]0;owned\x07", "\x1b[2J\x1b[1;1H", "a\rb", "\x9b31m", "x\u202egnp.exe",
           "line1\nqos  pass  all well", "\x00", "\u2028", "\udcff"]


@pytest.mark.parametrize("evil", HOSTILE)
def test_node_output_cannot_reach_the_terminal(evil: str) -> None:
    bad = finding(got=evil, want=evil, why=evil, remedy=evil, steps=(Run((evil,)), WriteFile(f"/etc/{evil}", f"{evil}\n", "")))
    unknown = finding(status=Status.UNKNOWN, path=f"qos.{evil}", got=evil, why=evil)
    named = replace(bad, subject=Subject(SubjectKind.FUNCTION, ("spark01",), evil, evil, evil, evil))
    text = page(replace(plan({"spark01": (bad, unknown, named)}), notes=(evil,), run_id=evil), verbose=True, next_line=evil)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    assert not any(line.startswith("qos  pass") for line in text.splitlines())


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_renders(got: str, why: str) -> None:
    text = page(plan({"spark01": (finding(got=got, why=why), finding(got=got, status=Status.UNKNOWN, why=why))}))
    assert "\x1b" not in text
    assert "QOS_TRUST" in text


def test_megabytes_of_node_output_are_cut() -> None:
    big = {"got": "x" * 10_000_000, "why": "y " * 1_000_000}
    text = page(plan({"spark01": (finding(**big), finding(**big, status=Status.UNKNOWN), finding(**big, status=Status.WARN))}))
    assert len(text) < 20_000
    assert "more characters" in text


def test_the_verdict_line_counts() -> None:
    assert "10 differ from the spec on spark[01-04]: 9 can be set by apply, 1 cannot" in " ".join(page(plan()).split())
    assert "all as the spec says: 16 comparisons on 4 nodes (exit 0)" in page(clean_fleet())
    assert "no verdict" in page(replace(plan(), results=()))
    skipped = plan({"spark01": tuple(finding(path=p, status=Status.SKIP) for p in ("link.x", "qos.x", "env.x"))})
    assert "asks for nothing" in page(skipped)


def test_check_shows_the_numbers_that_a_judge_stands_on() -> None:
    report = plan(command="check")
    first = replace(report.results[0], evidence={"compared": 1, "nodes": 4, "busbw_gbytes_per_s": 22.9, "said": "a\x1b[2Jb"})
    with_numbers = replace(report, results=(first, *report.results[1:]))
    text = page(with_numbers, Mode.CHECK)
    assert "  seen  busbw 22.9 GB/s, said a" in text
    assert "\x1b" not in text
    assert "seen" not in page(report, Mode.CHECK)
    assert "seen" not in page(with_numbers, Mode.PLAN)


def test_what_a_judge_over_the_fleet_fails_is_no_difference_that_apply_could_set() -> None:
    slow = finding(code=Code.LOW_BUSBW, path="allreduce.busbw", got="11.4 GB/s", want="21.2 GB/s")
    report = assemble(INFO, {"allreduce": ()}, dict.fromkeys(NODES, ()), judged={"allreduce": Judged((slow,))})
    text = page(report, Mode.CHECK)
    assert "4 nodes: 1 failed" in text
    assert "1 failed on spark01 (exit 1)" in text
    assert "apply" not in text.rpartition("failed on")[2]


def test_a_pair_is_told_of_both_its_ends() -> None:
    pair = Subject(SubjectKind.PAIR, ("spark01",), rail="a", peer="spark02")
    hole = Finding(Code.PATH_MTU_HOLE, pair, "path_mtu.ping", "", "lost", "passes", "a switch port is smaller", Status.FAIL)
    report = assemble(INFO, {"path_mtu": ()}, dict.fromkeys(NODES, ()), judged={"path_mtu": Judged((hole,))})
    text = page(report, Mode.CHECK)
    assert "\n  spark01 with spark02  rail a\n" in text
    assert "1 failed on spark[01-02] (exit 1)" in text
    assert "peer" not in text


def test_one_blank_line_before_the_table_whatever_came_last() -> None:
    for report in (plan(command="check"), replace(clean_fleet(), command="check")):
        assert "\n\n\n" not in page(report, Mode.CHECK)
