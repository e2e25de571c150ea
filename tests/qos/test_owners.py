"""Who else sets QoS: the words of command lines, and what runs them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Reason, Unreadable
from fabrictool.qos import owners
from fabrictool.qos.sections import DCB, PROCESSES, SECTIONS, UNITS, WRITERS
from fabrictool.snapshot import Captured


@pytest.mark.parametrize(("text", "found"), [
    ("ExecStart=/usr/bin/mlnx_qos -i ens0 --trust dscp", [("ens0", (("trust", "dscp"),))]),
    ("ExecStart=/usr/bin/mlnx_qos -i ens0 --trust=dscp --pfc=0,0,0,1,0,0,0,0",
     [("ens0", (("trust", "dscp"), ("pfc", "0,0,0,1,0,0,0,0")))]),
    ("ExecStart=/bin/sh -c 'mlnx_qos -i ens0 -f 0,0,0,1,0,0,0,0; mlnx_qos -i ens1 -d os'",
     [("ens0", (("pfc", "0,0,0,1,0,0,0,0"),)), ("ens1", (("dcbx", "os"),))]),
    ("mlnx_qos -iens0 -f0,0,0,1,0,0,0,0", [("ens0", (("pfc", "0,0,0,1,0,0,0,0"),))]),
    ('mlnx_qos -i "$IF" --pfc "$MASK" || true', [("", (("pfc", ""),))]),
    ("mlnx_qos -i $IF $OPTIONS", [("", tuple((a, "") for a in owners.ALL))]),
    ("mlnx_qos -i ens0 --dscp2prio set,26,3 --dscp2prio flush", [("ens0", (("map", "set,26,3"), ("map", "flush")))]),
    ("mlnx_qos -i ens0 -p 0,0,0,1,0,0,0,0", [("ens0", (("tc", ""),))]),
    ("mlnx_qos -i ens0", []), ("mlnx_qos -i ens0 -d get", []), ("which mlnx_qos", []), ("#!/usr/bin/mlnx_qosd -f 1", []),
    ("dcb pfc set dev ens0 prio-pfc all:off 3:on", [("ens0", (("pfc", ""),))]),
    ("/sbin/dcb app add dev ens0 dscp-prio 26:3", [("ens0", (("trust", ""), ("map", "")))]),
    ("dcb -j pfc show dev ens0", []),
    ("lldptool -T -i ens0 -V PFC enabled=3", [("ens0", tuple((a, "") for a in owners.ALL))]),
    ("lldptool -t -n -i ens0", []),
    ("cma_roce_tos -d mlx5_0 -t 106", [("", (("cm", "106"),))]), ("cma_roce_tos -d mlx5_0", []),
    ("ethtool -A ens0 rx off tx off", [("ens0", (("pause", "off"),))]),
    ("ethtool --pause ens0 rx on tx off", [("ens0", (("pause", ""),))]), ("ethtool -a ens0", []),
    ('RUN+="/usr/bin/mlnx_qos -i %k -f 0,0,0,1,0,0,0,0"', [("", (("pfc", "0,0,0,1,0,0,0,0"),))]),
])
def test_command_lines(text: str, found: list[object]) -> None:
    assert list(owners.commands(text)) == found


LINES = """\
/etc/systemd/system/roce.service:9:ExecStart=mlnx_qos -i ens0 -f 0,0,0,0,1,0,0,0
/etc/systemd/system/old.service:4:ExecStart=mlnx_qos -i ens0 --trust pcp
/etc/rc.local:3:mlnx_qos -i ens0 --trust pcp
/etc/rc.local:4:# mlnx_qos -i ens0 --trust pcp
/usr/local/bin/by-hand.sh:2:mlnx_qos -i "$1" --trust pcp
/usr/local/bin/loop.sh:2:mlnx_qos -i "$1" --trust pcp
/etc/fabrictool/qos.sh:80:mlnx_qos -i ens0 -f 1
/etc/systemd/system/fabrictool-qos-ens0.service:3:mlnx_qos -i ens0 -f 1
# /usr/local/bin/loop.sh is started by /etc/systemd/system/roce.service
# files read: 12
"""
WANTED = {"roce.service": "wanted"}


def test_lines_and_what_runs_them() -> None:
    got = owners.writers(Captured(0, LINES), WANTED)
    assert not isinstance(got, Unreadable)
    assert [(w.path, w.line, w.enabled) for w in got] == [
        ("/etc/systemd/system/roce.service", 9, True), ("/etc/systemd/system/old.service", 4, False), ("/etc/rc.local", 3, True),
        ("/usr/local/bin/by-hand.sh", 2, False), ("/usr/local/bin/loop.sh", 2, True)]
    unknown = owners.writers(Captured(0, LINES), Unreadable(Reason.CUT, "cut"))
    assert not isinstance(unknown, Unreadable)
    assert [w.enabled for w in unknown] == [True, True, True, False, True]


def test_a_list_without_its_end_is_not_known() -> None:
    full = owners.writers(Captured(0, LINES), WANTED)
    for end in range(len(LINES)):
        got = owners.writers(Captured(0, LINES[:end]), WANTED)
        assert isinstance(got, Unreadable) or got == full
    assert owners.writers(Captured(0, "# files read: 3\n"), WANTED) == ()


def test_timers_and_templates_count_as_started() -> None:
    got = owners.writers(Captured(0, LINES), {"old.timer": "wanted"})
    assert not isinstance(got, Unreadable)
    assert {w.path: w.enabled for w in got}["/etc/systemd/system/old.service"]
    for name, enabled in (("roce@e0.service", True), ("roce2@e0.service", False)):
        template = owners.writers(Captured(0, LINES.replace("/roce.service", "/roce@.service")), {name: "wanted"})
        assert not isinstance(template, Unreadable)
        assert template[0].enabled is enabled


def test_processes() -> None:
    assert owners.daemons({"/proc/1/comm": "systemd"}) == ()
    assert owners.daemons({"/proc/1/comm": "systemd", "/proc/77/comm": "lldpad", "/proc/78/comm": "lldpad"}) == ("lldpad",)
    hidden = owners.daemons({"/proc/77/comm": "bash"})
    assert isinstance(hidden, Unreadable)
    assert hidden.reason is Reason.NEEDS_ROOT


def test_units() -> None:
    out = ("systemctl says systemd 255 (255.4)\nfabrictool-qos-e0.service is-enabled enabled\n"
           "x.service wanted-by /etc/systemd/system/multi-user.target.wants\n# end of units\n")
    assert owners.units(Captured(0, out)) == {"fabrictool-qos-e0.service": "enabled", "x.service": "wanted"}
    for end in range(len(out)):  # a rival unit that was cut off would look like one that nothing starts
        got = owners.units(Captured(0, out[:end]))
        assert isinstance(got, Unreadable)
        assert got.reason is Reason.CUT


@pytest.mark.parametrize(("said", "reason"), [
    ("sh: 1: systemctl: not found", Reason.TOOL_MISSING), ("", Reason.FAILED), ("Traceback (most recent call last):", Reason.FAILED)])
def test_without_systemctl_nothing_is_known_of_units(said: str, reason: Reason) -> None:
    wants = "x.service wanted-by /etc/systemd/system/multi-user.target.wants\n# end of units\n"
    got = owners.units(Captured(0, f"systemctl says {said}\n{wants}"))
    assert isinstance(got, Unreadable)
    assert got.reason is reason
    cut = owners.units(Captured(0, wants))
    assert isinstance(cut, Unreadable)
    assert cut.reason is Reason.CUT


@settings(max_examples=300, deadline=None)
@given(st.text(), st.text(alphabet="mlnx_qos dcb-i'\"\\=$;|f,01/"))
def test_any_text_is_answered(noise: str, line: str) -> None:
    list(owners.commands(line))
    owners.writers(Captured(0, f"/etc/x:1:mlnx_qos {line}\n{noise}\n# files read: 1\n"), {})


def run(shell: str, path: Path, *args: str, sh: str = "dash") -> subprocess.CompletedProcess[str]:
    env = {"PATH": f"{path}:{os.environ['PATH']}", "LC_ALL": "C"}
    words = ["busybox", "sh"] if sh == "busybox" else [sh]
    return subprocess.run([*words, "-c", shell, "sh", *args], capture_output=True, text=True, env=env, timeout=60, check=False)


@pytest.mark.parametrize("sh", ["dash", "bash", "busybox"])
def test_the_writers_section_on_a_tree(sh: str, tmp_path: Path) -> None:
    """The section's own shell text, with its places moved into a folder."""
    root = tmp_path / "root"
    for name, text in {
        "etc/systemd/system/roce.service": "[Service]\nExecStart=-/usr/local/bin/loop.sh ens0\n",
        "etc/rc.local": "#!/bin/sh\nmlnx_qos -i ens0 --trust pcp\n",
        "usr/local/bin/loop.sh": "while :; do mlnx_qos -i $1 -f 1,1,1,1,1,1,1,1; sleep 20; done\n",
        "usr/local/bin/mlnx_qos": "#!/bin/sh\n# mlnx_qos -i itself -f 1\nmlnx_qos -i x -f 1\n",
        "etc/systemd/system/direct.service": "[Service]\nExecStart=/usr/local/bin/mlnx_qos -i ens9\n",
        "etc/cron.d/other": "* * * * * root echo hello\n",
        "etc/udev/rules.d/70-x.rules": "x" * 70_000 + " mlnx_qos -i ens0 -f 1\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text.replace("/usr/local", f"{root}/usr/local"))
    shell = WRITERS.replace(" /etc/", f" {root}/etc/").replace(" /usr/", f" {root}/usr/").replace(" /lib/", f" {root}/lib/")
    shell = shell.replace("/etc/* |", f"{root}/etc/* |")
    got = run(shell, tmp_path, sh=sh)
    assert got.returncode == 0, got.stderr
    out = got.stdout.replace(str(root), "")
    assert out.splitlines()[-1] == "# files read: 6"  # the program of the unit is read twice
    found = owners.writers(Captured(0, out), {"roce.service": "wanted"})
    assert not isinstance(found, Unreadable)
    assert {(w.path, w.enabled) for w in found} == {("/etc/rc.local", True), ("/usr/local/bin/loop.sh", True)}


@pytest.mark.parametrize("sh", ["dash", "bash", "busybox"])
def test_the_units_section_on_a_tree(sh: str, tmp_path: Path) -> None:
    units = tmp_path / "units"
    (units / "multi-user.target.wants").mkdir(parents=True)
    (units / "fabrictool-qos-e0.service").write_text("")
    (units / "multi-user.target.wants" / "x.service").symlink_to("/nowhere")
    (tmp_path / "systemctl").write_text('#!/bin/sh\n[ "$1" = --version ] && echo "systemd 252 (252.39)" || echo enabled\n')
    (tmp_path / "systemctl").chmod(0o755)
    got = run(UNITS.replace("/etc/systemd/system", str(units)), tmp_path, sh=sh)
    assert owners.units(Captured(0, got.stdout)) == {"fabrictool-qos-e0.service": "enabled", "x.service": "wanted"}


@pytest.mark.parametrize("sh", ["dash", "bash", "busybox"])
def test_the_dcb_section_stops_at_a_hang_and_names_a_missing_tool(sh: str, tmp_path: Path) -> None:
    from fabrictool.model import Value
    from fabrictool.qos import dcb

    (tmp_path / "timeout").write_text('#!/bin/sh\nshift\n"$@"\n')  # the fake below says 124 itself, so that no test waits
    (tmp_path / "timeout").chmod(0o755)
    tool = tmp_path / "dcb"
    tool.write_text('#!/bin/sh\n[ "$2" = pfc ] && exit 124\n[ "$5" = "a b" ] || exit 9\necho "{}"\n')
    tool.chmod(0o755)
    got = run(DCB, tmp_path, "a b", sh=sh)
    assert got.returncode == 0
    seen = dcb.parse(Captured(0, got.stdout))
    assert seen.trust == Value("pcp")
    assert isinstance(seen.pfc, Unreadable)
    assert seen.pfc.reason is Reason.TIMEOUT
    assert "ets" not in got.stdout
    tool.unlink()
    bare = subprocess.run(["/bin/dash", "-c", DCB, "sh", "e0"], capture_output=True, text=True, env={"PATH": str(tmp_path)},
                          timeout=30, check=False)
    assert bare.returncode == 127


def test_the_processes_section_sees_process_one() -> None:
    got = run(PROCESSES, Path("/"))
    assert got.stdout.startswith("/proc/1/comm:")


def test_section_names() -> None:
    assert [s.name for s in SECTIONS] == ["qos.mlnx_qos", "qos.dcb", "qos.pause", "qos.ecn", "qos.processes", "qos.writers", "qos.files",
                                          "qos.units"]
    assert all(0 < s.timeout_s <= 20 for s in SECTIONS)
