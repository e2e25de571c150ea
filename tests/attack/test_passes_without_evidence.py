"""Ways to a good verdict on a node that is not as the spec wants it, or that nobody looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from fabrictool import ports
from fabrictool.cli import options, run
from fabrictool.exits import Exit
from fabrictool.model import Code, Finding, Status
from fabrictool.room import Fleet
from fabrictool.snapshot import Captured, Snapshot, bundle
from fabrictool.spec.resolve import load_site
from tests.ports.sample import A, B, Node
from tests.specs import node_spec

SPEC = """\
version: 1
site: two
ssh: {user: admin, sudo: nopasswd}
fabric: {mtu: 9000, rails: {a: {subnet: 10.10.1.0/24}}}
groups:
  spark:
    nodes: spark[01-02]
    ports: {p0: {functions: [{rail: a, interface: enp1s0f0np0}]}}
"""


def members(node: Node, *named: str) -> Finding:
    spec: dict[str, Any] = {"p0": {"functions": [{"rail": "a", "interface": "bond0", "members": list(named)}]}}
    found = ports.ROOM.findings(node_spec(ports=spec, bootstrap="bond0"), node.snapshot(), Fleet())
    (one,) = [f for f in found if f.path == "ports.members"]
    return one


@pytest.mark.parametrize(("inside", "named", "said"), [
    ((A,), (A, B), f"{B}: not in bond0"),
    ((A, B), (A, "nosuch0"), "nosuch0: not on the node"),
    ((A, B), (A,), f"{B}: in bond0, not in the spec"),
])
def test_a_bond_without_the_members_of_the_spec(inside: tuple[str, ...], named: tuple[str, ...], said: str) -> None:
    got = members(Node().bond("bond0", *inside, ip="10.10.1.1/24"), *named)
    assert (got.status, got.code) == (Status.FAIL, Code.LINK_BINDING)
    assert said in got.got


def test_the_twin_a_bond_with_its_members_passes() -> None:
    assert members(Node().bond("bond0", A, B, ip="10.10.1.1/24"), A, B).status is Status.PASS


@pytest.mark.parametrize("words", [["-l", ""], ["-l", " "], ["-l", ","], ["-l", "spark01", "-l", ""]])
def test_an_empty_limit_is_never_all_nodes(words: list[str]) -> None:
    """`apply -l "$NODE"` with an unset variable would have changed the whole fleet."""
    ran: list[str] = []

    @click.command()
    @options.limit
    def command(limit: str) -> None:
        ran.append(limit)

    done = CliRunner().invoke(command, words)
    assert (done.exit_code, ran) == (2, [])
    assert "-l names no node" in done.output
    assert CliRunner().invoke(command, ["-l", "spark01", "-l", "!spark02"]).exit_code == 0
    assert CliRunner().invoke(command, []).exit_code == 0
    assert ran == ["spark01,!spark02", ""]


def test_a_port_without_functions_is_an_error_in_the_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(SPEC.replace("[{rail: a, interface: enp1s0f0np0}]", "[]"))
    assert run(["lint", "-i", str(file)]) == Exit.SPEC
    said = "".join(capsys.readouterr())
    assert f'{file}:8:29: error: port "p0" has no function' in said
    file.write_text(SPEC)
    assert run(["lint", "-i", str(file)]) == Exit.OK


def test_a_verdict_from_a_bundle_says_of_when_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bundle of years ago, taken with another spec, gave "all as the spec says" under today's date."""
    spec, saved = tmp_path / "two.yaml", tmp_path / "old.tar.gz"
    spec.write_text(SPEC)
    snaps = [Snapshot(n, {"x": Captured(0, "")}) for n in ("spark01", "spark02")]
    notes = []
    for digest in ("0" * 64, load_site(spec).digest):
        bundle.write(saved, snaps, bundle.Meta("0.1.0", "1999-01-01T00:00:00+00:00", digest), force=True)
        capsys.readouterr()
        assert run(["drift", "-i", str(spec), "--from", str(saved), "-o", "json"]) == Exit.NO_VERDICT
        notes.append(" ".join(json.loads(capsys.readouterr().out)["notes"]))
    assert all("taken 1999-01-01" in n for n in notes)
    assert [("another spec" in n) for n in notes] == [True, False]


def test_a_broken_bundle_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, saved = tmp_path / "two.yaml", tmp_path / "bad.tar.gz"
    spec.write_text(SPEC)
    saved.write_bytes(b"junk")
    assert run(["drift", "-i", str(spec), "--from", str(saved)]) == Exit.NO_VERDICT
    assert capsys.readouterr().err.count(str(saved)) == 1
