"""`gids`: the GID that NCCL finds by itself, and what pins another one; nothing else of the rooms rdma and env."""

from __future__ import annotations

import pytest

from fabrictool.model import Code, Status
from fabrictool.prove import Case, gids
from fabrictool.snapshot import Captured
from tests.env.sample import Spark
from tests.prove.fleets import sparks
from tests.prove.snaps import changed, edited


def gids_bad(case: Case) -> list[tuple[str, Code, Status]]:
    return [(f.path, f.code, f.status) for f in gids.judge(case) if f.bad]


def test_gids_pass_where_the_automatic_choice_finds_them() -> None:
    case = gid_case(Spark())
    found = list(gids.judge(case))
    assert not [f for f in found if f.bad]
    assert {f.path for f in found if f.status is Status.PASS} >= {"gids.rdma.gid", "gids.rdma.device", "gids.pinned"}


def gid_case(spark: Spark) -> Case:
    case = sparks(2).case()
    for node, mine in (("spark01", spark), ("spark02", Spark())):
        case = changed(case, node, {k: v for k, v in mine.snapshot().sections.items() if k.startswith(("env.", "consumers"))})
    return case


def test_no_gid_and_a_pinned_gid() -> None:
    case = gid_case(Spark())
    gone = changed(case, "spark01", {"rdma.gids[rocep1s0f0]": Captured(0, "end of GIDs\n")})
    assert gids_bad(gone) == [("gids.rdma.gid", Code.NO_ROCEV2_GID, Status.FAIL)]
    pinned = gid_case(Spark(files={"/etc/nccl.conf": "NCCL_IB_GID_INDEX=3\n"}))
    assert Code.GID_PINNED in {c for _, c, _ in gids_bad(pinned)}
    assert "gids.pinned" not in {f.path for f in gids.judge(pinned) if "spark01" in f.subject.nodes}


def test_other_findings_of_the_rooms_are_not_gids() -> None:
    case = edited(gid_case(Spark()), "spark01", "rdma.port[rocep1s0f0]", "200 Gb/sec", "100 Gb/sec")
    assert not gids_bad(case)
    drift = gid_case(Spark(files={"/etc/nccl.conf": "NCCL_IB_TC=1\n"}))
    assert not gids_bad(drift)


def test_a_place_that_cannot_be_read_may_pin_one() -> None:
    case = changed(gid_case(Spark()), "spark01", {"env.places": Captured(1, "", denied=True)})
    assert gids_bad(case) == [("gids.env.lint.places", Code.NEEDS_ROOT, Status.UNKNOWN)]
    assert "gids.pinned" not in {f.path for f in gids.judge(case) if "spark01" in f.subject.nodes}


@pytest.mark.parametrize(("line", "code"), [("! /home/eve/.nccl.conf", Code.NEEDS_ROOT), ("< /root/.bashrc", Code.UNREADABLE)])
def test_a_file_that_is_not_read_may_pin_one(line: str, code: Code) -> None:
    spark = Spark(places=f"@ shell /etc/profile\n{line}\nend\n")
    assert gids_bad(gid_case(spark)) == [(f"gids.env.override.{line[2:]}", code, Status.UNKNOWN)]
    assert "gids.pinned" not in {f.path for f in gids.judge(gid_case(spark)) if "spark01" in f.subject.nodes}
