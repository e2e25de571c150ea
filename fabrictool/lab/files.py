"""Files of a running node. Always through the node's own namespaces: a link in a node must not lead into the machine."""

from __future__ import annotations

from fabrictool.lab.errors import LabError
from fabrictool.lab.inside import Done, run_inside

ABSENT = 44
_READ = f'[ -e "$1" ] || exit {ABSENT}; exec cat -- "$1"'
_WRITE = 'd=$(dirname -- "$1") && mkdir -p -- "$d" && t=$(mktemp "$d/.lab.XXXXXX") && cat >"$t" && chmod "$2" "$t" && mv -fT -- "$t" "$1"'


def _must(done: Done, what: str) -> Done:
    if not done.ok:
        raise LabError(f"{what}: {done.err.strip() or f'exit status {done.rc}'}")
    return done


def read(pid: int, path: str) -> str | None:
    done = run_inside(pid, ["/bin/sh", "-c", _READ, "sh", path])
    return None if done.rc == ABSENT else _must(done, f"read {path}").out


def write(pid: int, path: str, text: str | bytes, mode: int) -> None:
    _must(run_inside(pid, ["/bin/sh", "-c", _WRITE, "sh", path, f"{mode:o}"], text), f"write {path}")


def remove(pid: int, path: str) -> None:
    _must(run_inside(pid, ["rm", "-rf", "--", path]), f"remove {path}")
