"""A Spark with its network configuration, in the formats of netplan, nmcli, keyfiles, networkctl and networkd."""

from __future__ import annotations

from fabrictool.snapshot import Captured
from tests.ports.sample import MACS, MGMT, A, B, Node

END = "@ file 444 6 /proc/sys/kernel/ostype\nLinux\n\n"
NETPLAN = "/etc/netplan/40-cx7.yaml"
OWN = f"/etc/netplan/90-fabrictool-{A}.yaml"
UUID = "0c1f1c59-6d12-3a4e-8a5c-3f1d2d1a7b11"


def stream(files: dict[str, str], mode: str = "600") -> Captured:
    """What a `files` section gives."""
    return Captured(0, "".join(f"@ file {mode} {len(t.encode('utf-8', 'surrogateescape'))} {p}\n{t}\n" for p, t in files.items()) + END)


def netplan(renderer: str = "NetworkManager", a: str = "", b: str = "") -> str:
    """The file of the Spark playbook (40-cx7.yaml), with more lines for either function."""
    return f"""network:
  version: 2
  renderer: {renderer}
  ethernets:
    {A}:
      dhcp4: no
      addresses: [10.10.1.1/24]
{a}    {B}:
      dhcp4: no
      addresses: [10.10.2.1/24]
{b}"""


def kept(name: str, mtu: int = 9000) -> str:
    """Lines that make the MTU stay with either renderer."""
    return f'      match: {{macaddress: "{MACS[name]}"}}\n      set-name: {name}\n      mtu: {mtu}\n'


def keyfile(name: str = "fab-a", uuid: str = UUID, interface: str = A, mtu: int = 0, method: str = "manual", **more: str) -> str:
    lines = ["[connection]", f"id={name}", f"uuid={uuid}", f"type={more.get('type', 'ethernet')}"]
    lines += [f"interface-name={interface}"] if interface else []
    lines += [f"autoconnect={more['autoconnect']}"] if "autoconnect" in more else []
    lines += [f"autoconnect-priority={more['priority']}"] if "priority" in more else []
    lines += ["", "[ethernet]", *([f"mtu={mtu}"] if mtu else []), *([f"mac-address={more['mac']}"] if "mac" in more else [])]
    return "\n".join([*lines, "", "[ipv4]", f"method={method}", "address1=10.10.1.1/24", "", "[ipv6]", "method=ignore", ""])


class Host(Node):
    """A Spark whose MTU is kept by netplan with NetworkManager as renderer. Change a table, then `snapshot()`."""

    def __init__(self) -> None:
        super().__init__()
        self.netplan: dict[str, str] | None = {NETPLAN: netplan(a=kept(A), b=kept(B))}
        self.nm: dict[str, str] | None = {A: f"connected:netplan-{A}", B: f"connected:netplan-{B}", MGMT: "connected:office",
                                          "lo": "unmanaged:"}
        self.profiles: dict[str, str] = {
            "/run/NetworkManager/system-connections/netplan-enp1s0f0np0.nmconnection":
                keyfile(f"netplan-{A}", "6e4c4ae0-9d4f-36b8-9f4c-0a6b8a1e2f01", A, 9000),
            "/run/NetworkManager/system-connections/netplan-enP2p1s0f0np0.nmconnection":
                keyfile(f"netplan-{B}", "6e4c4ae0-9d4f-36b8-9f4c-0a6b8a1e2f02", B, 9000),
        }
        self.networkd: dict[str, str] | None = None
        self.units: dict[str, str] = {}
        self.interfaces: dict[str, str] = {}
        self.ifcfg: dict[str, str] = {}
        self.sysctl = {"arp_ignore": 0, "arp_announce": 0, "rp_filter": 2}
        self.own_mode = "600"
        self.tables()

    def tables(self) -> None:
        """Turn the tables into sections (again)."""
        missing = Captured(127, "", "sh: 1: not found")
        plan = self.netplan or {}
        own = {p: t for p, t in plan.items() if "/90-fabrictool-" in p}
        nm = None if self.nm is None else "".join(f"{d}:{s}\n" for d, s in self.nm.items()) + "@end\n"
        links = None
        if self.networkd is not None:
            rows = [f"{i:3} {n:<15} ether    routable    {s}" for i, (n, s) in enumerate(self.networkd.items(), 1)]
            links = "\n".join(["IDX LINK            TYPE     OPERATIONAL SETUP     ", *rows, "", f"{len(rows)} links listed.", ""])
        arp = [f"/proc/sys/net/ipv4/conf/{i}/{k}:{v if i != 'all' else 0}" for i in ("all", A, B) for k, v in self.sysctl.items()]
        self.sections |= {
            "link.netplan_tool": Captured(0, "no\n" if self.netplan is None else "yes\n"),
            "link.netplan": stream(plan), "link.netplan_own": stream(own, self.own_mode),
            "link.nm_devices": missing if nm is None else Captured(0, nm), "link.nm_profiles": stream(self.profiles),
            "link.networkctl": missing if links is None else Captured(0, links), "link.networkd": stream(self.units, "644"),
            "link.ifupdown": stream(self.interfaces, "644"), "link.ifcfg": stream(self.ifcfg, "644"),
            "link.arp": Captured(0, "\n".join([*arp, "/proc/sys/kernel/ostype:Linux", ""])),
        }
