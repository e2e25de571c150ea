"""What pasted text is: one kind for each tool, whatever is wrapped around it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fabrictool.snapshot.sniff import Input, Kind, Refused, decode, sniff

CAPTURES = Path(__file__).resolve().parents[1] / "captures"


def kinds(text: str, name: str = "paste") -> list[Kind]:
    return [p.kind for p in sniff(Input(name, text))]


def block(command: str) -> str:
    """One command of the capture of mlnx_qos, as it was printed."""
    text = (CAPTURES / "mlnx_qos" / "26.04.txt").read_text()
    return text.split(f"$ {command}\n", 1)[1].split("[rc=", 1)[0]


QOS = block("mlnx_qos -i eth1 -f 0,0,0,1,0,0,0,0")
HOSTS = "127.0.0.1 localhost\n127.0.1.1 spark01\n10.10.1.11 spark01 spark01.lan\n"
PFC = '{"pfc_cap":8,"prio_pfc":[false,false,false,true,false,false,false,false]}\n'


@pytest.mark.parametrize(("capture", "kind"), [
    ("nccl-tests/socket.txt", Kind.NCCL_TESTS), ("nccl-tests/mpi_tagged.txt", Kind.NCCL_TESTS), ("nccl-tests/help.txt", Kind.NCCL_TESTS),
    ("nccl-tests/badarg.txt", Kind.NCCL_TESTS), ("nccl-tests/two.json", Kind.NCCL_TESTS_JSON),
    ("rdma/ibv_devinfo-v.txt", Kind.IBV_DEVINFO), ("rdma/rdma-link.json.txt", Kind.RDMA_LINK), ("ports/ip.json.txt", Kind.IP_JSON),
])
def test_a_capture_is_one_piece(capture: str, kind: Kind) -> None:
    (piece,) = sniff(Input(capture, (CAPTURES / capture).read_text()))
    assert piece.kind is kind
    assert piece.first_line in (1, 2)


@pytest.mark.parametrize(("text", "kind"), [
    ("vm:12:13 [0] NCCL INFO Using network Socket\n", Kind.NCCL_LOG),
    ("NCCL version 2.28.9+cuda13.0\n", Kind.NCCL_LOG),
    (PFC, Kind.DCB), ('{"dscp_prio":[[26,3]]}\n', Kind.DCB), ('{"host":true,"ieee":true}\n', Kind.DCB),
    ("DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\n"
     "n_gids_found=0\n", Kind.SHOW_GIDS),
    ("mlx5_0 port 1 ==> eth1 (Up)\n", Kind.IBDEV2NETDEV),
    ("link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth1 \n", Kind.RDMA_LINK),
    ("2: eth1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP\n    inet 10.0.0.1/24 scope global eth1\n", Kind.IP_TEXT),
    ("lo               UNKNOWN        127.0.0.1/8 ::1/128 \neth1             UP             10.0.0.1/24 \n", Kind.IP_TEXT),
    ("NIC statistics:\n     rx_packets: 1\n", Kind.ETHTOOL_STATS), ("     rx_discards_phy: 12\n", Kind.ETHTOOL_STATS),
    ("Pause parameters for eth1:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\ton\n", Kind.ETHTOOL_PAUSE),
    ("Settings for eth1:\n\tSpeed: 200000Mb/s\n", Kind.ETHTOOL),
    ("State    Recv-Q Send-Q Local Address:Port Peer Address:Port Process\nSYN-SENT 0 1 10.0.0.1:40000 10.0.0.2:50000\n", Kind.SOCKETS),
    (HOSTS, Kind.HOSTS), ("NCCL_DEBUG=INFO\nNCCL_IB_TC=104\n", Kind.ENV), ("export GLOO_SOCKET_IFNAME=eth0\n", Kind.ENV),
    ('[Service]\nEnvironment="NCCL_IB_TC=104"\n', Kind.ENV),
    ("network:\n  version: 2\n  ethernets:\n    eth1: {mtu: 9000}\n", Kind.NETPLAN),
    ("[connection]\nid=rail\ntype=ethernet\n\n[ethernet]\nmtu=9000\n", Kind.NM_KEYFILE),
    ("[Match]\nName=eth1\n\n[Link]\nMTUBytes=9000\n", Kind.NETWORKD),
    ("[   12.345678] mlx5_core 0000:01:00.0 eth1: Link down\n", Kind.KERNEL),
    ("[Sun Nov 29 18:09:47 2026] NVRM: Xid (PCI:0000:01:00): 79, pid=1\n", Kind.KERNEL),
    ("Nov 29 18:09:47 spark01 kernel: Out of memory: Killed process 1 (python3)\n", Kind.KERNEL),
    ("Process 123: python3 train.py\nPython v3.12.3 (/usr/bin/python3.12)\n\nThread 123 (idle): \"MainThread\"\n"
     "    wait (threading.py:1)\n", Kind.PY_SPY),
    ("Thread 1 (Thread 0x7f00 (LWP 1)):\n#0  0x00007f in poll () from libc.so.6\n#1  0x00007e in ncclSocketAccept ()\n", Kind.GDB),
    ("[1795978561.435550] [vm1:531  :0]      ucp_worker.c:1763 UCX  INFO    ep_cfg[1]: tag(rc_verbs/rxe0:1)\n", Kind.UCX),
    ("INFO 11-29 KV Transfer metrics: Num successful transfers=3\n", Kind.UCX),
    ("# Memory domain: tcp\n#     Component: tcp\n#      Transport: tcp\n#         Device: eth1\n", Kind.UCX_INFO),
    (" Unable to find the Infiniband/RoCE device\n", Kind.PERFTEST),
    ("Timeout (0:00:12)!\nThread 0x00007f7494d09140 (most recent call first):\n  File \"/x.py\", line 1 in wait\n", Kind.FAULTHANDLER),
    ("fabrictool-allreduce: rank 0 on spark01: starting\n", Kind.ALLREDUCE),
    ('{"algbw_gbytes_per_s": 3.3061, "busbw_gbytes_per_s": 3.3061, "fabrictool": "allreduce"}\n', Kind.ALLREDUCE),
    ('{\n  "ranks": 2,\n  "fabrictool": "allreduce"\n}\n', Kind.ALLREDUCE),
    ("RuntimeError: Gloo connectFullMesh failed with [pair.cc:1] timed out connecting: SO_ERROR: Connection refused\n", Kind.PROGRAM),
    ("Dear all,\nthe job hangs since this morning.\n", Kind.UNKNOWN),
])
def test_text_without_a_prompt(text: str, kind: Kind) -> None:
    assert kinds(text) == [kind]


@pytest.mark.parametrize(("command", "answer", "kind", "host"), [
    ("admin@spark01:~$ dcb -j app show dev eth1", "{}", Kind.DCB, "spark01"),
    ("root@spark01:/etc# cat /etc/nccl.conf", "FOO=1", Kind.ENV, "spark01"),
    ("[root@gpu01 ~]# rdma -j link", "[]", Kind.RDMA_LINK, "gpu01"),
    ("# mlnx_qos -i eth1", "mlnx_qos: command not found", Kind.MLNX_QOS, ""),
    ("$ sudo ethtool -S eth1", "no stats available", Kind.ETHTOOL_STATS, ""),
    ("$ cat /etc/hosts", "# nothing but a comment", Kind.HOSTS, ""),
])
def test_a_prompt_tells_what_follows(command: str, answer: str, kind: Kind, host: str) -> None:
    (piece,) = sniff(Input("paste", f"{command}\n{answer}\n"))
    assert (piece.kind, piece.host, piece.first_line) == (kind, host, 2)


def test_several_tools_in_one_paste() -> None:
    text = f"Hello,\n\n```\n$ mlnx_qos -i eth1\n{QOS}$ cat /etc/hosts\n{HOSTS}```\nand\n{PFC}vm:1:2 [0] NCCL INFO Using network IB\n"
    assert kinds(text) == [Kind.UNKNOWN, Kind.MLNX_QOS, Kind.HOSTS, Kind.UNKNOWN, Kind.DCB, Kind.NCCL_LOG]
    assert kinds(QOS + QOS) == [Kind.MLNX_QOS] * 2
    assert kinds(QOS + HOSTS + QOS) == [Kind.MLNX_QOS, Kind.HOSTS, Kind.MLNX_QOS]


def test_logs_that_interleave_are_one_piece_each() -> None:
    lines = ["vm:1:2 [0] NCCL INFO a", "[   12.345678] mlx5_core: x", "vm:1:2 [0] NCCL INFO b", "[   12.345679] mlx5_core: y"]
    found = sniff(Input("paste", "\n".join(lines)))
    assert [(p.kind, [ln.number for ln in p.lines]) for p in found] == [(Kind.NCCL_LOG, [1, 3]), (Kind.KERNEL, [2, 4])]


def test_exit_status_and_stderr_belong_to_the_piece() -> None:
    text = "$ mlnx_qos -i lo\nPriority trust state is not supported on your system\n[stderr]\nTraceback\n[rc=1]\n"
    (piece,) = sniff(Input("paste", text))
    assert (piece.rc, [ln.text for ln in piece.errors], len(piece.lines)) == (1, ["Traceback"], 1)


def test_a_file_name_tells_what_is_in_it() -> None:
    assert kinds("A=1\n", "/tmp/x/nccl.conf") == [Kind.ENV]
    assert kinds("# empty\n", "hosts") == [Kind.HOSTS]
    assert kinds("A=1\n", "notes") == [Kind.UNKNOWN]


@pytest.mark.parametrize(("data", "said"), [
    (b"\x7fELF\0\0\0\1" * 50, "binary"), (b"BZh91AY", "bzip2"), (b"PK\x03\x04", "zip"), (b"\0" * 257 + b"ustar", "tar archive"),
    (gzip.compress(b"x" * 257 + b"ustar", mtime=0), "tar archive"), (b"\x1f\x8b\x08broken", "gzip"),
])
def test_what_is_no_text_says_why(data: bytes, said: str) -> None:
    got = decode("f", data)
    assert isinstance(got, Refused)
    assert said in got.why


def test_encodings_and_gzip() -> None:
    for data in (QOS.encode(), gzip.compress(QOS.encode()), gzip.compress(gzip.compress(QOS.encode())), QOS.encode("utf-16"),
                 b"\xef\xbb\xbf" + QOS.encode(), gzip.compress(b"") + gzip.compress(QOS.encode())):
        got = decode("f", data)
        assert isinstance(got, Input)
        assert got.text == QOS
    cut = decode("f", gzip.compress(QOS.encode() * 50)[:-9])
    assert isinstance(cut, Input)
    assert "cut short" in cut.notes[0]
    environ = decode("environ", b"NCCL_DEBUG=INFO\0PATH=/bin\0")
    assert isinstance(environ, Input)
    assert kinds(environ.text, "environ") == [Kind.ENV]


def test_a_bomb_is_read_to_the_limit_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fabrictool.snapshot.sniff.unpack.MAX_BYTES", 100_000)
    got = decode("f", gzip.compress(b"a b\n" * 10_000_000))
    assert isinstance(got, Input)
    assert len(got.text) == 100_000
    assert got.notes


def test_too_many_lines_are_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fabrictool.snapshot.sniff.unpack.MAX_LINES", 10)
    got = decode("f", b"x\n" * 50)
    assert isinstance(got, Input)
    assert (got.text.count("\n"), len(got.notes)) == (9, 1)
