"""vLLM's periodic line about KV transfers by NIXL. Of one interval, pooled over all ranks of an engine."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"KV Transfer metrics: (.{1,1000})")
_PAIR = re.compile(r"([A-Z][A-Za-z0-9 ]{1,40}?(?: \([A-Za-z/]{1,8}\))?)=(-?[0-9]{1,18}(?:\.[0-9]{1,18})?(?:e[+-]?[0-9]{1,3})?)(?=,|\s*$)")
COUNT, AVG, P90 = "Num successful transfers", "Avg xfer time (ms)", "P90 xfer time (ms)"
MB, RATE, DESCRIPTORS = "Avg MB per transfer", "Throughput (MB/s)", "Avg number of descriptors"


@dataclass(frozen=True, slots=True)
class KvTransfer:
    """`transfers`: those that succeeded, about requests x tensor parallel ranks. Times in ms; `mib_per_transfer` in 2^20 bytes;
    `mib_per_s`: bytes divided by the *sum* of all transfers' times, so transfers that overlap understate the wire's rate. `line`:
    1-based."""

    line: int
    transfers: int
    avg_ms: float
    p90_ms: float
    mib_per_transfer: float
    mib_per_s: float
    descriptors: float

    @property
    def bytes(self) -> int:
        return round(self.transfers * self.mib_per_transfer * 2 ** 20)

    @property
    def idle(self) -> bool:
        """Nothing succeeded in the interval: there were none, or only failures."""
        return self.transfers == 0


def parse(text: str) -> tuple[KvTransfer, ...]:
    """Every line that has all its figures. Mooncake's line of the same name has others, and is left out."""
    out = []
    for number, raw in enumerate(text.split("\n"), 1):
        m = _LINE.search(raw) if "KV Transfer metrics" in raw else None
        if not m:
            continue
        values = {p[1]: float(p[2]) for p in _PAIR.finditer(m[1].rstrip("\r "))}
        try:
            count = values[COUNT]
            found = KvTransfer(number, int(count), values[AVG], values[P90], values[MB], values[RATE], values[DESCRIPTORS])
        except KeyError:
            continue
        if count == found.transfers and min(values.values()) >= 0:
            out.append(found)
    return tuple(out)
