"""The reading half of the systemctl stand-in: what is enabled, what is active, and the properties of a unit."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from pathlib import Path

from fabrictool.lab.nodeside import services, units
from fabrictool.lab.nodeside.tool import Answer, Call

ETC = Path("/etc/systemd/system")


@dataclass
class Options:
    """The command line."""

    words: list[str] = field(default_factory=list)
    only: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    unknown: str = ""


def links(name: str) -> list[Path]:
    """Links that enable a unit."""
    return sorted(p for p in [*ETC.glob("*.wants/*"), *ETC.glob("*.requires/*")] if p.name == name)


def file_state(name: str, node_lldpad: bool) -> str:
    """As is-enabled says it; "" when there is no such unit."""
    unit = units.load_from_disk(name)
    if not unit.fragment:
        return "enabled" if node_lldpad and name.startswith("lldpad.") else ""
    if unit.masked:
        return "masked"
    if links(name):
        return "enabled"
    installable = any(k.startswith("Install.") and v for k, v in unit.settings.items())
    return "disabled" if installable else "static"


def is_enabled(call: Call, names: list[str], quiet: bool) -> Answer:
    out, err, good = "", "", 0
    for name in names:
        state = file_state(name, call.node.lldpad)
        if not state:
            err += f"Failed to get unit file state for {name}: No such file or directory\n"
            continue
        out += f"{state}\n"
        good += state in ("enabled", "static", "enabled-runtime", "indirect")
    return Answer(0 if good else 1, "" if quiet else out, err)


def active(call: Call, name: str) -> str:
    if name.startswith("lldpad."):
        return "active" if call.node.lldpad else "inactive"
    unit = units.load(name)
    if name.endswith(".target") or (name.endswith(".device") and not unit.fragment):
        return "active"
    return services.run_of(name).active


def properties(call: Call, name: str) -> dict[str, str]:
    """What `systemctl show` knows of a unit here."""
    unit, run = units.load(name), services.run_of(name)
    state = file_state(name, call.node.lldpad)
    loaded = "masked" if unit.masked else "loaded" if unit.fragment or state or run.active != "inactive" else "not-found"
    env = " ".join(unit.settings.get("Service.Environment", ()))
    return {
        "Id": name, "Names": name, "Type": unit.kind, "Description": unit.last("Unit.Description", name), "LoadState": loaded,
        "ActiveState": active(call, name), "SubState": run.sub, "FragmentPath": unit.fragment,
        "DropInPaths": " ".join(unit.dropins), "UnitFileState": state, "MainPID": str(run.pid), "ExecMainStatus": str(run.status),
        "Result": run.result, "Environment": env, "EnvironmentFiles": " ".join(unit.settings.get("Service.EnvironmentFile", ())),
        "NeedDaemonReload": "yes" if unit.fragment and units.needs_reload(unit) else "no",
        "RemainAfterExit": "yes" if unit.last("Service.RemainAfterExit") in ("yes", "true", "1", "on") else "no",
        "WantedBy": " ".join(sorted({link.parent.name.rpartition(".")[0] for link in links(name)})),
    }


def known(call: Call) -> list[str]:
    """Units in the manager's memory: loaded, enabled or run once."""
    names = {p.name for folder in ("loaded", "run") for p in (units.MANAGER / folder).glob("*")} | set(units.wanted())
    return sorted(names | ({"lldpad.service"} if call.node.lldpad else set()))


def show(call: Call, names: list[str], only: list[str], kinds: list[str], value: bool) -> Answer:
    chosen: list[str] = []
    for name in names:
        chosen += [k for k in known(call) if fnmatch.fnmatchcase(k, name)] if set(name) & set("*?[") else [units.full_name(name)]
    if kinds:
        chosen = [n for n in chosen if n.rpartition(".")[2] in kinds]
    blocks = []
    for name in chosen:
        facts = properties(call, name)
        wanted = [p for p in only if p in facts] if only else list(facts)
        blocks.append("".join(f"{facts[p]}\n" if value else f"{p}={facts[p]}\n" for p in wanted))
    return Answer(0, "\n".join(blocks))


def cat(names: list[str]) -> Answer:
    out = ""
    for name in names:
        unit = units.load_from_disk(name)
        if not unit.fragment:
            return Answer(1, out, f"No files found for {name}.\n")
        for path in (unit.fragment, *unit.dropins):
            out += f"{chr(10) if out else ''}# {path}\n{Path(path).read_text(errors='surrogateescape')}"
    return Answer(0, out)


def list_files(call: Call, patterns: list[str], states: list[str], kinds: list[str], legend: bool) -> Answer:
    names = {p.name for folder in units.DIRS for p in Path(folder).glob("*.*") if p.name.endswith(units.LOADABLE)}
    rows = [(n, file_state(n, call.node.lldpad)) for n in sorted(names) if not patterns or any(fnmatch.fnmatch(n, p) for p in patterns)]
    rows = [(n, s) for n, s in rows if s and (not states or s in states) and (not kinds or n.rpartition(".")[2] in kinds)]
    width = max((len(n) for n, _ in rows), default=9)
    body = "".join(f"{n:<{width}} {s:<8} enabled\n" for n, s in rows)
    return Answer(0, f"{'UNIT FILE':<{width}} {'STATE':<8} PRESET\n{body}\n{len(rows)} unit files listed.\n" if legend else body)


def list_units(call: Call, patterns: list[str], o: Options) -> Answer:
    rows = []
    for name in known(call):
        facts = properties(call, name)
        fits = (not patterns or any(fnmatch.fnmatch(name, p) for p in patterns)) and (not o.kinds or name.rpartition(".")[2] in o.kinds)
        if fits and (facts["ActiveState"] in o.states if o.states else "all" in o.flags or facts["ActiveState"] != "inactive"):
            rows.append((name, facts["LoadState"], facts["ActiveState"], facts["SubState"], facts["Description"]))
    body = "".join("  " + " ".join(row) + "\n" for row in rows)
    return Answer(0, f"  UNIT LOAD ACTIVE SUB DESCRIPTION\n{body}\n{len(rows)} loaded units listed.\n" if "bare" not in o.flags else body)


def status(call: Call, names: list[str]) -> Answer:
    out, rc = "", 0
    for name in names:
        facts = properties(call, name)
        if facts["LoadState"] == "not-found":
            return Answer(4, out, f"Unit {name} could not be found.\n")
        out += (f"● {name} - {facts['Description']}\n     Loaded: {facts['LoadState']} ({facts['FragmentPath']}; "
                f"{facts['UnitFileState']}; preset: enabled)\n     Active: {facts['ActiveState']} ({facts['SubState']})\n")
        rc = rc or (0 if facts["ActiveState"] == "active" else 3)
    return Answer(rc, out)
