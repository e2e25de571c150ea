"""Starting the forwarder, and telling it how a node's port is to behave."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from fabrictool.lab.errors import LabError
from fabrictool.lab.paths import Layout
from fabrictool.lab.plan import LabPlan
from fabrictool.lab.record import Process, process

START_S = 30
ANSWER_S = 10


def start(layout: Layout, plan: LabPlan, ports: dict[str, int]) -> tuple[Process, dict[str, int]]:
    """The forwarder's process and the port of each node. `ports` are used again where they are given."""
    layout.forward_socket.unlink(missing_ok=True)
    doors = {n.name: [n.management.address.partition("/")[0], ports.get(n.name, 0)] for n in plan.nodes}
    job = layout.root / "forward.json"
    job.write_text(json.dumps({"doors": doors, "control": str(layout.netns("control")), "socket": layout.forward_socket.name}))
    script = Path(__file__).with_name("forward.py")
    with open(layout.forward_log, "ab") as log:
        child = subprocess.Popen([sys.executable, "-I", "-S", str(script), str(job)], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=log, text=True, cwd="/", close_fds=True)
    assert child.stdout is not None
    line = child.stdout.readline()
    child.stdout.close()
    child.wait(START_S)
    if not line:
        raise LabError(f"the forwarder did not start: {layout.forward_log.read_text()[-500:].strip()}")
    said = json.loads(line)
    return process(said["pid"]), said["ports"]


def set_mode(layout: Layout, node: str, mode: str) -> None:
    """LabError if the forwarder does not answer or does not know the mode."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(ANSWER_S)
        folder = os.open(layout.root, os.O_RDONLY)
        try:
            line.connect(f"/proc/self/fd/{folder}/{layout.forward_socket.name}")  # the path itself may be too long for an address
            line.sendall(json.dumps({"node": node, "mode": mode}).encode() + b"\n")
            answer = line.makefile().readline().strip()
        except OSError as error:
            raise LabError(f"the lab's forwarder does not answer ({error}): take the lab down and up again") from error
        finally:
            os.close(folder)
    if answer != "ok":
        raise LabError(f"forwarder: {answer}")
