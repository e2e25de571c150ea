"""What the spec says for the checks `versions`, `memlock` and `kernel_log`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from fabrictool.spec.kinds import STRICT, Name, Size

HOST = "host"  # a content probe outside of containers


@dataclass(frozen=True, slots=True, config=STRICT)
class ContentSpec:
    """A file whose content matters: `sha256` of the whole file, or a `text` that must be in it; with neither it must be the same on all
    nodes of the group. `container`: the names of the containers in which it lies (a glob), or `host`."""

    name: Name
    path: Annotated[str, Field(pattern=r"^/[A-Za-z0-9_.,+@%=:~/-]*$", max_length=512)]
    container: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.*?\[\]!^-]+$", max_length=128)] = HOST
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    text: Annotated[str, Field(pattern="^[ -~]+$", max_length=500)] | None = None


@dataclass(frozen=True, slots=True, config=STRICT)
class VersionsSpec:
    """What the check `versions` reads beyond driver, firmware, kernel, CUDA, NCCL and images."""

    probes: tuple[ContentSpec, ...] = ()


@dataclass(frozen=True, slots=True, config=STRICT)
class MemlockSpec:
    """`at_least`: memory that a consumer must be able to lock, bytes; no limit at all is always enough. The default is the figure under
    which AWS's health checks warn (awsome-distributed-training, gpu-cluster-healthcheck)."""

    at_least: Size = 16 << 30


@dataclass(frozen=True, slots=True, config=STRICT)
class KernelLogSpec:
    """`hours`: how far back the kernel's log counts, on the node's own clock. `link_downs`: how often a fabric interface may lose its link
    in that time before it is a failure (Azure's health checks fail at 5 in 24 hours: azurehpc-health-checks, check_ib_link_flapping)."""

    hours: Annotated[int, Field(ge=1, le=720)] = 24
    link_downs: Annotated[int, Field(ge=1)] = 5
