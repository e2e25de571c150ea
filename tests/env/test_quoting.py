"""Quoting round trips against readers that are not ours."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.env.quoting import Style, items, parse, spell, unspeakable
from fabrictool.env.targets import NCCL_CONF, Target, difference, merged, targets

VALUES = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=60)
NASTY = ["", " ", "a b", "'", '"', "\\", "%n %%", "$HOME `id` $(id)", "#x", "=a,b", "a;b&c|d",
         "*?[x]", "\\n", "é ☃", "%", "a\\", "'\"'", "~root"]


def docker_reader(text: str) -> dict[str, str]:
    """docker/cli's env-file rules: left trim, # comments, split at the first =, nothing else; blanks in a name are an error."""
    out = {}
    for line in text.split("\n"):
        line = line.removesuffix("\r").lstrip(" \t")
        if not line or line.startswith("#"):
            continue
        name, eq, value = line.partition("=")
        assert eq
        assert not re.search(r"\s", name), name
        out[name] = value
    return out


def nccl_reader(text: str) -> dict[str, str]:
    """NCCL 2.23's file reader: split at the first =, nothing trimmed, first setting wins (setenv without overwrite)."""
    out: dict[str, str] = {}
    for line in text.split("\n"):
        name, eq, value = line.partition("=")
        if eq:
            out.setdefault(name, value)
    return out


def systemd_reader(text: str) -> dict[str, str]:
    """Environment= of systemd.syntax(7) and systemd.unit(5): words with C escapes, then specifiers."""
    out = {}
    for line in text.split("\n"):
        if not line.startswith("Environment="):
            continue
        body, words, word, quote, k = line[12:], [], "", "", 0
        while k < len(body):
            c = body[k]
            if c == "\\":
                assert body[k + 1] in '\\"', "only escapes that we mean to write"
                word, k = word + body[k + 1], k + 2
                continue
            if quote and c == quote:
                quote = ""
            elif not quote and c in "\"'":
                quote = c
            elif not quote and c in " \t":
                words.append(word)
                word = ""
            else:
                word += c
            k += 1
        assert not quote
        words.append(word)
        for w in words:
            name, _, value = re.sub(r"%(.)", lambda m: {"%": "%"}.get(m[1], f"<specifier {m[1]}>"), w).partition("=")
            out[name] = value
    return out


def shell_reader(text: str, name: str, shell: str) -> str:
    """Sourced by a real shell from stdin; the value comes back with an end mark, since $(...) would eat newlines."""
    argv = [*shell.split(), "-c", f'. /dev/stdin; printf "%s." "${name}"']
    return subprocess.run(argv, input=text.encode(), capture_output=True, check=True, timeout=20).stdout.decode().removesuffix(".")


def target(kind: str) -> Target:
    return next(iter(targets([kind])))


@given(st.dictionaries(st.from_regex(r"NCCL_[A-Z]{1,4}", fullmatch=True), VALUES, max_size=6))
def test_files_read_back(values: dict[str, str]) -> None:
    assert docker_reader(target("docker_env").text("", values)) == values
    assert nccl_reader(target("nccl_conf").text("", values)) == values
    assert systemd_reader(target("systemd:x").text("", values)) == values


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
@pytest.mark.parametrize("value", NASTY)
def test_profile_read_by_shells(shell: str, value: str) -> None:
    assert shell_reader(target("profile_d").text("", {"NCCL_X": value}), "NCCL_X", shell) == value


@settings(max_examples=40, deadline=None)
@given(VALUES)
def test_profile_read_by_dash(value: str) -> None:
    assert shell_reader(target("profile_d").text("", {"NCCL_X": value}), "NCCL_X", "dash") == value


@given(VALUES, st.sampled_from([Style.CONF, Style.DOCKER, Style.UNIT, Style.SHELL]))
def test_own_reader_agrees(value: str, style: Style) -> None:
    line = spell(style, "NCCL_X", value)
    item = parse(style, 1, line.removeprefix("export ").removeprefix("Environment="))
    assert item is not None
    assert item.key == "NCCL_X"
    # A shell word in double quotes with $ is left to the shell; ours uses single quotes, so the value is known.
    assert item.value == value


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0", "\x1b[2J", "\udcff"])
def test_control_characters_are_refused(value: str) -> None:
    assert unspeakable(Style.DOCKER, "X", value)
    assert not unspeakable(Style.DOCKER, "X", "plain")


def test_length_limits() -> None:
    assert unspeakable(Style.CONF, "NCCL_X", "x" * 1024)
    assert not unspeakable(Style.CONF, "NCCL_X", "x" * 1023)
    assert not unspeakable(Style.UNIT, "NCCL_X", "x" * 1024)
    assert unspeakable(Style.DOCKER, "NCCL_X", "x" * 65536)


FOREIGN = st.lists(st.one_of(st.from_regex(r"NCCL_(A|B|DEBUG)[ \t]?=[a-z ]{0,5}", fullmatch=True), st.sampled_from(
    ["# a comment", "", "export NCCL_A=1", "garbage", "NCCL_A=1\r", "NCCL_Ä=ü", "\udcff=\udcfe", "NCCL_A = 3"])), max_size=8)


@given(FOREIGN, st.booleans(), st.dictionaries(st.sampled_from(["NCCL_A", "NCCL_B"]), st.from_regex(r"[a-z=,]{0,6}", fullmatch=True)))
def test_merging_keeps_others_and_sets_ours(lines: list[str], end: bool, mine: dict[str, str]) -> None:
    text = "\n".join(lines) + ("\n" if end and lines else "")
    new = merged(text, mine)
    assert merged(new, mine) == new
    read = nccl_reader(new)
    assert {k: read.get(k) for k in mine} == mine
    assert "\r\n" not in new
    keys = {i.line: i.key for i in items(Style.CONF, text)}
    foreign = [ln.rstrip("\r") for n, ln in enumerate(text.split("\n"), 1) if keys.get(n) not in mine]
    kept = [ln for ln in new.split("\n") if ln.partition("=")[0] not in mine]
    assert [ln for ln in kept if ln] == [ln for ln in foreign if ln]
    assert all(sum(i.key == k for i in items(Style.CONF, new)) == 1 for k in mine)


def test_conf_takes_only_nccl_and_no_comment() -> None:
    text = target("nccl_conf").text("", {"NCCL_IB_TC": "104", "GLOO_SOCKET_IFNAME": "x"})
    assert text == "NCCL_IB_TC=104\n"


def test_targets() -> None:
    got = list(targets(["nccl_conf", "systemd:vllm", "systemd:ray@1.service", "nccl_conf"]))
    assert [(t.aspect, t.path, t.label) for t in got] == [
        ("nccl_conf", NCCL_CONF, "nccl_conf"),
        ("systemd", "/etc/systemd/system/vllm.service.d/50-fabrictool.conf", "systemd.vllm.service"),
        ("systemd", "/etc/systemd/system/ray@1.service.d/50-fabrictool.conf", "systemd.ray@1.service")]


def test_difference_hides_secrets() -> None:
    got, want = difference("HF_TOKEN=abc\nNCCL_A=1\n", "HF_TOKEN=def\nNCCL_A=2\n")
    assert "abc" not in got
    assert "def" not in want
    assert "NCCL_A=1" in got
    assert "NCCL_A=2" in want


@pytest.mark.parametrize(("style", "raw", "value"), [
    (Style.SHELL, "NCCL_A='a b'", "a b"), (Style.SHELL, "NCCL_A=$(hostname)", None), (Style.SHELL, 'NCCL_A="$X"', None),
    (Style.SHELL, "NCCL_A='$X'", "$X"), (Style.SHELL, "NCCL_A='open", None), (Style.UNIT, '"NCCL_A=a b"', "a b"),
    (Style.UNIT, "NCCL_A=%i", None), (Style.UNIT, "NCCL_A=50%%", "50%"), (Style.UNIT, r'"NCCL_A=a\"b"', 'a"b'),
    (Style.PAM, 'NCCL_A="a b"', "a b"), (Style.ENVFILE, "NCCL_A='x'", "x"), (Style.DOCKER, '  NCCL_A="x"', '"x"'),
    (Style.CONF, 'NCCL_A="x"', '"x"'), (Style.CONF, "NCCL_A=x ", "x "),
])
def test_what_each_reader_makes_of_it(style: Style, raw: str, value: str | None) -> None:
    item = parse(style, 1, raw)
    assert item is not None
    assert (item.key, item.value) == ("NCCL_A", value)


def test_a_comment_is_shown_only_where_nothing_else_differs() -> None:
    assert difference("", "# by us\nNCCL_A=2\n") == ("lacks lines", "NCCL_A=2")
    assert difference("NCCL_A=2\n", "# by us\nNCCL_A=2\n") == ("lacks lines", "# by us")
