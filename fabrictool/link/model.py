"""Who would set an interface up after a reboot, and with which MTU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fabrictool.link.netplan import Netplan
from fabrictool.link.networkd import Networkd
from fabrictool.link.networkmanager import Profile
from fabrictool.link.others import Stanza
from fabrictool.model import Unreadable
from fabrictool.ports import Ports


class Owner(StrEnum):
    NETPLAN_NETWORKD = "netplan (networkd)"
    NETPLAN_NM = "netplan (NetworkManager)"
    NETWORKMANAGER = "NetworkManager"
    NETWORKD = "systemd-networkd"
    IFUPDOWN = "ifupdown"
    IFCFG = "ifcfg files"
    WICKED = "wicked"


@dataclass(frozen=True, slots=True)
class Claim:
    """One owner's configuration of one interface. `mtu` None: it leaves the MTU alone. `ident`: netplan id or profile UUID.

    `reliable`: the match holds before udev has renamed the interface. `exclusive`: it configures this interface only.
    """

    owner: Owner
    where: str
    mtu: int | None
    dhcp: bool = False
    ident: str = ""
    reliable: bool = True
    exclusive: bool = True
    active: bool = False

    def __str__(self) -> str:
        return f"{self.owner}: {self.where}"


@dataclass(frozen=True, slots=True)
class Link:
    """What was read. `nm_states` and `networkd_states` are by interface; empty where the service does not run.
    `arp`: sysctl values by "INTERFACE/NAME"."""

    ports: Ports
    netplan: Netplan | Unreadable
    nm_states: Mapping[str, tuple[str, str]] | Unreadable
    profiles: tuple[Profile, ...] | Unreadable
    networkd_states: Mapping[str, str] | Unreadable
    networkd: Networkd | Unreadable
    others: tuple[Stanza, ...] | Unreadable
    arp: Mapping[str, int] | Unreadable
