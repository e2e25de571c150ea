"""Large and hostile texts end soon, and what was left out is said. No time is measured: each of these would take very long if a step were
quadratic in its lines."""

from __future__ import annotations

import json

import pytest

from fabrictool.diagnose import MOST_PIECES, diagnose
from fabrictool.model import Code
from fabrictool.snapshot.sniff import Input, sniff
from tests.diagnose.table import codes, findings, of_text

MANY = 12_000
TEXTS = {
    "open brackets": "[{\n" * MANY,
    "hosts": "".join(f"10.{i >> 16}.{i >> 8 & 255}.{i & 255} n{i}\n" for i in range(MANY)),
    "variables": "".join(f"NCCL_X{i}=1\n" for i in range(MANY)),
    "sockets": "SYN-SENT 0 1 10.0.0.1:1 10.0.0.2:2\n" * MANY,
    "kernel": "".join(f"[ 9000.123456] mlx5_core 0000:01:00.0 e{i}: Link down\n" for i in range(MANY)),
    "rdma": "[" + ",".join(json.dumps({"ifname": f"d{i}", "port": 1, "state": "DOWN"}) for i in range(MANY)) + "]\n",
    "hosts of a log": "".join(f"h{i}:{i}:1 [0] NCCL INFO Using network Socket\n" for i in range(MANY)),
    "outputs": "Priority trust state: pcp\nPFC configuration:\n" * MANY,
    "runs": "vm:1:2 [0] NCCL INFO x\n# nccl-tests version 2\n" * MANY,
    "two tools in turn": "NIC statistics:\nhca_id:\tx\n" * MANY,
    "devices": "".join(f"hca_id:\td{i}\n\t\tport:\t1\n\t\t\tstate:\t\tPORT_DOWN (1)\n" for i in range(MANY)),
    "frames": "#0  0x1 in a ()\n" * MANY,
    "steps": "".join(f"fabrictool-allreduce: rank {i} on h{i}: starting\n" for i in range(MANY)) + "Timeout (0:00:09)!\n" * MANY,
    "results": '{"algbw_gbytes_per_s": 1.5, "fabrictool": "allreduce"}\n' * MANY,
    "one rank's starts": "fabrictool-allreduce: rank 0 on h: starting\n" * MANY,
    "dumps": "Timeout (0:00:09)!\nThread 0x01 (most recent call first):\n" * MANY,
    "last errors": "NCCL error\nLast error:\nBroken pipe\n" * MANY,
    "rows": "   268435456      67108864     float     sum      -1\n" * MANY,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_it_ends(text: str) -> None:
    assert Code.BUG not in codes(of_text(text))


def test_no_more_than_so_many_outputs_are_judged() -> None:
    pieces = sniff(Input("paste", TEXTS["outputs"]))
    assert len(pieces) > MOST_PIECES
    assert len(diagnose(pieces)) <= MOST_PIECES


def test_a_quote_is_short() -> None:
    found = findings(of_text("DCBX mode: OS controlled\nPriority trust state: pcp\n" + "x" * 10**6 + "\n"))
    assert max((len(q) for f in found for q in f.lines), default=0) < 400
