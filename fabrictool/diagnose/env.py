"""Variables as pasted: nccl.conf, env files, unit drop-ins, `env` of a process. The rules are the env room's own.

What a rule needs of the node (which interfaces and devices there are) comes from the other pieces of the same node; without them a name
is taken as one that exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import IPv4Interface

from fabrictool.diagnose.model import Case, Judged, quoted, softened
from fabrictool.env import lint
from fabrictool.env.quoting import Item, Style, items
from fabrictool.env.rules import Here
from fabrictool.model import Code, Finding, Reason, Status, Unreadable
from fabrictool.ports import Netdev
from fabrictool.room import About
from fabrictool.snapshot.sniff import Kind, Line
from fabrictool.spec import NodeSpec

KINDS = frozenset({Kind.ENV})
NONE = Unreadable(Reason.NOT_COLLECTED, "the input does not show the node's interfaces")
_LIST = re.compile(r"[\^=]*")
_RDMA = re.compile(r"(?:mlx5_|mlx4_|roce|ib|rxe|bnxt_re|irdma|efa|siw)[\w.-]*(?::\d+)?")
# Wrong only because other nodes take part: a run on one node may well say so.
_YAML = re.compile(r"^\s*- (?:name:|[A-Z_0-9]+=)", re.M)  # compose, Kubernetes: YAML has taken the quotes off
_ALONE = ("MASTER_ADDR", "VLLM_HOST_IP", "SGLANG_HOST_IP", "HOST_IP", "VLLM_NIXL_SIDE_CHANNEL_HOST")
_FORCED = ("NCCL_NET", "NCCL_IB_DISABLE")  # one process may be a control run; a file that stays is not


def style(case: Case) -> Style:
    """How the text spells an assignment: by its file's name, else by its own look."""
    path, text = case.piece.path or "", case.piece.text
    if re.search(r"^\s*Environment=", text, re.M):
        return Style.UNIT
    if re.search(r"nccl[\w.-]*\.conf$", path):
        return Style.CONF
    if path.startswith("/etc/environment") or path.endswith("/environment"):
        return Style.PAM
    if re.search(r"^(?:export|declare -x) ", text, re.M) or path.endswith(".sh"):
        return Style.SHELL
    if path.endswith(".env") or "docker" in path:
        return Style.DOCKER
    if _YAML.search(text):
        return Style.ENVFILE
    first = case.piece.command.removeprefix("sudo ").split(" ")[0]
    return Style.PROCESS if first in ("env", "printenv") or path.endswith("environ") else Style.CONF


def judge(case: Case) -> Iterator[Judged]:
    spelled = style(case)
    found = tuple(_items(case, spelled))
    findings = [f for group, here in _groups(found, case) for f in _group(case, spelled, group, here)]
    if not any(f.bad for f in findings):
        findings = [About(Code.ENV_LINT, case.subject, "env.lint", "").ok(f"{len(found)} variables", "no rule broken")]
    where = case.piece.path or ""
    yield Judged(Kind.ENV, (case.piece,), tuple(findings), f"{where} on {case.node}" if where and case.node else where or case.node,
                 ("that a consumer uses these values: it may read others from places that are not shown here",))


def _items(case: Case, spelled: Style) -> Iterator[Item]:
    """Each assignment with the index of its line."""
    name = ""
    for at, line in enumerate(case.piece.lines):
        text = re.sub(r"^\s*(?:declare -x |-e ?|- )", "", line.text) if spelled is not Style.CONF else line.text
        if spelled is Style.ENVFILE and (m := re.fullmatch(r"\s*(?:- )?(name|value):\s*[\"']?(.*?)[\"']?\s*", line.text[:4096])):
            name, text = (m[2], "") if m[1] == "name" else (name, f"{name}={m[2]}")
        if spelled is Style.UNIT:
            head, eq, text = text.strip().partition("=")
            if head != "Environment" or not eq:
                continue
        read = Style.CONF if spelled is Style.PROCESS else spelled
        for item in items(read, text.removeprefix("export ") if spelled is Style.SHELL else text):
            yield replace(item, line=at)


def _groups(found: tuple[Item, ...], case: Case) -> Iterator[tuple[tuple[Item, ...], Here]]:
    """Variables of one kind of names, with what is known of these names. One of each name at a time is enough for its rule."""
    base = Here(case.around.netdevs, case.around.rdma, fabric=True, gpu=True, nodes=2)
    if case.want is not None:
        base = replace(base, bootstrap=case.want.bootstrap or "", hcas=_hcas(case.want), other=case.want.other_rdma,
                       fabric=bool(case.want.ports), gpu=case.want.gpu is not None, nodes=len(case.want.nodes))
    by_name: dict[str, list[Item]] = {}
    for item in found:
        by_name.setdefault(item.key, []).append(item)
    for name, mine in by_name.items():
        here = base
        if name in lint.INTERFACES:
            words = [w for i in mine for w in _names(i.value or "")]
            here = _assumed(base, name, words)
        yield tuple(mine), here


def _hcas(want: NodeSpec) -> tuple[str, ...]:
    return tuple(fn.rdma for port in want.ports.values() for fn in port.functions if fn.rdma)


def _names(value: str) -> list[str]:
    return [w.strip().strip("\"'") for w in _LIST.sub("", value.strip(), count=1).split(",") if w.strip()]


def _assumed(base: Here, name: str, words: list[str]) -> Here:
    """Names that cannot be looked up are taken as there, with an address: only what they say by themselves is left."""
    here = base
    rdma = [w for w in words if _RDMA.fullmatch(w)] if name == "UCX_NET_DEVICES" else words
    if isinstance(here.netdevs, Unreadable):
        address = IPv4Interface("192.0.2.1/24")
        plain = [w for w in words if name != "UCX_NET_DEVICES" or w not in rdma]
        there: Mapping[str, Netdev] = {w: Netdev(w, addresses=(address,)) for w in plain}
        here = replace(here, netdevs=there, bootstrap=here.bootstrap if here.bootstrap in there else "")
    if isinstance(here.rdma, Unreadable):
        # A prefix (mlx5 for mlx5_0, mlx5_1 ...) can only be resolved on the node itself.
        here = replace(here, rdma=tuple(dict.fromkeys(w.partition(":")[0] for w in rdma)) or ("?",), hcas=(), other=())
    return here


def _group(case: Case, spelled: Style, group: tuple[Item, ...], here: Here) -> Iterator[Finding]:
    piece = case.piece
    source = lint.Source(piece.path or piece.source, spelled, group, persistent=spelled is not Style.PROCESS,
                         remedy="correct it where it is set, then start what reads it anew")
    for f in lint.judge(case.subject, source, here, NONE):
        if f.status is Status.PASS or f.got.startswith("unreadable ("):
            continue
        key = group[0].key
        yield quoted(_tempered(f, case, key, source.persistent), piece, _lines(case, group))


def _tempered(f: Finding, case: Case, key: str, persistent: bool) -> Finding:
    why = re.sub(r", and whether the entry is right cannot be read: .*",
                 "; a new address or VLAN moves the entries, and NCCL since 2.21 finds the right one itself", f.why)
    why = why.replace("and the spec has an RDMA fabric", "so all traffic between nodes goes over TCP")
    f = replace(f, why=why)
    if case.want is None and key in _ALONE:
        return softened(f, "right where only one node takes part")
    return softened(f) if case.want is None and key in _FORCED and not persistent else f


def _lines(case: Case, group: tuple[Item, ...]) -> list[Line]:
    return [case.piece.lines[i.line] for i in group if i.line < len(case.piece.lines)]
