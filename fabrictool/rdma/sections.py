"""What the RDMA room collects: sysfs, `rdma -j link` as second reader, ibv_devinfo for the active MTU (no other place shows it)."""

from __future__ import annotations

from fabrictool.snapshot import Each, Section, sysfs, tool

PORT = "/sys/class/infiniband/{}/ports/1"

# A GID table has up to 256 slots, most of them empty; types and ndevs of an empty slot cannot be read (EINVAL) and give no line.
GIDS = (
    'cd "/sys/class/infiniband/$1/ports/1" || exit 1\n'
    "for g in gids/*; do\n"
    "  i=${g##*/}\n"
    '  read -r v <"$g" || { echo "gid $i unreadable"; continue; }\n'
    '  case $v in 0000:0000:0000:0000:0000:0000:0000:0000) continue ;; esac\n'
    "  t= n=\n"
    '  read -r t <"gid_attrs/types/$i"\n'
    '  read -r n <"gid_attrs/ndevs/$i"\n'
    "  printf 'gid %s %s ndev=%s type=%s\\n' \"$i\" \"$v\" \"$n\" \"$t\"\n"
    "done 2>/dev/null\n"
    "echo 'end of GIDs'"
)

# The file belongs to the vendor's driver; it is empty while nothing is set, so its being there has to be told beside its content.
TCLASS = (
    'f="/sys/class/infiniband/$1/tc/1/traffic_class"\n'
    '[ -e "$f" ] || { echo "no such file"; exit 0; }\n'
    'echo "file"; cat "$f" || exit 1; echo "end of file"'
)

SECTIONS: tuple[Section, ...] = (
    tool("rdma.link", "rdma", "-j", "link"),
    sysfs("rdma.port", f"{PORT}/state", f"{PORT}/phys_state", f"{PORT}/rate", f"{PORT}/link_layer", each=Each.RDMA),
    Section("rdma.gids", GIDS, Each.RDMA),
    tool("rdma.devinfo", "ibv_devinfo", "-d", "{}", "-i", "1", each=Each.RDMA),
    Section("rdma.tclass", TCLASS, Each.RDMA),
)
