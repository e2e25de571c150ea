"""The collector on nodes with other tools, and without root."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabrictool.model import Reason, Unreadable, Value
from fabrictool.snapshot import Section, Snapshot, collector, frame
from tests.snapshot.shells import AS_NOBODY, PATH, as_root, collect, every_shell, raw, tool_folder

BASE = ("sh", "cat", "head", "sleep", "id", "sed", "tr", "printf", "true", "echo", "ls", "setsid", "cksum")
SECTIONS = [Section("a", "printf 'one\\377\\n'; echo two >&2; exit 7"), Section("slow", "sleep 30; echo x", timeout_s=1),
            Section("left", "sleep 20 & echo hi")]


def _same(snap: Snapshot) -> None:
    assert snap.error is None
    a = snap.sections["a"]
    assert (a.rc, a.out, a.err) == (7, "one\udcff\n", "two\n")
    assert snap.sections["slow"].rc == 124
    assert snap.sections["left"].out == "hi\n"


@every_shell
@pytest.mark.parametrize("missing", ["gzip", "base64", "gzip base64", "gzip base64 cksum"])
def test_without_packing_or_base64(shell: Sequence[str], missing: str, tmp_path: Path) -> None:
    have = [t for t in (*BASE, "timeout", "gzip", "base64", "od") if t not in missing.split()]
    if "base64" in missing:
        have = [t for t in have if t != "busybox"]
    _same(collect(shell, SECTIONS, tools=tool_folder(tmp_path / "bin", *have)))


def test_busybox_alone(tmp_path: Path) -> None:
    folder = tool_folder(tmp_path / "bin", busybox=(*BASE, "timeout", "gzip", "base64"))
    snap = collect(("busybox", "sh"), SECTIONS, tools=folder)
    _same(snap)
    assert any("not GNU" in note for note in snap.notes)


def test_busybox_timeout_ends_a_whole_group_and_a_stubborn_one(tmp_path: Path) -> None:
    folder = tool_folder(tmp_path / "bin", busybox=(*BASE, "timeout", "gzip", "base64"))
    snap = collect(("busybox", "sh"), [Section("deep", "sh -c 'sleep 40; true'; true", timeout_s=1),
                                      Section("stub", "trap '' TERM; sleep 40; sleep 40", timeout_s=1)], tools=folder)
    assert [snap.sections[n].rc for n in ("deep", "stub")] == [124, 137]


def test_without_any_timeout_it_says_so(tmp_path: Path) -> None:
    folder = tool_folder(tmp_path / "bin", *BASE, "gzip", "base64")
    snap = collect(("dash",), [Section("a", "echo hi"), Section("b", "exit 3")], tools=folder)
    assert snap.text("a") == Value("hi\n")
    assert snap.sections["b"].rc == 3
    assert any("without time limits" in note for note in snap.notes)


def test_without_head_there_is_no_snapshot(tmp_path: Path) -> None:
    folder = tool_folder(tmp_path / "bin", *(t for t in BASE if t != "head"), "timeout", "gzip", "base64")
    snap = collect(("dash",), SECTIONS, tools=folder)
    assert snap.error is not None
    assert snap.error.reason is Reason.TOOL_MISSING
    assert not snap.sections


@every_shell
@as_root
def test_root_sections_of_a_user_without_sudo_never_run(shell: Sequence[str], tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    proof = tmp_path / "ran"
    sections = [Section("needs", f"touch {proof}; echo hi", root=True), Section("plain", "id -u")]
    denied = collect(shell, sections, as_user=AS_NOBODY)
    assert denied.sections["needs"].denied
    got = denied.text("needs")
    assert isinstance(got, Unreadable)
    assert got.reason is Reason.NEEDS_ROOT
    assert denied.text("plain") == Value("65534\n")
    assert denied.uid == 65534
    assert not proof.exists()
    allowed = collect(shell, sections)
    assert allowed.text("needs") == Value("hi\n")
    assert allowed.uid == 0
    assert proof.exists()


def _with_sudoers(rule: str, program: str) -> Snapshot:
    """As nobody, with a sudoers rule in a private mount namespace."""
    inner = ("mount -t tmpfs -o mode=755 none /etc/sudoers.d && printf '%s\\n' \"$1\" >/etc/sudoers.d/t && chmod 440 /etc/sudoers.d/t && "
             f"SSH_CONNECTION='192.0.2.1 1 192.0.2.2 22' exec {' '.join(AS_NOBODY)} sh -s")
    done = subprocess.run(["unshare", "-m", "sh", "-c", inner, "sh", rule], input=program.encode(), capture_output=True, check=False,
                          timeout=60)
    snap = frame.parse("n1", done.stdout, "")
    if snap.error:
        pytest.skip(f"no private mounts here: {done.stderr.decode()[-200:]}")
    return snap


@as_root
def test_real_sudo() -> None:
    sections = [Section("who", "id -u; umask; echo told >&2; exit 3", root=True), Section("hang", "sleep 60", root=True, timeout_s=1),
                Section("left", "sleep 300 & echo hi", root=True), Section("plain", "id -u"),
                Section("bytes", "printf 'a\\000\\377'; echo \"$PATH $LC_ALL\"", root=True)]
    snap = _with_sudoers("nobody ALL=(ALL) NOPASSWD: ALL", collector.script(sections))
    who = snap.sections["who"]
    if who.denied:
        pytest.skip("sudo does not work here")
    assert (who.rc, who.out, who.err) == (3, "0\n0077\n", "told\n")
    assert snap.sections["hang"].rc == 124
    assert snap.text("left") == Value("hi\n")
    assert snap.text("plain") == Value("65534\n")
    assert snap.sections["bytes"].out.startswith("a\0\udcff/usr/local/sbin:")
    assert snap.ssh == "192.0.2.1 1 192.0.2.2 22"


@as_root
@pytest.mark.parametrize("rule", ["nobody ALL=(ALL) ALL", "nobody ALL=(ALL) NOPASSWD: /bin/true, /usr/bin/true"])
def test_sudo_that_asks_or_allows_too_little_is_denied(rule: str) -> None:
    snap = _with_sudoers(rule, collector.script([Section("who", "id -u", root=True)]))
    assert snap.sections["who"].denied


@as_root
def test_session_is_found_behind_sudo() -> None:
    """The whole collector under sudo, as with a sudo password: sudo has dropped SSH_CONNECTION."""
    program = collector.script([Section("a", "id -u"), Section("ssh", 'echo "$SSH_CONNECTION"')])
    inner = ("mount -t tmpfs -o mode=755 none /etc/sudoers.d && echo 'nobody ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/t"
             f" && chmod 440 /etc/sudoers.d/t && export SSH_CONNECTION='192.0.2.1 1 192.0.2.2 22'"
             f" && exec {' '.join(AS_NOBODY)} sudo -n sh -s")
    done = subprocess.run(["unshare", "-m", "sh", "-c", inner], input=program.encode(), capture_output=True, check=False, timeout=60)
    snap = frame.parse("n1", done.stdout, "")
    if snap.error:
        pytest.skip(f"sudo does not work here: {done.stderr.decode()[-200:]}")
    assert snap.text("a") == Value("0\n")
    assert snap.text("ssh") == Value("192.0.2.1 1 192.0.2.2 22\n")
    assert snap.ssh == "192.0.2.1 1 192.0.2.2 22"


SHORT = ("${limit:+9}", "${limit:+1}")  # the time limit of the first question to sudo, s


def _as_user_with_sudo(tmp_path: Path, text: str) -> Snapshot:
    for folder in [tmp_path, *tmp_path.parents]:
        if str(folder).count("/") > 1:
            folder.chmod(folder.stat().st_mode | 0o755)
    tools = tool_folder(tmp_path / "bin", *BASE, "timeout", "gzip", "base64")
    tools.chmod(0o755)
    (tools / "sudo").write_text(f"#!/bin/sh\n{text}\n")
    (tools / "sudo").chmod(0o755)
    program = collector.script([Section("who", "id -u", root=True), Section("plain", "id -u")]).replace(*SHORT)
    assert program.count(PATH) == 2
    return frame.parse("n1", raw(("sh",), program.replace(PATH, str(tools)), as_user=AS_NOBODY), "")


@as_root
def test_a_sudo_that_does_not_answer_has_not_refused(tmp_path: Path) -> None:
    """With /etc/hosts a FIFO every sudo hangs: "needs root: run with -K" would not have helped."""
    snap = _as_user_with_sudo(tmp_path, "exec sleep 60")
    got = snap.text("who")
    assert isinstance(got, Unreadable)
    assert got.reason is Reason.TIMEOUT
    assert "sudo -n" in got.why
    assert "/etc/hosts" in got.why
    assert snap.text("plain") == Value("65534\n")


@as_root
@pytest.mark.parametrize(("text", "reason"), [("exit 1", Reason.NEEDS_ROOT), ('shift; exec "$@"', None)])
def test_the_twins_a_sudo_that_refuses_and_one_that_works(text: str, reason: Reason | None, tmp_path: Path) -> None:
    got = _as_user_with_sudo(tmp_path, text).text("who")
    assert got == Value("65534\n") if reason is None else isinstance(got, Unreadable) and got.reason is reason


def _with_fifo_for_hosts(folder: Path, words: str, stdin: str = "") -> subprocess.CompletedProcess[bytes]:
    """As nobody, in mount and process namespaces of its own: a sudo that hangs as root ends with them."""
    inner = f"mount --bind {folder}/hosts /etc/hosts || exit 77; {' '.join(AS_NOBODY)} {words}; exit $?"
    return subprocess.run(["unshare", "-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c", inner], input=stdin.encode(),
                          capture_output=True, check=False, timeout=60)


@as_root
def test_the_real_sudo_with_a_fifo_for_hosts(tmp_path: Path) -> None:
    subprocess.run(["mkfifo", "-m", "644", str(tmp_path / "hosts")], check=True)
    if _with_fifo_for_hosts(tmp_path, "timeout -k 1 1 sudo -n sh -c :").returncode not in (124, 137):
        pytest.skip("no private mounts here, or a sudo that does not read /etc/hosts")
    program = collector.script([Section("who", "id -u", root=True)]).replace(*SHORT)
    got = frame.parse("n1", _with_fifo_for_hosts(tmp_path, "sh -s", program).stdout, "").text("who")
    assert isinstance(got, Unreadable)
    assert got.reason is Reason.TIMEOUT
