"""That a file and a log are of this run and of this run's environment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabrictool.model import Code, Status
from fabrictool.snapshot import Captured
from tests.prove import faulty
from tests.prove.fleets import sparks
from tests.prove.recordings import RUNS, Fleet
from tests.prove.test_allreduce import FIRST, SECOND, result, worse

SHOWN = {"NCCL_ALGO": "Ring", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV,NET,GRAPH"}


def writing_to(path: str) -> Fleet:
    """nccl-tests says first where it writes its result; it takes another name where the file is there already."""
    fleet = sparks(2)
    made = fleet.recording()
    for run in RUNS:
        got = made.at(run, FIRST).sections["rank[0]"]
        fleet.put(run, FIRST, "rank[0]", Captured(0, f"# Writing JSON output to {path}\n{got.out}"))
    return fleet


def test_the_file_that_was_read_is_the_one_that_was_written() -> None:
    assert worse(result(writing_to("/run/fabrictool/20260101T100000Z-0000beef/run1/result.json").case())) == []
    got = result(writing_to("/run/fabrictool/20260101T100000Z-0000beef/run1/result.json.0").case())
    assert (got.status, got.code) == (Status.UNKNOWN, Code.RESULT_STALE)
    (f,) = worse(got)
    assert (f.got, f.want) == ("result.json", "/run/fabrictool/20260101T100000Z-0000beef/run1/result.json.0")


@pytest.mark.parametrize(("added", "status"), [(SHOWN, Status.FAIL), ({"NCCL_ALGO": "Ring"}, Status.UNKNOWN)])
def test_a_rank_that_got_no_environment_at_all(added: dict[str, str], status: Status) -> None:
    """Its log shows no variable. It would, where ENV is in NCCL_DEBUG_SUBSYS; else nobody knows."""
    fleet = faulty.logged(sparks(2), faulty.lacks(""), (SECOND,))
    fleet.facts = replace(fleet.facts, added=added)
    found = [f for f in worse(result(fleet.case())) if f.path.endswith(".env.NCCL_IB_TC")]
    assert [(f.status, f.subject.nodes) for f in found] == [(status, (SECOND,))]
    assert {f.code for f in found} == {Code.ENV_NOT_PROPAGATED if status is Status.FAIL else Code.UNREADABLE}
