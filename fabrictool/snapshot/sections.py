"""What to collect: sections, each one piece of POSIX sh with its own time and size limit.

Section texts are constants of the rooms; nothing of the spec or of a node's output ever enters them. A section that is
repeated (`each`) gets the item's name as `$1`; one that reads what a spec names gets that as quoted words (`args`).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files as resources


class Each(StrEnum):
    """What a section is repeated for. NETDEV: every interface with a `device` link in sysfs, plus bonds and VLANs; RDMA: every
    directory of /sys/class/infiniband. PEERS: once (the key has no item), with the names of all nodes of the spec as "$@"."""

    NODE = "node"
    NETDEV = "netdev"
    RDMA = "rdma"
    PEERS = "peers"


@dataclass(frozen=True, slots=True)
class Section:
    """`shell` runs under `timeout_s`, stdin closed, PATH with /sbin; stdout is cut at `max_bytes`.

    `root`: run through `sudo -n` where the login user is not root; denied sudo makes it NEEDS_ROOT. `args`: `$1`, `$2` ... of a section
    that is not repeated.
    """

    name: str
    shell: str
    each: Each = Each.NODE
    root: bool = False
    timeout_s: int = 10
    max_bytes: int = 262_144
    args: tuple[str, ...] = ()


def tool(name: str, *argv: str, each: Each = Each.NODE, root: bool = False, timeout_s: int = 10,
         max_bytes: int = 262_144) -> Section:
    """A command. The word `{}` in `argv` becomes the item. A missing tool gives exit status 127."""
    words = " ".join('"$1"' if a == "{}" else shlex.quote(a) for a in argv)
    return Section(name, words, each, root, timeout_s, max_bytes)


def _globs(globs: tuple[str, ...]) -> str:
    """Shell words in which only `*`, `?` and the item stay live."""
    out = []
    for g in globs:
        parts = g.split("{}")
        quoted = []
        for part in parts:
            text = ""
            for ch in part:
                text += ch if ch in "*?" else (ch if ch.isalnum() or ch in "/._-" else shlex.quote(ch))
            quoted.append(text)
        out.append('"$1"'.join(quoted))
    return " ".join(out)


def sysfs(name: str, *globs: str, each: Each = Each.NODE, root: bool = False, timeout_s: int = 10,
          max_bytes: int = 1_048_576) -> Section:
    """Small one-line files, as `path:content` lines; files that do not exist or cannot be read give no line.

    Use class paths: a path with a colon could not be split. Read back with `Snapshot.sysfs`.
    """
    return Section(name, f"grep -sH '' {_globs(globs)} </dev/null; true", each, root, timeout_s, max_bytes)


def links(name: str, *globs: str, each: Each = Each.NODE, timeout_s: int = 10) -> Section:
    """Symbolic links, as `path -> resolved target` lines (`readlink -f`). Read back with `Snapshot.links`."""
    loop = f'for p in {_globs(globs)}; do [ -L "$p" ] && printf "%s -> %s\\n" "$p" "$(readlink -f "$p")"; done; true'
    return Section(name, loop, each, False, timeout_s)


def files(name: str, *globs: str, root: bool = False, timeout_s: int = 10, max_bytes: int = 524_288, through: str = "",
          masks: bool = False) -> Section:
    """Whole files, byte for byte, with mode, owner and size. Read back with `Snapshot.files`: a file that matches no glob is absent.

    `through`: an extended sed program that each file goes through on the node. `masks`: a link to /dev/null, with which systemd,
    NetworkManager and netplan hide a file of the same name, is an empty file; any other device is none.
    """
    named = "|".join(_globs((g,)) for g in globs if not set(g) & set("*?"))
    copy, measure, show = ("", 'wc -c <"$p"', 'head -c "$((n))" "$p"')
    if through:
        # Read once for the exit status: what sed could not read to its end would count as a shorter file.
        copy = f"f() {{ LC_ALL=C sed -E '{through}'; }}\n"
        measure, show = ('f <"$p" >/dev/null && f <"$p" | wc -c', 'f <"$p"')
    masked = ('    if [ -L "$p" ] && [ "$(readlink -f "$p")" = /dev/null ]; then printf "@ file 0 0 %s\\n\\n" "$p"; continue; fi\n'
              if masks else "")
    body = (
        f"{copy}"
        # What is mounted: a file that is a mount point of its own cannot be replaced by rename.
        "nl='\n'\n"
        'm="$nl$(cut -d" " -f5 /proc/self/mountinfo 2>/dev/null)$nl"\n'
        f"for p in {_globs(globs)}; do\n"
        '  if [ ! -e "$p" ]; then\n'
        '    if [ -L "$p" ]; then printf "@ dangling - - %s\\n" "$p"; continue; fi\n'
        '    d=${p%/*}; while [ -n "$d" ] && [ ! -e "$d" ]; do d=${d%/*}; done\n'
        # Not to be seen is not absent: a directory that may not be searched (or, for a glob, listed) hides it.
        '    if [ ! -x "${d:-/}" ]; then printf "@ denied - - %s\\n" "$p"; continue; fi\n'
        '    case $p in *[*?]*) [ -r "${d:-/}" ] || printf "@ denied - - %s\\n" "$p" ;; esac\n'
        '    continue\n'
        '  fi\n'
        # A device, a FIFO, or a folder where a file is named, is neither a file nor absent. A folder that a glob finds is no file.
        '  if [ ! -f "$p" ]; then\n'
        f"{masked}"
        f"    if [ -d \"$p\" ]; then case $p in {named or '//'}) ;; *) continue ;; esac; fi\n"
        '    printf "@ failed - - %s\\n" "$p"; continue\n'
        '  fi\n'
        '  if [ ! -r "$p" ]; then printf "@ denied - - %s\\n" "$p"; continue; fi\n'
        f'  n=$({measure}) || {{ printf "@ failed - - %s\\n" "$p"; continue; }}\n'
        '  r=$(readlink -f "$p") t=\n'
        '  case $m in *"$nl${r:-$p}$nl"*) t=:mount ;; esac\n'
        '  printf "@ file %s%s %s %s\\n" "$(stat -L -c %a:%u "$p" 2>/dev/null || echo -)" "$t" "$((n))" "$p"\n'
        f'  {show}; echo\n'
        "done; true"
    )
    return Section(name, body, Each.NODE, root, timeout_s, max_bytes)


def script(name: str, resource: str, root: bool = False, timeout_s: int = 20, max_bytes: int = 524_288,
           each: Each = Each.NODE, args: tuple[str, ...] = ()) -> Section:
    """A script of `fabrictool/node/`, sent with the collector."""
    text = resources("fabrictool.node").joinpath(resource).read_text(encoding="ascii")
    return Section(name, text, each, root, timeout_s, max_bytes, args)
