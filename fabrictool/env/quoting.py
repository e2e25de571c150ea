"""How each kind of file spells `NAME=value`, written and read. The rules are those of the programs that read the files:

- nccl.conf: split at the first `=`, nothing trimmed, no quotes, no `export`; `#` only in column 0 and only since NCCL 2.26.5.
- docker env-file: quotes are literal, nothing expands, blanks before the name are dropped.
- profile.d: POSIX shell. systemd `Environment=`: the whole assignment in quotes, C escapes, `%` starts a specifier, `$` is literal.
- pam_env's /etc/environment and systemd's EnvironmentFile: one pair of quotes around the value is taken off.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from enum import StrEnum


class Style(StrEnum):
    """The names are those that the scan on the node prints."""

    CONF = "conf"
    DOCKER = "docker"
    SHELL = "shell"
    PAM = "pam"
    ENVFILE = "envfile"
    UNIT = "unit"
    PROCESS = "process"  # a running process: no spelling at all


CONF_VALUE_BYTES = 1023  # NCCL's buffer for a value (nccl.conf reader)
DOCKER_LINE_BYTES = 65_536  # Go's bufio.MaxScanTokenSize, with which docker reads the file


@dataclass(frozen=True, slots=True)
class Item:
    """One assignment. `name` as the reader takes it (blanks included), `key` what was meant; `value` None = only a shell knows."""

    line: int
    name: str
    value: str | None
    raw: str

    @property
    def key(self) -> str:
        return re.sub(r"^\s*(export\s+)?|\s+$", "", self.name)


def unspeakable(style: Style, name: str, value: str) -> str:
    """Why `value` cannot be written in this style; "" if it can. One rule for all: no control characters, valid Unicode."""
    if re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", value):
        return "it holds a control character or a byte that is not text"
    size = len(value.encode())
    if style is Style.CONF and size > CONF_VALUE_BYTES:
        return f"NCCL reads at most {CONF_VALUE_BYTES} bytes of a value from its file, this has {size}"
    if style is Style.DOCKER and len(name) + size + 2 > DOCKER_LINE_BYTES:
        return f"docker reads lines of less than {DOCKER_LINE_BYTES} bytes, this has {len(name) + size + 2}"
    return ""


def spell(style: Style, name: str, value: str) -> str:
    """One line without its newline. `unspeakable` must have said ""."""
    if style is Style.SHELL:
        return f"export {name}={shlex.quote(value)}"
    if style is Style.UNIT:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
        return f'Environment="{name}={escaped}"'
    return f"{name}={value}"


def items(style: Style, text: str) -> tuple[Item, ...]:
    """The assignments of a whole file of one-a-line style, as its reader takes them."""
    out = []
    for number, line in enumerate(text.split("\n"), 1):
        item = parse(style, number, line)
        if item is not None:
            out.append(item)
    return tuple(out)


def parse(style: Style, number: int, raw: str) -> Item | None:
    """One assignment as it stands in the file; None for a line that is none."""
    if style in (Style.SHELL, Style.UNIT):
        return _word(style, number, raw)
    if style is Style.DOCKER:
        raw = raw.lstrip(" \t").removesuffix("\r")
    if raw.startswith("#") or "=" not in raw:
        return None
    name, _, value = raw.partition("=")
    if style in (Style.PAM, Style.ENVFILE):
        value = value.strip(" \t\r")
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        name = name.strip(" \t").removeprefix("export ").strip(" \t")
    return Item(number, name, value, raw)


def _word(style: Style, number: int, raw: str) -> Item | None:
    text = _unit_word(raw) if style is Style.UNIT else _shell_word(raw)
    if text is None:
        name = re.match(r"[\"']?([A-Za-z_][A-Za-z0-9_.-]*)=", raw)
        return Item(number, name[1], None, raw) if name else None
    name_, eq, value = text.partition("=")
    return Item(number, name_, value, raw) if eq else None


def _shell_word(raw: str) -> str | None:
    """The word's value; None where it depends on the shell (`$`, backquote outside single quotes) or is not one word."""
    if re.search(r"[$`]", re.sub(r"'[^']*'", "", raw)):
        return None
    try:
        words = shlex.split(raw)
    except ValueError:
        return None
    return words[0] if len(words) == 1 else None


_C_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "s": " ", "\\": "\\", '"': '"', "'": "'"}


def _unit_word(raw: str) -> str | None:
    """systemd.syntax(7), "Quoting"; specifiers other than %% are known only to systemd."""
    out, quote, at = [], "", 0
    while at < len(raw):
        ch = raw[at]
        at += 1
        if ch == "\\":
            follow = raw[at:at + 1]
            if follow not in _C_ESCAPES or not follow:
                return None
            out.append(_C_ESCAPES[follow])
            at += 1
        elif quote and ch == quote:
            quote = ""
        elif not quote and ch in "\"'":
            quote = ch
        elif ch == "%":
            if raw[at:at + 1] != "%":
                return None
            out.append("%")
            at += 1
        elif not quote and ch in " \t":
            return None
        else:
            out.append(ch)
    return None if quote else "".join(out)
