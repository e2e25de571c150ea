"""What goes wrong in the lab, said in a way that helps."""

from __future__ import annotations


class LabError(Exception):
    """What, where, why, and what to do. Shown as it is, exit 1."""
