"""`env`: variables that are derived, that contradict the fabric, or that NCCL, Gloo and UCX do not read as meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from fabrictool.spec.placeholders import KNOWN, placeholders
from fabrictool.spec.problems import Problem, error, nearest, shown, warning
from fabrictool.spec.rules.view import Rule, View

DERIVED: Mapping[str, str] = {
    "NCCL_IB_HCA": "ports.*.functions", "NCCL_SOCKET_IFNAME": "bootstrap", "GLOO_SOCKET_IFNAME": "bootstrap",
    "TP_SOCKET_IFNAME": "bootstrap", "NCCL_IB_TC": "fabric.traffic_class", "UCX_NET_DEVICES": "ports.*.functions",
}
WHOLE: Mapping[str, tuple[int, int]] = {  # NCCL's own limits (env documentation, net_ib)
    "NCCL_IB_QPS_PER_CONNECTION": (1, 128), "NCCL_IB_SPLIT_DATA_ON_QPS": (0, 1), "NCCL_IB_RETRY_CNT": (0, 7),
    "NCCL_IB_TIMEOUT": (1, 31), "NCCL_CROSS_NIC": (0, 2), "NCCL_IB_DISABLE": (0, 1),
}
LONG_TIMEOUT = 22  # 4.096 us * 2^22 = 17 s for each retry: longer hides a hang
NCCL_LINE = 1023  # characters of a value that NCCL's file parser keeps
UNIT_CHARACTERS = 245  # a file name has 255 bytes (NAME_MAX), and a folder NAME.service.d is made of it
OWN_ADDRESS = ("VLLM_HOST_IP", "SGLANG_HOST_IP", "HOST_IP")
REACHED = (*OWN_ADDRESS, "MASTER_ADDR", "VLLM_NIXL_SIDE_CHANNEL_HOST")
RDMA_TLS = ("rc", "ud", "dc", "ib", "gga", "srd", "all")


def derived(v: View) -> Iterator[Problem]:
    """Variables that the rest of the spec decides, and those that must not be persistent."""
    for name in v.spec.env.set:
        at = v.key("env", "set", name)
        if name in DERIVED:
            yield error(at, f"{name} is derived from {DERIVED[name]}",
                        "a second place for the same thing would contradict the first",
                        "remove it here")
        elif name == "NCCL_IB_GID_INDEX":
            yield error(at, "NCCL_IB_GID_INDEX is never written",
                        "GID indices differ from node to node and change with addresses; "
                        "NCCL 2.21 and later find the RoCE v2 GID themselves", "remove it")
        elif name.startswith("NCCL_DEBUG"):
            yield warning(at, f"{name} in a persistent file", "every job then logs, and log files fill disks",
                          "set it for one run by hand")


def ranges(v: View) -> Iterator[Problem]:
    """Whole numbers with limits."""
    for name, (low, high) in WHOLE.items():
        value = v.spec.env.set.get(name)
        if value is None:
            continue
        at, number = v.at("env", "set", name), _int(value)
        if number is None or not low <= number <= high:
            yield error(at, f"{name} has to be a whole number from {low} to {high}, not {shown(value)}")
        elif name == "NCCL_IB_TIMEOUT" and number > LONG_TIMEOUT:
            yield warning(at, f"NCCL_IB_TIMEOUT {number} waits {4.096e-6 * 2**number:.0f} s for each retry",
                          "a broken link looks like a hang",
                          f"{LONG_TIMEOUT} or less")


def contradictions(v: View) -> Iterator[Problem]:
    """Variables that turn off what the spec is for."""
    env = v.spec.env.set
    if any(True for _ in v.functions()):
        if _int(env.get("NCCL_IB_DISABLE", 0)) == 1:
            yield error(v.at("env", "set", "NCCL_IB_DISABLE"), "NCCL_IB_DISABLE=1 contradicts ports", "NCCL would use TCP",
                        "remove it")
        if str(env.get("NCCL_NET", "")).lower() == "socket":
            yield error(v.at("env", "set", "NCCL_NET"), "NCCL_NET=Socket contradicts ports", "NCCL would use TCP", "remove it")
    if not v.spec.fabric.cross_rail and _int(env.get("NCCL_CROSS_NIC", 0)) == 1:
        yield error(v.at("env", "set", "NCCL_CROSS_NIC"), "NCCL_CROSS_NIC=1 contradicts cross_rail: false",
                    "NCCL would send from one rail to another", "write 0, or remove it")
    family = env.get("NCCL_SOCKET_FAMILY")
    if family is not None and family not in ("AF_INET", "AF_INET6"):
        yield error(v.at("env", "set", "NCCL_SOCKET_FAMILY"), f"NCCL_SOCKET_FAMILY is AF_INET or AF_INET6, not {shown(family)}")


def ucx_tls(v: View) -> Iterator[Problem]:
    """UCX_TLS as an allow list."""
    value = v.spec.env.set.get("UCX_TLS")
    if value is None or str(value).startswith("^"):
        return
    names = [t.strip().lstrip("\\") for t in str(value).split(",")]
    at = v.at("env", "set", "UCX_TLS")
    if v.spec.gpu and not any(t.startswith("cuda") or t in ("all", "gdr_copy") for t in names):
        yield warning(at, "UCX_TLS allows no CUDA transport", "GPU memory cannot be sent then", "add cuda_copy,cuda_ipc")
    if any(True for _ in v.functions()) and not any(t.startswith(RDMA_TLS) for t in names):
        yield warning(at, "UCX_TLS allows no RDMA transport", "UCX and NIXL would use TCP or fail", "add rc")


def addresses(v: View) -> Iterator[Problem]:
    """Addresses that other nodes connect to."""
    for name in REACHED:
        value = v.spec.env.set.get(name)
        if not isinstance(value, str) or placeholders(value):
            continue
        at = v.at("env", "set", name)
        try:
            loop = ip_address(value).is_loopback
        except ValueError:
            loop = value == "localhost" or value.startswith("localhost.")
            if not loop and name in OWN_ADDRESS:
                yield error(at, f"{name} has to be an IP address, not {shown(value)}", "", 'write "{bootstrap.address}"')
                continue
        if loop and len(v.spec.nodes) > 1:
            yield error(at, f"{name} is a loopback address", "other nodes would connect to themselves",
                        'write "{bootstrap.address}"')


def values(v: View) -> Iterator[Problem]:
    """Placeholders, and characters that the files which carry the variables cannot hold."""
    for name, value in v.spec.env.set.items():
        at, text = v.at("env", "set", name), str(value)
        for p in placeholders(text):
            if p not in KNOWN:
                yield error(at, f"placeholder {{{p}}} is not known", "", nearest(p, KNOWN))
            elif p.startswith("bootstrap.") and not v.spec.bootstrap:
                yield error(at, f"placeholder {{{p}}}, but there is no bootstrap interface", "", "add `bootstrap: INTERFACE`")
        if any(not c.isprintable() for c in text):
            yield error(at, f"{name} holds a control character", "env files are read line by line", "remove it")
        elif text != text.strip():
            yield error(at, f"{name} begins or ends with a blank", "NCCL and docker env files keep it as part of the value",
                        "remove it")
        if name.startswith("NCCL_") and "nccl_conf" in v.spec.env.write and len(text) > NCCL_LINE:
            yield error(at, f"{name} is longer than {NCCL_LINE} characters", "NCCL cuts it in nccl.conf")


def needs_bootstrap(v: View) -> Iterator[Problem]:
    """Socket interfaces are derived from the bootstrap interface."""
    if v.spec.env.write and not v.spec.bootstrap:
        yield warning(v.at("env", "write"), "no bootstrap interface, so no *_SOCKET_IFNAME is written",
                      "NCCL and Gloo then choose an interface by themselves", "add `bootstrap: INTERFACE` to the group")


def units(v: View) -> Iterator[Problem]:
    """systemd units that cannot be: their names become folders, NAME.d."""
    for field, words in (("write", v.spec.env.write), ("consumers", v.spec.env.consumers)):
        for i, word in enumerate(words):
            kind, _, unit = word.partition(":")
            if kind != "systemd":
                continue
            if len(unit) > UNIT_CHARACTERS:
                yield error(v.at("env", field, i), f"the unit's name has {len(unit)} characters: at most {UNIT_CHARACTERS}")
            elif not re.match(r"[A-Za-z0-9_\\*?\[]", unit):
                yield error(v.at("env", field, i), f"{shown(unit)} is no systemd unit", "",
                            "write `systemd:NAME` or `systemd:NAME.service`")


def _int(value: str | int) -> int | None:
    try:
        return int(value)
    except ValueError:
        return None


SET = (("env", "set"),)
RULES = (
    Rule(derived, SET), Rule(ranges, SET), Rule(contradictions, (*SET, ("ports", "*", "functions"), ("fabric", "cross_rail"))),
    Rule(ucx_tls, (*SET, ("ports", "*", "functions"), ("gpu",))), Rule(addresses, SET), Rule(values, (*SET, ("bootstrap",))),
    Rule(units, (("env", "write"), ("env", "consumers"))),
    Rule(needs_bootstrap, (("env", "write"), ("bootstrap",))),
)
