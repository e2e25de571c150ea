"""From any state, the judge's own steps lead to a clean judgement, and then there are none: on a tiny model of the device."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Absent, Run, Status, Value, WriteFile
from fabrictool.qos.judge import ASPECTS
from fabrictool.snapshot import Captured
from fabrictool.snapshot.model import FileText
from fabrictool.spec import NodeSpec
from tests.qos.device import DEFAULT_MAP, Device
from tests.qos.nodes import A, B, bad, judged, node, one_port
from tests.specs import SPARK, node_spec

pfc = st.lists(st.integers(0, 1), min_size=8, max_size=8)
maps = st.one_of(
    st.just({}), st.just(dict(DEFAULT_MAP)), st.dictionaries(st.integers(0, 63), st.integers(0, 7)),
    st.dictionaries(st.integers(0, 63), st.integers(0, 7)).map(lambda d: {**DEFAULT_MAP, **d}))
states = st.builds(
    Device, app=maps, pfc=pfc, prio_tc=st.lists(st.integers(0, 7), min_size=8, max_size=8),
    sizes=st.just([20016] * 8), os_controlled=st.booleans(), pause=st.tuples(st.booleans(), st.booleans()))


@st.composite
def specs(draw: st.DrawFn) -> dict[str, object]:
    """A valid qos section: every mapped DSCP goes to a lossless priority."""
    lossless = draw(st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True))
    trust = draw(st.sampled_from(["dscp", "dscp", "dscp", "pcp"]))
    mapped = draw(st.dictionaries(st.integers(0, 63), st.sampled_from(lossless), max_size=4)) if trust == "dscp" else {}
    return {"trust": trust, "dscp_to_priority": mapped, "pfc": lossless, "global_pause": draw(st.booleans())}


def apply(want: NodeSpec, devices: dict[str, Device], names: list[str], broken: str = "") -> int:
    """Aspect by aspect, function by function, re-reading in between: as converge does. Returns the number of commands run."""
    files: dict[str, object] = {}
    units: dict[str, str] = {}
    ran = 0

    def found() -> list:  # type: ignore[type-arg]
        changed = {f"qos.{r}[{n}]": Captured(127, "", f"{r}: not found") for n in names for r in ([broken] if broken else [])}
        return judged(want, node(want, devices, files=files, units=units, changed=changed))

    def settle(step: Run | WriteFile) -> None:
        if isinstance(step, WriteFile):
            old = files.get(step.path, Absent(step.path))
            assert step.before == (old.value.sha256 if isinstance(old, Value) else "")
            files[step.path] = Value(FileText(step.path, step.text))
        elif step.argv[0] == "systemctl":
            if step.argv[1] == "enable":
                units[step.argv[2]] = "enabled"
        else:
            name = step.argv[2]
            devices[name].run(step.argv)

    for aspect in ASPECTS:
        todo = [f.id for f in found() if f.aspect == aspect and f.status is Status.FAIL and f.steps]
        for one in todo:
            for f in found():
                if f.id == one and f.status is Status.FAIL:
                    for step in f.steps:
                        ran += 1
                        settle(step)
    left = [f for f in found() if f.status in (Status.FAIL, Status.UNKNOWN) and f.path != "qos.writer"]
    assert not left, left
    assert not any(f.steps for f in found())
    return ran


@settings(max_examples=300, deadline=None)
@given(specs(), states, st.sampled_from(["", "dcb"]))
def test_any_state_converges_and_stays(qos: dict[str, object], device: Device, broken: str) -> None:
    want = one_port(**qos)
    devices = {A: device}
    before = list(device.pfc)
    apply(want, devices, [A], broken)
    assert want.fabric.qos is not None
    assert device.flaps == (before != [int(p in want.fabric.qos.pfc) for p in range(8)])
    assert device.pause == (want.fabric.qos.global_pause,) * 2
    for dscp, priority in want.fabric.qos.dscp_to_priority.items():
        assert device.app[dscp] == priority


@settings(max_examples=100, deadline=None)
@given(states, states, st.booleans())
def test_twins_of_one_port_flap_once_where_they_share(first: Device, second: Device, share: bool) -> None:
    want = node_spec(fabric=SPARK["fabric"])
    devices = {A: first, B: first if share else second}
    wrong = {id(d): d.pfc != [0, 0, 0, 1, 0, 0, 0, 0] for d in devices.values()}
    apply(want, devices, [A, B])
    for device in devices.values():
        assert device.flaps == int(wrong[id(device)])


@settings(max_examples=200, deadline=None)
@given(specs(), states)
def test_undo_brings_the_state_back(qos: dict[str, object], device: Device) -> None:
    want = one_port(**qos)
    for aspect in ("dcbx", "trust", "pause", "pfc", "tc"):
        before = replace(device, app=dict(device.app), flaps=0)
        steps = [s for f in judged(want, node(want, {A: device})) if f.aspect == aspect and f.status is Status.FAIL for s in f.steps]
        for step in steps:
            assert isinstance(step, Run)
            device.run(step.argv)
        for step in reversed(steps):
            assert isinstance(step, Run)
            device.run(step.undo)
        assert replace(device, flaps=0) == before, aspect


def test_a_healthy_node_is_not_touched() -> None:
    want = one_port()
    device = Device(app=dict(DEFAULT_MAP), pfc=[0, 0, 0, 1, 0, 0, 0, 0], pause=(False, False))
    assert not bad(judged(want, node(want, {A: device})))
    assert device.flaps == 0
