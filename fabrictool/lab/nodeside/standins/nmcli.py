"""nmcli: devices and Ethernet profiles, from NetworkManager's own files and the live links.

An interface that no profile fits gets an automatic one ("Wired connection N", DHCP), as NetworkManager does by default.
"""

from __future__ import annotations

import subprocess

from fabrictool.lab.nodeside.standins.nmcli_profiles import Profile, managed, profiles, write
from fabrictool.lab.nodeside.tool import Answer, Call, Link

LOCKED = False
OBJECTS = {"connection": "connection", "con": "connection", "c": "connection", "device": "device", "dev": "device", "d": "device",
           "general": "general", "gen": "general", "g": "general"}
ALIASES = {"ethernet": "802-3-ethernet"}
WIRED = "802-3-ethernet"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:")


def _table(rows: list[dict[str, str]], fields: list[str], terse: bool) -> str:
    if terse:
        return "".join(":".join(_escaped(r[f]) for f in fields) + "\n" for r in rows)
    shown = [{f: r[f] or "--" for f in fields} for r in rows]
    widths = {f: max([len(f), *(len(r[f]) for r in shown)]) for f in fields}
    return "".join("  ".join(f"{row[f]:<{widths[f]}}" for f in fields) + "\n" for row in [{f: f for f in fields}, *shown])


def _device_rows(links: dict[str, Link]) -> list[dict[str, str]]:
    on = {p.device: p for p in profiles(links) if p.device}
    rows = []
    for link in links.values():
        profile = on.get(link.name)
        state = "unmanaged" if not managed(link) else "unavailable" if not (link.up and link.carrier) else (
            "connected" if profile else "disconnected")
        name = profile.name if profile and state == "connected" else ""
        rows.append({"DEVICE": link.name, "TYPE": "ethernet", "STATE": state, "CONNECTION": name,
                     "CON-UUID": profile.uuid if profile and name else "", "DBUS-PATH": "/org/freedesktop/NetworkManager/Devices/2"})
    return [*rows, {"DEVICE": "lo", "TYPE": "loopback", "STATE": "connected (externally)", "CONNECTION": "lo", "CON-UUID": "",
                    "DBUS-PATH": "/org/freedesktop/NetworkManager/Devices/1"}]


def _values(p: Profile) -> dict[str, str]:
    return {"connection.id": p.name, "connection.uuid": p.uuid, "connection.type": WIRED, "connection.interface-name": p.device,
            "connection.autoconnect": "yes" if p.autoconnect else "no", f"{WIRED}.mtu": str(p.mtu) if p.mtu else "auto",
            "ipv4.method": p.method, "GENERAL.STATE": "activated" if p.device else "", "GENERAL.DEVICES": p.device}


def _select(facts: dict[str, str], fields: list[str]) -> tuple[list[tuple[str, str]], str]:
    """The asked fields, in the asked order; and the first that is not known."""
    found: list[tuple[str, str]] = []
    for field in fields:
        head, _, tail = field.partition(".")
        name = f"{ALIASES.get(head, head)}.{tail}" if tail else ALIASES.get(head, head)
        hits = [(k, v) for k, v in facts.items() if k == name or k.startswith(f"{name}.")]
        if not hits:
            return [], field
        found += hits
    return found, ""


def _find(links: dict[str, Link], key: str) -> Profile | None:
    return next((p for p in profiles(links) if key in (p.name, p.uuid) or (p.path and key == str(p.path))), None)


def _connection(call: Call, words: list[str], fields: list[str], terse: bool, get: bool) -> Answer:
    links = dict(call.links())
    verb = words[0] if words else "show"
    rest = [w for w in words[1:] if w not in ("--active", "id", "uuid", "path", "--temporary", "--order")]
    if verb in ("show", "s") and not rest:
        rows = [{"NAME": p.name, "UUID": p.uuid, "TYPE": WIRED if terse else "ethernet", "DEVICE": p.device,
                 "FILENAME": str(p.path or f"/run/NetworkManager/system-connections/{p.name}.nmconnection"),
                 "AUTOCONNECT": "yes" if p.autoconnect else "no", "ACTIVE": "yes" if p.device else "no",
                 "STATE": "activated" if p.device else ""} for p in profiles(links) if p.device or "--active" not in words]
        return _rows(rows, fields or ["NAME", "UUID", "TYPE", "DEVICE"], terse)
    if verb in ("show", "s"):
        profile = _find(links, rest[0])
        if profile is None:
            return Answer(10, "", f"Error: {rest[0]} - no such connection profile.\n")
        facts, unknown = _select(_values(profile), fields or ["connection", WIRED, "ipv4"])
        if unknown:
            return Answer(2, "", f"Error: 'connection show': invalid field '{unknown}'; allowed fields: connection,802-3-ethernet,ipv4.\n")
        return Answer(0, "".join(f"{v}\n" if get else f"{k}:{v}\n" if terse else f"{k + ':':<40}{v}\n" for k, v in facts))
    if verb in ("modify", "mod", "m"):
        return _modify(call, links, rest)
    if verb == "reload":
        return Answer()
    return Answer(2, "", f"Error: argument '{verb}' not understood. Try passing --help instead.\n")


def _rows(rows: list[dict[str, str]], fields: list[str], terse: bool) -> Answer:
    names = [f.upper() for f in fields]
    bad = next((f for f in names if rows and f not in rows[0]), "")
    if bad:
        return Answer(2, "", f"Error: invalid field '{bad}'; allowed fields: {','.join(rows[0])}.\n")
    return Answer(0, _table(rows, names, terse))


def _modify(call: Call, links: dict[str, Link], words: list[str]) -> Answer:
    if len(words) < 3:
        return Answer(2, "", "Error: <setting>.<property> argument is missing.\n")
    profile = _find(links, words[0])
    if profile is None:
        return Answer(10, "", f"Error: unknown connection '{words[0]}'.\n")
    if not call.root:
        return Answer(1, "", f"Error: Failed to modify connection '{profile.name}': Insufficient privileges\n")
    for key, value in zip(words[1::2], words[2::2], strict=False):
        head, _, tail = key.partition(".")
        setting = ALIASES.get(head, head)
        if (setting, tail) == (WIRED, "mtu"):
            if value != "auto" and not (value.isdigit() and int(value) < 2**32):
                return Answer(2, "", f"Error: failed to modify {setting}.mtu: '{value}' is not a valid number.\n")
            write(profile, "ethernet", "mtu", "" if value in ("auto", "0") else value)
        elif (setting, tail) == ("connection", "autoconnect"):
            write(profile, "connection", "autoconnect", "" if value in ("yes", "true") else "false")
        elif (setting, tail) == ("ipv4", "method"):
            write(profile, "ipv4", "method", value)
        else:
            return Answer(2, "", f"Error: invalid property '{tail}': '{tail}' not among [...].\n")
        profile = _find(links, profile.uuid) or profile
    return Answer()


def _device(call: Call, words: list[str], fields: list[str], terse: bool, get: bool) -> Answer:
    links = dict(call.links())
    verb = words[0] if words else "status"
    if verb in ("status", "s"):
        return _rows(_device_rows(links), fields or ["DEVICE", "TYPE", "STATE", "CONNECTION"], terse)
    name = words[1] if len(words) > 1 else ""
    if verb in ("show", "reapply", "r") and name not in links:
        return Answer(10, "", f"Error: Device '{name}' not found.\n")
    if verb == "show":
        row = next(r for r in _device_rows(links) if r["DEVICE"] == name)
        facts = {"GENERAL.DEVICE": name, "GENERAL.TYPE": "ethernet", "GENERAL.HWADDR": links[name].mac.upper(),
                 "GENERAL.MTU": str(links[name].mtu), "GENERAL.STATE": f"100 ({row['STATE']})", "GENERAL.CONNECTION": row["CONNECTION"]}
        chosen, unknown = _select(facts, fields or ["GENERAL"])
        if unknown:
            return Answer(2, "", f"Error: 'device show': invalid field '{unknown}'; allowed fields: GENERAL.\n")
        return Answer(0, "".join(f"{v}\n" if get else f"{k}:{v}\n" if terse else f"{k + ':':<40}{v}\n" for k, v in chosen))
    if verb in ("reapply", "r"):
        return _reapply(call, links, name)
    return Answer(2, "", f"Error: argument '{verb}' not understood. Try passing --help instead.\n")


def _reapply(call: Call, links: dict[str, Link], name: str) -> Answer:
    profile = next((p for p in profiles(links) if p.device == name), None)
    if not call.root:
        return Answer(1, "", f"Error: Reapplying connection to device '{name}' failed: Not authorized to reapply\n")
    if profile is None:
        return Answer(1, "", f"Error: Reapplying connection to device '{name}' failed: Device is not activated\n")
    if profile.mtu:
        done = subprocess.run(["ip", "link", "set", name, "mtu", str(profile.mtu)], capture_output=True, text=True, check=False, timeout=10)
        if done.returncode:
            return Answer(1, "", f"Error: Reapplying connection to device '{name}' failed: {done.stderr.strip()}\n")
    return Answer(0, f"Connection successfully reapplied to device '{name}'.\n")


def run(call: Call) -> Answer:
    terse = get = False
    fields: list[str] = []
    queue = list(call.argv)
    while queue and queue[0].startswith("-"):
        word = queue.pop(0)
        if word in ("-t", "--terse"):
            terse = True
        elif word in ("-f", "--fields", "-g", "--get-values"):
            get = get or word in ("-g", "--get-values")
            terse = terse or get
            fields = queue.pop(0).split(",") if queue else []
        elif word in ("-m", "--mode", "-c", "--colors", "-e", "--escape", "-w", "--wait"):
            del queue[:1]
        elif word in ("-v", "--version"):
            return Answer(0, "nmcli tool, version 1.46.0\n")
        elif word not in ("-p", "--pretty", "-a", "--ask", "--no-ask"):
            return Answer(2, "", f"Error: Option '{word}' is unknown, try 'nmcli -help'.\n")
    what = OBJECTS.get(queue[0], "") if queue else "general"
    if what == "connection":
        return _connection(call, queue[1:], fields, terse, get)
    if what == "device":
        return _device(call, queue[1:], fields, terse, get)
    if what == "general":
        return Answer(0, "running\n" if terse else "STATE      CONNECTIVITY  WIFI-HW  WIFI  \nconnected  full  enabled  enabled\n")
    return Answer(2, "", f"Error: argument '{queue[0]}' not understood. Try passing --help instead.\n")
