"""Run a piece of Python against pyinfra in a process of its own: gevent's patch must not touch the test process."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

PREAMBLE = """
from gevent import monkey; monkey.patch_all()
import json, logging, os, sys, time
os.environ["PYINFRA_PROGRESS"] = "off"
import gevent, pyinfra
from pyinfra import context
from pyinfra.api import Config, Inventory, State
from pyinfra.api.command import FunctionCommand, QuoteString, StringCommand
from pyinfra.api.operation import operation
from pyinfra.api.operations import run_ops
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_config, ctx_host, ctx_inventory, ctx_state, host

def fleet(*names, **data):
    inventory = Inventory((list(names), {"fake_delay": 0, **data}))
    state = State(inventory, Config(PARALLEL=len(names)))
    state.set_stage(StateStage.Connect)
    for h in inventory:
        h.connect(raise_exceptions=True)
        state.activate_host(h)
    ctx_state.set(state); ctx_inventory.set(inventory); ctx_config.set(state.config.copy())
    return state, {h.name: h for h in inventory}

def prepare(state, deploy):
    from pyinfra_cli.util import load_func
    pyinfra.is_cli = True
    state.set_stage(StateStage.Prepare)
    load_func(state, deploy)

def execute(state):
    state.set_stage(StateStage.Execute)
    try:
        run_ops(state)
        return ""
    except Exception as e:
        return f"{type(e).__name__}: {e}"

def say(**found):
    print("FOUND " + json.dumps(found))
"""


def found(code: str, timeout_s: float = 60) -> dict[str, Any]:
    """What `say(...)` printed at the end of `code`."""
    program = PREAMBLE + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout_s, check=False)
    lines = [ln for ln in done.stdout.splitlines() if ln.startswith("FOUND ")]
    assert lines, f"rc {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    out = json.loads(lines[-1][6:])
    assert isinstance(out, dict)
    return out
