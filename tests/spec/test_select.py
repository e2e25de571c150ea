"""-l/--limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrictool.spec.problems import SpecError
from fabrictool.spec.resolve import Site, load_site
from fabrictool.spec.select import select
from tests.spec.base import BASE, write


@pytest.fixture
def site(tmp_path: Path) -> Site:
    text = BASE.replace("n[1-2]", "n[1-12]").replace("groups:\n", "groups:\n  big: {nodes: 'x[1-2]'}\n")
    return load_site(write(tmp_path, text))


@pytest.mark.parametrize(("limit", "want"), [
    ("", "n1 n2 n3 n4 n5 n6 n7 n8 n9 n10 n11 n12 x1 x2"), ("n[10-12],n2", "n2 n10 n11 n12"), ("n2 n1", "n1 n2"), ("big", "x1 x2"),
    ("@big", "x1 x2"), ("big,!x1", "x2"), ("big!x1", "x2"), ("!g", "x1 x2"), ("!@g !x2", "x1"), ("!n[1-12]", "x1 x2"),
    ("n[1,3],n1", "n1 n3"), (" , n1", "n1"), ("g!n[1-11]", "n12"),
])
def test_limits(site: Site, limit: str, want: str) -> None:
    assert [n.name for n in select(site, limit)] == want.split()


@pytest.mark.parametrize(("limit", "text"), [
    ("n13", 'no node or group "n13"'), ("bug", 'did you mean "big"?'), ("@bigg", "no such group"), ("n1!n1", "leaves no node"),
    ("!g,!big", "leaves no node"), ("!", "no name behind it"), ("n[3-1]", "runs backwards"), ("n[1-99999]", "more than"),
    ("n1;x", "no node name"),
    ("n[1-13]", 'no node or group "n13"'), ("!n77", 'no node or group "n77"'),
])
def test_what_selects_nothing_or_is_unknown_is_an_error(site: Site, limit: str, text: str) -> None:
    with pytest.raises(SpecError, match="--limit") as e:
        select(site, limit)
    assert text in str(e.value)


def test_all_unknown_words_are_named(site: Site) -> None:
    with pytest.raises(SpecError) as e:
        select(site, "foo,bar,n1")
    assert len(e.value.problems) == 2
