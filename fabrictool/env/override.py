"""Other places that set one of our variables to another value. Order: process environment, then NCCL_CONF_FILE or ~/.nccl.conf, then
/etc/nccl.conf; a login shell reads /etc/environment first, /etc/profile.d in the order of names, and the user's own files last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from fabrictool.env.lint import ASPECT
from fabrictool.env.model import Place, Places
from fabrictool.env.quoting import Style
from fabrictool.env.targets import NCCL_CONF, PROFILE_D, Target
from fabrictool.model import Code, Finding, Reason, Subject, Unreadable
from fabrictool.room import About

WANT = "no other file sets these variables differently"


def outranked(place: Place, key: str, targets: tuple[Target, ...]) -> Target | None:
    """The file of ours over which `place` wins for this variable."""
    path = PurePosixPath(place.path)
    for target in targets:
        if target.path == NCCL_CONF and key.startswith("NCCL_") and place.path != NCCL_CONF:
            return target
        if target.path == PROFILE_D and place.style is Style.SHELL and (
                str(path.parent) != "/etc/profile.d" or path.name > PurePosixPath(PROFILE_D).name) and path.name != "profile":
            return target
        if target.unit and (place.style is Style.ENVFILE or (
                path.parent.name == f"{target.unit}.d" and path.name > PurePosixPath(target.path).name)):
            return target
    return None


def _loses(place: Place, targets: tuple[Target, ...]) -> bool:
    """Whether the unit's own file or an earlier drop-in says it, so that our drop-in simply wins."""
    path = PurePosixPath(place.path)
    return place.style is Style.UNIT and any(t.unit and t.unit in (path.name, path.parent.name.removesuffix(".d")) for t in targets)


def judge(node: Subject, wanted: Mapping[str, str], places: Places | Unreadable, extra: tuple[Place, ...],
          targets: tuple[Target, ...]) -> Iterator[Finding]:
    """`extra`: files read otherwise (an /etc/nccl.conf that the spec does not write)."""
    about = About(Code.ENV_OVERRIDE, node, "env.override", ASPECT)
    if isinstance(places, Places):  # whatever the spec writes: what these set is not judged by any rule
        for path, seen in (*((p, Unreadable(Reason.NEEDS_ROOT, f"{p}: permission denied")) for p in places.denied),
                           *((p, Unreadable(Reason.CUT, f"{p}: a part is too long to be read (files of 256 KiB, lines of 16 KiB)"))
                             for p in places.partial)):
            yield About(Code.ENV_OVERRIDE, node, f"env.override.{path}", ASPECT).unknown(seen, WANT)
    if not targets:
        yield about.skip("env.write is empty")
        return
    if isinstance(places, Unreadable):
        yield about.unknown(places, WANT)
        return
    clean = True
    ours = {t.path for t in targets}
    for place in (*extra, *places.found):
        if place.path in ours:
            continue
        # NCCL takes the first of two settings, a shell and systemd the last.
        for item in {i.key: i for i in (reversed(place.items) if place.style is Style.CONF else place.items)}.values():
            value = wanted.get(item.key)
            if value is None or item.value is None or item.value == value:
                continue
            over = outranked(place, item.key, targets)
            if over is None and _loses(place, targets):
                continue
            clean = False
            here = About(Code.ENV_OVERRIDE, node, f"env.override.{place.path}.{item.key}", ASPECT)
            got, remedy = f"{item.key}={item.value[:200]}", f"delete line {item.line} of {place.path}"
            if over is None:
                yield here.warn(got, f"{item.key}={value}", f"{place.path} sets it for what does not read our files", remedy=remedy)
            else:
                yield here.fail(got, f"{item.key}={value}", f"{place.path} has precedence over {over.path}", remedy=remedy)
    if clean and not places.denied and not places.partial:
        yield about.ok(f"{len(places.found)} other files read", WANT)
