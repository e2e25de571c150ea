"""What the checks of traffic say of a lab's fleet, held against a fault's row; and the same once more from the bundle of that run.

The rows are walked in two files, each with a fleet of its own, so that two workers can share them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fabrictool.lab.fault_kit import Scope, targets
from fabrictool.lab.faults import FAULTS, Fault, inject
from fabrictool.lab.handle import Lab
from fabrictool.lab.nodeside.state import Function
from fabrictool.lab.seen import HEALTHY, TRAFFIC, Of, Told, Traffic
from tests.e2e import fleet
from tests.e2e.fleet import Ended
from tests.lab.fleet import built
from tests.lab.walk import names_in

NODES = ("spark01", "spark02", "spark03", "spark04")
WHERE = "spark02"
RAILS = ("rocep1s0f0", "roceP2p1s0f0")
ROWS = tuple(f for f in FAULTS if f.traffic is not None)
BAD = ("fail", "unknown", "warn")
EXIT = {"pass": 0, "warn": 0, "skip": 0, "fail": 1, "unknown": 3}
START_S = 12  # a start that hangs is given up; a loaded machine still starts within it
About = tuple[str, tuple[str, ...], str, str]  # kind, nodes, rail, peer


@dataclass(frozen=True, slots=True)
class Place:
    """Where the fault is: the node, whose rank sends to the next one; the functions that it concerns."""

    lab: Lab
    node: str
    fault: Fault

    def beside(self, by: int) -> str:
        names = self.lab.nodes
        return names[(names.index(self.node) + by) % len(names)]

    def functions(self, node: str) -> list[Function]:
        every = targets(self.lab.state(node), "", Scope.FUNCTIONS)
        return every if self.fault.scope is Scope.FUNCTIONS else every[:1]

    def abouts(self, of: Of) -> set[About]:
        """What findings of this kind are about."""
        every = self.lab.nodes
        rail = self.functions(self.node)[0].rail
        near = {Of.NODE: 0, Of.FUNCTION: 0, Of.PORT: 0, Of.NEXT: 1, Of.NEXT_FUNCTION: 1, Of.NEXT_PORT: 1, Of.PREVIOUS_FUNCTION: -1}
        if of in near:
            node = self.beside(near[of])
            if of in (Of.NODE, Of.NEXT):
                return {("node", (node,), "", "")}
            if of in (Of.PORT, Of.NEXT_PORT):
                return {("port", (node,), "", "")}
            return {("function", (node,), fn.rail, "") for fn in self.functions(node)}
        if of is Of.PAIR:
            return {("pair", (self.node,), rail, self.beside(1))}
        if of is Of.EACH:
            return {("node", (n,), "", "") for n in every}
        if of is Of.RAIL:
            return {("function", (n,), rail, "") for n in every}
        assert of is Of.ALL
        return {("fleet", every, "", "")}


def judged(fault: Fault) -> bool:
    """Whether the run comes to a result that can be judged."""
    row = (fault.traffic or {}).get("allreduce")
    return (row is None or row.exit != 3) and not any(t.code == "BLOCKED" and t.of is Of.ALL for seen in (fault.traffic or {}).values()
                                                      for t in seen.told)


@contextmanager
def configured(name: str) -> Iterator[Lab]:
    """Four nodes, configured by apply, kept like that."""
    with built(name, len(NODES)) as lab:
        assert lab.nodes == NODES
        done = fleet.apply(lab)
        assert done.rc == 0, done.all
        lab.keep()
        yield lab


def found(ended: Ended, check: str) -> list[tuple[str, str, About]]:
    """(status, code, about) of everything that does not pass."""
    (result,) = [r for r in fleet.report(ended)["results"] if r["check"] == check]
    return [(f["status"], f["code"], (f["subject"]["kind"], tuple(f["subject"]["nodes"]), f["subject"].get("rail") or "",
                                      f["subject"].get("peer") or "")) for f in result["findings"] if f["status"] in BAD]


def wrong(ended: Ended, traffic: Traffic, place: Place) -> Iterator[str]:
    """One text for each check that does not say what the row says."""
    for check in TRAFFIC:
        row = traffic.get(check)
        told = row.told if row else ()
        (status,) = [r["status"] for r in fleet.report(ended)["results"] if r["check"] == check]
        if EXIT[status] != (row.exit if row else 0):
            yield f"{check}: {status}, the row: exit status {row.exit if row else 0}"
        said = found(ended, check)
        yield from (f"{check}: {text}" for text in _against(said, told, place))
        first = next((code for worst, code, _ in said if worst == status), "")
        if row and first and first != row.codes[0]:
            yield f"{check}: {first} comes first, the row: {row.codes[0]}"


def _against(said: Sequence[tuple[str, str, About]], told: Sequence[Told], place: Place) -> Iterator[str]:
    left = list(dict.fromkeys(said))
    seen_codes = {code for _, code, _ in left}
    for t in told:
        if t.of is Of.SOME:
            mine = [s for s in left if s[:2] == (t.status, t.code)]
            missing = not mine
        else:
            want = {(t.status, t.code, about) for about in place.abouts(t.of)}
            mine = [s for s in left if s in want]
            missing = len(mine) < len(want) and not t.may
        if missing or t.code not in seen_codes:
            yield f"not told: {t.status} {t.code} of {t.of}"
        left = [s for s in left if s not in mine]
    yield from (f"stands beside it: {' '.join(map(str, s))}" for s in left)


def spec(lab: Lab, launcher: str = "direct") -> str:
    """The lab's spec with one gated run, and less patience with a start that hangs."""
    text = (lab.layout.root / "lab.yaml").read_text()
    who = "launcher: direct, venv: [^,]+" if launcher != "direct" else "launcher: direct"
    new = re.sub(r"runs: 3", f"runs: 1, start_s: {START_S}", re.sub(who, f"launcher: {launcher}", text))
    assert new != text
    path = lab.layout.root / f"traffic-{launcher}.yaml"
    path.write_text(new)
    return str(path)


def check(lab: Lab, fault: Fault | None, bundle: Path, *words: str) -> Ended:
    """All checks of traffic over one run, kept in a bundle."""
    return fleet.tool("check", *TRAFFIC, "-i", spec(lab, fault.launcher if fault else "direct"), "--save", str(bundle), "-o", "json", "-v",
                      *words)


def replayed(lab: Lab, fault: Fault | None, bundle: Path, live: Ended) -> list[str]:
    """What the bundle says otherwise than the fleet did; and names of faults in it."""
    argv = ("unshare", "-n", *fleet.CLI, "check", *TRAFFIC, "-i", spec(lab, fault.launcher if fault else "direct"), "--from", str(bundle),
            "-o", "json", "-v")
    said = fleet.run(argv)
    texts = [f"in the bundle stands {name}" for name in names_in(bundle)]
    if said.rc != live.rc:
        texts.append(f"exit {said.rc} from the bundle, {live.rc} from the fleet")
    ours, theirs = ({(f.id, f.status) for f in fleet.findings(e)} for e in (said, live))
    return texts + [f"only in one of them: {json.dumps(one)}" for one in sorted(ours ^ theirs)]


def lines(ended: Ended) -> str:
    """For a failed assertion."""
    every = [(r["check"], f) for r in fleet.report(ended)["results"] for f in r["findings"] if f["status"] in BAD]
    return "\n".join(f"{c} {f['status']} {f['code']} {f['subject']} {f['got']} | {f['want']} | {f['why']}"[:500] for c, f in every)


def passes(lab: Lab, bundle: Path) -> None:
    """With the numbers of the table, over both rails of every node, and from the bundle too."""
    ended = check(lab, None, bundle)
    assert ended.out.startswith("{"), ended.all
    assert ended.rc == 0, lines(ended)
    results = {r["check"]: r for r in fleet.report(ended)["results"]}
    assert {name: r["status"] for name, r in results.items()} == dict.fromkeys(TRAFFIC, "pass"), lines(ended)
    for number in HEALTHY:
        got = results[number.check]["evidence"][number.key]
        assert number.holds(got), f"{number.check}: {number.key} is {got}, the table: {number.shown}"
    edges = [f["got"] for f in results["allreduce"]["findings"] if f["id"].endswith("transport.edges")]
    assert len(edges) == len(NODES)  # a ring
    assert all(rail in text for text in edges for rail in RAILS)  # by NCCL's own words
    shares = [f["subject"] for f in results["rdma_counters"]["findings"] if ".share." in f["id"]]
    assert {(s["nodes"][0], s["rail"]) for s in shares} == {(n, r) for n in NODES for r in ("a", "b")}
    assert replayed(lab, None, bundle, ended) == []


def told(lab: Lab, fault: Fault, bundle: Path) -> None:
    """One fault on a fleet that is well otherwise: the row, all of it and nothing else, live and from the bundle."""
    assert fault.traffic is not None
    where = WHERE if fault.launcher == "direct" else NODES[0]  # where rank 0 writes its file
    lab.restore()
    inject(lab, where, fault.name)
    ended = check(lab, fault, bundle)
    assert ended.out.startswith("{"), ended.all
    texts = list(wrong(ended, fault.traffic, Place(lab, where, fault)))
    assert not texts, "\n".join([*texts, "", lines(ended)])
    exits = {row.exit for row in fault.traffic.values()}
    assert ended.rc == (1 if 1 in exits else max(exits, default=0))
    assert replayed(lab, fault, bundle, ended) == []
