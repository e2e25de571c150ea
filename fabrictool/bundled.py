"""Where deploys/, checks/ and the example inventories are: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path


def folder(kind: str) -> Path:
    """The folder `kind` ("deploys", "checks", "inventories", "docs"). Raises FileNotFoundError for a broken installation."""
    here = Path(__file__).resolve().parent
    for candidate in (here / "_bundle" / kind, here.parent / kind):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"{kind}/ is neither in {here / '_bundle'} nor beside {here}: install fabrictool again")
