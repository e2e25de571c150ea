"""Fixtures shared by all tests: the embedded fleet. Tests that use it are marked `lab` by that, and fail where it cannot be built."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from fabrictool.lab.handle import Lab
from tests.lab.fleet import LAB_FIXTURES, built

settings.register_profile("house", deadline=None)  # nothing is timed in tests: labs of other workers take the machine
settings.load_profile("house")

NO_LAB = "FABRICTOOL_NO_LAB"  # set to a reason: tests that need a lab are left out, and the summary says why


LONGEST = ("tests/lab/test_fault_walk.py", "tests/property/test_ssh.py", "tests/e2e/")  # begun first, or all others wait for them


def _turn(item: pytest.Item) -> int:
    return next((i for i, start in enumerate(LONGEST) if item.nodeid.startswith(start)), len(LONGEST))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if LAB_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.lab)
    if os.environ.get(NO_LAB):
        kept = [i for i in items if i.get_closest_marker("lab") is None]
        left = [i for i in items if i.get_closest_marker("lab") is not None]
        config.hook.pytest_deselected(items=left)
        items[:] = kept
    items.sort(key=_turn)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reason = os.environ.get(NO_LAB)
    if reason:
        terminalreporter.write_line(f"NOT TESTED: everything that needs a lab ({NO_LAB}={reason})", red=True)


@pytest.fixture(scope="session")
def fleet() -> Iterator[Lab]:
    """Four Spark nodes, shared by the whole session of this worker, in whatever state the test before left them."""
    with built("shared", nodes=4, profile="spark") as lab:
        yield lab


@pytest.fixture
def lab(fleet: Lab) -> Lab:
    """The shared fleet, every node and the switch as delivered."""
    fleet.clear()
    return fleet
