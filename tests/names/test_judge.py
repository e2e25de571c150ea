"""The judge of host names: each code failing, and its healthy twin."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool import names
from fabrictool.model import Absent, Code, Reason, Status, Unreadable, Value
from fabrictool.names.sections import Resolved
from fabrictool.snapshot import Captured
from tests.env.sample import Box, bad, consumers_text, only, written
from tests.names.sample import HOSTS, Named, answers
from tests.specs import node_spec


def test_healthy() -> None:
    found = Named().judge()
    assert bad(found) == []
    passed = {f.path for f in found if f.status is Status.PASS}
    assert passed >= {"names.self", "names.peers", "names.hosts", "names.mdns", "names.hostname", "names.template",
                      "names.inside.docker:vllm-a"}
    assert sum(f.path == "names.peers" for f in found) == 3
    assert len({f.id for f in found}) == len(found)


DEBIAN = "127.0.0.1 localhost\n127.0.1.1 spark01\n\n::1 localhost ip6-localhost ip6-loopback\n"


def test_loopback_is_one_step_with_everything() -> None:
    found = Named(hosts=DEBIAN).judge()
    f = next(f for f in found if f.path == "names.hosts")
    assert (f.status, f.code, f.aspect) == (Status.FAIL, Code.NAME_LOOPBACK, "hosts")
    assert [len(x.steps) for x in found if x.steps] == [1]
    assert written(f).text == DEBIAN.replace("127.0.1.1", "10.10.1.1") + "10.10.1.2 spark02\n10.10.1.3 spark03\n10.10.1.4 spark04\n"
    details = [x for x in found if x.path in ("names.self", "names.peers") and x.bad]
    assert [x.status for x in details] == [Status.WARN] * 4
    assert [x.code for x in details] == [Code.NAME_LOOPBACK, *[Code.NAME_DIFFERS] * 3]
    assert [x.subject.peer for x in details] == ["", "spark02", "spark03", "spark04"]
    assert bad(Named(hosts=DEBIAN).applied().judge()) == []


@pytest.mark.parametrize("hosts", [
    HOSTS.replace("10.10.1.1 spark01", "::1 spark01"), HOSTS.replace("10.10.1.1 spark01", "192.168.1.11 spark01"),
    HOSTS + "127.0.1.1 spark01\n", HOSTS.replace("10.10.1.3 spark03\n", ""), HOSTS.replace("10.10.1.3", "10.10.2.3"),
    HOSTS + "192.168.1.12 spark02\n", HOSTS.replace("\n", "\r\n").replace("10.10.1.1", "127.0.1.1"), None,
])
def test_what_is_wrong_is_set_and_then_right(hosts: str | None) -> None:
    named = Named(hosts=hosts)
    found = named.judge()
    assert [f.path for f in found if f.status is Status.FAIL] == ["names.hosts"]
    assert bad(named.applied().judge()) == []


def test_a_loopback_address_of_the_other_family_beside_the_right_one_is_wrong() -> None:
    """getaddrinfo may hand out ::1 first. Any other address of the other family does not matter."""
    found = Named(hosts=HOSTS + "::1 spark01\n").judge()
    assert [(f.path, f.code) for f in found if f.status is Status.FAIL] == [("names.hosts", Code.NAME_LOOPBACK)]
    assert bad(Named(hosts=HOSTS + "fd00::1 spark01\n").judge()) == []


def test_dns_that_is_right_needs_no_line() -> None:
    named = Named(hosts="127.0.0.1 localhost\n", resolved=answers(HOSTS))
    assert bad(named.judge()) == []


def test_a_dead_dns_server_does_not_stop_the_repair() -> None:
    late = answers("10.10.1.1 spark01\n").replace("r 2 ", "r 124 ")
    named = Named(hosts="10.10.1.1 spark01\n", resolved=late)
    f = next(f for f in named.judge() if f.path == "names.hosts")
    assert "no answer in 5 s" in f.got
    assert "10.10.1.4 spark04\n" in written(f).text


def test_unknown_peer_blocks_nobody_else() -> None:
    named = Named(hosts=DEBIAN)
    named.fleet["spark03"] = Unreadable(Reason.UNREACHABLE, "no route")
    del named.fleet["spark04"]
    found = named.judge()
    unknown = [f for f in found if f.status is Status.UNKNOWN]
    assert [(f.subject.peer, f.code) for f in unknown] == [("spark03", Code.UNREACHABLE), ("spark04", Code.UNREADABLE)]
    text = written(next(f for f in found if f.path == "names.hosts")).text
    assert "10.10.1.2 spark02" in text
    assert "spark03" not in text


def test_unreadable_blocks_the_write() -> None:
    for broken in ({"names.resolved": Captured(127, "", "getent: not found")}, {"names.files": Captured(124, "")}):
        found = Named(hosts=DEBIAN, broken=broken, resolved=answers(DEBIAN)).judge()
        assert not any(f.steps for f in found)
        assert any(f.status is Status.UNKNOWN and f.aspect == "hosts" and not f.subject.peer for f in found)


def test_no_bootstrap_address() -> None:
    named = Named(hosts=DEBIAN)
    named.ports.netdevs["enp1s0f0np0"]["addr_info"] = []
    f = next(f for f in named.judge() if f.path == "names.self")
    assert f.status is Status.UNKNOWN
    found = Named(hosts=DEBIAN).judge(node_spec(bootstrap=None))
    assert only(found, Code.NAME_LOOPBACK).remedy
    assert not any(f.steps for f in found)
    assert bad(Named().judge(node_spec(bootstrap=None))) == []


def test_something_answers_before_the_file() -> None:
    wrong = answers(HOSTS.replace("10.10.1.2", "10.99.0.2"))
    named = Named(resolved=wrong, nsswitch="hosts: dns files\n")
    f = only(named.judge(), Code.NAME_DIFFERS)
    assert (f.status, f.steps, f.subject.peer) == (Status.FAIL, (), "spark02")
    assert "dns files" in f.remedy


def test_two_names_of_one_node() -> None:
    named = Named(own="dgx-a1", hostname="dgx-a1\n", hosts="127.0.1.1 dgx-a1.lan dgx-a1\n")
    named.consumers = consumers_text(Box(hostname="dgx-a1", hosts="10.10.1.1 dgx-a1\n"))
    found = named.judge()
    assert {f.path for f in found if f.bad} == {"names.hosts", "names.self", "names.self.spark01", "names.peers"}
    assert written(next(f for f in found if f.steps)).text.startswith("10.10.1.1 dgx-a1.lan dgx-a1\n10.10.1.1 spark01\n")
    assert bad(named.applied().judge()) == []


def test_a_node_that_calls_itself_like_a_peer() -> None:
    f = next(f for f in Named(own="spark02", hostname="spark02\n").judge() if f.subject.peer == "spark02" and f.bad)
    assert "another node's name" in f.why


@pytest.mark.parametrize("name", ["a:b", "user@host", "x.", "-"])
def test_names_that_cannot_stand_in_the_file(name: str) -> None:
    nodes = ["spark01", name] if name[0].isalnum() else ["spark01"]
    named = Named(fleet={"spark01": Value("10.10.1.1"), name: Value("10.10.1.9")}, resolved=answers(HOSTS, ask=("spark01", name)))
    found = named.judge(node_spec(nodes=nodes))
    assert not any(f.steps for f in found)
    assert [f.subject.peer for f in found if f.bad] == nodes[1:]


def test_an_address_is_no_name() -> None:
    found = Named().judge(node_spec(nodes=["spark01", "10.10.1.2"]))
    assert [f.status for f in found if f.subject.peer == "10.10.1.2"] == [Status.SKIP]


@pytest.mark.parametrize(("change", "word"), [
    ({"resolved": answers(HOSTS).replace("a 10.10.1.2 spark02", "a 10.10.1.2 spark02.local")}, "spark02.local"),
    ({"nsswitch": "hosts: mdns4_minimal files dns\n"}, "before files"), ({"nsswitch": "hosts: mdns dns\n"}, "before files"),
])
def test_mdns(change: dict[str, Any], word: str) -> None:
    f = only(Named(**change).judge(), Code.NAME_MDNS)
    assert f.status is Status.WARN
    assert word in f.got


def test_hostname_of_the_next_boot() -> None:
    f = only(Named(hostname="# c\nold\n").judge(), Code.NAME_DIFFERS)
    assert (f.status, f.path) == (Status.WARN, "names.hostname")
    assert bad(Named(hostname=None).judge()) == []


TMPL = "template /etc/cloud/templates/hosts.debian.tmpl\nend\n"


@pytest.mark.parametrize("section", ["names.resolved", "names.cloud", "names.files"])
def test_every_prefix_is_whole_or_unreadable(section: str) -> None:
    named = Named(cloud=f"set false /etc/cloud/cloud.cfg\n{TMPL}")
    whole = named.snapshot()
    text = whole.sections[section].out
    full = names.read(whole)
    for cut in range(len(text)):
        named.broken = {section: Captured(0, text[:cut])}
        got = names.read(named.snapshot())
        part = {"names.resolved": got.resolved, "names.cloud": got.cloud, "names.files": got.files}[section]
        if section == "names.files" and not isinstance(part, Unreadable):
            assert isinstance(full.files, dict)
            assert all(isinstance(v, Unreadable) or v == full.files[p] for p, v in part.items())
            assert set(part) == set(full.files)
        else:
            assert isinstance(part, Unreadable)
    assert isinstance(full.resolved, Resolved)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=20), st.sampled_from(
    ["self x", "r 0 x", "a 1 2", "a 127.0.0.1 spark01", "r x y", "set true /x", "denied", "\udcff", "r 0 " + "x" * 99999])), max_size=8))
def test_hostile_answers_never_raise(lines: list[str]) -> None:
    text = "\n".join([*lines, "end", ""])
    for section in ("names.resolved", "names.cloud", "names.files"):
        found = Named(broken={section: Captured(0, text)}, resolved=answers(HOSTS)).judge()
        assert found
        assert not any("127.0.0.1" in f.got and f.status is Status.PASS for f in found if f.path == "names.self")


def test_absent_is_not_a_peer_address() -> None:
    named = Named(hosts=DEBIAN)
    named.fleet["spark02"] = Absent("a usable address on enp1s0f0np0")
    f = next(f for f in named.judge() if f.subject.peer == "spark02")
    assert (f.status, f.code) == (Status.UNKNOWN, Code.BLOCKED)


def test_nodes_that_nobody_selected_are_left_out_and_not_unknown() -> None:
    """Of a node that was left out, what is known (a bundle has it) is still evidence."""
    wrong = Named(hosts=HOSTS.replace("10.10.1.3", "10.99.0.3").replace("10.10.1.4", "10.99.0.4"))
    wrong.fleet = {"spark01": Value("10.10.1.1"), "spark03": Value("10.10.1.3"),
                   "spark04": Unreadable(Reason.UNREACHABLE, "no route")}
    wrong.left_out = frozenset({"spark02", "spark03", "spark04"})
    peers = {f.subject.peer: f.status for f in wrong.judge() if f.path == "names.peers"}
    assert peers == {"spark02": Status.SKIP, "spark03": Status.WARN, "spark04": Status.SKIP}
    wrong.left_out = frozenset()
    assert {f.subject.peer: f.status for f in wrong.judge() if f.path == "names.peers"} == {
        "spark02": Status.UNKNOWN, "spark03": Status.WARN, "spark04": Status.UNKNOWN}
