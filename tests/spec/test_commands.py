"""lint, schema, inventory, init on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fabrictool.bundled import folder
from fabrictool.cli import run
from fabrictool.exits import Exit
from fabrictool.spec.fileschema import file_schema
from fabrictool.spec.resolve import load_site
from fabrictool.spec.schema import NODE
from fabrictool.spec.sections import NODE_KEYS
from tests.spec.base import BASE, edited, write


def test_lint_of_a_good_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, BASE)
    assert run(["lint", "-i", str(path)]) == Exit.OK
    assert capsys.readouterr().out == f"{path}: site s, 2 nodes in 1 group: no problem\n"


def test_lint_counts_and_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, edited("rate_gbit: 200", "rate_gbit: 240"))
    assert run(["lint", "-i", str(path)]) == Exit.OK
    assert "1 warning" in capsys.readouterr().out
    assert run(["lint", "-i", str(path), "--strict"]) == Exit.SPEC


def test_lint_of_a_bad_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, edited("mtu: 9000", "mtu: nine").replace("switch: sw\n", "switch: sv\n"))
    assert run(["lint", "-i", str(path)]) == Exit.SPEC
    out = capsys.readouterr().out
    assert f'{path}:7:8: error: "mtu" has to be a whole number, not "nine"' in out
    assert out.endswith("2 errors\n")


def test_lint_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, edited("mtu: 9000", "mtu: nine"))
    assert run(["lint", "-i", str(path), "-o", "json"]) == Exit.SPEC
    got = json.loads(capsys.readouterr().out)
    assert got == {"schema_version": 1, "usable": False, "site": None, "nodes": [], "problems": [
        {"file": str(path), "line": 7, "col": 8, "severity": "error", "what": '"mtu" has to be a whole number, not "nine"',
         "why": "", "do": ""}]}
    assert run(["lint", "-i", str(write(tmp_path, BASE)), "-o", "json"]) == Exit.OK
    assert json.loads(capsys.readouterr().out)["nodes"] == ["n1", "n2"]


def test_lint_of_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", "-i", str(tmp_path / "no.yaml")]) == Exit.SPEC
    assert "there is no such file" in capsys.readouterr().out


def test_inventory_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "-i", str(folder("inventories") / "h20x2.py")]) == Exit.OK
    out = capsys.readouterr().out.splitlines()
    assert "gpu01  h20    root@gpu01 via bastion  root  bond1" in out
    assert "gpu[01-02]  p0    400   leaf    r0    mlx5_0  ens0np0    10.20.0.0/24" in out
    assert "            p7    400   leaf    r7    mlx5_9  ens7np0    10.20.7.0/24" in out


def test_inventory_limit_and_waves(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "-i", str(folder("inventories") / "lab.yaml"), "-l", "spark[02-04]"]) == Exit.OK
    out = capsys.readouterr().out
    assert "3 of 4 nodes" in out
    assert "spark01  " not in out
    assert "root@127.0.0.1:2202" in out
    assert "waves: spark[01-02], then spark[03-04]" in out


def test_inventory_json_is_what_pyinfra_gets(capsys: pytest.CaptureFixture[str]) -> None:
    path = folder("inventories") / "spark4.yaml"
    assert run(["inventory", "-i", str(path), "-o", "json"]) == Exit.OK
    got = json.loads(capsys.readouterr().out)
    assert tuple(NODE.validate_json(json.dumps(n["spec"])) for n in got["nodes"]) == load_site(path).nodes
    assert got["nodes"][0]["ssh_target"] == "admin@192.168.1.11"


@pytest.mark.parametrize("limit", ["nobody", "!spark"])
def test_inventory_of_nothing(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "-i", str(folder("inventories") / "lab.yaml"), "-l", limit]) == Exit.SPEC
    assert "--limit: error" in capsys.readouterr().err


def test_init_writes_what_lint_takes_and_never_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new.yaml"
    assert run(["init", str(path)]) == Exit.OK
    assert run(["lint", "-i", str(path.with_suffix(".py")), "--strict"]) == Exit.OK
    assert "no problem" in capsys.readouterr().out
    path.write_text("mine")
    assert run(["init", str(path)]) == Exit.USAGE
    assert path.read_text() == "mine"
    assert "is there already" in capsys.readouterr().err


def test_init_leaves_an_existing_inventory_alone(tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text("mine")
    assert run(["init", str(tmp_path / "new.yaml")]) == Exit.OK
    assert (tmp_path / "new.py").read_text() == "mine"


def test_init_to_stdout_and_to_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "-"]) == Exit.OK
    assert capsys.readouterr().out == (folder("inventories") / "example.yaml").read_text()
    assert run(["init", str(tmp_path / "no" / "x.yaml")]) == Exit.USAGE
    assert run(["init", str(tmp_path / "x.txt")]) == Exit.USAGE


def test_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == Exit.OK
    assert json.loads(capsys.readouterr().out) == file_schema()


def walk(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [s for v in value for s in walk(v)]
    return [value, *(s for v in value.values() for s in walk(v))] if isinstance(value, dict) else []


def test_the_schema_is_plain_draft_7() -> None:
    schema = file_schema()
    keys = {k for s in walk(schema) for k in s if k.startswith(("$", "unevaluated", "prefix", "dependent"))}
    assert keys == {"$schema", "$ref"}
    refs = {s["$ref"] for s in walk(schema) if "$ref" in s}
    assert refs == {f"#/definitions/{d}" for d in schema["definitions"]}
    assert set(NODE_KEYS) < set(schema["properties"])


@pytest.mark.parametrize("name", ["spark4", "h20x2", "lab", "example"])
def test_the_schema_knows_every_key_of_the_examples(name: str) -> None:
    import yaml

    schema = file_schema()
    assert unknown(yaml.safe_load((folder("inventories") / f"{name}.yaml").read_text()), schema, schema) == []
    assert unknown({"fabric": {"mtuu": 1}}, schema, schema) == ["mtuu"]


def unknown(value: Any, schema: Any, root: Any) -> list[str]:
    """Keys that no alternative of the schema has."""
    if "$ref" in schema:
        return unknown(value, root["definitions"][schema["$ref"].rsplit("/", 1)[-1]], root)
    for word in ("anyOf", "allOf"):
        if word in schema:
            return min((unknown(value, s, root) for s in schema[word]), key=len)
    if isinstance(value, list):
        return [k for v in value for k in unknown(v, schema["items"], root)] if "items" in schema else ["a list"]
    if not isinstance(value, dict):
        return []
    out: list[str] = []
    for key, inner in value.items():
        below = schema.get("properties", {}).get(key, schema.get("additionalProperties", False))
        out += unknown(inner, below, root) if isinstance(below, dict) else [key]
    return out
