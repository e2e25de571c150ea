"""systemd-run on a lab node: a unit is real processes, named, limited, and ended as a whole."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from fabrictool.lab.handle import Lab
from fabrictool.lab.nodeside.standins.systemd_run import expanded, parse
from tests.lab.fleet import built, ssh

NODE = "spark01"


@pytest.fixture(scope="module")
def fleet() -> Iterator[Lab]:
    with built("units", 1) as lab:
        yield lab


def run(lab: Lab, *words: str) -> tuple[int, str, str]:
    done = lab.exec(NODE, ["systemd-run", *words])
    return done.rc, done.out, done.err


def listed(lab: Lab, pattern: str = "ft-*") -> list[str]:
    out = lab.exec(NODE, ["systemctl", "list-units", "--all", "--plain", "--no-legend", "--full", pattern]).out
    return [line.split()[0] for line in out.splitlines()]


def processes(lab: Lab, mark: str) -> list[str]:
    return [line for line in lab.exec(NODE, ["ps", "-e", "-o", "args="]).out.splitlines() if mark in line and "ps -e" not in line]


def until(lab: Lab, words: list[str], rc: int) -> None:
    deadline = time.monotonic() + 10
    while lab.exec(NODE, words).rc != rc:
        assert time.monotonic() < deadline, words
        time.sleep(0.05)


@pytest.mark.lab
def test_a_unit_runs_and_is_gone_when_its_program_ends(fleet: Lab) -> None:
    inner = "sleep 0.3; env >/tmp/seen; id -u >>/tmp/seen"
    rc, out, err = run(fleet, "--collect", "--unit=ft-a-0", "--setenv=MARK=here", "--", "sh", "-c", inner)
    assert (rc, out, err) == (0, "", "Running as unit: ft-a-0.service\n")
    assert fleet.exec(NODE, ["systemctl", "is-active", "--quiet", "ft-a-0.service"]).rc == 0
    assert listed(fleet) == ["ft-a-0.service"]
    pid = fleet.exec(NODE, ["systemctl", "show", "-p", "MainPID", "--value", "ft-a-0"]).out.strip()
    assert fleet.read_file(NODE, f"/proc/{pid}/cgroup") == "0::/system.slice/ft-a-0.service\n"
    until(fleet, ["systemctl", "is-active", "--quiet", "ft-a-0.service"], 3)
    seen = (fleet.read_file(NODE, "/tmp/seen") or "").splitlines()
    assert "MARK=here" in seen
    assert seen[-1] == "0"
    assert listed(fleet) == []


@pytest.mark.lab
@pytest.mark.parametrize(("command", "rc"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$$$", 1)])
def test_waiting_gives_its_status(fleet: Lab, command: str, rc: int) -> None:
    assert run(fleet, "--quiet", "--collect", "--wait", "--unit=ft-w", "--", "sh", "-c", command) == (rc, "", "")


@pytest.mark.lab
def test_to_stop_it_ends_all_of_it(fleet: Lab) -> None:
    """Also what has left its session."""
    inner = "setsid sleep 4711 & sleep 4712 & trap '' TERM; sleep 4713; sleep 4714"
    run(fleet, "--quiet", "--collect", "--unit=ft-b", "--property=TimeoutStopSec=1", "--", "sh", "-c", inner)
    deadline = time.monotonic() + 10
    while len(processes(fleet, "sleep 471")) < 4:  # three, and the shell
        assert time.monotonic() < deadline
    assert fleet.exec(NODE, ["systemctl", "stop", "ft-b.service"]).rc == 0
    assert processes(fleet, "sleep 471") == []
    assert listed(fleet) == []
    assert fleet.exec(NODE, ["systemctl", "stop", "ft-b.service"]).rc == 5


@pytest.mark.lab
def test_its_time_limit_ends_it(fleet: Lab) -> None:
    limits = ("--property=RuntimeMaxSec=1", "--property=TimeoutStopSec=1")
    rc, _, _ = run(fleet, "--quiet", "--wait", "--unit=ft-c", *limits, "--", "sleep", "4720")
    assert rc != 0
    assert processes(fleet, "4720") == []
    shown = fleet.exec(NODE, ["systemctl", "show", "-p", "Result,ActiveState", "ft-c"]).out
    assert shown == "Result=timeout\nActiveState=failed\n"
    assert run(fleet, "--unit=ft-c", "--", "true")[0] == 1  # its name is taken until it is reset
    assert fleet.exec(NODE, ["systemctl", "reset-failed", "ft-c"]).ok
    assert run(fleet, "--quiet", "--wait", "--collect", "--unit=ft-c", "--", "true")[0] == 0


@pytest.mark.lab
def test_it_outlives_who_asked_for_it(fleet: Lab) -> None:
    assert ssh(fleet, NODE, "sudo systemd-run --quiet --collect --unit=ft-d -- sleep 4730").returncode == 0
    assert processes(fleet, "4730")
    fleet.exec(NODE, ["systemctl", "stop", "ft-d"])
    assert processes(fleet, "4730") == []


@pytest.mark.lab
def test_it_says_no(fleet: Lab) -> None:
    assert ssh(fleet, NODE, "systemd-run --unit=ft-e -- true").returncode == 1
    assert run(fleet)[2] == "Command line to execute required.\n"
    assert run(fleet, "--scope", "true")[2] == "systemd-run: unrecognized option '--scope'\n"
    rc, _, _ = run(fleet, "--quiet", "--wait", "--collect", "--", "/no/such/program")
    assert rc == 203


def test_the_manager_puts_its_own_variables_in() -> None:
    env = {"A": "x y", "B": "z"}
    words = ["sh", "-c", "echo $A ${A} $$A ${NO} $NO", "$A", "$NO", "${B}b", "$$"]
    assert expanded(words, env) == ["sh", "-c", "echo $A x y $A  $NO", "x", "y", "zb", "$"]


def test_options_end_where_the_command_begins() -> None:
    asked = parse(["-p", "A=1", "--property=B=2", "--unit", "x", "-q", "cmd", "--wait"])
    assert (asked.properties(), asked.last("--unit", "-u"), asked.flags) == ({"A": "1", "B": "2"}, "x", {"--quiet"})
    assert asked.argv == ["cmd", "--wait"]
