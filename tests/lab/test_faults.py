"""The fault table itself, and each fault's effect on state and files, without a running lab."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

import pytest

from fabrictool.lab.errors import LabError
from fabrictool.lab.fault_kit import COMMANDS, Fault
from fabrictool.lab.faults import FAULTS, fault, inject
from fabrictool.lab.inside import Done
from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.state import Node
from fabrictool.lab.seen import TRAFFIC
from fabrictool.model import Code
from tests.lab.standins import A, B, call, spark

FROM_THE_SPEC = [
    "qos-wiped", "trust-pcp", "dscp-map-custom", "pfc-wrong-prio", "tool-missing", "tool-hangs", "tool-traceback",
    "tool-2017", "lldpad", "mtu-1500", "mtu-persist", "hosts-loopback", "gid-v1", "port-down", "env-edited", "env-ghost-if",
    "sudo-password", "bashrc-slow", "disk-full", "etc-readonly", "no-python", "hostkey-changed", "unreachable",
    "login-hangs", "mtu-hole", "tcp-fallback", "rail-idle", "nic-13g", "counters-frozen"]
HOSTS = "127.0.0.1 localhost\n10.10.1.11 spark01\n10.10.1.12 spark02\n"


class FakeLab:
    """Records what is done to a node; files in memory."""

    nodes: tuple[str, ...] = ("spark01", "spark02")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.peer = spark("spark02")
        self.files = {
            "/etc/hosts": HOSTS, "/etc/nccl.conf": "NCCL_IB_TC=104\nNCCL_SOCKET_IFNAME=enp1s0f0np0\n",
            f"/etc/systemd/system/fabrictool-qos-{A}.service": "[Unit]\n\n[Service]\nExecStart=/etc/fabrictool/qos.sh\n",
            "/root/.bashrc": "return\n", "/home/admin/.bashrc": "return\n"}
        self.done: list[tuple[object, ...]] = []
        self.answer = "1"

    def state(self, name: str) -> Node:
        return {self.node.name: self.node, "spark02": self.peer}[name]

    @contextmanager
    def edit_state(self, name: str) -> Iterator[Node]:
        yield self.state(name)

    def exec(self, name: str, argv: Sequence[str], input: str | bytes = b"", timeout_s: float = 60) -> Done:
        self.done.append(("exec", *argv))
        return Done(0, self.answer, "")

    def read_file(self, name: str, path: str) -> str | None:
        return self.files.get(path)

    def write_file(self, name: str, path: str, text: str | bytes, mode: int = 0o644) -> None:
        assert isinstance(text, str)
        self.files[path] = text
        self.done.append(("write", path, text, mode))

    def remove_file(self, name: str, path: str) -> None:
        self.done.append(("remove", path))

    def hide_tool(self, name: str, tool: str) -> None:
        self.done.append(("hide", tool))

    def sshd(self, name: str, running: bool) -> None:
        self.done.append(("sshd", running))

    def new_host_key(self, name: str) -> None:
        self.done.append(("key",))

    def pair_mtu(self, rail: str, one: str, other: str, mtu: int) -> None:
        self.done.append(("hole", rail, one, other, mtu))

    def block_connections(self, name: str) -> None:
        self.done.append(("block", name))

    def switch_port_mtu(self, rail: str, mtu: int, name: str | None = None) -> None:
        self.done.append(("switch", rail, mtu, name))

    def link(self, name: str, interface: str, up: bool) -> None:
        self.done.append(("link", interface, up))

    def unplug(self, name: str, interface: str) -> None:
        self.done.append(("unplug", interface))

    def forward(self, name: str, mode: str) -> None:
        self.done.append(("forward", mode))

    def disk_full(self, name: str, full: bool) -> None:
        self.done.append(("disk", full))


def configured() -> Node:
    node = spark()
    for words in ("--trust dscp", "-f 0,0,0,1,0,0,0,0"):
        assert call(node, f"mlnx_qos -i {A} {words}").rc == 0
    assert call(node, f"ethtool -A {A} rx off tx off").rc == 0
    return node


NAMED = pytest.mark.parametrize("row", FAULTS, ids=[f.name for f in FAULTS])


def test_names_are_unique_causes_in_kebab_case() -> None:
    names = [f.name for f in FAULTS]
    assert len(names) == len(set(names))
    assert set(FROM_THE_SPEC) <= set(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)
    codes = {str(c).lower().replace("_", "-") for c in Code}
    # a name is a cause, not a verdict; in these, both happen to be spelled alike
    assert set(names) & codes <= {"tool-missing", "unreachable", "needs-root", "gid-pinned", "tcp-fallback", "rail-idle", "wrong-result",
                                  "init-hang", "log-missing", "gpu-busy"}


@NAMED
def test_a_row_is_whole_and_its_codes_are_codes(row: Fault) -> None:
    assert 10 < len(row.summary) < 100
    assert not row.summary.endswith(".")
    assert set(row.expect) == set(COMMANDS)
    assert row.expect["plan"] == row.expect["drift"]
    assert set(row.traffic or ()) <= set(TRAFFIC)
    for outcome in (*row.expect.values(), *row.wiped.values(), *(row.traffic or {}).values()):
        assert outcome.exit in (0, 1, 2, 3)
        assert set(outcome.codes) <= {str(c) for c in Code}
    for command in ("check", "apply"):
        assert row.expect[command].exit != 2  # drift is plan's word
    if row.expect["plan"].exit:
        assert row.expect["plan"].codes
        assert row.expect["check"].exit


@NAMED
def test_every_fault_does_something_and_leaves_no_name(row: Fault) -> None:
    lab = FakeLab(configured())
    lab.answer = "4711"
    before = asdict(lab.node)
    inject(lab, "spark01", row.name)
    after = asdict(lab.node)
    assert lab.done or after != before
    if row.name == "lldpad":
        return  # named after the real daemon, whose process and warning carry that name anyway
    changed = {k: v for k, v in after.items() if v != before[k]}
    changed.pop("tools", None)  # the lab's own business: never shown to a node's reader
    for f in FAULTS:
        assert f.name not in str(lab.done), f.name
        assert f.name not in str(changed), f.name


def test_unknown_names_get_the_nearest_one() -> None:
    with pytest.raises(LabError, match="did you mean qos-wiped"):
        fault("qos-wipe")
    with pytest.raises(LabError, match="--list"):
        fault("zzzz")
    assert fault("qos-wiped").name == "qos-wiped"


def test_functions_are_named_by_rail_interface_or_device() -> None:
    for word in ("b", B, "roceP2p1s0f0"):
        lab = FakeLab(configured())
        lab.node.twins_share = False
        inject(lab, "spark01", "trust-pcp", word)
        assert [lab.node.functions[n].trust for n in (A, B)] == ["dscp", "pcp"]
    lab = FakeLab(configured())
    lab.node.twins_share = False
    inject(lab, "spark01", "trust-pcp")
    assert [lab.node.functions[n].trust for n in (A, B)] == ["pcp", "pcp"]
    with pytest.raises(LabError, match=r"no function 'x'.*enp1s0f0np0"):
        inject(lab, "spark01", "trust-pcp", "x")
    with pytest.raises(LabError, match="whole node"):
        inject(lab, "spark01", "lldpad", "a")


@pytest.mark.parametrize(("name", "shown"), [
    ("qos-wiped", "Priority trust state: pcp"), ("trust-pcp", "Priority trust state: pcp"), ("dscp-map-custom", "\tprio:0 dscp:26,07,"),
    ("pfc-wrong-prio", "enabled     0   0   0   0   1   0"), ("pfc-extra-prio", "enabled     0   0   0   1   1   0"),
    ("fw-dcbx", "DCBX mode: Firmware controlled"), ("no-buffer", "buffer      0   0   0   2   0"),
    ("shared-tc", "\t priority:  0\n\t priority:  1\n\t priority:  2\n\t priority:  3\n"), ("vf-function", "ETS features are not"),
    ("tool-2017", "PFC configuration\n"), ("lldpad", "WARNING: lldpad service is running")])
def test_the_reader_sees_the_fault_and_not_before(name: str, shown: str) -> None:
    lab = FakeLab(configured())
    assert shown not in call(lab.node, f"mlnx_qos -i {A}").out
    inject(lab, "spark01", name)
    assert shown in call(lab.node, f"mlnx_qos -i {A}").out


def test_wiping_is_what_a_reboot_does() -> None:
    lab = FakeLab(configured())
    inject(lab, "spark01", "qos-wiped")
    fresh = configured()
    driver.reboot(fresh)
    for name in (A, B):
        now, then = asdict(lab.node.functions[name]), asdict(fresh.functions[name])
        assert {k: v for k, v in now.items() if k != "flaps"} == {k: v for k, v in then.items() if k != "flaps"}
    assert call(lab.node, f"ethtool -a {A}").out.count("on") == 3  # Autonegotiati*on*less: "RX: on", "TX: on" and "Autonegotiate"


def test_readers_disagree_only_in_what_dcb_shows() -> None:
    lab = FakeLab(configured())
    both = [call(lab.node, c).out for c in (f"mlnx_qos -i {A}", f"dcb -j pfc show dev {A}")]
    inject(lab, "spark01", "readers-disagree")
    after = [call(lab.node, c).out for c in (f"mlnx_qos -i {A}", f"dcb -j pfc show dev {A}")]
    assert after[0] == both[0]
    assert after[1] != both[1]


def test_files_change_as_an_editor_would_change_them() -> None:
    lab = FakeLab(configured())
    inject(lab, "spark01", "hosts-loopback")
    assert lab.files["/etc/hosts"] == "127.0.1.1 spark01\n127.0.0.1 localhost\n10.10.1.12 spark02\n"
    lab.files["/etc/hosts"] = HOSTS
    inject(lab, "spark01", "hosts-differ")
    assert lab.files["/etc/hosts"] == "127.0.0.1 localhost\n10.10.1.11 spark01\n10.99.0.99 spark02\n"
    inject(lab, "spark01", "env-edited")
    assert lab.files["/etc/nccl.conf"] == "NCCL_SOCKET_IFNAME=enp1s0f0np0\nNCCL_IB_TC=96\n"
    inject(lab, "spark01", "bashrc-slow")
    assert lab.files["/home/admin/.bashrc"] == "sleep 5\nreturn\n"


def test_a_fault_that_finds_nothing_to_change_says_so() -> None:
    lab = FakeLab(configured())
    lab.files["/etc/hosts"] = "127.0.0.1 localhost\n127.0.1.1 spark01\n"
    with pytest.raises(LabError, match=r"nothing to change.*apply the spec first"):
        inject(lab, "spark01", "hosts-differ")
    del lab.files["/etc/nccl.conf"]
    with pytest.raises(LabError, match=r"not there.*apply the spec first"):
        inject(lab, "spark01", "gid-pinned")
    lab.answer = "0"
    with pytest.raises(LabError, match="apply the spec first"):
        inject(lab, "spark01", "mtu-persist")


def test_a_stale_consumer_is_a_real_process() -> None:
    lab = FakeLab(configured())
    lab.answer = "4711\n"
    inject(lab, "spark01", "stale-consumer")
    assert lab.node.containers == [{"name": "vllm-main", "pid": 4711, "image": "example/serve:1"}]
    lab.answer = "no such program"
    with pytest.raises(LabError, match="did not start"):
        inject(lab, "spark01", "stale-consumer")


@pytest.mark.parametrize(("name", "field", "value"), [
    ("counters-frozen", "frozen", True), ("wrong-priority", "ignores_class", True), ("nic-13g", "degraded_gbit", 13),
    ("packets-lost", "lost_per_million", 2000)])
def test_faults_of_traffic_are_the_adapters_state(name: str, field: str, value: object) -> None:
    lab = FakeLab(configured())
    inject(lab, "spark01", name)
    assert getattr(lab.node.functions[A], field) == value
    assert getattr(lab.peer.functions[A], field) != value


def test_what_is_of_a_rail_or_the_fleet_happens_on_all_nodes() -> None:
    lab = FakeLab(configured())
    inject(lab, "spark01", "rail-idle", "b")
    assert [n.functions[i].far for n in (lab.node, lab.peer) for i in (A, B)] == [False, True] * 2
    inject(lab, "spark01", "tcp-fast")
    assert [n.tcp_gbytes for n in (lab.node, lab.peer)] == [21.9, 21.9]
    assert sum("rm -rf /dev/infiniband" in str(d) for d in lab.done) == 2
    with pytest.raises(LabError, match="whole fleet"):
        inject(lab, "spark01", "tcp-fallback", "a")


def test_a_hole_lies_between_a_node_and_the_next_one() -> None:
    lab = FakeLab(configured())
    inject(lab, "spark01", "mtu-hole-pair", "b")
    assert lab.done == [("hole", "b", "spark01", "spark02", 1500)]
    lab.nodes = ("spark01",)
    with pytest.raises(LabError, match="two of them"):
        inject(lab, "spark01", "mtu-hole-pair")


def test_programs_on_the_gpu_are_real_processes() -> None:
    lab = FakeLab(configured())
    lab.answer = "4711\n"
    for name in ("gpu-busy", "gpu-desktop"):
        inject(lab, "spark01", name)
    assert [(p["pid"], p["kind"]) for p in lab.node.compute] == [(4711, "C"), (4711, "G")]
    lab.answer = "sh: not found"
    with pytest.raises(LabError, match="did not start"):
        inject(lab, "spark01", "gpu-busy")
