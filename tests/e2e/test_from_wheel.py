"""Plain pyinfra with nothing but the wheel: its example inventory file, its deploys, run from `/`, reach the spec's state."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabrictool.lab.handle import Lab
from tests.e2e.fleet import LIMIT_S, ROOT, Ended
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
FOREIGN = ("PYTHONPATH", "VIRTUAL_ENV", "SSH_AUTH_SOCK")  # would lead to the checkout, or past the lab's own key


def run(*argv: str, cwd: Path = Path("/"), **env: str) -> Ended:
    kept = {k: v for k, v in os.environ.items() if k not in FOREIGN and not k.startswith(("FABRICTOOL", "PYINFRA"))}
    done = subprocess.run(argv, cwd=cwd, env={**kept, "NO_COLOR": "1", **env}, capture_output=True, text=True, errors="replace",
                          timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL)
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with our wheel in it. The libraries are those of the environment that runs this test: no network."""
    folder = tmp_path_factory.mktemp("wheel")
    made = run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), ".", cwd=ROOT)
    assert made.rc == 0, made.all
    (wheel,) = folder.glob("*.whl")
    venv = folder / "venv"
    assert run(sys.executable, "-m", "venv", str(venv)).rc == 0
    done = run(str(venv / "bin/python"), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    assert done.rc == 0, done.all
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return venv


@pytest.fixture
def node() -> Iterator[Lab]:
    with built("wheel", 1) as lab:
        yield lab


def test_pyinfra_from_the_wheel(clean: Path, node: Lab, tmp_path: Path) -> None:
    python = str(clean / "bin/python")
    where = run(python, "-c", "from fabrictool.bundled import folder; print(folder('deploys')); print(folder('inventories'))")
    deploys, inventories = (Path(line) for line in where.out.splitlines())
    assert clean in deploys.parents
    assert clean in inventories.parents
    for name in ("lab.yaml", "known_hosts"):
        shutil.copy(node.layout.root / name, tmp_path)
    shutil.copy(inventories / "lab.py", tmp_path)  # the bundle's own three lines, beside the spec of this lab

    done = run(python, "-m", "pyinfra", "-y", str(tmp_path / "lab.py"), str(deploys / "site.py"), PYTHONVERBOSE="1")
    assert done.rc == 0, done.all[-6000:]
    loaded = [line.rpartition(" matches ")[2] for line in done.err.splitlines() if " matches " in line and "/fabrictool/" in line]
    assert any(line.endswith("/fabrictool/ops/converge.py") for line in loaded)
    assert [line for line in loaded if not line.startswith(str(clean))] == []

    fn = node.state("spark01").functions["enp1s0f0np0"]
    assert (fn.trust, fn.dscp_map[26], fn.pfc) == ("dscp", 3, [0, 0, 0, 1, 0, 0, 0, 0])
    assert node.links("spark01")["enp1s0f0np0"].mtu == 9000
    drift = run(str(clean / "bin/fabrictool"), "drift", "-i", str(tmp_path / "lab.py"))
    assert drift.rc == 0, drift.all
    second = run(python, "-m", "pyinfra", "-y", str(tmp_path / "lab.py"), str(deploys / "site.py"))
    assert second.rc == 0, second.all
    assert "] Success" not in second.all


@pytest.mark.parametrize("name", ["spark4", "h20x2", "lab", "example"])
def test_every_bundled_inventory_is_one_for_pyinfra(clean: Path, name: str) -> None:
    python = str(clean / "bin/python")
    where = run(python, "-c", "from fabrictool.bundled import folder; print(folder('inventories'))")
    file = Path(where.out.strip()) / f"{name}.py"
    cache = str(clean.parent / "cache")
    shown = run(python, "-m", "pyinfra", str(file), "debug-inventory", HOME="/nonexistent", XDG_CACHE_HOME=cache)
    assert shown.rc == 0, shown.all
    listed = run(str(clean / "bin/fabrictool"), "inventory", "-i", str(file), XDG_CACHE_HOME=cache)
    assert listed.rc == 0, listed.all
    names = re.findall(r"^[a-z]+\d+(?= )", listed.out, re.MULTILINE)
    assert len(names) > 1
    assert [n for n in names if n not in shown.all] == []
