"""The command blocks of a capture file: `$` command, stdout, `[stderr]` if any, `[rc=N]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fabrictool.snapshot import Captured

CAPTURES = Path(__file__).parent.parent / "captures"


@dataclass(frozen=True)
class Block:
    command: str
    got: Captured


def blocks(path: str) -> list[Block]:
    text = (CAPTURES / path).read_text()
    found = re.findall(r"^\$ (.*)\n((?:.*\n)*?)\[rc=(\d+)\]", text, re.MULTILINE)
    assert found, path
    out = []
    for command, body, rc in found:
        stdout, _, stderr = body.partition("[stderr]\n")
        out.append(Block(command, Captured(int(rc), stdout, stderr)))
    return out
