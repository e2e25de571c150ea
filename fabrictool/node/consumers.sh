# What runs here and with which NCCL/Gloo/UCX environment. Read only. Prints lines, the last one is "end":
#   docker ok|absent|failed RC MESSAGE      c PID ID NAME CREATED HOSTNAME IMAGE   a running container (strings as JSON)
#   m MTIME PATH                            when a file of ours was last written (seconds since 1970)
#   boot SECONDS                            when the kernel booted
#   u PID UNIT                              a process of each running service (as p has it)
#   p PID PPID TICKS CONTAINER UNIT         a process (start: 1/100 s after boot; - = none), then its
#     n COUNT  e NAME=VALUE  l LIBRARY  v VERSION    entries in its environment (? = unreadable), allowed ones, libnccl
#   f PID STATE MTIME PATH  F TEXT          a container's own file, through /proc/PID/root
#   more                                    processes were left out
# Only the names below leave the node. A newline in a value travels as \001.
set -u
export LC_ALL=C
command -v awk >/dev/null || { echo "awk: not found" >&2; exit 127; }
NAMES='(NCCL_[A-Z0-9_]+|GLOO_[A-Z0-9_]+|UCX_[A-Z0-9_]+|TP_SOCKET_IFNAME|MASTER_ADDR|VLLM_HOST_IP|SGLANG_HOST_IP|SGLANG_LOCAL_IP_NIC|HOST_IP|CUTE_DSL_ARCH|VLLM_NIXL_SIDE_CHANNEL_HOST|VLLM_NIXL_SIDE_CHANNEL_PORT)'
MOST=200

mtime() { stat -L -c %Y "$1" 2>/dev/null || echo -; }

# A file of a container. Absolute links would lead into the host's own tree: not followed.
inside() {
  root=/proc/$1/root path=$2
  if [ ! -d "$root/" ]; then echo "f $1 gone - $path"; return; fi
  if [ -L "$root/etc" ] || [ -L "$root$path" ]; then echo "f $1 link - $path"; return; fi
  if [ ! -e "$root$path" ]; then echo "f $1 absent - $path"; return; fi
  if [ ! -f "$root$path" ] || [ ! -r "$root$path" ]; then echo "f $1 denied - $path"; return; fi
  echo "f $1 file $(mtime "$root$path") $path"
  head -c 65536 "$root$path" | grep -aE "$3" | awk '{ print "F " $0 }'
}

process() {
  pid=$1 box=$2 unit=$3 ppid=$4 ticks=$5
  echo "p $pid $ppid $ticks $box $unit"
  if [ -r "/proc/$pid/environ" ] && cat "/proc/$pid/environ" >/dev/null 2>&1; then
    tr '\000\n' '\n\001' <"/proc/$pid/environ" 2>/dev/null | awk -v names="^$NAMES=" '
      /^[A-Za-z_][A-Za-z0-9_]*=/ { n++ }
      $0 ~ names { print "e " $0 }
      END { print "n " n + 0 }'
  else
    echo "n ?"
  fi
  awk '/\/libnccl\.so/ { print substr($0, index($0, "/")) }' "/proc/$pid/maps" 2>/dev/null | sort -u | head -n 4 |
  while IFS= read -r lib; do
    printf 'l %s\n' "$lib"
    # A wheel carries the version only in the name of its metadata folder: site-packages/nvidia/nccl/lib/libnccl.so.2
    for info in "/proc/$pid/root${lib%/*}/../../.."/nvidia_nccl_cu*-*.dist-info; do
      [ -d "$info" ] && { v=${info##*-}; printf 'v %s\n' "${v%.dist-info}"; }
    done
  done
}

for f in /etc/nccl.conf /etc/fabrictool/nccl.env /etc/profile.d/fabrictool.sh /etc/systemd/system/*.d/50-fabrictool.conf; do
  [ -e "$f" ] && echo "m $(mtime "$f") $f"
done
awk '$1 == "btime" { print "boot " $2 }' /proc/stat

# Containers cannot run unseen: their cgroups name docker, and nothing can be asked without the socket.
traces() { [ -e /run/docker.sock ] || [ -e /var/run/docker.sock ] || grep -qsE 'docker' /proc/[0-9]*/cgroup; }

mains=' '
if command -v docker >/dev/null 2>&1; then
  for _ in 1 2; do
    ids=$(timeout 5 docker ps -q --no-trunc 2>&1 </dev/null)
    rc=$?
    if [ "$rc" -ne 0 ]; then out=$ids; break; fi
    ids=$(printf '%s\n' "$ids" | grep -E '^[0-9a-f]{12,64}$')
    out=
    [ -n "$ids" ] || break
    # shellcheck disable=SC2086 # one word per id, hex digits only
    out=$(timeout 5 docker inspect -f '{{.State.Pid}} {{.Id}} {{json .Name}} {{json .Created}} {{json .Config.Hostname}} {{json .Config.Image}}' $ids 2>&1 </dev/null)
    rc=$?
    [ "$rc" -eq 0 ] && break  # a container may end between the two: once more
  done
  if [ "$rc" -eq 0 ]; then
    echo "docker ok 0 -"
    [ -n "$out" ] && printf '%s\n' "$out" | sed 's/^/c /'
    mains=" $(printf '%s\n' "$out" | sed -n 's/^\([0-9][0-9]*\) .*/\1/p' | tr '\n' ' ')"
  elif ! traces; then
    echo "docker absent 0 -"
  else
    printf 'docker failed %s %s\n' "$rc" "$(printf '%s\n' "$out" | tail -n 1 | cut -c1-200)"
  fi
elif traces; then
  echo "docker failed 127 docker runs here, but there is no docker command on PATH"
else
  echo "docker absent 0 -"
fi
for pid in $mains; do
  inside "$pid" /etc/hosts '^[[:space:]]*[0-9a-fA-F:.]+[[:space:]]'
  inside "$pid" /etc/nccl.conf "^$NAMES="
done

# A process belongs to the innermost service of its control group: user@1000.service holds those of that user. Of systemd's own
# hierarchies only: in version 1 of control groups the others lag behind.
INNER='s#.*/\([^/ ]*[.]service\)\([/ ].*\)\{0,1\}$#\1#p'
grep -sHE '^[0-9]+:(name=systemd)?:.*/[^/ ]+[.]service([/ ]|$)' /proc/[0-9]*/cgroup |
  sed -n 's#^.*/\([0-9][0-9]*\)/cgroup:.*/\([^/ ]*[.]service\)\([/ ].*\)\{0,1\}$#u \1 \2#p' | awk '!seen[$3]++'

count=0
firsts=$(grep -lsaE "$NAMES=" /proc/[0-9]*/environ | sed 's#.*/\([0-9]*\)/environ$#\1#')
for pid in $mains $firsts; do
  case $pid in "$$" | *[!0-9]*) continue ;; esac
  case " ${done_pids:-} " in *" $pid "*) continue ;; esac
  done_pids="${done_pids:-} $pid"
  IFS= read -r stat 2>/dev/null <"/proc/$pid/stat" || continue
  set -- ${stat##*) }
  [ $# -ge 20 ] || continue
  ppid=$2
  shift 19
  ticks=$1
  group=$(cat "/proc/$pid/cgroup" 2>/dev/null)
  box=$(printf '%s\n' "$group" | sed -n 's/.*[^0-9a-f]\([0-9a-f]\{64\}\).*/\1/p' | head -n 1)
  unit=$(printf '%s\n' "$group" | grep -E '^[0-9]+:(name=systemd)?:' | sed -n "$INNER" | head -n 1)
  if [ -z "$box" ]; then
    up=$pid hops=0
    while [ "$up" -gt 1 ] && [ "$hops" -lt 32 ]; do
      case $mains in *" $up "*) box=pid:$up; break ;; esac
      IFS= read -r stat 2>/dev/null <"/proc/$up/stat" || break
      set -- ${stat##*) }
      up=${2:-0} hops=$((hops + 1))
    done
  fi
  [ -n "$box$unit" ] || continue
  count=$((count + 1))
  if [ "$count" -gt "$MOST" ]; then echo more; break; fi
  process "$pid" "${box:--}" "${unit:--}" "$ppid" "$ticks"
done
echo end
