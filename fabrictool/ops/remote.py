"""One command on one host, through pyinfra's connector, with root where the spec says how."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS, pop_global_arguments
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.host import Host

from fabrictool.model import Reason, Unreadable
from fabrictool.spec.schema import Sudo

KILL_AFTER_S = 5  # grace between TERM and KILL on the node


@dataclass(frozen=True, slots=True)
class Ran:
    """`ok`: exit status 0: evidence, never a verdict. `lost`: the connection or its time limit ended it, so there is no status."""

    ok: bool
    out: str
    err: str
    lost: Unreadable | None = None

    @property
    def tail(self) -> str:
        lines = [ln.strip() for ln in (self.err or self.out).splitlines() if ln.strip()]
        return lines[-1][:200] if lines else ""


def connector_arguments(host: Host) -> dict[str, Any]:
    """pyinfra's global arguments in force here (sudo, password, environment), reduced to what the connector takes."""
    known, _ = pop_global_arguments(host.state, host, dict(host.current_op_global_arguments or {}))
    return {k: v for k, v in known.items() if k in CONNECTOR_ARGUMENT_KEYS}


def root_words(host: Host, sudo: Sudo) -> tuple[str, ...]:
    """What stands before a command that needs root. `sudo -n` never asks: a prompt would hang or crash the run."""
    if sudo is Sudo.ROOT or connector_arguments(host).get("_sudo"):
        return ()
    return ("sudo", "-n")


def limited(argv: tuple[str, ...], timeout_s: int, root: tuple[str, ...] = ()) -> tuple[str, ...]:
    """`argv` under a time limit on the node itself: pyinfra's own limit leaves the remote process running."""
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return (*root, "env", path, "LC_ALL=C", "timeout", "-k", str(KILL_AFTER_S), str(timeout_s), *argv)


def run(host: Host, argv: tuple[str, ...], timeout_s: int, stdin: str | None = None) -> Ran:
    """Run and wait, at most `timeout_s` seconds plus a grace. Never raises."""
    args = {**connector_arguments(host), "_timeout": timeout_s + 2 * KILL_AFTER_S}
    if stdin is not None:
        args["_stdin"] = stdin
    try:
        ok, out = host.run_shell_command(StringCommand(*(QuoteString(a) for a in argv)), **args)
        return Ran(ok, out.stdout, out.stderr)
    except TimeoutError:
        return Ran(False, "", "", Unreadable(Reason.TIMEOUT, f"no answer within {timeout_s} s: {shlex.join(argv)[:80]}"))
    except Exception as error:  # noqa: BLE001 - EOFError and SSHException escape pyinfra and would end the run for all hosts
        why = f"{type(error).__name__}: {error}".rstrip(": ")
        return Ran(False, "", "", Unreadable(Reason.UNREACHABLE, f"connection lost: {why}"[:200]))
