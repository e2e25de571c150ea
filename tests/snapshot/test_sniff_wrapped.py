"""The same pieces after everything that terminals, launchers and log collectors wrap around text; and hostile text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.snapshot.sniff import Input, Kind, sniff
from tests.diagnose.wraps import WRAPS
from tests.snapshot.test_sniff import HOSTS, PFC, QOS

CAPTURES = Path(__file__).resolve().parents[1] / "captures"
DEVINFO = (CAPTURES / "rdma" / "ibv_devinfo-v.txt").read_text().partition("\n")[2]
RUN = (CAPTURES / "nccl-tests" / "socket.txt").read_text().partition("\n")[2]
TEXTS = {"qos": QOS, "hosts": HOSTS, "dcb": PFC, "devinfo": DEVINFO, "run": RUN, "env": "NCCL_DEBUG=INFO\nNCCL_IB_TC=104\n"}


def seen(text: str) -> list[tuple[Kind, list[str]]]:
    known = (p for p in sniff(Input("paste", text)) if p.kind is not Kind.UNKNOWN)
    return [(p.kind, [ln.text.strip() for ln in p.lines if ln.text.strip()]) for p in known]


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_wrapped_text_gives_the_same_lines(text: str, wrap: Callable[[str], str]) -> None:
    assert seen(wrap(text)) == seen(text)


def test_pods_that_interleave_are_streams_of_their_own() -> None:
    two = [line for pair in zip(QOS.splitlines(), QOS.splitlines(), strict=True) for line in
           (f"[pod/a/main] {pair[0]}", f"[pod/b/main] {pair[1]}")]
    found = sniff(Input("paste", "\n".join(two)))
    assert [(p.kind, p.label) for p in found] == [(Kind.MLNX_QOS, "a/main"), (Kind.MLNX_QOS, "b/main")]
    assert found[0].lines[1].number == 3
    hosts = sniff(Input("paste", "".join(f"spark0{n}: {line}\n" for n in (1, 2) for line in QOS.splitlines())))
    assert [(p.kind, p.host) for p in hosts] == [(Kind.MLNX_QOS, "spark01"), (Kind.MLNX_QOS, "spark02")]


def test_what_only_looks_like_a_prefix_stays() -> None:
    ip = "1: lo: <LOOPBACK,UP> mtu 65536 qdisc noqueue\n2: eth1: <BROADCAST,UP> mtu 9000 qdisc mq\n"
    assert [ln.text for p in sniff(Input("paste", ip)) for ln in p.lines] == ip.splitlines()
    kernel = "Nov 29 18:09:47 spark01 kernel: mlx5_core 0000:01:00.0 eth1: Link down\n"
    assert [ln.text for p in sniff(Input("paste", kernel)) for ln in p.lines] == kernel.splitlines()


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=400))
def test_any_text(text: str) -> None:
    for piece in sniff(Input("paste", text)):
        assert piece.lines
        assert piece.first_line >= 1


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_damaged_text(name: str, data: st.DataObject) -> None:
    raw = bytearray(TEXTS[name].encode())
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    sniff(Input("paste", raw.decode("utf-8", "surrogateescape")))


@pytest.mark.parametrize("name", TEXTS)
def test_cut_at_every_line(name: str) -> None:
    lines = TEXTS[name].splitlines(keepends=True)
    for n in range(len(lines)):
        for piece in sniff(Input("paste", "".join(lines[:n]))):
            assert piece.last_line <= n


def test_every_line_is_in_at_most_one_piece() -> None:
    text = "".join(TEXTS.values()) + "some words\n" + QOS
    numbers = [ln.number for p in sniff(Input("paste", text)) for ln in p.lines]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("text", [
    "[{" * 200_000, "\"\\" * 200_000, "{" * 100_000, "[[[[]]]]" * 50_000, "1.2.3.4 " + "a " * 200_000, " " * 10**6, "x" * 10**6,
    "\x1b[" * 200_000, "1.2.3.4 " + "a." * 100_000, "\r" * 10**5, "> " * 10**5, "\0" * 10**5], ids=lambda t: repr(t[:8]))
def test_hostile_lines(text: str) -> None:
    sniff(Input("paste", text))
    sniff(Input("paste", f"{text}\n{QOS}"))


def test_log_files_of_containers() -> None:
    lines = RUN.splitlines()
    docker = "".join(json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2026-11-29T18:09:47.1Z"}, separators=(",", ":")) + "\n"
                     for line in lines)
    assert seen(docker) == seen(RUN)
    assert seen("".join(f"2026-11-29T18:09:47.123456789+01:00 stdout F {line}\n" for line in lines)) == seen(RUN)


@pytest.mark.parametrize(("text", "hosts"), [
    (f"----------------\nspark01\n----------------\n{QOS}----------------\nspark02\n----------------\n{QOS}", ["spark01", "spark02"]),
    (f"spark01 | CHANGED | rc=0 >>\n{HOSTS}spark02 | FAILED | rc=1 >>\n{QOS}", ["spark01", "spark02"]),
    (f"==> /etc/hosts <==\n{HOSTS}\n==> /etc/nccl.conf <==\nA=1\n", ["", ""]),
], ids=["dshbak", "ansible", "head"])
def test_headlines_say_whose_output_follows(text: str, hosts: list[str]) -> None:
    found = [p for p in sniff(Input("paste", text)) if p.kind is not Kind.UNKNOWN]
    assert [p.host for p in found] == hosts
    assert len(found) == 2


def test_own_words_after_an_output_are_not_part_of_it() -> None:
    (piece, words) = sniff(Input("paste", f"$ cat /etc/hosts\n{HOSTS}\nMany thanks\n"))
    assert (piece.kind, words.kind) == (Kind.HOSTS, Kind.UNKNOWN)
    assert piece.last_line == 4
