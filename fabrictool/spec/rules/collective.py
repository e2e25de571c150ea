"""`collective`: what makes the traffic, and with whose environment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabrictool.spec.problems import Problem, error, nearest, shown, warning
from fabrictool.spec.rules.view import Rule, View

PINNED = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")
PLACEHOLDER_IMAGE = re.compile(r"[^\s@]+@sha256:DIGEST")
SMALL = 64 << 20  # below it NCCL may choose its LL protocols, which send up to twice the bytes that the proof expects
LARGE_UNIFIED = 1 << 30  # three buffers of each rank come out of the same memory as everything else
LEAST_CONTROL = 32 << 20  # less than a few MiB a call shows nothing above what else moves on a node


def image(v: View) -> Iterator[Problem]:
    """The image that makes the traffic."""
    runtime = v.spec.collective.runtime if v.spec.collective else None
    if runtime is not None and runtime.pull != "never":
        yield error(v.at("collective", "runtime", "pull"), f"pull: {runtime.pull} is not done", "a check changes nothing on a node, and a "
                    "download has no end that a run could wait for", "write pull: never, and `docker pull` the image on every node before")
    if runtime is None or PINNED.fullmatch(runtime.image):
        return
    at = v.at("collective", "runtime", "image")
    if PLACEHOLDER_IMAGE.fullmatch(runtime.image):
        yield warning(at, f"{shown(runtime.image)} is a placeholder", "", "write the image with its own digest")
    elif "@" in runtime.image or not re.fullmatch(r"[A-Za-z0-9][!-~]*", runtime.image):
        yield error(at, f"{shown(runtime.image)} is no image with a digest", "", "write NAME@sha256:64 hex digits")
    else:
        yield warning(at, f"image {shown(runtime.image)} is not pinned", "a tag can name different images on different nodes",
                      "write NAME@sha256:DIGEST")


def programs(v: View) -> Iterator[Problem]:
    """Each launcher starts one kind of program."""
    c = v.spec.collective
    if c is None:
        return
    for key, value in (("program", c.program), ("python", c.python), ("venv", c.venv)):
        if value is None:
            continue
        at = v.at("collective", key)
        if not value.startswith("/") or not _plain(value) or ".." in value.split("/"):
            yield error(at, f"{key} is an absolute path, not {shown(value)}")
        if (key == "program") == (c.launcher == "direct"):
            yield error(at, f"{key} is not for the launcher {c.launcher}",
                        "direct runs a Python program of ours" if key == "program" else "mpirun and srun start all_reduce_perf",
                        "remove it, or choose another launcher")
    if c.venv is not None and c.python is not None:
        yield error(v.at("collective", "venv"), "venv and python name the same thing twice", "a venv has its own python", "leave one")
    if c.venv is not None and c.runtime is not None:
        yield error(v.at("collective", "venv"), "a container does not see a venv of the node", "", "remove venv, or runtime")
    if c.runtime is not None and c.launcher != "direct":
        yield error(v.at("collective", "runtime"), f"the launcher {c.launcher} starts no containers", "an MPI in an image has to be the "
                    "node's own MPI", "use launcher direct, or install all_reduce_perf on the nodes and remove runtime")


def consumer(v: View) -> Iterator[Problem]:
    """Whose environment the ranks get has to be named where it is read back too."""
    c = v.spec.collective
    if c is None or c.consumer is None or c.consumer in v.spec.env.consumers:
        return
    at = v.at("collective", "consumer")
    if not c.consumer.startswith("file:"):
        yield error(at, f"consumer {shown(c.consumer)} is not in env.consumers", "its running values would not be compared with the spec",
                    nearest(c.consumer, v.spec.env.consumers) if v.spec.env.consumers else "add it there, or write file:/path")
    elif not _plain(c.consumer) or ".." in c.consumer.split("/"):
        yield error(at, f"file: takes an absolute path, not {shown(c.consumer)}")


def buffer(v: View) -> Iterator[Problem]:
    """Sizes that measure nothing, or that hurt."""
    c = v.spec.collective
    if c is None:
        return
    at = v.at("collective", "size")
    if c.size % 4 or not c.size:
        yield error(at, f"size {c.size} is no number of float32 values", "a float32 has 4 bytes", "write 256MiB")
    elif c.size < SMALL:
        yield warning(at, f"size {c.size >> 20} MiB is too small for a bandwidth", "NCCL's protocols for small messages send up to "
                      "twice the bytes", "write 64MiB or more")
    elif v.spec.gpu is not None and v.spec.gpu.unified_memory and c.size > LARGE_UNIFIED:
        yield warning(at, f"size {c.size >> 20} MiB on GPUs that share the system's memory", "three such buffers per rank can freeze a "
                      "node: an eighth of the free memory is taken at most", "write 1GiB or less")
    if c.control is not None and c.control.max_bytes_per_node < LEAST_CONTROL:
        yield error(v.at("collective", "control", "max_bytes_per_node"), "the control run needs room for 32 MiB per node", "", "write 2GiB")


def _plain(text: str) -> bool:
    """What travels to nodes as an argument."""
    return text.isascii() and text.isprintable()


RULES = (
    Rule(image, (("collective",),)),
    Rule(programs, (("collective",),)),
    Rule(consumer, (("collective",), ("env", "consumers"))),
    Rule(buffer, (("collective",), ("gpu",))),
)
