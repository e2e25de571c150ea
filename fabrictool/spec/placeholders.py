"""Placeholders in `env.set` values: `{bootstrap.address}` and the like, filled in on each node."""

from __future__ import annotations

import re

PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)+)\}")
KNOWN = ("bootstrap.address",)  # the IPv4 address of the node's bootstrap interface


def placeholders(text: str) -> tuple[str, ...]:
    """The names in braces, in order. Braces around anything but dotted lower-case words (JSON, shell) are plain text."""
    return tuple(PLACEHOLDER.findall(text))
