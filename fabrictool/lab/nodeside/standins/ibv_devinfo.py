"""ibv_devinfo of rdma-core: [-l] [-v] [-d DEV] [-i PORT]. active_mtu follows the interface's running MTU."""

from __future__ import annotations

from ipaddress import IPv6Address

from fabrictool.lab.nodeside.standins.behaviour import err, serve
from fabrictool.lab.nodeside.state import Function
from fabrictool.lab.nodeside.sysfs import active, gids
from fabrictool.lab.nodeside.tool import Answer, Call, Link
from fabrictool.lab.nodeside.wire import MTUS, active_mtu

USAGE = "Usage: ibv_devinfo             print the ca attributes"
SPEEDS = {400: ("4X (2)", "100.0 Gbps (128)"), 200: ("4X (2)", "50.0 Gbps (64)"), 100: ("4X (2)", "25.0 Gbps (32)")}


def run(call: Call) -> Answer:
    return serve(call, main)


def main(call: Call) -> int:
    words, wanted, port, verbose, listing = list(call.argv), "", "1", False, False
    while words:
        word = words.pop(0)
        if word in ("-v", "--verbose"):
            verbose = True
        elif word in ("-l", "--list"):
            listing = True
        elif word in ("-d", "--ib-dev", "-i", "--ib-port") and words:
            wanted, port = (words.pop(0), port) if "d" in word else (wanted, words.pop(0))
        else:
            print(USAGE)
            return 255
    functions = [fn for fn in call.node.functions.values() if fn.rdma]
    if not functions:
        err("No IB devices found")
        return 255
    if listing:
        print(f"{len(functions)} HCA{'s' if len(functions) > 1 else ''} found:\n" + "".join(f"\t{fn.rdma}\n" for fn in functions))
        return 0
    chosen = [fn for fn in functions if wanted in ("", fn.rdma)]
    if not chosen:
        err(f"IB device '{wanted}' wasn't found")
        return 255
    if port not in ("0", "1"):
        err("Invalid port requested for device" if port.isdigit() else USAGE)
        return 255
    links = call.links()
    for fn in chosen:
        print(device(fn, links.get(fn.interface), verbose))
    return 0


def device(fn: Function, link: Link | None, verbose: bool) -> str:
    up = active(link)
    mtu = active_mtu(link.mtu if link else 1500)
    width, speed = SPEEDS.get(fn.rate_gbit, ("1X (1)", "25.0 Gbps (32)")) if up else ("4X (2)", "10.0 Gbps (4)")
    lines = [
        f"hca_id:\t{fn.rdma}", "\ttransport:\t\t\tInfiniBand (0)", "\tfw_ver:\t\t\t\t28.45.4028",
        f"\tnode_guid:\t\t\t{fn.node_guid}",
        f"\tsys_image_guid:\t\t\t{fn.sys_image_guid}", "\tvendor_id:\t\t\t0x02c9", "\tvendor_part_id:\t\t\t4129",
        "\thw_ver:\t\t\t\t0x0",
        "\tboard_id:\t\t\tMT_0000000838", "\tphys_port_cnt:\t\t\t1"]
    if verbose:
        lines += ["\tmax_mr_size:\t\t\t0xffffffffffffffff", "\tmax_qp:\t\t\t\t131072", "\tnum_comp_vectors:\t\t20"]
    lines += [
        "\t\tport:\t1", f"\t\t\tstate:\t\t\t{'PORT_ACTIVE (4)' if up else 'PORT_DOWN (1)'}", "\t\t\tmax_mtu:\t\t4096 (5)",
        f"\t\t\tactive_mtu:\t\t{mtu} ({MTUS.index(mtu) + 1})", "\t\t\tsm_lid:\t\t\t0", "\t\t\tport_lid:\t\t0",
        "\t\t\tport_lmc:\t\t0x00", f"\t\t\tlink_layer:\t\t{fn.link_layer}"]
    if verbose:
        lines += ["\t\t\tmax_msg_sz:\t\t0x40000000", "\t\t\tgid_tbl_len:\t\t255", f"\t\t\tactive_width:\t\t{width}",
                  f"\t\t\tactive_speed:\t\t{speed}", f"\t\t\tphys_state:\t\t{'LINK_UP (5)' if up else 'DISABLED (3)'}"]
        lines += [_gid(i, gid, kind) for i, (gid, kind) in enumerate(gids(fn, link)) if kind]
    return "\n".join(lines) + "\n"


def _gid(index: int, gid: str, kind: str) -> str:
    if kind == "RoCE v2":
        address = IPv6Address(gid)
        text = f"::ffff:{address.ipv4_mapped}" if address.ipv4_mapped else str(address)
        return f"\t\t\tGID[{index:3d}]:\t\t{text}, RoCE v2"
    return f"\t\t\tGID[{index:3d}]:\t\t{gid}, RoCE v1"
