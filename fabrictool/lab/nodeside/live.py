"""The node's live interfaces: what the kernel itself says, asked through the real `ip`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

from fabrictool.lab.nodeside.tool import Link

ARGV = ("ip", "-s", "-d", "-j", "addr", "show")
NIC_MIN_MTU, NIC_MAX_MTU = 68, 9978  # a CX-7's limits; a veth's own maximum is 65535


def parse(text: str) -> Mapping[str, Link]:
    """`ip -s -d -j addr show` -> interfaces by name, without lo."""
    links = {}
    for raw in json.loads(text or "[]"):
        if raw.get("ifname") in (None, "lo"):
            continue
        flags = raw.get("flags", ())
        rx, tx = (raw.get("stats64", {}).get(side, {}) for side in ("rx", "tx"))
        links[raw["ifname"]] = Link(
            raw["ifname"], raw.get("address", ""), raw.get("mtu", 0), "UP" in flags, raw.get("operstate", "UNKNOWN"),
            "LOWER_UP" in flags, tuple(f"{a['local']}/{a['prefixlen']}" for a in raw.get("addr_info", ()) if "local" in a),
            max(raw.get("min_mtu", 0), NIC_MIN_MTU), min(raw.get("max_mtu") or NIC_MAX_MTU, NIC_MAX_MTU),
            rx.get("bytes", 0), rx.get("packets", 0), tx.get("bytes", 0), tx.get("packets", 0))
    return links


def read() -> Mapping[str, Link]:
    """Run on the node itself."""
    done = subprocess.run(ARGV, capture_output=True, text=True, timeout=10, check=True)
    return parse(done.stdout)
