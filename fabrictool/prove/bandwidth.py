"""Whether an AllReduce was as fast as the ports that were read, and as fast as this fleet once was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from fabrictool.collective.bands import WHY, Band, Capacity, band, smallest
from fabrictool.model import Code, Evidence, Finding, Reason, Said, Status, Subject, SubjectKind, Unreadable, Value
from fabrictool.prove.case import Case
from fabrictool.prove.facts import AllReduce, all_reduce
from fabrictool.prove.rates import capacity
from fabrictool.prove.results import RunResult, read
from fabrictool.room import About
from fabrictool.snapshot import Recording
from fabrictool.spec import CollectiveSpec

BASELINE_SHARE = 0.95  # ROCm/cvs, which gates on recorded figures, allows 5 %
CHECK = "allreduce"


def judge(case: Case, facts: AllReduce, runs: Sequence[RunResult], default: RunResult | None,
          failed: Mapping[str, Sequence[Code]]) -> Iterator[Said]:
    """The median of the gated runs against a share of the ports' rate and against the baseline; the run with NCCL's own choice of
    algorithm is told, never gated: over two nodes it may exceed the ports. `failed`: runs of which it was said that they failed,
    and the codes by which, the cause first."""
    everyone = Subject(SubjectKind.FLEET, facts.nodes)
    about = About(Code.LOW_BUSBW, everyone, f"{CHECK}.busbw", "")
    figures = [r.busbw.value for r in runs if isinstance(r.busbw, Value)]
    if figures:
        yield Evidence("busbw_gbytes_per_s", round(median(figures), 2))
        yield Evidence("busbw_min_gbytes_per_s", min(figures))
        yield Evidence("busbw_max_gbytes_per_s", max(figures))
    if default is not None:
        yield from _default(default, About(Code.LOW_BUSBW, everyone, f"{CHECK}.busbw_default", ""))
    silent = [r.name for r in runs if not isinstance(r.busbw, Value)]
    if silent and set(silent) <= set(failed):
        yield about.skip(f"not judged: {', '.join(silent)} failed")
    elif silent or not figures:
        why = _why(runs)
        yield about.unknown(Unreadable(Reason.BLOCKED, f"{', '.join(silent) or 'no run'}: {why}"), "a figure of every run",
                            "see what stands against the run itself")
    else:
        yield from _gate(case, facts, figures, about)
    about = About(Code.BASELINE_LOW, everyone, f"{CHECK}.baseline", "")
    yield from _baseline(case, facts, figures, about, _blocked(runs, failed))


def _why(runs: Sequence[RunResult]) -> str:
    return next((r.busbw.why for r in runs if isinstance(r.busbw, Unreadable)), "no bus bandwidth")


def _blocked(runs: Sequence[RunResult], failed: Mapping[str, Sequence[Code]]) -> tuple[str, str]:
    """Why there is no figure at all, and what to do about it: by the first run's cause."""
    if not runs:
        return "no gated run was made, so there is no figure to compare", "see what kept the run from being made, mend that, then run again"
    first = runs[0].name
    codes = ", ".join(dict.fromkeys(failed.get(first, ())))
    if codes:
        return (f"{first} failed ({codes}), so there is no figure to compare",
                f"mend {codes.partition(',')[0]}, which is told above (`fabrictool explain {codes.partition(',')[0]}`), then run again")
    return f"{first} gave no figure to compare: {_why(runs)}", f"see what is told above of {first}, mend that, then run again"


def share(case: Case) -> float:
    """The strictest that the spec asks of any selected node."""
    return max((want.collective or CollectiveSpec()).min_share_of_line_rate for want in case.wants.values())


def shown(figures: Sequence[float]) -> str:
    if len(figures) == 1:
        return f"{figures[0]:.2f} GB/s (one run)"
    return f"{median(figures):.2f} GB/s (median of {len(figures)} runs, {min(figures):.2f}..{max(figures):.2f})"


def _gate(case: Case, facts: AllReduce, figures: Sequence[float], about: About) -> Iterator[Said]:
    if len(facts.nodes) < 2:
        yield about.skip(f"{shown(figures)}: within one node it says nothing of the ports")
        return
    got, least = [], share(case)
    for node in facts.nodes:
        seen = capacity(case.wants[node], case.snap(node)) if node in case.wants else Unreadable(
            Reason.NOT_COLLECTED, f"{node}: not selected")
        if isinstance(seen, Unreadable):
            yield about.unknown(seen, f"{least:g} of what the ports carry, by the rate that was read",
                                "see the checks link and rdma of this node")
            return
        got.append(seen)
    slowest = smallest(got)
    yield Evidence("line_rate_gbytes_per_s", round(slowest.gbytes_per_s, 2))
    yield Evidence("share_of_line_rate", round(median(figures) / slowest.gbytes_per_s, 3))
    alike = all(c.gbytes_per_s == slowest.gbytes_per_s for c in got)
    yield _verdict(figures, slowest, least, "" if alike else f", {slowest.node}'s", about)


def _verdict(figures: Sequence[float], slowest: Capacity, least: float, where: str, about: About) -> Finding:
    want = f"at least {slowest.gbytes_per_s * least:.2f} GB/s: {least:g} of {slowest}{where}"
    lies = band(median(figures), slowest, least)
    if lies is Band.GOOD:
        return about.ok(shown(figures), want)
    if lies is Band.ABOVE:
        return about.fail(shown(figures), want, WHY[lies], status=Status.UNKNOWN,
                          remedy="see the checks link and rdma for the rates, and where the ranks ran")
    return about.fail(shown(figures), want, WHY[lies], remedy="see the transport and the counters of this run, then the checks rails, qos "
                                                             "and path_mtu")


def _default(run: RunResult, about: About) -> Iterator[Said]:
    if isinstance(run.busbw, Value):
        yield Evidence("busbw_default_algorithm_gbytes_per_s", run.busbw.value)
        yield about.skip(f"{run.busbw.value:.2f} GB/s with NCCL's own choice of algorithm, which is not gated")
    else:
        why = run.busbw.why if isinstance(run.busbw, Unreadable) else run.busbw.what
        yield about.skip(f"no figure with NCCL's own choice of algorithm, which is not gated: {why}")


def _baseline(case: Case, facts: AllReduce, figures: Sequence[float], about: About, blocked: tuple[str, str]) -> Iterator[Said]:
    made = case.baselines.get(CHECK)
    if made is None:
        return
    want = f"at least {BASELINE_SHARE:g} of the baseline"
    then = baseline(made, facts)
    if isinstance(then, Unreadable):
        yield about.unknown(then, want, "record a baseline of the same run: fabrictool check allreduce --save FILE")
        return
    yield Evidence("baseline_busbw_gbytes_per_s", round(then, 2))
    if not figures:
        why, remedy = blocked
        yield about.unknown(Unreadable(Reason.BLOCKED, why), want, remedy)
        return
    got, want = shown(figures), f"at least {then * BASELINE_SHARE:.2f} GB/s: {BASELINE_SHARE:g} of the baseline's {then:.2f}"
    if median(figures) >= then * BASELINE_SHARE:
        yield about.ok(got, want)
    else:
        yield about.warn(got, want, "this fleet was faster when the baseline was recorded",
                         remedy="compare versions, link rates, PCIe width and loss counters with those of that day")


def baseline(made: Recording, facts: AllReduce) -> float | Unreadable:
    """The median busbw of a recording, in GB/s, if it is of a run like this one."""
    then = all_reduce(made)
    if isinstance(then, Unreadable):
        return then
    for what, was, now in (("nodes", sorted(then.nodes), sorted(facts.nodes)), ("ranks", then.ranks, facts.ranks),
                           ("bytes", then.size_bytes, facts.size_bytes), ("algorithm", then.algorithm, facts.algorithm),
                           ("program", then.program, facts.program), ("network", then.network, facts.network)):
        if was != now:
            return Unreadable(Reason.BLOCKED, f"the baseline is of another run: {what} {was}, here {now}"[:200])
    runs = [read(made, then, name, CHECK) for name in then.runs]
    values = [r.busbw.value for r in runs if isinstance(r.busbw, Value)]
    if not values or len(values) < len(runs) or min(values) <= 0:
        return Unreadable(Reason.BLOCKED, "a run of the baseline has no result")
    failed = next((f for r in runs for f in r.findings if f.status is Status.FAIL), None)
    if failed is not None:
        return Unreadable(Reason.BLOCKED, f"a run of the baseline failed ({failed.code}), so the fleet was not well")
    return median(values)
