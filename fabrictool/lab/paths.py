"""Where a lab lives: one run folder that holds all of it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from fabrictool.lab.errors import LabError

INSIDE = "/opt/fabrictool-lab"  # what a node sees of its lab: lib/ python/ node/
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,23}")
# The run folder appears in overlay mount options, where these would need escapes that older kernels do not know.
_AWKWARD = re.compile(r"[,:\\\s]")


def name_problem(name: str) -> str:
    """Why no lab can have this name; "" if one can."""
    return "" if _NAME.fullmatch(name) else f"lab name {name!r}: use 1 to 24 of a-z 0-9 _ -, beginning with a letter or digit"


def base() -> Path:
    """The folder that holds all labs of this machine: it has to survive the process, not the machine."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") if os.geteuid() else None
    return Path(runtime or "/run") / "fabrictool-lab"


@dataclass(frozen=True)
class Layout:
    """The files of one lab."""

    root: Path

    @classmethod
    def of(cls, name: str, folder: Path | None = None) -> Layout:
        """LabError for a name or folder that cannot be used."""
        if wrong := name_problem(name):
            raise LabError(wrong)
        root = (folder or base()).resolve() / name
        if _AWKWARD.search(str(root)):
            raise LabError(f"run folder {str(root)!r}: blanks, commas, colons and backslashes cannot stand in an overlay mount; "
                           "choose another with --dir")
        return cls(root)

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def lock(self) -> Path:
        return self.root.parent / f".{self.name}.lock"

    @property
    def record(self) -> Path:
        """Plan, ports and processes, as JSON. Written first: a lab without it was never begun."""
        return self.root / "lab.json"

    @property
    def lib(self) -> Path:
        """A copy of the node-side code, bound read-only into every node."""
        return self.root / "lib"

    @property
    def keys(self) -> Path:
        return self.root / "keys"

    @property
    def user_key(self) -> Path:
        return self.keys / "id_ed25519"

    @property
    def cluster_key(self) -> Path:
        """With which nodes reach each other."""
        return self.keys / "cluster_ed25519"

    @property
    def forward_socket(self) -> Path:
        return self.root / "forward.sock"

    @property
    def forward_log(self) -> Path:
        return self.root / "forward.log"

    @property
    def nodes(self) -> Path:
        return self.root / "nodes"

    def netns(self, name: str) -> Path:
        """The file that pins a network namespace: a node's name, `switch` or `control`."""
        return self.root / "netns" / name

    def node(self, name: str) -> NodeLayout:
        return NodeLayout(self.nodes / name)


@dataclass(frozen=True)
class NodeLayout:
    """The files of one node. `shared` is bound into the node (its own state, logs and fake sysfs); the rest is not."""

    root: Path

    @property
    def disk(self) -> Path:
        """A tmpfs: everything the node writes to its disk."""
        return self.root / "disk"

    @property
    def tree(self) -> Path:
        """Where the node's root is put together; the mounts exist in the node's own mount namespace only."""
        return self.root / "tree"

    @property
    def shared(self) -> Path:
        return self.root / "shared"

    @property
    def state(self) -> Path:
        return self.shared / "state.json"

    @property
    def commands(self) -> Path:
        return self.shared / "commands.log"

    @property
    def sshd_log(self) -> Path:
        return self.shared / "sshd.log"

    @property
    def sysfs(self) -> Path:
        return self.shared / "sys"

    @property
    def boot(self) -> Path:
        """Written by the node's PID 1 when the boot is complete."""
        return self.shared / "boot.json"

    @property
    def host_key(self) -> Path:
        return self.root / "ssh_host_ed25519_key"

    @property
    def init_plan(self) -> Path:
        return self.root / "init.json"

    @property
    def init_log(self) -> Path:
        return self.root / "init.log"
