"""What is looked at before a run, as text: read strictly, and never from a part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictool.model import Unreadable, Value
from fabrictool.prove import look
from fabrictool.snapshot import Captured, Snapshot, collector
from fabrictool.spec import CollectiveSpec
from fabrictool.spec.schema import RuntimeSpec
from tests.specs import node_spec

TOOLS = ("program /usr/bin/all_reduce_perf\noptions tgbeTJa\nmpirun /usr/bin/mpirun mpirun (Open MPI) 5.0.7\nsrun /usr/bin/srun\npmi pmix\n"
         "gres\npython /usr/bin/python3 3.12.3\nimage sha256:12\nport 41000\nend\n")
ENV = "source docker:vllm-a\nn NCCL_IB_TC\nn UCX_TLS\nconf NCCL_SOCKET_IFNAME\nend\n"


def snap(name: str, out: str, rc: int = 0) -> Snapshot:
    return Snapshot("n", {name: Captured(rc, out)})


def test_apps() -> None:
    text = "4101, /usr/bin/python3\n 77 , /usr/lib/xorg/Xorg\n88, [Not Found]\n\nend\n"
    assert look.apps(snap(look.APPS, text)) == (look.App(4101, "/usr/bin/python3"), look.App(88, "[Not Found]"))
    assert look.apps(snap(look.APPS, "end\n")) == ()


def test_memory() -> None:
    assert look.available_bytes(snap(look.MEMORY, "MemTotal:       125000000 kB\nMemAvailable:   1024 kB\n")) == Value(1 << 20)
    assert isinstance(look.available_bytes(snap(look.MEMORY, "MemTotal: 1 kB\n")), Unreadable)


def test_tools() -> None:
    got = look.tools(snap(look.TOOLS, TOOLS))
    assert got == look.Tools((), "/usr/bin/all_reduce_perf", "tgbeTJa", "/usr/bin/mpirun", "mpirun (Open MPI) 5.0.7", "/usr/bin/srun",
                             "pmix", True, "/usr/bin/python3", "sha256:12", 41000)
    assert got.open_mpi == 5
    assert look.Tools(mpi="HYDRA build details:").open_mpi == 0
    assert look.Tools(mpi="mpirun (Open MPI) 4.1.4").open_mpi == 4
    missing = look.tools(snap(look.TOOLS, "missing all_reduce_perf_mpi all_reduce_perf\nmissing mpirun\nport 1\nend\n"))
    assert isinstance(missing, look.Tools)
    assert missing.missing == ("all_reduce_perf_mpi all_reduce_perf", "mpirun")


def test_environment() -> None:
    assert look.environment(snap(look.ENV, ENV)) == look.Environment(
        "docker:vllm-a", frozenset({"NCCL_IB_TC", "UCX_TLS"}), frozenset({"NCCL_SOCKET_IFNAME"}))
    assert look.environment(snap(look.ENV, "source -\nend\n")) == look.Environment("", frozenset(), frozenset())


def test_lifespan() -> None:
    at = "/sys/class/infiniband/{}/ports/1/hw_counters/lifespan:{}\n"
    assert look.lifespan_s(snap(look.LIFESPAN, at.format("a", "10") + at.format("b", "1500") + at.format("c", "x"))) == 1.5
    assert look.lifespan_s(snap(look.LIFESPAN, "")) == 0
    assert look.lifespan_s(Snapshot("n")) == 0


@pytest.mark.parametrize(("name", "text"), [(look.APPS, "1, a\nend\n"), (look.TOOLS, TOOLS), (look.ENV, ENV)])
def test_a_part_is_not_the_whole(name: str, text: str) -> None:
    read = {look.APPS: look.apps, look.TOOLS: look.tools, look.ENV: look.environment}[name]
    for cut in range(len(text)):
        assert isinstance(read(snap(name, text[:cut])), Unreadable)
    assert isinstance(read(snap(name, text, rc=1)), Unreadable)
    assert not isinstance(read(snap(name, text.replace("\n", "\r\n"))), Unreadable)


@given(st.text(max_size=200))
def test_garbage_never_raises(text: str) -> None:
    for tail in ("", "\nend\n"):
        for name, read in ((look.APPS, look.apps), (look.TOOLS, look.tools), (look.ENV, look.environment),
                           (look.MEMORY, look.available_bytes), (look.LIFESPAN, look.lifespan_s)):
            read(snap(name, text + tail))  # type: ignore[operator]


@pytest.mark.parametrize(("env", "spec", "want"), [
    ({}, {}, ()), ({"write": ["nccl_conf"]}, {}, ()), ({"write": ["docker_env"]}, {}, ("file:/etc/fabrictool/nccl.env",)),
    ({"consumers": ["docker:a-*", "systemd:b"], "write": ["docker_env"]}, {}, ("docker:a-*", "file:/etc/fabrictool/nccl.env")),
    ({"consumers": ["docker:a-*"], "write": ["docker_env"]}, {"consumer": "file:/x"}, ("file:/x",)),
])
def test_whose_environment(env: dict[str, object], spec: dict[str, str], want: tuple[str, ...]) -> None:
    assert look.consumers(node_spec(env=env), CollectiveSpec(**spec)) == want  # type: ignore[arg-type]


@pytest.mark.parametrize("launcher", ["direct", "mpirun", "srun"])
def test_what_is_collected_can_be_sent(launcher: str) -> None:
    sections = look.sections(node_spec(), CollectiveSpec(launcher=launcher, venv="/opt/v" if launcher == "direct" else None))
    assert "fabrictool-snapshot" in collector.script(sections)


def test_docker_is_asked_for_the_image_as_root_and_nothing_else_is() -> None:
    """As root starts the container: a login user outside the group docker would be told that there is no image."""
    runtime = RuntimeSpec(image=f"img@sha256:{'0' * 64}")
    for spec, root in ((CollectiveSpec(launcher="direct", runtime=runtime), True), (CollectiveSpec(launcher="mpirun"), False),
                       (CollectiveSpec(launcher="direct", venv="/opt/v"), False)):
        assert [s.root for s in look.sections(node_spec(), spec) if s.name == look.TOOLS] == [root]
