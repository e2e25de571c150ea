"""What keeps a run from being made, and what a launch leaves: each in a recording of its own, and a healthy twin."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.model import Code, Finding, Reason, Status, Unreadable
from fabrictool.prove import launch, look
from fabrictool.prove.facts import END, REFUSED, AllReduce, all_reduce
from fabrictool.snapshot import Captured, Recording, Snapshot
from tests.prove.fleets import sparks

NODES = ("spark01", "spark02", "spark03", "spark04")


def healthy(**sections: Captured) -> Recording:
    """A recording with idle GPUs and nothing left behind; `sections` of the first node's first run besides."""
    made = sparks(4).recording()
    first = made.takes["run1"]["spark01"]
    run1 = {**made.takes["run1"], "spark01": replace(first, sections={**first.sections, **sections})}
    return replace(made, takes={**made.takes, "run1": run1})


def at(made: Recording, moment: str, node: str, key: str, got: Captured) -> Recording:
    here = made.takes[moment][node]
    changed = replace(here, sections={**here.sections, key: got})
    return replace(made, takes={**made.takes, moment: {**made.takes[moment], node: changed}})


def said(made: Recording) -> list[Finding]:
    return list(launch.judge(made, NODES, "allreduce"))


def bad(made: Recording) -> list[tuple[Code, Status, tuple[str, ...]]]:
    return [(f.code, f.status, f.subject.nodes) for f in said(made) if f.bad]


def test_a_healthy_launch_passes_with_evidence() -> None:
    found = said(healthy())
    assert {f.status for f in found} == {Status.PASS}
    assert {f.path for f in found} == {"allreduce.gpus", "allreduce.buffer", "allreduce.end",
                                       *(f"allreduce.{r}.start" for r in ("run1", "run2", "run3", "default"))}


def refused(code: str, *nodes: str) -> Recording:
    return Recording("allreduce", "r", facts={REFUSED: json.dumps({"code": code, "nodes": nodes})},
                     error=Unreadable(Reason.BLOCKED, f"because of {code}"))


@pytest.mark.parametrize("code", ["GPU_BUSY", "TOOL_MISSING", "SINGLE_NODE", "LOCKED", "NEEDS_ROOT", "SIZE_REDUCED", "LAUNCH_FAILED"])
def test_a_refusal_is_no_verdict(code: str) -> None:
    (f,) = said(refused(code, "spark02"))
    assert (f.code, f.status, f.subject.nodes, f.why) == (Code(code), Status.UNKNOWN, ("spark02",), f"because of {code}")
    assert f.remedy
    assert said(refused(code))[0].subject.nodes == NODES


def test_a_probe_that_was_not_run_says_nothing() -> None:
    assert said(Recording("allreduce", error=Unreadable(Reason.NOT_COLLECTED, "not run"))) == []


@given(st.text(max_size=60))
def test_a_damaged_reason_is_none(text: str) -> None:
    assert said(Recording("allreduce", facts={REFUSED: text}, error=Unreadable(Reason.BLOCKED, "x"))) == []


def test_a_forced_run_beside_other_work_warns() -> None:
    made = at(healthy(), look.MOMENT, "spark03", look.APPS, Captured(0, "4101, /usr/bin/python3\n77, /usr/bin/Xorg\nend\n"))
    (f,) = [f for f in said(made) if f.bad]
    assert (f.code, f.status, f.subject.nodes, f.got) == (Code.GPU_BUSY, Status.WARN, ("spark03",), "/usr/bin/python3 (4101)")


def test_a_desktop_is_no_work() -> None:
    assert bad(at(healthy(), look.MOMENT, "spark03", look.APPS, Captured(0, "77, /usr/lib/xorg/Xorg\n78, gnome-shell\nend\n"))) == []


@pytest.mark.parametrize("got", [Captured(9, "NVIDIA-SMI has failed"), Captured(127, "", "not found"), Captured(0, "4101, x\n"),
                                 Captured(0, "odd\nend\n"), Captured(124, "")])
def test_not_knowing_is_not_idle(got: Captured) -> None:
    found = [f for f in said(at(healthy(), look.MOMENT, "spark03", look.APPS, got)) if f.bad]
    assert [(f.status, f.subject.nodes) for f in found] == [(Status.UNKNOWN, ("spark03",))]


def test_a_smaller_buffer_than_asked_for() -> None:
    made = sparks(4)
    facts = replace(made.facts, asked_bytes=1 << 30, bound="spark02 has 2048 MiB free")
    found = list(launch.judge(replace(healthy(), facts=facts.to_facts()), NODES, "allreduce"))
    assert [(f.code, f.status, f.got, f.want) for f in found if f.bad] == [
        (Code.SIZE_REDUCED, Status.WARN, "268435456 bytes", "1073741824 bytes")]


@pytest.mark.parametrize(("sections", "tail"), [
    ({"rank[0]": Captured(127, "", "sh: 1: /opt/v/bin/python: not found")}, "/opt/v/bin/python: not found"),
    ({"launcher": Captured(126, "", "mpirun: Permission denied")}, "Permission denied"),
])
def test_a_program_that_could_not_be_started(sections: dict[str, Captured], tail: str) -> None:
    (f,) = [f for f in said(healthy(**sections)) if f.bad]
    assert (f.code, f.status, f.subject.nodes, f.path) == (Code.LAUNCH_FAILED, Status.FAIL, ("spark01",), "allreduce.run1.start")
    assert tail in f.got


def only(**sections: Captured) -> Recording:
    """The first node's first run left nothing else."""
    made = healthy()
    run1 = {**made.takes["run1"], "spark01": Snapshot("spark01", dict(sections))}
    return replace(made, takes={**made.takes, "run1": run1})


def test_a_container_or_a_unit_that_could_not_be_made() -> None:
    no_image = Captured(125, "", "docker: Error response from daemon: No such image: img")
    assert bad(only(container=no_image)) == [(Code.LAUNCH_FAILED, Status.FAIL, ("spark01",))]
    assert bad(only(start=Captured(1, "", "Failed to connect to bus"))) == [(Code.LAUNCH_FAILED, Status.FAIL, ("spark01",))]
    ran = {"container": Captured(1, ""), "rank[0]": Captured(1, "x")}
    assert bad(only(**ran)) == []  # a rank that failed is judged by its text
    assert bad(only(start=Captured(1, "0 1 20"), **{"rank[0]": Captured(1, "x")})) == []


def test_a_node_that_was_lost() -> None:
    made = healthy()
    lost = Snapshot("spark01", error=Unreadable(Reason.UNREACHABLE, "connection lost"))
    made = replace(made, takes={**made.takes, "run1": {**made.takes["run1"], "spark01": lost}})
    assert [(f.code, f.status) for f in said(made) if f.bad] == [(Code.UNREACHABLE, Status.UNKNOWN)]


@pytest.mark.parametrize(("got", "status"), [
    (Captured(0, "process 77 sleep\nport 4000\n"), Status.FAIL), (Captured(64, "", "no run id"), Status.UNKNOWN),
    (Captured(124, ""), Status.UNKNOWN), (Captured(0, ""), Status.UNKNOWN), (Captured(0, "end\n", cut=True), Status.UNKNOWN),
    (Captured(0, "Welcome\nend\n"), Status.UNKNOWN), (Captured(0, "Welcome\nport 4000\nend\n"), Status.FAIL),
    (Captured(0, "unasked systemd 1\nend\n"), Status.UNKNOWN), (Captured(0, "unasked docker 124\nend\n"), Status.UNKNOWN),
    (Captured(0, "job 7\nunasked docker 124\nend\n"), Status.FAIL), (Captured(1, "", "", denied=True), Status.UNKNOWN),
])
def test_something_left_at_the_very_end(got: Captured, status: Status) -> None:
    found = [f for f in said(at(healthy(), END, "spark02", "left", got)) if f.bad]
    assert [(f.status, f.subject.nodes, f.path) for f in found] == [(status, ("spark02",), "allreduce.end")]


def test_a_node_that_was_not_asked_at_the_very_end() -> None:
    """Without the moment nothing was said, and so all passed."""
    takes = healthy().takes
    for gone, nodes in ((dict(takes[END]), NODES), ({"spark02": None}, ("spark02",))):
        made = replace(healthy(), takes={**takes, END: {n: s for n, s in takes[END].items() if n not in gone}})
        found = [f for f in said(made) if f.bad]
        assert [(f.status, f.path) for f in found] == [(Status.UNKNOWN, "allreduce.end")] * len(nodes)
        assert {n for f in found for n in f.subject.nodes} == set(nodes)


@pytest.mark.parametrize(("launcher", "text", "status"), [
    ("direct", "unasked docker 1\nunasked slurm 1\nend\n", Status.PASS), ("srun", "unasked docker 1\nend\n", Status.PASS),
    ("srun", "unasked slurm 1\nend\n", Status.UNKNOWN)])
def test_who_did_not_answer_matters_only_where_it_may_hold_something(launcher: str, text: str, status: Status) -> None:
    made = at(healthy(), END, "spark02", "left", Captured(0, text))
    facts = all_reduce(made)
    assert isinstance(facts, AllReduce)
    made = replace(made, facts={**made.facts, **replace(facts, launcher=launcher).to_facts()})
    assert [f.status for f in said(made) if f.path == "allreduce.end" and f.subject.nodes == ("spark02",)] == [status]
