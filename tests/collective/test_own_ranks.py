"""How far ranks of fabrictool's own AllReduce came, by their stderr."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.collective.model import ErrorKind
from fabrictool.collective.own_ranks import OwnRank, Step, ranks

TORCH = Path(__file__).resolve().parents[1] / "captures" / "torch"


def of(*names: str) -> tuple[OwnRank, ...]:
    return ranks("".join((TORCH / n).read_text(encoding="utf-8") for n in names))


@pytest.mark.parametrize(("names", "want"), [
    (("socket2/rank0.err",), [(0, Step.VERIFIED, None, False)]),
    (("alone/rank0.err",), [(0, Step.STARTING, None, True)]),
    (("badif/rank1.err",), [(1, Step.GROUP_MADE, ErrorKind.NCCL, False)]),
    (("killed/rank0.err", "killed/rank1.err"), [(0, Step.WARMED_UP, None, True), (1, Step.WARMED_UP, None, False)]),
    (("killed/rank1.err", "killed/rank0.err"), [(1, Step.WARMED_UP, None, False), (0, Step.WARMED_UP, None, True)]),
])
def test_the_captures(names: tuple[str, ...], want: list[object]) -> None:
    assert [(r.number, r.step, r.error.kind if r.error else None, r.late is not None) for r in of(*names)] == want
    assert {r.host for r in of(*names)} == {"vm"}


def test_who_is_silent() -> None:
    assert [r.silent for r in of("killed/rank0.err", "killed/rank1.err")] == [False, True]
    assert [r.silent for r in of("socket2/rank0.err", "badif/rank1.err")] == [False, False]


def test_a_time_limit_among_mixed_lines_is_nobodys() -> None:
    mixed = "".join(f"fabrictool-allreduce: rank {r} on h{r}: {s}\n" for s in ("starting", "group made") for r in (0, 1, 2))
    got = ranks(f"{mixed}Timeout (0:00:09)!\n")
    assert [(r.number, r.silent, r.late is not None) for r in got] == [(0, False, False), (1, False, False), (2, False, False),
                                                                        (None, False, True)]
    assert [r.late is not None for r in ranks(mixed + "Timeout (0:00:09)!\n" * 3)] == [True] * 3
    assert [r.silent for r in ranks(mixed)] == [True] * 3


def test_words_for_people() -> None:
    (rank,) = of("alone/rank0.err")
    assert (str(rank), Step.GROUP_MADE.text) == ("rank 0 on vm", "group made")
    assert [str(r) for r in ranks("Timeout (0:00:09)!\n")] == ["a rank"]
    assert ranks("other text\n") == ()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from((TORCH / "killed" / "rank0.err").read_text().splitlines()) | st.text(max_size=50), max_size=25))
def test_anything(lines: list[str]) -> None:
    for rank in ranks("\r\n".join(lines)):
        str(rank)
