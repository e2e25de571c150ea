# Ends or lists what a run has started on this node: sh -c THIS fabrictool-sweep RUN VERB [PORT...]
#   end    units and containers called ft-RUN-*, Slurm jobs called ft-RUN, and every process that has FABRICTOOL_RUN=RUN in its
#          environment: first TERM, then KILL
#   left   lists them, one a line: unit NAME, container NAME, job ID, process PID COMMAND, port N (a TCP port that one of them listens
#          on, or one of the given ports if anybody does); `unasked NAME STATUS` for a manager that did not answer; at last `end`
#   over   end, then left
#   close  end, then the run's folder, its lock and its guard; then left
# Never by a process name: a process is ended right after its environment was seen to hold exactly this run's id.
set -u
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
run=$1 verb=$2
shift 2
case $run in '' | *[!A-Za-z0-9-]*) echo "no run id: $run" >&2; exit 64 ;; esac

holds() { # PID VARIABLE
  { tr '\000\n' '\n\001' <"/proc/$1/environ" | grep -qxF "$2=$run"; } 2>/dev/null
}

pids() { # VARIABLE: those that hold it now
  for file in $(grep -lsaF "$1=$run" /proc/[0-9]*/environ); do
    pid=${file#/proc/}
    pid=${pid%/environ}
    if [ "$pid" != "$$" ] && holds "$pid" "$1"; then echo "$pid"; fi
  done
}

signal() { # SIGNAL VARIABLE: status 1 when there was none
  any=1
  for pid in $(pids "$2"); do
    if holds "$pid" "$2"; then
      kill -s "$1" "$pid" 2>/dev/null
      any=0
    fi
  done
  return $any
}

end_processes() { # VARIABLE
  signal TERM "$1" || return 0
  for _ in 1 2 3 4 5; do
    sleep 1
    [ -n "$(pids "$1")" ] || return 0
  done
  for _ in 1 2 3 4 5; do
    signal KILL "$1" || return 0
    sleep 1
  done
}

silent=' '
hangs() { case $silent in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

ask() { # NAME COMMAND...: its answer is in $list. Who was silent once is not waited for again: three that hang would take all the time.
  who=$1 list=
  shift
  if hangs "$who"; then return 124; fi
  list=$(timeout 10 "$@" 2>/dev/null </dev/null) && return
  status=$? list=
  case $status in 124 | 143) silent="$silent$who " status=124 ;; esac # 143: busybox's
  return "$status"
}

# These set $list, each line beginning with what the manager's own command takes. Not within $(...), where silence would be forgotten.
units() { # systemd's, without the guard's
  list=
  [ -d /run/systemd/system ] || return 0
  ask systemd systemctl list-units --all --plain --no-legend --full "ft-$run-*" || return
  list=$(printf '%s\n' "$list" |
    awk -v head="ft-$run-" -v guard="ft-$run-guard.service" \
      '{ for (i = 1; i <= 2; i++) if (index($i, head) == 1) { if ($i != guard) print $i; next } }')
}

boxes() {
  list=
  command -v docker >/dev/null 2>&1 || return 0
  ask docker docker ps -a --no-trunc --format '{{.ID}} {{.Names}}' || return
  list=$(printf '%s\n' "$list" | awk -v head="ft-$run-" 'index($2, head) == 1 { print $1, $2 }')
}

jobs_of() { # CG: over, and Slurm is still cleaning up (a site's epilog may take minutes); what of it still runs the scan of processes finds
  list=
  command -v squeue >/dev/null 2>&1 || return 0
  ask slurm squeue -h -o '%i %j %t' --name="ft-$run" || return
  list=$(printf '%s\n' "$list" | awk -v name="ft-$run" '$2 == name && $3 != "CG" { print $1 }')
}

listening() { # PID: TCP ports, hexadecimal
  inodes=$(ls -l "/proc/$1/fd" 2>/dev/null | sed -n 's/.*socket:\[\([0-9]*\)\]$/\1/p' | tr '\n' ' ')
  [ -n "$inodes" ] || return 0
  for file in "/proc/$1/net/tcp" "/proc/$1/net/tcp6"; do
    [ -r "$file" ] && awk -v mine=" $inodes" \
      '$4 == "0A" && index(mine, " " $10 " ") { n = split($2, at, ":"); print at[n] }' "$file" 2>/dev/null
  done
}

end() {
  units
  for unit in $list; do timeout 15 systemctl stop "$unit" </dev/null >/dev/null 2>&1; done
  boxes
  [ -z "$list" ] || printf '%s\n' "$list" | while read -r id _; do timeout 15 docker rm -f "$id" </dev/null >/dev/null 2>&1; done
  jobs_of
  for id in $list; do timeout 10 scancel "$id" </dev/null >/dev/null 2>&1; done
  end_processes FABRICTOOL_RUN
}

left() { # [PORT...]
  units || echo "unasked systemd $?"
  [ -z "$list" ] || printf '%s\n' "$list" | sed 's/^/unit /'
  boxes || echo "unasked docker $?"
  [ -z "$list" ] || printf '%s\n' "$list" | sed 's/^[^ ]* /container /'
  jobs_of || echo "unasked slurm $?"
  [ -z "$list" ] || printf '%s\n' "$list" | sed 's/^/job /'
  for variable in FABRICTOOL_RUN ${guards:-}; do
    for pid in $(pids "$variable"); do
      printf 'process %s %s\n' "$pid" "$(tr '\000' ' ' <"/proc/$pid/cmdline" 2>/dev/null | tr -cd '[:print:]' | cut -c1-200)"
      for port in $(listening "$pid"); do echo "port $((0x$port))"; done
    done
  done
  for port in "$@"; do
    case $port in *[!0-9]*) continue ;; esac
    hex=$(printf '%04X' "$port")
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v hex=":$hex" \
      '$4 == "0A" && substr($2, length($2) - 4) == hex { found = 1 } END { exit !found }' && echo "port $port"
  done
  echo end
}

case $verb in
  end) end ;;
  left) left "$@" ;;
  over) end; left "$@" ;;
  close)
    end
    rm -rf "/run/fabrictool/$run" "/tmp/fabrictool-$run"
    rmdir /run/fabrictool 2>/dev/null
    # What was just about to start: without the folder nothing comes after it.
    sleep 1
    end
    # Here, and not only in a command of its own afterwards: a second Ctrl-C may come between the two, and no guard is left then.
    [ "$(cat /run/fabrictool.lock/run 2>/dev/null)" != "$run" ] || rm -rf /run/fabrictool.lock
    guards=FABRICTOOL_GUARD
    hangs systemd || [ ! -d /run/systemd/system ] || timeout 15 systemctl stop "ft-$run-guard.service" </dev/null >/dev/null 2>&1
    end_processes FABRICTOOL_GUARD
    left "$@"
    ;;
  *) echo "what to do? $verb" >&2; exit 64 ;;
esac
exit 0
