"""Symptoms in NCCL's logs that are not RDMA's: interfaces, connections, settings, versions. Patterns: nccl.md 2.3."""

from __future__ import annotations

import re
from ipaddress import ip_address

from fabrictool.collective.interfaces import suspicious
from fabrictool.collective.logmodel import Endpoint
from fabrictool.collective.symptom_model import Rule, Told, Weight, rule
from fabrictool.model import Code

IFNAME = "set NCCL_SOCKET_IFNAME to an interface that is up on this node (`=ifname`; names differ from node to node)"
_REFUSED = re.compile(
    r"(?:connect to|Connect to) (?P<to>\[?[0-9A-Za-z.:%_-]{2,64}\]?)<(?P<port>[0-9]{1,5})>(?: returned (?P<what>[A-Za-z ]{1,40}))?"
    r"(?P<end>, retrying|, exceeded error retry count| failed)")
_RETRY = r"Call to connect returned [A-Za-z ]{1,40}, retrying"
_POLL = re.compile(r"(?:socketPollConnect|socketStartConnect|ncclSocketConnect): (?:connect(?: to (?P<to>\S{2,64})<(?P<port>[0-9]{1,5})>)?"
                   r"(?: returned (?P<what>[A-Za-z ]{1,40}))?, )?(?P<end>exceeded (?:error retry count|retries)|retrying)")
_TOKEN = re.compile(r'Unrecognized element token "([^"]{0,80})" when parsing "([^"]{0,120})"')


def _connect(m: re.Match[str]) -> Told:
    to, what = (m["to"] or "").strip("[]"), (m["what"] or "no answer").strip()
    weight = Weight.RETRY if "retrying" in m["end"] else Weight.CAUSE
    why = suspicious(Endpoint("", to)) if to else ""
    if not why and to:
        try:
            why = "an address of docker's default network" if str(ip_address(to)).startswith("172.17.") else ""
        except ValueError:
            why = ""
    if why:
        return Told(Code.NCCL_WRONG_INTERFACE, f"a peer gave {to} as its address: {why}", "set NCCL_SOCKET_IFNAME on the peer to the "
                    "interface that other nodes reach (`=ifname`)", weight)
    return Told(Code.BOOTSTRAP_BLOCKED, f"no connection to {to or 'a peer'} ({what}): a firewall on ephemeral ports, an address in another "
                "subnet, or the peer died or came late", "`fabrictool check bootstrap_tcp -i INVENTORY`; compare the address with the "
                "spec's bootstrap subnet; look at nft or ufw on that node, and at its own log", weight)


def _token(m: re.Match[str]) -> Told:
    return Told(Code.NCCL_BAD_SETTING, f"a variable holds {m[2]!r}, of which NCCL does not know {m[1]!r}",
                "mend NCCL_ALGO or NCCL_PROTO: the log shows which one was set to it")


def _message(m: re.Match[str]) -> Told:
    return Told(Code.NCCL_MIXED, f"a peer sent {m[1]} bytes where {m[2]} were expected: ranks run different builds of NCCL, or call "
                "different collectives", "use the same image digest on every node; compare the NCCL versions in the logs")


RULES: tuple[Rule, ...] = (
    # Benign: RAS of two jobs on one node.
    rule(r"^RAS |\bras/|28028|127\.0\.0\.1<28028>", Code.NOTHING_KNOWN, "", "", "RAS ", "ras/", "28028", weight=Weight.BENIGN),
    rule(r"[Bb]ootstrap ?: no socket interface found|NET/IB ?: No IP interface found|NET/Socket ?: no interface found|no socket interface "
         r"found", Code.NCCL_NO_INTERFACE, "NCCL_SOCKET_IFNAME matches no interface that is up on this node", IFNAME,
         "interface found"),
    rule("Unable to open device", Code.NCCL_NO_DEVICE, "an RDMA device could not be opened: no permission for /dev/infiniband/uverbs*",
         "start the container with --device /dev/infiniband and IPC_LOCK, or put the user into the device's group"),
    rule(r"Failed to initialize any NET plugin|Error ?: network \w{1,32} not found", Code.NCCL_NO_DEVICE,
         "no RDMA device is active and matches NCCL_IB_HCA, so the network that NCCL_NET asks for is not there; or libibverbs or "
         "/dev/infiniband is missing", "compare NCCL_IB_HCA with `rdma link`: each name in it must be there and ACTIVE; "
         "`fabrictool check rdma env -i INVENTORY` does so. In a container without devices: start it with --device /dev/infiniband",
         "NET plugin", "not found"),
    Rule(("onnect to ",), _REFUSED, _connect),
    Rule(("Connect:", "socketStartConnect", "socketPollConnect"), _POLL, _connect),
    rule(_RETRY, Code.BOOTSTRAP_BLOCKED, "no connection to a peer: a firewall on ephemeral ports, an address in another subnet, or the "
         "peer died or came late", "`fabrictool check bootstrap_tcp -i INVENTORY`; look at the peer's own log", "Call to connect",
         weight=Weight.RETRY),
    Rule(("Unrecognized element token",), _TOKEN, _token),
    rule(r"no algorithm/protocol available", Code.NCCL_BAD_SETTING, "NCCL_ALGO and NCCL_PROTO leave no way to run this collective",
         "unset NCCL_ALGO and NCCL_PROTO, or allow Ring and Simple", "no algorithm/protocol"),
    Rule(("Message truncated",), re.compile(r"Message truncated : received ([0-9]{1,12}) bytes instead of ([0-9]{1,12})"), _message),
    rule("Mismatched NCCL version", Code.NCCL_MIXED, "ranks run different versions of NCCL", "use the same image digest on every node"),
    rule("Detected mixed local Net device counts", Code.NCCL_MIXED, "one node has fewer RDMA devices than another",
         "look for a port that is down: `fabrictool check rdma link -i INVENTORY`"),
    rule(r"Duplicate GPU detected", Code.LAUNCH_FAILED, "two ranks were given the same GPU",
         "give each local rank its own GPU: CUDA_VISIBLE_DEVICES, NCCL_TESTS_DEVICE, or one rank per GPU", "Duplicate GPU"),
    rule(r"(?:Error while creating shared memory segment|posix_fallocate failed).{0,120}|"
         r"/dev/shm/nccl-\S{1,40}.{0,60}No space left", Code.LAUNCH_FAILED, "/dev/shm is too small for NCCL",
         "start the container with --shm-size 1g or more, or --ipc=host", "shared memory segment", "posix_fallocate", "/dev/shm/nccl"),
    # What other ranks' deaths leave behind.
    rule(r"Connection (?:closed|reset) by (?:remote )?peer|Broken pipe|remote process exited", Code.RANK_DIED,
         "the other end is gone: this rank shows only the consequence", "look at that rank's own log, and at the kernel log of its node",
         "Connection closed", "Connection reset", "Broken pipe", "remote process exited", weight=Weight.AFTER),
    rule(r"communicator encountered a fatal error|NCCL communicator was aborted|Abort COMPLETE", Code.RANK_DIED,
         "the communicator was torn down after an error", "look for the first error, on any rank", "fatal error", "was aborted",
         "Abort COMPLETE", weight=Weight.AFTER),
)
