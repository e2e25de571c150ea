"""nvidia-smi's programs and topology, and the kernel's log by dmesg and journalctl: views on the state."""

from __future__ import annotations

import json
import time

import pytest

from fabrictool.lab.nodeside import journal
from fabrictool.lab.nodeside.standins.journalctl import since
from fabrictool.lab.nodeside.state import Function, Node
from tests.lab.standins import call, spark

APPS = "nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader"


def busy() -> Node:
    node = spark()
    node.compute = [{"pid": 4711, "name": "/usr/bin/python3", "kind": "C", "memory_mib": 61440, "gpu": 0},
                    {"pid": 99, "name": "/usr/lib/xorg/Xorg", "kind": "G", "memory_mib": 43, "gpu": 0}]
    return node


def h20() -> Node:
    """Four GPUs, a rail each, and two adapters for storage."""
    def fn(i: int, rail: str) -> Function:
        return Function(f"ens{i}", f"mlx5_{i}", f"p{i}", rail, f"0000:{0x41 + i:02x}:00.0", 400, f"g{i}", f"n{i}")

    functions = {f"ens{i}": fn(i, f"r{i}" if i < 4 else "") for i in range(6)}
    return Node("gpu01", functions, gpu="NVIDIA H20", gpus=4)


def test_only_what_computes_is_a_compute_app() -> None:
    assert call(busy(), APPS).out == "4711, /usr/bin/python3\n"
    got = call(spark(), APPS)
    assert (got.rc, got.out) == (0, "")
    with_head = call(busy(), "nvidia-smi --query-compute-apps=pid,used_memory,gpu_uuid --format=csv,nounits").out
    assert with_head == "pid, used_gpu_memory, gpu_uuid\n4711, 61440, GPU-00000000-0000-0000-0000-000000000000\n"
    assert call(busy(), "nvidia-smi --query-compute-apps=pid,bogus --format=csv").rc == 2
    assert call(spark(), "nvidia-smi --query-compute-apps=bogus --format=csv").rc == 2


def test_the_table_has_the_desktop_too() -> None:
    table = call(busy(), "nvidia-smi").out
    assert "/usr/lib/xorg/Xorg" in table
    assert len({len(line) for line in table.splitlines() if line}) == 1
    assert "No running processes found" in call(spark(), "nvidia-smi").out
    assert call(busy(), "nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits").out == "96\n"


def test_the_head_of_the_long_form_has_the_versions() -> None:
    out = call(spark(), "nvidia-smi -q -d PERFORMANCE").out
    assert "\nDriver Version                                         : 580.159.04\n" in out
    assert "\nCUDA Version                                           : 13.0\n" in out
    assert "\nGPU 0000000F:01:00.0\n" in out


def test_topology_puts_a_gpu_beside_its_rail() -> None:
    lines = call(h20(), "nvidia-smi topo -m").out.splitlines()
    assert lines[0].startswith("\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\t")
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in lines[1:11]}
    assert rows["GPU0"][:6] == [" X ", "NV18", "NV18", "NV18", "PIX", "NODE"]
    assert rows["GPU3"][4:10] == ["SYS", "SYS", "NODE", "PIX", "NODE", "NODE"]
    assert rows["NIC5"] == ["SYS", "SYS", "NODE", "NODE", "SYS", "SYS", "NODE", "NODE", "NODE", " X "]
    assert lines[-2] == "  NIC5: mlx5_5"
    node = spark()
    assert call(node, "nvidia-smi topo -m").out.splitlines()[1].startswith("GPU0\t X \tNODE\tNODE\t")
    node.functions["enp1s0f0np0"].far = True
    assert "GPU0\t X \tSYS\tNODE\t" in call(node, "nvidia-smi topo -m").out


def logged() -> Node:
    node = spark()
    node.kernel_log = [*journal.boot(node, 1_000_000_000.25), *journal.out_of_memory(7, "python3", time.time(), "/system.slice/x.service")]
    return node


def test_journalctl_shows_the_kernels_log() -> None:
    lines = call(logged(), "journalctl -k -q --no-pager -o short-iso").out.splitlines()
    assert lines[0] == "2001-09-09T01:46:40+0000 spark01 kernel: Linux version 6.14.0-lab (stand-in of a fabrictool lab)"
    assert lines[-1].split(" kernel: ")[1].startswith("Out of memory: Killed process 7 (python3) ")
    recent = call(logged(), "journalctl -k -q --no-pager -o short-iso --since=-24hours").out.splitlines()
    assert len(recent) == 3
    assert "task_memcg=/system.slice/x.service,task=python3,pid=7" in recent[1]
    assert call(logged(), "journalctl -k -n 1 -o cat").out.startswith("Out of memory: ")
    assert json.loads(call(logged(), "journalctl -k -n 1 -o json").out)["_HOSTNAME"] == "spark01"
    assert call(spark(), "journalctl -k").out == "-- No entries --\n"
    assert call(spark(), "journalctl -k -q").out == ""
    as_user = call(logged(), "journalctl -k", root=False)
    assert as_user.out == "-- No entries --\n"
    assert as_user.err.startswith("Hint: ")


def test_dmesg_shows_the_same_lines() -> None:
    assert call(logged(), "dmesg --time-format iso").out.startswith("2001-09-09T01:46:40,250000+00:00 Linux version")
    assert call(logged(), "dmesg --time-format=notime").out.startswith("Linux version")
    assert call(logged(), "dmesg -T").out.startswith("[Sun Sep  9 01:46:40 2001] Linux version")
    assert call(logged(), "dmesg").out.splitlines()[-1].partition("] ")[2].startswith("Out of memory")
    denied = call(logged(), "dmesg", root=False)
    assert (denied.rc, denied.err) == (1, "dmesg: read kernel buffer failed: Operation not permitted\n")
    assert call(logged(), "dmesg --bogus").rc == 1


@pytest.mark.parametrize(("text", "want"), [
    ("-24hours", 13_600.0), ("-2h", 92_800.0), ("-1 day", 13_600.0), ("@5", 5.0), ("nonsense", 0.0), ("", 0.0)])
def test_since(text: str, want: float) -> None:
    assert since(text, 100_000.0) == want


def test_bridges_and_their_access_control() -> None:
    out = call(h20(), "lspci -D -vvv -d ::0604").out
    assert out.startswith("0000:40:01.0 PCI bridge: ")
    assert out.count("ACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- ") == 6
    assert "<access denied>" in call(h20(), "lspci -D -vvv -d ::0604", root=False).out
    assert call(spark(), "lspci -D -vvv -d ::0604").out == ""
    assert [line.split()[0] for line in call(spark(), "lspci -D -d 15b3:").out.splitlines()] == ["0000:01:00.0", "0002:01:00.0"]
    assert call(spark(), "lspci --bogus").rc == 1
