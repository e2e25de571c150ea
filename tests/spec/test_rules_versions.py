"""Content probes, locked memory and the kernel log's window: each rule with a spec that breaks it and a twin that does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabrictool.spec.fileschema import file_schema
from fabrictool.spec.schema import NODE
from tests.spec.base import BASE, edited, look, marked

DIGEST = "0123456789abcdef" * 4
LAST = "kernel_caches:"
PROBE = f'{{name: patch, container: "vllm-[0-9]", path: /opt/vllm/patch.py, sha256: {DIGEST}}}'


def probes(*rows: str) -> str:
    return edited(LAST, f"versions: {{probes: [{', '.join(rows)}]}}\n{LAST}")


def test_what_may_be_asked(tmp_path: Path) -> None:
    seen = look(tmp_path, probes(PROBE, "{name: b, path: /etc/x.conf, text: \"a = 1 # 'b'\"}", "{name: c, container: host, path: /a}"))
    assert seen.problems == ()
    assert seen.site is not None
    first, second, third = seen.site.nodes[0].versions.probes
    assert (first.container, first.sha256, first.text) == ("vllm-[0-9]", DIGEST, None)
    assert (second.container, second.text) == ("host", "a = 1 # 'b'")
    assert (third.sha256, third.text) == (None, None)
    plain = look(tmp_path, BASE).site
    assert plain is not None
    assert plain.nodes[0].versions.probes == ()
    assert plain.nodes[0].memlock.at_least == 16 << 30
    assert (plain.nodes[0].kernel_log.hours, plain.nodes[0].kernel_log.link_downs) == (24, 5)


@pytest.mark.parametrize(("text", "severity", "what"), [
    (probes(PROBE, PROBE.replace("name: patch", "name: ¦patch")), "error", "two probes are called"),
    (probes("{name: a, path: /a, sha256: " + DIGEST + ", text: ¦x}"), "error", "both sha256 and text"),
    (probes("{name: a, path: ¦/a/../b}"), "error", "is no path of a file"),
    (probes("{name: a, path: ¦/a/}"), "error", "is no path of a file"),
    (probes("{name: a, path: ¦a}"), "error", "has to be text that matches"),
    (probes("{name: a, path: \"¦/a b\"}".replace("\"¦", "¦\"")), "error", "has to be text that matches"),
    (probes("{name: a, path: /a, sha256: ¦ABC}"), "error", "has to be text that matches"),
    (probes("{name: a, path: /a, text: ¦\"\"}"), "error", "has to be text that matches"),
    (probes("{name: a, path: /a, container: ¦\"$(id)\"}"), "error", "has to be text that matches"),
    (probes("{name: a, ¦paht: /a}"), "error", 'unknown key "paht"'),
    (edited(LAST, f"memlock: {{at_least: ¦64}}\n{LAST}"), "error", "has no unit"),
    (edited(LAST, f"memlock: {{at_least: ¦8MiB}}\n{LAST}"), "warning", "not enough for RDMA"),
    (edited(LAST, f"kernel_log: {{hours: ¦0}}\n{LAST}"), "error", "at least 1"),
    (edited(LAST, f"kernel_log: {{hours: ¦721}}\n{LAST}"), "error", "at most 720"),
    (edited(LAST, f"kernel_log: {{¦hour: 2}}\n{LAST}"), "error", 'unknown key "hour"'),
])
def test_a_rule_and_its_place(tmp_path: Path, text: str, severity: str, what: str) -> None:
    plain, place = marked(text)
    found = look(tmp_path, plain).problems
    assert any((p.line, p.col) == place and p.severity == severity and what in p.what for p in found), [p.text for p in found]


@pytest.mark.parametrize("good", ["memlock: {at_least: 64MiB}", "memlock: {}", "kernel_log: {hours: 720, link_downs: 1}", "versions: {}",
                                  "versions: {probes: []}"])
def test_twins(tmp_path: Path, good: str) -> None:
    assert look(tmp_path, edited(LAST, f"{good}\n{LAST}")).problems == ()


def test_a_node_spec_travels_as_json(tmp_path: Path) -> None:
    site = look(tmp_path, probes(PROBE)).site
    assert site is not None
    node = site.nodes[0]
    assert NODE.validate_json(json.dumps(json.loads(NODE.dump_json(node)))) == node


def test_the_schema_knows_them() -> None:
    node = file_schema()["definitions"]["Node"]["properties"]
    assert all(node[key]["description"] for key in ("versions", "memlock", "kernel_log"))
