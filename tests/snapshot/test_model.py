"""What can be read from a snapshot, and from one that is not whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fabrictool.model import Absent, Reason, Unreadable, Value
from fabrictool.snapshot import Captured, Section, Snapshot, files, links, sysfs
from fabrictool.snapshot.model import BROKEN, FileText, parse_files
from tests.snapshot.shells import AS_NOBODY, as_root, collect, every_shell


def snap(**sections: Captured) -> Snapshot:
    return Snapshot("n1", sections)


def why(got: object) -> Reason:
    assert isinstance(got, Unreadable)
    return got.reason


@every_shell
def test_files_come_back_byte_for_byte(shell: tuple[str, ...], tmp_path: Path) -> None:
    texts = {"plain": b"one\ntwo\n", "no end": b"one\ntwo", "empty": b"", "crlf": b"a\r\nb\r\n", "bytes": bytes(range(256)),
             "tricky": b"@ file 644 3 /etc/hosts\nabc\n", "q'uote\"s": b"x\n", "newlines": b"\n\n\n"}
    for name, data in texts.items():
        (tmp_path / name).write_bytes(data)
        (tmp_path / name).chmod(0o640)
    (tmp_path / "dangling").symlink_to("/nonesuch")
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    (tmp_path / "folder").mkdir()
    got = collect(shell, [files("f", f"{tmp_path}/*")])
    seen = got.files("f")
    assert not isinstance(seen, Unreadable)
    for name, data in texts.items():
        path = str(tmp_path / name)
        assert seen[path] == Value(FileText(path, data.decode("utf-8", "surrogateescape"), 0o640, os.geteuid()))
    assert isinstance(seen[str(tmp_path / "dangling")], Absent)
    assert seen[str(tmp_path / "link")] == Value(FileText(str(tmp_path / "link"), "one\ntwo\n", 0o640, os.geteuid()))
    assert set(seen) == {str(tmp_path / n) for n in [*texts, "dangling", "link"]}
    assert got.file("f", f"{tmp_path}/nothing") == Absent(f"{tmp_path}/nothing")


@every_shell
@as_root
def test_what_may_not_be_seen_is_not_absent(shell: tuple[str, ...], tmp_path: Path) -> None:
    for folder in [tmp_path, *tmp_path.parents]:
        if str(folder).count("/") > 1:
            folder.chmod(folder.stat().st_mode | 0o755)
    for name, mode in (("open", 0o755), ("shut", 0o700), ("unlisted", 0o711)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.conf").write_text("x\n")
        (tmp_path / name).chmod(mode)
    (tmp_path / "open/secret").write_text("x\n")
    (tmp_path / "open/secret").chmod(0o600)
    asked = files("f", *(f"{tmp_path}/{n}/{g}" for n in ("open", "shut", "unlisted") for g in ("*.conf", "a.conf", "b.conf")),
                  f"{tmp_path}/open/secret")
    got = collect(shell, [asked], as_user=AS_NOBODY)
    assert isinstance(got.file("f", f"{tmp_path}/open/a.conf"), Value)
    assert isinstance(got.file("f", f"{tmp_path}/open/b.conf"), Absent)
    assert why(got.file("f", f"{tmp_path}/open/secret")) is Reason.NEEDS_ROOT
    assert why(got.file("f", f"{tmp_path}/shut/a.conf")) is Reason.NEEDS_ROOT
    assert why(got.file("f", f"{tmp_path}/shut/c.conf")) is Reason.NEEDS_ROOT  # by the glob
    assert isinstance(got.file("f", f"{tmp_path}/unlisted/a.conf"), Value)
    assert why(got.file("f", f"{tmp_path}/unlisted/c.conf")) is Reason.NEEDS_ROOT
    alone = collect(shell, [files("f", f"{tmp_path}/shut/a.conf", f"{tmp_path}/unlisted/b.conf")], as_user=AS_NOBODY)
    assert why(alone.file("f", f"{tmp_path}/shut/a.conf")) is Reason.NEEDS_ROOT
    assert isinstance(alone.file("f", f"{tmp_path}/unlisted/b.conf"), Absent)
    root = collect(shell, [asked])
    assert isinstance(root.file("f", f"{tmp_path}/shut/a.conf"), Value)
    assert isinstance(root.file("f", f"{tmp_path}/shut/c.conf"), Absent)


def test_every_prefix_of_a_files_section() -> None:
    whole = "@ file 644 4 /a\none\n\n@ denied - - /b\n@ dangling - - /c\n@ file 600 0 /d\n\n@ file 644 3 /e\nend\n"
    full = parse_files(whole)
    assert set(full) == {"/a", "/b", "/c", "/d", "/e"}
    for end in range(len(whole)):
        text = whole[:end]
        got = Snapshot("n1", {"f": Captured(0, text)})
        cut = text and not (text.endswith("\n") and whole[end:end + 2] in ("@ ", ""))
        for path in full:
            seen = got.file("f", path)
            assert seen == full[path] or isinstance(seen, Unreadable) or (not cut and isinstance(seen, Absent)), (end, path)
    assert why(Snapshot("n1", {"f": Captured(1, whole)}).file("f", "/a")) is Reason.FAILED


@pytest.mark.parametrize("text", ["garbage\n", "@ file 644 x /a\nabc\n", "@ file 644 9999 /a\nabc\n", "@ file 644 ² /a\nab\n",
                                  "@ other - - /a\n", "@ file 644 2 /a\nabc\n@ file 644 1 /b\nx\n", "@ file 644\n", "@"])
def test_a_broken_stream_says_nothing_of_what_follows(text: str) -> None:
    got = snap(f=Captured(0, "@ file 644 2 /ok\nab\n" + text))
    assert BROKEN in parse_files(got.sections["f"].out)
    assert isinstance(got.file("f", "/ok"), Value) is text.startswith("@ ")  # else its own end is in doubt
    assert why(got.file("f", "/zzz")) is Reason.CUT
    assert isinstance(snap(f=Captured(0, "@ file 644 2 /ok\nab\n")).file("f", "/zzz"), Absent)


def test_a_file_that_shrank_does_not_swallow_the_next() -> None:
    got = snap(f=Captured(0, "@ file 644 30 /a\nshort\n@ file 644 2 /b\nxy\n@ file 644 1 /c\nz\n"))
    assert why(got.file("f", "/a")) is Reason.CUT
    assert why(got.file("f", "/b")) is Reason.CUT


@every_shell
def test_sysfs_and_links(shell: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "mtu").write_text("9000\n")
    (tmp_path / "two").write_text("a: 1\nb\n")
    (tmp_path / "bare").write_text("x")
    os.symlink("mtu", tmp_path / "to")
    got = collect(shell, [sysfs("s", f"{tmp_path}/*", f"{tmp_path}/nothing"), links("l", f"{tmp_path}/*")])
    assert got.sysfs("s") == {f"{tmp_path}/{n}": t for n, t in
                              {"mtu": "9000", "two": "a: 1\nb", "bare": "x", "to": "9000"}.items()}
    assert got.links("l") == {f"{tmp_path}/to": f"{tmp_path}/mtu"}


def test_sysfs_content_cannot_forge_another_line() -> None:
    for sign in ("\u2028", "\x85", "\x0b", "\x1c", "\r"):
        got = snap(s=Captured(0, f"/sys/a/ifalias:x{sign}/sys/a/mtu:9000\n")).sysfs("s")
        assert not isinstance(got, Unreadable)
        assert list(got) == ["/sys/a/ifalias"]


def test_a_section_that_did_not_reach_its_end_is_unreadable() -> None:
    for rc, reason in ((2, Reason.FAILED), (124, Reason.TIMEOUT), (127, Reason.TOOL_MISSING)):
        got = snap(s=Captured(rc, "/sys/a:1\n"))
        assert {why(got.sysfs("s")), why(got.links("s")), why(got.files("s"))} == {reason}
    assert snap(s=Captured(0, "/sys/a:1\n")).sysfs("s") == {"/sys/a": "1"}


def test_output_beyond_the_size_limit_is_unreadable() -> None:
    got = Snapshot("n1", {"tool": Captured(0, "all of it\n", cut=True)}).text("tool")
    assert isinstance(got, Unreadable)
    assert got.reason is Reason.CUT
    assert Snapshot("n1", {"tool": Captured(0, "all of it\n")}).text("tool") == Value("all of it\n")


def test_merged() -> None:
    old = Snapshot("n1", {"a": Captured(0, "1"), "b[x]": Captured(0, "1"), "b[y]": Captured(0, "1"), "c": Captured(0, "1")}, taken="T1")
    new = Snapshot("n1", {"a": Captured(0, "2"), "b[x]": Captured(0, "2")}, taken="T2")
    got = old.merged(new)
    assert {k: c.out for k, c in got.sections.items()} == {"a": "2", "b[x]": "2", "c": "1"}  # y is gone
    assert got.taken == "T2"
    none_left = old.merged(Snapshot("n1", {"a": Captured(0, "2")}), asked=("a", "b"))
    assert set(none_left.sections) == {"a", "c"}
    lost = Snapshot("n1", error=Unreadable(Reason.CUT, "x"))
    assert old.merged(lost) == lost
    assert lost.merged(new) == new


def test_a_section_name_with_a_limit_of_its_own() -> None:
    assert collect(("dash",), [Section("a", "echo 12345", max_bytes=3)]).sections["a"].out == "123"
