"""Plain YAML scalars, read by the core schema of YAML 1.2 and nothing older.

YAML 1.1 (PyYAML's own rules) reads the PCI address `41:00.0` as 2460.0 and `off` as false. Where the two versions would read
different numbers the value is refused: other tools may read the same file.
"""

from __future__ import annotations

import re

from fabrictool.spec.tree import Plain

NULL = frozenset({"", "~", "null", "Null", "NULL"})
TRUE = frozenset({"true", "True", "TRUE"})
FALSE = frozenset({"false", "False", "FALSE"})
OLD_BOOL = frozenset({"yes", "no", "on", "off", "y", "n"})  # YAML 1.1 only: text here
INT = re.compile(r"[-+]?[0-9]+")
OCTAL = re.compile(r"0o[0-7]+")
HEX = re.compile(r"0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
SEXAGESIMAL = re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?")  # YAML 1.1: base 60
DIGITS = 18  # fits in 64 bits; no field here needs more


class ScalarError(ValueError):
    """An unquoted value that is read differently by different YAML versions, or is out of range. `do` says what to write."""

    def __init__(self, what: str, why: str, do: str) -> None:
        super().__init__(what)
        self.what, self.why, self.do = what, why, do


def read(text: str) -> Plain:
    """The value of an unquoted scalar.

    Raises:
        ScalarError: the text means different things in YAML 1.1 and 1.2, or the number is too large.
    """
    if text in NULL:
        return None
    if text in TRUE or text in FALSE:
        return text in TRUE
    if SEXAGESIMAL.fullmatch(text):
        raise ScalarError(f"unquoted {text[:40]} can be read as a number",
                          "older YAML reads digits with colons in base 60 (41:00.0 is 2460.0)", f'quote it: "{text[:40]}"')
    if LEADING_ZERO.fullmatch(text):
        digits = text.lstrip("+-").lstrip("0")[:40] or "0"
        raise ScalarError(f"unquoted {text[:40]} starts with a zero", "older YAML reads it as octal, YAML 1.2 as decimal",
                          f'write {digits} for the number, or quote it for text: "{text[:40]}"')
    if INT.fullmatch(text) or OCTAL.fullmatch(text) or HEX.fullmatch(text):
        if len(text) > DIGITS:
            raise ScalarError("a number with too many digits", "", "quote it if it is text")
        return int(text, 10 if INT.fullmatch(text) else 0)
    if FLOAT.fullmatch(text):
        if len(text) > 64 or abs(value := float(text)) == float("inf"):
            raise ScalarError("a number out of range", "", "quote it if it is text")
        return value
    return text
