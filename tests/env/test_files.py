"""Derived variables and the files that hold them."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from fabrictool import ports
from fabrictool.env.derive import desired
from fabrictool.env.judge import ASPECTS
from fabrictool.model import Code, Run, Status
from fabrictool.snapshot import Captured
from tests.env.sample import CONF, DOCKER, PROFILE, RIGHT_CONF, RIGHT_DOCKER, RIGHT_ENV, Spark, bad, changed_env, only, written
from tests.ports.sample import Node
from tests.specs import SPARK, node_spec


def test_healthy_node_has_nothing() -> None:
    found = Spark().judge()
    assert bad(found) == []
    assert {f.aspect for f in found if f.status is Status.PASS} >= {"nccl_conf", "docker_env", "lint", "consumers"}
    assert {f.aspect for f in found if f.status is Status.SKIP} >= {"profile_d", "systemd"}
    assert len({f.id for f in found}) == len(found)


def test_derived() -> None:
    got = desired(node_spec(), ports.read(Node().snapshot()))
    assert got.blocked is None
    assert dict(got.variables) == RIGHT_ENV
    assert list(got.variables) == sorted(got.variables)


def test_exact_match_and_many_functions() -> None:
    got = desired(node_spec(env=changed_env(hca_match="exact")), ports.read(Node().snapshot()))
    assert got.variables["NCCL_IB_HCA"] == "=rocep1s0f0,roceP2p1s0f0"


def test_names_come_from_the_node() -> None:
    by_mac = [{"rail": "a", "mac": "fc:6a:1c:ab:cd:01"}, {"rail": "b", "mac": "FC:6A:1C:AB:CD:02"}]
    want = node_spec(ports={"p0": {"functions": by_mac}})
    assert desired(want, ports.read(Node().snapshot())).variables["NCCL_IB_HCA"] == "rocep1s0f0,roceP2p1s0f0"


@pytest.mark.parametrize("change", [
    lambda n: n.rdma.pop("roceP2p1s0f0"), lambda n: n.remove("enp1s0f0np0"),
    lambda n: n.netdevs["enp1s0f0np0"].update(addr_info=[]), lambda n: n.sections.update({"ports.ip": Captured(124, "")}),
    lambda n: n.sections.update({"ports.rdma": Captured(0, "")}),
])
def test_what_is_not_known_blocks_every_write(change: Any) -> None:
    spark = Spark(files={})
    change(spark.ports)
    found = spark.judge()
    mine = [f for f in found if f.aspect in ("nccl_conf", "docker_env")]
    assert [f.status for f in mine] == [Status.UNKNOWN, Status.UNKNOWN]
    assert not any(f.steps for f in found)
    assert len([f for f in Spark(files={}).judge() if f.steps]) == 2


def test_no_bootstrap_no_socket_variables() -> None:
    env = changed_env(set={})
    got = desired(node_spec(bootstrap=None, env=env), ports.read(Node().snapshot()))
    assert sorted(got.variables) == ["NCCL_IB_HCA", "NCCL_IB_TC", "UCX_NET_DEVICES"]


@pytest.mark.parametrize(("name", "value", "code"), [
    ("NCCL_IB_GID_INDEX", 3, Code.GID_PINNED), ("NCCL_IB_HCA", "mlx5_0", Code.ENV_LINT),
    ("VLLM_HOST_IP", "{bootstrap.adress}", Code.ENV_LINT),
    ("NCCL_X", "a\nb", Code.BLOCKED),
])
def test_a_bad_set_is_not_written(name: str, value: object, code: Code) -> None:
    found = Spark(files={}).judge(node_spec(env=changed_env(set={name: value})))
    assert any(f.code is code and f.bad for f in found)
    assert not any(f.steps for f in found)
    assert not any(name + "=" in getattr(s, "text", "") for f in found for s in f.steps)


def test_placeholders() -> None:
    env = changed_env(set={"A_X": "{node}/{bootstrap.interface}/{bootstrap.address}", "B_X": '{"json": 1}'})
    got = desired(node_spec(env=env), ports.read(Node().snapshot())).variables
    assert got["A_X"] == "spark01/enp1s0f0np0/10.10.1.1"
    assert got["B_X"] == '{"json": 1}'


def test_absent_files_are_written_whole() -> None:
    found = Spark(files={}).judge()
    steps = {f.aspect: written(f) for f in found if f.code is Code.ENV_FILE_DRIFT and f.steps}
    assert steps["nccl_conf"].text == RIGHT_CONF
    assert steps["docker_env"].text == RIGHT_DOCKER
    assert {s.before for s in steps.values()} == {""}
    assert {s.mode for s in steps.values()} == {0o644}


def test_drift_shows_both_sides_and_keeps_foreign_lines() -> None:
    text = "# site\nNCCL_IB_TC=0\nNCCL_MIN_NCHANNELS=8\nNCCL_IB_TC=1\n"
    f = only(Spark(files={CONF: text, DOCKER: RIGHT_DOCKER}).judge(), Code.ENV_FILE_DRIFT)
    step = written(f)
    assert step.text.startswith("# site\nNCCL_IB_TC=104\nNCCL_MIN_NCHANNELS=8\nNCCL_IB_HCA=")
    assert step.before == hashlib.sha256(text.encode()).hexdigest()
    assert "NCCL_IB_TC=0" in f.got
    assert "NCCL_IB_TC=104" in f.want
    assert "NCCL_MIN_NCHANNELS" not in f.got


@pytest.mark.parametrize(("spark", "word"), [
    (Spark(files={CONF: RIGHT_CONF.replace("\n", "\r\n"), DOCKER: RIGHT_DOCKER}), "Windows"),
    (Spark(modes={CONF: 0o600}), "spec"),
])
def test_line_ends_and_mode(spark: Spark, word: str) -> None:
    f = only(spark.judge(), Code.ENV_FILE_DRIFT)
    assert word in f.why
    assert written(f).text == RIGHT_CONF


def test_apply_then_judge_is_clean() -> None:
    spark = Spark(files={CONF: "NCCL_IB_TC = 3\r\nexport NCCL_IB_HCA=x\n", DOCKER: "junk"})
    for f in spark.judge():
        if f.steps:
            spark.files[written(f).path] = written(f).text
    assert [x for x in bad(spark.judge()) if x[0] == Status.FAIL] == []


def test_unreadable_file_is_unknown() -> None:
    spark = Spark(files={DOCKER: RIGHT_DOCKER}, denied=(CONF,))
    f = next(f for f in spark.judge() if f.path == "env.nccl_conf")
    assert (f.status, f.code) == (Status.UNKNOWN, Code.NEEDS_ROOT)
    assert not f.steps


def test_profile_and_systemd() -> None:
    want = node_spec(env=changed_env(write=["profile_d", "systemd:vllm"]))
    spark = Spark(files={})
    found = [f for f in spark.judge(want) if f.steps]
    assert [f.path for f in found] == ["env.profile_d", "env.systemd.vllm.service"]
    assert "export NCCL_IB_TC=104\n" in written(found[0]).text
    assert written(found[1]).path == "/etc/systemd/system/vllm.service.d/50-fabrictool.conf"
    assert '[Service]\n' in written(found[1]).text
    assert 'Environment="NCCL_SOCKET_IFNAME==enp1s0f0np0"\n' in written(found[1]).text
    assert found[1].steps[1] == Run(("systemctl", "daemon-reload"), 60)
    assert not any("restart" in " ".join(s.argv) for f in found for s in f.steps if isinstance(s, Run))
    spark.files = {written(f).path: written(f).text for f in found}
    assert PROFILE in spark.files
    assert [f for f in spark.judge(want) if f.aspect in ASPECTS and f.bad] == []
    spark.units = spark.units.replace("NeedDaemonReload=no", "NeedDaemonReload=yes", 1)
    again = only(spark.judge(want), Code.ENV_FILE_DRIFT)
    assert again.steps == (Run(("systemctl", "daemon-reload"), 60),)
    spark.broken = {"env.units": Captured(127, "", "systemctl: not found")}
    assert (next(f for f in spark.judge(want) if f.path.endswith(".loaded"))).code is Code.TOOL_MISSING


def test_secrets_are_not_shown() -> None:
    env = changed_env(set={"HF_TOKEN": "hf_verysecret"})
    found = Spark().judge(node_spec(env=env))
    assert not any("hf_verysecret" in f"{f.got} {f.want} {f.why}" for f in found)
    warned = next(f for f in found if f.path == "env.lint.spec.HF_TOKEN")
    assert warned.status is Status.WARN
    assert not any(f.path == "env.lint.spec.HF_TOKEN" for f in Spark().judge())


def test_nothing_asked_is_skip() -> None:
    found = Spark(files={}).judge(node_spec(env={}))
    assert [f.status for f in found if f.aspect in ASPECTS] == [Status.SKIP] * 4
    assert not any(f.steps for f in found)
    assert SPARK["env"]["write"] == ["nccl_conf", "docker_env"]
