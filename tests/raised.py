"""Which codes the program itself raises while a test function runs: every finding that does not pass, made by code of the program."""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fabrictool.model import Code, Finding


@contextmanager
def recorded() -> Iterator[set[Code]]:
    """The codes of findings that do not pass, as they are made. One that a test makes itself, or a changed copy, does not count."""
    found: set[Code] = set()
    original: Callable[..., None] = Finding.__init__

    def init(self: Finding, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        maker = str(sys._getframe(1).f_globals.get("__name__", ""))
        if self.bad and maker.startswith("fabrictool."):
            found.add(self.code)

    Finding.__init__ = init  # type: ignore[method-assign]  # put back below
    try:
        yield found
    finally:
        Finding.__init__ = original  # type: ignore[method-assign]


def cases(function: Callable[..., object]) -> Iterator[Mapping[str, Any]]:
    """The arguments of each of its parametrized calls; one empty call if it has none. A test that needs a fixture cannot be called."""
    axes: list[list[Mapping[str, Any]]] = []
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args[0], mark.args[1]
            words = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
            axes.append([dict(zip(words, v if len(words) > 1 else (v,), strict=True)) for v in values])
    for chosen in itertools.product(*axes):
        yield {k: v for part in chosen for k, v in part.items()}


def raised_by(name: str) -> set[Code]:
    """Run `tests/FILE.py::FUNCTION` here, every case of it. ValueError for one that needs more than its parameters."""
    path, _, function_name = name.partition("::")
    function = getattr(importlib.import_module(path.removesuffix(".py").replace("/", ".")), function_name)
    needs = set(inspect.signature(function).parameters)
    out: set[Code] = set()
    for arguments in cases(function):
        if set(arguments) != needs:
            raise ValueError(f"{name} needs {', '.join(sorted(needs - set(arguments)))}")
        with recorded() as found:
            function(**arguments)
        out |= found
    return out
