"""Two nodes with eight GPUs and eight rails each: sixteen ranks, of which each node's share what leaves it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet, outside
from tests.lab.collective import sent
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
RAILS = tuple(f"mlx5_{n}" for n in (0, 1, 2, 3, 6, 7, 8, 9))
STORAGE = ("mlx5_4", "mlx5_5")
# 27 calls of 256 MiB over 16 ranks: 27 x 268435456 x 2 x 15 / 16 leave each node in a ring, an eighth of it by each rail
WIRE = 13_589_544_960


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with built("many", 2, "h20") as lab:
        done = fleet.apply(lab)
        assert done.rc == 0, done.all
        yield lab


def test_sixteen_ranks_pass_with_numbers(lab: Lab) -> None:
    path = lab.layout.root / "once.yaml"
    path.write_text((lab.layout.root / "lab.yaml").read_text().replace("runs: 3", "runs: 1"))
    done = fleet.tool("check", "allreduce", "rdma_counters", "lossless_priority", "-i", str(path), "-o", "json", "-v")
    assert done.rc == 0, outside.short(done)
    results = {r["check"]: r for r in fleet.report(done)["results"]}
    assert {name: r["status"] for name, r in results.items()} == dict.fromkeys(("allreduce", "rdma_counters", "lossless_priority"), "pass")
    evidence = results["allreduce"]["evidence"]
    assert (evidence["ranks"], evidence["expected_per_node_bytes"], evidence["line_rate_gbytes_per_s"]) == (16, WIRE, 400.0)
    assert 340 <= evidence["busbw_min_gbytes_per_s"] <= 400
    shares = [f for f in results["allreduce"]["findings"] if f["id"].endswith("|allreduce.rdma_counters.share")]
    assert {(f["subject"]["nodes"][0], f["subject"]["rail"]) for f in shares} == {(n, f"r{i}") for n in lab.nodes for i in range(8)}
    for node in lab.nodes:  # by the lab's own registers: the gated run, and one with NCCL's own algorithm
        each = [sent(lab, node, device) for device in RAILS]
        assert min(each) >= WIRE / 8 * 1.01
        assert max(each) <= WIRE / 8 * 2.1
        assert [sent(lab, node, device) for device in STORAGE] == [0, 0]
