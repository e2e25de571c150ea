"""UCX and NIXL: which transports carry the bytes between nodes, from UCX's own lines (nccl.md 9).

`intra-node` and `self` lines are no evidence for the fabric. A line counts whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fabrictool.collective.linemodel import Proof
from fabrictool.collective.ucxmodel import Carried, Config, Lane, Lanes, ProtocolRow, Scope, UcxLog

LONGEST = 8192
RDMA = ("rc", "rc_mlx5", "rc_verbs", "dc", "dc_mlx5", "ud", "ud_mlx5", "ud_verbs", "gga", "gga_mlx5", "srd")
COPIES = ("cuda_copy", "gdr_copy", "rocm_copy", "ze_copy")  # between GPU and host memory, beside any network
LOCAL = ("self", "sysv", "posix", "cma", "knem", "xpmem", "cuda_ipc", "rocm_ipc", "ze_ipc")
DATA = ("rma", "rma_am", "am", "tag", "stream")  # operations that carry data; ka is keepalive, amo atomics

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_HEAD = re.compile(r"\[[0-9]{1,12}\.[0-9]{1,9}\] +\[(?P<host>[A-Za-z0-9_.-]{1,128}):(?P<pid>[0-9]{1,10}) *:[0-9]{1,6}(?::[0-9]{1,10})?\]")
_LANE = r"[a-z][a-z0-9_]{0,31}/[A-Za-z0-9_.:-]{1,64}"
_OPERATIONS = rf"(?P<ops>(?:[a-z_]{{2,12}}\({_LANE}(?: {_LANE}){{0,63}}\) ?){{1,8}})"
_CONFIG = re.compile(rf"(?:(?P<scope>inter-node|intra-node|self) cfg#(?P<n>[0-9]{{1,5}})|ep_cfg\[(?P<old>[0-9]{{1,5}})\]:) {_OPERATIONS}$")
_ONE = re.compile(r"([a-z_]{2,12})\(([^()]{1,4096})\)")
_TABLE = re.compile(r"\| [^|]{0,80}?\b(?P<scope>inter-node|intra-node|self) cfg#[0-9]{1,5} +\| ")
_ROW = re.compile(r"\| +(?P<low>[0-9]{1,20})(?:\.\.(?P<high>inf|[0-9]{1,20}))? \| (?P<what>[^|]{3,80}) \| (?P<lanes>[^|]{3,400}) \|")
_SHARE = re.compile(rf"(?:([0-9]{{1,3}})% on )?({_LANE})")
_NO_DEVICE = re.compile(r"[Nn]o usable transports/devices|network device '[^']{1,80}' is not available")
_VERSION = re.compile(r"UCX +INFO +Version (\S{1,40}) \(loaded from (\S{1,300})\)|NIXL UCX backend bound to UCX (\S{1,40}) at (\S{1,300})")
_ASKED = re.compile(r"UCX_\* env variables?: (.{1,600})")


def parse(text: str, node: str = "", source: str = "") -> UcxLog:
    """UCX's lines out of any text. `node`: whose log it is ("" = the host that each line names)."""
    configs: list[Config] = []
    rows: list[ProtocolRow] = []
    said: dict[str, list[Proof]] = {"device": [], "reach": [], "version": [], "tcp": []}
    versions: list[str] = []
    libraries: list[str] = []
    asked: list[str] = []
    scope: Scope | None = None
    for number, raw in enumerate(text.split("\n"), 1):
        line = _ANSI.sub("", raw.rstrip("\r ")) if "\x1b" in raw else raw.rstrip("\r ")
        if not line or len(line) > LONGEST:
            continue
        proof = _proof(line, number, node, source)
        scope = _table_scope(line, scope)
        if config := _config(line, proof):
            configs.append(config)
        elif scope is not None and (row := _row(line, scope, proof)):
            rows.append(row)
        elif m := _VERSION.search(line):
            versions.append(m[1] or m[3])
            libraries.append(m[2] or m[4])
        elif m := _ASKED.search(line):
            asked.append(m[1])
        elif kind := _error(line):
            said[kind].append(proof)
    return UcxLog(tuple(configs), tuple(rows), tuple(said["device"]), tuple(said["reach"]), tuple(said["version"]), tuple(said["tcp"]),
                  tuple(dict.fromkeys(versions)), tuple(dict.fromkeys(libraries)), tuple(dict.fromkeys(asked)))


def _proof(line: str, number: int, node: str, source: str) -> Proof:
    m = _HEAD.search(line[:300])
    return Proof(node or (m["host"] if m else ""), source, number, line.strip()[:300])


def _lane(text: str) -> Lane:
    transport, _, device = text.partition("/")
    return Lane(transport, device)


def _config(line: str, proof: Proof) -> Config | None:
    if "cfg" not in line:
        return None
    m = _CONFIG.search(line)
    if not m:
        return None
    operations = tuple(Lanes(op[1], tuple(_lane(x) for x in op[2].split())) for op in _ONE.finditer(m["ops"]))
    scope = Scope(m["scope"]) if m["scope"] else Scope.UNSAID
    if scope is Scope.UNSAID:
        used = {lane.transport for o in operations for lane in o.lanes}
        if used & set(LOCAL):
            scope = Scope.INTRA_NODE  # such lanes exist only inside a node
        elif not used <= {*RDMA, *COPIES, "tcp"}:
            return None  # a lane that is not known may be a damaged local one
    return Config(scope, int(m["n"] or m["old"]), operations, proof)


def _table_scope(line: str, scope: Scope | None) -> Scope | None:
    """The scope of the table that a line belongs to; None outside of tables."""
    m = _TABLE.search(line)
    if m:
        return Scope(m["scope"])
    return scope if "|" in line or "+--" in line else None


def _row(line: str, scope: Scope, proof: Proof) -> ProtocolRow | None:
    m = _ROW.search(line)
    if not m:
        return None
    lanes = tuple((_lane(x[2]), int(x[1] or 0)) for x in _SHARE.finditer(m["lanes"]))
    high = None if m["high"] == "inf" else int(m["high"] or m["low"])
    return ProtocolRow(scope, int(m["low"]), high, " ".join(m["what"].split()), lanes, proof) if lanes else None


def _error(line: str) -> str:
    if _NO_DEVICE.search(line):
        return "device"
    if "UCX" not in line and "UCP" not in line and "NIXL" not in line:
        return ""
    if "Destination is unreachable" in line:
        return "reach"
    if "UCP version is incompatible" in line:
        return "version"
    return "tcp" if "tcp_ep" in line and "send" in line and "failed" in line else ""


def data_lanes(config: Config) -> tuple[Lane, ...]:
    """The lanes that carry data: those of RMA where there are any (NIXL's reads and writes), else of messages. Emulated RMA runs over
    the lanes of messages."""
    by_name = {o.operation: o.lanes for o in config.operations}
    if "rma" in by_name:
        return by_name["rma"]
    return tuple(dict.fromkeys(lane for name in DATA for lane in by_name.get(name, ())))


def _kinds(lanes: Iterable[Lane]) -> Iterator[Carried]:
    for lane in lanes:
        if lane.transport in RDMA:
            yield Carried.RDMA
        elif lane.transport == "tcp":
            yield Carried.TCP


def carried(log: UcxLog) -> Carried:
    """What carries data between nodes. Endpoints that carry none (keepalive alone) do not count."""
    apart = [c for c in log.configs if c.scope in (Scope.INTER_NODE, Scope.UNSAID)]
    kinds = set[Carried]()
    for c in apart:
        mine = set(_kinds(data_lanes(c)))
        # Beside RDMA lanes, a tcp lane of the same endpoint is a spare one.
        kinds |= {Carried.RDMA} if Carried.RDMA in mine else mine
    for r in log.rows:
        if r.scope is Scope.INTER_NODE and r.high is None:
            kinds |= set(_kinds(lane for lane, _ in r.lanes))
    if len(kinds) > 1:
        return Carried.MIXED
    if kinds:
        return kinds.pop()
    if log.no_device:
        return Carried.NO_DEVICE
    return Carried.LOCAL if log.configs and not apart else Carried.UNKNOWN


def rdma_devices(log: UcxLog) -> tuple[str, ...]:
    """RDMA devices of data lanes between nodes, without their port number."""
    lanes = [lane for c in log.configs if c.scope in (Scope.INTER_NODE, Scope.UNSAID) for lane in data_lanes(c)]
    lanes += [lane for r in log.rows if r.scope is Scope.INTER_NODE for lane, _ in r.lanes]
    return tuple(dict.fromkeys(lane.device.partition(":")[0] for lane in lanes if lane.transport in RDMA))
