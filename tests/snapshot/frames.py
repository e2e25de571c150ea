"""Frames as a node would write them, made without the shell. Written from frame.py's page, not from its code."""

from __future__ import annotations

import base64
import gzip
import subprocess
from collections.abc import Mapping

from fabrictool.snapshot import Captured


def _wrapped(data: bytes, form: str) -> str:
    if form == "hex":
        digits = data.hex(" ").split(" ") if data else []
        return "\n".join(" " + " ".join(digits[i:i + 16]) for i in range(0, len(digits), 16))
    return base64.encodebytes(data).decode().rstrip("\n")


def body(sections: Mapping[str, Captured], form: str = "b64", limit: int = 10_000) -> str:
    """The payload. Keys are `name` or `name[item]`."""
    lines = [f"fabrictool-snapshot 1 {form} {len(sections)} 1000 - -"]
    for number, (key, got) in enumerate(sections.items()):
        name, bracket, item = key.partition("[")
        shown = "~" + _wrapped(item[:-1].encode("utf-8", "surrogateescape"), form).replace("\n", "").replace(" ", "") if bracket else "-"
        lines += [f"S {number} {name} {shown} {limit} {'denied' if got.denied else '-'}", f"E {got.rc} {got.ms}",
                  _wrapped(got.err.encode("utf-8", "surrogateescape"), form), "O",
                  _wrapped(got.out.encode("utf-8", "surrogateescape"), form), "."]
    return "\n".join([*lines, f"end {len(sections)}"])


def around(text: str, packing: str = "gzip-b64") -> str:
    """The frame around a payload."""
    total = "-"
    if packing == "plain":
        done = subprocess.run(["cksum"], input=(text + "\n").encode(), capture_output=True, check=True)
        total = done.stdout.split()[0].decode()
    else:
        text = _wrapped(gzip.compress((text + "\n").encode(), mtime=0), packing.removeprefix("gzip-"))
    return f"\nFABRICTOOL-FRAME 1 {packing}\n{text}\nFABRICTOOL-END 1 {len(text)} {total}\n"
