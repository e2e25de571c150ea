"""What the engine tells while it works. The command line shows it; the engine prints nothing itself."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """One phase at a time. Called from the main greenlet and from node greenlets, never in parallel threads."""

    def phase(self, title: str, nodes: int) -> None:
        """A phase over so many nodes starts."""

    def node(self, name: str, word: str) -> None:
        """One node is through with the phase; `word` says how (ok, unreachable, changed, failed)."""

    def line(self, text: str) -> None:
        """Something worth a line of its own, such as what a write said."""

    def done(self) -> None:
        """The phase is over."""


class Silent:
    """No progress at all."""

    def phase(self, title: str, nodes: int) -> None: ...

    def node(self, name: str, word: str) -> None: ...

    def line(self, text: str) -> None: ...

    def done(self) -> None: ...
