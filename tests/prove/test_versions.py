"""`versions`: majority and outliers, ties, what cannot be read, content probes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.model import Absent, Code, Finding, Observed, Reason, Status, SubjectKind, Unreadable, Value
from fabrictool.prove import Case, versions
from fabrictool.prove.majority import groups
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.system import sections
from tests.env.sample import Box, consumers_text
from tests.specs import node_spec
from tests.system.nodes import BOX, DIGEST, END_FILE, boxes, fleet, gpu, host, nic, process, snap

S = sections


def judged(case: Case) -> list[Finding]:
    return list(versions.judge(case))


def bad(case: Case) -> list[tuple[str, Code, Status, tuple[str, ...]]]:
    return [(f.path, f.code, f.status, f.subject.nodes) for f in judged(case) if f.bad]


def test_a_healthy_fleet_passes_and_says_of_what() -> None:
    found = judged(fleet())
    assert not [f for f in found if f.bad]
    passed = {f.path: f.got for f in found if f.status is Status.PASS}
    assert passed["versions.kernel"] == "kernel: 6.14.0-1015-nvidia"
    assert passed["versions.driver"] == "NVIDIA driver: 580.159.04"
    assert passed["versions.cuda"] == "CUDA of the driver: 13.0"
    assert passed["versions.firmware.p0.a"] == "firmware of p0 a: 28.45.1200 (NVD0000000087)"
    assert passed["versions.nccl.docker:vllm-*"] == "NCCL in docker:vllm-*: 2.27.3"
    assert passed["versions.cudart.docker:vllm-*"] == "CUDA runtime in docker:vllm-*: 13.0.48"
    assert passed["versions.image.docker:vllm-*"] == f"image of docker:vllm-*: {DIGEST}"
    assert all(f.subject.kind is SubjectKind.FLEET and len(f.subject.nodes) == 4 for f in found if f.status is Status.PASS)
    assert {f.path for f in found if f.status is Status.SKIP} == {"versions.mig", "versions.ecc", "versions.power_limit",
                                                                  "versions.nic_driver", "versions.ofed"}


ODD: Mapping[str, tuple[str, Captured]] = {
    "versions.kernel": (S.HOST_FACTS.name, host("6.11.0-1016-nvidia")),
    "versions.driver": (S.GPU.name, gpu("575.51.03")),
    "versions.gpu": (S.GPU.name, gpu(name="NVIDIA GB20")),
    "versions.vbios": (S.GPU.name, gpu(vbios="9A.0B.14.00.00")),
    "versions.driver_kind": (S.DRIVER.name, Captured(0, "/proc/driver/nvidia/version:NVRM version: NVIDIA UNIX x86_64 Kernel Module  "
                                                        "580.159.04  Wed\n" + END_FILE)),
    "versions.cuda": (S.CUDA.name, Captured(0, "CUDA Version                           : 12.9\n")),
    "versions.firmware.p0.b": (S.NIC.name, nic(second="28.43.1014")),
    "versions.ofed": (S.OFED.name, Captured(0, "MLNX_OFED_LINUX-24.10-0.7.0.0:\n")),
    "versions.rdma_core": (S.PACKAGES.name, Captured(0, "rdma-core 57.0-1 installed\nend\n")),
    "versions.nccl": (S.LIBRARIES.name, Captured(0, "/lib/libnccl.so.2 -> /usr/lib/libnccl.so.2.28.9\nend\n")),
    "versions.image.docker:vllm-*": (S.CONTAINERS.name, boxes("sha256:" + "11" * 32, (f"x@sha256:{'22' * 32}",))),
    "versions.nccl.docker:vllm-*": ("consumers", Captured(0, consumers_text(Box(libraries=("/x/libnccl.so.2.28.9",))))),
    "versions.cudart.docker:vllm-*": (S.PROCESSES.name, process(cudart="12.8.90")),
}


@pytest.mark.parametrize("path", ODD)
def test_the_one_that_differs_is_named(path: str) -> None:
    section, got = ODD[path]
    case = fleet({"spark03": {section: got}})
    assert bad(case) == [(path, Code.VERSIONS_DIFFER, Status.FAIL, ("spark03",))]
    (finding,) = [f for f in judged(case) if f.bad]
    assert finding.got != finding.want
    assert "3 of 4 nodes" in finding.why
    assert finding.remedy


def test_a_board_makes_the_same_number_another_firmware() -> None:
    assert [p for p, *_ in bad(fleet({"spark02": {S.NIC.name: nic(board="LNV0000000002")}}))] == ["versions.firmware.p0.a",
                                                                                                 "versions.firmware.p0.b"]


def test_a_tie_has_no_outlier_and_names_both_groups() -> None:
    other = {S.HOST_FACTS.name: host("6.11.0")}
    case = fleet({"spark01": other, "spark04": other})
    (finding,) = [f for f in judged(case) if f.bad]
    assert finding.subject.kind is SubjectKind.FLEET
    assert finding.subject.nodes == ("spark01", "spark02", "spark03", "spark04")
    assert "6.11.0 on spark01, spark04" in finding.got
    assert "6.14.0-1015-nvidia on spark02, spark03" in finding.got
    two = fleet({"spark01": other}, count=2)
    assert [(f.subject.kind, f.status) for f in judged(two) if f.bad] == [(SubjectKind.FLEET, Status.FAIL)]


def test_a_plurality_is_no_majority() -> None:
    case = fleet({"spark01": {S.HOST_FACTS.name: host("a")}, "spark02": {S.HOST_FACTS.name: host("b")}})
    assert [f.subject.kind for f in judged(case) if f.bad] == [SubjectKind.FLEET]
    five = fleet({"spark01": {S.HOST_FACTS.name: host("a")}, "spark02": {S.HOST_FACTS.name: host("b")}}, count=5)
    assert [f.subject.nodes for f in judged(five) if f.bad] == [("spark01",), ("spark02",)]


def test_what_cannot_be_read_is_unknown_and_does_not_count() -> None:
    missing = Captured(127, "", "sh: 1: nvidia-smi: not found")
    case = fleet({"spark01": {S.CUDA.name: missing}, "spark02": {S.CUDA.name: Captured(0, "CUDA Version : 12.9\n")}})
    assert bad(case) == [("versions.cuda", Code.TOOL_MISSING, Status.UNKNOWN, ("spark01",)),
                         ("versions.cuda", Code.VERSIONS_DIFFER, Status.FAIL, ("spark02",))]
    (differs,) = [f for f in judged(case) if f.status is Status.FAIL]
    assert "2 of 3 nodes" in differs.why


def test_a_node_that_was_not_asked_is_one_finding() -> None:
    case = fleet({"spark02": {s.name: None for s in S.versions(node_spec())}})
    assert bad(case) == [("versions.read", Code.UNREADABLE, Status.UNKNOWN, ("spark02",))]
    (finding,) = [f for f in judged(case) if f.bad]
    assert "fabrictool check versions" in finding.remedy
    lost = replace(case, snaps={**case.snaps, "spark02": Snapshot("spark02", error=Unreadable(Reason.UNREACHABLE, "no route"))})
    assert bad(lost) == [("versions.read", Code.UNREACHABLE, Status.UNKNOWN, ("spark02",))]


def test_a_library_that_one_node_lacks_is_a_difference() -> None:
    none = Captured(0, "end\n")
    (finding,) = [f for f in judged(fleet({"spark01": {S.LIBRARIES.name: none}})) if f.bad]
    assert (finding.status, finding.subject.nodes, finding.got) == (Status.FAIL, ("spark01",), "no NCCL of the node")
    everywhere = fleet({f"spark0{i}": {S.LIBRARIES.name: none} for i in range(1, 5)})
    (skipped,) = [f for f in judged(everywhere) if f.path == "versions.nccl"]
    assert skipped.status is Status.SKIP
    assert "on no node there is" in skipped.why


def test_a_consumer_that_does_not_run_somewhere_is_not_compared_there() -> None:
    idle = {"consumers": Captured(0, consumers_text()), S.CONTAINERS.name: Captured(0, "docker ok 0 -\nend\n"),
            S.PROCESSES.name: Captured(0, "end\n")}
    assert not bad(fleet({"spark04": idle}))
    nowhere = judged(fleet({f"spark0{i}": idle for i in range(1, 5)}))
    assert {f.status for f in nowhere if "vllm" in f.path} == {Status.SKIP}


def test_one_image_with_several_names_is_one() -> None:
    """Pulled from a mirror too, it has a second name on that node; what docker keeps is the same."""
    mirror, other = f"mirror/vllm@sha256:{'00' * 32}", f"x@sha256:{'22' * 32}"
    upstream = f"vllm/vllm-openai@{DIGEST}"
    assert not bad(fleet({"spark01": {S.CONTAINERS.name: boxes(digests=(mirror, upstream))}}))
    assert not bad(fleet({"spark01": {S.CONTAINERS.name: boxes(digests=(mirror,))}}))
    elsewhere = boxes("sha256:" + "11" * 32, (mirror, other))
    assert [f[:3] for f in bad(fleet({"spark01": {S.CONTAINERS.name: elsewhere}}))] == [
        ("versions.image.docker:vllm-*", Code.VERSIONS_DIFFER, Status.FAIL)]
    stored = boxes("sha256:" + "11" * 32, (mirror, upstream))  # another image store keeps it under another id
    assert not bad(fleet({"spark01": {S.CONTAINERS.name: stored}}))


def test_images_that_a_registry_never_saw_are_compared_by_their_own_ids() -> None:
    built = {S.CONTAINERS.name: boxes(digests=())}
    assert not bad(fleet({"spark01": built}))
    other = {S.CONTAINERS.name: boxes("sha256:" + "11" * 32, ())}
    assert [n for *_, n in bad(fleet({"spark01": other}))] == [("spark01",)]
    refused = {S.CONTAINERS.name: Captured(0, f"docker ok 0 -\nc 4001 {BOX} \"/vllm-a\" \"i:1\" \"sha256:{'ab' * 32}\" \"running\"\n"
                                              "I 1 no such command\nend\n")}
    assert not bad(fleet({"spark01": refused}))
    failed = {S.CONTAINERS.name: Captured(0, "docker failed 1 permission denied\nend\n")}
    assert bad(fleet({"spark01": failed})) == [("versions.image.docker:vllm-*", Code.NEEDS_ROOT, Status.UNKNOWN, ("spark01",))]


def test_groups_of_the_spec_are_compared_apart() -> None:
    case = fleet({n: {S.HOST_FACTS.name: host("5.15.0")} for n in ("spark03", "spark04")})
    wants = {n: replace(w, group="old" if n in ("spark03", "spark04") else "new") for n, w in case.wants.items()}
    assert not bad(replace(case, wants=wants))
    assert bad(case)


def test_a_node_alone_has_nothing_to_be_compared_with() -> None:
    assert {f.status for f in judged(fleet(count=1))} == {Status.SKIP}
    alone = fleet({"spark01": {S.CUDA.name: Captured(127, "", "not found")}}, count=1)
    assert bad(alone) == [("versions.cuda", Code.TOOL_MISSING, Status.UNKNOWN, ("spark01",))]


VALUES = st.one_of(st.sampled_from("abc").map(Value), st.just(Absent("x")), st.just(Unreadable(Reason.FAILED, "y")))


@given(st.dictionaries(st.sampled_from([f"n{i}" for i in range(9)]), VALUES))
def test_majorities(values: dict[str, Observed[str]]) -> None:
    found = groups(values)
    if found is None:
        assert not any(isinstance(v, Value | Unreadable) for v in values.values())
        return
    told = {n: v for n, v in values.items() if not isinstance(v, Unreadable)}
    assert sorted(n for nodes in found.values.values() for n in nodes) == sorted(told)
    assert set(found.unread) == set(values) - set(told)
    if found.outliers:
        assert found.majority is not None
        assert len(found.outliers) < len(told) / 2
        assert not set(found.outliers) & set(found.values[found.majority])
    if found.agreed:
        assert not found.outliers


@given(st.sampled_from([p for p in ODD if p != "versions.driver"]), st.integers(0, 400), st.integers(0, 255))  # it has two readers
def test_damage_is_never_a_pass_of_what_it_hides(path: str, at: int, byte: int) -> None:
    """A damaged section on one of two nodes that differ: never `the same on all nodes` with both named."""
    section, got = ODD[path]
    for text in (got.out[:at], got.out[:at] + chr(byte) + got.out[at + 1:]):
        case = fleet({"spark01": {section: replace(got, out=text)}}, count=2)
        for f in judged(case):
            if f.path == path and f.status is Status.PASS:
                assert f.subject.nodes == ("spark02",)


def test_a_snapshot_of_nothing() -> None:
    case = Case({"spark01": node_spec()}, {"spark01": Snapshot("spark01")})
    assert [f.status for f in judged(case)] == [Status.UNKNOWN]
    assert snap("x").node == "x"


@pytest.mark.parametrize(("said", "code"), [
    ("docker 1\nend\n", Code.UNREADABLE), ("docker 124\nend\n", Code.TOOL_TIMEOUT), ("p 1\nmore\nend\n", Code.UNREADABLE),
    ("end\n", Code.UNREADABLE),
])
def test_a_rank_whose_libraries_are_not_told_is_not_left_out(said: str, code: Code) -> None:
    """The other nodes agree, and nothing is known of this one: it is not passed over as if nothing ran there."""
    found = judged(fleet({"spark02": {S.PROCESSES.name: Captured(0, said)}}))
    assert [(f.path, f.code, f.status, f.subject.nodes) for f in found if f.bad] == [
        ("versions.cudart.docker:vllm-*", code, Status.UNKNOWN, ("spark02",))]


def test_a_helper_that_came_meanwhile_is_no_loss() -> None:
    idle = consumers_text(Box(libraries=()))
    assert not bad(fleet({"spark02": {S.PROCESSES.name: Captured(0, "end\n"), "consumers": Captured(0, idle)}}))
