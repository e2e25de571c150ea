"""Faults of QoS and of the tools that read and write it."""

from __future__ import annotations

from fabrictool.lab.fault_kit import (
    Apply,
    Fault,
    LabLike,
    Scope,
    at_apply,
    blind,
    first,
    fixed,
    on_functions,
    rewrite,
    sh,
    stuck,
    tool_mode,
    unseen,
)
from fabrictool.lab.nodeside import driver
from fabrictool.lab.nodeside.state import Function, Node

MASK_4 = [0, 0, 0, 0, 1, 0, 0, 0]
MASK_3_4 = [0, 0, 0, 1, 1, 0, 0, 0]


def wipe(state: Node, fn: Function) -> None:
    for f in driver.sharers(state, fn):
        driver.power_on(f)


def trust_pcp(state: Node, fn: Function) -> None:
    for dscp, prio in driver.entries(fn):
        driver.del_app(state, fn, dscp, prio)


def custom_map(state: Node, fn: Function) -> None:
    """DSCP 26 on another priority; trust stays what it is."""
    driver.set_app(state, fn, 26, 0)


def _pfc(mask: list[int]) -> Apply:
    return on_functions(lambda state, fn: driver.set_pfc(state, fn, mask, fn.cable_len))


def no_buffer(state: Node, fn: Function) -> None:
    """Buffers set by hand: the lossless priority in one of 0 bytes."""
    driver.set_buffers(state, fn, [0, 0, 0, 2, 0, 0, 0, 0], [fn.buffer_total] + [0] * 7)


def no_dcb(state: Node, fn: Function) -> None:
    """A function handed through by a hypervisor: the driver has no DCB on it."""
    for f in driver.sharers(state, fn):
        f.dcb = False


def lldpad(lab: LabLike, node: str, function: str) -> None:
    """The daemon runs, as a process of that name."""
    sh(lab, node, 'cp "$(command -v sleep)" /usr/sbin/lldpad; /usr/sbin/lldpad 1000000 </dev/null >/dev/null 2>&1 &')
    with lab.edit_state(node) as state:
        state.lldpad = True


UNIT = """[Unit]
Description=RoCE tuning
After=network.target

[Service]
Type=oneshot
ExecStart=/usr/bin/mlnx_qos -i {interface} --trust pcp

[Install]
WantedBy=multi-user.target
"""
WANTS = "/etc/systemd/system/multi-user.target.wants"


def other_owner(lab: LabLike, node: str, function: str) -> None:
    """Somebody's unit that sets something else at every boot."""
    lab.write_file(node, "/etc/systemd/system/roce-tune.service", UNIT.format(interface=first(lab, node, function).interface))
    sh(lab, node, f"mkdir -p {WANTS}; ln -sf ../roce-tune.service {WANTS}/roce-tune.service")


def unit_removed(lab: LabLike, node: str, function: str) -> None:
    """What sets QoS at boot is deleted, links and rules included."""
    sh(lab, node, "rm -f /etc/systemd/system/fabrictool-qos-*.service /etc/systemd/system/*.wants/fabrictool-qos-*.service "
                  "/etc/udev/rules.d/*-fabrictool-qos-*.rules")


def unit_disabled(lab: LabLike, node: str, function: str) -> None:
    sh(lab, node, "rm -f /etc/systemd/system/*.wants/fabrictool-qos-*.service")


def unit_edited(lab: LabLike, node: str, function: str) -> None:
    interface = first(lab, node, function).interface
    rewrite(lab, node, f"/etc/systemd/system/fabrictool-qos-{interface}.service", lambda t: t.replace("[Service]", "[Service]\nNice=5", 1),
            "apply the spec first")


def queue_pairs(state: Node, fn: Function) -> None:
    state.qps[fn.rdma] = 8


def _era(lab: LabLike, node: str) -> None:
    with lab.edit_state(node) as state:
        state.era = "2017"


def _twins(lab: LabLike, node: str) -> None:
    with lab.edit_state(node) as state:
        state.twins_share = False


QOS: tuple[Fault, ...] = (
    Fault("qos-wiped", "all QoS registers are back at their defaults, as after a reboot", on_functions(wipe),
          fixed("QOS_TRUST", "QOS_DSCP_MAP", "QOS_PFC_MASK", "QOS_GLOBAL_PAUSE"), Scope.FUNCTIONS),
    Fault("trust-pcp", "the port trusts the VLAN priority; every DSCP entry is gone", on_functions(trust_pcp),
          fixed("QOS_TRUST", "QOS_DSCP_MAP"), Scope.FUNCTIONS),
    Fault("dscp-map-custom", "DSCP 26 is mapped to priority 0 while trust still says dscp", on_functions(custom_map),
          fixed("QOS_DSCP_MAP"), Scope.FUNCTIONS),
    Fault("pfc-wrong-prio", "PFC protects priority 4 instead of 3",
          _pfc(MASK_4), fixed("QOS_PFC_WRONG_PRIORITY"), Scope.FUNCTIONS),
    Fault("pfc-extra-prio", "PFC is on for priority 4 beside 3",
          _pfc(MASK_3_4), fixed("QOS_PFC_MASK"), Scope.FUNCTIONS),
    Fault("global-pause", "802.3x pause is on", on_functions(lambda s, fn: driver.set_pause(s, fn, True, True)),
          fixed("QOS_GLOBAL_PAUSE"), Scope.FUNCTIONS),
    Fault("shared-tc", "all priorities are in traffic class 0: somebody took -p for PFC",
          on_functions(lambda s, fn: driver.set_ets(s, fn, [0] * 8, fn.tsa, fn.tc_bw)), fixed("QOS_SHARED_TC"), Scope.FUNCTIONS),
    Fault("no-buffer", "the lossless priority was put by hand into a receive buffer of 0 bytes", on_functions(no_buffer),
          stuck("QOS_BUFFER"), Scope.FUNCTIONS),
    Fault("fw-dcbx", "the NIC's firmware runs DCBX", on_functions(lambda s, fn: driver.set_dcbx(s, fn, False)),
          fixed("QOS_FW_DCBX"), Scope.FUNCTIONS),
    Fault("vf-function", "the function has no DCB: it is handed through by a hypervisor", on_functions(no_dcb),
          stuck("QOS_UNSUPPORTED"), Scope.FUNCTIONS),
    Fault("qps-up", "RDMA queue pairs are up: the fabric is in use", on_functions(queue_pairs), unseen(), Scope.FUNCTIONS,
          {"plan": stuck("FABRIC_IN_USE")["plan"], "apply": stuck("FABRIC_IN_USE")["apply"]}),
    Fault("twins-apart", "the functions of a cage do not share their QoS registers", lambda lab, node, function: _twins(lab, node),
          unseen()),
    Fault("lldpad", "lldpad runs", lldpad, stuck("QOS_LLDPAD")),
    Fault("other-owner", "somebody's unit sets trust pcp at every boot", other_owner, stuck("QOS_OTHER_OWNER"), Scope.FUNCTION),
    Fault("unit-removed", "the files that set QoS at boot were deleted", unit_removed, fixed("QOS_NOT_PERSISTED")),
    Fault("unit-disabled", "the units that set QoS at boot are disabled", unit_disabled, fixed("QOS_NOT_PERSISTED")),
    Fault("unit-edited", "a unit that sets QoS at boot was edited", unit_edited, fixed("QOS_NOT_PERSISTED"), Scope.FUNCTION),
    # tools
    Fault("readers-disagree", "dcb shows other registers than mlnx_qos", tool_mode("dcb", "stale"), blind("QOS_READERS_DISAGREE")),
    Fault("tool-missing", "mlnx_qos is not installed", lambda lab, node, function: lab.hide_tool(node, "mlnx_qos"),
          blind("TOOL_MISSING")),
    Fault("tool-hangs", "mlnx_qos never answers", tool_mode("mlnx_qos", "hangs"), blind("TOOL_TIMEOUT")),
    Fault("tool-traceback", "mlnx_qos ends in a traceback whatever it is asked", tool_mode("mlnx_qos", "traceback"),
          blind("UNREADABLE")),
    Fault("tool-no-ps", "mlnx_qos dies because the node has no ps", tool_mode("mlnx_qos", "no-ps"), blind("TOOL_MISSING")),
    Fault("tool-lies", "mlnx_qos says success and changes nothing", tool_mode("mlnx_qos", "lies"), unseen(),
          wiped=at_apply(1, "QOS_TRUST")),
    Fault("tool-applied-traceback", "mlnx_qos sets what it is told and then ends in a traceback",
          tool_mode("mlnx_qos", "applied-traceback"), unseen(), wiped=at_apply(0)),
    Fault("tool-refuses", "the kernel refuses every setting: Bad value", tool_mode("mlnx_qos", "refuses"), unseen(),
          wiped=at_apply(1, "QOS_TRUST")),
    Fault("tool-half", "mlnx_qos sets half of what it is told", tool_mode("mlnx_qos", "half"), unseen(),
          wiped=at_apply(1, "QOS_PFC_MASK")),
    Fault("tool-2017", "mlnx_qos is of MLNX_OFED 4.0: it shows no trust, no map, no DCBX", lambda lab, node, function: _era(lab, node),
          unseen(), wiped={"plan": stuck("QOS_TRUST")["plan"], "apply": stuck("QOS_TRUST")["apply"]}),
    Fault("second-reader-hangs", "dcb hangs: an iproute2 before 6.1 on a driver that lacks a call", tool_mode("dcb", "hangs"), unseen(),
          wiped=at_apply(0)),
)
