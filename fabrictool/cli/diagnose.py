"""`fabrictool diagnose FILE...|DIR|-`: verdicts on pasted output."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictool.cli import options
from fabrictool.exits import Exit, Stop
from fabrictool.report import Output

if TYPE_CHECKING:
    from fabrictool.diagnose import Judged, Wants
    from fabrictool.model import Report, Result

NOTED = 12  # pieces that are not recognised and named one by one


@click.command("diagnose")
@click.argument("files", nargs=-1, metavar="FILE|DIR|-...")
@click.option("-i", "--inventory", metavar="FILE", default=None, type=click.Path(path_type=Path),
              help="Judge against this spec too (.yaml, or the inventory .py beside it).")
@click.option("--node", metavar="NAME", default="", help="With -i: the node that the output is of, where nothing in it tells.")
@options.common(options.outputs, options.verbose, options.strict)
def command(files: tuple[str, ...], inventory: Path | None, node: str, outputs: tuple[Output, ...], verbose: int, strict: bool) -> Exit:
    """Say what pasted output shows: files, folders, or - for stdin. Touches no node.

    Takes NCCL logs, nccl-tests text and JSON, mlnx_qos, dcb, ibv_devinfo, show_gids, rdma, ip, ethtool, ss, ping, nvidia-smi, /etc/hosts,
    env files, netplan, NetworkManager and networkd files, dmesg, dumps of py-spy, gdb and faulthandler, UCX and NIXL lines, Python
    tracebacks, output of fabrictool's own AllReduce; gz, prompts, prefixes of kubectl, mpirun and the like, several tools in one paste.
    Exit 1: a fault. 3: nothing known found. 0: no fault in what is shown.
    """
    from fabrictool.cli.pastes import take
    from fabrictool.diagnose import MOST_PIECES, diagnose, nothing_known
    from fabrictool.report import Mode, Show, emit
    from fabrictool.snapshot.sniff import Kind, sniff

    if not files and sys.stdin.isatty():
        raise click.UsageError("nothing to look at: name files or folders, or pipe text in (`dmesg | fabrictool diagnose -`)")
    wants = _wants(inventory, node)
    taken = take(files or ("-",))
    pieces = [piece for given in taken.inputs for piece in sniff(given)]
    if len(pieces) > MOST_PIECES:
        taken.notes.append(f"only the first {MOST_PIECES} of {len(pieces)} outputs were judged")
        pieces = pieces[:MOST_PIECES]
    judged = diagnose(pieces, wants) or (nothing_known(pieces),)
    used = {id(p) for j in judged for p in j.pieces}
    rest = [p for p in pieces if id(p) not in used]
    unknown = [p.place for p in rest if p.kind is Kind.UNKNOWN]
    notes = [*taken.notes]
    idle = [f"{p.kind} {p.place}" for p in rest if p.kind is not Kind.UNKNOWN]
    notes += [f"{what}: {', '.join(places[:NOTED])}" + (f" and {len(places) - NOTED} more" if len(places) > NOTED else "")
              for what, places in (("recognised, and nothing in it to judge", idle), ("not recognised", unknown)) if places]
    report = _report(judged, notes, wants)
    return emit(report, outputs, Show(Mode.DIAGNOSE, bool(verbose), strict, _next(report, files)))


def _wants(inventory: Path | None, node: str) -> Wants:
    from fabrictool.diagnose import Wants

    if inventory is None:
        if node:
            raise click.UsageError("--node needs -i: without a spec there is no node to judge against")
        return Wants()
    from fabrictool.spec.resolve import load_site

    site = load_site(inventory)
    nodes = {n.name: n for n in site.nodes}
    if node and node not in nodes:
        from fabrictool.catalog import nearest

        raise Stop(Exit.USAGE, f"--node {node}: the spec has no such node; {nearest(node, nodes)}")
    return Wants(nodes, node)


def _report(judged: tuple[Judged, ...], notes: list[str], wants: Wants) -> Report:
    from fabrictool import __version__
    from fabrictool.model import Report
    from fabrictool.ops.session import run_id

    nodes = tuple(dict.fromkeys(n for j in judged for f in j.findings for n in f.subject.nodes if n))
    simulated = any(n.simulated for n in wants.nodes.values())
    return Report(run_id(), "diagnose", datetime.now(UTC).isoformat(timespec="seconds"), __version__, "", simulated,
                  tuple(_result(j) for j in judged), nodes, tuple(notes))


def _result(judged: Judged) -> Result:
    from fabrictool.model import Result
    from fabrictool.snapshot.sniff import Kind
    from fabrictool.verdict import worst_status

    places = [p.place for p in judged.pieces]
    where = ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
    known = sum(p.kind is not Kind.UNKNOWN for p in judged.pieces)
    evidence: dict[str, str | int | float] = {"where": where, "pieces": known, "lines": sum(len(p.lines) for p in judged.pieces)}
    status = worst_status(f.status for f in judged.findings)
    return Result(str(judged.kind), status, judged.about, judged.findings, evidence, judged.unproven)


def _next(report: Report, files: tuple[str, ...]) -> str:
    """The page of the worst code; for nothing known, what would help."""
    from fabrictool.model import Status

    found = [f for r in report.results for f in r.findings]
    for status in (Status.FAIL, Status.UNKNOWN, Status.WARN):
        worst = next((f for f in found if f.status is status), None)
        if worst is not None:
            return f"{options.program()} explain {worst.code}"
    return ""
