"""Snapshots of a DGX Spark (and changes of it) in the tools' own formats, for the tests of ports, link and whoever binds interfaces."""

from __future__ import annotations

import json
from typing import Any

from fabrictool.snapshot import Captured, Snapshot

A, B = "enp1s0f0np0", "enP2p1s0f0np0"
A1, B1 = "enp1s0f1np1", "enP2p1s0f1np1"
MGMT = "enP7s7"
GUID = "fc6a:1c03:00ab:cd00"
MACS = {A: "fc:6a:1c:ab:cd:01", B: "fc:6a:1c:ab:cd:02", A1: "fc:6a:1c:ab:cd:03", B1: "fc:6a:1c:ab:cd:04", MGMT: "fc:6a:1c:00:00:07"}
SSH = "192.168.1.100 51022 192.168.1.11 22"
END_FILE = "/proc/sys/kernel/ostype:Linux\n"
END_LINK = "/proc/self/exe -> /usr/bin/dash\n"


def address(ip: str, **more: Any) -> dict[str, Any]:
    host, _, length = ip.partition("/")
    family = "inet6" if ":" in host else "inet"
    scope = "link" if host.startswith("fe80") else "global"
    return {"family": family, "local": host, "prefixlen": int(length), "scope": scope,
            "valid_life_time": 4294967295, "preferred_life_time": 4294967295, **more}


def netdev(name: str, *ips: str, mtu: int = 9000, up: bool = True, carrier: bool = True, **more: Any) -> dict[str, Any]:
    """One object of `ip -d -j addr show`, with the keys of iproute2 6.1."""
    flags = ["BROADCAST", "MULTICAST", *(["UP"] if up else []), *(["LOWER_UP"] if up and carrier else ["NO-CARRIER"] if up else [])]
    return {
        "ifindex": 2, "ifname": name, "flags": flags, "mtu": mtu, "qdisc": "mq", "operstate": "UP" if up and carrier else "DOWN",
        "group": "default", "txqlen": 1000, "link_type": "ether", "address": MACS.get(name, "fc:6a:1c:00:00:99"),
        "broadcast": "ff:ff:ff:ff:ff:ff", "promiscuity": 0, "allmulti": 0, "min_mtu": 68, "max_mtu": 9978, "num_tx_queues": 160,
        "num_rx_queues": 20, "parentbus": "pci", "addr_info": [address(ip) for ip in ips], **more,
    }


LO: dict[str, Any] = {**netdev("lo", mtu=65536, min_mtu=0, max_mtu=0), "link_type": "loopback", "address": "00:00:00:00:00:00",
                      "flags": ["LOOPBACK", "UP", "LOWER_UP"], "operstate": "UNKNOWN",
                      "addr_info": [{**address("127.0.0.1/8"), "scope": "host"}, {**address("::1/128"), "scope": "host"}]}


class Node:
    """A node to be bent by a test: change what is needed, then `snapshot()`."""

    def __init__(self) -> None:
        self.netdevs: dict[str, dict[str, Any]] = {n["ifname"]: n for n in (
            LO, netdev(MGMT, "192.168.1.11/24", "fe80::1/64", mtu=1500, max_mtu=16362),
            netdev(A, "10.10.1.1/24", "fe80::2/64"), netdev(B, "10.10.2.1/24", "fe80::3/64"))}
        self.pci = {A: "0000:01:00.0", B: "0002:01:00.0", MGMT: "0007:01:00.0"}
        self.rdma = {"rocep1s0f0": A, "roceP2p1s0f0": B}
        self.port_names = {A: "p0", B: "p0"}
        self.speed = {A: "200000", B: "200000", MGMT: "10000"}
        self.width = {A: (4, 4), B: (4, 4)}
        self.guid = dict.fromkeys(self.rdma, GUID)
        self.physfn: dict[str, str] = {}
        self.default = [MGMT]
        self.qps: list[dict[str, Any]] | None = None
        self.ssh = SSH
        self.sections: dict[str, Captured] = {}

    def add(self, name: str, *ips: str, pci: str = "", port: str = "", rdma: str = "", **more: Any) -> Node:
        self.netdevs[name] = netdev(name, *ips, **more)
        if pci:
            self.pci[name] = pci
        if port:
            self.port_names[name] = port
        if rdma:
            self.rdma[rdma] = name
            self.guid[rdma] = GUID
        return self

    def remove(self, name: str) -> Node:
        del self.netdevs[name]
        self.rdma = {d: n for d, n in self.rdma.items() if n != name}
        for table in (self.pci, self.port_names, self.speed, self.width):
            table.pop(name, None)  # type: ignore[attr-defined]
        return self

    def bond(self, name: str, *members: str, ip: str = "", mac: str = "fc:6a:1c:ab:cd:01", **more: Any) -> Node:
        self.netdevs[name] = netdev(name, *([ip] if ip else []), address=mac, max_mtu=65535,
                                    linkinfo={"info_kind": "bond", "info_data": {"mode": "802.3ad", "miimon": 100}}, **more)
        for m in members:
            permanent = self.netdevs[m]["address"]
            self.netdevs[m] |= {"master": name, "address": mac, "flags": [*self.netdevs[m]["flags"], "SLAVE"], "permaddr": permanent,
                                "linkinfo": {"info_slave_kind": "bond", "info_slave_data": {"state": "ACTIVE", "perm_hwaddr": permanent}}}
        return self

    def vlan(self, name: str, parent: str, *ips: str, **more: Any) -> Node:
        self.netdevs[name] = netdev(name, *ips, **{
            "link": parent, "address": self.netdevs[parent]["address"], "max_mtu": 65535,
            "linkinfo": {"info_kind": "vlan", "info_data": {"protocol": "802.1Q", "id": 100, "flags": ["REORDER_HDR"]}}, **more})
        return self

    def _device(self, name: str) -> str:
        return f"/sys/devices/pci0000:00/{self.pci[name]}"

    def _net(self) -> str:
        lines = [f"/sys/class/net/{n}/ifindex:{i}" for i, n in enumerate(self.netdevs, 1)]
        lines += [f"/sys/class/net/{n}/speed:{self.speed[n]}" for n in self.netdevs if n in self.speed]
        lines += [f"/sys/class/net/{n}/carrier:{int('LOWER_UP' in d['flags'])}" for n, d in self.netdevs.items() if "UP" in d["flags"]]
        lines += [f"/sys/class/net/{n}/carrier_changes:2" for n in self.netdevs]
        lines += [f"/sys/class/net/{n}/phys_port_name:{p}" for n, p in self.port_names.items() if n in self.netdevs]
        for n, (now, most) in self.width.items():
            at = f"/sys/class/net/{n}/device"
            lines += [f"{at}/current_link_width:{now}", f"{at}/max_link_width:{most}", f"{at}/current_link_speed:32.0 GT/s PCIe"]
        return "\n".join(lines) + "\n" + END_FILE

    def _links(self) -> str:
        lines = [f"/sys/class/net/{n}/device -> {self._device(n)}" for n in self.pci if n in self.netdevs]
        lines += [f"/sys/class/net/{n}/device/driver -> /sys/bus/pci/drivers/mlx5_core" for n in self.pci if n in self.netdevs]
        lines += [f"/sys/class/net/{n}/device/physfn -> /sys/devices/pci0000:00/{p}" for n, p in self.physfn.items()]
        lines += [f"/sys/class/infiniband/{d}/device -> {self._device(n)}" for d, n in self.rdma.items() if n in self.pci]
        return "\n".join(lines) + "\n" + END_LINK

    def _rdma(self) -> str:
        lines = []
        for d, n in self.rdma.items():
            at = f"/sys/class/infiniband/{d}"
            lines += [f"{at}/node_type:1: CA", f"{at}/sys_image_guid:{self.guid[d]}", f"{at}/node_guid:{self.guid[d]}"]
            owner = self.netdevs.get(n, {}).get("master") or n
            lines += [f"{at}/ports/1/gid_attrs/ndevs/{i}:{owner}" for i in range(4)]
        lines += [f"/sys/class/net/{n}/ifindex:{i}" for i, n in enumerate(self.netdevs, 1)]
        return "\n".join(lines) + "\n" + END_FILE

    def _qps(self) -> str:
        """The management queue pairs of every device as the kernel lists them, then the test's own."""
        own = [{"ifindex": i, "ifname": d, "port": 1, "lqpn": q, "type": t, "state": "RTS", "sq-psn": 0, "comm": "ib_core"}
               for i, d in enumerate(self.rdma) for q, t in ((1, "GSI"), (0, "SMI"))]
        return json.dumps(own + (self.qps or []))

    def snapshot(self) -> Snapshot:
        routes = [{"dst": "default", "gateway": "192.168.1.1", "dev": d, "protocol": "dhcp", "metric": 100, "flags": []}
                  for d in self.default]
        made = {
            "ports.ip": Captured(0, json.dumps(list(self.netdevs.values()))),
            "ports.route4": Captured(0, json.dumps(routes) + "\n"), "ports.route6": Captured(0, "[ ]\n"),
            "ports.ssh_route": Captured(3, ""), "ports.net": Captured(0, self._net()), "ports.links": Captured(0, self._links()),
            "ports.rdma": Captured(0, self._rdma()), "ports.qps": Captured(0, self._qps()),
        }
        return Snapshot("spark01", {**made, **self.sections}, ssh=self.ssh)


def queue_pair(rdma: str = "rocep1s0f0", number: int = 312, pid: int = 4711, comm: str = "python3") -> dict[str, Any]:
    row = {"ifindex": 0, "ifname": rdma, "port": 1, "lqpn": number, "rqpn": 311, "type": "RC", "state": "RTS", "rq-psn": 1, "sq-psn": 1,
           "path-mig-state": "MIGRATED", "comm": comm}
    return {**row, "pid": pid} if pid else row


MISSING = Captured(127, "", "sh: 1: rdma: not found")
HANGS = Captured(124, "")
DENIED = Captured(1, "", "sudo: a password is required", denied=True)
