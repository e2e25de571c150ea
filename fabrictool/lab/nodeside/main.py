"""One call of a stand-in, with what no tool should care about: the state under its lock, the misbehaviours that are the same for
every tool, the command log (for measurements from outside), and sysfs after a change. No fault leaves a trace in a tool's output
that says so."""

from __future__ import annotations

import copy
import importlib
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

from fabrictool.lab.nodeside import live, sysfs
from fabrictool.lab.nodeside.state import Node, edit, load
from fabrictool.lab.nodeside.tool import Answer, Call, Caller

HANG_S = 3600.0

TRACEBACK = """Traceback (most recent call last):
  File "/usr/bin/{tool}", line 33, in <module>
    sys.exit(main())
             ^^^^^^
TypeError: can only concatenate str (not "OSError") to str
"""


def log(shared: Path, tool: str, argv: list[str], answer: Answer, changed: bool, started: float, root: bool) -> None:
    """One JSON line a call, appended in one write."""
    line = {"time": started, "tool": tool, "argv": argv, "rc": answer.rc, "changed": changed, "root": root}
    fd = os.open(shared / "commands.log", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, (json.dumps(line) + "\n").encode())
    finally:
        os.close(fd)


def module_of(tool: str) -> ModuleType:
    return importlib.import_module(f"fabrictool.lab.nodeside.standins.{tool.replace('-', '_')}")


def answer_of(tool: str, argv: list[str], node: Node, mode: str, root: bool, caller: Caller | None = None) -> Answer:
    """What the stand-in says, bent by the generic modes; changes that must not stay are undone in `node`."""
    if mode == "traceback":
        return Answer(1, "", TRACEBACK.format(tool=tool))
    if mode == "empty":
        return Answer(0)
    before = copy.deepcopy(node)
    answer = module_of(tool).run(Call(tool, argv, node, root, mode, live.read, caller or Caller()))
    if not isinstance(answer, Answer):
        raise TypeError(f"stand-in {tool} gave {type(answer).__name__}")
    if mode == "lies":
        for key, value in vars(before).items():
            setattr(node, key, value)
    if mode == "applies-but-traceback":
        return Answer(1, answer.out, TRACEBACK.format(tool=tool))
    return answer


def call(tool: str, argv: list[str], shared: Path, root: bool, caller: Caller | None = None) -> Answer:
    """The answer to one call. `shared`: the node's folder with state.json."""
    caller = caller or Caller()
    started = time.time()
    if argv == ["--lab"]:
        return Answer(0, f"{tool}: stand-in of a fabrictool lab\n")
    state = shared / "state.json"
    node = load(state)
    mode = node.tools.get(tool, "ok")
    changed = False
    if mode == "hangs":
        caller.gone(HANG_S)
        answer = Answer(1)
    # A tool that starts other tools (systemctl) must not hold the lock: it says LOCKED = False and saves what it changes itself.
    elif root and getattr(module_of(tool), "LOCKED", True):
        with edit(state) as node:
            sysfs.adopt(shared / "sys", node)
            before = asdict(node)
            answer = answer_of(tool, argv, node, mode, root, caller)
            changed = asdict(node) != before
        if changed:
            sysfs.refresh(shared, live.read)
    else:
        answer = answer_of(tool, argv, node, mode, root, caller)
    log(shared, tool, argv, answer, changed, started, root)
    return answer
