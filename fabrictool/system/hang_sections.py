"""What the probe `hang` reads of a node and of each process that the spec's consumers run there.

A section that is about one process is called `hang.NAME.PID` while it is collected, and `hang.NAME[PID]` in the recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from fabrictool.snapshot import Section, Snapshot, script
from fabrictool.snapshot.consumers import Consumer

MOMENT = "now"
MOST = 64  # processes of a node: eight GPUs with a few helpers each
OF_PROCESS = ("stack", "env", "hosts", "log", "sockets")
_NAME = re.compile(rf"(hang\.(?:{'|'.join(OF_PROCESS)}))\.(\d{{1,10}})")

CLOCK = Section("hang.clock", "printf 'clock %s\\n' \"$(date +%s)\"; echo end")
SOCKETS = Section("hang.sockets", "ss -Htanp && echo end", root=True, max_bytes=1_048_576)
GPUS = Section("hang.gpu", "nvidia-smi --query-gpu=index,uuid,utilization.gpu --format=csv,noheader && echo apps && "
               "nvidia-smi --query-compute-apps=pid,gpu_uuid --format=csv,noheader && echo end", timeout_s=20)
# Twice, three seconds apart: does RDMA data move?
MOVING = Section("hang.moving", """look() {
  for f in /sys/class/infiniband/*/ports/1/counters/port_xmit_data; do [ -r "$f" ] && printf '%s %s\\n' "$f" "$(cat "$f" 2>/dev/null)"; done
}
look; echo later; sleep 3; look; echo end""")


@dataclass(frozen=True, slots=True)
class Target:
    """A process to look at. `box`, `unit`: the container or the service it belongs to; "-" = none."""

    pid: int
    label: str
    box: str = "-"
    unit: str = "-"


def targets(named: Iterable[Consumer]) -> tuple[Target, ...]:
    """The processes of consumers that count as ranks, each once."""
    out: dict[int, Target] = {}
    for consumer in named:
        box = consumer.container.id if consumer.container else "-"
        unit = consumer.label.removeprefix("systemd:") if consumer.container is None else "-"
        for process in consumer.ranks:
            out.setdefault(process.pid, Target(process.pid, consumer.label, box, unit))
    return tuple(out.values())


def of_node(found: Iterable[Target]) -> tuple[Section, ...]:
    """Everything that is read of one node."""
    out = [CLOCK, MOVING, SOCKETS, GPUS]
    for t in tuple(found)[:MOST]:
        out.append(script(f"hang.stack.{t.pid}", "stack.sh", root=True, timeout_s=70, max_bytes=1_048_576, args=(str(t.pid),)))
        out += [script(f"hang.{what}.{t.pid}", "rankview.sh", root=True, timeout_s=20, max_bytes=262_144,
                       args=(what, str(t.pid), t.box, t.unit)) for what in OF_PROCESS[1:]]
    return tuple(out)


def by_process(snap: Snapshot) -> Snapshot:
    """Names as the recording has them."""
    named = {(f"{m[1]}[{m[2]}]" if (m := _NAME.fullmatch(key)) else key): got for key, got in snap.sections.items()}
    return replace(snap, sections=named)
