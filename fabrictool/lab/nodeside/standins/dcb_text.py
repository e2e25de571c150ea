"""What dcb prints: values by object, their text form, its usage texts (shortened)."""

from __future__ import annotations

from typing import Any

from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.state import Function

# /etc/iproute2/rt_dsfield as Debian ships it, by DSCP; "" = no name
_NAMED = {8: "CS1", 10: "AF11", 12: "AF12", 14: "AF13", 16: "CS2", 18: "AF21", 20: "AF22", 22: "AF23", 24: "CS3", 26: "AF31",
          28: "AF32", 30: "AF33", 32: "CS4", 34: "AF41", 36: "AF42", 38: "AF43", 40: "CS5", 46: "EF", 48: "CS6", 56: "CS7"}
DSCP_NAMES = tuple(_NAMED.get(d, "") for d in range(64))

USAGE = {
    "dcb": """Usage: dcb [ OPTIONS ] OBJECT { COMMAND | help }
       dcb [ -f | --force ] { -b | --batch } filename [ -n | --netns ] netnsname
where  OBJECT := { app | buffer | dcbx | ets | maxrate | pfc }
       OPTIONS := [ -V | --Version | -i | --iec | -j | --json
                  | -N | --Numeric | -p | --pretty
                  | -s | --statistics | -v | --verbose]""",
    "pfc": "Usage: dcb pfc { show | set } dev STRING\n           [ prio-pfc PFC-MAP ] [ delay INTEGER ]\n",
    "app": "Usage: dcb app { show | flush | add | del | replace } dev STRING\n           [ dscp-prio INTEGER:PRIO ]\n",
    "ets": "Usage: dcb ets { show | set } dev STRING\n           [ tc-tsa TSA-MAP ] [ tc-bw BW-MAP ] [ prio-tc PRIO-MAP ]\n",
    "buffer": "Usage: dcb buffer { show | set } dev STRING\n           [ prio-buffer PRIO-MAP ] [ buffer-size SIZE-MAP ]\n",
    "maxrate": "Usage: dcb maxrate { show | set } dev STRING\n           [ tc-maxrate RATE-MAP ]\n",
    "dcbx": "Usage: dcb dcbx { show | set } dev STRING\n           [ host | lld-managed ] [ cee | ieee ] [ static ]\n",
}


def show_values(fn: Function, name: str, statistics: bool) -> dict[str, Any]:
    """The object's values in the order of dcb's JSON."""
    if name == "pfc":
        pfc: dict[str, Any] = {"pfc_cap": 8, "macsec_bypass": False, "delay": fn.cable_len, "prio_pfc": [bool(p) for p in fn.pfc]}
        return {**pfc, "requests": [0] * 8, "indications": [0] * 8} if statistics else pfc
    if name == "app":
        out: dict[str, Any] = {}
        if driver.entries(fn):
            out["dscp_prio"] = sorted(driver.entries(fn))
        if fn.default_prio:
            out["default_prio"] = sorted(fn.default_prio)
        return out
    if name == "ets":
        cap = 8 if driver.mlx5(fn) else 0
        return {"willing": False, "ets_cap": cap, "cbs": False, "tc_bw": driver.shown_bw(fn), "pg_bw": [0] * 8,
                "tc_tsa": list(fn.tsa), "prio_tc": list(fn.prio_tc), "reco_tc_bw": [0] * 8,
                "reco_tc_tsa": ["strict"] * 8, "reco_prio_tc": [0] * 8}
    if name == "buffer":
        return {"prio_buffer": list(fn.prio_buffer), "buffer_size": list(fn.buffer_size), "total_size": fn.buffer_total}
    if name == "maxrate":
        return {"tc_maxrate": [r * 1000 // 8 for r in fn.maxrate]}
    return dict.fromkeys((["host"] if fn.dcbx_host else []) + fn.dcbx_caps, True)


def show_lines(name: str, values: dict[str, Any], numeric: bool) -> list[str]:
    """The text form; every item is followed by a blank."""
    if name == "dcbx":
        return ["".join(f"{k} " for k in values)]
    lines: list[str] = []
    head = ""
    for key, value in values.items():
        word = key.replace("_", "-")
        if key == "total_size":
            lines.append(f"{word} {value}b ")
        elif isinstance(value, bool):
            head += f"{word} {'on' if value else 'off'} "
        elif isinstance(value, int):
            head += f"{word} {value} "
        elif key == "dscp_prio":
            lines.append(f"{word} " + "".join(f"{d if numeric or not DSCP_NAMES[d] else DSCP_NAMES[d]}:{p} " for d, p in value))
        elif key == "default_prio":
            lines.append(f"{word} " + "".join(f"{p} " for p in value))
        else:
            unit = {"buffer_size": "b", "tc_maxrate": "bit"}.get(key, "")
            scale = 8 if key == "tc_maxrate" else 1
            shown = [("on" if v else "off") if isinstance(v, bool) else v * scale if isinstance(v, int) else v for v in value]
            lines.append(f"{word} " + "".join(f"{i}:{v}{unit} " for i, v in enumerate(shown)))
    return ([head] if head else []) + lines
