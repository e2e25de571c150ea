"""The node-side code, copied into the run folder: nodes see this copy, whatever happens to the source meanwhile."""

from __future__ import annotations

import compileall
import os
import shutil
from pathlib import Path

import yaml

from fabrictool.lab.errors import LabError
from fabrictool.lab.paths import Layout

_SKIP = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")


def install(layout: Layout) -> None:
    """nodeside/ under its own package names, with nothing of the project around it; and PyYAML for the netplan stand-in."""
    shutil.rmtree(layout.lib, ignore_errors=True)
    package = layout.lib / "fabrictool" / "lab"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    shutil.copytree(Path(__file__).with_name("nodeside"), package / "nodeside", ignore=_SKIP)
    shutil.copytree(Path(yaml.__file__).parent, layout.lib / "yaml", ignore=_SKIP)
    (layout.lib / "bin").mkdir()
    real = shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if real is None:
        raise LabError("ip is missing: apt-get install iproute2")
    shutil.copy(os.path.realpath(real), layout.lib / "bin" / "ip")
    compileall.compile_dir(layout.lib, quiet=2)


def refresh(layout: Layout) -> None:
    """Bring the copy up to the source, in place: running nodes have the folder bound."""
    source = Path(__file__).with_name("nodeside")
    shutil.copytree(source, layout.lib / "fabrictool" / "lab" / "nodeside", ignore=_SKIP, dirs_exist_ok=True)
    compileall.compile_dir(layout.lib, quiet=2)
