"""Each rule with a value that breaks it and one that does not."""

from __future__ import annotations

import pytest

from fabrictool.model import Code, Status
from fabrictool.snapshot import Captured
from tests.env.sample import CONF, DOCKER, RIGHT_CONF, RIGHT_DOCKER, RIGHT_ENV, Spark, bad, changed_env, gids_text, only
from tests.ports.sample import Node
from tests.specs import node_spec

NOT_OURS = node_spec(env={"consumers": []})  # nothing is written: what stands there is judged by the rules alone
L, I, G, D = Code.ENV_LINT, Code.ENV_NO_SUCH_INTERFACE, Code.GID_PINNED, Code.ENV_DEBUG_LEFT_ON
A = "enp1s0f0np0"


def crowded() -> Node:
    return Node().add("docker0", "172.17.0.1/16").add("enp1s0f0np0.100", "10.99.0.1/24").add("vxnoip")


@pytest.mark.parametrize(("text", "said"), [
    ("", "sets none of the variables that are looked at"), ("NCCL_ALGO=Ring\n", "1 variable"),
    ("NCCL_IB_TC={tc}\n", "only what the spec sets: 1 variable"),
    ("NCCL_IB_TC={tc}\nNCCL_ALGO=Ring\n", "1 variable beside what the spec sets"),
])
def test_a_file_that_breaks_no_rule_says_what_of_it_was_looked_at(text: str, said: str) -> None:
    node = Spark(files={CONF: text.format(tc=RIGHT_ENV["NCCL_IB_TC"])})
    assert [f.got for f in node.judge() if f.path == f"env.lint.{CONF}"] == [said]


@pytest.mark.parametrize(("line", "code", "healthy"), [
    (f"NCCL_SOCKET_IFNAME={A}", L, f"NCCL_SOCKET_IFNAME=={A}"),  # a prefix of its own VLAN
    ("NCCL_SOCKET_IFNAME==ens9", I, f"NCCL_SOCKET_IFNAME=={A}"),
    (f"NCCL_SOCKET_IFNAME=={A} ", I, f"NCCL_SOCKET_IFNAME=={A}"),
    (f"NCCL_SOCKET_IFNAME=={A}\r", I, f"NCCL_SOCKET_IFNAME=={A}"),
    ("NCCL_SOCKET_IFNAME=e", I, f"NCCL_SOCKET_IFNAME=={A}"),
    ("NCCL_SOCKET_IFNAME=^lo", L, f"NCCL_SOCKET_IFNAME=={A}"),
    ("NCCL_SOCKET_IFNAME==docker0", L, f"NCCL_SOCKET_IFNAME=={A}"),
    (f"NCCL_SOCKET_IFNAME==enP7s7,{A}", L, f"NCCL_SOCKET_IFNAME=={A}"),
    ("NCCL_IB_HCA=mlx5_9", I, "NCCL_IB_HCA==rocep1s0f0,roceP2p1s0f0"),
    ("NCCL_IB_HCA=rocep1s0f0", L, "NCCL_IB_HCA=rocep1s0f0:1,roceP2p1s0f0:1"),
    ("NCCL_IB_HCA==", I, "NCCL_IB_HCA=roce"[:-4] + "=rocep1s0f0,roceP2p1s0f0"),
    ("GLOO_SOCKET_IFNAME=^lo", I, f"GLOO_SOCKET_IFNAME={A}"),
    (f"GLOO_SOCKET_IFNAME=={A}", I, f"GLOO_SOCKET_IFNAME={A}"),
    ("GLOO_SOCKET_IFNAME=enp1s0f0", I, f"GLOO_SOCKET_IFNAME={A}"),
    ("TP_SOCKET_IFNAME=eth9", I, f"TP_SOCKET_IFNAME={A}"),
    (f"UCX_NET_DEVICES={A}", L, "UCX_NET_DEVICES=rocep1s0f0:1"),
    ("UCX_NET_DEVICES=rocep1s0f0", L, "UCX_NET_DEVICES=rocep1s0f0:1"),
    (f"UCX_NET_DEVICES=rocep1s0f0:1,{A}", L, "UCX_NET_DEVICES=all"),
    ("UCX_NET_DEVICES=mlx5_9:1", I, "UCX_NET_DEVICES=roceP2p1s0f0:1"),
    ("UCX_TLS=tcp,cuda_copy,sm,self", L, "UCX_TLS=rc,cuda_copy,cuda_ipc,sm,self"),
    ("UCX_TLS=rc,sm,self", L, "UCX_TLS=all"),
    ("UCX_TLS=^rc", L, "UCX_TLS=^tcp"),
    ("NCCL_NET=Socket", L, "NCCL_NET=IB"),
    ("NCCL_IB_DISABLE=1", L, "NCCL_IB_DISABLE=0"),
    ("NCCL_IB_RETRY_CNT=15", L, "NCCL_IB_RETRY_CNT=7"),
    ("NCCL_IB_TIMEOUT=40", L, "NCCL_IB_TIMEOUT=22"),
    ("NCCL_IB_TIMEOUT=25", L, "NCCL_IB_TIMEOUT=20"),
    ("NCCL_IB_TC=256", L, "NCCL_IB_TC=104"),
    ("NCCL_IB_RETRY_CNT=-1", L, "NCCL_IB_TC=-1"),
    ("NCCL_SOCKET_IFNAME==vxnoip", L, f"NCCL_SOCKET_IFNAME=={A}"),
    (f"NCCL_SOCKET_IFNAME=^=lo,docker0,{A}", L, "NCCL_SOCKET_IFNAME=^=lo,docker0"),
    ("GLOO_SOCKET_IFNAME=vxnoip", L, f"GLOO_SOCKET_IFNAME={A},enP2p1s0f0np0"),
    (f"GLOO_SOCKET_IFNAME={A},", I, f"GLOO_SOCKET_IFNAME={A}"),
    ("UCX_NET_DEVICES=", I, "UCX_NET_DEVICES=rocep1s0f0:1,roceP2p1s0f0:1"),
    ("NCCL_IB_TC=x", L, "NCCL_IB_TC=0x68"),
    ("NCCL_IB_QPS_PER_CONNECTION=0", L, "NCCL_IB_QPS_PER_CONNECTION=4"),
    ("NCCL_IB_GID_INDEX=3", G, "NCCL_IB_GID_INDEX=-1"),
    ("NCCL_IB_GID_INDEX=0", G, "NCCL_IB_GID_INDEX=-1"),
    ("NCCL_IB_GID_INDEX=", G, "NCCL_IB_GID_INDEX=-1"),
    ("NCCL_DEBUG=INFO", D, "NCCL_ALGO=Ring"),
    ("NCCL_DEBUG_SUBSYS=ALL", D, "NCCL_ALGO=Ring"),
    ("NCCL_ALGO = Ring", L, "NCCL_ALGO=Ring"),
    ("export NCCL_ALGO=Ring", L, "NCCL_ALGO=Ring"),
    ('NCCL_ALGO="Ring"', L, "NCCL_ALGO=Ring"),
    ("NCCL_ALGO=Ring ", L, "NCCL_ALGO=Ring"),
    ("NCCL_ALGO-=Ring", L, "NCCL_ALGO=Ring"),
    ("NCCL_ALGO=Ring\nNCCL_ALGO=Tree", L, "NCCL_ALGO=Ring\nNCCL_ALGO=Ring"),
])
def test_rules_of_nccl_conf(line: str, code: Code, healthy: str) -> None:
    broken = Spark(files={CONF: f"{line}\n"}, ports=crowded()).judge(NOT_OURS)
    hits = [f for f in broken if f.path.startswith(f"env.lint.{CONF}") and f.bad]
    assert [f.code for f in hits] == [code]
    assert hits[0].why
    assert hits[0].remedy
    assert not hits[0].steps
    fine = Spark(files={CONF: f"{healthy}\n"}, ports=crowded()).judge(NOT_OURS)
    assert [f for f in fine if f.path.startswith("env.lint.") and f.bad] == []
    assert any(f.path == f"env.lint.{CONF}" and f.status is Status.PASS for f in fine)


@pytest.mark.parametrize(("name", "bad_value", "good"), [
    ("MASTER_ADDR", "127.0.0.1", "10.10.1.3"), ("MASTER_ADDR", "localhost", "spark02"), ("VLLM_HOST_IP", "10.10.1.9", "10.10.1.1"),
    ("HOST_IP", "::1", "10.10.2.1"), ("VLLM_NIXL_SIDE_CHANNEL_HOST", "localhost", "0.0.0.0"),
])
def test_addresses(name: str, bad_value: str, good: str) -> None:
    text = "@ shell /root/.bashrc\na 3 {}={}\nend\n"
    found = Spark(places=text.format(name, bad_value)).judge(NOT_OURS)
    assert only(found, L).path == f"env.lint./root/.bashrc.{name}"
    assert bad(Spark(places=text.format(name, good)).judge(NOT_OURS)) == []


def test_one_node_may_use_loopback() -> None:
    places = "@ shell /root/.bashrc\na 3 MASTER_ADDR=127.0.0.1\nend\n"
    assert bad(Spark(places=places).judge(node_spec(env={}, nodes=["spark01"]))) == []


def test_gid_advice_names_the_entry() -> None:
    files = {CONF: "NCCL_IB_GID_INDEX=1\n"}
    f = only(Spark(files=files, gids=gids_text(5)).judge(NOT_OURS), G)
    assert "RoCE v2 fe80:" in f.why
    assert "right would be 5" in f.why
    right = only(Spark(files={CONF: "NCCL_IB_GID_INDEX=3\n"}).judge(NOT_OURS), G)
    assert "right today" in right.why
    unread = only(Spark(files=files, broken={"env.gids": Captured(0, "")}).judge(NOT_OURS), G)
    assert "cannot be read" in unread.why


def test_storage_devices_are_left_alone() -> None:
    node = Node().add("st0", "10.30.0.1/24", pci="0005:01:00.0", rdma="mlx5_4")
    want = node_spec(env={}, other_rdma=["mlx5_4"])
    f = only(Spark(files={CONF: "NCCL_IB_HCA=roce,mlx5\n"}, ports=node).judge(want), L)
    assert "mlx5_4" in f.why
    assert bad(Spark(files={CONF: "NCCL_IB_HCA=^mlx5_4\n"}, ports=node).judge(want)) == []


def test_prefix_that_takes_a_sibling() -> None:
    """The classic: mlx5_1 without = takes mlx5_10 too, also when the spec itself asks for plain names."""
    node = Node()
    node.add("e1", "10.10.3.1/24", pci="0004:01:00.0", rdma="rocep1s0f01")
    f = next(f for f in Spark(ports=node).judge() if f.path == "env.lint.spec.NCCL_IB_HCA")
    assert "rocep1s0f01" in f.why
    exact = Spark(ports=node).judge(node_spec(env=changed_env(hca_match="exact")))
    assert not any(f.path == "env.lint.spec.NCCL_IB_HCA" for f in exact)


def test_own_lines_that_apply_rewrites_are_warnings() -> None:
    files = {CONF: RIGHT_CONF.replace("rocep1s0f0,", "rocep9s9f9,"), DOCKER: RIGHT_DOCKER}
    found = Spark(files=files).judge()
    assert only(found, Code.ENV_FILE_DRIFT).steps
    ghost = only(found, I)
    assert ghost.status is Status.WARN
    assert "apply" in ghost.remedy
    pinned = only(Spark(files={CONF: RIGHT_CONF + "NCCL_IB_GID_INDEX=0\n", DOCKER: RIGHT_DOCKER}).judge(), G)
    assert pinned.status is Status.FAIL  # a line of someone else: apply leaves it


def test_what_cannot_be_read_is_unknown() -> None:
    spark = Spark(broken={"env.places": Captured(1, "", denied=True), "ports.ip": Captured(124, "")})
    found = spark.judge()
    assert {(f.path, f.code) for f in found if f.status is Status.UNKNOWN} >= {
        ("env.lint.places", Code.NEEDS_ROOT), ("env.override", Code.NEEDS_ROOT)}
    conf = Spark(files={CONF: f"NCCL_SOCKET_IFNAME=={A}\n"}, broken={"ports.ip": Captured(124, "")}).judge(NOT_OURS)
    assert [(f.status, f.code) for f in conf if f.path.endswith("NCCL_SOCKET_IFNAME")] == [(Status.UNKNOWN, Code.TOOL_TIMEOUT)]


def test_debug_in_the_spec_is_a_warning() -> None:
    found = Spark().judge(node_spec(env=changed_env(set={"NCCL_DEBUG": "INFO"}, consumers=[])))
    assert [f.status for f in found if f.code is D] == [Status.WARN]


@pytest.mark.parametrize(("place", "write", "status"), [
    ("@ conf /root/.nccl.conf\na 1 NCCL_IB_TC=0", ["nccl_conf"], Status.FAIL),
    ("@ pam /etc/environment\na 1 NCCL_IB_TC=0", ["nccl_conf"], Status.FAIL),
    ("@ pam /etc/environment\na 1 NCCL_IB_TC=0", ["docker_env"], Status.WARN),
    ("@ shell /etc/profile.d/zz.sh\na 1 NCCL_IB_TC=0", ["profile_d"], Status.FAIL),
    ("@ shell /etc/profile.d/aa.sh\na 1 NCCL_IB_TC=0", ["profile_d"], Status.WARN),
    ("@ unit /etc/systemd/system/x.service.d/90-a.conf\na 2 \"NCCL_IB_TC=0\"", ["systemd:x"], Status.FAIL),
    ("@ envfile /etc/default/x\na 2 NCCL_IB_TC=0", ["systemd:x"], Status.FAIL),
])
def test_other_places(place: str, write: list[str], status: Status) -> None:
    want = node_spec(env=changed_env(write=write, consumers=[]))
    found = Spark(places=f"{place}\nend\n").judge(want)
    f = only(found, Code.ENV_OVERRIDE)
    assert f.status is status
    assert "NCCL_IB_TC=0" in f.got
    same = Spark(places=place.replace("TC=0", "TC=104") + "\nend\n").judge(want)
    assert not any(f.code is Code.ENV_OVERRIDE and f.bad for f in same)


def test_our_drop_in_wins_over_the_unit_itself() -> None:
    want = node_spec(env=changed_env(write=["systemd:x"], consumers=[]))
    for path in ("/usr/lib/systemd/system/x.service", "/etc/systemd/system/x.service.d/10-a.conf"):
        found = Spark(places=f"@ unit {path}\na 2 NCCL_IB_TC=0\nend\n").judge(want)
        assert any(f.code is Code.ENV_OVERRIDE and f.status is Status.PASS for f in found)


def test_denied_place_is_unknown() -> None:
    found = Spark(places="! /root/.nccl.conf\nend\n").judge()
    assert [(f.status, f.path) for f in found if f.code is Code.NEEDS_ROOT] == [(Status.UNKNOWN, "env.override./root/.nccl.conf")]


@pytest.mark.parametrize(("value", "gpu", "status"), [
    ("sm_121a", "12.1, NVIDIA GB10", Status.PASS), ("sm_100a", "12.1, NVIDIA GB10", Status.FAIL),
    ("sm_90a", "9.0, NVIDIA H20", Status.PASS),
    ("sm_121", "12.1, NVIDIA GB10", Status.WARN), ("12.1", "12.1, NVIDIA GB10", Status.FAIL),
    ("sm_90a", "9.0, NVIDIA H20\n12.1, NVIDIA GB10", Status.FAIL),
])
def test_cuda_arch(value: str, gpu: str, status: Status) -> None:
    want = node_spec(env=changed_env(set={"CUTE_DSL_ARCH": value}, consumers=[]))
    found = Spark(gpu=Captured(0, f"{gpu}\nend\n")).judge(want)
    assert [f.status for f in found if f.code is Code.ENV_CUDA_ARCH] == [status]


@pytest.mark.parametrize(("gpu", "code"), [
    (Captured(127, "", "sh: nvidia-smi: not found"), Code.TOOL_MISSING), (Captured(124, ""), Code.TOOL_TIMEOUT),
    (Captured(2, 'Field "compute_cap" is not a valid field to query.\n'), Code.UNREADABLE),
    (Captured(0, "[N/A], x\nend\n"), Code.UNREADABLE),
])
def test_no_gpu_answer_is_unknown_only_if_asked(gpu: Captured, code: Code) -> None:
    assert [f.code for f in Spark(gpu=gpu).judge() if f.bad] == [code]
    found = Spark(gpu=gpu, files={}).judge(node_spec(env={}))
    assert bad(found) == []
