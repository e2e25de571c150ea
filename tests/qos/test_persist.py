"""Unit, udev rule and script; and the script itself against a stand-in of mlnx_qos, under three shells."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from fabrictool.model import Code, Reason, Run, Status, Unreadable, Value, WriteFile
from fabrictool.qos.keep import SCRIPT
from fabrictool.qos.persist import device_unit, persistence, script_text, words
from fabrictool.snapshot.model import FileText
from tests.qos.device import DEFAULT_MAP, Device, configured
from tests.qos.nodes import A, at, judged, node, one, one_port, persisted

QOS = one_port().fabric.qos
assert QOS is not None


@pytest.mark.parametrize(("name", "unit"), [
    ("enp1s0f0np0", "sys-subsystem-net-devices-enp1s0f0np0.device"),
    ("enP2p1s0f0np0", "sys-subsystem-net-devices-enP2p1s0f0np0.device"),
    ("rail-0", r"sys-subsystem-net-devices-rail\x2d0.device"),
    ("eth0.100", "sys-subsystem-net-devices-eth0.100.device"),
    ("a:b_c", "sys-subsystem-net-devices-a:b_c.device"),
])
def test_systemd_device_names(name: str, unit: str) -> None:
    assert device_unit(name) == unit
    tool = shutil.which("systemd-escape")
    if tool:  # the real thing agrees, where it is installed
        said = subprocess.run([tool, "--path", "--suffix=device", f"/sys/subsystem/net/devices/{name}"], capture_output=True, text=True,
                              timeout=30, check=True)
        assert said.stdout.strip() == unit


def test_the_unit_is_bound_to_the_device_and_holds_up_nothing() -> None:
    p = persistence(A, QOS)
    device = "sys-subsystem-net-devices-enp1s0f0np0.device"
    lines = p.unit_text.splitlines()
    for line in (f"After={device}", f"BindsTo={device}", f"WantedBy={device}", "Type=oneshot", "RemainAfterExit=yes", "TimeoutStartSec=90"):
        assert line in lines
    assert not any("network" in ln or ln.startswith("Before=") for ln in lines)
    assert f"ExecStart=/bin/sh {SCRIPT} {A} trust=dscp map=26:3 pause=off pfc=0,0,0,1,0,0,0,0" in lines
    assert f'KERNEL=="{A}"' in p.rule_text
    assert 'ENV{SYSTEMD_WANTS}+="fabrictool-qos-enp1s0f0np0.service"' in p.rule_text
    assert p.unit_path == "/etc/systemd/system/fabrictool-qos-enp1s0f0np0.service"


def test_texts_follow_from_the_spec_alone() -> None:
    other = one_port(trust="pcp", dscp_to_priority={}, pfc=[], global_pause=True).fabric.qos
    assert other is not None
    assert words(other) == "trust=pcp pause=on pfc=0,0,0,0,0,0,0,0"
    asked = one_port(ecn=True, pfc=[3, 4]).fabric.qos
    assert asked is not None
    assert words(asked).endswith("pfc=0,0,0,1,1,0,0,0 ecn=3:1,4:1")


@pytest.mark.parametrize("name", ["--x", "a b", 'a"b', "a%i", "a\\x", "*", "", "a" * 16, "a\nb"])
def test_names_that_a_unit_would_read_as_its_own_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="interface name"):
        persistence(name, QOS)


def test_a_bare_node_gets_script_unit_rule_and_enabling() -> None:
    findings = one(files={}, units={})
    script = at(findings, "persist.script")
    assert script.code is Code.QOS_NOT_PERSISTED
    assert script.steps == (WriteFile(SCRIPT, script_text(), "", 0o755),)
    p = persistence(A, QOS)
    unit = at(findings, "persist")
    assert unit.steps == (
        WriteFile(p.unit_path, p.unit_text, ""), WriteFile(p.rule_path, p.rule_text, ""),
        Run(("systemctl", "daemon-reload"), 60, ("systemctl", "daemon-reload")),
        Run(("systemctl", "enable", p.unit), 60, ("systemctl", "disable", p.unit)))
    assert unit.got == "unit missing, udev rule missing, not enabled (not there)"
    assert at(one(), "persist").status is Status.PASS
    assert at(one(), "persist.script").status is Status.PASS


def test_only_what_differs_is_written() -> None:
    want = one_port()
    files, _ = persisted(want, A)
    p = persistence(A, QOS)
    old = FileText(p.unit_path, p.unit_text + "# edited\n")
    edited = at(one(want, files={**files, p.unit_path: Value(old)}), "persist")
    assert edited.steps[0] == WriteFile(p.unit_path, p.unit_text, old.sha256)
    assert [s.argv for s in edited.steps if isinstance(s, Run)] == [("systemctl", "daemon-reload")]
    disabled = at(one(want, files=files, units={p.unit: "disabled"}), "persist")
    assert [s.argv for s in disabled.steps if isinstance(s, Run)] == [("systemctl", "enable", p.unit)]
    assert len(disabled.steps) == 1
    torn = FileText(SCRIPT, script_text()[:100])
    assert at(one(want, files={**files, SCRIPT: Value(torn)}), "persist.script").steps == (
        WriteFile(SCRIPT, script_text(), torn.sha256, 0o755),)


@pytest.mark.parametrize("state", ["", "Traceback (most recent call last):", "sh: 1: systemctl: not found"])
def test_a_state_that_systemctl_does_not_know_is_no_verdict(state: str) -> None:
    want = one_port()
    files, units = persisted(want, A)
    unit = next(iter(units))
    found = at(judged(want, node(want, {A: configured()}, files=files, units={unit: state})), "persist")
    assert (found.status, found.steps) == (Status.UNKNOWN, ())
    disabled = at(judged(want, node(want, {A: configured()}, files=files, units={unit: "disabled"})), "persist")
    assert disabled.status is Status.FAIL
    assert disabled.steps
    assert at(judged(want, node(want, {A: configured()}, files=files, units=units)), "persist").status is Status.PASS


def test_unreadable_files_are_no_absence() -> None:
    why = Unreadable(Reason.NEEDS_ROOT, "denied")
    for fields in ({"files": why}, {"units": why}, {"files": {**persisted(one_port(), A)[0], persistence(A, QOS).unit_path: why}}):
        f = at(one(**fields), "persist")
        assert (f.status, f.code, f.steps) == (Status.UNKNOWN, Code.NEEDS_ROOT, ())


STANDIN = """\
import json, sys, os
sys.path[:0] = {path!r}
from tests.qos.device import Device
state, log = {state!r}, {log!r}
raw = json.load(open(state))
raw["app"] = {{int(k): v for k, v in raw["app"].items()}}
raw["pause"] = tuple(raw["pause"])
mood = raw.pop("mood", "")
device = Device(**raw)
argv = (os.path.basename(sys.argv[0]), *sys.argv[1:])
writes = len(argv) > 3 and argv[1] != "-a"
if writes:
    open(log, "a").write(" ".join(argv) + "\\n")
    if mood != "lies":
        device.run(argv)
        json.dump({{**vars(device), "mood": mood}}, open(state, "w"))
print(device.ethtool() if argv[0] == "ethtool" else device.mlnx_qos(), end="")
sys.exit(1 if mood == "grumbles" and writes else 0)
"""


class Machine:
    """A folder with stand-ins of mlnx_qos and ethtool on one device."""

    def __init__(self, folder: Path, device: Device, mood: str = "") -> None:
        self.folder, self.state, self.log = folder, folder / "state.json", folder / "log"
        self.log.write_text("")
        self.state.write_text(json.dumps({**asdict(device), "mood": mood}))
        for name in ("mlnx_qos", "ethtool"):
            body = STANDIN.format(path=[*sys.path, str(Path(__file__).parent.parent.parent)], state=str(self.state), log=str(self.log))
            (folder / f"{name}.py").write_text(body)
            (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -c \'import sys; sys.argv[0] = "{name}"; '
                                       f'exec(open("{folder}/{name}.py").read())\' "$@"\n')
            (folder / name).chmod(0o755)

    def run(self, *args: str, sh: str = "dash") -> subprocess.CompletedProcess[str]:
        shell = ["busybox", "sh"] if sh == "busybox" else [sh]
        script = self.folder / "qos.sh"
        script.write_text(script_text())
        return subprocess.run([*shell, str(script), *args], capture_output=True, text=True, timeout=120, check=False,
                              env={"PATH": f"{self.folder}:/usr/bin:/bin"})

    @property
    def writes(self) -> list[str]:
        return self.log.read_text().splitlines()


ARGS = ("eth1", "trust=dscp", "map=26:3", "pause=off", "pfc=0,0,0,1,0,0,0,0")
SHELLS = ["dash", "bash", "busybox"]


@pytest.mark.parametrize("sh", SHELLS)
def test_the_script_sets_what_differs_once(sh: str, tmp_path: Path) -> None:
    m = Machine(tmp_path, Device(os_controlled=False))
    first = m.run(*ARGS, sh=sh)
    assert first.returncode == 0, first.stderr
    assert m.writes == ["mlnx_qos -i eth1 -d os", "mlnx_qos -i eth1 --trust dscp", "ethtool -A eth1 rx off tx off",
                        "mlnx_qos -i eth1 -f 0,0,0,1,0,0,0,0"]
    assert m.run(*ARGS, sh=sh).returncode == 0
    assert len(m.writes) == 4


@pytest.mark.parametrize("sh", SHELLS)
def test_the_script_repairs_single_dscps(sh: str, tmp_path: Path) -> None:
    app = {**DEFAULT_MAP, 26: 5, 8: 3}
    m = Machine(tmp_path, Device(app=app, pfc=[0, 0, 0, 1, 0, 0, 0, 0], pause=(False, False)))
    assert m.run("eth1", "trust=dscp", "map=8:1,26:3,30:3", "pause=off", "pfc=0,0,0,1,0,0,0,0", sh=sh).returncode == 0
    assert m.writes == ["mlnx_qos -i eth1 --dscp2prio set,8,1", "mlnx_qos -i eth1 --dscp2prio set,26,3"]


def test_a_dscp_without_entry_is_mapped(tmp_path: Path) -> None:
    m = Machine(tmp_path, Device(app={0: 0}, pfc=[0, 0, 0, 1, 0, 0, 0, 0], pause=(False, False)))
    assert m.run(*ARGS).returncode == 0
    assert m.writes == ["mlnx_qos -i eth1 --dscp2prio set,26,3"]


@pytest.mark.parametrize("sh", SHELLS)
def test_the_read_back_is_the_verdict(sh: str, tmp_path: Path) -> None:
    lying = Machine(tmp_path, Device(), "lies").run(*ARGS, sh=sh)
    assert lying.returncode == 1
    assert "reads back 0,0,0,0,0,0,0,0" in lying.stderr
    assert Machine(tmp_path, Device(), "grumbles").run(*ARGS, sh=sh).returncode == 0


@pytest.mark.parametrize("sh", SHELLS)
def test_lldpad_and_a_missing_tool_stop_the_script(sh: str, tmp_path: Path) -> None:
    m = Machine(tmp_path, Device(lldpad=True))
    assert m.run(*ARGS, sh=sh).returncode == 1
    assert m.writes == []
    (tmp_path / "mlnx_qos").unlink()
    gone = m.run(*ARGS, sh=sh)
    assert gone.returncode == 1
    assert "mlnx_qos is missing" in gone.stderr


@pytest.mark.parametrize(("args", "rc"), [((), 2), (("eth1", "trust=both"), 2), (("eth1", "pfc=1"), 2), (("eth1", "map=26"), 2),
                                          (("eth1", "$(reboot)"), 2), (("eth1",), 0)])
def test_the_command_line_is_checked(args: tuple[str, ...], rc: int, tmp_path: Path) -> None:
    m = Machine(tmp_path, Device())
    assert m.run(*args).returncode == rc
    assert m.writes == []


def test_every_call_of_the_script_has_a_time_limit() -> None:
    for line in script_text().splitlines():
        code = line.partition("#")[0]
        for tool in ("mlnx_qos -i", "ethtool -"):
            if tool in code and not code.lstrip().startswith("say"):
                assert "limited" in code or "ensure" in code, line
    assert "limited() { timeout 20 " in script_text()
