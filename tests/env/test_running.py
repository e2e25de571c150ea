"""Running consumers: restart, override, GID, and the parser of their section."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Code, Reason, Status, Unreadable, Value
from fabrictool.snapshot import Captured, Snapshot, consumers
from tests.env.sample import BOX, CONF, RIGHT_CONF, RIGHT_ENV, Box, Spark, bad, changed_env, consumers_text, gids_text, only
from tests.specs import node_spec

OLD = ("/opt/nccl/libnccl.so.2.18.3",)


def without(*names: str) -> dict[str, str]:
    return {n: v for n, v in RIGHT_ENV.items() if n not in names}


def test_started_before_the_file_needs_a_restart() -> None:
    box = Box(env={**RIGHT_ENV, "NCCL_IB_TC": "0"}, created="2023-11-15T00:00:00Z")
    f = only(Spark(consumers=consumers_text(box)).judge(), Code.ENV_RESTART_NEEDED)
    assert f.status is Status.WARN
    assert (f.got, f.want) == ("NCCL_IB_TC=0", "NCCL_IB_TC=104")
    assert "docker restart" in f.remedy
    assert not f.steps


def test_started_after_it_something_overrides() -> None:
    f = only(Spark(consumers=consumers_text(Box(env={**RIGHT_ENV, "NCCL_IB_TC": "0"}))).judge(), Code.ENV_OVERRIDE)
    assert f.status is Status.FAIL
    assert f.got == "NCCL_IB_TC=0"


def test_unset_is_a_difference_and_conf_inside_counts() -> None:
    env = without(*(n for n in RIGHT_ENV if n.startswith("NCCL_")))
    plain = only(Spark(consumers=consumers_text(Box(env=env))).judge(), Code.ENV_RESTART_NEEDED)
    assert "NCCL_IB_HCA unset" in plain.got
    assert bad(Spark(consumers=consumers_text(Box(env=env, conf=RIGHT_CONF))).judge()) == []
    newer = Box(env=env, conf=RIGHT_CONF, conf_mtime=1_700_060_000)  # written after the process had read it
    assert only(Spark(consumers=consumers_text(newer)).judge(), Code.ENV_RESTART_NEEDED)


def test_ranks_count_not_their_parents() -> None:
    rank = ["p 4002 4001 5160000 " + BOX + " -", *(f"e {n}={v}" for n, v in RIGHT_ENV.items()), "n 30", "l /x/libnccl.so.2.27.3"]
    parent = Box(env={}, libraries=())
    assert bad(Spark(consumers=consumers_text(parent, more=tuple(rank))).judge()) == []
    rank[rank.index("e NCCL_IB_TC=104")] = "e NCCL_IB_TC=0"
    assert only(Spark(consumers=consumers_text(parent, more=tuple(rank))).judge(), Code.ENV_OVERRIDE)


@pytest.mark.parametrize("wrong", [0, 1])
def test_every_rank_counts(wrong: int) -> None:
    lines = []
    for i in range(2):
        env = {**RIGHT_ENV, **({"NCCL_IB_TC": "7"} if i == wrong else {})}
        lines += [f"p {5000 + i} 4001 5160000 {BOX} -", *(f"e {n}={v}" for n, v in env.items()), "n 30", "l /x/libnccl.so.2.27.3"]
    spark = Spark(consumers=consumers_text(Box(env={}, libraries=()), more=tuple(lines)))
    assert only(spark.judge(), Code.ENV_OVERRIDE).got == "NCCL_IB_TC=7"
    right = Spark(consumers=consumers_text(Box(env={}, libraries=()), more=tuple(x.replace("=7", "=104") for x in lines)))
    assert bad(right.judge()) == []


def test_a_container_without_a_process_is_unknown() -> None:
    text = consumers_text(Box())
    dead = text[:text.index("p 4001")] + "end\n"
    found = Spark(consumers=dead).judge()
    assert [(f.status, f.path) for f in found if f.bad] == [(Status.UNKNOWN, "env.running.docker:vllm-a")]


def test_an_empty_environment_was_overwritten() -> None:
    text = consumers_text(Box(env={}, libraries=())).replace("n 20", "n 0")
    f = next(f for f in Spark(consumers=text).judge() if f.bad)
    assert (f.status, f.path) == (Status.UNKNOWN, "env.running.docker:vllm-a")
    assert "overwritten" in f.why
    none = next(f for f in Spark(consumers=consumers_text(Box(env=None))).judge() if f.bad)
    assert "could not be read" in none.why


def test_none_running_is_evidence_and_no_docker_is_not() -> None:
    none = Spark(consumers=consumers_text()).judge()
    assert bad(none) == []
    assert any(f.code is Code.ENV_RESTART_NEEDED and f.status is Status.PASS for f in none)
    other = Spark(consumers=consumers_text(Box(name="db"))).judge()
    assert bad(other) == []
    assert bad(Spark(consumers=consumers_text(docker="docker absent 0 -")).judge()) == []


@pytest.mark.parametrize(("docker", "code"), [
    ("docker failed 1 permission denied", Code.UNREADABLE), ("docker failed 124 ", Code.TOOL_TIMEOUT),
    ("docker failed 127 docker runs here, but there is no docker command on PATH", Code.TOOL_MISSING),
])
def test_docker_that_does_not_answer_is_unknown(docker: str, code: Code) -> None:
    found = Spark(consumers=consumers_text(docker=docker)).judge()
    assert [(f.status, f.code) for f in found if f.bad] == [(Status.UNKNOWN, code)]


def test_needs_root_is_unknown() -> None:
    found = Spark(broken={"consumers": Captured(1, "", denied=True)}).judge()
    assert [(f.status, f.code) for f in found if f.bad] == [(Status.UNKNOWN, Code.NEEDS_ROOT)]


def test_overwritten_environment_is_unknown() -> None:
    found = Spark(consumers=consumers_text(Box(env=None))).judge()
    assert [(f.status, f.path) for f in found if f.bad] == [(Status.UNKNOWN, "env.running.docker:vllm-a")]


def test_old_nccl_has_no_automatic_gid() -> None:
    f = only(Spark(consumers=consumers_text(Box(libraries=OLD)), gids=gids_text(5)).judge(), Code.GID_NOT_AUTOMATIC)
    assert f.status is Status.FAIL
    assert "NCCL_IB_GID_INDEX=5" in f.want
    wrong = Box(libraries=OLD, env={**RIGHT_ENV, "NCCL_IB_GID_INDEX": "0"})
    assert only(Spark(consumers=consumers_text(wrong)).judge(), Code.GID_NOT_AUTOMATIC).got == "NCCL 2.18.3, NCCL_IB_GID_INDEX=0"
    right = Box(libraries=OLD, env={**RIGHT_ENV, "NCCL_IB_GID_INDEX": "3"})
    assert bad(Spark(consumers=consumers_text(right)).judge()) == []
    new = Box(env={**RIGHT_ENV, "NCCL_IB_GID_INDEX": "3"})
    assert only(Spark(consumers=consumers_text(new)).judge(), Code.GID_PINNED)


def test_an_index_must_fit_every_device() -> None:
    """The second device's IPv4 entry stands elsewhere: one index cannot serve both."""
    at = "/sys/class/infiniband/roceP2p1s0f0/ports/1"
    moved = gids_text(3).replace(f"{at}/gids/3:", f"{at}/gids/5:").replace(f"{at}/gid_attrs/types/3:", f"{at}/gid_attrs/types/5:")
    box = Box(libraries=OLD, env={**RIGHT_ENV, "NCCL_IB_GID_INDEX": "3"})
    f = only(Spark(consumers=consumers_text(box), gids=moved).judge(), Code.GID_NOT_AUTOMATIC)
    assert "rocep1s0f0: 3, roceP2p1s0f0: 5" in f.want
    assert bad(Spark(consumers=consumers_text(box)).judge()) == []


def test_version_from_wheel_or_not_at_all() -> None:
    wheel = "/usr/lib/python3/dist-packages/nvidia/nccl/lib/libnccl.so.2"
    assert bad(Spark(consumers=consumers_text(Box(libraries=(wheel,), versions=("2.27.3",)))).judge()) == []
    found = Spark(consumers=consumers_text(Box(libraries=(wheel,)))).judge()
    assert [(f.status, f.path) for f in found if f.bad] == [(Status.UNKNOWN, "env.running.docker:vllm-a.gid")]
    none = Spark(consumers=consumers_text(Box(libraries=()))).judge()
    assert [f.status for f in none if f.code is Code.GID_NOT_AUTOMATIC] == [Status.SKIP]


def test_what_runs_is_linted_too() -> None:
    env = {**RIGHT_ENV, "UCX_TLS": "tcp,cuda_copy", "NCCL_DEBUG": "INFO"}
    f = only(Spark(consumers=consumers_text(Box(env=env))).judge(), Code.ENV_LINT)
    assert f.path == "env.lint.docker:vllm-a.UCX_TLS"


def test_services() -> None:
    want = node_spec(env=changed_env(write=["systemd:vllm"], consumers=["systemd:vllm"]))
    lines = ["u 77 vllm.service", "u 1 ssh.service"]
    rank = ["p 77 1 5160000 - vllm.service", *(f"e {n}={v}" for n, v in RIGHT_ENV.items()), "n 30"]
    spark = Spark(consumers=consumers_text(units=tuple(lines), more=tuple(rank)))
    fine = [f for f in spark.judge(want) if f.path.startswith("env.running")]
    assert [f.status for f in fine] == [Status.PASS, Status.SKIP]
    bare = [f for f in Spark(consumers=consumers_text(units=tuple(lines))).judge(want) if f.code is Code.ENV_RESTART_NEEDED]
    assert [f.status for f in bare] == [Status.WARN]
    assert "restart vllm.service" in bare[0].remedy
    gone = [f for f in Spark(consumers=consumers_text(units=("u 1 ssh.service",))).judge(want) if f.code is Code.ENV_RESTART_NEEDED]
    assert [f.status for f in gone] == [Status.PASS]


def parse(text: str) -> consumers.Consumers | Unreadable:
    return consumers.read(Snapshot("n", {"consumers": Captured(0, text)}))


def test_every_prefix_is_whole_or_nothing() -> None:
    text = consumers_text(Box(conf=RIGHT_CONF), Box(name="vllm-b", pid=5, hosts=None, env=None), units=("u 9 a.service",), more=("more",))
    whole = parse(text)
    assert isinstance(whole, consumers.Consumers)
    assert whole.partial
    for cut in range(len(text)):
        assert isinstance(parse(text[:cut]), Unreadable)


def test_names_that_are_not_allowed_are_dropped() -> None:
    got = parse(consumers_text(Box(env={"HF_TOKEN": "x", "NCCL_IB_TC": "1", "XNCCL_A": "2", "MASTER_ADDR": "a\x01b"})))
    assert isinstance(got, consumers.Consumers)
    assert got.processes[0].env == Value({"NCCL_IB_TC": "1", "MASTER_ADDR": "a\nb"})


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=30), st.sampled_from(
    ["c 1 a b", "p 1 2 3", "p 1 2 x - -", "boot x", "u x y", "f 1 file", "docker ok", "e X", "n x",
     "c 1 2 \"a\" \"b\"", "\udcff", "e NCCL_A=" + "x" * 99999]
)), max_size=8))
def test_hostile_text_never_raises(lines: list[str]) -> None:
    got = parse("\n".join(["boot 5", *lines, "end", ""]))
    assert isinstance(got, (consumers.Consumers, Unreadable))
    Spark(consumers="\n".join(["boot 5", *lines, "end", ""]), places="\n".join([*lines, "end", ""])).judge()


def test_cr_lf_is_not_understood_rather_than_misread() -> None:
    got = parse(consumers_text(Box()).replace("\n", "\r\n"))
    assert isinstance(got, Unreadable)
    assert got.reason is Reason.CUT
    assert CONF == "/etc/nccl.conf"
