"""What the checks on a node's system read: software versions, limits, PCIe. Collected only for a check that names them."""

from __future__ import annotations

import hashlib
import json

from fabrictool.ports.sections import FILE_END, LINK_END
from fabrictool.snapshot import Section, links, script, sysfs, tool
from fabrictool.spec import NodeSpec
from fabrictool.spec.system import HOST, ContentSpec
from fabrictool.system import journal

END = "end\n"

HOST_FACTS = Section("system.host", """printf 'kernel %s\\n' "$(uname -r)"
printf 'machine %s\\n' "$(uname -m)"
sed -n 's/^PRETTY_NAME=/os /p' /etc/os-release 2>/dev/null
sed -n 's/^\\(MemTotal\\|MemAvailable\\):[[:space:]]*/\\1 /p' /proc/meminfo
printf 'locked %s %s\\n' "$(ulimit -S -l)" "$(ulimit -H -l)"
echo end""")

GPU = Section("system.gpu", "nvidia-smi --query-gpu=index,name,pci.bus_id,driver_version,vbios_version,mig.mode.current,"
              "ecc.mode.current,power.limit --format=csv,noheader && echo end", timeout_s=20)
# Any -d prints the head, which alone has the CUDA version that the driver takes.
CUDA = Section("system.cuda", "nvidia-smi -q -d PERFORMANCE", timeout_s=20)
DRIVER = sysfs("system.driver", "/proc/driver/nvidia/version", FILE_END)
NIC = sysfs("system.nic", *(f"/sys/class/infiniband/*/{f}" for f in ("fw_ver", "board_id", "hca_type")), "/sys/module/mlx5_core/version",
            FILE_END)
OFED = tool("system.ofed", "ofed_info", "-s")
# dpkg-query ends with 1 where a package is not known, with 2 where it cannot tell.
PACKAGES = Section("system.packages", """if command -v dpkg-query >/dev/null 2>&1; then
  dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n' rdma-core libibverbs1 libnccl2 2>/dev/null
  [ $? -le 1 ] || { echo 'dpkg-query: the list of packages cannot be read' >&2; exit 1; }
elif command -v rpm >/dev/null 2>&1; then
  rpm -q --qf '%{NAME} %{VERSION}-%{RELEASE} installed\\n' rdma-core libibverbs libnccl 2>/dev/null | grep ' installed$'
else
  echo 'dpkg-query, rpm: not found' >&2
  exit 127
fi
echo end""")
LIBRARIES = Section("system.libraries", """PATH=$PATH:/sbin:/usr/sbin
command -v ldconfig >/dev/null 2>&1 || { echo 'ldconfig: not found' >&2; exit 127; }
list=$(ldconfig -p </dev/null) || exit 1
printf '%s\\n' "$list" | sed -n 's/^[[:space:]]*libnccl\\.so\\.[0-9]* .* => //p' | sort -u | while IFS= read -r p; do
  printf '%s -> %s\\n' "$p" "$(readlink -f "$p")"
done
echo end""")
CONTAINERS = script("system.containers", "containers.sh", root=True, timeout_s=40)
PROCESSES = script("system.processes", "processes.sh", root=True, timeout_s=25)
UNITS = Section("system.units", "systemctl show --type=service --property=Id,LimitMEMLOCK '*' && echo end", max_bytes=1_048_576)
MODULES = sysfs("system.modules", "/sys/module/nvidia_peermem/initstate", "/sys/module/nv_peer_mem/initstate", FILE_END)
TOPOLOGY = tool("system.topology", "nvidia-smi", "topo", "-m", timeout_s=30)
BRIDGES = Section("system.bridges", "lspci -D -vvv -d ::0604", root=True, timeout_s=20, max_bytes=2_097_152)
PCI_PATHS = links("system.pci", "/sys/bus/pci/drivers/nvidia/*", LINK_END)
CONTENTS = "system.contents"


def versions(want: NodeSpec) -> tuple[Section, ...]:
    probes = want.versions.probes
    args = tuple(a for p in probes for a in (key(p), "host" if p.container == HOST else "container", p.container, p.path,
                                             "text" if p.text is not None else "sha256", p.text or "-"))
    contents = (script(CONTENTS, "contents.sh", root=True, timeout_s=min(20 + 5 * len(probes), 60), args=args),) if probes else ()
    return (HOST_FACTS, GPU, CUDA, DRIVER, NIC, OFED, PACKAGES, LIBRARIES, CONTAINERS, PROCESSES, *contents)


def memlock(want: NodeSpec) -> tuple[Section, ...]:
    return (HOST_FACTS, PROCESSES, UNITS)


def rails(want: NodeSpec) -> tuple[Section, ...]:
    if want.gpu is None or want.gpu.gpudirect == "none":
        return ()
    return (HOST_FACTS, DRIVER, MODULES, TOPOLOGY, BRIDGES, PCI_PATHS)


def kernel_log(want: NodeSpec) -> tuple[Section, ...]:
    return (journal.section(want.kernel_log.hours), CONTAINERS)


def key(probe: ContentSpec) -> str:
    """What names the answer to a probe in a snapshot: the same question, whatever it is called and whatever digest is wanted."""
    return hashlib.sha256(json.dumps((probe.container, probe.path, probe.text)).encode()).hexdigest()[:16]
