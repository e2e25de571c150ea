"""/etc/hosts: reading and editing, held against a reader that is not ours and against getent where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.names.hosts import edited, lookup, loopback, owner, parse_line

OWN = {"spark01": "10.10.1.1"}
PEERS = {**OWN, "spark02": "10.10.1.2", "spark03": "10.10.1.3"}


@pytest.mark.parametrize(("before", "after"), [
    ("127.0.0.1 localhost\n127.0.1.1 spark01\n", "127.0.0.1 localhost\n10.10.1.1 spark01\n"),
    ("127.0.1.1\tspark01.lan\tspark01 # me\n", "10.10.1.1\tspark01.lan\tspark01 # me\n"),
    ("  127.0.1.1 spark01 old-alias\n", "  10.10.1.1 spark01 old-alias\n"),
    ("127.0.0.1 localhost spark01\n", "127.0.0.1 localhost\n10.10.1.1 spark01\n"),
    ("127.0.0.1 spark01 localhost # c\n", "127.0.0.1 localhost # c\n10.10.1.1 spark01\n"),
    ("::1 localhost ip6-localhost spark01\n", "::1 localhost ip6-localhost\n10.10.1.1 spark01\n"),
    ("::1 spark01\n", "10.10.1.1 spark01\n"),
    ("127.0.1.1 spark01", "10.10.1.1 spark01"),  # no newline at the end: still none
    ("127.0.0.1 localhost", "127.0.0.1 localhost\n10.10.1.1 spark01"),
    ("127.0.1.1 spark01\r\n127.0.0.1 localhost\r\n", "10.10.1.1 spark01\r\n127.0.0.1 localhost\r\n"),
    ("127.0.0.1 localhost\r\n", "127.0.0.1 localhost\r\n10.10.1.1 spark01\r\n"),
    ("127.0.0.1 localhost\r\n# x", "127.0.0.1 localhost\r\n# x\r\n10.10.1.1 spark01"),
    ("127.0.0.1 localhost spark01.lan spark01\n", "127.0.0.1 localhost\n10.10.1.1 spark01.lan spark01\n"),
    ("# 127.0.1.1 spark01\n", "# 127.0.1.1 spark01\n10.10.1.1 spark01\n"),
    ("10.10.1.1 spark01\n127.0.1.1 spark01\n", "10.10.1.1 spark01\n"),
    ("10.10.1.1 spark01\n\n127.0.1.1 spark01", "10.10.1.1 spark01\n\n"),
    ("10.10.1.1 spark01\n127.0.1.1 spark01.lan spark01\n", "10.10.1.1 spark01\n10.10.1.1 spark01.lan spark01\n"),
    ("192.168.1.11 SPARK01\n", "10.10.1.1 SPARK01\n"),
    ("192.168.1.11 spark01 nas\n", "192.168.1.11 nas\n10.10.1.1 spark01\n"),
    ("fd00::1 spark01\n", "fd00::1 spark01\n10.10.1.1 spark01\n"),  # another family: someone else's business
    ("bogus spark01\n\udcff\udcfe\n", "bogus spark01\n\udcff\udcfe\n10.10.1.1 spark01\n"),
    ("10.10.1.1 spark010 xspark01\n", "10.10.1.1 spark010 xspark01\n10.10.1.1 spark01\n"),
    ("", "10.10.1.1 spark01\n"),
    ("\n", "\n10.10.1.1 spark01\n"),
    ("10.10.1.1\u00a0spark01 x\n", "10.10.1.1\u00a0spark01 x\n10.10.1.1 spark01\n"),  # a no-break space separates nothing
])
def test_edited(before: str, after: str) -> None:
    assert edited(before, OWN) == after
    assert edited(after, OWN) == after


def test_peers_together() -> None:
    text = "127.0.0.1 localhost\n127.0.1.1 spark01\n10.9.9.9 spark02 spark03\n10.10.1.2 nas\n"
    assert edited(text, PEERS) == ("127.0.0.1 localhost\n10.10.1.1 spark01\n10.10.1.2 nas\n10.10.1.2 spark02\n10.10.1.3 spark03\n")


def test_a_cloned_image() -> None:
    assert edited("127.0.1.1 spark02\n", {"spark02": "10.10.1.2"}) == "10.10.1.2 spark02\n"


def test_ipv6_bootstrap() -> None:
    assert edited("::1 spark01\n10.1.1.1 spark01\n", {"spark01": "fd00::1"}) == "fd00::1 spark01\n10.1.1.1 spark01\n"


@pytest.mark.parametrize(("address", "is_it"), [
    ("127.0.0.1", True), ("127.0.1.1", True), ("127.255.0.9", True), ("::1", True), ("::ffff:127.0.0.1", True), ("128.0.0.1", False),
    ("10.10.1.1", False), ("fe80::1%eth0", False), ("localhost", False), ("", False),
])
def test_loopback(address: str, is_it: bool) -> None:
    assert loopback(address) is is_it


def test_owner_is_whole_or_qualified() -> None:
    assert owner("spark01.lan", OWN) == "spark01"
    assert owner("spark010", OWN) == ""
    assert owner("Spark01", OWN) == "spark01"


LINE = st.one_of(
    st.builds(lambda a, gap, names, tail: a + gap + gap.join(names) + tail,
              st.sampled_from(["127.0.0.1", "127.0.1.1", "::1", "10.10.1.1", "10.10.1.2", "10.9.9.9", "fd00::5", "junk"]),
              st.sampled_from([" ", "\t", "  \t"]),
              st.lists(st.sampled_from(["spark01", "spark02", "spark03", "spark01.lan", "localhost", "nas", "SPARK02"]), min_size=1,
                       max_size=4),
              st.sampled_from(["", " ", " # spark01", "\r", "#x"])),
    st.sampled_from(["", "# 127.0.1.1 spark01", "\udcff", "   ", "127.0.0.1"]))
TEXT = st.builds(lambda lines, end: "\n".join(lines) + ("\n" if end else ""), st.lists(LINE, max_size=8), st.booleans())


def other_reader(text: str) -> dict[str, list[str]]:
    """hosts(5): name (without case) -> addresses in order."""
    out: dict[str, list[str]] = {}
    for raw in text.encode("utf-8", "surrogateescape").split(b"\n"):
        fields = raw.split(b"#")[0].split()
        if len(fields) > 1 and fields[0] != b"junk" and b"\xff" not in fields[0]:
            for name in fields[1:]:
                out.setdefault(name.decode("utf-8", "surrogateescape").lower(), []).append(fields[0].decode())
    return out


@settings(max_examples=400, deadline=None)
@given(TEXT)
def test_properties(text: str) -> None:
    new = edited(text, PEERS)
    assert edited(new, PEERS) == new
    before, after = other_reader(text), other_reader(new)
    for name, address in PEERS.items():
        assert address in after[name]
        assert not [a for a in after[name] if a != address and (":" not in a or a == "::1")]
    for name in set(before) - set(PEERS) - {"spark01.lan", "nas"}:  # those two may move along with a loopback line
        assert after.get(name) == before[name]
    assert set(before) <= set(after)  # no name is lost: sudo needs its own
    untouched = [ln for ln in text.split("\n") if parse_line(ln) is None]
    assert [ln for ln in new.split("\n") if parse_line(ln) is None][:len(untouched)] == untouched or not new.endswith("\n")
    if text and parse_line(text.split("\n")[-1]) is None:  # else that last line may have been dropped
        assert new.endswith("\n") == text.endswith("\n")


@settings(max_examples=200, deadline=None)
@given(TEXT)
def test_lookup_agrees(text: str) -> None:
    reader = other_reader(text)
    for name in PEERS:
        assert list(lookup(text, name)) == list(dict.fromkeys(reader.get(name, [])))


@pytest.mark.skipif(shutil.which("busybox") is None, reason="busybox is not here")
def test_a_10_mb_line() -> None:
    assert lookup("10.10.1.1 " + "x" * 10_000_000 + " spark01\n", "spark01") == ("10.10.1.1",)
    assert edited("# " + "x" * 10_000_000 + "\n", OWN).endswith("\n10.10.1.1 spark01\n")


@pytest.mark.skipif(shutil.which("unshare") is None or shutil.which("getent") is None, reason="needs unshare and getent")
def test_getent_reads_what_was_edited(tmp_path: Path) -> None:
    """glibc's own reader, in a mount namespace of its own."""
    hosts = tmp_path / "hosts"
    text = edited("127.0.0.1 localhost\r\n127.0.1.1\tspark01.lan spark01\n10.9.9.9 spark02 nas", PEERS)
    hosts.write_text(text, newline="")
    (tmp_path / "nsswitch").write_text("hosts: files\n")
    shell = f'mount --bind "{hosts}" /etc/hosts && mount --bind "{tmp_path}/nsswitch" /etc/nsswitch.conf && getent ahosts spark01 spark02'
    ran = subprocess.run(["unshare", "-m", "sh", "-c", shell + "; getent ahosts spark02; getent ahosts nas"], capture_output=True,
                         text=True, timeout=30, check=False)
    if ran.returncode and "ermitted" in ran.stderr:
        pytest.skip("no mount namespaces here")
    addresses = [ln.split()[0] for ln in ran.stdout.splitlines()]
    assert set(addresses) == {"10.10.1.1", "10.10.1.2", "10.9.9.9"}
