"""Symptoms of what surrounds NCCL: Gloo, PyTorch's store and watchdog. Patterns: nccl.md 3.2 and 6."""

from __future__ import annotations

import re
from ipaddress import ip_address

from fabrictool.collective.symptom_model import Rule, Told, Weight, rule
from fabrictool.model import Code

LONE = "one rank fails at once and the others wait for it, so ask every rank before judging"
_MESH = re.compile(r"(?:connectFullMesh failed with|transport/tcp/pair\.cc:[0-9]{1,5}\] (?:timed out connecting|connect)).{0,600}")
_REMOTE = re.compile(r"remote=\[([0-9A-Za-z.:%]{2,64})\]")
_TARGET = re.compile(r"(?:Connect timeout|connect) \[([0-9A-Za-z.:%]{2,64})\]")
_ADDRESS = re.compile(r"Unable to find address for: (\S{1,64})")
_STORE = re.compile(r"(?:client socket has timed out after|timed out after [0-9]{1,9}ms|failed to connect).{0,120}?\((?:hostname/IP: )?"
                    r"\[?([0-9A-Za-z_.:-]{1,255}?)\]?(?:, |:)(?:port: )?([0-9]{1,5})\)")
_CLIENTS = re.compile(r"[Tt]imed out after [0-9.]{1,12} ?(?:s|ms|seconds|minutes)? ?waiting for clients\.? "
                      r"([0-9]{1,7})/([0-9]{1,7}) clients joined")
HOSTS = "give the host's name its cluster address in /etc/hosts on every node (" \
    "`fabrictool check names -i INVENTORY` shows where it is not), and set GLOO_SOCKET_IFNAME"


def _loopback(address: str) -> bool:
    try:
        return ip_address(address.split("%", 1)[0]).is_loopback
    except ValueError:
        return address == "localhost"


def _mesh(m: re.Match[str]) -> Told:
    found = _REMOTE.search(m[0]) or _TARGET.search(m[0])
    to = found[1] if found else ""
    if to and _loopback(to):
        return Told(Code.GLOO_LOOPBACK, f"a peer gave {to} as its address, so ranks of other nodes connect to themselves; {LONE}", HOSTS)
    if to:
        return Told(Code.GLOO_CONNECT, f"no connection to {to}: an address that this node cannot reach (docker, wrong NIC), a firewall, or "
                    f"the peer is gone; {LONE}", "set GLOO_SOCKET_IFNAME per node; "
                    "`fabrictool check bootstrap_tcp -i INVENTORY`")
    return Told(Code.GLOO_CONNECT, f"Gloo could not connect all ranks, and does not say to which address; {LONE}",
                "`fabrictool check names -i INVENTORY`: a host name that resolves to 127.0.1.1 is the usual cause; set GLOO_SOCKET_IFNAME")


def _no_address(m: re.Match[str]) -> Told:
    name = m[1].strip("'\"")
    if name[:1] in ("^", "="):
        return Told(Code.ENV_LINT, f"GLOO_SOCKET_IFNAME={name}: Gloo takes exact names only, no `^` and no `=`",
                    "write the interface's name alone")
    return Told(Code.ENV_NO_SUCH_INTERFACE, f"GLOO_SOCKET_IFNAME={name}: no such interface with an address on this node",
                "write the name of an interface that is up here")


def _store(m: re.Match[str]) -> Told:
    if _loopback(m[1]):
        return Told(Code.BOOTSTRAP_BLOCKED, f"the store is looked for at {m[1]}: MASTER_ADDR is a loopback address on this node",
                    "set MASTER_ADDR to the IP address of rank 0's node")
    return Told(Code.BOOTSTRAP_BLOCKED, f"the store at {m[1]} port {m[2]} does not answer: rank 0 did not start, MASTER_ADDR is wrong, or "
                "a firewall", "`fabrictool check bootstrap_tcp -i INVENTORY`; see that rank 0 listens (`ss -ltn`)")


def _clients(m: re.Match[str]) -> Told:
    return Told(Code.INIT_HANG, f"only {m[1]} of {m[2]} ranks came to the store: the others did not start, or cannot reach it",
                "look at the logs of the ranks that are missing; compare MASTER_ADDR, WORLD_SIZE and RANK")


# Python's own last line of a traceback, in full: programs also speak of these errors where they go on without.
_OOM = re.compile(r"(?:\btorch\.(?:cuda\.)?OutOfMemoryError|\bRuntimeError): CUDA out of memory\. Tried to allocate "
                  r"(?P<size>[0-9.]{1,12} [KMGT]?i?B)(?P<rest>.{0,600})")
_ROOM = re.compile(r"total capacity of (?P<total>[0-9.]{1,12} [KMGT]iB) of which (?P<free>[0-9.]{1,12} (?:[KMGT]iB|bytes)) is free")
_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([A-Za-z0-9_.]{1,120})'")


def _out_of_memory(m: re.Match[str]) -> Told:
    room = _ROOM.search(m["rest"])
    left = f" where {room['free']} of {room['total']} was free" if room else ""
    return Told(Code.RANK_DIED, f"this rank died for want of GPU memory: it asked for {m['size']} more{left}; the others wait for it",
                "let the rank take less: batch, sequence length, gpu_memory_utilization, mem-fraction; nvidia-smi on its node shows what "
                "else holds memory there")


def _no_module(m: re.Match[str]) -> Told:
    name = m[1].partition(".")[0]
    what = "no PyTorch" if name == "torch" else f"no module {name}"
    return Told(Code.LAUNCH_FAILED, f"this Python has {what}: the program ended where it asked for it",
                f"start it with the venv or image that has {name}, the same on all nodes: `python3 -c 'import {name}'` on each tells")


RULES: tuple[Rule, ...] = (
    Rule(("CUDA out of memory",), _OOM, _out_of_memory),
    Rule(("ModuleNotFoundError",), _MODULE, _no_module),
    Rule(("connectFullMesh failed", "pair.cc:"), _MESH, _mesh),
    Rule(("Unable to find address for",), _ADDRESS, _no_address),
    rule(r"Unable to resolve hostname to a \(local\) address.{0,80}[Uu]sing the loopback address", Code.GLOO_LOOPBACK,
         "the host's own name does not resolve to an address of this node, so Gloo uses 127.0.0.1", HOSTS, "Unable to resolve hostname"),
    Rule(("waiting for clients",), _CLIENTS, _clients),
    Rule(("timed out after", "failed to connect"), _STORE, _store),
    rule(r"(?:wait|Wait) timeout after [0-9]{1,9}ms, keys: ", Code.INIT_HANG, "a rank waited in the store for another that never came",
         "look at the logs of the ranks that wrote nothing", "timeout after"),
    rule(r"Watchdog caught collective operation timeout", Code.RANK_HANGS, "a collective did not end in time: a peer died or hangs, or "
         "ranks call different collectives", "look for the first error on any rank; in a new run, while it hangs: "
         "`fabrictool check hang -i INVENTORY`", "Watchdog caught"),
    rule(r"watchdog got stuck for [0-9]{1,7} seconds|Heartbeat monitor timed out", Code.RANK_HANGS, "a call of CUDA or NCCL does not come "
         "back, or a thread holds Python's lock: not even PyTorch's watchdog went on", "look at the stacks of this process (py-spy dump "
         "--native), and at the kernel log of its node for Xid", "watchdog got stuck", "Heartbeat monitor"),
    # What the watchdog does after an error, whichever it was.
    rule(r"Received a dump signal due to a collective timeout|failure detected by watchdog|Some NCCL operations have failed or timed out",
         Code.RANK_HANGS, "PyTorch's watchdog ends this rank after an error or a timeout: that is why it ends, not what went wrong",
         "look for the first error, on any rank", "dump signal", "detected by watchdog", "Some NCCL operations", weight=Weight.AFTER),
    rule(r"(?:recv|send)[A-Za-z]{0,40} failed on SocketImpl|store->get\(.{1,80}\) got error: (?:Failed to recv|Connection|Broken pipe)|"
         r"Failed to recv, got 0 bytes", Code.RANK_DIED, "the store is gone, and with it the process of rank 0: this rank shows only the "
         "consequence", "look at rank 0's own output", "failed on SocketImpl", "got error: ", "Failed to recv", weight=Weight.AFTER),
    rule(r"(?:pair\.cc:[0-9]{1,5}\].{0,40}|TCPStore.{0,80})(?:Connection (?:closed|reset) by peer|Broken pipe|failed to recv)",
         Code.RANK_DIED, "the other end is gone: this rank shows only the consequence", "look at that rank's own log", "Connection closed",
         "Connection reset", "Broken pipe", "failed to recv", weight=Weight.AFTER),
)
