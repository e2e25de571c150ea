"""nccl-tests' standard output, of every build since 2018, with whatever else a launcher or NCCL itself wrote into it.

Every text gives an answer: what is not understood is left out, and a result row that is not understood is a fragment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fabrictool.collective.builder import Builder, Stage, head_of, is_prompt
from fabrictool.collective.lines import Piece, pieces
from fabrictool.collective.model import TestRun
from fabrictool.collective.phrases import phrase


def parse(text: str) -> TestRun:
    """The run of a text that should hold one. Of several the last, which then has `others`; of none one without lines."""
    runs = _runs(text)
    return replace(runs[-1], others=len(runs) - 1) if runs else TestRun()


def parse_all(text: str) -> tuple[TestRun, ...]:
    """Every run that a text holds, in the order in which they begin. Between them their `lines` leave nothing out, except where
    several ran side by side (processes that were started without MPI). A launcher's complaint alone is none: it could be anybody's."""
    return tuple(run for run in _runs(text) if run.of_nccl_tests)


def _runs(text: str) -> list[TestRun]:
    reader = _Reader()
    for piece in pieces(text):
        reader.take(piece)
    return list(_ranges([b.done() for b in reader.runs], len(text.removesuffix("\n").split("\n"))))


def _ranges(runs: list[TestRun], last: int) -> Iterator[TestRun]:
    """Lines that nobody claims belong to the run before them, those before the first run to the first."""
    for i, run in enumerate(runs):
        first, end = (1 if i == 0 else run.lines[0]), run.lines[1]
        following = runs[i + 1].lines[0] if i + 1 < len(runs) else last + 1
        yield replace(run, lines=(first, max(end, following - 1) if end < following else end))


class _Reader:
    """Gives each piece to the run that it belongs to. A run begins with the first line of its head, or where a head is missing with
    whatever comes first after the end of another."""

    def __init__(self) -> None:
        self.runs: list[Builder] = []
        self.of_stream: dict[str, Builder] = {}

    def take(self, piece: Piece) -> None:
        text = piece.text.strip()
        if not text:
            return
        stage = head_of(text)
        if stage is not None:
            self._headed(piece, stage).say(piece)
            return
        if is_prompt(text):
            self._headed(piece, Stage.PROMPT).touch(piece.line)
            return
        error = phrase(text, piece.line)
        if error and error[1]:
            self._headed(piece, Stage.USAGE).error(error[0])
            return
        run = self._current(piece.stream)
        if run is not None and (run.status is not None or (run.closed and run.would_begin(piece))):
            run = None
        if error:
            (run or self._open(piece)).error(error[0])
        elif run is not None:
            run.take(piece)
        else:
            fresh = Builder()
            if fresh.take(piece) and not fresh.unfinished:
                self._add(fresh, piece)

    def _current(self, stream: str) -> Builder | None:
        return self.of_stream.get(stream) or (self.runs[-1] if self.runs else None)

    def _headed(self, piece: Piece, stage: Stage) -> Builder:
        run = self._current(piece.stream)
        if run is not None and run.stream != piece.stream and run.stream and piece.stream and run.stage >= stage:
            run = None  # another rank with a head of its own: it was started without MPI
        if run is None or not run.may_go_on(stage):
            run = self._open(piece)
        run.stage = max(run.stage, stage)
        return run

    def _open(self, piece: Piece) -> Builder:
        return self._add(Builder(), piece)

    def _add(self, run: Builder, piece: Piece) -> Builder:
        run.stream = piece.stream
        run.touch(piece.line)
        self.runs.append(run)
        if not piece.stream or piece.stream in self.of_stream:
            self.of_stream.clear()  # another launch: what its other ranks print belongs to it
        if piece.stream:
            self.of_stream[piece.stream] = run
        return run
