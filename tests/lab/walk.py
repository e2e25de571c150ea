"""What each command of the real command line says about one node with a fault, held against the fault's row."""

from __future__ import annotations

import random
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from fabrictool.exits import Exit
from fabrictool.lab.faults import FAULTS, Fault, Outcome, inject
from fabrictool.lab.handle import Lab
from tests.e2e.fleet import Ended, report, spec, tool

SEED = 20
WIPED = "qos-wiped"
OFFLINE = ("drift", "check")  # judged from one bundle: that offline verdicts equal online ones is shown elsewhere
# Seen only beside its peers: with -l NODE nobody knows what address a peer really has.
NEEDS_FLEET = frozenset({"hosts-differ"})
# Time passes while somebody waits for an answer, and not while anybody works: such faults share a round.
SLOW = frozenset({"banner-hangs", "login-hangs", "tool-hangs", "bashrc-slow", "second-reader-hangs"})
# Words of the field that are also causes: the real daemon's name, and our reason for a node that did not answer.
SPOKEN = frozenset({"lldpad", "unreachable"})


@dataclass(frozen=True, slots=True)
class Heard:
    """How one command ended, as far as this node goes: its exit status and the codes of what does not pass."""

    command: str
    exit: int
    codes: frozenset[str]
    text: str = field(compare=False, default="")

    def against(self, row: Outcome) -> str:
        """What is not as the row says; "" if all is. A row without codes says that nothing is wrong."""
        missing = set(row.codes) - self.codes
        strange = self.codes if not row.codes else frozenset[str]()
        if self.exit == row.exit and not missing and not strange:
            return ""
        return (f"{self.command}: exit {self.exit} (row: {row.exit}), codes {' '.join(sorted(self.codes)) or '-'} "
                f"(row: {' '.join(row.codes) or '-'})\n{self.text}")


def heard(command: str, node: str, ended: Ended) -> Heard:
    """From the JSON report; a command that made none has no codes, and its last words instead."""
    if not ended.out.startswith("{"):
        return Heard(command, ended.rc, frozenset(), ended.all[-1500:])
    bad = [f for r in report(ended)["results"] for f in r["findings"]
           if f["status"] in ("fail", "unknown", "warn") and node in f["subject"]["nodes"]]
    lines = [f"  {f['status']} {f['code']} {f['id']}: {f['got']} -> {f['want']} ({f['why']})"[:300] for f in bad]
    return Heard(command, ended.rc, frozenset(f["code"] for f in bad), "\n".join([*lines, ended.err[-600:]]))


def say(lab: Lab, command: str, node: str, bundle: Path | None = None, fleet: bool = False) -> Heard:
    """`fabrictool COMMAND -l NODE`."""
    words = [command, "-i", spec(lab), "-o", "json", *([] if fleet else ["-l", node])]
    if command == "apply":
        words += ["-y", "--allow", "flap"]
    if bundle is not None:
        words += ["--from", str(bundle)]
    return heard(command, node, tool(*words))


@dataclass(frozen=True, slots=True)
class Case:
    """Faults that happen to one node together, and what the commands then are to say."""

    name: str
    faults: tuple[str, ...]
    expect: Mapping[str, Outcome]

    @property
    def fleet(self) -> bool:
        return bool(NEEDS_FLEET & set(self.faults))


def cases(profile: str, faults: Iterable[Fault] = FAULTS) -> Iterator[Case]:
    """Each row on a healthy node, and each row that has its say only when QoS has to be written."""
    for f in faults:
        if not f.profiles or profile in f.profiles:
            yield Case(f.name, (f.name,), f.expect)
            if f.wiped:
                yield Case(f"{f.name}+{WIPED}", (WIPED, f.name), f.wiped)


def rounds(every: Sequence[Case], nodes: Sequence[str], seed: int) -> list[list[tuple[Case, str]]]:
    """Cases dealt out over the nodes at random, as many at a time as there are nodes; one that needs the fleet has it for itself."""
    dice = random.Random(seed)
    alone = [[(c, dice.choice(list(nodes)))] for c in every if c.fleet]
    rest = [c for c in every if not c.fleet]
    dice.shuffle(rest)
    rest.sort(key=lambda c: not SLOW & set(c.faults))
    out = []
    for i in range(0, len(rest), len(nodes)):
        places = dice.sample(list(nodes), len(nodes))
        out.append(list(zip(rest[i:i + len(nodes)], places, strict=False)))
    return out + alone


def hear(lab: Lab, case: Case, node: str, bundle: Path, read: bool) -> Iterator[Heard]:
    """Every command that the case has a word on, apply last. `read`: the node is in the bundle."""
    def one(command: str) -> Heard:
        return say(lab, command, node, bundle if read and command in OFFLINE else None, case.fleet)

    asked = [c for c in ("plan", *OFFLINE, "apply") if c in case.expect]
    if read:
        yield from map(one, asked)
    else:  # nothing is read and nothing written: all of them can wait side by side
        with ThreadPoolExecutor(len(asked)) as pool:
            yield from pool.map(one, asked)


def names_in(bundle: Path) -> list[str]:
    """Names of faults that occur in a bundle: a tool that could read its own examination would prove nothing."""
    with tarfile.open(bundle) as tar:
        held = b"".join(member.read() for info in tar.getmembers() if (member := tar.extractfile(info)) is not None)
    return [f.name for f in FAULTS if f.name not in SPOKEN and re.search(rf"\b{re.escape(f.name)}\b".encode(), held)]


def walk(lab: Lab, dealt: Sequence[tuple[Case, str]], folder: Path) -> list[str]:
    """One round on a kept fleet: restore, break, listen. What is not as the rows say, one text for each."""
    lab.restore()
    for case, node in dealt:
        for name in case.faults:
            inject(lab, node, name)
    bundle = folder / "bundle.tar.gz"
    taken = tool("snapshot", "-i", spec(lab), "-o", str(bundle), "--force")
    assert taken.rc in (Exit.OK, Exit.NO_VERDICT), taken.all
    assert names_in(bundle) == []
    lost = {line.split(":")[0].strip() for line in taken.err.splitlines() if line.startswith("  ")}

    def one(case: Case, node: str) -> list[str]:
        found = [h.against(case.expect[h.command]) for h in hear(lab, case, node, bundle, node not in lost)]
        return [f"{case.name} on {node}: {text}" for text in found if text]

    with ThreadPoolExecutor(len(dealt)) as pool:
        jobs = [pool.submit(one, case, node) for case, node in dealt]
    return [text for job in jobs for text in job.result()]
