"""What is built is what is used: sdist to wheel, installed in a clean environment, run from /."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def _run(*argv: str, cwd: str | Path = "/", **env: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(argv, cwd=cwd, env={**kept, **env}, capture_output=True, text=True, timeout=300, check=False)


def test_wheel(tmp_path: Path) -> None:
    built = _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), ".", cwd=ROOT)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")

    names = zipfile.ZipFile(wheel).namelist()
    assert {n.split("/")[0] for n in names if ".dist-info/" not in n} == {"fabrictool"}
    for kind in ("deploys", "checks", "inventories"):
        for path in (ROOT / kind).iterdir():
            if path.is_file():
                assert f"fabrictool/_bundle/{kind}/{path.name}" in names
    for needed in ("report/schema.json", "_bundle/docs/codes.md", "_bundle/docs/exit-codes.md", "node/collect.sh"):
        assert f"fabrictool/{needed}" in names
    assert [n for n in names if n.endswith(".pyc") or "/tests/" in n] == []

    # A clean environment, but for the libraries: those come from the environment that runs this test, so no network is needed.
    clean = tmp_path / "venv"
    assert _run(sys.executable, "-m", "venv", str(clean)).returncode == 0
    done = _run(str(clean / "bin/python"), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel),
                PIP_DISABLE_PIP_VERSION_CHECK="1")
    assert done.returncode == 0, done.stderr
    (site,) = clean.glob("lib/python*/site-packages")
    ours = {p.name for p in site.iterdir()} - {"pip", "setuptools", "_distutils_hack", "distutils-precedence.pth", "pkg_resources"}
    assert {n for n in ours if not n.endswith(".dist-info")} == {"fabrictool"}
    (site / "libraries.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")

    tool = str(clean / "bin/fabrictool")
    where = _run(str(clean / "bin/python"), "-c", "import fabrictool; print(fabrictool.__file__)")
    assert where.stdout.startswith(str(clean)), where.stdout + where.stderr
    version = _run(tool, "--version")
    assert (version.returncode, version.stderr) == (0, "")
    explained = _run(tool, "explain", "QOS_TRUST")
    assert explained.returncode == 0, explained.stderr
    assert "Fix:" in explained.stdout
    assert "What it looks at" in _run(tool, "explain", "qos").stdout
    folders = _run(str(clean / "bin/python"), "-c", "from fabrictool.bundled import folder\n"
                   "print(*(folder(k) for k in ('deploys', 'checks', 'inventories', 'docs')))")
    assert all(f"{clean}" in word for word in folders.stdout.split()), folders.stdout + folders.stderr
    for module in ("deploys", "checks", "inventories", "tests"):
        assert _run(str(clean / "bin/python"), "-I", "-c", f"import {module}").returncode != 0
