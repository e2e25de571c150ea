"""cloud-init rewrites /etc/hosts at each boot where `manage_etc_hosts` is on, with the 127.0.1.1 line back in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from fabrictool.model import Code, Finding, Reason, Subject, Unreadable, Value, WriteFile
from fabrictool.names.sections import CLOUD_OVERRIDE, State
from fabrictool.room import About
from fabrictool.snapshot.whole import pick, pinned
from fabrictool.spec import NodeSpec

# cloud-init's module cc_update_etc_hosts: true and template rewrite the file, localhost puts the 127.0.1.1 line in.
ON = ("true", "yes", "on", "template", "localhost")
TEXT = "# Written by fabrictool: cloud-init must not put 127.0.1.1 back into /etc/hosts.\nmanage_etc_hosts: false\n"
WANT = "nothing rewrites /etc/hosts at boot"


def judge(node: Subject, want: NodeSpec, got: State) -> Iterator[Finding]:
    about = About(Code.NAME_TEMPLATE, node, "names.template", "template")
    cloud = got.cloud
    if want.bootstrap is None:
        yield about.skip("the spec names no bootstrap interface")
    elif isinstance(cloud, Unreadable):
        yield about.unknown(cloud, WANT)
    elif not cloud.present or cloud.disabled:
        yield about.ok("cloud-init is disabled" if cloud.present else "no cloud-init", WANT)
    elif cloud.denied:
        yield about.unknown(Unreadable(Reason.NEEDS_ROOT, f"{', '.join(cloud.denied)}: permission denied"), WANT)
    elif not cloud.settings or cloud.settings[-1][1] not in ON:
        said = f"manage_etc_hosts: {cloud.settings[-1][1]} ({cloud.settings[-1][0]})" if cloud.settings else "manage_etc_hosts is not set"
        yield about.ok(said, WANT)
    else:
        yield _on(about, got, *cloud.settings[-1], cloud.templates)


def _on(about: About, got: State, path: str, value: str, templates: tuple[str, ...]) -> Finding:
    said = f"manage_etc_hosts: {value} ({path})"
    why = f"at the next boot cloud-init writes /etc/hosts anew{f' from {templates[-1]}' if templates else ''} and undoes the repair"
    mine = PurePosixPath(CLOUD_OVERRIDE)
    here = PurePosixPath(path)
    if here.parent not in (mine.parent, mine.parent.parent) or (here.parent == mine.parent and here.name > mine.name):
        origin = " (it comes from the instance's user data)" if here.parent != mine.parent else ""
        return about.fail(said, WANT, f"{why}; {path} wins over any file that could be added",
                          remedy=f"set manage_etc_hosts: false in {path}{origin}")
    file = pick(got.files, CLOUD_OVERRIDE)
    if isinstance(file, Unreadable):
        return about.unknown(file, WANT)
    before = file.value.sha256 if isinstance(file, Value) else ""
    fixed = pinned(file)
    return about.fail(said, WANT, why, steps=() if fixed else (WriteFile(CLOUD_OVERRIDE, TEXT, before),), remedy=fixed)
