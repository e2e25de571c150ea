"""The fault table: one row per cause, with what it does and what each command then says. Serves tests, docs and `lab fault --list`."""

from __future__ import annotations

import difflib

from fabrictool.lab.errors import LabError
from fabrictool.lab.fault_fabric import FABRIC
from fabrictool.lab.fault_host import ACCESS, ENV, NAMES
from fabrictool.lab.fault_kit import Fault, LabLike, Outcome, Scope
from fabrictool.lab.fault_qos import QOS
from fabrictool.lab.fault_traffic import TRAFFIC_FAULTS

__all__ = ["FAULTS", "Fault", "Outcome", "Scope", "fault", "inject"]

FAULTS: tuple[Fault, ...] = (*QOS, *FABRIC, *NAMES, *ENV, *ACCESS, *TRAFFIC_FAULTS)


def fault(name: str) -> Fault:
    """LabError with the nearest name when there is no such fault."""
    for f in FAULTS:
        if f.name == name:
            return f
    near = difflib.get_close_matches(name, [f.name for f in FAULTS], 1)
    hint = f"did you mean {near[0]}?" if near else "`fabrictool lab fault --list` shows them"
    raise LabError(f"no fault {name!r}: {hint}")


def inject(lab: LabLike, node: str, name: str, function: str = "") -> Fault:
    """Make the fault happen on a node of a running lab. `function`: a rail, interface or RDMA device of the node."""
    found = fault(name)
    if function and found.scope in (Scope.NODE, Scope.FLEET):
        raise LabError(f"fault {name} is of the whole {found.scope}: leave out --function")
    found.apply(lab, node, function)
    return found
