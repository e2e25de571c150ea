"""Evidence for people: the unit out of the key and behind the number."""

from __future__ import annotations

from collections.abc import Mapping

UNITS: Mapping[str, str] = {"_gbytes_per_s": "GB/s", "_gbit_per_s": "Gb/s", "_us": "us", "_ms": "ms", "_s": "s"}
"""Ending of a key -> its unit. Longer endings stand first."""
BYTES = "_bytes"
MEANS = "_means"  # ending of a text that explains the evidence before it
LEAST_SHORT = 10_000_000  # fewer bytes are written in full
PREFIXES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"))  # decimal, as the rates


def spell(key: str, value: str | int | float) -> str:
    """`busbw_gbytes_per_s`, 22.33 -> "busbw 22.33 GB/s". Keys without a unit keep their words, texts stay as they are."""
    if isinstance(value, str):
        return f"which means: {value}" if key.endswith(MEANS) else f"{_words(key)} {value}"
    if key.endswith(BYTES):
        return f"{_words(key.removesuffix(BYTES))} {_bytes(value)}"
    for ending, unit in UNITS.items():
        if key.endswith(ending):
            return f"{_words(key.removesuffix(ending))} {value:.4g} {unit}"
    return f"{_words(key)} {value:.4g}" if isinstance(value, float) else f"{_words(key)} {value}"


def _words(key: str) -> str:
    return key.replace("_", " ")


def _bytes(value: float) -> str:
    if value >= LEAST_SHORT:
        for size, unit in PREFIXES:
            if value >= size:
                return f"{value / size:.4g} {unit}"
    return f"{value:g} bytes" if isinstance(value, float) else f"{value} bytes"
