"""The JSON report against its published schema."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from fabrictool.model import Report, Status, Subject, SubjectKind
from fabrictool.report.json import tree
from tests.report.reports import finding, passing, plan

SCHEMA = json.loads(files("fabrictool.report").joinpath("schema.json").read_text(encoding="utf-8"))


def _valid(report: Report, verbose: bool = False) -> dict[str, Any]:
    text = json.dumps(tree(report, verbose))
    value: dict[str, Any] = json.loads(text)
    jsonschema.validate(value, SCHEMA)
    return value


def test_schema_is_itself_valid_and_refuses_what_is_wrong() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    value = _valid(plan())
    for broken in ({**value, "schema_version": "2"}, {**value, "extra": 1}, {k: v for k, v in value.items() if k != "summary"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, SCHEMA)


def test_keys_that_scripts_read() -> None:
    value = _valid(plan())
    assert value["summary"] == {"pass": 0, "warn": 0, "fail": 3, "unknown": 0, "skip": 0}
    assert value["simulated"] is True
    qos = next(r for r in value["results"] if r["check"] == "qos")
    assert (qos["status"], qos["code"]) == ("fail", "QOS_TRUST")
    trust = qos["findings"][0]
    assert trust["remedy"] == ["mlnx_qos -i enp1s0f0np0 --trust dscp"]
    assert trust["subject"] == {"kind": "function", "nodes": ["spark01"], "port": "p0", "function": "enp1s0f0np0", "rail": "a"}
    assert trust["id"] == "QOS_TRUST|function:spark01:p0:enp1s0f0np0:a:|qos.trust"
    pfc = qos["findings"][1]
    assert pfc["risk"] == "flap"
    conf = next(r for r in value["results"] if r["check"] == "env")["findings"][0]
    assert conf["remedy"] == ["write /etc/nccl.conf (mode 0644, 38 bytes)"]
    assert conf["subject"] == {"kind": "node", "nodes": ["spark01"]}


def test_passes_are_listed_only_when_asked_for_and_always_counted() -> None:
    quiet, full = _valid(plan()), _valid(plan(), verbose=True)
    link = [next(r for r in v["results"] if r["check"] == "link") for v in (quiet, full)]
    assert [len(r["findings"]) for r in link] == [1, 4]
    assert link[0]["evidence"] == link[1]["evidence"] == {"compared": 4, "nodes": 4}


def test_a_clean_report_has_no_code() -> None:
    value = _valid(plan({"spark01": (passing("spark01", "link.mtu"), passing("spark01", "qos.trust"), passing("spark01", "env.x"))}))
    assert {r["code"] for r in value["results"]} == {None}
    assert value["summary"]["pass"] == 3


@pytest.mark.parametrize("got", ["\udcff\udc80", "\x1b[2J", "\ud800", "a\x00b", "\u202egnp"])
def test_hostile_text_stays_valid_ascii_json(got: str) -> None:
    report = plan({"spark01": (finding(got=got, why=got),)})
    text = json.dumps(tree(replace(report, notes=(got,))))
    text.encode("ascii")
    value = json.loads(text)
    value["results"][1]["findings"][0]["got"].encode("utf-8")
    value["notes"][0].encode("utf-8")


def test_ids_tell_findings_apart() -> None:
    one = finding("spark01")
    other = replace(one, subject=Subject(SubjectKind.FUNCTION, ("spark01",), "p0", "enP2p1s0f0np0", "b"))
    assert len({one.id, other.id, replace(one, path="qos.pfc").id}) == 3
    assert replace(one, status=Status.UNKNOWN, got="?").id == one.id
