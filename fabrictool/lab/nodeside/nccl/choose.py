"""Which interface and which transport: NCCL's choice, told as NCCL tells it."""

from __future__ import annotations

from collections.abc import Sequence

from fabrictool.lab.nodeside.capacity import UNIFIED
from fabrictool.lab.nodeside.nccl import adapters, interfaces
from fabrictool.lab.nodeside.nccl.adapters import Adapter
from fabrictool.lab.nodeside.nccl.device import Gpu, Hardware
from fabrictool.lab.nodeside.nccl.errors import INVALID_USAGE, NcclError
from fabrictool.lab.nodeside.nccl.interfaces import Interface
from fabrictool.lab.nodeside.nccl.log import Log
from fabrictool.lab.nodeside.nccl.nets import Net
from fabrictool.lab.nodeside.nccl.params import Params
from fabrictool.lab.nodeside.nccl.rdmanet import RdmaNet
from fabrictool.lab.nodeside.nccl.socketnet import SocketNet


def bootstrap_interface(log: Log, params: Params) -> Interface:
    """Where the other ranks will find this one. NcclError when the name fits no interface."""
    asked = params.text("NCCL_SOCKET_IFNAME")
    if asked:
        words = "set by environment to" if "ENV" in log.subsystems else "set to"
        params.said("SOCKET_IFNAME", f"NCCL_SOCKET_IFNAME {words} {asked}", "ENV|NET")
    found = interfaces.pick(interfaces.alive(params.text("NCCL_SOCKET_FAMILY")), asked)
    if not found:
        log.warn("bootstrap.cc:114", "Bootstrap : no socket interface found")
        log.trace("init.cc:126", INVALID_USAGE)
        log.trace("init.cc:160", INVALID_USAGE)
        raise NcclError(INVALID_USAGE)
    log.info("BOOTSTRAP", f"Bootstrap: Using {found[0].shown}")
    return found[0]


def network(bootstrap: Interface, hardware: Hardware, gpu: Gpu, log: Log, params: Params) -> Net:
    """IB where an adapter is left, else sockets. NcclError when NCCL_NET asks for one that cannot be had."""
    log.info("INIT|NET", "NET/Plugin: Could not find: libnccl-net.so")
    asked = params.text("NCCL_NET")
    if asked:
        params.said("NET", f"NCCL_NET set by environment to {asked}")
    net: Net | None = None
    if asked.lower() in ("", "ib"):
        net = _ib(bootstrap, hardware, gpu, log, params)
    if net is None and asked.lower() in ("", "socket"):
        net = _socket(gpu, log, params)
    if net is None:
        log.warn("plugin/net.cc:379", "Failed to initialize any NET plugin")
        for where in ("init.cc:421", "init.cc:1572"):
            log.trace(where, INVALID_USAGE)
        log.info("ALL", f"group.cc:76 -> {INVALID_USAGE} [Async thread]")
        for where in ("group.cc:537", "group.cc:743", "group.cc:107"):
            log.trace(where, INVALID_USAGE)
        raise NcclError(INVALID_USAGE)
    log.info("INIT|NET", f"Assigned NET plugin {net.name} to comm")
    if net.name == "IB":
        log.info("INIT|NET", "Assigned GIN plugin GIN_IB_GDAKI to comm")
    log.info("INIT|NET", f"Using network {net.name}")
    return net


def _ib(bootstrap: Interface, hardware: Hardware, gpu: Gpu, log: Log, params: Params) -> RdmaNet | None:
    failed = "Failed to initialize NET plugin IB"
    if params.number("IB_DISABLE", 0):
        log.info("INIT|NET", failed)
        return None
    asked = params.text("NCCL_IB_HCA")
    if asked:
        params.said("IB_HCA", f"NCCL_IB_HCA set to {asked}", "NET|ENV")
    found = usable(asked, log)
    if not found:
        log.info("INIT|NET", "NET/IB : No device found.")
    shown = "".join(f" [{i}]{a.shown}" for i, a in enumerate(found))
    log.info("INIT|NET", f"NET/IB : Using{shown} [RO]; OOB {bootstrap.shown}")
    if not found:
        log.info("INIT|NET", failed)
        return None
    log.info("INIT|NET", "Initialized NET plugin IB")
    return RdmaNet(found, hardware, gpu.gpu_direct and gpu.model not in UNIFIED, log, params)


def usable(asked: str, log: Log) -> list[Adapter]:
    """Adapters that are up, can be opened, and are asked for."""
    if not adapters.DEVICES.is_dir():
        return []
    found: list[Adapter] = []
    for adapter in adapters.present():
        if asked and not adapters.wanted(adapter.name, asked):
            continue
        if not adapters.can_open(adapter.number):
            log.warn("transport/net_ib.cc:778", f"NET/IB : Unable to open device {adapter.name}")
            continue
        log.info("NET", f"NET/IB: [{adapter.number}] {adapter.name}:uverbs{adapter.number}:1/{adapter.layer} provider=Mlx5 "
                        f"speed={adapter.speed_mbit} context=0x{id(adapter):x} pciPath=/sys/devices/lab/{adapter.bus} ar=0")
        log.info("NET", f"NET/IB : Made virtual device [{len(found)}] name={adapter.name} speed={adapter.speed_mbit} ndevs=1")
        found.append(adapter)
    return found[:adapters.MOST]


def _socket(gpu: Gpu, log: Log, params: Params) -> SocketNet | None:
    found: Sequence[Interface] = interfaces.pick(interfaces.alive(params.text("NCCL_SOCKET_FAMILY")), params.text("NCCL_SOCKET_IFNAME"))
    if not found:
        log.warn("transport/net_socket.cc:68", "NET/Socket : no interface found")
        return None
    log.info("INIT|NET", "NET/Socket : Using" + "".join(f" [{i}]{f.shown}" for i, f in enumerate(found)))
    log.info("INIT|NET", "Initialized NET plugin Socket")
    return SocketNet(found, gpu.tcp_gbytes, log, params)
