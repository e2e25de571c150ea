"""Connections to nodes through pyinfra's SSH connector, one paramiko transport per node."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import gevent
import pyinfra
from pyinfra.api.config import Config
from pyinfra.api.connect import disconnect_all
from pyinfra.api.exceptions import ConnectError
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.state import State, StateStage

from fabrictool.engine.progress import Progress
from fabrictool.model import Code

CONNECT_S = 10  # TCP and banner
LOGIN_S = 25  # the whole of connecting, with authentication and retries
KEEPALIVE_S = 15
RETRIES = 3  # a bastion's MaxStartups drops connections at random when many start at once
HANGS = "log in by hand and see where it hangs (PAM, DNS, home directory)"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a node could not be logged in to."""

    code: Code
    why: str
    remedy: str


@dataclass
class Connection:
    """An open fleet. `hosts` are those that are connected; `refused` the others, with the reason."""

    state: State
    hosts: dict[str, Host]
    refused: dict[str, Refused] = field(default_factory=dict)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        close(self)


def classify(message: str) -> Refused:
    """paramiko's and pyinfra's words for why a connection failed -> what it means and what to do."""
    text = ANSI.sub("", message).strip()
    low = text.lower()
    if "host key error" in low or "does not match" in low:
        return Refused(Code.HOST_KEY_CHANGED, "the node's SSH host key is not the one in known_hosts",
                       "if the node was re-installed, replace its line in known_hosts; if not, someone may be in between")
    if "no host key" in low or "not found in known_hosts" in low or "unknown host key" in low:
        return Refused(Code.HOST_KEY_UNKNOWN, "the node's SSH host key is not in known_hosts",
                       "verify the key out of band, then add it (ssh-keyscan shows it)")
    if "authentication timeout" in low:  # the server took the key exchange and then said nothing: no refusal
        return Refused(Code.UNREACHABLE, "the login got no answer after the key exchange", HANGS)
    if "authentication" in low or "no existing session" in low or "not a valid" in low or "private key" in low:
        return Refused(Code.LOGIN_REFUSED, text[:200], "try `ssh` to the node by hand with the same user and key")
    return Refused(Code.UNREACHABLE, text[:200] or "no answer", "check that `ssh` to the node works from here")


def _data(data: Mapping[str, Any], password: str | None) -> dict[str, Any]:
    extra: dict[str, Any] = {
        "ssh_connect_retries": RETRIES,
        "ssh_paramiko_connect_kwargs": {"banner_timeout": CONNECT_S, "auth_timeout": CONNECT_S, "channel_timeout": CONNECT_S},
    }
    if password is not None:
        extra |= {"_sudo": True, "_sudo_password": password, "_use_sudo_password": True}
    return {**extra, **data}


def connect(nodes: Iterable[tuple[str, Mapping[str, Any]]], progress: Progress, password: str | None = None) -> Connection:
    """Log in to every node side by side. Takes at most about LOGIN_S seconds, however many nodes are dead. Never raises for a node."""
    named = [(name, _data(data, password)) for name, data in nodes]
    inventory = Inventory((named, {}))  # type: ignore[no-untyped-call]  # pyinfra leaves it untyped
    state = State(inventory, Config(PARALLEL=max(1, len(named)), CONNECT_TIMEOUT=CONNECT_S))  # type: ignore[no-untyped-call]
    state.set_stage(StateStage.Connect)
    logging.getLogger("pyinfra").addHandler(_Lines(progress))
    logging.getLogger("pyinfra").propagate = False
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    logging.getLogger("paramiko").propagate = False
    conn = Connection(state, {})
    progress.phase("connect", len(named))
    jobs = {gevent.spawn(_login, host): host for host in inventory}
    try:
        for job in gevent.iwait(list(jobs)):
            host, why = jobs[job], job.get()
            if why is None:
                state.activate_host(host)
                conn.hosts[host.name] = host
            else:
                conn.refused[host.name] = why
            progress.node(host.name, "ok" if why is None else str(why.code))
    except KeyboardInterrupt:
        gevent.killall(list(jobs), block=False)
        for host in jobs.values():
            if host.name not in conn.hosts and host.name not in conn.refused:
                conn.refused[host.name] = Refused(Code.INTERRUPTED, "interrupted while connecting", "run again")
        progress.done()
        raise Interrupted(conn) from None
    progress.done()
    return conn


class Interrupted(Exception):
    """Ctrl-C: carries what is open, so that what is known can still be reported."""

    def __init__(self, conn: Connection) -> None:
        super().__init__("interrupted")
        self.conn = conn


def _login(host: Host) -> Refused | None:
    try:
        with gevent.Timeout(LOGIN_S, TimeoutError):
            host.connect(show_errors=False, raise_exceptions=True)
    except TimeoutError:
        return Refused(Code.UNREACHABLE, f"no login within {LOGIN_S} s", HANGS)
    except ConnectError as error:
        return classify(str(error))
    except Exception as error:  # noqa: BLE001 - whatever one node does must not end the run for the others
        return classify(f"{type(error).__name__}: {error}")
    _tune(host)
    return None


def _tune(host: Host) -> None:
    """paramiko leaves Nagle on: about 40 ms for each exec. Keepalive notices a dead peer. A jump's socket is a Channel: left alone."""
    client = getattr(host.connector, "client", None)
    transport = client.get_transport() if client else None
    if transport is None:
        return
    transport.set_keepalive(KEEPALIVE_S)
    if isinstance(transport.sock, socket.socket):
        transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def reconnect(host: Host) -> Refused | None:
    """A new connection in place of the old one: proves that the node can still be reached after a link flapped."""
    client = getattr(host.connector, "client", None)
    host.disconnect()
    if client:
        client.close()
    return _login(host)


def close(conn: Connection) -> None:
    """pyinfra's disconnect closes nothing: close the transports too."""
    disconnect_all(conn.state)
    for host in conn.state.inventory:
        client = getattr(host.connector, "client", None)
        if client:
            client.close()
    pyinfra.is_cli = False


class _Lines(logging.Handler):
    """pyinfra's log, reduced to what went wrong, as lines of our progress."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.WARNING)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self._progress.line(ANSI.sub("", record.getMessage()).strip())
