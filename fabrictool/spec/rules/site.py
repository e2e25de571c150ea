"""Rules that compare the nodes of a site."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fabrictool.spec.placeholders import placeholders
from fabrictool.spec.problems import Problem, error, shown, warning
from fabrictool.spec.rules.env import OWN_ADDRESS
from fabrictool.spec.rules.view import Placed


def same_host(nodes: Sequence[Placed]) -> Iterator[Problem]:
    """Two nodes that are one machine."""
    seen: dict[tuple[str, int, str], Placed] = {}
    for n in nodes:
        ssh = n.spec.ssh
        target = (ssh.host or n.spec.name, ssh.port or 22, ssh.jump or "")
        if target in seen:
            said = n if ssh.host else seen[target]
            yield error(said.at("ssh", "host"),
                        f"nodes {seen[target].spec.name} and {n.spec.name} have the same SSH host {target[0]}, port {target[1]}",
                        "one machine would be set up and judged as two", "give each its own `ssh: {host: ...}`")
        seen.setdefault(target, n)


def same_address(nodes: Sequence[Placed]) -> Iterator[Problem]:
    """An address of its own that several nodes claim."""
    seen: dict[tuple[str, str], str] = {}
    for n in nodes:
        for name in OWN_ADDRESS:
            value = n.spec.env.set.get(name)
            if not isinstance(value, str) or placeholders(value):
                continue
            if (name, value) in seen:
                yield error(n.at("env", "set", name), f"{name} is {shown(value)} on {seen[name, value]} and on {n.spec.name}",
                            "it has to be the node's own address", 'write "{bootstrap.address}"')
                break
            seen[name, value] = n.spec.name


def idle_rails(nodes: Sequence[Placed]) -> Iterator[Problem]:
    """A rail that no node has a function on."""
    used = {f.rail for n in nodes for p in n.spec.ports.values() for f in p.functions}
    for n in nodes:
        for rail in n.spec.fabric.rails:
            if rail not in used:
                yield warning(n.at("fabric", "rails", rail), f"no function of any node is on rail {shown(rail)}", "",
                              "remove it, or put functions on it")


RULES: tuple[Callable[[Sequence[Placed]], Iterator[Problem]], ...] = (same_host, same_address, idle_rails)
