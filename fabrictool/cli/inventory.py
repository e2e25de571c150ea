"""`fabrictool inventory`: the nodes of a spec as resolved, and how each is reached."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from fabrictool.cli import options
from fabrictool.spec.inventory import load_site, select, ssh_target
from fabrictool.spec.ranges import fold
from fabrictool.spec.resolve import Site
from fabrictool.spec.schema import NODE, NodeSpec

SCHEMA_VERSION = 1
WIDTH = 200  # tables are narrower; a terminal wraps what is not


@click.command("inventory")
@options.inventory
@options.limit
@click.option("-o", "--output", "form", type=click.Choice(["text", "json"]), default="text", help="text, or json for programs.")
def command(inventory: Path, limit: str, form: str) -> None:
    """Show the nodes with everything merged and written out: groups, SSH targets, ports. Nothing touches the network."""
    site = load_site(inventory)
    nodes = select(site, limit)
    if form == "json":
        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, "site": site.name, "spec_digest": site.digest,
                               "waves": [list(w) for w in site.waves],
                               "nodes": [{"ssh_target": ssh_target(n.name, n.ssh), "spec": NODE.dump_python(n, mode="json")}
                                         for n in nodes]}, indent=2))
    else:
        click.echo(as_text(site, nodes, color=sys.stdout.isatty()))


def as_text(site: Site, nodes: Sequence[NodeSpec], color: bool = False) -> str:
    """Tables: one row per node for how it is reached; ports folded over the nodes that have them alike."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    page = io.StringIO()
    console = Console(file=page, force_terminal=color, highlight=False, markup=False, emoji=False, width=WIDTH)
    console.print(Text(f"site {site.name}: {len(nodes)} of {len(site.nodes)} nodes, {site.path}"))
    reach = Table("node", "group", "ssh", "sudo", "bootstrap", box=None, pad_edge=False)
    for n in nodes:
        reach.add_row(*(Text(t) for t in (n.name, n.group, ssh_target(n.name, n.ssh), str(n.ssh.sudo), n.bootstrap or "-")))
    console.print(reach)
    console.print()
    ports = Table("nodes", "port", "Gb/s", "switch", "rail", "rdma", "interface", "subnet", box=None, pad_edge=False)
    for names, node in folded(nodes):
        for row in rows(names, node):
            ports.add_row(*(Text(t) for t in row))
    console.print(ports)
    if len(site.waves) > 1:
        console.print(Text("waves: " + ", then ".join(fold(w) for w in site.waves)))
    return "\n".join(line.rstrip() for line in page.getvalue().rstrip().splitlines())


def folded(nodes: Sequence[NodeSpec]) -> list[tuple[str, NodeSpec]]:
    """Nodes with the same ports and rails, folded."""
    same: list[tuple[NodeSpec, list[str]]] = []
    for n in nodes:
        found = next((names for first, names in same if first.ports == n.ports and first.fabric.rails == n.fabric.rails), None)
        if found is None:
            same.append((n, [n.name]))
        else:
            found.append(n.name)
    return [(fold(names), first) for first, names in same]


def rows(names: str, node: NodeSpec) -> list[tuple[str, ...]]:
    """One row for each function; what is the same as above is left out."""
    out: list[tuple[str, ...]] = []
    for port, p in node.ports.items():
        for i, f in enumerate(p.functions):
            head = (port, str(p.rate_gbit or "-"), p.switch or "-") if i == 0 else ("", "", "")
            rail = node.fabric.rails.get(f.rail)
            out.append(("" if out else names, *head, f.rail, f.rdma or "-", f.interface or f.mac or "-",
                        str(rail.subnet) if rail else "-"))
    return out or [(names, *["-"] * 7)]
