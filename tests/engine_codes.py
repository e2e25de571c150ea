"""Codes that only connecting and applying raise: made here without a network, from the words that paramiko and the lock script use.

Run as a program; prints the codes as JSON. tests/contract/test_ssh.py holds the words against the real paramiko.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from fabrictool.model import Code

ROOT = Path(__file__).resolve().parent.parent
CODES = (Code.HOST_KEY_CHANGED, Code.HOST_KEY_UNKNOWN, Code.LOGIN_REFUSED, Code.INTERRUPTED, Code.APPLY_STOPPED, Code.APPLY_FAILED,
         Code.LOCKED)
SAID = {
    "SSH host key error (Host key for server '[127.0.0.1]:2201' does not match: got 'AAAAC3Nz', expected 'AAAAC3Nz')":
        Code.HOST_KEY_CHANGED,
    "SSH error (No host key for [127.0.0.1]:2201 found in known_hosts)": Code.HOST_KEY_UNKNOWN,
    "Authentication error (Authentication failed.)": Code.LOGIN_REFUSED,
}


def _looked(login: Callable[..., Any]) -> set[Code]:
    """The codes that stand against reaching the nodes of the example when each login ends like this."""
    from fabrictool.cli.look import look
    from fabrictool.engine import connect

    connect._login = login
    with ExitStack() as stack:
        got = look(stack, ROOT / "inventories" / "spark4.yaml", "", None, False)
        found = got.findings()
    assert set(found) == set(got.wants)
    return {f.code for each in found.values() for f in each if f.bad}


def main() -> None:
    import fabrictool.engine  # noqa: F401 - first, because it patches what the others import
    from fabrictool.engine import apply, connect
    from fabrictool.engine.progress import Silent

    def interrupted(host: object) -> NoReturn:
        raise KeyboardInterrupt

    out: set[Code] = set()
    for text, code in SAID.items():
        found = _looked(lambda host, said=text: connect.classify(said))
        assert found == {code}, (text, found)
        out |= found
    assert _looked(interrupted) == {Code.INTERRUPTED}
    out.add(Code.INTERRUPTED)

    assert apply.no_lock("spark01", "locked by run 20261129T200000Z-1", False).code is Code.LOCKED
    assert apply.no_lock("spark01", "mkdir: no space left on device", False).code is Code.APPLY_FAILED
    held = apply.Applied(stopped="stopped after spark01")
    run = apply._Run(None, {}, {"spark02": ()}, held, Silent(), True)  # type: ignore[arg-type]  # asks no connection once stopped
    run.wave("apply", ["spark02"])
    assert [(p.code, p.subject.nodes) for p in held.problems] == [(Code.APPLY_STOPPED, ("spark02",))]
    out |= {Code.LOCKED, Code.APPLY_FAILED, Code.APPLY_STOPPED}
    print(json.dumps(sorted(out)))


if __name__ == "__main__":
    main()
