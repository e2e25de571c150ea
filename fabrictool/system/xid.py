"""NVIDIA's Xid numbers: what each means, and whose fault it is as a rule.

Meanings: NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors), in our words. Which ones take a node out of service: the list of
Azure's health checks (azurehpc-health-checks, azure_gpu_xid.nhc: 48 56-58 62-65 68 69 73 74 79-81 92 119 120), and 95, after which
NVIDIA asks for a reset of the GPU. 63 and 92 are on Azure's list, and the GPU goes on working: they warn here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Weight(StrEnum):
    """FATAL: the GPU or its link cannot be trusted before it was reset or mended. PROGRAM: as a rule the program's own fault.
    NOTE: the hardware met something and went on."""

    FATAL = "fatal"
    PROGRAM = "program"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Meaning:
    text: str
    weight: Weight
    fix: str


_PROGRAM = "look for an error in the program or its kernels first; the GPU is suspect only when other programs get it too"
_RESET = "stop what uses the GPU and reset it (nvidia-smi --gpu-reset), or reboot; when it comes back, have the GPU exchanged"
_REBOOT = "reboot the node (a power cycle, not a warm one); when it comes back, look at seat, power and PCIe, and at the GPU"
_DRIVER = "reboot the node; when it comes back, collect nvidia-bug-report.sh and look for a driver update"

_FATAL, _OWN, _NOTE = Weight.FATAL, Weight.PROGRAM, Weight.NOTE
TABLE: Mapping[int, Meaning] = {
    13: Meaning("exception in the graphics or compute engine: bad address, illegal instruction", _OWN, _PROGRAM),
    31: Meaning("GPU memory page fault: a kernel touched memory that it has not", _OWN, _PROGRAM),
    32: Meaning("invalid or corrupted push buffer stream", _NOTE, _DRIVER),
    38: Meaning("driver firmware error", _NOTE, _DRIVER),
    43: Meaning("GPU stopped processing: a program's channel was reset", _OWN, _PROGRAM),
    45: Meaning("preemptive clean-up: a program ended, or another error came before", _OWN,
                "look at the Xid before it, and at what ended the program"),
    48: Meaning("double-bit ECC error", _FATAL, _RESET),
    56: Meaning("display engine error", _FATAL, _RESET),
    57: Meaning("error while the video memory interface was set up", _FATAL, _RESET),
    58: Meaning("unstable video memory interface", _FATAL, _RESET),
    61: Meaning("internal micro-controller warning", _NOTE, _RESET),
    62: Meaning("internal micro-controller halted", _FATAL, _RESET),
    63: Meaning("a bad memory row was remapped (or a page retired): takes effect with the next reset", _NOTE,
                "reset the GPU when its work allows"),
    64: Meaning("a bad memory row could not be remapped (or a page retired)", _FATAL, _RESET),
    65: Meaning("video processor exception", _FATAL, _RESET),
    68: Meaning("video decoder exception", _FATAL, _RESET),
    69: Meaning("graphics engine class error", _FATAL, _RESET),
    73: Meaning("video encoder error", _FATAL, _RESET),
    74: Meaning("NVLink error", _FATAL, "look at nvidia-smi nvlink -e, at the bridge or switch; reset the GPUs; then exchange parts"),
    79: Meaning("GPU has fallen off the bus: it no longer answers over PCIe", _FATAL, _REBOOT),
    80: Meaning("corrupted data sent to the GPU", _FATAL, _RESET),
    81: Meaning("VGA subsystem error", _FATAL, _RESET),
    92: Meaning("many single-bit ECC errors", _NOTE, "watch it; have the GPU exchanged when it goes on"),
    94: Meaning("ECC error that was contained: only the program that met it ends", _NOTE, "reset the GPU when its work allows"),
    95: Meaning("ECC error that was not contained: every program on the GPU is affected", _FATAL, _RESET),
    109: Meaning("context switch timed out", _OWN, _PROGRAM),
    119: Meaning("the GPU's system processor (GSP) did not answer in time", _FATAL, _REBOOT),
    120: Meaning("the GPU's system processor (GSP) failed", _FATAL, _REBOOT),
    121: Meaning("chip-to-chip link (C2C) error", _NOTE, _RESET),
    140: Meaning("ECC error that was not recovered", _FATAL, _RESET),
    143: Meaning("the GPU could not be initialised", _FATAL, _REBOOT),
    154: Meaning("the GPU asks for a recovery action", _NOTE, "see `nvidia-smi -q`, GPU Recovery Action"),
}


def meaning(number: int) -> Meaning:
    """Of any number: one that is not in the table is a note."""
    return TABLE.get(number) or Meaning("not in the table of this program", _NOTE, "look it up in NVIDIA's list of Xid errors")
