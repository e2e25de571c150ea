"""Live progress on stderr: a moving line on a terminal, one line per finished phase elsewhere."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from fabrictool.report.clean import clean
from fabrictool.report.fold import node_names


class Shown:
    """The engine's progress, shown to a person. `words`: what nodes said at the end of the phase, counted."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._live = self._console.is_terminal and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"
        self._bar: Progress | None = None
        self._title = ""
        self._words: Counter[str] = Counter()
        self._odd: dict[str, list[str]] = {}

    def phase(self, title: str, nodes: int) -> None:
        self._title, self._words, self._odd = title, Counter(), {}
        if self._live:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._bar.start()
            self._bar.add_task(title, total=nodes)

    def node(self, name: str, word: str) -> None:
        self._words[word] += 1
        if word != "ok":
            self._odd.setdefault(word, []).append(name)
        if self._bar:
            self._bar.advance(self._bar.task_ids[0])

    def line(self, text: str) -> None:
        self._console.print(f"  {clean(text)}", markup=False, soft_wrap=True)

    def done(self) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None
        odd = "; ".join(f"{word}: {node_names(names)}" for word, names in sorted(self._odd.items()))
        total = sum(self._words.values())
        text = f"{self._title}: {self._words['ok']} of {total} ok" + (f"; {odd}" if odd else "")
        self._console.print(text, markup=False, soft_wrap=True)


def interactive() -> bool:
    return sys.stdin.isatty()


def wrote(bundle: Path, holds: str) -> None:
    """That a bundle was written, where and how large: on stderr, because stdout may hold a document."""
    from fabrictool.counters import size_text

    click.echo(f"bundle written: {bundle} ({size_text(bundle.stat().st_size)}): {holds}", err=True)
