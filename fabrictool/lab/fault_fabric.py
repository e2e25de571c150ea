"""Faults of links, MTU and RDMA devices."""

from __future__ import annotations

from fabrictool.lab.errors import LabError
from fabrictool.lab.fault_kit import Fault, LabLike, Outcome, Scope, first, fixed, on_functions, sh, stuck, unseen, warned
from fabrictool.lab.nodeside.state import Function, Node

SMALL_MTU = 1500  # bytes; what an interface has until somebody sets it


def running_mtu(lab: LabLike, node: str, function: str) -> None:
    sh(lab, node, 'ip link set dev "$1" mtu "$2"', first(lab, node, function).interface, str(SMALL_MTU))


# Wherever the owner keeps it: netplan (source and generated), NetworkManager, networkd.
PERSISTED = r"""n=0
for f in /etc/netplan/*.yaml /etc/NetworkManager/system-connections/*.nmconnection /run/NetworkManager/system-connections/*.nmconnection \
    /etc/systemd/network/*.network /run/systemd/network/*.network; do
  [ -f "$f" ] && grep -qE '^( *mtu: *|mtu=|MTUBytes=)9000' "$f" || continue
  sed -i -E 's/^( *mtu: *|mtu=|MTUBytes=)9000.*/\1'"$1"'/' "$f"; n=$((n + 1))
done
echo "$n"
"""


def persisted_mtu(lab: LabLike, node: str, function: str) -> None:
    """The running MTU stays; after the next boot it would be small."""
    if sh(lab, node, PERSISTED, str(SMALL_MTU)).strip() == "0":
        raise LabError(f"{node}: no persistent MTU of 9000 is configured: apply the spec first")


def two_owners(lab: LabLike, node: str, function: str) -> None:
    """A stanza of ifupdown for an interface that another manager owns."""
    name = first(lab, node, function).interface
    lab.write_file(node, f"/etc/network/interfaces.d/{name}", f"auto {name}\niface {name} inet manual\n    mtu {SMALL_MTU}\n")


# As an installer's default leaves it; the running addresses stay.
DHCP = r"""n=0
for f in /etc/netplan/*.yaml; do
  [ -f "$f" ] && grep -q 'dhcp4: false' "$f" || continue
  sed -i 's/dhcp4: false/dhcp4: true/' "$f"; n=$((n + 1))
done
[ "$n" = 0 ] || netplan generate
echo "$n"
"""


def dhcp_profile(lab: LabLike, node: str, function: str) -> None:
    """The profile of the fabric's ports asks for DHCP."""
    if sh(lab, node, DHCP).strip() == "0":
        raise LabError(f"{node}: no netplan file says `dhcp4: false`")


def switch_mtu(lab: LabLike, node: str, function: str) -> None:
    lab.switch_port_mtu(first(lab, node, function).rail, SMALL_MTU, node)


def cable_out(lab: LabLike, node: str, function: str) -> None:
    lab.link(node, first(lab, node, function).interface, False)


def gone(lab: LabLike, node: str, function: str) -> None:
    """Every function of the cage, as the hot-plug service does it."""
    fn = first(lab, node, function)
    for other in list(lab.state(node).functions.values()):
        if (other.sys_image_guid, other.port) == (fn.sys_image_guid, fn.port):
            lab.unplug(node, other.interface)


def set_down(lab: LabLike, node: str, function: str) -> None:
    sh(lab, node, 'ip link set dev "$1" down', first(lab, node, function).interface)


def default_route(lab: LabLike, node: str, function: str) -> None:
    """A second default route, by way of the fabric: a classic of a wrong gateway line."""
    sh(lab, node, 'ip route append default dev "$1" metric 900', first(lab, node, function).interface)


def address_lost(lab: LabLike, node: str, function: str) -> None:
    """No IPv4 address, so no IPv4 GID either."""
    sh(lab, node, 'ip -4 addr flush dev "$1"', first(lab, node, function).interface)


def gids_v1(state: Node, fn: Function) -> None:
    fn.gid_types = "v1"


def class_override(state: Node, fn: Function) -> None:
    fn.tclass = "Global tclass=96"


def slow(state: Node, fn: Function) -> None:
    """Half the rate the spec names: a wrong cable or a forced speed."""
    fn.rate_gbit //= 2


def narrow(state: Node, fn: Function) -> None:
    fn.pcie_width //= 2


def infiniband(state: Node, fn: Function) -> None:
    fn.link_layer = "InfiniBand"


FABRIC: tuple[Fault, ...] = (
    Fault("mtu-1500", "the running MTU is 1500", running_mtu, fixed("LINK_MTU_RUNNING"), Scope.FUNCTION),
    Fault("mtu-persist", "the MTU is right now and would be 1500 after a boot", persisted_mtu, fixed("LINK_MTU_PERSISTED"), Scope.NODE,
          profiles=("spark", "h20")),
    Fault("two-owners", "a second manager is configured for the interface", two_owners, stuck("LINK_TWO_OWNERS"), Scope.FUNCTION,
          profiles=("spark", "h20")),
    Fault("dhcp-profile", "the profile of the fabric's ports is an automatic one: DHCP", dhcp_profile, warned("LINK_DHCP_PROFILE"),
          profiles=("spark", "h20")),
    Fault("mtu-hole", "the switch's port passes 1500 bytes only", switch_mtu, unseen(), Scope.FUNCTION),
    Fault("port-down", "the cable is pulled", cable_out, stuck("LINK_DOWN", "RDMA_DOWN"), Scope.FUNCTION),
    Fault("function-gone", "the functions of a cage are gone from PCI: it has no cable, and hot-plug took them away", gone,
          stuck("LINK_ABSENT", "RDMA_ABSENT"), Scope.FUNCTION),
    Fault("interface-down", "the interface is set down", set_down, stuck("LINK_DOWN", "RDMA_DOWN"), Scope.FUNCTION),
    Fault("route-over-fabric", "the fabric port carries a default route", default_route, unseen(), Scope.FUNCTION,
          {"plan": Outcome(1, ("MGMT_PATH",)), "apply": Outcome(1, ("MGMT_PATH",))}),
    Fault("address-lost", "the fabric port has no IPv4 address", address_lost, stuck("NO_ROCEV2_GID"), Scope.FUNCTION),
    Fault("gid-v1", "the port offers RoCE v1 only", on_functions(gids_v1), stuck("NO_ROCEV2_GID"), Scope.FUNCTIONS),
    Fault("tclass-override", "a global traffic class overrides what applications ask for", on_functions(class_override),
          stuck("RDMA_TCLASS_OVERRIDE"), Scope.FUNCTIONS),
    Fault("half-rate", "the port runs at half its rate", on_functions(slow), stuck("LINK_SPEED", "RDMA_RATE"), Scope.FUNCTIONS),
    Fault("pcie-narrow", "the PCIe link has half its lanes", on_functions(narrow), stuck("PCIE_WIDTH"), Scope.FUNCTIONS),
    Fault("port-infiniband", "the port is switched to InfiniBand", on_functions(infiniband), stuck("RDMA_LINK_LAYER"), Scope.FUNCTIONS),
)
