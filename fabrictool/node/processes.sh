# Programs that use NCCL, Gloo or UCX, and the first process of each container: what they may lock, and which libraries they have.
# Read only. Prints lines, the last is "end":
#   p PID                    m SOFT HARD    Max locked memory of /proc/PID/limits (bytes, or unlimited; ? = unreadable)
#   k HEX                    effective capabilities (? = unreadable)
#   l PATH                   a library that it has mapped, as it sees the path
#   more                     processes were left out
#   docker RC                docker did not tell the first processes of its containers
set -u
export LC_ALL=C
command -v awk >/dev/null || { echo "awk: not found" >&2; exit 127; }
MOST=200
NAMES='(NCCL_[A-Z0-9_]+|GLOO_[A-Z0-9_]+|UCX_[A-Z0-9_]+|TP_SOCKET_IFNAME|MASTER_ADDR|VLLM_HOST_IP|SGLANG_HOST_IP|SGLANG_LOCAL_IP_NIC|HOST_IP|CUTE_DSL_ARCH|VLLM_NIXL_SIDE_CHANNEL_HOST|VLLM_NIXL_SIDE_CHANNEL_PORT)'
mains=''
if command -v docker >/dev/null 2>&1; then
  rc=0
  for _ in 1 2; do
    ids=$(timeout 5 docker ps -q --no-trunc 2>/dev/null </dev/null) || { rc=$?; break; }
    ids=$(printf '%s\n' "$ids" | grep -E '^[0-9a-f]{12,64}$')
    [ -n "$ids" ] || { rc=0; break; }
    # shellcheck disable=SC2086 # one word per id, hex digits only
    mains=$(timeout 5 docker inspect -f '{{.State.Pid}}' $ids 2>/dev/null </dev/null)
    rc=$?
    [ "$rc" -ne 0 ] || break  # a container may end between the two: once more
  done
  [ "$rc" -eq 0 ] || echo "docker $rc"
fi
count=0 seen=' '
for pid in $mains $(grep -lsaE "$NAMES=" /proc/[0-9]*/environ | cut -d/ -f3); do
  case $pid in "$$" | 0 | *[!0-9]*) continue ;; esac
  case $seen in *" $pid "*) continue ;; esac
  seen="$seen$pid "
  [ -d "/proc/$pid" ] || continue
  count=$((count + 1))
  if [ "$count" -gt "$MOST" ]; then echo more; break; fi
  echo "p $pid"
  awk '/^Max locked memory/ { print "m", $(NF-2), $(NF-1); found = 1 } END { if (!found) print "m ? ?" }' "/proc/$pid/limits" 2>/dev/null ||
    echo 'm ? ?'
  awk '/^CapEff:/ { print "k", $2; found = 1 } END { if (!found) print "k ?" }' "/proc/$pid/status" 2>/dev/null || echo 'k ?'
  awk '/\/lib(nccl|cudart|ibverbs|mlx5|ucp|fabric|torch_cuda)[^\/]*\.so/ { print "l " substr($0, index($0, "/")) }' "/proc/$pid/maps" 2>/dev/null |
    sort -u | head -n 40
done
echo end
