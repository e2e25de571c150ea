"""What the QoS room collects. Interfaces are asked by both readers; files are those that could set QoS at boot or later."""

from __future__ import annotations

from fabrictool.qos.dcb import OBJECTS
from fabrictool.qos.persist import RULES_DIR, SCRIPT, UNIT_DIR, UNIT_PREFIX
from fabrictool.snapshot import Each, Section, files, sysfs, tool
from fabrictool.snapshot.whole import FILES_END

# One transcript for all objects: dcb <= 6.0 hangs where the driver lacks a call, and one such hang (4 s) is enough.
DCB = (
    'command -v dcb >/dev/null || { echo "dcb: not found" >&2; exit 127; }\n'
    f"for o in {' '.join(OBJECTS)}; do\n"
    "  printf '$ dcb -j %s show dev %s\\n' \"$o\" \"$1\"\n"
    '  timeout 4 dcb -j "$o" show dev "$1" 2>&1 </dev/null; s=$?\n'
    "  printf '[rc=%s]\\n' \"$s\"\n"
    '  case $s in 124|137) exit 0 ;; esac\n'
    "done; true"
)

# Processes that set QoS themselves. Kernel names are cut at 15 characters. /proc/1 shows whether others can be seen at all (hidepid).
DAEMONS = ("lldpad", "fcoemon", "nic-configurati")
PROCESSES = (
    "grep -sH '' /proc/1/comm </dev/null\n"
    f"grep -sHxE '{'|'.join(DAEMONS)}' /proc/[0-9]*/comm </dev/null; true"
)

# Every place from which something is started at boot, on a link event, or by timer. ExecStart programs of local units are followed.
PLACES = (
    "/etc/systemd/system/*.service /etc/systemd/system/*.service.d/*.conf /usr/local/lib/systemd/system/*.service "
    "/lib/systemd/system/*.service /etc/rc.local /etc/rc.d/rc.local /etc/init.d/* /etc/udev/rules.d/*.rules /etc/infiniband/*.sh "
    "/etc/infiniband/*.conf /etc/crontab /etc/cron.d/* /etc/cron.hourly/* /etc/cron.daily/* /etc/network/interfaces "
    "/etc/network/interfaces.d/* /etc/network/if-up.d/* /etc/NetworkManager/dispatcher.d/* /etc/networkd-dispatcher/*/* "
    "/usr/local/bin/*.sh /usr/local/sbin/*.sh"
)
WORDS = r"mlnx_qos|(^|[^a-z_])dcb +(-[a-zA-Z]+ +)*(pfc|app|ets|buffer|dcbx) |lldptool|cma_roce_tos|ethtool +(-A|--pause) "
WRITERS = (
    "followed=$(sed -n 's/^Exec[A-Za-z]*=[-@:+!]*\\(\\/[^ ]*\\).*/\\1/p' /etc/systemd/system/*.service "
    "/usr/local/lib/systemd/system/*.service 2>/dev/null | sort -u | head -n 200)\n"
    "n=0 matched=\n"
    f"for p in {PLACES} $followed; do\n"
    "  case ${p##*/} in mlnx_qos | dcb | lldptool | cma_roce_tos | ethtool) continue ;; esac\n"
    '  [ -f "$p" ] && [ -r "$p" ] || continue\n'
    '  s=$(wc -c <"$p" 2>/dev/null) && [ "$s" -le 65536 ] || continue\n'
    "  n=$((n + 1))\n"
    f"  grep -snHE '{WORDS}' \"$p\" </dev/null || continue\n"
    '  case $p in /etc/* | */systemd/system/*) ;; *) matched="$matched $p" ;; esac\n'
    "done\n"
    "for m in $matched; do\n"
    f'  grep -slF -e "$m" {PLACES} </dev/null | while read -r by; do printf \'# %s is started by %s\\n\' "$m" "$by"; done\n'
    "done\n"
    'echo "# files read: $n"'
)

# How systemd itself tells what it starts: whether it answers at all, our units one by one, and every service or timer that a target
# or device wants. Without the last line a unit that is not in the list may be wanted all the same.
UNITS_END = "# end of units"
UNITS = (
    "printf 'systemctl says %s\\n' \"$(systemctl --version 2>&1 | head -n 1)\"\n"
    f"for p in {UNIT_DIR}/{UNIT_PREFIX}*.service; do\n"
    '  [ -f "$p" ] || continue\n'
    "  u=${p##*/}\n"
    "  printf '%s is-enabled %s\\n' \"$u\" \"$(systemctl is-enabled \"$u\" 2>&1 | head -n 1)\"\n"
    "done\n"
    f"for p in {UNIT_DIR}/*.wants/* {UNIT_DIR}/*.requires/*; do\n"
    "  [ -L \"$p\" ] && printf '%s wanted-by %s\\n' \"${p##*/}\" \"${p%/*}\"\n"
    "done\n"
    f"echo '{UNITS_END}'"
)

SECTIONS: tuple[Section, ...] = (
    tool("qos.mlnx_qos", "mlnx_qos", "-i", "{}", each=Each.NETDEV),
    Section("qos.dcb", DCB, Each.NETDEV, timeout_s=12),
    tool("qos.pause", "ethtool", "-a", "{}", each=Each.NETDEV, timeout_s=5),
    sysfs("qos.ecn", "/sys/class/net/{}/ecn/roce_np/enable/*", "/sys/class/net/{}/ecn/roce_rp/enable/*",
          "/sys/class/net/{}/ecn/roce_np/cnp_dscp", each=Each.NETDEV),
    Section("qos.processes", PROCESSES),
    Section("qos.writers", WRITERS, timeout_s=15),
    files("qos.files", SCRIPT, f"{UNIT_DIR}/{UNIT_PREFIX}*.service", f"{RULES_DIR}/*-{UNIT_PREFIX}*.rules",
          FILES_END),
    Section("qos.units", UNITS, timeout_s=10),
)
