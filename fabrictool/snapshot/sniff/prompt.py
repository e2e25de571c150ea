"""Shell prompts and what stands after them, and what a file's name tells of its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fabrictool.snapshot.sniff.model import LOOK, Kind

_USER = r"(?:\([\w.-]{1,40}\) )?"
_PROMPTS = (
    re.compile(_USER + r"\[?(?:[a-z_][\w.-]{0,31}@)(?P<host>[A-Za-z0-9][\w.-]{0,62})(?:[: ][^$#%>\n]{0,120})?\]?[$#%>]"
                       r"(?: (?P<command>.*)|$)"),
    re.compile(_USER + r"(?P<host>[A-Za-z0-9][\w.-]{0,62}):[~/][^$#\n]{0,120} ?[$#] (?P<command>.*)"),
    re.compile(r"[$❯➜] (?P<command>\S.*)"),
)
# After a bare `#` (root's prompt, a comment, a line of nccl-tests) or `+` (set -x) only these count.
_TOOLS = re.compile(
    r"[#+]{1,3} (?P<command>(?:sudo |timeout \S+ |(?:docker|kubectl|podman) exec \S+ )?(?:/\S*/)?"
    r"(?:(?:mlnx_qos|ethtool|ss|journalctl|gdb|ucx_info|ping|ib_(?:write|read|send|atomic)_\w+|eu-stack|nvidia-smi) -.*"
    r"|dcb (?:-\w+ )*(?:pfc|app|ets|buffer|dcbx|maxrate) .*|ethtool \S+"
    r"|(?:ibv_devinfo|ibv_devices|ibstat|show_gids|ibdev2netdev|printenv|env|dmesg|ibv_devinfo -.*|ibstat \S+|dmesg [-|].*)"
    r"|rdma (?:-\w+ )*(?:link|dev|res|resource|stat|statistic|system)\b.*"
    r"|ip (?:-\w+ )*(?:a|addr|address|l|link|r|route)(?: (?:show|dev) ?.*)?"
    r"|(?:cat|head|tail)(?: -\S+)* /\S+.*|py-spy dump.*|pstack \d+))")
_HAS = re.compile(r"[$#%>+❯➜]")
_RC = re.compile(r"\[?(?:rc|exit(?: status| code)?)\s*[=:]\s*(-?\d{1,3})\]?")
STDERR = "[stderr]"

_WORD = re.compile(r"(?:^|[\s;&|('\"])(?:\S*/)?(?P<tool>mlnx_qos|dcb|ibv_devinfo|ibstat|show_gids|ibdev2netdev|rdma|ip|ethtool|ss|netstat"
                   r"|cat|head|tail|less|more|ping|dmesg|journalctl|py-spy|gdb|pstack|eu-stack|ucx_info|ib_(?:write|read|send|atomic)_\w+|env"
                   r"|printenv|\w+_perf(?:_mpi)?)(?=\s|$|;)(?P<rest>[^;|&]*)")
_SIMPLE: dict[str, Kind] = {
    "mlnx_qos": Kind.MLNX_QOS, "dcb": Kind.DCB, "ibv_devinfo": Kind.IBV_DEVINFO, "ibstat": Kind.IBSTAT, "show_gids": Kind.SHOW_GIDS,
    "ibdev2netdev": Kind.IBDEV2NETDEV, "ss": Kind.SOCKETS, "netstat": Kind.SOCKETS, "dmesg": Kind.KERNEL, "py-spy": Kind.PY_SPY,
    "gdb": Kind.GDB, "pstack": Kind.GDB, "eu-stack": Kind.GDB, "ucx_info": Kind.UCX_INFO, "env": Kind.ENV, "printenv": Kind.ENV,
    "ping": Kind.PING,
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """`command` is "" for an empty prompt."""

    command: str
    host: str = ""


def prompt(line: str) -> Prompt | None:
    text = line.strip()[:LOOK]
    if not _HAS.search(text[:200]):
        return None
    for pattern in _PROMPTS:
        m = pattern.fullmatch(text)
        if m:
            return Prompt((m["command"] or "").strip(), m.groupdict().get("host") or "")
    m = _TOOLS.fullmatch(text)
    return Prompt(m["command"].strip()) if m else None


_ANSIBLE = re.compile(r"([A-Za-z0-9][\w.-]{0,62}) \| (?:CHANGED|SUCCESS|FAILED!?)(?: \| rc=(\d{1,3}))? (?:>>|\(\w+\))")
_HEAD = re.compile(r"==> (\S.{0,300}) <==")


@dataclass(frozen=True, slots=True)
class Headline:
    """A line that says whose output, or which file, follows. `rc`: the exit status, where it says so."""

    host: str = ""
    path: str = ""
    rc: int | None = None


def headline(line: str) -> Headline | None:
    """Of `ansible -m command`, and of `head` and `tail` with several files."""
    text = line.strip()[:400]
    if m := _ANSIBLE.fullmatch(text):
        return Headline(m[1], rc=int(m[2]) if m[2] else None)
    m = _HEAD.fullmatch(text)
    return Headline(path=m[1]) if m else None


def banner(lines: Sequence[str]) -> str:
    """The host between two rules, as dshbak writes it; ""."""
    rule = [len(ln) >= 8 and set(ln.strip()) == {"-"} for ln in lines[:3]]
    return lines[1].strip() if rule == [True, False, True] and re.fullmatch(r"[A-Za-z0-9][\w.,\[\]-]{0,62}", lines[1].strip()) else ""


def exit_status(line: str) -> int | None:
    """Of a line that says nothing else: `rc=0`, `[rc=1]`, `exit code: 2`."""
    m = _RC.fullmatch(line.strip()[:40])
    return int(m[1]) if m else None


def device(command: str) -> str:
    """The interface or device that a command names: after -i, -d, dev, or as the last word of ethtool."""
    m = re.search(r"(?:\s-[id]|\sdev|\slink)[ =]([\w.@-]{1,40})(?:/\d+)?(?:\s|$)", command[:LOOK]) or \
        re.search(r"\bethtool\s(?:-\S+\s)*([\w.-]{1,40})(?:\s|$)", command[:LOOK])
    return m[1] if m else ""


def expected(command: str) -> tuple[Kind | None, str]:
    """What a command prints, and the path of the file where it prints one."""
    m = _WORD.search(command[:LOOK])
    if m is None:
        return None, ""
    tool, rest = m["tool"], m["rest"]
    if tool in ("cat", "head", "tail", "less", "more"):
        paths = [w for w in rest.split() if not w.startswith("-") and ("/" in w or "." in w)]
        return (of_path(paths[0]), paths[0]) if len(paths) == 1 else (None, "")
    if tool == "rdma":
        words = rest.split()
        for word, kind in (("link", Kind.RDMA_LINK), ("statistic", Kind.RDMA_STATISTIC), ("stat", Kind.RDMA_STATISTIC),
                           ("resource", Kind.RDMA_RESOURCE), ("res", Kind.RDMA_RESOURCE)):
            if word in words[:4]:
                return kind, ""
        return None, ""
    if tool == "ethtool":
        flags = rest.split()
        kinds = {"-S": Kind.ETHTOOL_STATS, "--statistics": Kind.ETHTOOL_STATS, "-a": Kind.ETHTOOL_PAUSE, "--show-pause": Kind.ETHTOOL_PAUSE}
        found = next((k for f, k in kinds.items() if f in flags), None)
        return (found or (Kind.ETHTOOL if not any(f.startswith("-") for f in flags) else None)), ""
    if tool == "ip":
        shows = re.search(r"\b(?:a|addr|address|l|link)\b", rest) is not None
        return ((Kind.IP_JSON if re.search(r"\s-\w*j", rest) else Kind.IP_TEXT) if shows else None), ""
    if tool.startswith("ib_"):
        return Kind.PERFTEST, ""
    return _SIMPLE.get(tool), ""


_PATHS = (
    (re.compile(r"(?:.*/)?\.?nccl[\w.-]*\.conf|.*\.env|(?:.*/)?environment|(?:.*/)?environ|(?:.*/)?env(?:\.txt)?|/etc/profile\.d/\S*"
                r"|.*\.service|.*\.service\.d/\S+\.conf"), Kind.ENV),
    (re.compile(r"(?:.*/)?hosts(?:\.txt)?|(?:.*/)?etc[-_]hosts\S*"), Kind.HOSTS),
    (re.compile(r"(?:.*/)?netplan/\S+|.*\.netplan"), Kind.NETPLAN),
    (re.compile(r".*\.nmconnection|.*/system-connections/.+"), Kind.NM_KEYFILE),
    (re.compile(r".*\.(?:network|link|netdev)"), Kind.NETWORKD),
)


def of_path(path: str) -> Kind | None:
    """What a file of this name holds."""
    bare = path.removesuffix(".gz")[:LOOK]
    return next((kind for pattern, kind in _PATHS if pattern.fullmatch(bare)), None)
