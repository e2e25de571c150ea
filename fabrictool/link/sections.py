"""What the link room collects: who owns an interface, and the files that owner reads at boot.

Files of netplan and NetworkManager hold Wi-Fi keys: their values are blanked on the node, before anything leaves it. Every file
section ends with /proc/sys/kernel/ostype, so that an answer that was cut is not taken for "no more files".
"""

from __future__ import annotations

from collections.abc import Mapping

from fabrictool.model import Absent, Reason, Unreadable, Value
from fabrictool.snapshot import Section, Snapshot, files, sysfs, tool
from fabrictool.snapshot.model import FileText

FILE_END = "/proc/sys/kernel/ostype"
DROPIN_PREFIX = "/etc/netplan/90-fabrictool-"

# YAML, block or flow style: the value after a secret's key. Keyfile: the rest of the line.
_YAML_SECRETS = (r"s/(^|[^A-Za-z0-9])((client-key-)?password|psk|private|shared|key|secret)"
                 r"(\"?[[:space:]]*:[[:space:]]*)(\"[^\"]*\"|'\''[^'\'']*'\''|[^],}[:space:]][^],}]*)/\1\2\4\"***\"/g")
_KEYFILE_SECRETS = r"s/^([^=#[]*(psk|password|secret|wep-key|private|pin)[^=]*)=.*/\1=***/"


def _blanked(name: str, sed: str, *globs: str) -> Section:
    """A `files` section through sed, as root. A FIFO or a device among the files is neither absent nor empty."""
    return files(name, *globs, FILE_END, root=True, max_bytes=1_048_576, through=sed, masks=True)


_NETWORKD_DIRS = ("/etc/systemd/network", "/run/systemd/network", "/usr/lib/systemd/network", "/lib/systemd/network")

SECTIONS: tuple[Section, ...] = (
    _blanked("link.netplan", _YAML_SECRETS, "/lib/netplan/*.yaml", "/etc/netplan/*.yaml", "/run/netplan/*.yaml"),
    files("link.netplan_own", f"{DROPIN_PREFIX}*.yaml", FILE_END, root=True),
    Section("link.netplan_tool", "if command -v netplan >/dev/null 2>&1; then echo yes; else echo no; fi"),
    Section("link.nm_devices", "LC_ALL=C nmcli -t -f DEVICE,STATE,CONNECTION device && echo @end"),
    _blanked("link.nm_profiles", _KEYFILE_SECRETS, *(f"{d}/NetworkManager/system-connections/*" for d in ("/usr/lib", "/etc", "/run"))),
    tool("link.networkctl", "networkctl", "--no-pager", "list"),
    _blanked("link.networkd", "s/x/x/", *(f"{d}/{g}" for d in _NETWORKD_DIRS for g in (
        "*.network", "*.network.d/*.conf", "*.link", "*.link.d/*.conf"))),
    files("link.ifupdown", "/etc/network/interfaces", "/etc/network/interfaces.d/*", FILE_END),
    files("link.ifcfg", "/etc/sysconfig/network-scripts/ifcfg-*", "/etc/sysconfig/network/ifcfg-*", FILE_END),
    sysfs("link.arp", *(f"/proc/sys/net/ipv4/conf/*/{f}" for f in ("arp_ignore", "arp_announce", "rp_filter")), FILE_END,
          max_bytes=2_097_152),
)


def file_texts(snap: Snapshot, name: str) -> Mapping[str, FileText] | Unreadable:
    """All files of a section by path. One that is there and could not be read makes the whole Unreadable: it may be the one that
    decides."""
    got = snap.files(name)
    if isinstance(got, Unreadable):
        return got
    if FILE_END not in got:
        return Unreadable(Reason.CUT, f"{name}: the end is missing")
    out = {}
    for path, seen in got.items():
        if isinstance(seen, Unreadable):
            return seen
        if isinstance(seen, Value) and path != FILE_END:
            out[path] = seen.value
        elif isinstance(seen, Absent):
            continue
    return out
