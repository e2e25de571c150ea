"""Clues to why ranks wait: each is a cause by itself, whatever the others are. Sockets, addresses, environment, missing ranks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from fabrictool.collective import log, symptoms
from fabrictool.model import Code, Finding, Status, Subject, SubjectKind, Unreadable, Value
from fabrictool.prove.hang_job import Job
from fabrictool.room import About
from fabrictool.system.phases import Phase
from fabrictool.system.ranks import Rank
from fabrictool.system.sockets import Socket, is_global, is_loopback

RAS_PORT = 28028  # NCCL's RAS listens on localhost in every rank (NCCL_RAS_ADDR)
_GLOO = re.compile(r"(?:connectFullMesh failed|pair\.cc:\d{1,5}\] (?:timed out connecting|connect)|ERROR failed to connect).{0,400}?"
                   r"remote=\[([0-9A-Fa-f.:]{2,45})\]")
GLOO = (Phase.GLOO_EXCHANGE, Phase.GLOO_CONNECT, Phase.GROUP)


def about(job: Job, code: Code, what: str, subject: Subject | None = None) -> About:
    return About(code, subject or job.subject, f"hang.{what}.{job.pattern}", "")


def node_of(rank: Rank) -> Subject:
    return Subject(SubjectKind.NODE, (rank.node,))


def loopback(job: Job) -> Iterator[Finding]:
    """A rank gave 127.x as its address. The one that fails, or waits, is another: all ranks are looked at before one is blamed."""
    told = [(r, m[1]) for r in job.everyone if isinstance(r.log, Value) and (m := _GLOO.search(r.log.value)) and is_loopback(m[1])]
    waits = job.at(*GLOO)
    if not told and not waits:
        return
    wanted = "every rank gives an address that the others reach"
    remedy = ("give the host's name its cluster address in /etc/hosts of the node (check names), start the containers anew, and set "
              "GLOO_SOCKET_IFNAME")
    blamed: dict[str, str] = {}
    for rank in job.everyone:
        if rank.get("GLOO_SOCKET_IFNAME") not in (None, "lo"):
            continue
        shown = _own_name(rank)
        listens = [s for s in _of(rank) if s.state == "LISTEN" and s.loopback and s.local_port != RAS_PORT] if rank in waits else []
        if shown:
            blamed.setdefault(rank.node, f"{rank}: {shown}")
        elif listens:
            blamed.setdefault(rank.node, f"{rank} listens on {listens[0].local}:{listens[0].local_port}, which only its own host reaches")
    for node, why in blamed.items():
        proof = f"; {told[0][0]} on {told[0][0].node} tried {told[0][1]}" if told else ""
        yield about(job, Code.GLOO_LOOPBACK, "loopback", Subject(SubjectKind.NODE, (node,))).fail(
            f"{why}{proof}", wanted, "Gloo gives this address to the other ranks, and they connect to themselves: one fails at once, the "
            "others wait", remedy=remedy)
    if told and not blamed:
        rank, address = told[0]
        yield about(job, Code.GLOO_LOOPBACK, "loopback", node_of(rank)).fail(
            f"{rank} was told to connect to {address}", wanted, "another rank gave a loopback address as its own; which one, neither "
            "/etc/hosts nor sockets tell any more", remedy=remedy)


def _own_name(rank: Rank) -> str:
    """What Gloo takes without an interface: the first address of the own host name."""
    if rank.get("GLOO_SOCKET_IFNAME") == "lo":
        return "GLOO_SOCKET_IFNAME=lo"
    if not isinstance(rank.hosts, Value) or not rank.hosts.value.addresses:
        return ""
    first = rank.hosts.value.addresses[0]
    return f"its own name {rank.hosts.value.hostname} is {first} in its /etc/hosts" if is_loopback(first) else ""


def _of(rank: Rank) -> tuple[Socket, ...]:
    return () if isinstance(rank.sockets, Unreadable) else rank.sockets


def blocked(job: Job) -> Iterator[Finding]:
    """Connections that are asked for and not answered. Towards the Internet (usage statistics, a model hub) they are no rank's. A proxy or
    a collector of metrics that does not answer looks alike: it is held against a job only where some rank still waits in its start,
    or, towards another node of the job, for another rank at all."""
    seen: set[tuple[str, str, int]] = set()
    for rank in job.everyone:
        for s in _of(rank):
            if s.state != "SYN-SENT" or (rank.node, s.peer, s.peer_port) in seen or (is_global(s.peer) and _owner(job, s) is None):
                continue
            seen.add((rank.node, s.peer, s.peer_port))
            found = _unanswered(job, rank, s)
            if job.starting() or (found.code is Code.BOOTSTRAP_BLOCKED and any(r.phase.waits for r in job.ranks)):
                yield found
            elif job.blind() or found.code is Code.BOOTSTRAP_BLOCKED:
                why = "whether a rank waits for it is not known" if job.blind() else "no rank waits for it now"
                yield replace(found, status=Status.WARN, why=f"{found.why}; {why}")


def _owner(job: Job, s: Socket) -> str | None:
    return job.owners.get(s.peer.partition("%")[0].removeprefix("::ffff:"))


def _unanswered(job: Job, rank: Rank, s: Socket) -> Finding:
    got, wanted = f"{rank}: no answer from {s.peer} port {s.peer_port}", "connections that are answered"
    peer = _owner(job, s)
    if peer is None:
        return about(job, Code.INIT_HANG, "unanswered", node_of(rank)).fail(
            got, wanted, "no node of the spec has this address: a rank gave that of a wrong interface (docker, Wi-Fi), or is elsewhere",
            remedy="compare NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME and MASTER_ADDR of all ranks with the bootstrap interface")
    pair = Subject(SubjectKind.PAIR, (rank.node,), peer=peer)
    there = job.views[peer].sockets if peer in job.views else None
    if there is None or isinstance(there, Unreadable):
        why = "its sockets could not be read" if there is not None else "none of the job was seen there"
        return about(job, Code.BOOTSTRAP_BLOCKED, "unanswered", pair).fail(
            got, wanted, f"a firewall between the two, or nothing listens there ({why})",
            remedy="fabrictool check bootstrap_tcp shows which")
    if any(x.state == "LISTEN" and x.local_port == s.peer_port and x.local.partition("%")[0] in ("*", "0.0.0.0", "::", "", s.peer)
           for x in there):
        return about(job, Code.BOOTSTRAP_BLOCKED, "unanswered", pair).fail(
            got, wanted, f"{peer} listens on that port, and the request does not arrive: a firewall in between",
            remedy="allow ephemeral ports between the nodes (nft, ufw, firewalld); fabrictool check bootstrap_tcp tries it")
    return about(job, Code.INIT_HANG, "unanswered", pair).fail(
        got, wanted, f"nothing on {peer} listens on that port: the rank there is not up, or it died", remedy=f"look at the ranks on {peer}")


def missing(job: Job) -> Iterator[Finding]:
    """Ranks that should be there by the others' own world size."""
    worlds = {r.world for r in job.ranks if r.world is not None}
    numbers = {r.number for r in job.ranks if r.number is not None}
    told = all(isinstance(r.env, Value) for r in job.everyone)  # one that does not tell its rank may be the one
    if len(worlds) == 1 and numbers and told and not job.lost and job.whole:
        world = next(iter(worlds))
        gone = sorted(set(range(world)) - numbers) if world <= 100_000 else []
        if gone:
            names = ", ".join(map(str, gone[:12])) + (" ..." if len(gone) > 12 else "")
            where = f"; none of it runs on {', '.join(job.idle)}" if job.idle else ""
            yield about(job, Code.INIT_HANG, "missing").fail(
                f"rank {names} of {world} not found{where}", f"all {world} ranks", "the others wait for ranks that did not start, or ended",
                remedy="look at the end of the logs where these ranks should run, and at `docker ps -a`")
            return
    if len(worlds) > 1:
        yield about(job, Code.INIT_HANG, "world").fail(
            f"world sizes {', '.join(map(str, sorted(w for w in worlds if w is not None)))}", "one world size",
            "ranks that expect another number of ranks never meet", remedy="start all ranks with the same WORLD_SIZE")
    elif job.idle and job.starting():
        yield about(job, Code.INIT_HANG, "missing").warn(
            f"none of it runs on {', '.join(job.idle)}", "ranks on every node of the job",
            "the others wait in an early phase; whether ranks should be there nothing tells",
            remedy=f"see whether {', '.join(job.idle)} takes part in this job")


def differing(job: Job) -> Iterator[Finding]:
    """The same variable with another meaning on other ranks. A name that is each node's own bootstrap interface has one meaning, and
    independent engines of one name meet at places of their own."""
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "MASTER_ADDR"):
        values: dict[str, list[Rank]] = {}
        for rank in job.ranks:
            if isinstance(rank.env, Value):
                values.setdefault(_meaning(job, rank, rank.get(name)), []).append(rank)
        if len(values) < 2 or (name == "MASTER_ADDR" and not job.is_one()):
            continue
        said = "; ".join(f"{value} on {', '.join(dict.fromkeys(r.node for r in ranks))}" for value, ranks in values.items())
        spot = about(job, Code.INIT_HANG, f"env.{name}")
        why = "ranks choose different interfaces or meeting places, and may not reach each other"
        remedy = f"give all ranks {name} of their own node's bootstrap interface (check env)" if name != "MASTER_ADDR" else \
            "start all ranks with the address of rank 0's node"
        yield (spot.fail if job.starting() else spot.warn)(f"{name}: {said}"[:300], f"one {name}", why, remedy=remedy)


def erring(job: Job, known: Collection[Code]) -> Iterator[Finding]:
    """What a rank's own log says went wrong, where ranks wait. One rank errs and the others wait: the error is the cause, the waiting is
    not. `known`: what was found by other clues already."""
    if not any(r.phase.waits or r.gone for r in job.ranks):
        return
    said: set[Code] = set(known)
    for rank in job.everyone:
        root = symptoms.diagnose(log.parse(rank.log.value, rank.node)).root if isinstance(rank.log, Value) else None
        if root is None or root.code in said:
            continue
        said.add(root.code)
        line = root.proof[0].text.strip()[:200] if root.proof else ""
        yield about(job, root.code, f"log.{root.code}", node_of(rank)).fail(f"{rank}: {line}", "no error in the log", root.cause,
                                                                            remedy=root.fix)


def _meaning(job: Job, rank: Rank, value: str | None) -> str:
    if value is None:
        return "not set"
    boot = job.wants[rank.node].bootstrap
    return "the bootstrap interface" if boot is not None and value.lstrip("=") == boot else value
