"""Content probes of `versions`: against the spec, in every container, and compared over the nodes."""

from __future__ import annotations

import pytest

from fabrictool.model import Code, Finding, Status, SubjectKind
from fabrictool.snapshot import Captured
from fabrictool.system import sections as S
from tests.prove.test_versions import bad, judged
from tests.specs import node_spec
from tests.system.nodes import fleet

WANTED = "de" * 32
PATCH = {"name": "patch", "container": "vllm-*", "path": "/opt/p.py", "sha256": WANTED}
TEXT = {"name": "flag", "path": "/etc/x", "text": "a = 1"}
FREE = {"name": "same", "path": "/etc/y"}


def answers(*rows: str, docker: str = "docker ok 0 -") -> dict[str, Captured | None]:
    return {S.CONTENTS: Captured(0, "\n".join((docker, *rows, "end\n")))}


def key(probe: dict[str, str]) -> str:
    return S.key(node_spec(versions={"probes": [probe]}).versions.probes[0])


def probed(probe: dict[str, str], here: dict[str, Captured | None], others: dict[str, Captured | None]) -> list[Finding]:
    case = fleet({"spark01": here, "spark02": others}, count=2, versions={"probes": [probe]})
    return [f for f in judged(case) if f.path.startswith("versions.content")]


@pytest.mark.parametrize(("probe", "row", "status", "code"), [
    (PATCH, f"vllm-a sha256 {WANTED}", Status.PASS, Code.VERSIONS_DIFFER), (PATCH, f"vllm-a sha256 {'00' * 32}", Status.FAIL,
                                                                           Code.VERSIONS_DIFFER),
    (PATCH, "vllm-a absent -", Status.FAIL, Code.VERSIONS_DIFFER), (PATCH, "vllm-a denied -", Status.UNKNOWN, Code.NEEDS_ROOT),
    (PATCH, "vllm-a slow -", Status.UNKNOWN, Code.TOOL_TIMEOUT), (PATCH, "vllm-a sha256 xyz", Status.UNKNOWN, Code.UNREADABLE),
    (PATCH, "vllm-a text 1", Status.UNKNOWN, Code.UNREADABLE),
    (TEXT, "host text 1", Status.PASS, Code.VERSIONS_DIFFER), (TEXT, "host text 0", Status.FAIL, Code.VERSIONS_DIFFER),
    (TEXT, f"host sha256 {WANTED}", Status.UNKNOWN, Code.UNREADABLE),
])
def test_content_probes(probe: dict[str, str], row: str, status: Status, code: Code) -> None:
    good = f"k {key(probe)} vllm-a sha256 {WANTED}" if probe is PATCH else f"k {key(probe)} host text 1"
    here, there = probed(probe, answers(f"k {key(probe)} {row}"), answers(good))
    assert (here.status, here.code, here.subject.nodes) == (status, code, ("spark01",))
    assert there.status is Status.PASS
    assert (status is Status.FAIL) == bool(here.remedy and here.status is Status.FAIL)


def test_a_probe_without_an_answer_is_unknown() -> None:
    good = answers(f"k {key(PATCH)} vllm-a sha256 {WANTED}")
    for here, code in ((answers(f"n {key(PATCH)}"), Code.BLOCKED), (answers(docker="docker failed 1 refused"), Code.UNREADABLE),
                       (answers(), Code.UNREADABLE), ({S.CONTENTS: None}, Code.UNREADABLE),
                       ({S.CONTENTS: Captured(0, "docker ok 0 -\n")}, Code.UNREADABLE)):
        first, second = probed(PATCH, here, good)
        assert (first.status, first.code) == (Status.UNKNOWN, code)
        assert second.status is Status.PASS


def test_every_container_counts() -> None:
    rows = (f"k {key(PATCH)} vllm-a sha256 {WANTED}", f"k {key(PATCH)} vllm-b sha256 {'00' * 32}")
    found = probed(PATCH, answers(*rows), answers(rows[0]))
    assert [(f.path.rpartition(".")[2], f.status) for f in found] == [("vllm-a", Status.PASS), ("vllm-b", Status.FAIL),
                                                                      ("vllm-a", Status.PASS)]


def test_a_probe_without_a_wanted_value_is_compared_over_the_nodes() -> None:
    a, b = (answers(f"k {key(FREE)} host sha256 {d * 32}") for d in ("aa", "bb"))
    assert [f.status for f in probed(FREE, a, a)] == [Status.PASS]
    assert [(f.status, f.subject.kind) for f in probed(FREE, a, b)] == [(Status.FAIL, SubjectKind.FLEET)]
    case = fleet({"spark01": a, "spark02": a, "spark03": b}, count=3, versions={"probes": [FREE]})
    assert bad(case) == [("versions.content.same", Code.VERSIONS_DIFFER, Status.FAIL, ("spark03",))]
