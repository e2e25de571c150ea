"""Where reports go: formats, files, stdout. One small renderer a format, imported when it is asked for."""

from __future__ import annotations

import difflib
import io
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TextIO

from fabrictool.exits import Exit, Stop
from fabrictool.model import Report
from fabrictool.report.exit import Mode, exit_of
from fabrictool.report.show import Show

__all__ = ["FORMATS", "Mode", "Output", "Show", "emit", "exit_of", "parse_outputs", "write_atomically"]

FORMATS = ("text", "json")  # fabrictool.report.<format>.render(report, stream, show)


@dataclass(frozen=True, slots=True)
class Output:
    """A format and where it goes; None = stdout."""

    format: str
    path: Path | None = None


def _parse(word: str) -> Output:
    name, colon, file = word.partition(":")
    if name not in FORMATS:
        near = difflib.get_close_matches(name, FORMATS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(FORMATS)}"
        raise Stop(Exit.USAGE, f"-o {word}: no format {name!r}; {hint}")
    if not colon:
        return Output(name)
    path = Path(file)
    if not file or path.is_dir():
        what = "a folder" if file else "nothing"
        raise Stop(Exit.USAGE, f"-o {word}: {what} after the colon; name a file, as in {name}:report.{name}")
    if path.exists() and not path.is_file():  # the rename would replace it: /dev/null would be a file for the whole machine
        raise Stop(Exit.USAGE, f"-o {word}: {path} is a device or a pipe, no plain file: redirect stdout there, or name a file")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise Stop(Exit.USAGE, f"-o {word}: cannot write into {path.parent}: make the folder first, or name another")
    return Output(name, path)


def parse_outputs(words: Sequence[str]) -> tuple[Output, ...]:
    """`-o` words, refused before anything runs. Exactly one output has stdout: text, if none was named for it."""
    outputs = [_parse(w) for w in words]
    on_stdout = [o.format for o in outputs if o.path is None]
    if len(on_stdout) > 1:
        raise Stop(Exit.USAGE, f"-o: {' and '.join(on_stdout)} would both go to stdout; give all but one a file, as in "
                               f"{on_stdout[-1]}:report.{on_stdout[-1]}")
    named = [os.path.abspath(o.path) for o in outputs if o.path is not None]
    if len(set(named)) < len(named):
        raise Stop(Exit.USAGE, "-o: two reports would go into one file")
    return tuple(outputs) if on_stdout else (*outputs, Output("text"))


def write_atomically(path: Path, text: str) -> None:
    """Beside the file, flushed to disk, then renamed: readers see the old or the new file, never half of one."""
    handle, temp = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temp, 0o666 & ~umask)  # mkstemp makes 0600, which a textfile collector or web server could not read
        os.replace(temp, path)
    except BaseException:
        Path(temp).unlink(missing_ok=True)
        raise


def _to_stdout(render: Callable[[Report, TextIO, Show], None], report: Report, show: Show) -> None:
    try:
        render(report, sys.stdout, show)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head`: the verdict still is the exit status
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def emit(report: Report, outputs: Sequence[Output], show: Show) -> Exit:
    """Write the report everywhere it goes, files first, and return its exit status."""
    for output in sorted(outputs, key=lambda o: o.path is None):
        render = import_module(f"fabrictool.report.{output.format}").render
        if output.path is None:
            _to_stdout(render, report, show)
            continue
        text = io.StringIO()
        render(report, text, show)
        try:
            write_atomically(output.path, text.getvalue())
        except OSError as error:
            raise Stop(Exit.FAILED, f"-o {output.format}:{output.path}: {error.strerror or error}") from error
    return exit_of(report, show.mode, show.strict)
