"""Lines on a terminal or in a file: width, colour, escapes and ASCII are settled here, once."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fabrictool.report.clean import clean, excerpt

_ASCII = str.maketrans({"✓": "+", "✗": "x", "…": "...", "·": "-", "—": "-"})
LIMIT = 2000  # characters of one text: more is a dump, which -o json and the bundle hold


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let the caller see it: rich would end the process with status 1, which here means that a check failed."""
        raise  # the BrokenPipeError that is being handled


class Page:
    """Writes to `stream`: its own width (80 when it is no terminal), colour as rich decides by terminal, NO_COLOR, FORCE_COLOR
    and TERM. Signs become ASCII, and all else `\\u` escapes, where the stream's encoding cannot take them."""

    def __init__(self, stream: TextIO) -> None:
        self._console = _Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True, legacy_windows=False)
        encoding = getattr(stream, "encoding", None) or "utf-8"
        try:
            "✓…".encode(encoding)
            self._encoding = None if encoding.lower().replace("-", "") == "utf8" else encoding
        except (UnicodeEncodeError, LookupError):
            self._encoding = "ascii"
        self.width = max(40, self._console.width) if stream.isatty() else 80  # files and pipes look the same everywhere

    def _fit(self, text: str) -> str:
        if self._encoding is None:
            return text
        return text.translate(_ASCII).encode(self._encoding, "backslashreplace").decode(self._encoding)

    def line(self, *parts: str | tuple[str, str]) -> None:
        """One line as it is; a part may carry a style. Never broken by us: commands are there to be copied."""
        text = Text()
        for part in parts:
            words, style = part if isinstance(part, tuple) else (part, "")
            text.append(self._fit(clean(words)), style)
        text.rstrip()
        self._console.print(text, soft_wrap=True)

    def field(self, label: str, text: str, indent: int = 6, style: str = "") -> None:
        """`label  text`, wrapped under itself at the page's width."""
        head = f"{' ' * indent}{label:<5} "
        room = max(20, self.width - len(head))
        rows = textwrap.wrap(self._fit(clean(excerpt(text, LIMIT))), room, break_on_hyphens=False) or [""]
        self.line((head, "dim"), (rows[0], style))
        for row in rows[1:]:
            self.line(" " * len(head), (row, style))

    def prose(self, text: str, indent: int = 0, style: str = "") -> None:
        """A paragraph, wrapped at the page's width."""
        pad = " " * indent
        for row in textwrap.wrap(self._fit(clean(excerpt(text, LIMIT))), self.width - indent, break_on_hyphens=False):
            self.line(pad, (row, style))

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], *, indent: int = 0, whole: bool = False) -> None:
        """Columns under `head`, cells wrapped at the page's width. `whole`: never wrapped, for a row is one line to search for."""
        made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for at, word in enumerate(head):
            made.add_column(Text(self._fit(clean(word))), no_wrap=whole or at == 0)
        for row in rows:
            made.add_row(*(Text(self._fit(clean(cell))) for cell in row))
        options = self._console.options.update(width=10**4 if whole else self.width - indent)
        for segments in self._console.render_lines(made, options, pad=False):
            line = Text(" " * indent)
            for part in segments:
                line.append(part.text, part.style)
            line.rstrip()
            self._console.print(line, soft_wrap=True)
