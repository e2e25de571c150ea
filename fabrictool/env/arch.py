"""CUTE_DSL_ARCH against the GPUs: compute capability 12.1 is sm_121a."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fabrictool.env.model import Gpu
from fabrictool.model import Code, Finding, Observed, Subject, Value
from fabrictool.room import About

NAME = "CUTE_DSL_ARCH"


def judge(node: Subject, settings: Iterable[tuple[str, str]], gpus: Observed[tuple[Gpu, ...]]) -> Iterator[Finding]:
    """`settings`: (where it is set, value)."""
    found = dict(settings)
    if not found:
        yield About(Code.ENV_CUDA_ARCH, node, "env.arch", "lint").skip(f"{NAME} is set nowhere")
    for label, value in found.items():
        about = About(Code.ENV_CUDA_ARCH, node, f"env.arch.{label}", "lint")
        if not isinstance(gpus, Value):
            yield about.unknown(gpus, f"{NAME} of this node's GPU")
            continue
        caps = sorted({g.capability for g in gpus.value})
        want = f"sm_{caps[0].replace('.', '')}a"
        seen = f"{gpus.value[0].name} has compute capability {caps[0]}"
        m = re.fullmatch(r"sm_(\d+)([af]?)", value)
        if len(caps) > 1:
            yield about.fail(f"{NAME}={value}", "one kind of GPU", f"the GPUs of this node differ: {', '.join(caps)}",
                             remedy=f"set {NAME} for each process")
        elif not m or m[1] != caps[0].replace(".", ""):
            yield about.fail(f"{NAME}={value}", f"{NAME}={want}", f"{seen}: kernels built for {value} do not run",
                             remedy=f"set {NAME} to {want} ({label})")
        elif not m[2]:
            yield about.warn(f"{NAME}={value}", f"{NAME}={want}", f"{seen}; without the suffix its own instructions are left out",
                             remedy=f"set {NAME} to {want} ({label})")
        else:
            yield about.ok(f"{NAME}={value}", f"{NAME}={want}")
