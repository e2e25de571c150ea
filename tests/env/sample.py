"""Spark nodes for the tests of env and names: the base node of ports, with these rooms' sections in the scripts' own formats."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from fabrictool import env
from fabrictool.model import Code, Finding, Status, WriteFile
from fabrictool.room import Fleet
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.spec import NodeSpec
from tests.ports.sample import Node
from tests.specs import node_spec

CONF, DOCKER, PROFILE = "/etc/nccl.conf", "/etc/fabrictool/nccl.env", "/etc/profile.d/fabrictool.sh"
RIGHT_CONF = """NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0
NCCL_IB_QPS_PER_CONNECTION=4
NCCL_IB_SPLIT_DATA_ON_QPS=1
NCCL_IB_TC=104
NCCL_SOCKET_IFNAME==enp1s0f0np0
"""
RIGHT_ENV = {
    "CUTE_DSL_ARCH": "sm_121a", "GLOO_SOCKET_IFNAME": "enp1s0f0np0", "NCCL_IB_HCA": "rocep1s0f0,roceP2p1s0f0",
    "NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_IB_SPLIT_DATA_ON_QPS": "1", "NCCL_IB_TC": "104", "NCCL_SOCKET_IFNAME": "=enp1s0f0np0",
    "TP_SOCKET_IFNAME": "enp1s0f0np0", "UCX_NET_DEVICES": "rocep1s0f0:1,roceP2p1s0f0:1", "VLLM_HOST_IP": "10.10.1.1",
}
RIGHT_DOCKER = ("# Written by fabrictool from the cluster's spec. Changes made here are overwritten.\n"
                + "".join(f"{n}={v}\n" for n, v in RIGHT_ENV.items()))
BOX = "a" * 64
BOOT = 1_700_000_000
WRITTEN = 1_700_050_000  # when our files were written


def stream(files: dict[str, str], modes: dict[str, int] | None = None, denied: tuple[str, ...] = ()) -> str:
    """What a `files` section prints."""
    out = []
    for path, text in {**files, "/proc/sys/kernel/ostype": "Linux\n"}.items():
        size = len(text.encode("utf-8", "surrogateescape"))
        out.append(f"@ file {(modes or {}).get(path, 0o644):o} {size} {path}\n{text}\n")
    return "".join(f"@ denied - - {p}\n" for p in denied) + "".join(out)


@dataclass
class Box:
    """A running container with one process."""

    name: str = "vllm-a"
    env: dict[str, str] | None = field(default_factory=lambda: dict(RIGHT_ENV))
    created: str = "2023-11-15T12:33:20.5Z"  # 1700051600: after WRITTEN
    hostname: str = "spark01"
    hosts: str | None = "127.0.0.1 localhost\n10.10.1.1 spark01\n"
    conf: str | None = None
    conf_mtime: int = WRITTEN
    libraries: tuple[str, ...] = ("/usr/lib/aarch64-linux-gnu/libnccl.so.2.27.3",)
    versions: tuple[str, ...] = ()
    ticks: int = 5_160_000  # BOOT + 51600 s
    pid: int = 4001

    def lines(self) -> tuple[list[str], list[str]]:
        head = [f"c {self.pid} {BOX} {json.dumps('/' + self.name)} {json.dumps(self.created)} {json.dumps(self.hostname)} \"img:1\""]
        tail = []
        for path, text in (("/etc/hosts", self.hosts), (CONF, self.conf)):
            tail.append(f"f {self.pid} {'absent -' if text is None else f'file {self.conf_mtime}'} {path}")
            tail += [f"F {ln}" for ln in (text or "").splitlines()]
        tail.append(f"p {self.pid} 1 {self.ticks} {BOX} -")
        if self.env is None:
            tail.append("n ?")
        else:
            tail += [f"e {n}={v}" for n, v in self.env.items()] + [f"n {len(self.env) + 20}"]
        tail += [f"l {lib}" for lib in self.libraries] + [f"v {v}" for v in self.versions]
        return head, tail


def consumers_text(*boxes: Box, docker: str = "docker ok 0 -", units: tuple[str, ...] = (), more: tuple[str, ...] = ()) -> str:
    parts = [b.lines() for b in boxes]
    mtimes = [f"m {WRITTEN} {p}" for p in (CONF, DOCKER, "/etc/systemd/system/vllm.service.d/50-fabrictool.conf")]
    lines = [*mtimes, f"boot {BOOT}", docker, *(x for h, _ in parts for x in h), *units, *(x for _, t in parts for x in t), *more, "end"]
    return "\n".join(lines) + "\n"


def gids_text(index: int = 3, kind: str = "RoCE v2") -> str:
    """Entries as mlx5 has them: 0 and 1 link-local, 2 and 3 IPv4; RoCE v1 on even, v2 on odd indices."""
    lines = []
    for dev, ip in (("rocep1s0f0", "0a0a:0101"), ("roceP2p1s0f0", "0a0a:0201")):
        at = f"/sys/class/infiniband/{dev}/ports/1"
        for i, (gid, typ) in enumerate((("fe80:0000:0000:0000:0000:0000:0000:0002", "IB/RoCE v1"),
                                        ("fe80:0000:0000:0000:0000:0000:0000:0002", "RoCE v2"))):
            lines += [f"{at}/gids/{i}:{gid}", f"{at}/gid_attrs/types/{i}:{typ}"]
        lines += [f"{at}/gids/{index}:0000:0000:0000:0000:0000:ffff:{ip}", f"{at}/gid_attrs/types/{index}:{kind}"]
        lines += [f"{at}/gids/9:0000:0000:0000:0000:0000:0000:0000:0000"]
    return "\n".join(lines) + "\n/proc/sys/kernel/ostype:Linux\n"


@dataclass
class Spark:
    """A healthy spark01; change a field to break it."""

    ports: Node = field(default_factory=Node)
    files: dict[str, str] = field(default_factory=lambda: {CONF: RIGHT_CONF, DOCKER: RIGHT_DOCKER})
    modes: dict[str, int] = field(default_factory=dict)
    denied: tuple[str, ...] = ()
    places: str = "@ shell /etc/profile\n@ pam /etc/environment\nend\n"
    consumers: str = field(default_factory=lambda: consumers_text(Box()))
    gpu: Captured = Captured(0, "12.1, NVIDIA GB10\nend\n")  # noqa: RUF009 - frozen
    gids: str = field(default_factory=gids_text)
    units: str = "Id=vllm.service\nNeedDaemonReload=no\n\nId=ssh.service\nNeedDaemonReload=no\nend\n"
    broken: dict[str, Captured] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        base = self.ports.snapshot()
        made = {
            "env.files": Captured(0, stream(self.files, self.modes, self.denied)), "env.places": Captured(0, self.places),
            "consumers": Captured(0, self.consumers), "env.gpu": self.gpu, "env.gids": Captured(0, self.gids),
            "env.units": Captured(0, self.units),
        }
        return Snapshot(base.node, {**base.sections, **made, **self.broken}, ssh=base.ssh)

    def judge(self, want: NodeSpec | None = None) -> tuple[Finding, ...]:
        return env.ROOM.findings(want or node_spec(), self.snapshot(), Fleet())


def bad(found: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    """(status, code, path) of everything that is not well."""
    return [(f.status, f.code, f.path) for f in found if f.bad]


def only(found: tuple[Finding, ...], code: Code, status: Status | None = None) -> Finding:
    hits = [f for f in found if f.code is code and f.bad and (status is None or f.status is status)]
    assert len(hits) == 1, [(f.status, f.code, f.path, f.why) for f in found if f.bad]
    return hits[0]


def written(finding: Finding) -> WriteFile:
    step = finding.steps[0]
    assert isinstance(step, WriteFile)
    return step


def changed_env(**more: object) -> dict[str, object]:
    base = {"write": ["nccl_conf", "docker_env"], "hca_match": "plain", "consumers": ["docker:vllm-*"],
            "set": {"NCCL_IB_QPS_PER_CONNECTION": 4, "NCCL_IB_SPLIT_DATA_ON_QPS": 1, "CUTE_DSL_ARCH": "sm_121a",
                    "VLLM_HOST_IP": "{bootstrap.address}"}}
    return {**base, **more}
