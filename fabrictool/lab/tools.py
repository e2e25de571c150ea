"""Taking a tool away from a running node, and giving it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabrictool.lab.errors import LabError
from fabrictool.lab.paths import INSIDE
from fabrictool.lab.toolbox import FOLDERS

if TYPE_CHECKING:
    from fabrictool.lab.handle import Lab

_HIDE = ('tool=$1 store=$2; shift 2; for d in "$@"; do [ ! -L "$d" ] || continue; [ -e "$d/$tool" ] || [ -L "$d/$tool" ] || continue; '
         'mkdir -p "$store$d" && mv -f "$d/$tool" "$store$d/$tool" || exit 1; done')
_SHOW = ('tool=$1 store=$2; shift 2; for d in "$@"; do [ -e "$store$d/$tool" ] || [ -L "$store$d/$tool" ] || continue; '
         'mv -f "$store$d/$tool" "$d/$tool" || exit 1; done')
STORE = f"{INSIDE}/hidden"


def _run(lab: Lab, node: str, text: str, tool: str) -> None:
    done = lab.exec(node, ["/bin/sh", "-c", text, "sh", tool, STORE, *FOLDERS])
    if not done.ok:
        raise LabError(f"{node}: {tool}: {done.err.strip()}")


def hide(lab: Lab, node: str, tool: str) -> None:
    """Moved out of every folder of root's PATH. `python3` takes the interpreter it points to along."""
    names = [tool]
    if tool == "python3":
        names += [f"python3.{n}" for n in range(6, 20)]
    for name in names:
        _run(lab, node, _HIDE, name)


def show(lab: Lab, node: str, tool: str) -> None:
    names = [tool, *(f"python3.{n}" for n in range(6, 20))] if tool == "python3" else [tool]
    for name in names:
        _run(lab, node, _SHOW, name)
