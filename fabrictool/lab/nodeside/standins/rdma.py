"""rdma of iproute2 6.1: dev, link, resource, statistic, system; text and JSON. A view on state and live links."""

from __future__ import annotations

import json
from typing import Any

from fabrictool.lab.nodeside import counts
from fabrictool.lab.nodeside.standins.behaviour import Exit, err, serve
from fabrictool.lab.nodeside.state import Function
from fabrictool.lab.nodeside.sysfs import active
from fabrictool.lab.nodeside.tool import Answer, Call

OBJECTS = ("dev", "link", "resource", "monitor", "statistic", "system", "help")
USAGE = """Usage: rdma [ OPTIONS ] OBJECT { COMMAND | help }
       rdma [ -f[orce] ] -b[atch] filename
where  OBJECT := { dev | link | resource | monitor | system | statistic | help }
       OPTIONS := { -V[ersion] | -d[etails] | -j[son] | -p[retty] -r[aw]}"""
RESOURCES = ("qp", "cm_id", "mr", "cq", "pd", "ctx", "srq")
FIRST_USER_QPN = 201  # what user queue pairs are numbered from here; real numbers vary


def run(call: Call) -> Answer:
    return serve(call, main)


def main(call: Call) -> int:
    words = list(call.argv)
    flags = set()
    while words and words[0].startswith("-"):
        flags.add(words.pop(0).lstrip("-")[:1])
    if "V" in flags:
        print("rdma utility, iproute2-6.1.0")
        return 0
    if call.mode == "no-core":
        err("Failed to open NETLINK_RDMA socket")
        return 1
    if not words or "h" in flags:
        print(USAGE)
        return 0
    name = next((o for o in OBJECTS if o.startswith(words[0])), None)
    if name is None:
        err(f'Unknown argument "{words[0]}".')
        return 1
    if name in ("help", "monitor"):
        print(USAGE)
        return 0
    rows, text = _rows(call, name, words[1:])
    if "j" in flags:
        print(json.dumps(rows, indent=4) if "p" in flags else json.dumps(rows, separators=(",", ":")))
    else:
        for line in text:
            print(line)
    return 0


def _functions(call: Call) -> list[Function]:
    return [fn for fn in call.node.functions.values() if fn.rdma]


def _wanted(call: Call, words: list[str]) -> list[Function]:
    """`[show] [link|dev] [DEV[/PORT]]`"""
    rest = [w for w in words if w not in ("show", "list", "dev", "link")]
    if not rest:
        return _functions(call)
    device, _, port = rest[0].partition("/")
    found = [fn for fn in _functions(call) if fn.rdma == device]
    if not found or port not in ("", "1", "-"):
        err("Wrong device name" if not found else "Wrong device/port name")
        raise Exit(1)
    return found


def _flat(row: dict[str, Any], skip: tuple[str, ...] = ()) -> str:
    return "".join(f"{k} {v} " for k, v in row.items() if k not in skip)


def _rows(call: Call, name: str, words: list[str]) -> tuple[Any, list[str]]:
    """The object as JSON and as lines."""
    position = {fn.rdma: i for i, fn in enumerate(_functions(call))}
    if name == "system":
        return {"netns": "shared", "copy-on-fork": True}, ["netns shared copy-on-fork on "]
    if name == "resource":
        return _resources(call, words, position)
    if name == "dev":
        devices = [{"ifindex": position[fn.rdma], "ifname": fn.rdma, "node_type": "ca", "fw": "28.45.4028",
                    "node_guid": fn.node_guid, "sys_image_guid": fn.sys_image_guid} for fn in _wanted(call, words)]
        return devices, [f"{d['ifindex']}: {d['ifname']}: " + _flat(d, ("ifindex", "ifname")) for d in devices]
    links = call.links()
    if name == "statistic":
        stats: list[dict[str, Any]] = [{"ifname": fn.rdma, "port": 1, **counts.hardware_counters(fn)}
                                       for fn in _wanted(call, words)]
        return stats, [f"link {r['ifname']}/1 " + _flat(r, ("ifname", "port")) for r in stats]
    rows: list[dict[str, Any]] = []
    for fn in _wanted(call, words):
        up = active(links.get(fn.interface))
        row = {"ifindex": position[fn.rdma], "ifname": fn.rdma, "port": 1, "state": "ACTIVE" if up else "DOWN",
               "physical_state": "LINK_UP" if up else "DISABLED"}
        if fn.interface in links:
            row.update({"netdev": fn.interface, "netdev_index": 2 + list(links).index(fn.interface)})
        rows.append(row)
    return rows, [f"link {r['ifname']}/1 " + _flat(r, ("ifindex", "ifname", "port", "netdev_index")) for r in rows]


def _resources(call: Call, words: list[str], position: dict[str, int]) -> tuple[Any, list[str]]:
    kinds = [w for w in words if w in RESOURCES]
    chosen = _wanted(call, [w for w in words if w not in RESOURCES])
    if kinds and kinds[0] != "qp":
        return [], []
    rows: list[dict[str, Any]] = []
    for fn in chosen:
        users = call.node.qps.get(fn.rdma, 0)
        if not kinds:
            rows.append({"ifindex": position[fn.rdma], "ifname": fn.rdma, "pd": 1 + bool(users), "cq": 3 + users, "qp": 1 + users,
                         "cm_id": 0, "mr": users, "ctx": int(users > 0), "srq": 2})
            continue
        head = {"ifindex": position[fn.rdma], "ifname": fn.rdma, "port": 1}
        rows.append({**head, "lqpn": 1, "type": "GSI", "state": "RTS", "sq-psn": 0, "comm": "ib_core"})
        rows += [{**head, "lqpn": FIRST_USER_QPN + i, "rqpn": FIRST_USER_QPN + i, "type": "RC", "state": "RTS",
                  "rq-psn": 0, "sq-psn": 0, "path-mig-state": "MIGRATED", "pdn": 2, "pid": 4242, "comm": "python3"} for i in range(users)]
    if not kinds:
        return rows, [f"{r['ifindex']}: {r['ifname']}: " + _flat(r, ("ifindex", "ifname")) for r in rows]
    return rows, [f"link {r['ifname']}/1 " + _flat({**r, "comm": f"[{r['comm']}]" if r["type"] == "GSI" else r["comm"]},
                                                   ("ifindex", "ifname", "port")) for r in rows]
