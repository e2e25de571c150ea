"""dcb: what changes state. A set begins with a get, writes, and does not look again."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.standins.behaviour import Exit, err, find
from fabrictool.lab.nodeside.standins.dcb_text import DSCP_NAMES, USAGE
from fabrictool.lab.nodeside.state import Function, Node
from fabrictool.lab.nodeside.tool import Call

FIELDS = {"pfc": ("prio-pfc", "delay", "macsec-bypass"), "buffer": ("prio-buffer", "buffer-size"), "maxrate": ("tc-maxrate",),
          "ets": ("willing", "tc-tsa", "reco-tc-tsa", "pg-bw", "tc-bw", "reco-tc-bw", "prio-tc", "reco-prio-tc"),
          "app": ("default-prio", "ethtype-prio", "stream-port-prio", "dgram-port-prio", "port-prio", "dscp-prio")}


class ReadRefused(Exception):
    """A set begins with a get, and that failed."""


def _get(call: Call, interface: str) -> Function:
    try:
        return find(call, interface)
    except driver.Refused as e:
        raise ReadRefused(e.text) from None


def set_values(call: Call, name: str, command: str, interface: str, words: list[str]) -> None:
    if name == "app":
        _app(call, command, interface, words)
        return
    if not words:
        err(USAGE[name])
        raise Exit(0)
    fn = _get(call, interface)
    if name == "dcbx":
        bad = next((w for w in words if w not in ("host", "lld-managed", "cee", "ieee", "static")), None)
        if bad is not None:
            err(f'What is "{bad}"?')
            raise Exit(1)
        if "lld-managed" in words:
            raise driver.refused(errno.EINVAL)
        _write(call, interface, lambda f: driver.set_dcbx(call.node, f, "host" in words))
        return
    fields = _fields(name, words)
    if name == "pfc":
        mask, delay = list(fn.pfc), fn.cable_len
        for key, items in fields:
            if key == "prio-pfc":
                mask = _mapped(mask, items, _on_off)
            elif key == "delay":
                delay = _integer(items[0])
        _write(call, interface, lambda f: driver.set_pfc(call.node, f, mask, delay))
    elif name == "ets":
        tsa, bw, prio_tc = list(fn.tsa), list(fn.tc_bw), list(fn.prio_tc)
        for key, items in fields:
            if key == "tc-tsa":
                tsa = _mapped(tsa, items, _tsa)
            elif key == "tc-bw":
                bw = _mapped(bw, items, _integer)
            elif key == "prio-tc":
                prio_tc = _mapped(prio_tc, items, _priority)
        _write(call, interface, lambda f: driver.set_ets(call.node, f, prio_tc, tsa, bw))
    elif name == "buffer":
        prio, size = list(fn.prio_buffer), list(fn.buffer_size) or [0] * 8
        for key, items in fields:
            if key == "prio-buffer":
                prio = _mapped(prio, items, _priority)
            elif key == "buffer-size":
                size = _mapped(size, items, _integer)
        _write(call, interface, lambda f: driver.set_buffers(call.node, f, prio, size))
    else:
        rate = list(fn.maxrate)
        for _, items in fields:
            rate = _mapped(rate, items, _integer)
        _write(call, interface, lambda f: driver.set_maxrate(call.node, f, rate))


def _write(call: Call, interface: str, *steps: Callable[[Function], None]) -> None:
    driver.need_root(call.root)
    fn = find(call, interface)
    how = call.mode
    if how == "lies":
        return
    if how in ("refuses", "set-traceback"):
        raise driver.refused(errno.EINVAL)
    do = steps[:len(steps) // 2] if how == "half" else steps
    for step in do:
        step(fn)
    if how in ("half", "applied-error", "applied-traceback"):
        raise driver.refused(errno.EINVAL)


def _fields(name: str, words: list[str]) -> list[tuple[str, list[str]]]:
    """`KEY ITEM...` groups."""
    groups: list[tuple[str, list[str]]] = []
    for word in words:
        if word in FIELDS[name]:
            groups.append((word, []))
        elif not groups:
            err(f'What is "{word}"?')
            raise Exit(1)
        else:
            groups[-1][1].append(word)
    if any(not items for _, items in groups):
        err('Command line is not complete. Try option "help"')
        raise Exit(255)
    return groups


def _mapped(old: list[Any], items: list[str], one: Callable[[str], Any]) -> list[Any]:
    """`all:V` or `I:V` items over eight slots."""
    out = list(old)
    for item in items:
        key, colon, text = item.partition(":")
        if not colon or (key != "all" and key not in tuple("01234567")):
            err(f'What is "{item}"?' if not colon else f"Invalid mapping {key}")
            raise Exit(1)
        for i in range(8) if key == "all" else (int(key),):
            out[i] = one(text)
    return out


def _choice(text: str, values: dict[str, Any]) -> Any:
    if text not in values:
        err(f'Error: argument "{text}" is wrong: expected one of {", ".join(values)}')
        raise Exit(1)
    return values[text]


def _on_off(text: str) -> int:
    return int(_choice(text, {"on": 1, "off": 0}))


def _tsa(text: str) -> str:
    return str(_choice(text, {t: t for t in driver.TSA}))


def _integer(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 12:
        err(f'Error: argument "{text}" is wrong: not a number')
        raise Exit(1)
    return int(text)


def _priority(text: str) -> int:
    return int(_choice(text, {str(i): i for i in range(8)}))


def _app(call: Call, command: str, interface: str, words: list[str]) -> None:
    if command == "flush":
        fields = [w for w in words if w in FIELDS["app"]]
        if len(fields) != len(words):
            err(f'What is "{next(w for w in words if w not in fields)}"?')
            raise Exit(1)
        table = driver.entries(_get(call, interface)) if not fields or "dscp-prio" in fields else []
        if table:
            _write(call, interface, *[_entry(call.node, driver.del_app, d, p) for d, p in table])
        return
    if not words:
        err(USAGE["app"])
        raise Exit(0)
    pairs: list[tuple[int, int]] = []
    for key, items in _fields("app", words):
        if key != "dscp-prio":
            _get(call, interface)
            raise driver.refused(errno.EINVAL)
        pairs += [_dscp_pair(i) for i in items]
    if command == "add":
        _write(call, interface, *[_entry(call.node, driver.set_app, d, p) for d, p in pairs])
    elif command == "del":
        _write(call, interface, *[_entry(call.node, driver.del_app, d, p) for d, p in pairs])
    else:
        _replace(call, interface, pairs)


def _replace(call: Call, interface: str, pairs: list[tuple[int, int]]) -> None:
    """Add what is missing, then delete the DSCP's other entries. Returns 0 even where a write failed."""
    table = driver.entries(_get(call, interface))
    steps = [_entry(call.node, driver.set_app, d, p) for d, p in pairs if [d, p] not in table]

    def tidy(fn: Function) -> None:
        for d, p in pairs:
            for old in [e for e in driver.entries(fn) if e[0] == d and e[1] != p]:
                driver.del_app(call.node, fn, old[0], old[1])
    try:
        _write(call, interface, *steps, tidy)
    except driver.Refused as e:
        err(f"Attribute write: {e.text}")


def _dscp_pair(item: str) -> tuple[int, int]:
    left, _, right = item.partition(":")
    number = left.isascii() and left.isdigit() and len(left) < 4
    dscp = DSCP_NAMES.index(left) if left and left in DSCP_NAMES else int(left) if number else -1
    if not 0 <= dscp <= 63:
        err(("In DSCP:PRIO mapping, DSCP is expected to be 0..63\n" if number else "") + f"Invalid mapping {left}")
        raise Exit(1)
    if right not in tuple("01234567"):
        err(f"In DSCP:PRIO mapping, PRIO is expected to be 0..7\nInvalid mapping {left}")
        raise Exit(1)
    return dscp, int(right)


def _entry(node: Node, change: Callable[[Node, Function, int, int], None], dscp: int, prio: int) -> Callable[[Function], None]:
    return lambda fn: change(node, fn, dscp, prio)
