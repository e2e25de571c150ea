"""ib_write_bw and its like: two hosts, one RDMA device each, no NCCL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fabrictool.diagnose.model import Case, Judged, quoted
from fabrictool.model import Code, Finding, Reason, Unreadable
from fabrictool.room import About
from fabrictool.snapshot.sniff import Kind, device

KINDS = frozenset({Kind.PERFTEST})
JUMBO = 4096  # the largest RDMA MTU, bytes
# A NIC that came up degraded gives 8 to 25 Gb/s on a link of 200 (public reports on DGX Spark); a power cycle mends it.
DEGRADED_GBIT, HEALTHY_LINK_GBIT = 25.0, 100


@dataclass(frozen=True, slots=True)
class _Error:
    pattern: re.Pattern[str]
    code: Code
    why: str
    fix: str


def _error(pattern: str, code: Code, why: str, fix: str) -> _Error:
    return _Error(re.compile(pattern), code, why, fix)


ERRORS: tuple[_Error, ...] = (
    _error(r"IB device \S+ not found|Unable to find the Infiniband/RoCE device", Code.RDMA_ABSENT,
           "the device that -d names is not on this host", "rdma link lists the devices; in a container --device /dev/infiniband"),
    _error(r"Couldn't connect to |Unable to open file descriptor for socket", Code.BOOTSTRAP_BLOCKED,
           "no TCP connection to the server side: it does not run, listens elsewhere, or a firewall is between",
           "start the same command without a host name on the other node first; look at port 18515 there"),
    _error(r"Found Incompatibility issue with GID types", Code.NO_ROCEV2_GID,
           "the entries of both ends' GID tables (-x) are of different types, or empty", "show_gids on both: take the index of RoCE v2 "
           "with the IPv4 address, which may differ from host to host"),
    _error(r"Couldn't allocate MR|[Ff]ailed to create [mM][rR]|ibv_reg_mr", Code.RDMA_MEMORY,
           "memory could not be registered: the limit on locked memory (ulimit -l) is too small",
           "ulimit -l unlimited; LimitMEMLOCK=infinity in units, --ulimit memlock=-1 for containers"),
    _error(r"Failed to modify QP \S* to RT[RS]|Failed to modify QP", Code.RDMA_CONNECT,
           "the queue pair could not be brought up: wrong GID index, or no way to the peer", "show_gids; ping between both addresses"),
    _error(r"Completion with error|Failed status (?:12|0xc)\b|wr_id.*syndrom 0x81", Code.RDMA_RETRY_EXCEEDED,
           "packets got no answer: the RoCE path is broken (MTU, VLAN, ACL, peer gone)",
           "ping -M do -s 8972 between both addresses; compare MTU on hosts and switch"),
)


def judge(case: Case) -> Iterator[Judged]:
    piece = case.piece
    findings = [*_errors(case), *_mtu(case), *_results(case)]
    if not findings:
        cut = Unreadable(Reason.CUT, "there is neither a result row nor an error that is known here")
        findings = [quoted(About(Code.NO_RESULT, case.subject, "rdma.perftest", "").unknown(
            cut, "a result row", "paste the whole output of both sides"), piece, piece.lines[-1:])]
    name = next((m[1] for _, m in piece.find(r"Device\s*: \"?([\w.-]+)")), "") or device(piece.command)
    yield Judged(piece.kind, (piece,), tuple(findings), name,
                 ("what NCCL reaches: this is one queue pair of one device, with host memory",))


def _errors(case: Case) -> Iterator[Finding]:
    piece = case.piece
    for one in ERRORS:
        hits = [ln for ln, _ in piece.find(one.pattern)]
        if hits:
            about = About(one.code, case.subject, f"rdma.perftest.{one.code.lower()}", "")
            yield quoted(about.fail(hits[0].text.strip()[:160], "a result", one.why, remedy=one.fix), piece, hits)


def _mtu(case: Case) -> Iterator[Finding]:
    for line, m in case.piece.find(r"^\s*Mtu\s*: (\d{3,4})(?:\[B\]|,)"):
        about = About(Code.RDMA_ACTIVE_MTU, case.subject, "rdma.perftest.mtu", "")
        if int(m[1]) < JUMBO:
            small = about.warn(
                m[1], str(JUMBO),
                "the interface's MTU is small (1500 gives 1024): large packets of a peer with another MTU are lost without an error",
                remedy="MTU 9000 on both interfaces, where the switch carries it")
            yield quoted(small, case.piece, [line])
        return


def _results(case: Case) -> Iterator[Finding]:
    """Bandwidth or latency of the last row. Without the link's rate it is a fact, and no verdict."""
    piece = case.piece
    heads = [(ln, m) for ln, m in piece.find(r"#bytes\s+#iterations\s+(?:BW peak\[(\w+/sec)\]|t_min\[(\w+)\])")]
    rows = [(ln, m) for ln, m in piece.find(r"^\s*(\d{1,12})\s+(\d{1,12})\s+(\d[\d.]*)\s+(\d[\d.]*)(?:\s+(\d[\d.]*))?")]
    about = About(Code.NIC_DEGRADED, case.subject, "rdma.perftest.result", "")
    if not heads or not rows:
        for _, m in piece.find(r"^\s*\"?BW_average\"?: (\d[\d.]*)"):  # --out_json, which names no unit
            yield about.ok(f"BW_average {m[1]}")
        return
    _, head = heads[-1]
    line, row = rows[-1]
    if head[2]:
        yield about.ok(f"{row[1]} bytes: {row[5] or row[4]} {head[2]} typical latency")
        return
    average = float(row[4]) * (1.0 if head[1].lower().startswith("gb") else 8 * 2**20 / 1e9)  # its MB/sec are 2^20 bytes (perftest)
    rate = max((p.rate_gbit or 0 for p in case.want.ports.values()), default=0) if case.want else 0
    text = f"{row[1]} bytes: {average:.4g} Gb/s on average"
    if rate >= HEALTHY_LINK_GBIT and average <= DEGRADED_GBIT:
        slow = about.fail(text, f"near {rate} Gb/s", "a NIC that came up degraded gives 8 to 25 Gb/s while link and PCIe look fine",
                          remedy="switch the node off at the plug and on again (a reboot does not mend it); then test again")
        yield quoted(slow, piece, [line])
    else:
        yield about.ok(text)
