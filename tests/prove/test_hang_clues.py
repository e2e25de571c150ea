"""Clues to why ranks wait: loopback addresses, firewalls, ranks that are missing, variables that differ, errors in logs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabrictool.model import Code, Status, SubjectKind
from fabrictool.prove import Case
from fabrictool.room import Fleet
from fabrictool.snapshot import Captured
from tests.prove.test_hang import IDLE, bad, judged, two
from tests.system.jobs import CAPTURES, ESTAB, LISTEN, SYN, Proc, job

LOOP_LOG = (CAPTURES / "loop-1-log.txt").read_text(encoding="utf-8")
LOOPBACK = "hostname {node}\nh 127.0.0.1 localhost\nh 127.0.1.1 {node}\n"


def test_gloo_loopback_names_the_node_that_gave_the_address() -> None:
    """A real job: rank 0 waits in waitUntilConnected, rank 1 was refused by itself and ended."""
    waits = Proc(100, 0, "loop-0-native", env={"GLOO_SOCKET_IFNAME": "-"}, hosts=LOOPBACK)
    fine = Proc(200, 1, "loop-0-native", env={"GLOO_SOCKET_IFNAME": "-"})
    case = two(waits, fine)
    assert bad(case) == [(Code.GLOO_LOOPBACK, Status.FAIL, ("spark01",))]
    (one,) = [f for f in judged(case) if f.bad]
    assert "127.0.1.1" in one.got
    erred = replace(fine, log=LOOP_LOG, gone=True)
    found = [f for f in judged(two(waits, erred)) if f.bad]
    assert (found[0].code, found[0].subject.nodes) == (Code.GLOO_LOOPBACK, ("spark01",))
    assert "tried 127.0.0.1" in found[0].got
    assert {f.code for f in found} == {Code.GLOO_LOOPBACK}


def test_gloo_loopback_by_the_log_or_by_sockets_alone() -> None:
    plain = Proc(100, 0, "loop-0-native")
    only_log = two(plain, Proc(200, 1, None, log=LOOP_LOG, gone=True))
    assert (Code.GLOO_LOOPBACK, Status.FAIL, ("spark02",)) in bad(only_log)
    listens = LISTEN.format(at="127.0.0.1:35001", pid=100)
    unset = {"GLOO_SOCKET_IFNAME": "-"}
    by_socket = two(replace(plain, sockets=listens, env=unset), Proc(200, 1, "loop-0-native", env=unset))
    assert bad(by_socket) == [(Code.GLOO_LOOPBACK, Status.FAIL, ("spark01",))]
    ras = two(replace(plain, sockets=LISTEN.format(at="127.0.0.1:28028", pid=100), env=unset), Proc(200, 1, "loop-0-native", env=unset))
    assert Code.GLOO_LOOPBACK not in {c for c, _, _ in bad(ras)}
    bound = two(replace(plain, env={"GLOO_SOCKET_IFNAME": "lo"}), Proc(200, 1, "loop-0-native"))
    assert (Code.GLOO_LOOPBACK, Status.FAIL, ("spark01",)) in bad(bound)


def test_a_loopback_name_is_no_cause_where_gloo_has_its_interface_or_is_past() -> None:
    named = two(Proc(100, 0, "loop-0-native", hosts=LOOPBACK), Proc(200, 1, "loop-0-native"))
    assert Code.GLOO_LOOPBACK not in {c for c, _, _ in bad(named)}
    running = two(Proc(100, 0, env={"GLOO_SOCKET_IFNAME": "-"}, hosts=LOOPBACK), Proc(200, 1, env={"GLOO_SOCKET_IFNAME": "-"}))
    assert not bad(running)


def asks(to: str, pid: int = 100) -> str:
    return SYN.format(at="10.10.1.1:45000", to=to, pid=pid)


def test_a_firewall_between_two_nodes() -> None:
    waits, there = Proc(100, 0, "ncclinit-0-native", sockets=asks("10.10.1.2:35001")), Proc(200, 1, "ncclinit-0-native")
    listening = replace(there, sockets=LISTEN.format(at="10.10.1.2:35001", pid=200))
    (one,) = [f for f in judged(two(waits, listening)) if f.bad]
    assert (one.code, one.subject.kind, one.subject.nodes, one.subject.peer) == (
        Code.BOOTSTRAP_BLOCKED, SubjectKind.PAIR, ("spark01",), "spark02")
    for anywhere in ("0.0.0.0:35001", "*:35001", "[::]:35001"):
        assert bad(two(waits, replace(there, sockets=LISTEN.format(at=anywhere, pid=200))))[0][0] is Code.BOOTSTRAP_BLOCKED
    assert bad(two(waits, there))[0][0] is Code.INIT_HANG  # nothing listens there: no firewall
    loopback_only = replace(there, sockets=LISTEN.format(at="127.0.0.1:35001", pid=200))
    assert bad(two(waits, loopback_only))[0][0] is Code.INIT_HANG
    unread = two(waits, listening, changed={"spark02": {"hang.sockets": Captured(127, "", "ss: not found")}})
    assert bad(unread)[0][0] is Code.BOOTSTRAP_BLOCKED


def test_an_address_that_no_node_has() -> None:
    case = two(Proc(100, 0, "ncclinit-0-native", sockets=asks("172.17.0.2:35001")), Proc(200, 1, "ncclinit-0-native"))
    (one,) = [f for f in judged(case) if f.bad]
    assert (one.code, one.subject.nodes) == (Code.INIT_HANG, ("spark01",))
    assert "no node of the spec" in one.why
    calm = two(Proc(100, 0, sockets=ESTAB.format(at="10.10.1.1:45000", to="10.10.1.2:35001", pid=100)), Proc(200, 1))
    assert not bad(calm)


@pytest.mark.parametrize("to", ["1.1.1.1:443", "[::ffff:1.1.1.1]:443", "[2606:4700::1111]:443"])
def test_what_asks_the_internet_waits_for_no_rank(to: str) -> None:
    """An engine's usage statistics or model hub behind a firewall. A wrong interface has no such address."""
    assert not bad(two(Proc(100, 0, sockets=asks(to)), Proc(200, 1)))


INIT = "ncclinit-0-native"


@pytest.mark.parametrize("to", ["172.17.0.2:443", "192.168.7.7:443", "100.64.0.9:443", "[fd00::7]:443", "10.10.1.2:9091"])
def test_a_service_of_the_site_that_does_not_answer_hangs_no_job_that_runs(to: str) -> None:
    """A proxy, a collector of metrics. While a rank waits in its start it may be the cause; without a stack nothing tells."""
    hung = (Code.INIT_HANG, Status.FAIL, ("spark01",))
    assert not bad(two(Proc(100, 0, sockets=asks(to)), Proc(200, 1)))
    assert hung in bad(two(Proc(100, 0, INIT, sockets=asks(to)), Proc(200, 1, INIT)))
    assert hung in bad(two(Proc(100, 0, sockets=asks(to)), Proc(200, 1, INIT)))
    blind = two(Proc(100, 0, None, sockets=asks(to)), Proc(200, 1, None))
    assert (Code.INIT_HANG, Status.WARN, ("spark01",)) in bad(blind)
    assert not [f for f in judged(blind) if f.status is Status.FAIL]


def test_a_firewall_between_nodes_while_nobody_waits() -> None:
    """Something is kept from one that listens: told, and no hang. Ranks that wait for data may wait for just this."""
    free = 'Process 100: python3\nThread 100 (idle): "MainThread"\n    x (y.py:1)\n'
    there = Proc(200, 1, free.replace("100", "200"), sockets=LISTEN.format(at="10.10.1.2:35001", pid=200))
    calm = two(Proc(100, 0, free, sockets=asks("10.10.1.2:35001")), there)
    assert [(c, s) for c, s, _ in bad(calm)] == [(Code.BOOTSTRAP_BLOCKED, Status.WARN)]
    waiting = two(Proc(100, 0, sockets=asks("10.10.1.2:35001")), replace(there, stack="data-0-native"))
    assert [(c, s) for c, s, _ in bad(waiting)] == [(Code.BOOTSTRAP_BLOCKED, Status.FAIL)]


def test_a_rank_that_is_missing() -> None:
    case = two(Proc(100, 0, "store-0-native", env={"WORLD_SIZE": "3"}), Proc(200, 1, "store-0-native", env={"WORLD_SIZE": "3"}))
    (one,) = [f for f in judged(case) if f.bad]
    assert (one.code, one.status) == (Code.INIT_HANG, Status.FAIL)
    assert "rank 2 of 3 not found" in one.got
    limited = replace(case, fleet=Fleet(left_out=frozenset({"spark03"})))
    assert "not found" not in next(f.got for f in judged(limited) if f.bad)
    differ = two(Proc(100, 0, "store-0-native", env={"WORLD_SIZE": "3"}), Proc(200, 1, "store-0-native"))
    assert any("world sizes 2, 3" in f.got for f in judged(differ) if f.bad)


def test_a_rank_that_does_not_tell_its_number_is_not_missing() -> None:
    """Data loaders have NCCL loaded like their rank: with hundreds of them some processes are left out, or not looked at."""
    workers = [Proc(300 + i, 0, "store-0-native", gpu=None) for i in range(3)]
    nodes = {"spark01": [Proc(100, 0, "store-0-native"), *workers], "spark02": [Proc(200, 1, "store-0-native")]}
    world = {"WORLD_SIZE": "2"}
    nodes = {n: [replace(p, env=world) for p in procs] for n, procs in nodes.items()}

    def missing(case: Case) -> bool:
        return any("not found" in f.got for f in judged(case) if f.bad)

    assert not missing(job(nodes))
    assert missing(job({**nodes, "spark02": [replace(nodes["spark02"][0], rank=0)]}))
    assert not missing(job(nodes, changed={"spark02": {"hang.env[200]": None}}))
    case = job({**nodes, "spark02": [replace(nodes["spark02"][0], rank=0)]})
    snap = case.snaps["spark02"]
    cut = Captured(0, snap.sections["consumers"].out.replace("\nend\n", "\nmore\nend\n"))
    assert not missing(replace(case, snaps={**case.snaps, "spark02": replace(snap, sections={**snap.sections, "consumers": cut})}))


def test_none_of_it_on_a_node() -> None:
    alone = job({"spark01": [Proc(100, None, "ncclinit-0-native")]})
    assert (Code.INIT_HANG, Status.WARN, ("spark01",)) in bad(alone)
    assert not bad(job({"spark01": [Proc(100)]}))


@pytest.mark.parametrize(("name", "value"), [("NCCL_SOCKET_IFNAME", "docker0"), ("NCCL_SOCKET_IFNAME", "-"), ("GLOO_SOCKET_IFNAME", "eth0"),
                                             ("MASTER_ADDR", "10.9.9.9")])
def test_variables_that_differ(name: str, value: str) -> None:
    starting = two(Proc(100, 0, "ncclinit-0-native"), Proc(200, 1, "ncclinit-0-native", env={name: value}))
    found = [f for f in judged(starting) if f.bad]
    assert [(f.code, f.status) for f in found] == [(Code.INIT_HANG, Status.FAIL)]
    assert name in found[0].got
    assert [(s, c) for c, s, _ in bad(two(Proc(100, 0), Proc(200, 1, env={name: value})))] == [(Status.WARN, Code.INIT_HANG)]


def test_independent_engines_meet_at_places_of_their_own() -> None:
    """One on each node, with one name: their ranks have the same numbers, or none, or fill their world alone."""
    here, there = {"MASTER_ADDR": "10.10.1.1"}, {"MASTER_ADDR": "10.10.1.2"}
    for ours, theirs, world in (((0, 1), (0, 1), "2"), ((None, None), (None, None), "-"), ((0, 1), (2, 3), "2")):
        nodes = {node: [Proc(pid + i, number, INIT, env={**env, "WORLD_SIZE": world}) for i, number in enumerate(numbers)]
                 for node, pid, numbers, env in (("spark01", 100, ours, here), ("spark02", 200, theirs, there))}
        assert not [f for f in judged(job(nodes)) if "MASTER_ADDR" in f.path], (ours, theirs)
    nodes = {"spark01": [Proc(100, 0, INIT, env=here), Proc(101, 1, INIT, env=here)],
             "spark02": [Proc(200, 2, INIT, env=there), Proc(201, 3, INIT, env=there)]}
    assert [f.status for f in judged(job(nodes)) if "MASTER_ADDR" in f.path] == [Status.FAIL]


def test_names_that_differ_by_node_have_one_meaning() -> None:
    """Each node's own bootstrap interface: another name, the same thing. With `=` or without."""
    case = two(Proc(100, 0), Proc(200, 1, env={"NCCL_SOCKET_IFNAME": "eth7", "GLOO_SOCKET_IFNAME": "eth7"}))
    wants = {n: replace(w, bootstrap="eth7") if n == "spark02" else w for n, w in case.wants.items()}
    assert not bad(replace(case, wants=wants))
    assert not bad(two(Proc(100, 0), Proc(200, 1, env={"NCCL_SOCKET_IFNAME": "enp1s0f0np0"})))


def test_an_error_in_one_ranks_log_is_the_cause_and_the_waiting_is_not() -> None:
    line = ("spark02:200:200 [0] NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev rocep1s0f0:1, "
            "curr state INIT, next state RTR, local GID index 3, local GID ::ffff:10.10.1.2, remote GID ::ffff:10.10.2.1\n")
    case = two(Proc(100, 0, "ncclinit-0-native"), Proc(200, 1, "ncclinit-0-native", log=line))
    found = [f for f in judged(case) if f.bad]
    assert [(f.code, f.subject.nodes) for f in found] == [(Code.RDMA_CONNECT, ("spark02",))]
    assert not bad(two(Proc(100, 0, IDLE), Proc(200, 1, IDLE, log=line)))  # nobody waits: an old line
