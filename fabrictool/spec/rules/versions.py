"""`versions`, `memlock`: what is compared, and how much may be locked."""

from __future__ import annotations

from collections.abc import Iterator

from fabrictool.spec.problems import Problem, error, shown, warning
from fabrictool.spec.rules.view import Rule, View

LEAST_LOCKED = 64 << 20  # bytes: below it not even the buffers of a few NCCL connections can be registered (4 MiB each, NCCL_BUFFSIZE)


def probes(v: View) -> Iterator[Problem]:
    """Each probe has a name of its own and asks one thing."""
    seen: set[str] = set()
    for i, probe in enumerate(v.spec.versions.probes):
        at = ("versions", "probes", i)
        if probe.name in seen:
            yield error(v.at(*at, "name"), f"two probes are called {shown(probe.name)}", "findings are told apart by it", "rename one")
        seen.add(probe.name)
        if probe.sha256 is not None and probe.text is not None:
            yield error(v.at(*at, "text"), f"probe {shown(probe.name)} has both sha256 and text",
                        "a digest says everything that a text says", "leave one")
        if ".." in probe.path.split("/") or probe.path.endswith("/"):
            yield error(v.at(*at, "path"), f"{shown(probe.path)} is no path of a file", "", "write the whole path, without ..")


def locked(v: View) -> Iterator[Problem]:
    """Sizes say their unit: a bare number has meant bytes, KiB (ulimit) and MiB."""
    value = v.value("memlock", "at_least")
    at = v.at("memlock", "at_least")
    if isinstance(value, int):
        yield error(at, f"at_least {value} has no unit", "", "write 16GiB (B for bytes)")
    elif v.spec.memlock.at_least < LEAST_LOCKED:
        yield warning(at, f"{v.spec.memlock.at_least >> 20} MiB of locked memory are not enough for RDMA", "NCCL registers 4 MiB and more "
                      "for each connection", "write 16GiB, and raise the limit where it is lower")


RULES = (
    Rule(probes, (("versions",),)),
    Rule(locked, (("memlock",),)),
)
