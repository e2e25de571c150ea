"""What is looked at on each node before traffic is made: busy GPUs, free memory, tools, the consumer. Collected by the engine as the
moment `look` of a recording; read by it, and again by judges of the recording. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fabrictool.env.targets import DOCKER_ENV
from fabrictool.model import Observed, Reason, Unreadable, Value
from fabrictool.snapshot import Section, Snapshot, script, sysfs
from fabrictool.snapshot.consumers import RANKS
from fabrictool.spec import CollectiveSpec, NodeSpec

MOMENT = "look"
APPS, MEMORY, TOOLS, ENV, LIFESPAN = "run.apps", "run.memory", "run.tools", "run.env", "run.lifespan"
# Programs of a desktop, which nvidia-smi lists among compute processes where they draw by CUDA or Vulkan.
DESKTOP = frozenset({"Xorg", "Xwayland", "gnome-shell", "gnome-remote-desktop-daemon", "gnome-session-binary", "mutter", "kwin_x11",
                     "kwin_wayland", "plasmashell", "sway", "weston", "sddm-greeter", "gdm-session-worker", "xfwm4", "cinnamon"})
PROBE = "nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader && echo end"


@dataclass(frozen=True, slots=True)
class App:
    """A compute process on a GPU. `name`: its program's path, as nvidia-smi has it."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class Tools:
    """`missing`: what is needed and not here. `silent`: what is here, and gave no answer: tool -> why. `options`: option letters of
    all_reduce_perf; `mpi`: the whole first line of `mpirun --version`; `port`: a TCP port that is free."""

    missing: tuple[str, ...] = ()
    program: str = ""
    options: str = ""
    mpirun: str = ""
    mpi: str = ""
    srun: str = ""
    pmi: str = ""
    gres: bool = False
    python: str = ""
    image: str = ""
    port: int = 0
    silent: Mapping[str, Unreadable] = field(default_factory=dict)

    @property
    def open_mpi(self) -> int:
        """The first number of Open MPI's version; 0 where this is another MPI."""
        m = re.search(r"\(Open MPI\) ([0-9]{1,3})\.", self.mpi)
        return int(m[1]) if m else 0


@dataclass(frozen=True, slots=True)
class Environment:
    """`source`: the consumer that was found, "" for none. `names`: of its variables; `conf`: of those in NCCL's configuration files."""

    source: str
    names: frozenset[str]
    conf: frozenset[str]


def consumers(want: NodeSpec, spec: CollectiveSpec) -> tuple[str, ...]:
    """Whose environment ranks get, in this order: what the spec names for it, or else the first of env.consumers and the env-file that
    containers are started with."""
    if spec.consumer is not None:
        return (spec.consumer,)
    return (*want.env.consumers[:1], *((f"file:{DOCKER_ENV}",) if "docker_env" in want.env.write else ()))


def sections(want: NodeSpec, spec: CollectiveSpec) -> tuple[Section, ...]:
    """What is collected. Nothing is started on a GPU. Docker is asked for the image as root, as root starts the container: a login user who
    is not of the group docker may not ask, and would be told that there is no image."""
    python = spec.python or (f"{spec.venv}/bin/python" if spec.venv else "")
    tools = (spec.launcher, spec.program or "", python, spec.runtime.image if spec.runtime else "")
    return (
        Section(APPS, PROBE, timeout_s=20),
        Section(MEMORY, "grep -E '^(MemTotal|MemAvailable):' /proc/meminfo"),
        script(TOOLS, "launchtools.sh", root=spec.launcher == "direct" and bool(spec.runtime), timeout_s=60, args=tools),
        script(ENV, "rankenv.sh", root=True, timeout_s=40, args=("-", RANKS.pattern, *consumers(want, spec))),
        sysfs(LIFESPAN, "/sys/class/infiniband/*/ports/1/hw_counters/lifespan"),
    )


def apps(snap: Snapshot) -> tuple[App, ...] | Unreadable:
    """Compute processes, without those of a desktop."""
    lines = _whole(snap, APPS)
    if isinstance(lines, Unreadable):
        return lines
    found = []
    for line in lines:
        pid, _, name = (part.strip() for part in line.partition(","))
        if not line.strip():
            continue
        if not re.fullmatch(r"[0-9]{1,10}", pid):
            return Unreadable(Reason.GARBLED, f"{APPS}: {line[:80]!r}")
        if name.rpartition("/")[2] not in DESKTOP:
            found.append(App(int(pid), name))
    return tuple(found)


def available_bytes(snap: Snapshot) -> Observed[int]:
    """MemAvailable."""
    text = snap.text(MEMORY)
    if not isinstance(text, Value):
        return text
    m = re.search(r"^MemAvailable:\s{1,20}([0-9]{1,15}) kB\s*$", text.value, re.M)
    return Value(int(m[1]) * 1024) if m else Unreadable(Reason.GARBLED, f"{MEMORY}: no MemAvailable")


def tools(snap: Snapshot) -> Tools | Unreadable:
    lines = _whole(snap, TOOLS)
    if isinstance(lines, Unreadable):
        return lines
    words = [line.partition(" ")[::2] for line in lines]
    first = dict(reversed(words))
    mpirun, _, mpi = first.get("mpirun", "").partition(" ")
    port = first.get("port", "")
    return Tools(
        tuple(rest for key, rest in words if key == "missing"), first.get("program", ""), first.get("options", ""), mpirun, mpi,
        first.get("srun", ""), first.get("pmi", ""), "gres" in first, first.get("python", "").partition(" ")[0], first.get("image", ""),
        int(port) if re.fullmatch(r"[0-9]{1,5}", port) else 0, dict(_silent(rest) for key, rest in words if key == "silent"))


def _silent(rest: str) -> tuple[str, Unreadable]:
    """`TOOL STATUS MESSAGE`."""
    name, status, message = (*rest.split(" ", 2), "", "")[:3]
    if status == "124":
        return name, Unreadable(Reason.TIMEOUT, f"{name} did not answer in time")
    return name, Unreadable(Reason.FAILED, f"{name} gave no answer: exit status {status}: {message or 'no message'}")


def environment(snap: Snapshot) -> Environment | Unreadable:
    lines = _whole(snap, ENV)
    if isinstance(lines, Unreadable):
        return lines
    if not lines or not lines[0].startswith("source "):
        return Unreadable(Reason.GARBLED, f"{ENV}: {'; '.join(lines)[:80]!r}")
    source = lines[0].removeprefix("source ")
    return Environment("" if source == "-" else source, frozenset(ln[2:] for ln in lines if ln.startswith("n ")),
                       frozenset(ln[5:] for ln in lines if ln.startswith("conf ")))


def lifespan_s(snap: Snapshot) -> float:
    """How long the driver may answer with old counters, in seconds; 0 where no device says so. The kernel keeps it in milliseconds
    (hw_counters/lifespan)."""
    files = snap.sysfs(LIFESPAN)
    if isinstance(files, Unreadable):
        return 0.0
    return max((int(v) / 1000 for v in files.values() if re.fullmatch(r"[0-9]{1,7}", v.strip())), default=0.0)


def _whole(snap: Snapshot, name: str) -> list[str] | Unreadable:
    """The lines before a section's end marker."""
    text = snap.text(name)
    if not isinstance(text, Value):
        return text
    lines = text.value.replace("\r\n", "\n").split("\n")
    return lines[:-2] if lines[-2:] == ["end", ""] else Unreadable(Reason.CUT, f"{name}: the end is missing")
