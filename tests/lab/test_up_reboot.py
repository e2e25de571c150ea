"""What a reboot loses, what it keeps, and what then happens by itself."""

from __future__ import annotations

import pytest

from fabrictool.lab.handle import Lab
from tests.lab.fleet import built, ssh

A, B = "enp1s0f0np0", "enP2p1s0f0np0"

UNIT = f"""[Unit]
Description=QoS
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'mlnx_qos -i {A} -f 0,0,0,1,0,0,0,0'
[Install]
WantedBy=multi-user.target
"""
RULE = f'ACTION=="add", SUBSYSTEM=="net", KERNEL=="{B}", RUN+="/usr/bin/mlnx_qos -i %k -f 0,0,0,0,1,0,0,0"\n'


def registers(lab: Lab, node: str, interface: str) -> list[int]:
    return lab.state(node).functions[interface].pfc


def test_running_state_is_lost_and_the_disk_kept(lab: Lab) -> None:
    n = "spark01"
    identity = "cat /proc/sys/kernel/random/boot_id; cat /etc/machine-id; cat /etc/ssh/ssh_host_ed25519_key.pub"
    boot_id, machine, key = ssh(lab, n, identity).stdout.splitlines()
    with lab.edit_state(n) as state:
        state.twins_share = False
        state.qps = {"rocep1s0f0": 4}
    prepare = (f"mlnx_qos -i {A} --trust dscp; mlnx_qos -i {A} -f 0,0,0,1,0,0,0,0; ethtool -A {A} rx off tx off; "
               f"ip link set {A} mtu 9000; for d in tmp run etc var; do echo 1 >/$d/here; done; docker run -d --name vllm-0 x; "
               "setsid sleep 999 >/dev/null 2>&1 & :")
    assert lab.exec(n, ["sh", "-c", prepare]).ok
    f = lab.state(n).functions[A]
    assert (f.trust, f.pfc[3], f.global_pause) == ("dscp", 1, False)
    assert len(lab.state(n).containers) == 1

    lab.reboot(n)

    f = lab.state(n).functions[A]
    assert (f.trust, f.pfc, f.global_pause) == ("pcp", [0] * 8, True)
    assert lab.state(n).containers == []
    assert lab.state(n).qps == {}
    assert lab.state(n).boots == 1
    assert lab.links(n)[A].mtu == 1500
    left = ssh(lab, n, "for f in /tmp/here /run/here /etc/here /var/here; do [ -e $f ] && echo $f; done; pgrep -c sleep")
    assert left.stdout.split() == ["/etc/here", "/var/here", "0"]
    now = ssh(lab, n, identity).stdout.splitlines()
    assert now[0] != boot_id
    assert now[1:] == [machine, key]


def test_netplan_and_profiles_set_the_mtu(lab: Lab) -> None:
    n = "spark02"
    lab.write_file(n, "/etc/netplan/90-mtu.yaml", f"network:\n  version: 2\n  ethernets:\n    {A}: {{mtu: 9000}}\n", 0o600)
    lab.write_file(n, "/etc/NetworkManager/system-connections/own.nmconnection",
                   f"[connection]\nid=own\ntype=ethernet\ninterface-name={B}\nautoconnect-priority=5\n\n[ethernet]\nmtu=4200\n", 0o600)
    lab.reboot(n)
    assert (lab.links(n)[A].mtu, lab.links(n)[B].mtu) == (9000, 4200)
    # NetworkManager ignores a profile that others could read, and a broken netplan file stops all of netplan's.
    assert lab.exec(n, ["chmod", "644", "/etc/NetworkManager/system-connections/own.nmconnection"]).ok
    lab.write_file(n, "/etc/netplan/91-broken.yaml", "network: [", 0o600)
    lab.reboot(n)
    assert (lab.links(n)[A].mtu, lab.links(n)[B].mtu) == (1500, 1500)


def test_enabled_units_and_udev_rules_really_run(lab: Lab) -> None:
    n = "spark03"
    with lab.edit_state(n) as state:
        state.twins_share = False
    lab.write_file(n, "/etc/systemd/system/roce-qos.service", UNIT)
    lab.write_file(n, "/etc/udev/rules.d/90-roce.rules", RULE)
    lab.reboot(n)
    assert registers(lab, n, A) == [0] * 8  # not enabled
    assert registers(lab, n, B) == [0, 0, 0, 0, 1, 0, 0, 0]
    assert lab.exec(n, ["systemctl", "enable", "roce-qos"]).ok
    assert registers(lab, n, A) == [0] * 8  # enabling starts nothing
    lab.reboot(n)
    assert registers(lab, n, A) == [0, 0, 0, 1, 0, 0, 0, 0]
    assert lab.exec(n, ["systemctl", "is-active", "roce-qos"]).out == "active\n"
    assert lab.exec(n, ["systemctl", "disable", "roce-qos"]).ok
    lab.remove_file(n, "/etc/udev/rules.d/90-roce.rules")
    lab.reboot(n)
    assert (registers(lab, n, A), registers(lab, n, B)) == ([0] * 8, [0] * 8)


def test_a_unit_bound_to_a_device_runs_only_where_the_device_is(lab: Lab) -> None:
    n = "spark04"
    for interface, mark in ((A, "there"), ("enp9s0", "gone")):
        lab.write_file(n, f"/etc/systemd/system/{mark}.service", "[Service]\nType=oneshot\nExecStart=/usr/bin/touch /run/" + mark
                       + f"\n[Install]\nWantedBy=sys-subsystem-net-devices-{interface}.device\n")
    assert lab.exec(n, ["systemctl", "enable", "there", "gone"]).ok
    lab.reboot(n)
    assert lab.exec(n, ["ls", "/run/there"]).ok
    assert not lab.exec(n, ["ls", "/run/gone"]).ok


def test_networkd_owner() -> None:
    with built("networkd", 1, "h20") as lab:
        mac = lab.plan.nodes[0].fabric[0].mac
        lab.write_file("gpu01", "/etc/netplan/70-mtu.yaml", "network:\n  version: 2\n  ethernets:\n    ens0np0:\n"
                       f"      match: {{macaddress: \"{mac}\"}}\n      mtu: 9000\n", 0o600)
        assert lab.exec("gpu01", ["netplan", "generate"]).ok
        assert lab.links("gpu01")["ens0np0"].mtu == 1500  # generating sets nothing
        lab.reboot("gpu01")
        assert lab.links("gpu01")["ens0np0"].mtu == 9000
        assert lab.links("gpu01")["ens1np0"].mtu == 1500


@pytest.mark.parametrize("times", [3])
def test_many_reboots(lab: Lab, times: int) -> None:
    seen = set()
    for _ in range(times):
        lab.reboot("spark01")
        seen.add(lab.exec("spark01", ["cat", "/proc/sys/kernel/random/boot_id"]).out)
    assert len(seen) == times
    assert ssh(lab, "spark01", "true").returncode == 0
