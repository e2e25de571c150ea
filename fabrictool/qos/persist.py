"""What makes QoS come back after a reboot or a hot-plug: a script, and per interface a oneshot unit bound to the device and a udev rule.

Nothing in the NIC's software keeps these settings. No daemon: a loop would fight over them. The texts follow from the spec alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files as resources

from fabrictool.spec import QosSpec
from fabrictool.values import Priorities

SCRIPT = "/etc/fabrictool/qos.sh"
UNIT_DIR = "/etc/systemd/system"
RULES_DIR = "/etc/udev/rules.d"
UNIT_PREFIX = "fabrictool-qos-"
SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}")  # at most 15 characters: IFNAMSIZ - 1

# 90 s: at most 12 calls of 20 s would be more, yet a healthy call takes below 1 s; the unit must never hang a boot.
UNIT = """\
# Written by fabrictool: change the spec, not this file.
[Unit]
Description=RoCE QoS of {nic}
After={device}
BindsTo={device}

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=90
ExecStart=/bin/sh {script} {nic} {words}

[Install]
WantedBy={device}
"""

# `move` is the event of a rename; SYSTEMD_WANTS starts the unit without waiting for it.
RULE = """\
# Written by fabrictool: change the spec, not this file.
ACTION=="add|move", SUBSYSTEM=="net", KERNEL=="{nic}", TAG+="systemd", ENV{{SYSTEMD_WANTS}}+="{unit}"
"""


@dataclass(frozen=True, slots=True)
class Persistence:
    """The files of one interface, with the texts they should have. `unit` is the unit's name."""

    unit: str
    unit_path: str
    unit_text: str
    rule_path: str
    rule_text: str
    wants_dir: str


def device_unit(nic: str) -> str:
    r"""systemd's name for the interface's device: `/sys/subsystem/net/devices/NAME` escaped as systemd-escape --path does.

    Letters, digits, `:`, `_` and `.` stay, every other byte becomes `\xNN`; so does a dash, which stands for a slash.
    """
    kept = "".join(c if c.isascii() and (c.isalnum() or c in ":_.") else "".join(f"\\x{b:02x}" for b in c.encode()) for c in nic)
    return f"sys-subsystem-net-devices-{kept}.device"


def words(qos: QosSpec) -> str:
    """The script's arguments, in the order in which they are set: pause goes off before PFC goes on."""
    out = [f"trust={qos.trust}"]
    if qos.trust == "dscp" and qos.dscp_to_priority:
        out.append("map=" + ",".join(f"{d}:{p}" for d, p in sorted(qos.dscp_to_priority.items())))
    out.append(f"pause={'on' if qos.global_pause else 'off'}")
    out.append(f"pfc={Priorities.of(qos.pfc).mask}")
    if qos.ecn is not None and qos.pfc:
        out.append("ecn=" + ",".join(f"{p}:{int(qos.ecn)}" for p in sorted(set(qos.pfc))))
    return " ".join(out)


def script_text() -> str:
    """The script that the units run."""
    return resources("fabrictool.node").joinpath("qos-apply.sh").read_text(encoding="ascii")


def persistence(nic: str, qos: QosSpec) -> Persistence:
    """ValueError for an interface name that could not stand in a unit or a udev rule as it is."""
    if not SAFE_NAME.fullmatch(nic):
        raise ValueError(f"interface name {nic[:40]!r} has characters that a unit or udev rule would read as its own")
    unit, device = f"{UNIT_PREFIX}{nic}.service", device_unit(nic)
    return Persistence(
        unit=unit,
        unit_path=f"{UNIT_DIR}/{unit}",
        unit_text=UNIT.format(nic=nic, device=device, script=SCRIPT, words=words(qos)),
        rule_path=f"{RULES_DIR}/90-{UNIT_PREFIX}{nic}.rules",
        rule_text=RULE.format(nic=nic, unit=unit),
        wants_dir=f"{UNIT_DIR}/{device}.wants",
    )
