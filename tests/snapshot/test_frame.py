"""Frames: whole ones come back exactly, anything else is an error and never a part."""

from __future__ import annotations

import gzip
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Reason, Unreadable
from fabrictool.snapshot import Captured, Section, Snapshot, collector, frame
from tests.snapshot.frames import _wrapped, around, body

TWO = {"a": Captured(0, "hello\n" * 30, "told\n", 10), "b[eth0]": Captured(3, "", "no\n", 20)}
PACKINGS = ("gzip-b64", "gzip-hex", "plain")


def parse(text: str | bytes) -> Snapshot:
    return frame.parse("n1", text, "T")


def reason(text: str | bytes) -> Reason:
    snap = parse(text)
    assert snap.error is not None
    assert not snap.sections
    assert (snap.node, snap.taken) == ("n1", "T")
    return snap.error.reason


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("form", ["b64", "hex"])
def test_a_whole_frame(packing: str, form: str) -> None:
    snap = parse(around(body(TWO, form), packing))
    assert snap.error is None
    assert dict(snap.sections) == TWO
    assert (snap.uid, snap.taken, snap.ssh) == (1000, "T", "")


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_prefix_is_an_error(packing: str) -> None:
    whole = around(body(TWO), packing)
    for end in range(len(whole) - 1):  # the last character is a newline, which pyinfra may take away
        assert reason(whole[:end]) in (Reason.CUT, Reason.EMPTY, Reason.GARBLED), end
    assert parse(whole[:-1]).error is None


def test_every_prefix_of_a_real_frame_is_an_error() -> None:
    program = collector.script([Section("a", "cat /proc/meminfo"), Section("b", "echo x >&2; exit 2")], lanes=2)
    whole = subprocess.run(["sh", "-s"], input=program.encode(), capture_output=True, check=False).stdout
    assert parse(whole).error is None
    for end in range(len(whole) - 1):
        assert parse(whole[:end]).error is not None, end


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_single_damage_is_noticed(packing: str) -> None:
    whole = around(body({"a": Captured(0, "hi\n")}), packing)
    begin, end = whole.index("\n", 1) + 1, whole.index("\nFABRICTOOL-END")
    for at in range(begin, end):
        for damaged in (whole[:at] + whole[at + 1:], whole[:at] + "A" + whole[at:], whole[:at] + "\nhello" + whole[at:]):
            got = parse(damaged)
            assert got.error is not None or dict(got.sections) == {"a": Captured(0, "hi\n")}, at
        other = "B" if whole[at] == "A" else "A"
        changed = parse(whole[:at] + other + whole[at + 1:])
        # gzip's own header has bytes that mean nothing (time, system)
        assert changed.error is not None or dict(changed.sections) == {"a": Captured(0, "hi\n")}, at


def test_noise_within_is_noticed_without_any_checksum() -> None:
    lines = body(TWO).split("\n")
    for at in range(1, len(lines)):
        text = "\n".join([*lines[:at], "abcd", *lines[at:]])  # good base64
        size = len("\n".join(lines))
        assert reason(f"\nFABRICTOOL-FRAME 1 plain\n{text}\nFABRICTOOL-END 1 {size} -\n") is Reason.GARBLED
    clean = "\n".join(lines)
    assert parse(f"\nFABRICTOOL-FRAME 1 plain\n{clean}\nFABRICTOOL-END 1 {len(clean)} -\n").error is None


def test_noise_around_is_tolerated() -> None:
    whole = around(body(TWO))
    for noisy in ("motd\n" + whole, "\x1b[2Jprompt$ " + whole + "logout\n", whole.replace("\n", "\r\n"), "\r\n\r\n" + whole):
        assert dict(parse(noisy).sections) == TWO
    assert dict(parse(b"caf\xe9 \xff\n" + whole.encode()).sections) == TWO


def test_reasons() -> None:
    whole = around(body(TWO))
    assert reason("") is Reason.EMPTY
    assert reason(b" \r\n") is Reason.EMPTY
    assert reason("This account is currently not available.\n") is Reason.GARBLED
    assert "not available" in str(parse("This account is currently not available.\n").error)
    assert reason(whole + whole) is Reason.GARBLED
    assert reason(whole[:-30]) is Reason.CUT
    assert reason("\nFABRICTOOL-FRA") is Reason.CUT
    assert reason(whole.replace("FRAME 1", "FRAME 2")) is Reason.GARBLED
    assert reason(whole.replace("gzip-b64", "zstd")) is Reason.GARBLED
    assert reason(around(body(TWO).replace("b64 2", "none 2"))) is Reason.TOOL_MISSING


@pytest.mark.parametrize(("old", "new"), [
    ("S 1 b", "S 0 b"), ("S 1 b", "S 7 b"), ("S 1 b", "S 1 b$"), ("end 2", "end 3"), ("E 3 20", "E 999 20"), ("E 3 20", "E -3 20"),
    ("E 3 20\n", ""), ("\n.\n", "\n"), ("snapshot 1", "snapshot 2"), ("b64 2", "b64 3"), ("dG9sZAo=", "dG9s?Ao="), ("dG9sZAo=", "dG9sZAo"),
    ("b ~", "a ~"), ("end 2", "end 2\nmore"), (" ~", " ^"), (" ~ZXRoMA==", " ~"),
])
def test_a_payload_that_is_not_consistent(old: str, new: str) -> None:
    good = body(TWO)
    assert old in good
    bad = good.replace(old, new, 1)
    if (old, new) == ("b ~", "a ~"):
        bad = bad.replace(" ~ZXRoMA==", " -")  # section `a` twice
    assert reason(around(bad)) is Reason.GARBLED


def test_lost_lane_is_named() -> None:
    lines = body(TWO).split("\n")
    first = lines.index(next(ln for ln in lines if ln.startswith("S 1")))
    snap = parse(around("\n".join(lines[:first] + lines[-1:])))
    assert snap.error is not None
    assert "1 of 2 records; missing: 1" in snap.error.why


def test_bombs_are_limited() -> None:
    bomb = gzip.compress(b"\0" * (frame.MAX_BODY + 2), mtime=0)
    packed = _wrapped(bomb, "b64")
    assert reason(f"\nFABRICTOOL-FRAME 1 gzip-b64\n{packed}\nFABRICTOOL-END 1 {len(packed)} -\n") is Reason.CUT
    two = _wrapped(gzip.compress((body(TWO) + "\n").encode()) * 2, "b64")
    assert reason(f"\nFABRICTOOL-FRAME 1 gzip-b64\n{two}\nFABRICTOOL-END 1 {len(two)} -\n") is Reason.GARBLED
    assert reason("x" * 10_000_000) is Reason.GARBLED


def test_limit_makes_cut() -> None:
    over = parse(around(body({"a": Captured(0, "x" * 11)}, limit=10))).sections["a"]
    exact = parse(around(body({"a": Captured(0, "x" * 10)}, limit=10))).sections["a"]
    assert (over.out, over.cut) == ("x" * 10, True)
    assert (exact.out, exact.cut) == ("x" * 10, False)


@pytest.mark.parametrize(("flag", "rc", "out", "err", "denied"), [
    ("sudo", 1, "", "sudo: a password is required\n", True),
    ("sudo", 1, "", "sudo: a terminal is required to read the password; either use ...\nsudo: a password is required\n", True),
    ("sudo", 1, "", "Sorry, user admin is not allowed to execute '/bin/sh' as root on n1.\n", True),
    ("sudo", 1, "", "mlnx_qos: no such device\n", False), ("sudo", 1, "text\n", "sudo: a password is required\n", False),
    ("sudo", 0, "", "sudo: a password is required\n", False), ("-", 1, "", "sudo: a password is required\n", False),
])
def test_sudo_that_refuses_later(flag: str, rc: int, out: str, err: str, denied: bool) -> None:
    text = body({"a": Captured(rc, out, err)}).replace("10000 -", f"10000 {flag}")
    assert parse(around(text)).sections["a"].denied is denied


ANY = st.binary(max_size=200).map(lambda b: b.decode("utf-8", "surrogateescape"))
CAPTURED = st.builds(Captured, st.integers(0, 255), ANY, ANY, st.integers(0, 10**9), st.just(False), st.booleans())
KEYS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,10}", fullmatch=True) | st.tuples(
    st.from_regex(r"[a-z]{1,4}", fullmatch=True), st.binary(min_size=1, max_size=20)).map(
    lambda t: f"{t[0]}[{t[1].decode('utf-8', 'surrogateescape')}]")


@given(st.dictionaries(KEYS, CAPTURED, max_size=5), st.sampled_from(PACKINGS), st.sampled_from(["b64", "hex"]))
@settings(max_examples=150, deadline=None)
def test_round_trip(sections: dict[str, Captured], packing: str, form: str) -> None:
    snap = parse(around(body(sections, form), packing))
    assert snap.error is None
    assert dict(snap.sections) == sections


@given(st.text(alphabet=st.sampled_from("FABRICTOOL-FRAMEND 1gzip64plain\nS0aE.O=~$\x00é\ud800"), max_size=200) | st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_anything_at_all_is_an_error_and_never_raises(text: str | bytes) -> None:
    assert isinstance(parse(text).error, Unreadable)


@given(st.text(max_size=80), st.sampled_from(["", "S 0 a - 100 -\n", "S 0 a - 100 -\nE 0 0\n"]))
@settings(max_examples=200, deadline=None)
def test_any_payload_never_raises(text: str, head: str) -> None:
    payload = f"fabrictool-snapshot 1 b64 1 0 - -\n{head}{text}".encode("utf-8", "surrogatepass")
    packed = _wrapped(gzip.compress(payload, mtime=0), "b64")
    assert parse(f"FABRICTOOL-FRAME 1 gzip-b64\n{packed}\nFABRICTOOL-END 1 {len(packed)} -").error is not None


@given(st.binary(max_size=100))
@settings(max_examples=40, deadline=None)
def test_cksum_is_the_utilitys(data: bytes) -> None:
    done = subprocess.run(["cksum"], input=data, capture_output=True, check=True)
    assert frame.cksum(data) == int(done.stdout.split()[0])
