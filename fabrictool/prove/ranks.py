"""How the ranks of a run ended that were started one by one: who died by itself, and who only followed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabrictool.model import Code, Finding, Subject, SubjectKind, Unreadable
from fabrictool.prove.facts import AllReduce
from fabrictool.prove.results import ranks
from fabrictool.room import About
from fabrictool.snapshot import Captured, Recording

ENDED = (124, 143)  # timeout(1), and 128 + SIGTERM: the rank was still there when its time was over, or when another had broken
SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE"}
DEADLINE = re.compile(r"^Timeout \([0-9:]{4,12}\)!", re.M)  # Python's faulthandler, which node/allreduce.py sets
KILLED = 137  # 128 + SIGKILL: the OOM killer's, and also of `timeout -k` when TERM did not do


@dataclass(frozen=True, slots=True)
class Ended:
    """`rc`: exit status, 128 + signal for one that a signal ended. `deadline`: our own program's time was over."""

    rank: int
    node: str
    rc: int
    tail: str
    deadline: bool = False

    @property
    def how(self) -> str:
        signal = SIGNALS.get(self.rc - 128)
        return f"rank {self.rank}: {signal or f'exit status {self.rc}'}{f' ({self.tail})' if self.tail else ''}"


def judge(recording: Recording, facts: AllReduce, name: str, path: str) -> Iterator[Finding]:
    """One finding for each node whose ranks did not end well by themselves, with the path `ranks_killed` where a signal did it; none for
    those that only waited, were ended by us, or had their time run out."""
    ended, lost = [], []
    for rank, node, got in ranks(recording, facts, name):
        if isinstance(got, Captured):
            ended.append(Ended(rank, node, got.rc, got.tail, bool(DEADLINE.search(got.err))))
        else:
            lost.append((node, got))
    yield from _lost(lost, path)
    late = [e for e in ended if e.rc in ENDED or e.deadline] or (list(ended) if all(e.rc == KILLED for e in ended) else [])
    bad = [e for e in ended if e.rc not in (0, *ENDED) and not e.deadline]
    first = _first(bad, any(e.rc != 143 for e in late))
    if len(first) == len(ended) and not any(e.rc > 128 for e in first):
        first = []  # nobody stands out: what the run printed tells why
    for node in dict.fromkeys(e.node for e in ended):
        mine = [e for e in first if e.node == node]
        how = "ranks_killed" if mine and mine[0].rc > 128 else "ranks_ended"
        about = About(Code.RANK_DIED, Subject(SubjectKind.NODE, (node,)), f"{path}.{how}", "")
        if mine:
            yield about.fail(mine[0].how, "every rank ends with 0", _why(mine[0]),
                             remedy="look at that node: dmesg for OOM, Xid and segfaults, then the last lines of that rank's log")
        elif not any(e.node == node for e in (*bad, *late)):
            yield about.ok("every rank ended with 0")


def _first(bad: Sequence[Ended], timed_out: bool) -> list[Ended]:
    """Those that broke first, as far as statuses tell: a signal comes before a mere error, and what had to be killed beside others that
    ran out of time was late as well."""
    signalled = [e for e in bad if e.rc > 128 and not (e.rc == KILLED and timed_out)]
    return signalled or [e for e in bad if e.rc < 128]


def _why(one: Ended) -> str:
    if one.rc == KILLED:
        return "it was killed: by the kernel when memory ran out, or by somebody"
    return "a signal ended it" if one.rc > 128 else "it ended with an error, and the others could not go on"


def _lost(lost: Sequence[tuple[str, Unreadable]], path: str) -> Iterator[Finding]:
    for node, why in dict(lost).items():
        about = About(Code.RANK_DIED, Subject(SubjectKind.NODE, (node,)), f"{path}.ranks_ended", "")
        yield about.unknown(why, "every rank ends with 0")
