"""Stack dumps of jobs that really hung, and the same stacks as gdb and eu-stack print them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.system.phases import READINGS, SIGNS, Phase
from fabrictool.system.stacks import Dump, merged, parse, stand

CAPTURES = Path(__file__).resolve().parents[1] / "captures" / "stacks"
GDB = """\
[New LWP 720]
[Thread debugging using libthread_db enabled]
0x00007fe210298e51 in __futex_abstimed_wait_common () from /lib/x86_64-linux-gnu/libc.so.6

Thread 2 (Thread 0x7fe1167fe6c0 (LWP 718) "pt_nccl_watchdg"):
#0  0x00007fe210298e51 in ?? () from /lib/x86_64-linux-gnu/libc.so.6
#1  0x00007fe21029b9a4 in pthread_cond_timedwait () from /lib/x86_64-linux-gnu/libc.so.6
#2  0x00007fe1d0112233 in c10d::ProcessGroupNCCL::watchdogHandler() () from /opt/venv/lib/libtorch_cuda.so

Thread 1 (Thread 0x7fe2104b1740 (LWP 715) "python3"):
#0  0x00007fe210298e51 in ?? () from /lib/x86_64-linux-gnu/libc.so.6
#1  0x00007fe21029b9a4 in pthread_cond_timedwait () from /lib/x86_64-linux-gnu/libc.so.6
#2  0x00007fe1cf00aa11 in gloo::transport::tcp::Pair::waitUntilConnected(std::unique_lock<std::mutex>&, bool) () from /opt/libtorch.so
#3  0x00007fe1cf00ab22 in gloo::transport::tcp::Pair::connect(std::vector<char, std::allocator<char> > const&) () from /opt/libtorch.so
#4  0x00007fe1cf00ac33 in gloo::transport::tcp::Context::createAndConnectAllPairs(std::shared_ptr<gloo::IStore>) () from /opt/libtorch.so
#5  0x00007fe1cf00ad44 in gloo::rendezvous::Context::connectFullMesh(std::shared_ptr<gloo::Store>&) () from /opt/libtorch.so
#6  0x00005653643d94af in _start ()
[Inferior 1 (process 715) detached]
"""
EU = """\
PID 1207 - process
TID 1207:
#0  0x00007f0bd6b2a9d7 accept
#1  0x00007f0a1c0a1111 socketTryAccept(ncclSocket*)
#2  0x00007f0a1c0a2222 ncclSocketAccept(ncclSocket*, ncclSocket*)
#3  0x00007f0a1c0a3333 bootstrapInit(int, void**, ncclComm*, ncclComm*) - /opt/libnccl.so.2
#4  0x00007f0a1c0a4444 ncclCommInitRankFunc(ncclAsyncJob*) - /opt/libnccl.so.2
TID 1272:
#0  0x00007f0bd6b1d4cd __poll
"""


def capture(name: str) -> tuple[Dump, ...]:
    return parse((CAPTURES / f"{name}.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "phase", "frame"), [
    ("store-0-native", Phase.STORE, "waitForWorkers"), ("store-0-plain", Phase.STORE, "_create_c10d_store"),
    ("exchange-0-native", Phase.GLOO_EXCHANGE, "doWait"), ("exchange-0-plain", Phase.GROUP, "_new_process_group_helper"),
    ("exchange-1-native", Phase.OTHER, "clock_nanosleep"), ("exchange-1-plain", Phase.OTHER, "<module>"),
    ("loop-0-native", Phase.GLOO_CONNECT, "waitUntilConnected"), ("loop-0-plain", Phase.GROUP, "_new_process_group_helper"),
    ("ncclinit-0-native", Phase.NCCL_BOOTSTRAP, "socketTryAccept"), ("ncclinit-0-plain", Phase.CALL, "all_reduce"),
    ("ncclinit-1-native", Phase.OTHER, "clock_nanosleep"),
    ("data-0-native", Phase.DATA, "cuCtxSynchronize_v2"), ("data-0-plain", Phase.DATA, "synchronize"),
    ("data-1-native", Phase.OTHER, "clock_nanosleep"),
])
def test_jobs_that_really_hung(name: str, phase: Phase, frame: str) -> None:
    (dump,) = capture(name)
    got = stand(dump)
    assert (got.phase, got.frame.name if got.frame else "") == (phase, frame)
    assert dump.tool == "py-spy"
    assert dump.native == name.endswith("native")
    assert dump.pid is not None
    assert dump.command.startswith("python3 job.py")


@pytest.mark.parametrize("name", ["loop-1-native", "loop-1-plain", "loop-1-log", "ncclinit-0-log"])
def test_a_process_that_is_gone_has_no_stack(name: str) -> None:
    assert capture(name) == ()


def test_gdb_and_eu_stack() -> None:
    (gdb,) = parse(GDB)
    assert (gdb.tool, gdb.pid, len(gdb.threads)) == ("gdb", 715, 2)
    assert stand(gdb).phase is Phase.GLOO_CONNECT
    assert gdb.threads[1].frames[2].function == "Pair::waitUntilConnected"
    assert gdb.threads[1].frames[2].where == "/opt/libtorch.so"
    (eu,) = parse(EU)
    assert (eu.tool, eu.pid, len(eu.threads)) == ("eu-stack", 1207, 2)
    assert stand(eu).phase is Phase.NCCL_BOOTSTRAP
    both = parse(GDB + EU + (CAPTURES / "data-0-native.txt").read_text(encoding="utf-8"))
    assert [d.pid for d in both] == [715, 1207, 1541]
    assert [d.pid for d in parse(GDB.replace("[Inferior 1 (process 715) detached]\n", ""))] == [715]


def test_a_healthy_watchdog_or_proxy_thread_tells_nothing() -> None:
    text = GDB[:GDB.index("Thread 1 (")]
    (dump,) = parse(text)
    assert stand(dump).phase is Phase.OTHER


def stack(*functions: str, file: str = "") -> str:
    rows = "".join(f"    {f} ({file or 'libx.so'})\n" for f in functions)
    return f"Process 9: python3\nPython v3.12.3 (/usr/bin/python3.12)\n\nThread 9 (idle): \"MainThread\"\n{rows}"


@pytest.mark.parametrize(("functions", "file", "phase"), [
    (("ncclIbAccept", "ncclTransportP2pSetup", "ncclCommInitRankFunc"), "", Phase.NCCL_CONNECT),
    (("poll", "bootstrapRecv", "ncclTransportP2pSetup"), "", Phase.NCCL_CONNECT),
    (("bootstrapAllGather", "initTransportsRank", "ncclCommInitRankFunc"), "", Phase.NCCL_BOOTSTRAP),
    (("recv", "bootstrapRecv"), "", Phase.OTHER),  # RAS and proxies use the same functions
    (("cuMemcpy", "initTransportsRank", "ncclCommInitRankConfig"), "", Phase.NCCL_INIT),
    (("c10d::TCPStore::doWait", "c10d::ProcessGroupNCCL::broadcastUniqueNCCLID"), "", Phase.NCCL_ID),
    (("gloo::transport::tcp::UnboundBuffer::waitRecv", "gloo::allreduce"), "", Phase.GLOO_DATA),
    (("cudaStreamSynchronize",), "", Phase.DATA), (("ncclGroupEnd",), "", Phase.DATA),
    (("ncclGroupEndInternal", "ncclCommInitRankConfig"), "", Phase.NCCL_INIT),
    (("acquire_read", "dequeue"), "vllm/distributed/device_communicators/shm_broadcast.py:512", Phase.ENGINE),
    (("acquire_read",), "myown.py:1", Phase.OTHER),
    (("_wait_for_handshake",), "vllm/kv_connector/v1/nixl_connector.py:900", Phase.NIXL),
    (("barrier",), "torch/distributed/distributed_c10d.py:4000", Phase.CALL), (("barrier",), "threading.py:1", Phase.OTHER),
    (("synchronize",), "torch/cuda/streams.py:200", Phase.DATA), (("synchronize",), "app.py:2", Phase.OTHER),
    (("_store_based_barrier",), "torch/distributed/distributed_c10d.py:800", Phase.STORE),
])
def test_the_table(functions: tuple[str, ...], file: str, phase: Phase) -> None:
    (dump,) = parse(stack(*functions, file=file))
    assert stand(dump).phase is phase


def test_every_phase_has_a_reading() -> None:
    assert set(READINGS) == set(Phase)
    assert {s.phase for s in SIGNS} == set(Phase) - {Phase.OTHER, Phase.UNKNOWN}
    assert all(p.init <= p.waits for p in Phase)


def test_where_only_the_kernel_tells() -> None:
    (dump,) = parse("@task 1288 python3 inet_csk_accept 43\n@task 1289 pt_nccl_watchdg futex_do_wait 202\n")
    assert (dump.tool, dump.pid, len(dump.threads)) == ("kernel", 1288, 2)
    assert stand(dump).phase is Phase.UNKNOWN
    assert not dump.native


def test_of_two_dumps_the_native_one_counts() -> None:
    both = capture("ncclinit-0-native") + capture("ncclinit-0-plain") + capture("ncclinit-1-plain") + capture("ncclinit-1-native")
    assert [(d.pid, d.native) for d in merged(both)] == [(1207, True), (1208, True)]


WHOLE = "".join(p.read_text(encoding="utf-8") for p in sorted(CAPTURES.glob("*-native.txt"))) + GDB + EU


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(WHOLE)), st.integers(0, 0x10ff), st.text(max_size=200))
def test_any_text_is_read(at: int, char: int, text: str) -> None:
    known = {d.pid for d in parse(WHOLE)}
    for damaged in (WHOLE[:at], WHOLE[:at] + chr(char) + WHOLE[at + 1:], WHOLE.replace("\n", "\r\n"), text):
        for dump in parse(damaged):
            stand(dump)
    assert {d.pid for d in parse(WHOLE.replace("\n", "\r\n"))} == known
    assert {d.pid for d in parse(WHOLE[:at])} - known <= {None} | {int(str(p)[:n]) for p in known if p for n in range(1, 5)}


def test_hostile_lines() -> None:
    for part in ("    a<b<c(", "#1  0x1 in a::", "Thread 1 (Thread 0x1 (LWP ", "    x (y) (", "#0 ", "@task 1 a "):
        parse("Process 1: a\nThread 1 (idle): \"x\"\n" + part * 5000 + "\n" + "\n".join([part * 100] * 500))
