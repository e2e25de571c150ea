"""One interface under judgement: the spec, the readings, and why something may not be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from fabrictool.model import Code, Finding, Reason, Risk, Run, Status, Step, Subject, Unreadable, Value
from fabrictool.qos.model import Both, Interface
from fabrictool.room import About
from fabrictool.spec import QosSpec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """`blocked`: aspect -> who else sets it, and would fight over it."""

    qos: QosSpec
    subject: Subject
    nic: Interface
    blocked: Mapping[str, str]

    def about(self, code: Code, aspect: str, path: str = "") -> About:
        return About(code, self.subject, f"qos.{path or aspect}", aspect)

    def call(self, *words: str, undo: tuple[str, ...], timeout_s: int = 20) -> Run:
        """One setting through mlnx_qos: several in one call can half-apply, in an order of the tool's own."""
        head = ("mlnx_qos", "-i", self.nic.name)
        return Run((*head, *words), timeout_s, (*head, *undo) if undo else ())

    def differs(self, about: About, got: str, want: str, why: str, steps: tuple[Step, ...], risk: Risk = Risk.NONE,
                remedy: str = "") -> Finding:
        """A failing comparison with its steps, or without them where a write would be fought over or cannot be made."""
        owner = self.blocked.get(about.aspect, "")
        if steps and owner:
            return about.fail(got, want, why, risk=risk, remedy=f"nothing is written while {owner}: end that first")
        mlnx = self.nic.mlnx.dcb
        uses_writer = any(isinstance(s, Run) and s.argv[0] == "mlnx_qos" for s in steps)
        if uses_writer and mlnx != Value(True):
            said = mlnx.why if isinstance(mlnx, Unreadable) else "mlnx_qos: not supported on this interface"
            return about.fail(got, want, why, risk=risk, remedy=f"make mlnx_qos, the spec's writer, work on the node: {said}")
        if uses_writer and (old := self._too_old(about.aspect)):
            return about.fail(got, want, why, risk=risk, remedy=f"install a newer mlnx_qos on the node, this one cannot set it ({old})")
        return about.fail(got, want, why, steps=steps, risk=risk, remedy=remedy)

    def _too_old(self, aspect: str) -> str:
        """Why this release of the writer has no option for the aspect: the options came with the lines that show them (a release of
        2017 knows neither trust, nor a map, nor DCBX). "" when it has."""
        mlnx = self.nic.mlnx
        shown = mlnx.os_controlled if aspect == "dcbx" else mlnx.trust if aspect in ("trust", "map") else None
        return shown.why if isinstance(shown, Unreadable) and shown.reason is Reason.EMPTY else ""

    def unsettled(self, about: About, seen: Both[T], want: str) -> Finding | None:
        """The finding where the readers disagree or neither could read; None where there is something to compare."""
        got = seen.value
        if not isinstance(got, Unreadable):
            return None
        if seen.disagree:
            return About(Code.QOS_READERS_DISAGREE, about.subject, about.path, about.aspect).fail(
                "readers disagree", want, got.why, status=Status.UNKNOWN,
                remedy="run `mlnx_qos -i IF` and `dcb` on the node: one of them does not show what the driver has")
        return about.unknown(got, want)
