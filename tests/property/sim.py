"""A simulated node: the lab's state model and stand-ins in this process, files in a folder, and a tiny kernel (links, addresses).

The stand-ins are the real ones (fabrictool/lab/nodeside), called as the node's tool server calls them; only where they look for files
and for links is redirected. What no stand-in does (ip, sysfs, files, lock, the scripts of node/) is modelled here and in show.py.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from fabrictool.lab.nodeside import main
from fabrictool.lab.nodeside.state import Node
from fabrictool.lab.nodeside.tool import Answer, Call, Link
from fabrictool.snapshot import Captured
from tests.property.root import Root

STANDINS = frozenset({"mlnx_qos", "dcb", "ethtool", "rdma", "ibv_devinfo", "nvidia-smi", "nmcli", "netplan", "networkctl", "systemctl"})
OF_REGISTERS = frozenset({"mlnx_qos", "dcb", "ethtool", "rdma", "ibv_devinfo", "nvidia-smi"})
GENERIC = ("lies", "applies-but-traceback", "traceback", "empty")
GONE = Answer(127, "", "sh: 1: not found\n")
LATE = Answer(124)


@dataclass
class Nic:
    """One link as the kernel has it."""

    name: str
    mac: str
    addresses: tuple[str, ...]
    index: int
    mtu: int = 1500
    up: bool = True
    carrier: bool = True
    changes: int = 1
    low: int = 68
    high: int = 9978

    @property
    def operstate(self) -> str:
        return "UP" if self.up and self.carrier else "DOWN"


@dataclass
class Step:
    """One command of the tool under test, as it ran on the node."""

    argv: tuple[str, ...]
    rc: int


@dataclass
class Sim:
    """`tools`: state.tools. `qos_ecn`: the ECN switches of sysfs. `ssh`: SSH_CONNECTION. `peers`: all names of the site."""

    state: Node
    root: Root
    nics: dict[str, Nic]
    management: str
    ssh: str
    ecn: dict[str, bool] = field(default_factory=dict)  # sysfs path -> on
    ran: list[Step] = field(default_factory=list)
    backups: dict[str, tuple[str, int] | None] = field(default_factory=dict)
    locked_by: str = ""
    reads: int = 0  # remote execs that took a snapshot
    kept: dict[tuple[str, ...], Answer] = field(default_factory=dict)  # what tools said since the last change
    shown: dict[str, tuple[bool, Captured]] = field(default_factory=dict)  # section -> (of registers and links alone, answer)
    tree: tuple[dict[str, str], dict[str, str]] | None = None  # sysfs

    # -- reading -------------------------------------------------------------------------------------------------------

    def links(self) -> Mapping[str, Link]:
        return {n.name: Link(n.name, n.mac, n.mtu, n.up, n.operstate, n.carrier, n.addresses, n.low, n.high) for n in self.nics.values()}

    def ask(self, *argv: str, root: bool = False) -> Answer:
        """A tool that only shows something. The same question of an unchanged node is answered once."""
        key = (*argv, str(root))
        if key not in self.kept:
            self.kept[key] = self._tool(argv, root)
        return self.kept[key]

    def _tool(self, argv: tuple[str, ...], root: bool) -> Answer:
        tool, mode = argv[0], self.state.tools.get(argv[0], "ok")
        if mode in ("missing", "hangs"):
            return GONE if mode == "missing" else LATE
        if mode in GENERIC:
            return main.answer_of(tool, list(argv[1:]), self.state, mode, root)
        module = importlib.import_module(f"fabrictool.lab.nodeside.standins.{tool.replace('-', '_')}")
        answer = module.run(Call(tool, list(argv[1:]), self.state, root, mode, self.links))
        assert isinstance(answer, Answer)
        return answer

    # -- writing -------------------------------------------------------------------------------------------------------

    def registers(self) -> dict[str, object]:
        """Everything that is set and that a tool can show. Counters are not in it; of the DSCP map only the kernel's table: what the
        firmware keeps under trust pcp shows nowhere."""
        out: dict[str, object] = {f"mtu {n.name}": n.mtu for n in self.nics.values()}
        for f in self.state.functions.values():
            table = f.dscp_app or [[d, p] for d, p in enumerate(f.dscp_map)]
            out[f"qos {f.interface}"] = (
                f.trust, sorted(map(tuple, table)) if f.trust == "dscp" else [], f.pfc, f.prio_tc, f.tsa, f.tc_bw, f.prio_buffer,
                f.buffer_size, f.cable_len, f.global_pause, f.global_pause if f.pause_tx is None else f.pause_tx, f.dcbx_host)
        return out | dict(self.ecn)

    def flaps(self) -> dict[str, int]:
        return {f.interface: f.flaps for f in self.state.functions.values()} | {f"{n.name} carrier": n.changes for n in self.nics.values()}

    def execute(self, words: tuple[str, ...]) -> tuple[int, str]:
        """(exit status, stderr) of a command under its time limit, as ops builds it."""
        assert words[:3] == ("env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"), words
        assert words[3:5] == ("timeout", "-k"), words
        assert (words[5] + words[6]).isdigit(), words
        argv = words[7:]
        answer = self._run(argv)
        if argv[3:4] != ("fabrictool-lock",):
            self.forget(argv[0] == "systemctl" or argv[3:4] in (("fabrictool-write",), ("fabrictool-restore",)))
            self.ran.append(Step(argv if argv[0] != "sh" else argv[3:], answer.rc))
        return answer.rc, answer.err

    def forget(self, files_only: bool = False) -> None:
        """What was printed is true no longer. Files alone leave registers and links as they are; nothing else changes files alone."""
        self.kept = {k: v for k, v in self.kept.items() if files_only and k[0] in OF_REGISTERS}
        self.shown = {k: v for k, v in self.shown.items() if files_only and v[0]}
        if not files_only:
            self.tree = None

    def _run(self, argv: tuple[str, ...]) -> Answer:
        match argv:
            case ("ip", "link", "set", "dev", name, "mtu", mtu):
                return self._set_mtu(name, int(mtu))
            case ("sh", "-c", _, "fabrictool-write", path, mode, before, _, content):
                return self._write(path, int(mode, 8), before, base64.b64decode(content, validate=True))
            case ("sh", "-c", _, "fabrictool-restore", path, _):
                return self._restore(path)
            case ("sh", "-c", _, "fabrictool-lock", verb, run, _):
                self.locked_by = run if verb == "take" else ""
                return Answer()
            case ("sh", "-c", 'printf "%s\\n" "$1" >"$2"', "sh", "0" | "1" as on, path) if path in self.ecn:
                self.ecn[path] = on == "1"
                return Answer()
            case ("sh", "-c", text, "sh", *words) if "nmcli" in text:
                for n, word in enumerate(words, 1):
                    text = text.replace(f'"${n}"', word)
                return [self._run(tuple(part.split())) for part in text.split(";")][-1]
        assert argv[0] in STANDINS, f"not a command of this node: {argv}"
        return self._tool(argv, True)

    def _set_mtu(self, name: str, mtu: int) -> Answer:
        nic = self.nics.get(name)
        if nic is None:
            return Answer(1, "", f'Cannot find device "{name}"\n')
        if not nic.low <= mtu <= nic.high:
            return Answer(2, "", f"Error: mtu {'greater' if mtu > nic.high else 'less'} than device limit.\n")
        nic.mtu = mtu
        return Answer()

    def _write(self, path: str, mode: int, before: str, content: bytes) -> Answer:
        old = self.root.read(path)
        now = "" if old is None else hashlib.sha256(old.encode("utf-8", "surrogateescape")).hexdigest()
        if now != before:
            return Answer(75, "", f"{path} changed since it was read\n")
        self.backups.setdefault(path, None if old is None else (old, self.root.mode(path)))
        self.root.write(path, content.decode("utf-8", "surrogateescape"), mode)
        return Answer()

    def _restore(self, path: str) -> Answer:
        if path not in self.backups:
            return Answer(1, "", f"no backup of {path}\n")
        old = self.backups[path]
        if old is None:
            self.root.at(path).unlink(missing_ok=True)
        else:
            self.root.write(path, *old)
        return Answer()

    def _subprocess(self, argv: list[str], **_: object) -> types.SimpleNamespace:
        """What NetworkManager itself does to a link."""
        assert (argv[:3], argv[4]) == (["ip", "link", "set"], "mtu"), argv
        done = self._set_mtu(argv[3], int(argv[5]))
        return types.SimpleNamespace(returncode=done.rc, stderr=done.err)


PLACES = ("/etc/", "/run/", "/lib/", "/usr/lib/", "/usr/local/")


def _moved(value: object, top: str) -> object:
    """A constant that names places of the node, below `top`; None for any other."""
    if isinstance(value, Path) and str(value).startswith(PLACES):
        return Path(f"{top}{value}")
    if isinstance(value, tuple) and value and all(isinstance(v, str) and v.startswith(PLACES) for v in value):
        return tuple(f"{top}{v}" for v in value)
    return None


@contextmanager
def at_home(sim: Sim) -> Iterator[Sim]:
    """While it lasts, the stand-ins' files and links are those of `sim`, and NetworkManager's `ip` is its kernel."""
    names = [f"standins.{t.replace('-', '_')}" for t in STANDINS]
    for name in names:
        importlib.import_module(f"fabrictool.lab.nodeside.{name}")
    head = "fabrictool.lab.nodeside."
    modules = [m for n, m in list(sys.modules.items()) if n.startswith((f"{head}standins.", f"{head}netconf", f"{head}units"))]
    with ExitStack() as stack:
        for module in modules:
            for name, value in list(vars(module).items()):
                place = _moved(value, str(sim.root.top)) if name.isupper() else None
                if place is not None:
                    stack.enter_context(mock.patch.object(module, name, place))
            if hasattr(module, "subprocess"):
                stack.enter_context(mock.patch.object(module, "subprocess", types.SimpleNamespace(run=sim._subprocess)))
        stack.enter_context(mock.patch.object(main, "live", types.SimpleNamespace(read=sim.links)))
        yield sim
