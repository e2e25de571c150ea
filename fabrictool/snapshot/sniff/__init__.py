"""What is this pasted text? From any file or terminal output to pieces that one tool each printed. Pure."""

from __future__ import annotations

from fabrictool.snapshot.sniff.clean import lines
from fabrictool.snapshot.sniff.model import LOOK, Input, Kind, Line, Piece, Stream
from fabrictool.snapshot.sniff.prefix import unwrapped
from fabrictool.snapshot.sniff.prompt import device
from fabrictool.snapshot.sniff.split import pieces
from fabrictool.snapshot.sniff.unpack import MAX_BYTES, Refused, decode

__all__ = ["LOOK", "MAX_BYTES", "Input", "Kind", "Line", "Piece", "Refused", "Stream", "decode", "device", "sniff"]


def sniff(given: Input) -> tuple[Piece, ...]:
    """The pieces of one input, in the order of their first lines. Never raises; text that is not known is a piece of its own."""
    found = [piece for stream in unwrapped(given.name, lines(given.text)) for piece in pieces(stream)]
    return tuple(sorted(found, key=lambda p: p.first_line))
