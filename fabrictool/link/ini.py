"""The two INI dialects: systemd units and NetworkManager keyfiles. Sections may repeat, keys may repeat, nothing is expanded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ini:
    """(section, key, value) in the file's order."""

    rows: tuple[tuple[str, str, str], ...]

    def last(self, section: str, *keys: str) -> str:
        """The value that wins: the last one."""
        found = [v for s, k, v in self.rows if s == section and k in keys]
        return found[-1] if found else ""

    def all(self, section: str, key: str) -> tuple[str, ...]:
        """All values of a list key. An empty assignment clears what came before (systemd.syntax)."""
        out: list[str] = []
        for s, k, v in self.rows:
            if s == section and k == key:
                out = [*out, v] if v else []
        return tuple(out)

    def keys(self, section: str) -> frozenset[str]:
        return frozenset(k for s, k, _ in self.rows if s == section)


def parse(text: str) -> Ini:
    rows, section = [], ""
    for raw in text.replace("\\\n", " ").splitlines():
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            continue
        key, equals, value = line.partition("=")
        if equals:
            rows.append((section, key.strip(), value.strip()))
    return Ini(tuple(rows))
