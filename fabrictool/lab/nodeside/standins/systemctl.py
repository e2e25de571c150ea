"""systemctl, as far as a node's services need it. Enabling makes the real links; starting runs the file's real commands.

Texts follow systemd 252-255. What is not known is refused as unknown, never silently accepted.
"""

from __future__ import annotations

import os
from pathlib import Path

from fabrictool.lab.nodeside import services, units
from fabrictool.lab.nodeside.standins import systemctl_show as look
from fabrictool.lab.nodeside.standins.systemctl_show import ETC, Options
from fabrictool.lab.nodeside.tool import Answer, Call

LOCKED = False  # it starts programs that are stand-ins themselves

CHANGED = ("Warning: The unit file, source configuration file or drop-ins of {} changed on disk. "
           "Run 'systemctl daemon-reload' to reload units.\n")
FAILED = ("Job for {0} failed because the control process exited with error code.\n"
          "See \"systemctl status {0}\" and \"journalctl -xeu {0}\" for details.\n")


def _targets(unit: units.Unit) -> list[Path]:
    found = []
    for key, folder in (("Install.WantedBy", "wants"), ("Install.RequiredBy", "requires")):
        for line in unit.settings.get(key, ()):
            found += [ETC / f"{units.specifiers(t, unit.name)}.{folder}" / unit.name for t in line.split()]
    return found + [ETC / a for line in unit.settings.get("Install.Alias", ()) for a in line.split()]


def _enable(names: list[str]) -> Answer:
    err = ""
    for name in names:
        unit = units.load_from_disk(name)
        if not unit.fragment:
            return Answer(1, "", f"{err}Failed to enable unit: Unit file {name} does not exist.\n")
        if unit.masked:
            return Answer(1, "", f"{err}Failed to enable unit: Unit file {unit.fragment} is masked.\n")
        links = _targets(unit)
        if not links:
            err += "The unit files have no installation config (WantedBy=, RequiredBy=, Also=, Alias= settings in the [Install] section)\n"
        for link in links:
            if link.is_symlink() and os.readlink(link) == unit.fragment:
                continue
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(unit.fragment)
            err += f"Created symlink {link} → {unit.fragment}.\n"
    units.reload_all()  # enabling reloads the manager, as the real one does
    return Answer(0, "", err)


def _disable(names: list[str]) -> Answer:
    err = ""
    for name in names:
        if not units.fragment_of(name) and not look.links(name):
            return Answer(1, "", f"{err}Failed to disable unit: Unit file {name} does not exist.\n")
        for link in look.links(name):
            link.unlink()
            err += f"Removed \"{link}\".\n"
    units.reload_all()
    return Answer(0, "", err)


def _mask(names: list[str], on: bool) -> Answer:
    err = ""
    for name in names:
        link = ETC / name
        if on and link.exists() and not link.is_symlink():
            return Answer(1, "", f"{err}Failed to mask unit: File {link} already exists.\n")
        if on and not link.is_symlink():
            link.symlink_to("/dev/null")
            err += f"Created symlink {link} → /dev/null.\n"
        elif not on and link.is_symlink() and os.readlink(link) == "/dev/null":
            link.unlink()
            err += f"Removed \"{link}\".\n"
    units.reload_all()
    return Answer(0, "", err)


def _start(names: list[str], again: bool) -> Answer:
    err, rc = "", 0
    for name in names:
        unit = units.load(name)
        if not unit.fragment:
            return Answer(5, "", f"{err}Failed to start {name}: Unit {name} not found.\n")
        if unit.masked:
            return Answer(1, "", f"{err}Failed to start {name}: Unit {name} is masked.\n")
        if units.needs_reload(unit):
            err += CHANGED.format(name)
        run = services.run_of(name)
        if run.active == "active" and not again:
            continue
        if again:
            services.stop(name)
        if services.start(name).active == "failed":
            err, rc = err + FAILED.format(name), 1
    return Answer(rc, "", err)


WRITES = {"enable", "disable", "reenable", "mask", "unmask", "daemon-reload", "start", "stop", "restart", "try-restart",
          "reload-or-restart", "reset-failed"}
IGNORED = ("--no-pager", "--plain", "--full", "-l", "--no-block", "--system", "-f", "--force", "--no-ask-password")
FLAGS = {"--now": "now", "--quiet": "quiet", "-q": "quiet", "--value": "value", "--all": "all", "-a": "all",
         "--no-legend": "bare", "--legend=false": "bare"}
LISTS = {"-p": "only", "--property": "only", "-t": "kinds", "--type": "kinds", "--state": "states"}


def _options(argv: list[str]) -> Options:
    """Options may stand anywhere, as with the real one."""
    o = Options()
    queue = list(argv)
    while queue:
        word = queue.pop(0)
        key, eq, text = word.partition("=")
        if key in LISTS:
            text = text if eq else queue.pop(0) if queue else ""
            getattr(o, LISTS[key]).extend(text.split(","))
        elif word.startswith("-p") and len(word) > 2:
            o.only.extend(word[2:].split(","))
        elif word in FLAGS:
            o.flags.add(FLAGS[word])
        elif word.startswith("-") and word not in IGNORED:
            o.unknown = o.unknown or word
        elif not word.startswith("-"):
            o.words.append(word)
    return o


def run(call: Call) -> Answer:
    if "--version" in call.argv:
        return Answer(0, "systemd 255 (255.4-1ubuntu8.10)\n")
    o = _options(call.argv)
    if o.unknown:
        return Answer(1, "", f"systemctl: unrecognized option '{o.unknown}'\n")
    verb, names = (o.words[0], o.words[1:]) if o.words else ("list-units", [])
    if verb in WRITES and not call.root:
        return Answer(1, "", f"Failed to {verb} unit: Access denied\n" if names else "Failed to reload daemon: Access denied\n")
    needs_names = WRITES - {"daemon-reload", "reset-failed"} | {"is-enabled", "is-active", "is-failed", "cat"}
    if verb in needs_names and not names:
        return Answer(1, "", "Too few arguments.\n")
    full = [units.full_name(n) for n in names]
    return _write(call, verb, full, o) if verb in WRITES else _read(call, verb, names, full, o)


def _read(call: Call, verb: str, names: list[str], full: list[str], o: Options) -> Answer:
    quiet = "quiet" in o.flags
    if verb == "is-enabled":
        return look.is_enabled(call, full, quiet)
    if verb in ("is-active", "is-failed"):
        seen = [look.active(call, n) for n in full]
        good = any(s == ("active" if verb == "is-active" else "failed") for s in seen)
        return Answer(0 if good else 3 if verb == "is-active" else 1, "" if quiet else "".join(f"{s}\n" for s in seen))
    if verb == "show":
        return look.show(call, names, o.only, o.kinds, "value" in o.flags)
    if verb == "cat":
        return look.cat(full)
    if verb == "status":
        return look.status(call, full)
    if verb == "list-unit-files":
        return look.list_files(call, names, o.states, o.kinds, "bare" not in o.flags)
    if verb == "list-units":
        return look.list_units(call, names, o)
    if verb == "is-system-running":
        return Answer(0, "running\n")
    return Answer(1, "", f"Unknown command verb {verb}.\n")


def _write(call: Call, verb: str, full: list[str], o: Options) -> Answer:
    now = "now" in o.flags
    if verb in ("enable", "reenable"):
        done = _enable(full)
        return Answer(_start(full, False).rc, "", done.err) if now and done.rc == 0 else done
    if verb == "disable":
        if now:
            _stop(call, full)
        return _disable(full)
    if verb in ("mask", "unmask"):
        return _mask(full, verb == "mask")
    if verb in ("start", "restart", "reload-or-restart"):
        return _start(full, verb != "start")
    if verb == "try-restart":
        return _start([n for n in full if look.active(call, n) == "active"], True)
    if verb == "stop":
        return _stop(call, full)
    if verb == "daemon-reload":
        units.reload_all()
    for name in (full or look.known(call)) if verb == "reset-failed" else ():
        if services.run_of(name).active == "failed":
            services.remember(name, services.Run())
    return Answer()


def _stop(call: Call, names: list[str]) -> Answer:
    for name in names:
        if name.startswith("lldpad.") and call.node.lldpad:
            _stop_lldpad()
        elif not units.load(name).fragment and services.run_of(name).active == "inactive":
            return Answer(5, "", f"Failed to stop {name}: Unit {name} not loaded.\n")
        else:
            services.stop(name)
    return Answer()


def _stop_lldpad() -> None:
    """The daemon is a fact of the node's state."""
    from fabrictool.lab.nodeside.state import edit

    with edit(Path("/opt/fabrictool-lab/node/state.json")) as node:
        node.lldpad = False


