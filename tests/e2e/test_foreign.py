"""An operation of somebody else between ours: what follows it must see what it did, and the end must tell the truth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e import fleet
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
A = "enp1s0f0np0"
UNTRUST = f"mlnx_qos -i {A} --trust pcp"
OURS = {"trust": 'converge(name="trust", room=qos.ROOM, aspect="trust")',
        "map": 'converge(name="map", room=qos.ROOM, aspect="map")',
        "pause": 'converge(name="pause", room=qos.ROOM, aspect="pause")',
        "pfc": 'converge(name="pfc", room=qos.ROOM, aspect="pfc", _serial=True)',
        "rest": "\n".join(f'converge(name="{a}", room=qos.ROOM, aspect="{a}")' for a in ("dcbx", "tc", "ecn", "persist")),
        "verify": 'verify(name="verify", room=qos.ROOM)'}
HEAD = "from pyinfra.operations import server\nfrom fabrictool import qos\nfrom fabrictool.ops import converge, verify\n"


@pytest.fixture(scope="module")
def node() -> Iterator[Lab]:
    with built("foreign", 1) as lab:
        yield lab


def deployed(lab: Lab, folder: Path, *parts: str) -> fleet.Ended:
    """On the node as delivered, plain pyinfra with a deploy of these parts: ours by name, all others foreign shell commands."""
    lab.clear()
    lines = [OURS.get(p) or f'server.shell(name="foreign", commands=[{p!r}], _sudo=True)' for p in parts]
    file = folder / "deploy.py"
    file.write_text(HEAD + "\n".join(lines) + "\n")
    return fleet.pyinfra(lab, file, "-y")


def trust_writes(lab: Lab) -> list[str]:
    """What was given to mlnx_qos as trust, in order, by its own log."""
    calls = [list(map(str, argv)) for tool, argv in fleet.writes(lab, "spark01") if tool == "mlnx_qos" and isinstance(argv, list)]
    return [argv[argv.index("--trust") + 1] for argv in calls if "--trust" in argv]


def test_one_that_changes_nothing(node: Lab, tmp_path: Path) -> None:
    done = deployed(node, tmp_path, "trust", "true", "map", "pause", "pfc", "rest", "verify")
    assert done.rc == 0, done.all
    fn = node.state("spark01").functions[A]
    assert (fn.trust, fn.dscp_map[26], fn.pfc, fn.global_pause) == ("dscp", 3, [0, 0, 0, 1, 0, 0, 0, 0], False)
    assert trust_writes(node) == ["dscp"]


def test_one_that_undoes_ours_is_seen_by_the_next_that_looks(node: Lab, tmp_path: Path) -> None:
    done = deployed(node, tmp_path, "trust", UNTRUST, "trust", "pause", UNTRUST, "map", "trust", "pfc", "rest", "verify")
    assert done.rc == 0, done.all
    fn = node.state("spark01").functions[A]
    assert (fn.trust, fn.dscp_map[26], fn.pfc, fn.global_pause) == ("dscp", 3, [0, 0, 0, 1, 0, 0, 0, 0], False)
    # After the second one `map` comes first: its entry for DSCP 26 brings trust back, as in the driver; `trust` has no work.
    assert trust_writes(node) == ["dscp", "pcp", "dscp", "pcp"]


def test_one_that_undoes_ours_last_makes_the_run_fail(node: Lab, tmp_path: Path) -> None:
    done = deployed(node, tmp_path, "trust", "map", "pause", "pfc", "rest", UNTRUST, "verify")
    assert done.rc == 1, done.all
    assert "QOS_TRUST" in done.all
    assert "wanted dscp, is pcp" in done.all
    assert node.state("spark01").functions[A].trust == "pcp"


def test_one_that_does_our_work_leaves_nothing_to_do(node: Lab, tmp_path: Path) -> None:
    theirs = f"mlnx_qos -i {A} -f 0,0,0,1,0,0,0,0"
    done = deployed(node, tmp_path, "trust", "map", "pause", theirs, "pfc", "rest", "verify")
    assert done.rc == 0, done.all
    fn = node.state("spark01").functions[A]
    assert (fn.pfc, fn.flaps) == ([0, 0, 0, 1, 0, 0, 0, 0], 1)
    given = [c["argv"] for c in node.commands("spark01") if c["tool"] == "mlnx_qos"]  # also calls that changed nothing
    assert [argv for argv in given if isinstance(argv, list) and "-f" in argv] == [["-i", A, "-f", "0,0,0,1,0,0,0,0"]]


def test_without_the_last_line_a_change_behind_our_back_is_not_claimed_away(node: Lab, tmp_path: Path) -> None:
    """`converge` read back what it wrote, truly at that time; only `verify` speaks for the end."""
    done = deployed(node, tmp_path, "trust", UNTRUST)
    assert done.rc == 0, done.all
    later = fleet.tool("drift", "-i", fleet.spec(node))
    assert later.rc == 2, later.all
    assert "QOS_TRUST" in later.out
