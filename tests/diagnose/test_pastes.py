"""Every text of docs/diagnose.md gives exactly its codes, with the lines that prove them; healthy ones give none."""

from __future__ import annotations

import pytest

from fabrictool.diagnose import nothing_known
from fabrictool.model import Code, Status
from tests.diagnose.table import PASTES, ROWS, WRITTEN, Row, codes, exit_of, findings, of_text


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_the_table_is_true(row: Row) -> None:
    found = of_text(row.text)
    assert codes(found) == row.codes
    assert exit_of(found) == row.exit


def test_the_table_names_every_text() -> None:
    assert sorted(r.name for r in WRITTEN) == sorted(p.stem for p in PASTES.glob("*.txt"))
    assert len(WRITTEN) >= 100
    assert sum(not r.codes for r in WRITTEN) >= 18  # healthy ones, of every family


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_every_finding_says_what_proves_it_why_and_what_to_do(row: Row) -> None:
    lines = row.text.split("\n")
    for f in findings(of_text(row.text)):
        if not f.bad:
            continue
        assert f.why, f
        assert f.remedy, f
        assert not f.steps, "nothing is applied here"
        assert "spec" not in f.why or "spec" in row.text, f.why
        for quote in f.lines:
            source, number, text = quote.split(":", 2)
            assert source == "paste"
            assert " ".join(text.split())[:60] in " ".join(lines[int(number) - 1].split())
        assert f.lines or f.code in (Code.NOTHING_KNOWN, Code.ENV_NOT_PROPAGATED, Code.SINGLE_NODE), f


@pytest.mark.parametrize("row", [r for r in WRITTEN if not r.codes], ids=lambda r: r.name)
def test_a_healthy_text_has_evidence(row: Row) -> None:
    assert {f.status for f in findings(of_text(row.text))} <= {Status.PASS, Status.SKIP}
    assert any(f.status is Status.PASS and f.got for f in findings(of_text(row.text)))


def test_nothing_known_of_no_text_says_that_there_was_none() -> None:
    (one,) = nothing_known(()).findings
    assert (one.code, one.got) == (Code.NOTHING_KNOWN, "no text")
    assert "empty" in one.why


def test_nothing_known_is_an_outcome_of_its_own() -> None:
    for text in ("", "some words\n", "[   12.345678] docker0: port 1(veth12ab) entered forwarding state\n"):
        (only,) = findings(of_text(text))
        assert (only.code, only.status) == (Code.NOTHING_KNOWN, Status.UNKNOWN)
        assert only.remedy
