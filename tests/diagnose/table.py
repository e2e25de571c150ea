"""The tables of docs/diagnose.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fabrictool.diagnose import Judged, Wants, diagnose, nothing_known
from fabrictool.exits import Exit
from fabrictool.model import Code, Finding, Status
from fabrictool.snapshot.sniff import Input, Refused, decode, sniff

ROOT = Path(__file__).resolve().parents[2]
PASTES = ROOT / "tests" / "diagnose" / "pastes"
CAPTURES = ROOT / "tests" / "captures"
PAGE = ROOT / "docs" / "diagnose.md"


@dataclass(frozen=True)
class Row:
    name: str
    codes: frozenset[Code]
    exit: int

    @property
    def path(self) -> Path:
        return CAPTURES / self.name if "/" in self.name else PASTES / f"{self.name}.txt"

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def family(self) -> str:
        return self.name.partition("-")[0]


def rows() -> tuple[Row, ...]:
    found = re.findall(r"^\| ([\w./-]+) \|(?: [^|]* \|)? ?([A-Z0-9_ ]*) ?\| (\d) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return tuple(Row(name, frozenset(Code(c) for c in codes.split()), int(code)) for name, codes, code in found)


ROWS = tuple(r for r in rows() if not r.name.endswith("/"))
FOLDERS = tuple(r for r in rows() if r.name.endswith("/"))
WRITTEN = tuple(r for r in ROWS if "/" not in r.name)


def judged(*inputs: Input, wants: Wants | None = None) -> tuple[Judged, ...]:
    pieces = [p for given in inputs for p in sniff(given)]
    return diagnose(pieces, wants) or (nothing_known(pieces),)


def of_text(text: str, name: str = "paste", wants: Wants | None = None) -> tuple[Judged, ...]:
    return judged(Input(name, text), wants=wants)


def of_bytes(data: bytes) -> tuple[Judged, ...]:
    got = decode("paste", data)
    return () if isinstance(got, Refused) else judged(got)


def of_folder(folder: Path) -> tuple[Judged, ...]:
    names = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return judged(*(Input(str(p.relative_to(CAPTURES)), p.read_text(encoding="utf-8")) for p in names))


def findings(found: Iterable[Judged]) -> list[Finding]:
    return [f for j in found for f in j.findings]


def codes(found: Iterable[Judged]) -> frozenset[Code]:
    return frozenset(f.code for f in findings(found) if f.bad)


def exit_of(found: Iterable[Judged]) -> int:
    seen = {f.status for f in findings(found)}
    return int(Exit.FAILED if Status.FAIL in seen else Exit.NO_VERDICT if Status.UNKNOWN in seen or not seen else Exit.OK)
