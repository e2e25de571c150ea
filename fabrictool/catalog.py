"""Finding checks: the bundled ones, and those of a site's own folders."""

from __future__ import annotations

import difflib
import importlib.util
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from types import ModuleType

from fabrictool import rooms
from fabrictool.bundled import folder
from fabrictool.check import Check, Listed, extra_sections, missing_headings
from fabrictool.exits import Exit, Stop
from fabrictool.spec import NodeSpec


def _load(path: Path) -> ModuleType:
    name = f"fabrictool_checks.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Stop(Exit.USAGE, f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses of the file look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        raise Stop(Exit.USAGE, f"{path}{line}: this check cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _listed(path: Path) -> Listed:
    module = _load(path)
    check, page = getattr(module, "CHECK", None), (module.__doc__ or "").strip()
    if not isinstance(check, Check):
        raise Stop(Exit.USAGE, f"{path}: a check must export CHECK = Check(rooms=(...)), from fabrictool.check")
    missing = missing_headings(page)
    if missing:
        raise Stop(Exit.USAGE, f"{path}: its docstring lacks {', '.join(repr(h + ':') for h in missing)}")
    return Listed(path.stem, str(path), page, check)


def checks(paths: Iterable[Path] = ()) -> tuple[Listed, ...]:
    """All checks: the bundled ones and those in `paths`. Two of one name, or a file that is no check, end the command (64)."""
    found: dict[str, Listed] = {}
    for where in (folder("checks"), *paths):
        if not where.is_dir():
            raise Stop(Exit.USAGE, f"--path {where}: there is no such folder")
        for path in sorted(where.glob("[!_.]*.py")):
            one = _listed(path)
            if one.name in found:
                raise Stop(Exit.USAGE, f"two checks are called {one.name!r}: {found[one.name].path} and {path}; rename one")
            found[one.name] = one
    return tuple(found.values())


def nearest(word: str, known: Collection[str]) -> str:
    """A hint for a name that is not known."""
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(known))}"


def choose(names: Sequence[str], paths: Iterable[Path] = ()) -> tuple[Listed, ...]:
    """The checks called `names`, each once, in that order; all of them for none. An unknown name ends the command (64)."""
    known = {c.name: c for c in checks(paths)}
    for name in names:
        if name not in known:
            raise Stop(Exit.USAGE, f"there is no check {name!r}; {nearest(name, known)}")
    return tuple(known[n] for n in dict.fromkeys(names)) if names else tuple(known.values())


def unknown_rooms(chosen: Iterable[Listed], known: Collection[str]) -> None:
    """Ends the command (64) when a check asks for a room that does not exist: it would wait for evidence forever."""
    for one in chosen:
        for room in one.rooms:
            if room not in known:
                raise Stop(Exit.USAGE, f"{one.path}: there is no room {room!r}; {nearest(room, known)}")


def clashing_sections(chosen: Sequence[Listed], wants: Iterable[NodeSpec]) -> None:
    """Ends the command (64) when what the checks read of a node cannot be collected together."""
    for want in wants:
        for last, one in enumerate(chosen, 1):
            try:
                rooms.sections(None, extra_sections(chosen[:last], want))
            except Exception as error:
                raise Stop(Exit.USAGE, f"{one.path}: what it reads of {want.name}: {error}") from error
