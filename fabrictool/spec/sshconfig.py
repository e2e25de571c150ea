"""`ssh: {jump: ...}`: pyinfra takes a jump host only from an ssh_config, so one is generated.

It holds the jump, strict host keys for the jump hosts, and then includes the admin's own configuration. The chain is written out
in full: pyinfra ignores a ProxyJump of a jump host (its issue 1963) and sends the alias of a second hop, not its HostName.
"""

from __future__ import annotations

import glob
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fabrictool.spec.problems import Mark, SpecError, error

MAX_HOPS = 8
MAX_INCLUDES = 16  # levels, as in OpenSSH
SETTING = re.compile(r"\s*(\w+)(?:\s*=\s*|\s+)(.+?)\s*")
KEPT = ("identityfile", "certificatefile", "identityagent", "connecttimeout")  # what pyinfra reads for a jump host
Settings = Mapping[str, str | list[str]]
Lookup = Callable[[str], Settings]


@dataclass(frozen=True, slots=True)
class Hop:
    """One jump host, as resolved by the admin's own configuration."""

    host: str
    user: str = ""
    port: int = 22
    kept: tuple[tuple[str, str], ...] = ()
    known_hosts: tuple[str, ...] = ("~/.ssh/known_hosts",)

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        return f"{user}{self.host}" if ":" in self.host else f"{user}{self.host}:{self.port}"


class JumpError(Exception):
    """A jump that pyinfra could not follow; `why` says what to change."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def own_config(config: str | None) -> Path:
    """The admin's own ssh_config: `ssh: {config: ...}`, else ~/.ssh/config."""
    return Path(config) if config else Path(os.path.expanduser("~/.ssh/config"))


@lru_cache(maxsize=8)
def lookup_in(path: Path) -> Lookup:
    """Settings for a host by an ssh_config and what it includes; nothing is set when there is no such file.

    Raises:
        JumpError: it cannot be read.
    """
    from paramiko import ConfigParseError, SSHConfig, SSHException  # lazily: gevent has to patch the process first

    try:
        text = "\n".join(_lines(path, 0)) if path.is_file() else ""
        config = SSHConfig.from_text(text)
    except (OSError, UnicodeDecodeError, ConfigParseError, ValueError) as e:
        raise JumpError(f"{path} cannot be read: {e}") from None

    def lookup(host: str) -> Settings:
        try:
            return dict(config.lookup(host))
        except (SSHException, ImportError, KeyError, ValueError, OSError) as e:  # Match exec, canonical names
            raise JumpError(f"{path} cannot be used for {host}: {type(e).__name__}: {e}") from None

    return lookup


def _lines(path: Path, depth: int) -> Iterator[str]:
    if depth > MAX_INCLUDES:
        raise ValueError("Include is nested too deeply")
    for line in path.read_text(encoding="utf-8").splitlines():
        found = SETTING.fullmatch(line)
        if not found or found[1].lower() != "include":
            yield line
            continue
        for pattern in found[2].split():
            where = os.path.expanduser(pattern.strip('"'))
            for name in sorted(glob.glob(where if os.path.isabs(where) else str(path.parent / where))):
                if os.path.isfile(name):
                    yield from _lines(Path(name), depth + 1)


def chain(jump: str, lookup: Lookup, depth: int = 0) -> tuple[Hop, ...]:
    """All hops of `user@host:port,...` in the order in which they are passed, with the jumps that the hops themselves need.

    Raises:
        JumpError: a loop, or a hop that is reached by a ProxyCommand.
    """
    hops: list[Hop] = []
    for n, word in enumerate(w.strip() for w in jump.split(",")):
        user, _, place = word.rpartition("@")
        host, port = (place, "") if place.count(":") != 1 else tuple(place.split(":"))
        found = lookup(host)
        if depth > MAX_HOPS or len(hops) > MAX_HOPS:
            raise JumpError(f"the jump through {host} never ends (more than {MAX_HOPS} hops)")
        if found.get("proxycommand") and not hops and n == 0:
            raise JumpError(f"{host} is reached by a ProxyCommand, which pyinfra ignores for a jump host: use ProxyJump")
        if found.get("proxyjump") and n == 0 and str(found["proxyjump"]).lower() != "none":
            hops += chain(str(found["proxyjump"]), lookup, depth + 1)
        hops.append(_hop(host, user, port, found))
    return tuple(hops)


def _hop(host: str, user: str, port: str, found: Settings) -> Hop:
    kept = [(k, v) for k in KEPT for v in _list(found.get(k))]
    known = tuple(" ".join(_list(found.get("userknownhostsfile"))).split()) or ("~/.ssh/known_hosts",)
    number = port or str(found.get("port", 22))
    if not number.isdecimal() or not 0 < int(number) < 65536:
        raise JumpError(f"the port {number} of {host} cannot be used")
    return Hop(str(found.get("hostname", host)), user or str(found.get("user", "")), int(number), tuple(kept), known)


def _list(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else value


def render(hops: Sequence[Hop], own: Path, known_hosts: str | None, key: str | None) -> str:
    """The generated ssh_config. First value wins in such a file, so ours stand before the included ones."""
    lines = ["# Generated by fabrictool from the spec's `ssh: {jump: ...}`. Changes here are overwritten."]
    for hop in dict.fromkeys(hops):
        known = " ".join(dict.fromkeys([*([known_hosts] if known_hosts else []), *hop.known_hosts]))
        lines += [f"Host {hop.host}", "    StrictHostKeyChecking yes", f"    UserKnownHostsFile {known}"]
        lines += [f"    Port {hop.port}"] if hop.port != 22 else []
        lines += [f"    {name} {value}" for name, value in hop.kept]
        lines += [f"    identityfile {key}"] if key else []
    lines += [f"Host * {' '.join('!' + h for h in dict.fromkeys(h.host for h in hops))}",
              f"    ProxyJump {','.join(map(str, hops))}"]
    lines += ["Host *", f"Include {glob.escape(str(own))}"] if own.exists() else []
    return "\n".join(lines) + "\n"


def cache_folder() -> Path:
    """Where generated files lie: per user, by the XDG base directory rules."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache")) / "fabrictool" / "ssh"


def store(text: str, digest: str) -> Path:
    """Write the file, mode 600 in a folder of mode 700. Its name follows from its content: readers keep files by name.

    Raises:
        SpecError: it cannot be written.
    """
    folder = cache_folder()
    path = folder / f"config-{digest[:16]}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.is_file() and not path.is_symlink() and path.read_text(encoding="utf-8") == text:
            return path
        handle, temp = tempfile.mkstemp(prefix=".config-", dir=folder)  # mode 600
        with os.fdopen(handle, "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(temp, path)
    except (OSError, UnicodeDecodeError) as e:
        raise SpecError([error(Mark(str(folder)), f"the ssh_config for the jump host cannot be written: {e}",
                               do="make the folder writable, or set XDG_CACHE_HOME")]) from None
    return path
