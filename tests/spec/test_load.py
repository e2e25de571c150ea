"""The loader: YAML 1.2 scalars, positions, traps, limits, files that are no spec."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fabrictool.spec import compose as composing
from fabrictool.spec.compose import compose
from fabrictool.spec.load import MAX_BYTES, load
from fabrictool.spec.problems import SpecError
from fabrictool.spec.scalars import ScalarError, read
from fabrictool.spec.tree import Map, locate, plain
from tests.spec.base import short, write


@pytest.mark.parametrize(("text", "value"), [
    ("off", "off"), ("yes", "yes"), ("No", "No"), ("true", True), ("FALSE", False), ("~", None), ("", None), ("12", 12),
    ("-3", -3),
    ("0x1F", 31), ("0o17", 15), ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("1_000", "1_000"), ("0b1", "0b1"),
    ("2026-01-02", "2026-01-02"),
    (".inf", ".inf"), ("0", 0), ("sm_121a", "sm_121a"), ("02:00:00:00:00:0a", "02:00:00:00:00:0a"), ("10.0.0.1", "10.0.0.1"),
    ("1:", "1:"),
])
def test_plain_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    got = read(text)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize("text", ["41:00.0", "0000:41:00.0", "12:30", "10:20:30:40:50:01", "010", "007", "1" * 19, "1e999"])
def test_what_versions_of_yaml_read_differently_is_refused(text: str) -> None:
    with pytest.raises(ScalarError) as e:
        read(text)
    assert "quote it" in e.value.do


def tree_of(text: str) -> Map:
    tree, problems = compose(text, "f")
    assert problems == []
    assert isinstance(tree, Map)
    return tree


def problems_of(text: str) -> list[str]:
    return short(tuple(compose(text, "f")[1]))


def test_every_value_and_key_has_its_place() -> None:
    tree = tree_of("a: 1\nb:\n  - x\n  - {c: 'y'}\n")
    found = locate(tree, ("b", 1, "c"))
    assert (found.tree.mark.line, found.tree.mark.col) == (4, 9)
    assert (found.key.line, found.key.col) == (4, 6)
    assert plain(tree) == {"a": 1, "b": ["x", {"c": "y"}]}


def test_quoted_scalars_are_text() -> None:
    tree = tree_of("a: '41:00.0'\nb: \"010\"\nc: |\n  12\nd: 'true'\n")
    assert plain(tree) == {"a": "41:00.0", "b": "010", "c": "12\n", "d": "true"}


def test_anchors_and_aliases_work() -> None:
    assert plain(tree_of("a: &x {k: 1}\nb: *x\n")) == {"a": {"k": 1}, "b": {"k": 1}}


@pytest.mark.parametrize(("text", "want"), [
    ("a: 1\nb: 2\na: 3\n", ['3:1 error: the key "a" stands here a second time']),
    ("{26: 1, '26': 2, 0x1a: 3}",
     ['1:9 error: the key "26" stands here a second time', '1:18 error: the key "26" stands here a second time']),
    ("a: 41:00.0\nb: [010]\n",
     ["1:4 error: unquoted 41:00.0 can be read as a number", "2:5 error: unquoted 010 starts with a zero"]),
    ("a: {r: r[0-7], s: [ens[0-3,6]np0]}\nb: {p[0-1]: {x: 10.0.[0-7].0/24}}\n", [
        "1:8 error: unquoted range r[0-7] in a flow list or mapping",
        "1:20 error: unquoted range ens[0-3,6]np0 in a flow list or mapping",
        "2:5 error: unquoted range p[0-1] in a flow list or mapping",
        "2:17 error: unquoted range 10.0.[0-7].0/24 in a flow list or mapping"]),
    ("a: !!python/object/apply:os.system ['x']\n", ['1:4 error: a tag: "tag:yaml.org,2002:python/object/apply:os.system"']),
    ("a: &x 1\n<<: {b: 1}\n", ["2:1 error: a merge key (<<)"]),
    ("a: *x\n", ["1:4 error: an alias to an anchor that is not there: *x"]),
    ("a: &x [*x]\n", ["1:8 error: an alias to what it is part of: *x"]),
    ("a: 1\n---\nb: 1\n", ["2:1 error: a second document"]),
    ("[a]: 1\n", ["1:1 error: a key has to be a name or a whole number, not a list"]),
    ("true: 1\n~: 2\n", ["1:1 error: a key has to be a name or a whole number, not true or false",
                        "2:1 error: a key has to be a name or a whole number, not nothing"]),
    ("a:\n\tb: 1\n", ["2:1 error: not YAML: a tab is no indentation in YAML"]),
    ("a: b: c\n", ["1:5 error: not YAML: a colon and blank where no key can be"]),
    ("a: @b\n", ["1:4 error: not YAML: this sign cannot start an unquoted value"]),
    ("a: 'b\n", ["2:1 error: not YAML: a quote or bracket that is never closed"]),
    ('a: "\\ud800"\n', ["1:4 error: an escape that is no character"]),
    ("a: 1\nb: \x07\n", ["2:4 error: a control character (U+0007)"]),
])
def test_traps_are_named_at_their_place(text: str, want: list[str]) -> None:
    assert problems_of(text) == want


def test_an_unquoted_range_says_what_to_write() -> None:
    problems = compose("a: {r: 10.20.[0-7].0/24}\n", "f")[1]
    assert problems[0].do == 'quote it: "10.20.[0-7].0/24"'
    tree = compose("a: {r: 10.20.[0-7].0/24}\n", "f")[0]
    assert tree is not None
    assert plain(tree) == {"a": {"r": "10.20.[0-7].0/24"}}, "what stands behind it is still read"


def test_ranges_outside_of_brackets_need_no_quotes() -> None:
    assert plain(tree_of("p[0-7]:\n  x: 10.20.[0-7].0/24\n")) == {"p[0-7]": {"x": "10.20.[0-7].0/24"}}


def test_aliases_cannot_multiply_without_end() -> None:
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
    assert any(f"more than {composing.MAX_VALUES} values" in p for p in problems_of(bomb))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_depth_is_limited(opening: str) -> None:
    (said,) = [p for p in compose(opening * 5000, "f.yaml")[1] if "levels deep" in p.what]
    assert said.do.startswith("look for a [ or { that is not closed")


def test_many_unquoted_ranges_end(tmp_path: Path) -> None:
    tree, problems = compose("a: [" + "r[0-1]," * 300 + "]", "f")
    assert tree is None
    assert len(problems) == composing.MAX_REPAIRS + 1


def test_crlf_and_bom_are_read(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, "\ufeffa: 1\r\nb: [x]\r\n"))
    assert loaded.problems == ()
    assert loaded.tree is not None
    assert plain(loaded.tree) == {"a": 1, "b": ["x"]}


@pytest.mark.parametrize(("text", "want"), [("", "the file is empty"), ("# only this\n", "the file is empty"),
    ("---\n", "this is nothing"),
    ("- a\n", "this is a list"), ("hello\n", "this is text")])
def test_files_that_are_no_mapping(text: str, want: str, tmp_path: Path) -> None:
    loaded = load(write(tmp_path, text))
    assert loaded.tree is None
    assert want in loaded.problems[0].what


def test_not_utf8_is_named_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(b"a: 1\nb: caf\xe9\n")
    loaded = load(path)
    assert short(loaded.problems) == ["2:7 error: not UTF-8: byte 0xe9"]


@pytest.mark.parametrize("make", ["missing", "folder", "fifo", "large"])
def test_what_cannot_be_read_is_one_clear_error(make: str, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    if make == "folder":
        path.mkdir()
    elif make == "fifo":
        os.mkfifo(path)
    elif make == "large":
        path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(SpecError) as e:
        load(path)
    want = {"missing": "there is no such file", "folder": "a directory", "fifo": "not a regular file",
            "large": "larger than 1024 KiB"}
    assert want[make] in str(e.value)
    assert str(path) in str(e.value)
    assert len(e.value.problems) == 1


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(b"a: 1\n" + b"#" * (MAX_BYTES - 5))
    assert load(path).problems == ()
