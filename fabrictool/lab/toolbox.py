"""Which tools a node has: where each lies on a real node, and the few lines of sh that stand there instead."""

from __future__ import annotations

import sys
from pathlib import Path

from fabrictool.lab.paths import INSIDE

# Where the tool lies on Ubuntu and Debian nodes. Every name here that a profile does not have is absent from its nodes, also
# where this machine has the real one.
PLACES = {
    "mlnx_qos": "/usr/bin", "dcb": "/usr/sbin", "rdma": "/usr/bin", "ethtool": "/usr/sbin", "ibv_devinfo": "/usr/bin",
    "nvidia-smi": "/usr/bin", "systemctl": "/usr/bin", "udevadm": "/usr/bin", "docker": "/usr/bin", "nmcli": "/usr/bin",
    "systemd-run": "/usr/bin", "netplan": "/usr/sbin", "networkctl": "/usr/bin", "lldptool": "/usr/sbin", "show_gids": "/usr/sbin",
    "ibdev2netdev": "/usr/bin", "mlxconfig": "/usr/bin", "ibv_devices": "/usr/bin", "ibstat": "/usr/sbin",
    "journalctl": "/usr/bin", "dmesg": "/usr/bin", "lspci": "/usr/bin",  # real ones would tell of this machine
}
# Programs that run for themselves, as the user that starts them: not answered by the node's tool server.
PROGRAMS = {"all_reduce_perf": "/usr/local/bin", "all_reduce_perf_mpi": "/usr/local/bin"}
FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")  # root's PATH


def python_inside() -> str:
    """The interpreter as a node sees it."""
    return f"{INSIDE}/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"


def wrapper(tool: str) -> str:
    """What stands in the tool's place."""
    main = f"{INSIDE}/lib/fabrictool/lab/nodeside/client.py"
    return (f"#!/bin/sh\n# Stand-in of a fabrictool lab: not the real {tool}.\n"
            f"LD_LIBRARY_PATH={INSIDE}/python/lib exec {python_inside()} -I -S {main} {tool} \"$@\"\n")


def program(name: str) -> str:
    """What stands in the place of a program of its own."""
    main = f"{INSIDE}/lib/fabrictool/lab/nodeside/nccl/main.py"
    return (f"#!/bin/sh\n# Stand-in of a fabrictool lab: not the real {name}.\n"
            f"LD_LIBRARY_PATH={INSIDE}/python/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} "
            f"exec {python_inside()} -I -S {main} \"$0\" \"$@\"\n")


IP = f"""#!/bin/sh
# The real ip, run for a node of a fabrictool lab. Only its detailed JSON is changed: a cable of the lab is a veth, and that is left
# out, so that the node's interfaces look like the NICs that they stand for. With --lab it says so.
details= json=
for word do
  case $word in
    --lab) echo 'ip: the real one, in a fabrictool lab (its JSON does not say that interfaces are veth)'; exit 0 ;;
    -d|-details|--details) details=1 ;;
    -j|-json|--json) json=1 ;;
    -*) ;;
    *) break ;;
  esac
done
[ -n "$details$json" ] && [ -n "$details" ] && [ -n "$json" ] || exec {INSIDE}/lib/bin/ip "$@"
out=$({INSIDE}/lib/bin/ip "$@")
rc=$?
printf '%s\\n' "$out" | sed -e 's/"linkinfo":{{"info_kind":"veth"}},//g' -e 's/"link_netnsid":[0-9]*,//g'
exit "$rc"
"""


def exists(tool: str) -> bool:
    """Whether this version of the lab has a stand-in for it."""
    return Path(__file__).with_name("nodeside").joinpath("standins", f"{tool.replace('-', '_')}.py").exists()


def present(tools: frozenset[str]) -> dict[str, str]:
    """Path -> wrapper, for the tools of a profile that have a stand-in, and for the programs that every node has."""
    found = {f"{PLACES[t]}/{t}": wrapper(t) for t in sorted(tools) if exists(t)}
    return found | {f"{folder}/{name}": program(name) for name, folder in PROGRAMS.items()}


def absent(tools: frozenset[str]) -> list[str]:
    """Every path at which a known tool must not be found."""
    here = set(present(tools))
    return [f"{folder}/{t}" for t in sorted(PLACES | PROGRAMS) for folder in FOLDERS if f"{folder}/{t}" not in here]
