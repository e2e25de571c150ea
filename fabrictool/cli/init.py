"""`fabrictool init`: a commented spec to start from."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fabrictool.bundled import folder
from fabrictool.exits import Exit, Stop

INVENTORY = '''"""For plain pyinfra: `pyinfra {py} DEPLOY`. fabrictool takes the .yaml as well."""
from fabrictool.spec.inventory import hosts

nodes = hosts(__file__)
'''


@click.command("init")
@click.argument("file", default="fabric.yaml", metavar="[FILE]")
def command(file: str) -> None:
    """Write a commented spec to start from, and the inventory (.py) beside it; FILE is fabric.yaml if not given, `-` is stdout.

    An existing file is never overwritten.
    """
    text = (folder("inventories") / "example.yaml").read_text(encoding="utf-8")
    if file == "-":
        click.echo(text, nl=False)
        return
    path = Path(file)
    if path.suffix not in (".yaml", ".yml"):
        raise click.UsageError(f"{file!r} has to end in .yaml")
    create(path, text)
    beside = path.with_suffix(".py")
    if not os.path.lexists(beside):
        create(beside, INVENTORY.format(py=beside.name))
    click.echo(f"wrote {path} and {beside}. Edit {path}, then: fabrictool lint -i {path}", err=True)


def create(path: Path, text: str) -> None:
    """Write a new file.

    Raises:
        Stop: there is one already, or the folder cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as f:
            f.write(text)
    except FileExistsError:
        raise Stop(Exit.USAGE, f"{path} is there already, and is left as it is: name another file, or move it away") from None
    except OSError as e:
        raise Stop(Exit.USAGE, f"{path} cannot be written: {e.strerror}") from None
