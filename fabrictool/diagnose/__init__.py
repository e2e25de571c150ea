"""Verdicts on pasted output: pieces of text in, findings out, by the judges of the rooms. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from fabrictool.diagnose import allreduce, around, counters, env, hosts, logs, net, nvidia, perftest, persisted, ping, qos, rdma
from fabrictool.diagnose.model import Case, Judged, Wants
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind
from fabrictool.snapshot.sniff import Kind, Piece

__all__ = ["MOST_PIECES", "Judged", "Wants", "diagnose", "nothing_known"]

Together = Callable[[Sequence[Case]], Iterator[Judged]]
Alone = Callable[[Case], Iterator[Judged]]
TOGETHER: tuple[tuple[frozenset[Kind], Together], ...] = (
    (qos.KINDS, qos.judge), (hosts.KINDS, hosts.judge), (counters.KINDS, counters.judge),
    (allreduce.KINDS, allreduce.judge), (ping.KINDS, ping.judge), (logs.STACKS, logs.judge_stacks))
ALONE: tuple[tuple[frozenset[Kind], Alone], ...] = (
    (rdma.KINDS, rdma.judge), (perftest.KINDS, perftest.judge), (net.KINDS, net.judge), (env.KINDS, env.judge),
    (persisted.KINDS, persisted.judge), (nvidia.KINDS, nvidia.judge),
    (logs.KERNEL, logs.judge_kernel), (logs.UCX, logs.judge_ucx_lines))


MOST_PIECES = 3000  # of one input; a folder has at most 2,000 files, and few hold more than one output


def diagnose(pieces: Sequence[Piece], wants: Wants | None = None) -> tuple[Judged, ...]:
    """What was found, in the order of the pieces. Pieces of which nothing can be said, or that are beyond `MOST_PIECES`, are in none of
    the results. Never raises."""
    pieces = [p for p in pieces if p.kind is not Kind.UNKNOWN][:MOST_PIECES]
    cases = around.cases(pieces, wants or Wants())
    found: list[Judged] = []
    for kinds, judge in TOGETHER:
        mine = [c for c in cases if c.piece.kind in kinds]
        if mine:
            found += _safe(lambda judge=judge, mine=mine: judge(mine), mine)  # type: ignore[misc]
    for kinds, alone in ALONE:
        for case in cases:
            if case.piece.kind in kinds:
                found += _safe(lambda alone=alone, case=case: alone(case), [case])  # type: ignore[misc]
    place = {id(p): i for i, p in enumerate(pieces)}
    return tuple(sorted((j for j in found if j.findings), key=lambda j: place.get(id(j.pieces[0]), 0)))


def _safe(judge: Callable[[], Iterable[Judged]], cases: Sequence[Case]) -> list[Judged]:
    """A judge that raises is a bug and no verdict: it must not hide the other pieces'."""
    try:
        return list(judge())
    except Exception as error:  # noqa: BLE001 - hostile text must not end the run
        first = cases[0]
        bug = Finding(Code.BUG, first.subject, f"{first.piece.kind}.bug", "", f"{type(error).__name__}: {error}"[:300], "a verdict",
                      "fabrictool itself failed here; please report it with the text", Status.UNKNOWN)
        return [Judged(first.piece.kind, tuple(c.piece for c in cases), (bug,))]


def nothing_known(pieces: Sequence[Piece]) -> Judged:
    """The outcome where nothing could be said of any piece."""
    known = [p for p in pieces if p.kind is not Kind.UNKNOWN]
    got = ", ".join(dict.fromkeys(str(p.kind) for p in known)) or ("text that is not recognised" if pieces else "no text")
    if known:
        why = "none of what it shows is a fault that is known here: that proves nothing"
    elif pieces:
        why = "it is not the output of any tool that is known here"
    else:
        why = "what was given is empty, or holds no text: that proves nothing"
    finding = Finding(Code.NOTHING_KNOWN, Subject(SubjectKind.NODE, ()), "diagnose.known", "", got, "", why, Status.UNKNOWN,
                      remedy="paste whole outputs, with the command before them: NCCL logs (NCCL_DEBUG=INFO), mlnx_qos -i IF, "
                             "ibv_devinfo, show_gids, ethtool -S IF twice, dmesg, /etc/hosts")
    return Judged(Kind.UNKNOWN, tuple(pieces), (finding,))
