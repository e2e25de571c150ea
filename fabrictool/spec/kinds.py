"""Kinds of values of the spec that more than one of its types has."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from fabrictool.values import parse_size

STRICT = ConfigDict(extra="forbid", strict=True)


def _size(value: object) -> object:
    return parse_size(value) if isinstance(value, str) else value


SizeText = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)? ?([KMGT]iB|[kMGT]?B)$")]  # what a person writes; JSON has bytes
Size = Annotated[int, Field(ge=0), BeforeValidator(_size, json_schema_input_type=SizeText)]
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}")
Priority = Annotated[int, Field(ge=0, le=7)]
DscpValue = Annotated[int, Field(ge=0, le=63)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:@-]*$", max_length=128)]
Mtu = Annotated[int, Field(ge=576, le=65535)]
