"""The house rules that a machine can keep."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.exits import Exit
from fabrictool.model import RESERVED, Code
from fabrictool.report.codes import parse

ROOT = Path(__file__).resolve().parent.parent
LINES = 250
LONG: frozenset[str] = frozenset()  # may be longer, with a reason each
# Put together here, so that this file does not hold them itself.
FORBIDDEN = ("/" + "work/", "/tmp/" + "v/", "sha" + "red/", "." + "library", "brief" + ".md", "Cla" + "ude", "Anth" + "ropic",
             "Chat" + "GPT")


# Importing these puts gevent in the place of threads. pyinfra's own SSH client does not.
PATCHES = re.compile(r"(?!pyinfra[.]connectors[.]sshuserclient)(pyinfra|gevent|fabrictool[.](engine|ops))([.]|$)")


def tracked() -> list[Path]:
    """Every file of the project, as git sees it; without git, all that lies outside of caches and environments."""
    try:
        out = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                             capture_output=True, check=True, timeout=60).stdout
        files = [ROOT / name for name in out.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        files = list(ROOT.rglob("*"))
    skip = {".git", ".venv", "__pycache__", "dist", "build"}
    found = [f for f in files if f.is_file() and not f.is_symlink() and not skip & set(f.relative_to(ROOT).parts)
             and not any(p.endswith("_cache") for p in f.relative_to(ROOT).parts)]
    assert ROOT / "pyproject.toml" in found
    return found


def python(folder: str) -> Iterator[Path]:
    yield from (p for p in sorted((ROOT / folder).rglob("*.py")) if "__pycache__" not in p.parts)


def test_no_test_imports_pyinfra_into_the_runner() -> None:
    """gevent then takes the place of threads there, and a worker that waits for its next test dies of it, once in a while."""
    found = []
    for path in python("tests"):
        if not path.name.startswith("test_"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else \
                [f"{node.module}.{a.name}" for a in node.names] if isinstance(node, ast.ImportFrom) else []
            found += [f"{path.relative_to(ROOT)}: {n}" for n in names if PATCHES.match(n)]
    assert found == []


def test_no_file_is_too_long() -> None:
    long = {str(p.relative_to(ROOT)): n for p in python("fabrictool") if (n := len(p.read_text(encoding="utf-8").splitlines())) > LINES}
    assert {k: v for k, v in long.items() if k not in LONG} == {}
    assert set(long) >= LONG, "a file in LONG is short by now: take it out"


def test_nothing_of_the_machine_that_built_it_is_in_any_file() -> None:
    hits = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        hits += [f"{path.relative_to(ROOT)}: {word}" for word in FORBIDDEN if word in text]
    assert hits == []


def test_no_large_and_no_binary_file_is_tracked_outside_of_captures() -> None:
    odd = [str(p.relative_to(ROOT)) for p in tracked()
           if p.stat().st_size > 300_000 or (b"\0" in p.read_bytes()[:4096] and "captures" not in p.parts)]
    assert odd == []


@pytest.mark.parametrize("path", sorted((ROOT / "deploys").glob("*.py")), ids=lambda p: p.name)
def test_deploys_have_no_loops_and_no_conditions(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    forbidden = (ast.For, ast.While, ast.If, ast.IfExp, ast.Try, ast.With, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
                 ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.BoolOp, ast.Match)
    assert [type(n).__name__ for n in ast.walk(tree) if isinstance(n, forbidden)] == []
    assert ast.get_docstring(tree)


def test_deploys_and_checks_exist_and_checks_are_short() -> None:
    assert list((ROOT / "deploys").glob("*.py"))
    checks = list((ROOT / "checks").glob("*.py"))
    assert checks
    assert {p.name: n for p in checks if (n := len(p.read_text(encoding="utf-8").splitlines())) > 30} == {}


def test_every_code_has_its_text_and_every_text_a_code() -> None:
    texts = parse((ROOT / "docs" / "codes.md").read_text(encoding="utf-8"))
    assert set(Code) - set(texts) <= RESERVED  # a reserved code may wait for its text until something raises it
    assert list(set(texts) - set(Code)) == []
    for code, text in texts.items():
        assert len(text.why) > 30, code
        assert text.fix, code


@pytest.mark.parametrize("bad", ["## A\n\nwhy\n", "## A\n\nwhy\n\nno fix\n", "## A\n\nw\n\nFix: f\n\nmore\n",
                                 2 * "## A\n\nw\n\nFix: f\n\n"])
def test_a_code_text_that_is_incomplete_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="A:"):
        parse(bad)
    assert parse("# Area\n\n## A\n\nw\n\nFix: f\n\n# Other\n\nintro\n")["A"].fix == "f"


def test_every_exit_code_is_documented() -> None:
    text = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    rows = {int(n) for n in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert rows == {int(e) for e in Exit}


def test_what_runs_inside_lab_nodes_imports_only_the_standard_library() -> None:
    allowed = set(sys.stdlib_module_names) | {"yaml"}  # netplan itself reads YAML
    odd = []
    for path in python("fabrictool/lab/nodeside"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else \
                [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            odd += [f"{path.name}: {n}" for n in names
                    if n.split(".")[0] not in allowed and not n.startswith("fabrictool.lab.nodeside")]
    assert odd == []


def test_no_step_is_killed_by_a_broad_name() -> None:
    hits = [str(p.relative_to(ROOT)) for p in tracked() if p.suffix in (".py", ".sh") and "tests" not in p.relative_to(ROOT).parts
            and re.search(r"(?<![.\w])(pkill|killall)(?![(\w])", p.read_text(encoding="utf-8", errors="replace"))]
    assert hits == []


def test_readme_names_the_front_door() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "./dev demo" in text
    assert "./dev test" in text
