"""nvidia-smi: its table of distances is judged as the check rails judges it, all else is named with what it lacks."""

from __future__ import annotations

from typing import Any

import pytest

from fabrictool.diagnose import Wants
from fabrictool.model import Code, Status
from fabrictool.snapshot.sniff import Input, Kind, sniff
from fabrictool.spec import NodeSpec
from tests.diagnose.table import CAPTURES, PASTES, findings, of_text
from tests.specs import node_spec

FAR = (PASTES / "nvidia-far.txt").read_text(encoding="utf-8")
NEAR = (PASTES / "nvidia-near.txt").read_text(encoding="utf-8")
NOT_CUT = NEAR.splitlines(keepends=True)


def told(text: str, wants: Wants | None = None) -> list[tuple[str, Status, Code]]:
    return [(f.subject.function, f.status, f.code) for f in findings(of_text(text, wants=wants))]


@pytest.mark.parametrize("text", [FAR, FAR.replace("\n", "\r\n"), FAR.expandtabs(8), f"$ nvidia-smi topo -m\n{FAR}"])
def test_a_gpu_that_is_far_is_to_be_looked_at(text: str) -> None:
    assert told(text) == [("mlx5_0", Status.PASS, Code.PEER_MEMORY), ("mlx5_1", Status.WARN, Code.PEER_MEMORY)]
    far = findings(of_text(text))[1]
    assert "(SYS)" in far.got
    assert "only if this device belongs to the fabric" in far.why
    assert any("NIC1" in line and "SYS" in line for line in far.lines)


def test_near_ones_pass() -> None:
    assert [status for _, status, _ in told(NEAR)] == [Status.PASS, Status.PASS]


@pytest.mark.parametrize("text", [
    (CAPTURES / "nvidia-smi" / "h200x2-topo.txt").read_text(encoding="utf-8"), "".join(NOT_CUT[:3]), "".join(NOT_CUT[1:]),
    NEAR.replace("PIX\tSYS\t X", "PIX\tS\t X"),
])
def test_no_nics_no_head_or_a_damaged_cell_are_no_pass(text: str) -> None:
    assert all(status is Status.UNKNOWN for _, status, _ in told(text))


@pytest.mark.parametrize(("name", "gpus"), [("h200x2", "2 GPUs"), ("performance", "1 GPU"), ("query", "1 GPU")])
def test_lists_say_what_they_lack(name: str, gpus: str) -> None:
    text = (CAPTURES / "nvidia-smi" / f"{name}.txt").read_text(encoding="utf-8")
    for given in (text, text.replace("\n", "\r\n"), text[:-30]):
        lists = [f for j in of_text(given) if j.kind is Kind.NVIDIA_SMI for f in j.findings]
        assert lists
        for one in lists:
            assert (one.code, one.status) == (Code.NOTHING_KNOWN, Status.UNKNOWN)
            assert one.got == f"nvidia-smi's list of {gpus}"
            assert "fabrictool check versions -i INVENTORY" in one.remedy


H20: dict[str, Any] = {
    "gpu": {"model": "NVIDIA H20", "count": 2, "gpudirect": "required"}, "bootstrap": "bond0",
    "ports": {"p0": {"rate_gbit": 200, "switch": "sw1", "functions": [{"rail": "b", "rdma": "mlx5_1", "interface": "ens1np0"}]}}}


def test_a_spec_tells_which_nics_matter_and_whether_they_must_be_near() -> None:
    def wants(spec: NodeSpec) -> Wants:
        return Wants({"spark01": spec}, "spark01")

    assert told(FAR, wants(node_spec(**H20))) == [("mlx5_1", Status.FAIL, Code.PEER_MEMORY)]
    preferred = {**H20, "gpu": {"model": "NVIDIA H20", "count": 2}}
    assert [status for _, status, _ in told(FAR, wants(node_spec(**preferred)))] == [Status.WARN]
    assert [status for _, status, _ in told(FAR, wants(node_spec()))] == [Status.SKIP]  # one memory


@pytest.mark.parametrize("said", [
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed",
    "No devices were found",
])
def test_no_gpu_answers(said: str) -> None:
    (one,) = findings(of_text(f"{said}\n"))
    assert one.got.startswith(said[:60])
    assert "kernel" in one.why


@pytest.mark.parametrize("text", ["name, address, phone.\n", "+------+\n| GPU0 |\n+------+\n", "GPU0 is slow\n"])
def test_other_tables(text: str) -> None:
    assert {p.kind for p in sniff(Input("paste", text))} == {Kind.UNKNOWN}
