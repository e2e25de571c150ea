"""A small healthy spec without a warning, and edits of it."""

from __future__ import annotations

from pathlib import Path

from fabrictool.spec.problems import Problem
from fabrictool.spec.resolve import Examined, examine

BASE = """\
version: 1
site: s
ssh: {user: admin, known_hosts: ./known_hosts}
switches:
  sw: {mtu: 9216, mtu_counts: frame, pfc: [3], keeps_dscp: true}
fabric:
  mtu: 9000
  traffic_class: 104
  qos: {trust: dscp, dscp_to_priority: {26: 3}, pfc: [3]}
  rails:
    a: {subnet: 10.10.1.0/24}
    b: {subnet: 10.10.2.0/24}
groups:
  g:
    nodes: n[1-2]
    gpu: {model: NVIDIA GB10}
    ports:
      p0:
        rate_gbit: 200
        switch: sw
        functions:
          - {rail: a, rdma: mlx5_1, interface: if0}
          - {rail: b, rdma: mlx5_2, interface: if1}
    bootstrap: eth0
    protected: [eth1]
    env:
      write: [nccl_conf]
      set: {NCCL_IB_QPS_PER_CONNECTION: 4}
collective: {size: 1GiB}
checkpoints:
  m: {source: "dir:/m", revision: 0123456789abcdef0123456789abcdef01234567, target: /models}
kernel_caches:
  k: {container: "x-[0-9]", kinds: [triton], host_path: /a, mounted_at: /b}
nodes:
  n1: {ssh: {host: 192.0.2.1}}
"""

MARK = "¦"


def edited(old: str, new: str) -> str:
    """BASE with one place changed; `old` has to be in it exactly once."""
    assert BASE.count(old) == 1, f"{old!r} is {BASE.count(old)} times in the base spec"
    return BASE.replace(old, new)


def write(folder: Path, text: str, name: str = "s.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def look(folder: Path, text: str) -> Examined:
    return examine(write(folder, text))


def marked(text: str) -> tuple[str, tuple[int, int]]:
    """The text without its mark, and the line and column where the mark stood."""
    before, _, after = text.partition(MARK)
    return before + after, (before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def short(problems: tuple[Problem, ...]) -> list[str]:
    return [f"{p.line}:{p.col} {p.severity}: {p.what}" for p in problems]
