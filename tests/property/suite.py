"""The simulated cases, run in a process of their own (`python -m tests.property.suite PART ...`): importing the engine patches sockets
and threads. Prints what is broken; the last line is `held N`, the number of cases in which every law held."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from fabrictool.model import Run, Status
from fabrictool.ops.session import session
from tests.property import laws
from tests.property.cases import Case, case
from tests.property.host import apply, connected, judged, with_peer
from tests.property.root import Root


def check(c: Case, managed: bool, peer: Path) -> Counter[str]:
    """All laws on one case. Returns what kinds of things it met."""
    sim, seen = c.sim, Counter[str]()
    with connected(with_peer(c, peer)) as host:
        before = judged(host)
        registers, files, flaps, qps = sim.registers(), sim.root.everything(), sim.flaps(), dict(sim.state.qps)
        assert apply(host, managed), f"a write did not read back: {host.said[-3:]}"
        after = judged(host)
        laws.nothing_settable_is_left(before, after)
        laws.what_was_readable_still_is(before, after)
        laws.what_could_not_be_set_is_as_before(before, after)
        laws.foreign_things_are_untouched(c, registers, sim.registers(), files, flaps)
        laws.nothing_was_written_blindly(host, before)
        laws.links_flapped_once(c, before, flaps)
        laws.what_is_in_use_stays_up(c, qps, registers, flaps)
        laws.what_twins_share_is_set_once(c)
        done = list(session(host).done)  # type: ignore[arg-type]
        laws.nothing_to_do_is_nothing_done(host, managed)
        session(host).done = done  # type: ignore[arg-type]
        laws.undo_gives_it_back(host, registers, files, before)
        seen.update(f"{f.status} {f.code}" for f in before)
        seen.update(f"step {s.argv[0]}" for s in sim.ran)
        seen["clean"] += not any(f.status in (Status.FAIL, Status.UNKNOWN) for f in after)
    return seen


def any_node(folder: Path, first: int, count: int) -> int:
    """Seeds first .. first + count - 1. Every third one as plain pyinfra runs it, the others as apply does."""
    held = 0
    for seed in range(first, first + count):
        c = case(seed, Root(folder / "node"))
        try:
            check(c, seed % 3 != 0, folder / "peer")
            held += 1
        except AssertionError as error:
            print(f"case {seed}: {c.text}\n{error}\n")
    return held


def wrong_tool(folder: Path, tool: str, mode: str) -> int:
    """A tool that does not do what it is told. Its exit status may be 0: the read-back is the verdict. Nothing else is harmed."""
    held = failed = 0
    for seed in range(5000, 5012):
        c = case(seed, Root(folder / "node"))
        c.sim.state.tools[tool], c.sim.state.era = mode, "26.07"
        with connected(with_peer(c, folder / "peer")) as host:
            before, registers = judged(host), c.sim.registers()
            mine = [f for f in laws.settable(before) if any(isinstance(s, Run) and s.argv[0] == tool for s in f.steps)]
            mine = [f for f in mine if (f.room, f.aspect) not in laws.blocked(before)]
            ok = apply(host, managed=True)
            left = laws.settable(judged(host))
            changed = {k for k, v in c.sim.registers().items() if v != registers[k] and k.startswith("qos ")}
            names = ", ".join(sorted(changed))
            told = ok is not bool(mine) and (not mine or bool({f.id for f in mine} & {f.id for f in left}))
            calm = mode == "half" or tool != "mlnx_qos" or not changed or _only_pause(c, registers)
            if told and calm:
                held += 1
            else:
                print(f"case {seed}: {tool} {mode}: apply said {ok}, {len(mine)} to set, {len(left)} left, changed {names}",
                      host.said[-3:])
            failed += not ok
    print(f"apply failed in {failed} cases")
    return held if failed >= 4 else 0  # else the seeds do not reach the tool


def _only_pause(c: Case, registers: dict[str, object]) -> bool:
    """Of the QoS registers only global pause, which is ethtool's, differs."""
    new = c.sim.registers()
    pairs = [(registers[k], new[k]) for k in registers if k.startswith("qos ")]
    return all(o[:9] == n[:9] and o[11:] == n[11:] for o, n in pairs if isinstance(o, tuple) and isinstance(n, tuple))


def reach(folder: Path) -> int:
    """Random states that were all alike would prove nothing: each kind of finding and of step has to come up."""
    seen: Counter[str] = Counter()
    for seed in range(6000, 6050):
        seen += check(case(seed, Root(folder / "node")), True, folder / "peer")
    codes = {key.split()[1] for key in seen if key.startswith("fail ")}
    wanted = {"LINK_MTU_RUNNING", "LINK_MTU_PERSISTED", "LINK_TWO_OWNERS", "QOS_TRUST", "QOS_DSCP_MAP", "QOS_PFC_MASK", "QOS_SHARED_TC",
              "QOS_GLOBAL_PAUSE", "QOS_NOT_PERSISTED", "QOS_FW_DCBX", "QOS_ECN", "ENV_FILE_DRIFT", "FABRIC_IN_USE"}
    steps = {f"step {t}" for t in ("ip", "mlnx_qos", "ethtool", "nmcli", "netplan", "systemctl", "fabrictool-write")}
    lacking = (wanted - codes) | (steps - seen.keys()) | ({"an unreadable tool"} - {
        "an unreadable tool" for key in seen if key.startswith("unknown TOOL_MISSING")})
    print(f"never met: {sorted(lacking)}; clean in the end: {seen['clean']}")
    return 50 if not lacking and seen["clean"] >= 5 else 0


def main(part: str, *words: str) -> int:
    with tempfile.TemporaryDirectory(prefix="property-") as name:
        folder = Path(name)
        if part == "any":
            held, count = any_node(folder, int(words[0]), int(words[1])), int(words[1])
        elif part == "wrong":
            held, count = wrong_tool(folder, *words), 12
        else:
            held, count = reach(folder), 50
    print(f"held {held}")
    return int(held != count)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
