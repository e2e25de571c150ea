"""The report for programs: stable keys, versioned, described by schema.json beside this file."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, TextIO

from fabrictool.model import Finding, Report, Result, Status, Subject
from fabrictool.report.clean import no_surrogates, scrubbed, step_line
from fabrictool.report.show import Show

SCHEMA_VERSION = "1"  # a key that goes or changes its meaning makes the next; new keys do not


def _subject(s: Subject) -> dict[str, Any]:
    optional = {"port": s.port, "function": s.function, "rail": s.rail, "peer": s.peer}
    return {"kind": str(s.kind), "nodes": list(s.nodes), **{k: v for k, v in optional.items() if v}}


def _finding(f: Finding) -> dict[str, Any]:
    remedy = [step_line(s) for s in f.steps] + ([scrubbed(f.remedy)] if f.remedy else [])
    out = {"id": f.id, "code": str(f.code), "status": str(f.status), "subject": _subject(f.subject), "got": scrubbed(f.got),
           "want": scrubbed(f.want), "why": scrubbed(f.why), "remedy": remedy, "risk": str(f.risk)}
    return {**out, "lines": [scrubbed(ln) for ln in f.lines]} if f.lines else out


def _result(r: Result, verbose: bool) -> dict[str, Any]:
    return {"check": r.check, "status": str(r.status), "code": str(r.code) if r.code else None, "summary": r.summary,
            "findings": [_finding(f) for f in r.findings if verbose or f.bad],
            "evidence": {k: scrubbed(v) if isinstance(v, str) else v for k, v in r.evidence.items()},
            "unproven": [scrubbed(u) for u in r.unproven], "duration_s": round(r.duration_s, 3)}


def _safe(value: Any) -> Any:
    """The same tree in which every text can be encoded."""
    if isinstance(value, str):
        return no_surrogates(value)
    if isinstance(value, dict):
        return {no_surrogates(k): _safe(v) for k, v in value.items()}
    return [_safe(v) for v in value] if isinstance(value, list) else value


def tree(report: Report, verbose: bool = False) -> dict[str, Any]:
    """The report as JSON values. Without `verbose` only findings that are not as wanted are listed; evidence counts the rest."""
    count = Counter(r.status for r in report.results)
    out = {"schema_version": SCHEMA_VERSION, "run_id": report.run_id, "command": report.command, "started": report.started,
           "tool_version": report.tool_version, "spec_digest": report.spec_digest, "simulated": report.simulated,
           "nodes": list(report.nodes), "summary": {str(s): count[s] for s in Status},
           "results": [_result(r, verbose) for r in report.results], "notes": list(report.notes)}
    safe = _safe(out)
    assert isinstance(safe, dict)
    return safe


def render(report: Report, stream: TextIO, show: Show) -> None:
    """One JSON document in ASCII, so that no encoding of a stream matters."""
    json.dump(tree(report, show.verbose), stream, indent=2)
    stream.write("\n")
