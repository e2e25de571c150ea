"""Ways to break the product, each of which some quick test has to notice.

`old` stands exactly once in the file: a mutant that no longer applies is an error, not a pass. `tests`: what is run against it: test
files, or the words of `python -m tests.property.suite`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


QOS = ("tests/qos/test_judge.py",)
LINK = ("tests/link/test_running.py", "tests/link/test_persisted.py")
READERS = ("tests/qos/test_readers.py",)
NAMES = ("tests/names/test_judge.py",)
SIMULATED = ("suite", "any", "0", "24")
SETTINGS, CONVERGE, READS = "fabrictool/qos/settings.py", "fabrictool/ops/converge.py", "fabrictool/snapshot/model.py"

MUTANTS = (
    # judges: a step dropped, a comparison turned round, want and got swapped
    Mutant("trust-without-step", SETTINGS, '(t.call("--trust", want, undo=_untrust(t)),)', "()", QOS),
    Mutant("trust-turned-round", SETTINGS, "got.value == want:\n        yield about.ok(want + seen.note, want)",
           "got.value != want:\n        yield about.ok(want + seen.note, want)", QOS),
    Mutant("map-turned-round", SETTINGS, "if now == (priority,):", "if now != (priority,):", QOS),
    Mutant("pause-turned-round", SETTINGS, "if got.value == Pause(on, on):", "if got.value != Pause(on, on):", QOS),
    Mutant("pfc-turned-round", SETTINGS, "got.value == want:\n        yield about.ok(str(want)",
           "got.value != want:\n        yield about.ok(str(want)", QOS),
    Mutant("pfc-got-for-want", SETTINGS, "str(have) + seen.note, str(want), why,", "str(want), str(have) + seen.note, why,", QOS),
    Mutant("pfc-undo-is-no-undo", SETTINGS, 'undo=("-f", have.mask)', 'undo=("-f", want.mask)', SIMULATED),
    Mutant("pfc-without-risk", SETTINGS, "timeout_s=30),), Risk.FLAP)", "timeout_s=30),))", QOS),
    Mutant("dcbx-turned-round", SETTINGS, "elif seen.value == Value(True):", "elif seen.value != Value(True):", QOS),
    Mutant("readers-never-disagree", "fabrictool/qos/model.py", "return self.first != self.second", "return False", READERS),
    Mutant("rivals-do-not-matter", "fabrictool/qos/target.py", "if steps and owner:", "if False:", ("tests/qos/test_rivals.py",)),
    Mutant("mtu-turned-round", "fabrictool/link/running.py", "if now == want:", "if now != want:", LINK),
    Mutant("mtu-beyond-the-device", "fabrictool/link/running.py", "0 < high.value < want:", "0 < high.value < 0:", LINK),
    Mutant("mtu-kept-by-a-name", "fabrictool/link/persisted.py", "if kept == Value(mtu) and c.reliable and not loose:",
           "if kept == Value(mtu) and not loose:", ("tests/link/test_netplan.py",)),
    Mutant("mtu-not-applied-again", "fabrictool/link/persisted.py", "Run(modify, undo=undo), Run(again, undo=back)",
           "Run(modify, undo=back), Run(again, undo=again)", LINK),
    Mutant("env-drift-unseen", "fabrictool/env/judge.py", "if isinstance(now, Value) and text == need and",
           "if isinstance(now, Value) and text != need and", ("tests/env/test_files.py",)),
    Mutant("loopback-is-fine", "fabrictool/names/judge.py", "if any(hosts.loopback(a) for a in answer.addresses):", "if False:",
           NAMES),
    Mutant("hosts-not-written", "fabrictool/names/judge.py", "repaired = need != now", "repaired = need == now", NAMES),
    # what is not known
    Mutant("unknown-is-a-pass", "fabrictool/room.py", "Status.UNKNOWN, remedy=remedy or how)", "Status.PASS, remedy=remedy or how)",
           READERS),
    Mutant("nothing-said-is-a-pass", "fabrictool/verdict.py", "if s in seen), Status.UNKNOWN)", "if s in seen), Status.PASS)",
           ("tests/report/test_verdict.py",)),
    Mutant("missing-is-empty", READS, "return Unreadable(Reason.TOOL_MISSING,", "return Unreadable(Reason.EMPTY,",
           ("tests/snapshot/test_model.py", *READERS)),
    Mutant("cut-is-whole", READS, "if got.cut:", "if False:", ("tests/snapshot/test_model.py",)),
    Mutant("hang-is-failure", READS, "if got.rc in (124, 137):", "if False:", ("tests/snapshot/test_model.py", *READERS)),
    Mutant("frame-of-any-length", "fabrictool/snapshot/frame.py", "if len(packed) != int(end[2]):", "if False:",
           ("tests/snapshot/test_frame.py",)),
    Mutant("systemctl-need-not-answer", "fabrictool/qos/owners.py", "return version or out", "return out",
           ("tests/qos/test_owners.py",)),
    # safety
    Mutant("no-guard", "fabrictool/rooms.py", "guarded = ports.guard(want, ports.read(snap), tuple(every))", "guarded = tuple(every)",
           ("suite", "any", "0", "40")),
    Mutant("queue-pairs-do-not-matter", "fabrictool/ports/guard.py", "if not busy:", "if True:", ("tests/ports/test_guard.py",)),
    Mutant("protected-is-not", "fabrictool/ports/guard.py", "    if kept:\n", "    if False:\n", ("tests/ports/test_guard.py",)),
    # ops and engine
    Mutant("no-read-back", CONVERGE, "    yield FunctionCommand(_read_back, (room.name, aspect, written), {})\n", "",
           ("suite", "wrong", "mlnx_qos", "lies")),
    Mutant("writes-blindly", CONVERGE, "    if unknown:\n", "    if False:\n", ("suite", "any", "0", "40")),
    Mutant("twins-not-looked-at-again", CONVERGE, "if sets_registers(finding) and any(", "if False and any(", SIMULATED),
    Mutant("undone-in-order", "fabrictool/engine/undo.py", "for f in reversed(session(host).done)", "for f in session(host).done",
           SIMULATED),
)
