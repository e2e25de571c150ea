"""Nodes with eight GPUs: every rail carries its share, storage adapters none, whichever way ranks are spread over processes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from fabrictool.lab.handle import Lab
from tests.lab.collective import job, received, sent
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
NODES = ("gpu01", "gpu02")
RAILS = [f"mlx5_{i}" for i in (0, 1, 2, 3, 6, 7, 8, 9)]
ENV = {"NCCL_SOCKET_IFNAME": "bond1", "NCCL_IB_HCA": "^mlx5_4,mlx5_5"}


@pytest.fixture(scope="module")
def fleet() -> Iterator[Lab]:
    with built("h20", len(NODES), "h20") as lab:
        yield lab


def test_one_process_with_eight_gpus_on_each_node(fleet: Lab) -> None:
    before = {(node, d): sent(fleet, node, d) for node in NODES for d in RAILS}
    done = job(fleet, NODES, "-b 64M -e 64M -g 8 -w 5", ENV)
    assert [r.rc for r in done.ranks] == [0, 0], done.ranks
    assert all(360 < b < 367 for b in done.busbw)
    # 49 collectives of 64 MiB, 2 * 15/16 of which leave each node by eight rails; packets of 1024 bytes with 58 of headers
    each = 49 * 67108864 * 30 // 16 // 8
    for node in NODES:
        for device in RAILS:
            assert sent(fleet, node, device) - before[node, device] == each + each // 1024 * 58
        assert [sent(fleet, node, d) + received(fleet, node, d) for d in ("mlx5_4", "mlx5_5")] == [0, 0]
    log = done.logs[0]
    assert "Channel 01/16 : 0 9 10 11 12 13 14 15 8 1 2 3 4 5 6 7\n" in log
    assert re.search(r"Channel 00/0 : 7\[7\] -> 8\[0\] \[send\] via NET/IB/0/GDRDMA\n", log)
    assert "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n" in log
    assert "GPU Direct RDMA Enabled for HCA 7 'mlx5_9'" in log
    assert "Connected all rings, use ring PXN 0 GDR 1" in log


def test_by_default_a_tree_spans_two_nodes_and_looks_faster_than_the_wire(fleet: Lab) -> None:
    before = sent(fleet, "gpu01", RAILS[0])
    done = job(fleet, NODES, "-b 64M -e 64M -g 8 -w 5", {**ENV, "NCCL_ALGO": ""})
    assert all(600 < b < 690 for b in done.busbw)
    each = 49 * 67108864 // 8
    assert sent(fleet, "gpu01", RAILS[0]) - before == each + each // 1024 * 58


def test_without_gpudirect_the_log_says_so(fleet: Lab) -> None:
    for node in NODES:
        with fleet.edit_state(node) as state:
            state.gpu_direct = False
    done = job(fleet, NODES, "-b 1M -e 1M -g 8", ENV)
    assert "GPU Direct RDMA Disabled for HCA 0 'mlx5_0'" in done.logs[0]
    assert "GDRDMA" not in done.logs[0]
