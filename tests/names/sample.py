"""Nodes for the tests of names, and a resolver that reads only /etc/hosts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from fabrictool import names
from fabrictool.model import Finding, Observed, Value, WriteFile
from fabrictool.names.sections import CLOUD_OVERRIDE
from fabrictool.room import Fleet
from fabrictool.snapshot import Captured, Snapshot
from fabrictool.spec import NodeSpec
from tests.env.sample import Box, consumers_text, stream
from tests.ports.sample import Node
from tests.specs import node_spec

ADDRESSES: dict[str, Observed[str]] = {f"spark0{i}": Value(f"10.10.1.{i}") for i in range(1, 5)}
HOSTS = "127.0.0.1 localhost\n" + "".join(f"10.10.1.{i} spark0{i}\n" for i in range(1, 5))


def answers(hosts: str, own: str = "spark01", ask: tuple[str, ...] = ("spark01", "spark02", "spark03", "spark04")) -> str:
    """What the look-up script prints on a node whose resolver reads only this file."""
    out = [f"self {own}"]
    for name in dict.fromkeys((own, *ask)):
        found = [ln.split()[0] for ln in hosts.splitlines() if name in ln.split()[1:]]
        out.append(f"r {0 if found else 2} {name}")
        out += [f"a {a} {name}" for a in found]
    return "\n".join([*out, "end", ""])


@dataclass
class Named:
    """A healthy spark01; change a field to break it."""

    hosts: str | None = HOSTS
    own: str = "spark01"
    hostname: str | None = "spark01\n"
    nsswitch: str = "passwd: files\nhosts: files mdns4_minimal [NOTFOUND=return] dns # x\n"
    resolved: str = ""
    cloud: str = "absent\nend\n"
    override: str | None = None
    consumers: str = field(default_factory=lambda: consumers_text(Box()))
    ports: Node = field(default_factory=Node)
    fleet: dict[str, Observed[str]] = field(default_factory=lambda: dict(ADDRESSES))
    left_out: frozenset[str] = frozenset()
    broken: dict[str, Captured] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        texts = {"/etc/hosts": self.hosts, "/etc/hostname": self.hostname, "/etc/nsswitch.conf": self.nsswitch,
                 CLOUD_OVERRIDE: self.override}
        base = self.ports.snapshot()
        made = {
            "names.files": Captured(0, stream({p: t for p, t in texts.items() if t is not None})),
            "names.resolved": Captured(0, self.resolved or answers(self.hosts or "", self.own)), "names.cloud": Captured(0, self.cloud),
            "consumers": Captured(0, self.consumers),
        }
        return Snapshot(base.node, {**base.sections, **made, **self.broken}, ssh=base.ssh)

    def judge(self, want: NodeSpec | None = None) -> tuple[Finding, ...]:
        return names.ROOM.findings(want or node_spec(), self.snapshot(), Fleet(self.fleet, self.left_out))

    def applied(self) -> Named:
        """After the steps of the plan, run as they stand; a node resolves by its file."""
        for f in self.judge():
            for step in f.steps:
                assert isinstance(step, WriteFile)
                now = {"/etc/hosts": self.hosts, CLOUD_OVERRIDE: self.override}[step.path]
                assert step.before == (hashlib.sha256(now.encode("utf-8", "surrogateescape")).hexdigest() if now is not None else "")
                if step.path == "/etc/hosts":
                    self.hosts = step.text
                else:
                    self.override = step.text
                    self.cloud = self.cloud.replace("end\n", f"set false {CLOUD_OVERRIDE}\nend\n")
        return self
