"""`fabrictool schema`: the JSON Schema of a spec file, for editors."""

from __future__ import annotations

import json

import click

from fabrictool.spec.fileschema import file_schema


@click.command("schema")
def command() -> None:
    """Print the JSON Schema (draft 7) of a spec file.

    Editors complete and check keys with it: save it beside the spec and put
    `# yaml-language-server: $schema=fabric.schema.json` on the spec's first line. `fabrictool lint` knows more than any schema.
    """
    click.echo(json.dumps(file_schema(), indent=2))
