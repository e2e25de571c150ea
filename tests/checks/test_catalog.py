"""Checks as files: bundled ones are complete, a site's own are found, broken ones say why."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrictool.catalog import checks, choose, clashing_sections, unknown_rooms
from fabrictool.check import HEADINGS, extra_sections, missing_headings
from fabrictool.cli import run
from fabrictool.exits import Exit, Stop
from tests.specs import node_spec

PAGE = '"""A site\'s own.\n\n' + "\n".join(f"{h}: something." for h in HEADINGS) + '\n"""\n'
GOOD = PAGE + "from fabrictool.check import Check\nCHECK = Check(rooms=('qos', 'env'))\n"


def test_bundled_checks() -> None:
    assert {c.name for c in checks()} >= {"env", "link", "names", "ports", "qos", "rdma"}
    for c in checks():
        assert missing_headings(c.page) == ()
        assert c.rooms or c.check.judge, c.name
        assert len(Path(c.path).read_text().splitlines()) <= 30


def test_a_folder_of_a_site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lossless.py").write_text(GOOD)
    (tmp_path / "_helper.py").write_text("raise SystemError")
    (chosen,) = choose(("lossless", "lossless"), [tmp_path])
    assert (chosen.title, chosen.rooms) == ("A site's own.", ("qos", "env"))
    assert run(["explain", "lossless", "--path", str(tmp_path)]) == 0
    assert "A site's own." in capsys.readouterr().out
    unknown_rooms([chosen], ("qos", "env"))
    with pytest.raises(Stop, match="no room 'env'"):
        unknown_rooms([chosen], ("qos",))


@pytest.mark.parametrize(("name", "text", "said"), [
    ("bad", "def (", "SyntaxError"), ("bad", "import nothing_like_it", "ModuleNotFoundError"), ("bad", PAGE, "must export CHECK"),
    ("bad", GOOD.replace("How to fix: something.\n", ""), "lacks 'How to fix:'"), ("qos", GOOD, "two checks are called 'qos'"),
])
def test_what_is_no_check_is_said(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(Stop) as stop:
        checks([tmp_path])
    assert stop.value.exit is Exit.USAGE
    assert said in stop.value.message
    assert str(tmp_path) in stop.value.message


def test_what_a_check_reads_besides(tmp_path: Path) -> None:
    """Collected only for the checks that were chosen, once for all of them, and only where that is possible."""
    text = GOOD.replace("CHECK = Check(rooms=('qos', 'env'))", """from fabrictool.snapshot import Section
CHECK = Check(judge=lambda case: (), sections=lambda want: (Section('own.name', 'echo "$1"', args=(want.name,)),))""")
    for name, body in (("one", text), ("two", text), ("other", text.replace('echo "$1"', "false")),
                       ("room", text.replace("own.name", "ports.ip")), ("broken", text.replace("want.name", "want.no_such"))):
        (tmp_path / f"{name}.py").write_text(body)
    found = {c.name: c for c in checks([tmp_path])}
    want = node_spec()
    assert extra_sections([found["qos"]], want) == ()
    assert [(s.name, s.args) for s in extra_sections([found["one"], found["qos"], found["two"]], want)] == [("own.name", ("spark01",))]
    clashing_sections([found["one"], found["two"]], [want])
    for bad in ("other", "room", "broken"):
        with pytest.raises(Stop, match=rf"{bad}\.py: what it reads of spark01") as stop:
            clashing_sections([found["one"], found[bad]], [want])
        assert stop.value.exit is Exit.USAGE


def test_names() -> None:
    assert [c.name for c in choose(("qos", "link"))] == ["qos", "link"]
    with pytest.raises(Stop, match="did you mean 'qos'"):
        choose(("qso",))
    with pytest.raises(Stop, match="no such folder"):
        checks([Path("/no/such")])


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    for name, said in (("qos", "Cost and risk:"), ("QOS_TRUST", "Fix:"), ("qos_trust", "Fix:"), ("exit", "130"), ("3", "no verdict")):
        assert run(["explain", name]) == 0
        assert said in capsys.readouterr().out
    assert run(["explain"]) == 0
    out = capsys.readouterr().out
    assert all(c.name in out for c in checks())
    assert "PATH_MTU_HOLE" in out
    assert run(["explain", "9"]) == 64
