"""Room: byte, packet and loss counters of RDMA devices, interfaces and ports, and what two readings of them show. Pure.

A library: judges over the fleet (`fabrictool.prove`) take two readings around a run and ask a `Span` of them.
"""

from fabrictool.counters.delta import Invalid, Moved, Span, span
from fabrictool.counters.model import Clock, Device, Reading, Table, size_text
from fabrictool.counters.read import read
from fabrictool.counters.sections import SECTIONS

__all__ = ["SECTIONS", "Clock", "Device", "Invalid", "Moved", "Reading", "Span", "Table", "read", "size_text", "span"]
