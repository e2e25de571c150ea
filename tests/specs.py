"""Node specs for tests, built without the loader."""

from __future__ import annotations

import json
from typing import Any

from fabrictool.spec import NodeSpec
from fabrictool.spec.schema import NODE

SPARK: dict[str, Any] = {
    "site": "spark4", "group": "spark", "nodes": ["spark01", "spark02", "spark03", "spark04"],
    "ssh": {"user": "admin", "sudo": "ask"},
    "switches": {"sw1": {"mtu": 9216, "mtu_counts": "ip", "pfc": "none", "keeps_dscp": "unknown"}},
    "fabric": {
        "mtu": 9000, "traffic_class": 104,
        "qos": {"trust": "dscp", "dscp_to_priority": {26: 3}, "pfc": [3], "global_pause": False, "writer": "mlnx_qos"},
        "rails": {"a": {"subnet": "10.10.1.0/24"}, "b": {"subnet": "10.10.2.0/24"}},
    },
    "gpu": {"model": "NVIDIA GB10", "count": 1, "unified_memory": True},
    "ports": {"p0": {"rate_gbit": 200, "switch": "sw1", "functions": [
        {"rail": "a", "rdma": "rocep1s0f0", "interface": "enp1s0f0np0"},
        {"rail": "b", "rdma": "roceP2p1s0f0", "interface": "enP2p1s0f0np0"}]}},
    "bootstrap": "enp1s0f0np0", "protected": ["enP7s7", "wlP9s9"],
    "env": {"write": ["nccl_conf", "docker_env"], "hca_match": "plain",
            "set": {"NCCL_IB_QPS_PER_CONNECTION": 4, "NCCL_IB_SPLIT_DATA_ON_QPS": 1, "CUTE_DSL_ARCH": "sm_121a",
                    "VLLM_HOST_IP": "{bootstrap.address}"},
            "consumers": ["docker:vllm-*"]},
}


def node_spec(name: str = "spark01", **changes: Any) -> NodeSpec:
    """A Spark node; `changes` replace top-level keys."""
    return NODE.validate_json(json.dumps({"name": name, **SPARK, **changes}))
