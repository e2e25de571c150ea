"""systemctl, nmcli, netplan, networkctl and docker on real nodes: they do what they say, and leave real traces."""

from __future__ import annotations

import json
import time

from fabrictool.lab.handle import Lab
from tests.lab.fleet import ssh

A, B = "enp1s0f0np0", "enP2p1s0f0np0"
SERVICE = "[Service]\nEnvironment=NCCL_X=1\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n"


def out(lab: Lab, command: str, node: str = "spark01") -> str:
    done = lab.exec(node, ["sh", "-c", command])
    assert done.rc == 0, f"{command}: {done.err}"
    return done.out


def test_enabling_makes_the_real_links(lab: Lab) -> None:
    lab.write_file("spark01", "/etc/systemd/system/a.service", SERVICE)
    state = "systemctl is-enabled a.service; echo $?"
    assert out(lab, state) == "disabled\n1\n"
    done = lab.exec("spark01", ["systemctl", "enable", "a.service"])
    link = "/etc/systemd/system/multi-user.target.wants/a.service"
    assert done.err == f"Created symlink {link} → /etc/systemd/system/a.service.\n"
    assert out(lab, f"readlink {link}") == "/etc/systemd/system/a.service\n"
    assert out(lab, state) == "enabled\n0\n"
    assert lab.exec("spark01", ["systemctl", "enable", "a.service"]).err == ""
    assert lab.exec("spark01", ["systemctl", "disable", "a"]).ok
    assert out(lab, state) == "disabled\n1\n"
    missing = lab.exec("spark01", ["systemctl", "is-enabled", "nope"])
    assert (missing.rc, missing.out) == (1, "")
    assert missing.err == "Failed to get unit file state for nope.service: No such file or directory\n"
    assert out(lab, "systemctl mask a 2>&1 || true") == "Failed to mask unit: File /etc/systemd/system/a.service already exists.\n"


def test_a_user_reads_but_does_not_write_units(lab: Lab) -> None:
    lab.write_file("spark01", "/etc/systemd/system/a.service", SERVICE)
    done = ssh(lab, "spark01", "systemctl is-enabled a; systemctl enable a; systemctl daemon-reload")
    assert done.stdout == "disabled\n"
    assert "Access denied" in done.stderr
    assert out(lab, "ls /etc/systemd/system") == "a.service\n"


def test_a_service_is_a_real_process(lab: Lab) -> None:
    lab.write_file("spark01", "/etc/systemd/system/a.service", SERVICE)
    assert lab.exec("spark01", ["systemctl", "start", "a"]).ok
    pid = out(lab, "systemctl show -p MainPID --value a").strip()
    assert out(lab, f"tr '\\0' '\\n' </proc/{pid}/environ | grep NCCL") == "NCCL_X=1\n"
    assert out(lab, f"cat /proc/{pid}/cgroup") == "0::/system.slice/a.service\n"
    lab.write_file("spark01", "/etc/systemd/system/a.service.d/50.conf", "[Service]\nEnvironment=NCCL_X=2\n")
    reload = "systemctl show --type=service --property=Id,NeedDaemonReload '*'"
    assert out(lab, reload) == "Id=a.service\nNeedDaemonReload=yes\n"
    changed = lab.exec("spark01", ["systemctl", "restart", "a"])
    assert "changed on disk" in changed.err
    show = "tr '\\0' '\\n' </proc/$(systemctl show -p MainPID --value a)/environ | grep NCCL"
    assert out(lab, show) == "NCCL_X=1\n"  # systemd still knows the old file
    assert lab.exec("spark01", ["systemctl", "daemon-reload"]).ok
    assert out(lab, reload) == "Id=a.service\nNeedDaemonReload=no\n"
    assert lab.exec("spark01", ["systemctl", "restart", "a"]).ok
    assert out(lab, show) == "NCCL_X=2\n"
    assert lab.exec("spark01", ["systemctl", "stop", "a"]).ok
    assert lab.exec("spark01", ["systemctl", "is-active", "a"]).rc == 3


def test_a_failing_oneshot_is_failed(lab: Lab) -> None:
    lab.write_file("spark01", "/etc/systemd/system/bad.service", "[Service]\nType=oneshot\nExecStart=/bin/false\n")
    lab.write_file("spark01", "/etc/systemd/system/slow.service", "[Service]\nType=oneshot\nTimeoutStartSec=1\nExecStart=/bin/sleep 60\n")
    lab.write_file("spark01", "/etc/systemd/system/good.service", "[Service]\nType=oneshot\nExecStart=-/bin/false\nExecStart=/bin/true\n")
    for name, rc, result in (("bad", 1, "exit-code"), ("slow", 1, "timeout"), ("good", 0, "success")):
        assert lab.exec("spark01", ["systemctl", "start", name]).rc == rc
        assert out(lab, f"systemctl show -p Result --value {name}").strip() == result


def test_nmcli_sees_and_changes_profiles(lab: Lab) -> None:
    devices = "nmcli -t -f DEVICE,STATE,CONNECTION device"
    seen = [f"{A}:connected:netplan-{A}", f"{B}:connected:netplan-{B}", "enP7s7:connected:Wired connection 1"]
    for user in ("admin", "root"):  # the daemon tells both the same
        assert set(seen) <= set(ssh(lab, "spark01", devices, user).stdout.splitlines())
    lab.write_file("spark01", "/etc/NetworkManager/system-connections/own.nmconnection",
                   f"[connection]\nid=own\nuuid=0b0e7a52-0000-4000-8000-000000000001\ntype=ethernet\ninterface-name={A}\n"
                   "autoconnect-priority=9\n\n[ethernet]\n\n[ipv4]\nmethod=auto\n", 0o600)
    uuid = out(lab, f"nmcli -t -f UUID,DEVICE connection show | grep :{A}").partition(":")[0]
    assert uuid == "0b0e7a52-0000-4000-8000-000000000001"
    assert out(lab, f"nmcli -g 802-3-ethernet.mtu,ipv4.method connection show {uuid}") == "auto\nauto\n"
    assert lab.exec("spark01", ["nmcli", "connection", "modify", uuid, "802-3-ethernet.mtu", "9000"]).ok
    assert lab.links("spark01")[A].mtu == 1500
    assert out(lab, f"nmcli device reapply {A}") == f"Connection successfully reapplied to device '{A}'.\n"
    assert lab.links("spark01")[A].mtu == 9000
    assert "mtu=9000" in (lab.read_file("spark01", "/etc/NetworkManager/system-connections/own.nmconnection") or "")
    for argv, rc in ((["ipv4.mtu", "9000"], 2), (["ethernet.mtu", "big"], 2)):
        assert lab.exec("spark01", ["nmcli", "connection", "modify", uuid, *argv]).rc == rc
    assert lab.exec("spark01", ["nmcli", "connection", "modify", "none", "ethernet.mtu", "9000"]).rc == 10
    assert ssh(lab, "spark01", f"nmcli connection modify {uuid} ethernet.mtu 1500").returncode == 1


def test_an_unclaimed_interface_gets_an_automatic_profile(lab: Lab) -> None:
    lab.remove_file("spark01", "/etc/netplan/40-cx7.yaml")
    assert lab.exec("spark01", ["netplan", "generate"]).ok
    name = out(lab, f"nmcli -t -f DEVICE,CONNECTION device | grep ^{A}:").strip().partition(":")[2]
    assert name.startswith("Wired connection ")
    assert out(lab, f"nmcli -g ipv4.method connection show '{name}'") == "auto\n"


def test_netplan_refuses_what_is_no_yaml_and_keeps_the_old(lab: Lab) -> None:
    target = f"/run/NetworkManager/system-connections/netplan-{A}.nmconnection"
    lab.write_file("spark01", "/etc/netplan/90-x.yaml", f"network: {{version: 2, ethernets: {{{A}: {{mtu: 9000}}}}}}\n", 0o600)
    assert lab.exec("spark01", ["netplan", "generate"]).ok
    assert "mtu=9000" in (lab.read_file("spark01", target) or "")
    lab.write_file("spark01", "/etc/netplan/91-x.yaml", "network: {version: 2\n", 0o644)
    done = lab.exec("spark01", ["netplan", "generate"])
    assert done.rc == 1
    assert done.err.startswith("/etc/netplan/91-x.yaml:2:1: Invalid YAML")
    assert "mtu=9000" in (lab.read_file("spark01", target) or "")
    lab.write_file("spark01", "/etc/netplan/91-x.yaml", "network: {version: 2}\n", 0o644)
    assert "too open" in lab.exec("spark01", ["netplan", "generate"]).err
    assert ssh(lab, "spark01", "PATH=$PATH:/usr/sbin netplan generate").returncode == 1
    status = json.loads(out(lab, "netplan status --format json"))
    assert (status[A]["backend"], status[A]["id"]) == ("NetworkManager", A)


def test_networkctl_lists_every_link(lab: Lab) -> None:
    lines = out(lab, "networkctl --no-pager list").splitlines()
    assert lines[-1] == "4 links listed."
    assert [line.split()[1] for line in lines[1:-2]] == ["lo", "enP7s7", A, B]
    assert {line.split()[-1] for line in lines[1:-2]} == {"unmanaged"}  # all NetworkManager's


def test_containers_are_real(lab: Lab) -> None:
    lab.write_file("spark01", "/etc/env", "NCCL_DEBUG=WARN\n# no\nQUOTED=\"x\"\n")
    ident = out(lab, "docker run -d --name vllm-0 --env-file /etc/env -e NCCL_IB_TC=104 --network host example/vllm:1").strip()
    assert out(lab, "docker ps -q --no-trunc") == f"{ident}\n"
    pid, name = out(lab, "docker inspect -f '{{.State.Pid}} {{json .Name}}' vllm-0").split()
    assert name == '"/vllm-0"'
    environ = out(lab, f"tr '\\0' '\\n' </proc/{pid}/environ | grep -E 'NCCL|QUOTED'").splitlines()
    assert environ == ["NCCL_DEBUG=WARN", 'QUOTED="x"', "NCCL_IB_TC=104"]
    assert out(lab, f"cat /proc/{pid}/root/etc/hosts") == lab.read_file("spark01", "/etc/hosts")
    assert out(lab, f"cat /proc/{pid}/cgroup") == f"0::/system.slice/docker-{ident}.scope\n"
    bridged = out(lab, "docker run -d --name other x").strip()
    assert out(lab, "docker inspect -f '{{.Config.Hostname}}' other").strip() == bridged[:12]
    assert ssh(lab, "spark01", "docker ps").returncode == 1  # not in the group
    assert lab.exec("spark01", ["docker", "exec", "vllm-0", "true"]).rc == 126
    assert lab.exec("spark01", ["docker", "inspect", "none"]).rc == 1
    assert out(lab, "hostname") == "spark01\n"
    assert lab.exec("spark01", ["docker", "rm", "-f", "vllm-0", "other"]).ok
    assert out(lab, "docker ps -aq") == ""
    assert not lab.exec("spark01", ["test", "-e", f"/proc/{pid}/root"]).ok


def test_a_container_in_the_foreground_gives_streams_and_status(lab: Lab) -> None:
    lab.write_file("spark01", "/root/data/in.txt", "hello\n")
    run = "docker run --rm --name job --network host --pull=never --init --ulimit memlock=-1 -e PASSED -e OWN=1 " \
          "-v /root/data:/data:ro -w /tmp example/pytorch:25.09 sh -c "
    inside = 'cat /data/in.txt; pwd; echo "$PASSED $OWN"; echo no >&2; touch /data/x; ls /dev; exit 7'
    done = lab.exec("spark01", ["env", "PASSED=a b", "sh", "-c", f"{run} '{inside}'"])
    assert done.rc == 7
    assert done.out.splitlines()[:3] == ["hello", "/tmp", "a b 1"]
    assert "infiniband" not in done.out
    assert done.err.startswith("no\n")
    assert "Read-only file system" in done.err
    assert out(lab, "docker ps -aq") == ""
    with_device = "docker run --rm --network host --device /dev/infiniband example/pytorch:25.09 ls /dev/infiniband"
    assert out(lab, with_device).split() == ["rdma_cm", "uverbs0", "uverbs1"]
    assert lab.exec("spark01", ["docker", "run", "--pull=never", "example/other:1", "true"]).rc == 125
    assert "No such image" in lab.exec("spark01", ["docker", "image", "inspect", "example/other:1"]).err
    assert lab.exec("spark01", ["docker", "run", "--device", "/dev/none", "example/pytorch:25.09", "true"]).rc == 125
    assert lab.exec("spark01", ["docker", "run", "--bogus", "x"]).rc == 125


def test_an_image_has_the_same_id_everywhere_and_a_container_keeps_a_log(lab: Lab) -> None:
    ids = [out(lab, "docker image inspect -f '{{.Id}} {{json .RepoDigests}}' example/pytorch:25.09", n) for n in ("spark01", "spark02")]
    assert ids[0] == ids[1]
    assert ids[0].startswith("sha256:")
    out(lab, "docker run -d --name talks example/pytorch:25.09 sh -c 'echo one; echo two; sleep 1000'")
    assert out(lab, "docker inspect -f '{{.Image}}' talks").strip() == ids[0].split()[0]
    deadline = time.monotonic() + 10
    while out(lab, "docker logs talks") != "one\ntwo\n":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert out(lab, "docker logs --tail 1 talks") == "two\n"
    assert lab.exec("spark01", ["docker", "logs", "none"]).rc == 1
    assert lab.exec("spark01", ["docker", "rm", "-f", "talks"]).ok


def test_a_container_ends_with_the_client_that_waits_for_it(lab: Lab) -> None:
    run = ["docker", "run", "--rm", "--name", "waits", "example/pytorch:25.09", "sleep", "4740"]
    assert lab.exec("spark01", ["timeout", "1", *run]).rc == 124
    deadline = time.monotonic() + 10
    while out(lab, "docker ps -aq") or "4740" in out(lab, "ps -e -o args= | grep -v grep"):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_pytorch_is_in_the_image(lab: Lab) -> None:
    run = "docker run --rm --network host --device /dev/infiniband --gpus all example/pytorch:25.09 python3 -c "
    assert out(lab, f"{run} 'import torch; print(torch.cuda.get_device_name(0), torch.cuda.device_count())'") == "NVIDIA GB10 1\n"
    single = "docker run --rm --network host example/pytorch:25.09 all_reduce_perf -b 1M -e 1M"
    assert "# Collective test concluded: all_reduce_perf\n" in out(lab, single)
