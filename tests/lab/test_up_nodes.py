"""What a node is: real SSH, real links, an own file system, and nothing of the machine's to break."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fabrictool.lab.errors import LabError
from fabrictool.lab.handle import Lab
from tests.lab.fleet import built, ping, ssh

A = "enp1s0f0np0"
JUMBO = 8972  # 9000 less IPv4 and ICMP headers


def test_mtu_limits_packets_at_the_nodes(lab: Lab) -> None:
    for name in ("spark01", "spark02"):
        assert lab.exec(name, ["ip", "link", "set", A, "mtu", "9000"]).ok
    assert ping(lab, "spark01", "10.10.1.12", JUMBO)
    assert lab.exec("spark02", ["ip", "link", "set", A, "mtu", "1500"]).ok
    assert not ping(lab, "spark01", "10.10.1.12", JUMBO)
    assert ping(lab, "spark01", "10.10.1.12", 1472)


def test_mtu_limits_packets_in_the_switch(lab: Lab) -> None:
    for name in ("spark01", "spark02"):
        assert lab.exec(name, ["ip", "link", "set", A, "mtu", "9000"]).ok
    lab.switch_port_mtu("a", 1500)
    assert not ping(lab, "spark01", "10.10.1.12", JUMBO)
    assert ping(lab, "spark01", "10.10.1.12", 1472)
    lab.switch_port_mtu("a", 9216)
    assert ping(lab, "spark01", "10.10.1.12", JUMBO)
    with pytest.raises(LabError, match="no rail"):
        lab.switch_port_mtu("z", 1500)


def test_rails_are_separate_networks(lab: Lab) -> None:
    assert ping(lab, "spark01", "10.10.1.13", 56)
    assert ping(lab, "spark01", "10.10.2.13", 56)
    lab.link("spark01", A, False)
    assert not ping(lab, "spark01", "10.10.1.13", 56)
    assert ping(lab, "spark01", "10.10.2.13", 56)
    assert ping(lab, "spark02", "10.10.1.13", 56)


def test_a_pulled_cable_is_seen_everywhere(lab: Lab) -> None:
    look = f"cat /sys/class/net/{A}/carrier /sys/class/net/{A}/operstate /sys/class/infiniband/rocep1s0f0/ports/1/state " \
           "/sys/class/infiniband/rocep1s0f0/ports/1/rate /sys/class/infiniband/roceP2p1s0f0/ports/1/state"
    up = ["1", "up", "4: ACTIVE", "200 Gb/sec (4X HDR)", "4: ACTIVE"]
    assert lab.exec("spark01", ["sh", "-c", look]).out.splitlines() == up
    lab.link("spark01", A, False)
    assert lab.exec("spark01", ["sh", "-c", look]).out.splitlines() == ["0", "down", "1: DOWN", "40 Gb/sec (4X QDR)", "4: ACTIVE"]
    lab.link("spark01", A, True)
    assert lab.exec("spark01", ["sh", "-c", look]).out.splitlines() == up


def test_sudo_and_a_user_without_it(lab: Lab) -> None:
    assert ssh(lab, "spark01", "id -u; sudo -n id -u").stdout.split() == ["1000", "0"]
    assert ssh(lab, "spark01", "id -u", user="root").stdout == "0\n"
    lab.write_file("spark01", "/etc/sudoers.d/90-admin", "admin ALL=(ALL:ALL) ALL\n", 0o440)
    denied = ssh(lab, "spark01", "sudo -n id -u")
    assert (denied.returncode, denied.stdout) == (1, "")
    assert "password is required" in denied.stderr
    password = (lab.layout.keys / "password").read_text()
    argv = ["ssh", "-F", str(lab.layout.root / "ssh_config"), "spark01", "sudo -S -p '' id -u"]
    asked = subprocess.run(argv, input=password, capture_output=True, text=True, timeout=30, check=False)
    assert asked.stdout == "0\n"
    wrong = subprocess.run(argv, input="wrong\n" * 3, capture_output=True, text=True, timeout=30, check=False)
    assert wrong.returncode != 0
    assert wrong.stdout == ""


def test_ssh_sessions_are_counted(lab: Lab) -> None:
    before = lab.exec_count("spark03")
    lab.exec("spark03", ["true"])  # not SSH
    assert lab.exec_count("spark03") == before
    for _ in range(2):
        assert ssh(lab, "spark03", "true").returncode == 0
    assert lab.exec_count("spark03") == before + 2


def test_the_machine_cannot_be_changed_from_a_node(lab: Lab) -> None:
    swappiness = Path("/proc/sys/vm/swappiness").read_text()
    out = ssh(lab, "spark01", "echo 1 >/proc/sys/vm/swappiness; date -s 2020-01-01; sysctl -w net.ipv4.ip_forward=1; hostname other; "
                              "mknod /tmp/disk b 254 0; ls / /home; rm -rf /usr/share", user="root")
    assert "Read-only file system" in out.stderr
    assert "Operation not permitted" in out.stderr
    assert "net.ipv4.ip_forward = 1" in out.stdout  # its own
    assert Path("/proc/sys/vm/swappiness").read_text() == swappiness
    assert Path("/proc/sys/kernel/hostname").read_text() != "other\n"
    assert Path("/usr/share").is_dir()
    assert "admin" in out.stdout
    tops = {"bin", "sbin", "lib", "lib64", "usr", "etc", "nix", "lib32", "libx32", "boot", "dev", "home", "media", "mnt", "opt", "proc",
            "root", "run", "srv", "sys", "tmp", "var"}
    assert set(lab.exec("spark02", ["ls", "/"]).out.split()) <= tops
    own = {"fabrictool-lab", "lab-venv", "all_reduce_perf", "all_reduce_perf_mpi"}
    for name in ("/opt", "/srv", "/mnt", "/root", "/tmp", "/usr/local/bin"):
        assert set(lab.exec("spark02", ["ls", name]).out.split()) <= own
    assert not lab.exec("spark01", ["test", "-e", "/usr/share"]).ok
    assert lab.exec("spark02", ["test", "-e", "/usr/share"]).ok


def test_links_in_a_node_do_not_lead_into_the_machine(lab: Lab, tmp_path: Path) -> None:
    target = tmp_path / "victim"
    target.write_text("mine")
    assert lab.exec("spark01", ["ln", "-s", str(target), "/etc/trap"]).ok
    lab.write_file("spark01", "/etc/trap", "theirs")
    assert lab.read_file("spark01", "/etc/trap") == "theirs"
    assert target.read_text() == "mine"
    assert lab.read_file("spark01", "/etc/none") is None


def test_stand_ins_say_so_and_are_logged(lab: Lab) -> None:
    for tool in ("mlnx_qos", "systemctl", "nmcli", "docker"):
        done = lab.exec("spark01", [tool, "--lab"])
        assert done.out == f"{tool}: stand-in of a fabrictool lab\n"
        where = lab.exec("spark01", ["sh", "-c", f"command -v {tool}"]).out.strip()
        assert "Stand-in of a fabrictool lab" in (lab.read_file("spark01", where) or "")
    before = len(lab.commands("spark01"))
    assert lab.exec("spark01", ["mlnx_qos", "-i", A, "-f", "0,0,0,1,0,0,0,0"]).ok
    assert lab.exec("spark01", ["mlnx_qos", "-i", A, "-f", "0,0,0,1,0,0,0,0"]).ok
    calls = lab.commands("spark01")[before:]
    assert [(c["tool"], c["rc"], c["changed"]) for c in calls] == [("mlnx_qos", 0, True), ("mlnx_qos", 0, False)]
    assert lab.state("spark01").functions[A].pfc == [0, 0, 0, 1, 0, 0, 0, 0]


def test_generic_misbehaviour(lab: Lab) -> None:
    asked = ["mlnx_qos", "-i", A, "-f", "0,0,0,1,0,0,0,0"]

    def mode(how: str) -> None:
        with lab.edit_state("spark01") as state:
            state.tools["mlnx_qos"] = how
            state.functions[A].pfc = [0] * 8

    def pfc() -> int:
        return lab.state("spark01").functions[A].pfc[3]

    mode("lies")
    assert lab.exec("spark01", asked).rc == 0
    assert pfc() == 0
    mode("applies-but-traceback")
    done = lab.exec("spark01", asked)
    assert (done.rc, pfc()) == (1, 1)
    assert "Traceback" in done.err
    mode("traceback")
    assert (lab.exec("spark01", asked).rc, pfc()) == (1, 0)
    mode("empty")
    silent = lab.exec("spark01", ["mlnx_qos", "-i", A])
    assert (silent.rc, silent.out, silent.err) == (0, "", "")
    mode("hangs")
    assert lab.exec("spark01", ["timeout", "1", *asked]).rc == 124
    mode("ok")
    assert (lab.exec("spark01", asked).rc, pfc()) == (0, 1)


def test_a_hidden_tool_is_gone_and_comes_back(lab: Lab) -> None:
    for tool in ("dcb", "python3", "ip"):
        find = ["bash", "-c", f"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; command -v {tool}"]
        there = lab.exec("spark01", find)
        assert there.ok
        lab.hide_tool("spark01", tool)
        assert not lab.exec("spark01", find).ok
        assert lab.exec("spark01", ["mlnx_qos", "-i", A]).ok  # stand-ins do without the node's Python
        lab.show_tool("spark01", tool)
        assert lab.exec("spark01", find).out == there.out


def test_a_full_disk(lab: Lab) -> None:
    write = ["sh", "-c", "head -c 300000 /dev/zero >/etc/big"]
    lab.disk_full("spark01", True)
    full = lab.exec("spark01", write)
    assert not full.ok
    assert "No space left" in full.err
    assert lab.exec("spark01", ["sh", "-c", "echo ok >/run/here"]).ok
    lab.disk_full("spark01", False)
    assert lab.exec("spark01", write).ok


def test_ports_misbehave_on_request(lab: Lab) -> None:
    def login() -> subprocess.CompletedProcess[str]:
        argv = ["timeout", "5", "ssh", "-F", str(lab.layout.root / "ssh_config"), "-o", "LogLevel=DEBUG1", "spark04", "true"]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)

    lab.forward("spark04", "closed")
    assert "Connection refused" in login().stderr
    lab.forward("spark04", "hang-before-banner")
    silent = login()
    assert silent.returncode == 124
    assert "remote software version" not in silent.stderr
    lab.forward("spark04", "hang-in-login")
    hung = login()
    assert hung.returncode == 124
    assert "SSH2_MSG_NEWKEYS received" in hung.stderr
    assert "Authenticated to" not in hung.stderr
    lab.forward("spark04", "ok")
    assert login().returncode == 0
    with pytest.raises(LabError, match="forwarder"):
        lab.forward("spark04", "sideways")


def test_another_host_key(lab: Lab) -> None:
    lab.new_host_key("spark02")
    changed = ssh(lab, "spark02", "true")
    assert changed.returncode == 255
    lab.old_host_key("spark02")
    assert ssh(lab, "spark02", "true").returncode == 0
    lab.sshd("spark02", False)
    assert ssh(lab, "spark02", "true").returncode == 255
    lab.sshd("spark02", True)
    assert ssh(lab, "spark02", "true").returncode == 0


def test_reset_is_the_factory_again(lab: Lab) -> None:
    fresh = lab.exec("spark01", ["sh", "-c", "cd /etc && find . -type f | sort | xargs sha256sum"]).out
    state = lab.state("spark01")
    lab.write_file("spark01", "/etc/nccl.conf", "NCCL_DEBUG=INFO\n")
    assert lab.exec("spark01", ["sh", "-c", "rm /etc/hosts; mlnx_qos -i enp1s0f0np0 --trust dscp; ip link set enp1s0f0np0 mtu 9000"]).ok
    assert lab.state("spark01") != state
    lab.reset("spark01")
    assert lab.exec("spark01", ["sh", "-c", "cd /etc && find . -type f | sort | xargs sha256sum"]).out == fresh
    again = lab.state("spark01")
    assert [text for _, text in again.kernel_log] == [text for _, text in state.kernel_log]
    assert replace(again, kernel_log=state.kernel_log) == state  # of another boot, so at another time
    assert lab.commands("spark01") == []
    assert lab.links("spark01")[A].mtu == 1500
    assert ssh(lab, "spark01", "true").returncode == 0


@pytest.mark.parametrize(("profile", "first", "management", "rdma"), [
    ("h20", "gpu01", "bond1", 10), ("plain", "node01", "eth0", 1)])
def test_other_profiles(profile: str, first: str, management: str, rdma: int) -> None:
    with built(profile, 2, profile) as lab:
        done = ssh(lab, first, "ls /sys/class/infiniband | wc -l; ip -j route show default; command -v nmcli netplan mlnx_qos; "
                               "cat /sys/class/net/*/mtu | sort -u")
        lines = done.stdout.splitlines()
        assert lines[0] == str(rdma)
        assert json.loads(lines[1])[0]["dev"] == management
        assert ("/usr/bin/nmcli" in lines) is (profile == "spark")
        assert "/usr/bin/mlnx_qos" in lines
        assert {"1500", "65536"} == set(lines[-2:])
        peer = lab.plan.nodes[1].fabric[0].address.partition("/")[0]
        assert ping(lab, first, peer, 56)
        assert re.search(r"simulated: true", (lab.layout.root / "lab.yaml").read_text())
