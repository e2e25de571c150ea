"""Nodes that are kept and restored, and functions that leave the bus and come back."""

from __future__ import annotations

import pytest

from fabrictool.lab.errors import LabError
from fabrictool.lab.handle import Lab
from tests.lab.fleet import ping, ssh

A, B = "enp1s0f0np0", "enP2p1s0f0np0"
DEVICES = "ls /sys/class/net /sys/class/infiniband /sys/bus/pci/devices"
DISK = "ls -lR --time-style=full-iso /etc /root /home /usr/local | sort"


def test_a_kept_node_comes_back_whatever_happened_to_it(lab: Lab) -> None:
    n = "spark01"
    with pytest.raises(LabError, match="spark02 was not kept"):
        lab.restore("spark02")
    lab.write_file(n, "/etc/here", "kept\n", 0o604)
    lab.remove_file(n, "/etc/hostname")
    lab.remove_file(n, "/etc/fstab")  # a file of the machine's: what hides it has to come back too
    assert lab.exec(n, ["mlnx_qos", "-i", A, "--trust", "dscp"]).ok
    lab.keep(n)
    before = lab.exec(n, ["sh", "-c", DISK]).out

    lab.remove_file(n, "/etc/here")
    lab.write_file(n, "/etc/hostname", "other\n")
    lab.hide_tool(n, "mlnx_qos")
    assert lab.exec(n, ["sh", "-c", f"ip addr flush dev {A}; ip link set {B} mtu 4200; mount --bind /tmp /etc/netplan"]).ok
    lab.new_host_key(n)
    lab.switch_port_mtu("a", 1500)
    lab.disk_full(n, True)
    lab.forward(n, "closed")
    with lab.edit_state(n) as state:
        state.functions[A].trust, state.functions[A].dscp_app = "pcp", []
        state.tools["dcb"] = "hangs"

    lab.restore(n)
    assert ssh(lab, n, "cat /etc/here; for f in hostname fstab; do [ -e /etc/$f ] || echo no $f; done").stdout.split("\n") == [
        "kept", "no hostname", "no fstab", ""]
    assert lab.exec(n, ["sh", "-c", DISK]).out == before
    assert "Priority trust state: dscp" in lab.exec(n, ["mlnx_qos", "-i", A]).out
    assert lab.state(n).tools == {}
    for node in (n, "spark02"):
        assert lab.exec(node, ["ip", "link", "set", A, "mtu", "9000"]).ok
    assert ping(lab, n, "10.10.1.12", 8972)  # the switch too


def test_a_function_off_the_bus_is_nowhere_also_after_a_reboot(lab: Lab) -> None:
    n = "spark03"
    whole = lab.exec(n, ["sh", "-c", DEVICES]).out.split()
    gone = lab.state(n).functions[A]
    assert {A, gone.rdma, gone.bus} <= set(whole)
    lab.unplug(n, A)
    for _ in range(2):
        assert sorted(lab.exec(n, ["sh", "-c", DEVICES]).out.split()) == sorted(w for w in whole if w not in (A, gone.rdma, gone.bus))
        assert gone.rdma not in lab.exec(n, ["rdma", "link"]).out
        assert lab.exec(n, ["ip", "link", "show", A]).rc == 1
        assert ping(lab, n, "10.10.2.11", 100)  # the other function works on
        lab.reboot(n)
    lab.reset(n)
    assert lab.exec(n, ["sh", "-c", DEVICES]).out.split() == whole
    assert ping(lab, n, "10.10.1.11", 100)
    with pytest.raises(LabError, match="no interface 'eth9'"):
        lab.unplug(n, "eth9")
