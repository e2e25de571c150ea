"""Whatever is in the file: a site, or a SpecError. Never another exception."""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabrictool.spec import NodeSpec
from fabrictool.spec.compose import compose
from fabrictool.spec.problems import errors
from fabrictool.spec.resolve import examine
from fabrictool.spec.sections import NODE_KEYS, SITE_ONLY
from fabrictool.spec.tree import plain
from fabrictool.spec.validate import known_keys
from tests.spec.base import BASE

KEYS = st.sampled_from([*SITE_ONLY, *NODE_KEYS, *known_keys(("fabric", "qos")), *known_keys(("env",)),
                        *known_keys(("ports", "p")),
                        "r[0-2]", "n[1-2]", "n1", "26", "a", "sw", "rails", "subnet", "functions", "rail", "rdma"])
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-5, 70000), st.floats(allow_nan=False, allow_infinity=False),
                   st.sampled_from(["n[1-2]", "n[0-99999]", "{bootstrap.address}", "a[0-2]", "1GiB", "10.0.0.0/8", "@x", "none",
                                    "", "dscp"]),
                   st.text(max_size=8))
TREES = st.recursive(LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
                     max_leaves=25)
SOME = ("groups", "nodes", "fabric", "ports", "switches", "env", "ssh", "waves", "checkpoints")
SPECS = st.fixed_dictionaries({"version": st.sampled_from([1, 1, 2]), "site": st.sampled_from(["s", 1])},
                              optional=dict.fromkeys(SOME, TREES))
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def look(raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.yaml"
        path.write_bytes(raw)
        seen = examine(path)
    assert (seen.site is None) == bool(errors(seen.problems))
    lines = raw.count(b"\n") + raw.count(b"\r") + 2
    assert all(p.what and p.line <= lines * 3 and p.col >= 0 for p in seen.problems)
    if seen.site:
        assert seen.site.nodes
        assert all(isinstance(n, NodeSpec) for n in seen.site.nodes)


@QUICK
@given(SPECS)
def test_any_tree(tree: object) -> None:
    look(yaml.safe_dump(tree, allow_unicode=True).encode())


@QUICK
@given(st.sampled_from(list(NODE_KEYS)), TREES)
def test_any_tree_in_place_of_a_section(key: str, tree: object) -> None:
    spec = yaml.safe_load(BASE.replace("n[1-2]", '"n[1-2]"'))
    spec["groups"]["g"][key] = tree
    look(yaml.safe_dump(spec, allow_unicode=True).encode())


@QUICK
@given(st.binary(max_size=80))
def test_any_bytes(raw: bytes) -> None:
    look(raw)


@QUICK
@given(st.integers(0, len(BASE)), st.integers(0, 30), st.text(alphabet="[]{}:,-&*!|>'\"%@`#\t\n a0<", max_size=6))
def test_any_damage_to_a_good_file(at: int, cut: int, new: str) -> None:
    look((BASE[:at] + new + BASE[at + cut:]).encode())


WORDS = st.text(max_size=8)
TEXTS = st.recursive(WORDS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=4)),
                     max_leaves=20)


@QUICK
@given(TEXTS)
def test_quoted_text_is_read_as_pyyaml_reads_it(tree: object) -> None:
    got, problems = compose(yaml.safe_dump(tree, default_style='"', allow_unicode=True), "f")
    assert problems == []
    assert got is not None
    assert plain(got) == tree
