"""Bytes that are not UTF-8 in what a node prints.

paramiko decodes strictly, and pyinfra's reader ends with the first byte that is not UTF-8: everything after it is lost, although the
command succeeded. One such byte in a login banner would make a healthy node unreadable. What we frame is pure ASCII, so any way to
spell those bytes will do.
"""

from __future__ import annotations

import paramiko.file


def spelled(text: bytes | str, encoding: str = "utf8") -> str:
    """Bytes that are not of `encoding` as `\\xff`."""
    return text if isinstance(text, str) else text.decode(encoding, "backslashreplace")


def install() -> None:
    """From now on, in this process. `u` is what paramiko's channel files decode with (tests/contract/test_decode.py)."""
    vars(paramiko.file)["u"] = spelled
