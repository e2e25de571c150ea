# What process $2 sees: $1 = env (allowed names only), hosts (its own /etc/hosts), log (lines about communication, of container $3 or
# unit $4), sockets (TCP, where its network is not the node's). Read only: nothing is run inside a container.
set -u
export LC_ALL=C
pid=$2
[ -d "/proc/$pid" ] || { echo "process $pid is gone" >&2; exit 3; }
NAMES='(NCCL_[A-Z0-9_]+|GLOO_[A-Z0-9_]+|UCX_[A-Z0-9_]+|TP_SOCKET_IFNAME|MASTER_ADDR|MASTER_PORT|VLLM_HOST_IP|SGLANG_HOST_IP|SGLANG_LOCAL_IP_NIC|HOST_IP|RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|NODE_RANK|GROUP_RANK|OMPI_COMM_WORLD_RANK|OMPI_COMM_WORLD_SIZE|SLURM_PROCID|SLURM_NTASKS|PMIX_RANK|PMI_RANK|PMI_SIZE)'
TALK='NCCL|[Gg]loo|c10d|TCPStore|ProcessGroup|torch\.distributed|[Tt]imed out|Connection (refused|reset)|connectFullMesh'
case $1 in
  env)
    cat "/proc/$pid/environ" >/dev/null 2>&1 || { echo "the environment of process $pid cannot be read" >&2; exit 1; }
    tr '\000\n' '\n\001' <"/proc/$pid/environ" | grep -aE "^$NAMES="
    ;;
  hosts)
    root=/proc/$pid/root
    if [ -L "$root/etc" ] || [ -L "$root/etc/hosts" ]; then echo "its /etc/hosts is a link, and is not followed" >&2; exit 1; fi
    [ -r "$root/etc/hosts" ] || { echo "its /etc/hosts cannot be read" >&2; exit 1; }
    [ -L "$root/etc/hostname" ] || printf 'hostname %s\n' "$(head -c 300 "$root/etc/hostname" 2>/dev/null)"
    head -c 65536 "$root/etc/hosts" | grep -aE '^[[:space:]]*[0-9a-fA-F:.]+[[:space:]]' | sed 's/^/h /'
    ;;
  log)
    if [ "$3" != - ]; then timeout 15 docker logs --tail 5000 "$3" 2>&1 </dev/null | grep -aE "$TALK" | tail -n 300
    elif [ "$4" != - ]; then timeout 15 journalctl -q --no-pager -o cat -n 5000 -u "$4" 2>&1 </dev/null | grep -aE "$TALK" | tail -n 300
    else
      for fd in 1 2; do
        [ -f "/proc/$pid/fd/$fd" ] && tail -c 1000000 "/proc/$pid/fd/$fd" | grep -aE "$TALK" | tail -n 300
      done
    fi
    ;;
  sockets)
    if [ "$(readlink "/proc/$pid/ns/net")" = "$(readlink /proc/self/ns/net)" ]; then echo same
    else nsenter -t "$pid" -n ss -Htanp || exit; fi
    ;;
  *) exit 2 ;;
esac
echo end
