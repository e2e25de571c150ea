"""`versions`: what should be the same on all nodes of a group is compared, and content probes are held against the spec.

No list of good versions: the fleet is its own measure. Nodes of one group of the spec are compared, because groups may differ by design.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fabrictool.model import Absent, Code, Finding, Observed, Reason, Subject, SubjectKind, Unreadable, Value
from fabrictool.prove.case import Case
from fabrictool.prove.majority import NONE, Groups, groups
from fabrictool.room import About
from fabrictool.spec import NodeSpec
from fabrictool.spec.system import HOST, ContentSpec
from fabrictool.system import Image, ask_again, contents, facts, images, sections
from fabrictool.system.contents import Answers, Content

NAMES: Mapping[str, str] = {
    "kernel": "kernel", "driver": "NVIDIA driver", "driver_kind": "kind of NVIDIA driver", "cuda": "CUDA of the driver", "gpu": "GPUs",
    "vbios": "VBIOS", "mig": "MIG mode", "ecc": "ECC mode", "power_limit": "power limit of the GPU", "nic_driver": "NIC driver",
    "ofed": "OFED", "rdma_core": "rdma-core", "nccl": "NCCL of the node",
}
KINDS = {"firmware": "firmware of", "image": "image of", "nccl": "NCCL in", "cudart": "CUDA runtime in", "content": "content of"}
REMEDY = "bring these nodes to one version; which one is right is yours to say"


def judge(case: Case) -> Iterator[Finding]:
    by_group: dict[str, list[str]] = {}
    for name in case.wants:
        lost = _not_read(case, name)
        if lost is None:
            by_group.setdefault(case.wants[name].group, []).append(name)
        else:
            yield lost
    for nodes in by_group.values():
        yield from _group(case, nodes)
        yield from _probes(case, nodes)


def _not_read(case: Case, node: str) -> Finding | None:
    """One finding for a node of which nothing is known, instead of one for each fact."""
    got = case.snap(node).raw(sections.HOST_FACTS.name)
    if not isinstance(got, Unreadable) or (got.reason is not Reason.NOT_COLLECTED and case.snap(node).error is None):
        return None
    about = About(Code.VERSIONS_DIFFER, Subject(SubjectKind.NODE, (node,)), "versions.read", "")
    return about.unknown(got, "versions, to be compared with the other nodes", ask_again(got, "versions"))


def _group(case: Case, nodes: Sequence[str]) -> Iterator[Finding]:
    table: dict[str, dict[str, Observed[str]]] = {}
    for node in nodes:
        for fact, value in facts(case.wants[node], case.snap(node)).items():
            table.setdefault(fact, {})[node] = value
    seen = {n: images(case.wants[n], case.snap(n)) for n in nodes}
    for pattern in dict.fromkeys(p for found in seen.values() for p in found):
        table[f"image.{pattern}"] = _image_texts({n: found[pattern] for n, found in seen.items() if pattern in found})
    for fact, values in table.items():
        yield from _fact(fact, values)


def _image_texts(values: Mapping[str, Observed[frozenset[Image]]]) -> dict[str, Observed[str]]:
    """Compared by what registries call them where all have such a name, else by their own ids. One that was pulled from two registries has
    two names: images with one id, or with a name in common, are one."""
    every = [i for v in values.values() if isinstance(v, Value) for i in v.value]
    named = all(i.digests for i in every)
    same: list[set[str]] = []
    for image in every:
        mine = {image.id, *image.digests}
        same = [*(names for names in same if not names & mine), mine.union(*(names for names in same if names & mine))]
    ids = {i.id for i in every}

    def label(image: Image) -> str:
        names = next(names for names in same if image.id in names)
        return min(names - ids or names) if named else min(names & ids)

    return {n: Value(", ".join(sorted({label(i) for i in v.value}))) if isinstance(v, Value) else v for n, v in values.items()}


def _title(fact: str) -> str:
    kind, dot, rest = fact.partition(".")
    return f"{KINDS[kind]} {rest.replace('.', ' ')}" if dot else NAMES.get(fact, fact)


def _fact(fact: str, values: Mapping[str, Observed[str]]) -> Iterator[Finding]:
    everyone = About(Code.VERSIONS_DIFFER, Subject(SubjectKind.FLEET, tuple(values)), f"versions.{fact}", "")
    per_consumer = fact.partition(".")[0] in ("image", "nccl", "cudart") and "." in fact
    # Where nothing of the kind runs there is nothing to compare; a node that lacks a library that others have differs from them.
    asked = {n: v for n, v in values.items() if not (per_consumer and isinstance(v, Absent))}
    found = groups(asked) if asked else None
    title = _title(fact)
    if found is None:
        first = next((v.what for v in values.values() if isinstance(v, Absent)), "")
        yield everyone.skip(f"{title}: nothing to compare" + (f"; on no node there is {first}" if first else ""))
        return
    for node, why in found.unread.items():
        one = About(Code.VERSIONS_DIFFER, Subject(SubjectKind.NODE, (node,)), f"versions.{fact}", "")
        yield one.unknown(why, f"{title}, to be compared with the other nodes", ask_again(why, "versions"))
    told = {n for nodes in found.values.values() for n in nodes}
    if len(values) == 1:
        if told:
            yield everyone.skip(f"{title}: {next(iter(found.values))}; one node has nothing to be compared with")
    elif found.agreed:
        yield About(Code.VERSIONS_DIFFER, Subject(SubjectKind.FLEET, tuple(n for n in values if n in told)), f"versions.{fact}", "").ok(
            f"{title}: {next(iter(found.values))}", f"{title}: one on all nodes")
    elif found.values:
        yield from _differ(title, fact, found, tuple(n for n in values if n in told))


def _differ(title: str, fact: str, found: Groups, told: tuple[str, ...]) -> Iterator[Finding]:
    most = found.majority
    if most is None:
        said = "; ".join(f"{value} on {', '.join(nodes)}" for value, nodes in found.values.items())
        yield About(Code.VERSIONS_DIFFER, Subject(SubjectKind.FLEET, told), f"versions.{fact}", "").fail(
            f"{title}: {said}", f"{title}: one on all nodes", "no version has the majority, so no node is called the odd one",
            remedy=REMEDY)
        return
    for node, value in found.outliers.items():
        shown = f"no {title}" if value == NONE else f"{title}: {value}"
        yield About(Code.VERSIONS_DIFFER, Subject(SubjectKind.NODE, (node,)), f"versions.{fact}", "").fail(
            shown, f"{title}: {most}", f"{len(found.values[most])} of {len(told)} nodes have {most}", remedy=REMEDY)


def _probes(case: Case, nodes: Sequence[str]) -> Iterator[Finding]:
    answers = {n: contents(case.snap(n)) for n in nodes if case.wants[n].versions.probes}
    free: dict[str, dict[str, Observed[str]]] = {}
    for node, got in answers.items():
        for probe in case.wants[node].versions.probes:
            if probe.sha256 is None and probe.text is None:
                free.setdefault(probe.name, {})[node] = _digest(probe, got)
            else:
                yield from _probe(case.wants[node], probe, got)
    for name, values in free.items():
        yield from _fact(f"content.{name}", values)


def _about(node: str, probe: str, where: str = "") -> About:
    path = f"versions.content.{probe}" + (f".{where}" if where and where != HOST else "")
    return About(Code.VERSIONS_DIFFER, Subject(SubjectKind.NODE, (node,)), path, "")


def _probe(want: NodeSpec, probe: ContentSpec, got: Answers | Unreadable) -> Iterator[Finding]:
    """Against the spec, on each node and in each container by itself."""
    wanted = f"{probe.path} with sha256 {probe.sha256}" if probe.sha256 else f"{probe.path} with the text {probe.text!r}"
    found = got if isinstance(got, Unreadable) else got.of(probe)
    if isinstance(found, Unreadable):
        yield _about(want.name, probe.name).unknown(found, wanted, ask_again(found, "versions"))
        return
    for where, seen in found.items():
        about = _about(want.name, probe.name, where)
        place = f"in {where}" if where != HOST else "on the node"
        if isinstance(seen, Unreadable):
            yield about.unknown(seen, wanted)
        elif isinstance(seen, Absent):
            yield about.fail(f"no {probe.path} {place}", wanted, "the file is not there", remedy=_mend(probe))
        elif (seen.value.sha256 == probe.sha256) if probe.sha256 else seen.value.has_text is True:
            yield about.ok(f"{probe.path} {place} as wanted", wanted)
        elif (probe.sha256 and not seen.value.sha256) or (probe.text and seen.value.has_text is None):
            yield about.unknown(Unreadable(Reason.NOT_COLLECTED, f"{probe.path} {place}: another question was asked of it"), wanted)
        else:
            said = f"{probe.path} {place} has sha256 {seen.value.sha256}" if probe.sha256 else f"{probe.path} {place} lacks the text"
            yield about.fail(said, wanted, "another version of the file, or an edited one", remedy=_mend(probe))


def _mend(probe: ContentSpec) -> str:
    if probe.container == HOST:
        return f"put the right {probe.path} there, or correct versions.probes in the spec"
    return "start the container anew from the right image and with the right mounts, or correct versions.probes in the spec"


def _digest(probe: ContentSpec, got: Answers | Unreadable) -> Observed[str]:
    """Of a probe without a wanted value: what lies there, to be compared over the nodes."""
    found = got if isinstance(got, Unreadable) else got.of(probe)
    if isinstance(found, Unreadable):
        return found
    unread = next((v for v in found.values() if isinstance(v, Unreadable)), None)
    if unread is not None:
        return unread
    digests = {_text(v) for v in found.values()}
    return Value(", ".join(sorted(digests))) if digests else Absent(probe.path)


def _text(seen: Observed[Content]) -> str:
    return f"sha256 {seen.value.sha256}" if isinstance(seen, Value) else NONE
