"""The README's first command, and the output that the README shows.

`FABRICTOOL_GOLDEN=write` renews the README and docs/demo.md from what the demo printed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.cli.demo import choose

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- demo: begin -->", "<!-- demo: end -->"
PROGRAM = "import sys; from fabrictool.cli import main; sys.exit(main())"
SEED, NAME = 1, "demo"

pytestmark = pytest.mark.lab


def demo(seed: int, name: str, nodes: int = 4) -> tuple[int, str]:
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "CI": "1", "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM, "demo", "--seed", str(seed), "--name", name, "--nodes", str(nodes)], env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, check=False)
    return done.returncode, done.stdout


def same(text: str, name: str) -> str:
    """Without what differs between two runs: run ids, times, the lab's name."""
    text = re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{8}", "RUN", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "TIME", text)
    for form in ("fabrictool-lab/{}/", "lab {}:", "--name {}"):
        text = text.replace(form.format(name), form.format(NAME))
    return text


def short(text: str) -> Iterator[str]:
    """What the README shows: without the indented details, but for the proof and the caught fault, which are shown whole."""
    whole, last = False, ""
    for line in text.splitlines():
        if line.startswith("# "):
            whole = line.startswith(("# Caught", "# Prove it"))
        if (whole or not line.startswith(" ")) and not line.startswith("lab demo:") and (line or last):
            yield line
            last = line


@pytest.fixture(scope="module")
def output() -> str:
    """One demo, from nothing to nothing."""
    name = f"demo{os.getpid()}"
    code, text = demo(SEED, name)
    assert code == 0, text[-4000:]
    assert not Path(f"/run/fabrictool-lab/{name}").exists()
    return same(text, name)


def test_it_tells_the_whole_story(output: str) -> None:
    exits = [int(n) for n in re.findall(r"^\(exit (\d+)\)$", output, re.MULTILINE)]
    assert exits == [2, 0, 0, 0, 0, 2, 0, 0]
    assert "simulated" in output
    proof = output.partition("# Prove it")[2].partition("# Something")[0]
    assert re.search(r"busbw 2[23]\.\d", proof)  # both rails of one port of 200 Gb/s
    assert "proven exercised" in proof
    fault, node = choose(SEED, [f"spark{n:02}" for n in range(1, 5)])
    caught = output.partition("# Caught?")[2].partition("# Repair")[0]
    assert all(code in caught for code in fault.expect["drift"].codes)
    assert node in caught


def test_the_readme_shows_what_it_printed(output: str) -> None:
    readme, page = ROOT / "README.md", ROOT / "docs" / "demo.md"
    shown = "\n".join(short(output)).strip()
    text = readme.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    block = f"\n```text\n{shown}\n```\n"
    head = f"# What the demo prints, whole\n\n`./dev demo --seed {SEED}`; run ids and times are left out."
    whole = f"{head}\n\n```text\n{output.strip()}\n```\n"
    if os.environ.get("FABRICTOOL_GOLDEN") == "write":
        readme.write_text(f"{before}{BEGIN}{block}{END}{after}", encoding="utf-8")
        page.write_text(whole, encoding="utf-8")
    else:
        assert old == block
        assert page.read_text(encoding="utf-8") == whole


def test_another_seed_picks_another_fault() -> None:
    names = [f"spark{n:02}" for n in range(1, 5)]
    assert len({choose(seed, names)[0].name for seed in range(20)}) > 5
    assert choose(7, names) == choose(7, names)
