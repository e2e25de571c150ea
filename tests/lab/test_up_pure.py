"""The parts of the lab that are pure: plans, files, rules, templates. No lab is built."""

from __future__ import annotations

import os
import random

import pytest
import yaml

from fabrictool.lab import accounts, factory, inventory
from fabrictool.lab.errors import LabError
from fabrictool.lab.forward import NEWKEYS, UntilNewKeys
from fabrictool.lab.nodeside import live, sysfs, udev, units
from fabrictool.lab.nodeside.standins import docker
from fabrictool.lab.nodeside.tool import Link
from fabrictool.lab.paths import Layout
from fabrictool.lab.plan import factory_state, lab_plan
from fabrictool.lab.profiles import PROFILES, profile
from fabrictool.lab.record import Process, start_time
from fabrictool.spec.resolve import load_site

ALL = sorted(PROFILES)


@pytest.mark.parametrize("name", ALL)
def test_names_and_addresses_are_unique(name: str) -> None:
    plan = lab_plan("x", profile(name), 64)
    cables = [c for n in plan.nodes for c in n.cables]
    assert len({c.mac for c in cables}) == len(cables)
    assert len({c.address for c in cables}) == len(cables)
    assert len({n.name for n in plan.nodes}) == 64
    assert all(len(c.interface) <= 15 for c in cables)
    state = factory_state(plan.profile, plan.nodes[0])
    assert len({f.bus for f in state.functions.values()} | {n.bus for n in state.nics.values()}) == len(cables) // 64
    assert len({f.rdma for f in state.functions.values()}) == len(state.functions)


def test_a_spark_is_one_card_and_an_h20_node_is_ten() -> None:
    for name, cards in (("spark", 1), ("h20", 10)):
        state = factory_state(profile(name), lab_plan("x", profile(name), 1).nodes[0])
        assert len({f.sys_image_guid for f in state.functions.values()}) == cards


@pytest.mark.parametrize("count", [0, -1, 65])
def test_too_many_nodes(count: int) -> None:
    with pytest.raises(LabError, match="1 to 64"):
        lab_plan("x", profile("spark"), count)


def test_unknown_names() -> None:
    with pytest.raises(LabError, match="spark, h20, plain"):
        profile("cray")
    with pytest.raises(LabError, match="node01"):
        lab_plan("x", profile("plain"), 1).node("spark01")


@pytest.mark.parametrize("name", ALL)
def test_the_inventory_is_a_spec(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("lab")
    plan = lab_plan("x", profile(name), 3)
    text = inventory.spec(Layout(folder), plan, {n.name: 40000 + n.number for n in plan.nodes})
    (folder / "lab.yaml").write_text(text)
    site = load_site(folder / "lab.yaml")
    assert [n.name for n in site.nodes] == [n.name for n in plan.nodes]
    assert all(n.simulated for n in site.nodes)
    assert all(len(n.fabric.rails) == len(plan.profile.subnets) for n in site.nodes)


@pytest.mark.parametrize("name", ALL)
def test_factory_files(name: str) -> None:
    plan = lab_plan("x", profile(name), 2)
    hosts = {n.name: f"ssh-ed25519 HOST{n.number} comment\n" for n in plan.nodes}
    found = factory.files(plan, plan.nodes[0], factory.Ssh("ssh-ed25519 USER\n", "PRIVATE", "ssh-ed25519 CLUSTER\n", hosts))
    assert f"127.0.1.1 {plan.nodes[0].name}" in found["/etc/hosts"].text
    netplans = {p: f for p, f in found.items() if p.startswith("/etc/netplan/")}
    assert bool(netplans) is (name != "plain")
    for file in netplans.values():
        assert file.mode == 0o600
        assert "mtu" not in file.text
        assert "network" in yaml.safe_load(file.text)
    assert "/etc/nccl.conf" not in found
    known = found["/etc/ssh/ssh_known_hosts"].text.splitlines()
    assert known[1].startswith(f"{plan.nodes[1].name},192.168.1.12,10.")
    assert known[1].endswith(" ssh-ed25519 HOST2")
    assert found["/home/admin/.ssh/id_ed25519"] == factory.File("PRIVATE", 0o600, True)
    assert found["/root/.ssh/authorized_keys"].text == "ssh-ed25519 USER\nssh-ed25519 CLUSTER\n"


def test_people_of_the_machine_are_not_users_of_a_node() -> None:
    files = accounts.files("root:x:0:0:r:/root:/bin/sh\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\njoe:x:1000:1000::/home/joe:/bin/sh\n"
                           "nobody:x:65534:65534::/:/usr/sbin/nologin\n", "root:x:0:\nsudo:x:27:joe\njoe:x:1000:\n", "$6$hash")
    assert [line.split(":")[0] for line in files["/etc/passwd"].text.splitlines()] == ["root", "sshd", "nobody", "admin"]
    assert "joe" not in files["/etc/passwd"].text + files["/etc/group"].text + files["/etc/shadow"].text
    assert "admin:$6$hash:" in files["/etc/shadow"].text
    assert "root:*:" in files["/etc/shadow"].text


def test_a_password_hash_is_the_systems_own() -> None:
    one, two = accounts.hashed("secret"), accounts.hashed("secret")
    assert one.startswith("$6$")
    assert one != two  # salted


def link(name: str = "enp1s0f0np0", up: bool = True) -> Link:
    return Link(name, "02:5b:00:00:01:01", 9000, True, "UP" if up else "DOWN", up, ("10.10.1.11/24", "fe80::5b:ff:fe00:101/64"))


def text(entries: dict[str, sysfs.Entry], path: str) -> str:
    entry = entries[path]
    assert isinstance(entry, sysfs.File)
    return entry.text


def test_sysfs_shows_the_state() -> None:
    node = factory_state(profile("spark"), lab_plan("x", profile("spark"), 1).nodes[0])
    f = node.functions["enp1s0f0np0"]
    port = f"devices/lab/{f.bus}/infiniband/{f.rdma}/ports/1"
    shown = sysfs.tree(node, {"enp1s0f0np0": link()})
    assert text(shown, f"{port}/rate") == "200 Gb/sec (4X HDR)"
    assert [text(shown, f"{port}/gid_attrs/types/{i}") for i in range(5)] == ["IB/RoCE v1", "RoCE v2", "IB/RoCE v1", "RoCE v2", ""]
    assert text(shown, f"{port}/gids/3") == "0000:0000:0000:0000:0000:ffff:0a0a:010b"
    assert text(shown, f"{port}/gids/0") == "fe80:0000:0000:0000:005b:00ff:fe00:0101"
    f.gid_types = "v1"
    old = sysfs.tree(node, {f.interface: link()})
    assert [text(old, f"{port}/gid_attrs/types/{i}") for i in range(3)] == ["IB/RoCE v1", "IB/RoCE v1", ""]
    assert text(sysfs.tree(node, {f.interface: link(up=False)}), f"{port}/state") == "1: DOWN"
    assert set(sysfs.tree(node, {})) == set(shown)  # the overlay must not meet new names


def test_sysfs_takes_over_what_the_node_switched(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("sys")
    node = factory_state(profile("plain"), lab_plan("x", profile("plain"), 1).nodes[0])
    sysfs.write(root, node, {})
    folder = root / "devices/virtual/net/eth1/ecn"
    assert (folder / "roce_np/enable/3").read_text() == "1\n"
    (folder / "roce_np/enable/3").write_text("0\n")
    sysfs.adopt(root, node)
    assert node.functions["eth1"].ecn is False
    sysfs.write(root, node, {})
    assert (folder / "roce_rp/enable/3").read_text() == "1\n"  # one side alone stays as it was set
    node.functions["eth1"].ecn = True
    sysfs.write(root, node, {})
    assert (folder / "roce_np/enable/3").read_text() == "1\n"


def test_live_links() -> None:
    shown = ('[{"ifname":"lo","mtu":65536},{"ifname":"eth1","flags":["BROADCAST","UP","LOWER_UP"],"mtu":1500,"operstate":"UP","address":'
             '"02:00:00:00:00:01","min_mtu":68,"max_mtu":65535,"addr_info":[{"family":"inet","local":"10.0.0.1","prefixlen":24}]}]')
    assert live.parse(shown) == {"eth1": Link("eth1", "02:00:00:00:00:01", 1500, True, "UP", True, ("10.0.0.1/24",), 68, 9978)}
    assert live.parse("") == {}


def test_units_are_read_as_systemd_reads_them() -> None:
    settings: dict[str, list[str]] = {}
    units.parse("# no\n; no\n[Service]\nType = oneshot\nExecStart=/bin/a \\\n  b\nExecStart=/bin/c\nEnvironment=A=1\n", settings)
    assert settings == {"Service.Type": ["oneshot"], "Service.ExecStart": ["/bin/a    b", "/bin/c"], "Service.Environment": ["A=1"]}
    units.parse("[Service]\nExecStart=\nExecStart=/bin/d\n", settings)
    assert settings["Service.ExecStart"] == ["/bin/d"]
    unit = units.Unit("q@en-s1\\x2d2.service", settings={"Service.Environment": ['A=1 "B=x y" C=%i', "A=2"]})
    env = units.environment(unit)
    assert (env["A"], env["B"], env["C"]) == ("2", "x y", "en-s1\\x2d2")
    assert units.specifiers("%p %I %%", unit.name) == "q en/s1-2 %"
    assert [units.seconds(t, 90) for t in ("30", "1min 30s", "500ms", "", "infinity")] == [30, 90, 0.5, 90, 3600]


@pytest.mark.parametrize(("rule", "asked"), [
    ('ACTION=="add", SUBSYSTEM=="net", KERNEL=="en*", RUN+="/bin/x %k"', [("run", "/bin/x enp1")]),
    ('ACTION=="add", SUBSYSTEM=="net", NAME=="enp1|enp2", TAG+="systemd", ENV{SYSTEMD_WANTS}+="a@%k.service b.service"',
     [("want", "a@enp1.service"), ("want", "b.service")]),
    ('ACTION=="add", SUBSYSTEM=="net", KERNEL!="enp1", RUN+="/bin/x"', None),
    ('ACTION=="change", SUBSYSTEM=="net", RUN+="/bin/x"', None),
    ('ACTION=="add", SUBSYSTEM=="block", RUN+="/bin/x"', None),
    ('SUBSYSTEM=="net"', []),
])
def test_udev_rules(rule: str, asked: list[tuple[str, str]] | None) -> None:
    assert udev.actions(rule, "enp1") == asked


def test_docker_templates() -> None:
    facts = {"State": {"Pid": 7, "Running": True}, "Name": "/a b"}
    assert docker.template("{{.State.Pid}} {{json .Name}} {{.State.Running}}\\t{{json .State}}", facts) == \
        '7 "/a b" true\t{"Pid":7,"Running":true}'
    for bad in ("{{.Nope}}", "{{range .}}", "{{.State.Pid.X}}"):
        with pytest.raises(docker.TemplateError):
            docker.template(bad, facts)


def packet(kind: int, size: int) -> bytes:
    """An unencrypted SSH packet: length, padding length, message number, the rest."""
    body = bytes([4, kind]) + bytes(size)
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("seed", range(5))
def test_login_hangs_after_new_keys_however_the_bytes_come(seed: int) -> None:
    shown = b"SSH-2.0-OpenSSH_9.2\r\n" + packet(20, 900) + packet(31, 300) + packet(NEWKEYS, 6)
    stream, gate, out, rng = shown + b"\x99" * 500, UntilNewKeys(), b"", random.Random(seed)
    while stream:
        n = rng.randint(1, 400)
        out += gate.pass_on(stream[:n])
        stream = stream[n:]
    assert out == shown


def test_a_process_is_known_by_pid_and_start() -> None:
    started = start_time(os.getpid())
    assert started is not None
    assert Process(os.getpid(), started).alive
    other = Process(os.getpid(), started - 1)
    assert not other.alive
    other.kill()  # and so this test goes on
    assert start_time(2**22 + 1) is None
