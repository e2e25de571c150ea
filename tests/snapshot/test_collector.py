"""The collector, run for real: what each section gave stays apart from the others, whatever the others do."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabrictool.model import Reason, Unreadable, Value
from fabrictool.snapshot import Each, Section, collector, frame, tool
from tests.snapshot.shells import collect, every_shell, raw

Shell = Sequence[str]


@every_shell
def test_every_way_to_end_stays_distinguishable(shell: Shell) -> None:
    snap = collect(shell, [
        Section("fine", "echo out; echo told >&2"), Section("refused", "echo half; echo why >&2; exit 3"),
        tool("missing", "no-such-tool", "-x"), Section("empty", "true"), Section("hangs", "echo begun; sleep 60", timeout_s=1),
        Section("stubborn", "trap '' TERM; sleep 60; sleep 60", timeout_s=1), Section("after", "echo still here"),
        Section("killed", "kill -9 $$"),
    ], lanes=4)
    assert snap.error is None
    assert list(snap.sections) == ["fine", "refused", "missing", "empty", "hangs", "stubborn", "after", "killed"]
    fine, refused, hangs = snap.sections["fine"], snap.sections["refused"], snap.sections["hangs"]
    assert (fine.rc, fine.out, fine.err) == (0, "out\n", "told\n")
    assert (refused.rc, refused.out, refused.err) == (3, "half\n", "why\n")
    assert (hangs.rc, hangs.out) == (124, "begun\n")
    assert snap.text("after") == Value("still here\n")
    reasons = {name: got.reason for name in snap.sections if isinstance(got := snap.text(name), Unreadable)}
    assert reasons == {"refused": Reason.FAILED, "missing": Reason.TOOL_MISSING, "empty": Reason.EMPTY, "hangs": Reason.TIMEOUT,
                       "stubborn": Reason.TIMEOUT, "killed": Reason.TIMEOUT}
    assert "not found" in snap.sections["missing"].err


@every_shell
def test_children_left_behind_do_not_hold_the_collector(shell: Shell) -> None:
    snap = collect(shell, [Section("daemon", "sleep 300 & echo hi"), Section("both", "sleep 300 2>&1 & echo hi >&2; exit 4")])
    assert (snap.sections["daemon"].rc, snap.sections["daemon"].out) == (0, "hi\n")
    assert (snap.sections["both"].rc, snap.sections["both"].err) == (4, "hi\n")


@every_shell
def test_a_child_in_its_own_session_is_cut_loose(shell: Shell) -> None:
    snap = collect(shell, [Section("away", "setsid sleep 12 & sleep 0.3; echo hi", timeout_s=1), Section("after", "echo ok")])
    got = snap.text("away")
    assert isinstance(got, Unreadable)
    assert got.reason is Reason.TIMEOUT
    assert "kept its output open" in got.why
    assert snap.text("after") == Value("ok\n")


@every_shell
def test_output_past_its_limit_is_cut_and_says_so(shell: Shell) -> None:
    snap = collect(shell, [
        Section("big", "head -c 5000000 /dev/zero | tr '\\000' x; exit 5", max_bytes=1000),
        Section("exact", "head -c 1000 /dev/zero | tr '\\000' x", max_bytes=1000),
        Section("loud", "head -c 300000 /dev/zero | tr '\\000' e >&2; echo ok"),
        Section("both", "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero", max_bytes=200_000),
    ])
    big, exact, loud, both = (snap.sections[n] for n in ("big", "exact", "loud", "both"))
    assert (big.rc, big.out, big.cut) == (5, "x" * 1000, True)  # drained: the tool did not die of a closed pipe
    assert (exact.rc, exact.out, exact.cut) == (0, "x" * 1000, False)
    assert (loud.rc, loud.out, loud.err, loud.err_cut, loud.cut) == (0, "ok\n", "e" * 65536, True, False)
    assert (both.rc, len(both.out), len(both.err), both.cut, both.err_cut) == (0, 200_000, 65536, True, True)
    assert isinstance(snap.raw("big"), Unreadable)
    assert not isinstance(snap.raw("exact"), Unreadable)


@every_shell
def test_arguments_reach_a_section_as_they_are(shell: Shell) -> None:
    words = ("/opt/it's here/*", "$HOME `id` \"x\" ;&|<>\\", "-n")
    snap = collect(shell, [Section("words", 'printf "[%s]" "$#" "$@"', args=words), Section("none", 'printf "[%s]" "$#"')])
    assert snap.text("words") == Value("[3]" + "".join(f"[{w}]" for w in words))
    assert snap.text("none") == Value("[0]")
    for bad in (Section("a", "true", args=("a\nb",)), Section("a", "true", args=("\u00fc",)), Section("a", "true", Each.RDMA, args=("x",))):
        with pytest.raises(ValueError, match="arguments are printable ASCII"):
            collector.script([bad])


@every_shell
def test_bytes_come_back_exactly(shell: Shell) -> None:
    octal = "".join(f"\\{b:03o}" for b in range(256))
    text = f"printf '{octal}'; printf '{octal}' >&2; printf 'a\\r\\nb\\r\\n\\n\\nno end'"
    snap = collect(shell, [Section("bytes", text)])
    every = bytes(range(256))
    assert snap.sections["bytes"].out.encode("utf-8", "surrogateescape") == every + b"a\r\nb\r\n\n\nno end"
    assert snap.sections["bytes"].err.encode("utf-8", "surrogateescape") == every


NAMES = ("eth0", "a b", "q'uo\"te", "do$(echo)llar", "st*ar", "new\nline", "back\\slash", "-n", "täg", "semi;colon")


@every_shell
def test_items_with_any_name(shell: Shell, tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / "class/net" / name / "device").mkdir(parents=True)
    (tmp_path / "class/net/lo/device").mkdir(parents=True)
    (tmp_path / "class/net/virtual0").mkdir()
    (tmp_path / "class/net/bond0/bonding").mkdir(parents=True)
    bad = b"\xff\xfe"
    (tmp_path / "class/infiniband" / bad.decode("utf-8", "surrogateescape")).mkdir(parents=True)
    (tmp_path / "class/infiniband/mlx5_0").mkdir()
    show = "printf '%s|%s' \"$#\" \"$1\""
    snap = collect(shell, [Section("net", show, Each.NETDEV), Section("one", show), Section("ib", show, Each.RDMA)], sys=str(tmp_path))
    assert snap.error is None
    assert set(snap.items("net")) == {*NAMES, "bond0"}
    for name in (*NAMES, "bond0"):
        assert snap.sections[f"net[{name}]"].out == f"1|{name}"
    assert snap.sections["one"].out == "0|"
    assert {snap.sections[f"ib[{item}]"].out for item in snap.items("ib")} == {"1|mlx5_0", "1|" + bad.decode("utf-8", "surrogateescape")}


@every_shell
def test_peers_are_arguments_of_one_run(shell: Shell) -> None:
    sections = [Section("who", "printf '%s\\n' \"$@\"", Each.PEERS)]
    assert collect(shell, sections, peers=("n1", "n2.site", "user@n3")).text("who") == Value("n1\nn2.site\nuser@n3\n")
    assert collect(shell, sections).sections["who"].out == "\n"


@every_shell
def test_environment_of_sections(shell: Shell) -> None:
    odd = {"PATH": "/nonesuch:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TMPDIR": "/proc", "HOME": "/nonesuch", "BASH_ENV": "/nonesuch",
           "ENV": "/nonesuch", "IFS": "a", "SSH_CONNECTION": "10.0.0.9 50000 10.0.0.1 22", "GZIP": "-z", "GREP_OPTIONS": "-c"}
    snap = collect(shell, [Section("path", 'echo "$PATH"'), Section("all", 'echo "$LC_ALL $(umask) $(pwd)"'),
                           Section("stdin", "cat; echo end"), Section("fds", "ls /proc/self/fd | sort -n | tr '\\n' ' '")], env=odd)
    assert snap.error is None
    assert snap.text("path") == Value("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n")
    assert snap.text("all") == Value("C 0077 /\n")
    assert snap.text("stdin") == Value("end\n")
    assert snap.ssh == "10.0.0.9 50000 10.0.0.1 22"
    assert snap.text("fds") == Value("0 1 2 3 ")  # 3 is the folder itself: none of the collector's own pipes


@every_shell
def test_sections_past_the_total_time_are_not_begun(shell: Shell) -> None:
    sections = [Section(f"slow{n}", "sleep 30", timeout_s=30) for n in range(3)] + [Section("last", "echo hi")]
    snap = collect(shell, sections, lanes=1, total_s=2)
    assert snap.error is None
    assert {n: c.rc for n, c in snap.sections.items()} == {"slow0": 124, "slow1": 124, "slow2": 124, "last": 124}
    why = snap.text("last")
    assert isinstance(why, Unreadable)
    assert why.reason is Reason.TIMEOUT
    assert "other sections had used up" in why.why


@every_shell
def test_closed_descriptors(shell: Shell) -> None:
    program = collector.argument([Section("a", "echo hi; echo no >&2")])
    for closing in ("<&-", "2>&-", "<&- 2>&-"):
        done = subprocess.run(["sh", "-c", f'exec "$@" {closing}', "sh", *shell, *program.argv[1:]], capture_output=True, check=False)
        snap = frame.parse("n1", done.stdout, "")
        assert snap.error is None, closing
        assert (snap.sections["a"].out, snap.sections["a"].err) == ("hi\n", "no\n")


@every_shell
def test_noise_before_the_frame_is_tolerated_and_noise_within_is_not(shell: Shell) -> None:
    out = raw(shell, collector.script([Section("a", "echo hi")]))
    good = frame.parse("n1", b"Welcome!\nYou have mail.\nprompt$ " + out, "")
    assert good.text("a") == Value("hi\n")
    middle = out.index(b"gzip-b64\n") + 30
    for noise in (b"hello", b"\nhello\n", b"\x07", b"A"):
        bad = frame.parse("n1", out[:middle] + noise + out[middle:], "")
        assert bad.error is not None
        assert bad.error.reason is Reason.GARBLED


def test_a_program_cut_short_runs_nothing(tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    text = collector.script([Section("a", f"touch {proof}")])
    last = text.rstrip("\n").rindex("\n") + 1
    for end in [*range(0, last, 97), last]:
        subprocess.run(["dash", "-s"], input=text[:end].encode(), capture_output=True, check=False)
    assert not proof.exists()
    subprocess.run(["dash", "-s"], input=text.encode(), capture_output=True, check=False)
    assert proof.exists()


@every_shell
def test_many_lanes_keep_the_order(shell: Shell) -> None:
    sections = [Section(f"s{n}", f"sleep 0.0{n % 3}; echo {n}; head -c {n * 3000} /dev/zero") for n in range(20)]
    snap = collect(shell, sections, lanes=4)
    assert list(snap.sections) == [f"s{n}" for n in range(20)]
    assert all(len(snap.sections[f"s{n}"].out) == n * 3000 + len(f"{n}\n") for n in range(20))


@pytest.mark.parametrize(("section", "word"), [
    (Section("a b", "true"), "letters"), (Section("", "true"), "letters"), (Section("-", "true"), "letters"),
    (Section("a", "echo \xe4"), "ASCII"), (Section("a", "true", timeout_s=0), "limits"), (Section("a", "true", max_bytes=0), "limits"),
])
def test_sections_that_could_not_be_framed_are_refused(section: Section, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        collector.script([section])


def test_two_sections_of_one_name_and_odd_peers_are_refused() -> None:
    with pytest.raises(ValueError, match="two sections"):
        collector.script([Section("a", "true"), Section("a", "false")])
    with pytest.raises(ValueError, match="no node name"):
        collector.script([], peers=("a b",))


def test_program_and_argument() -> None:
    sections = [Section("a", "true")]
    on_stdin, as_argument = collector.program(sections), collector.argument(sections)
    assert (on_stdin.argv, as_argument.argv) == (("sh", "-s"), ("sh", "-c", on_stdin.stdin))
    assert on_stdin.timeout_s > collector.TOTAL_S
    with pytest.raises(ValueError, match="use program"):
        collector.argument([Section("a", "#" * 130_000)])


def test_no_sections_is_a_whole_empty_snapshot() -> None:
    snap = collect(("dash",), [])
    assert (snap.error, dict(snap.sections)) == (None, {})
