# Content probes: is a file what it should be? Arguments, six for each probe: KEY host|container GLOB PATH sha256|text TEXT.
# Read only; a container's file is read through /proc/PID/root, its symbolic links followed as the container sees them.
# Prints lines, the last is "end":
#   docker ok|absent|failed RC MESSAGE
#   k KEY LABEL sha256 HEX        k KEY LABEL text 0|1        k KEY LABEL absent|denied|failed|slow -
#   n KEY                         no running container has such a name
set -u
export LC_ALL=C
LIMIT=12 # seconds for one file
BOXES=32 # of one probe

running='' rc=0 docker=absent
boxes() { # -> $docker $rc $running: "PID NAME" lines
  command -v docker >/dev/null 2>&1 || return
  docker=failed
  ids=$(timeout 5 docker ps -q --no-trunc 2>&1 </dev/null)
  rc=$?
  running=$ids
  [ "$rc" -eq 0 ] || return
  ids=$(printf '%s\n' "$ids" | grep -E '^[0-9a-f]{12,64}$')
  running=
  # shellcheck disable=SC2086 # one word per id, hex digits only
  [ -z "$ids" ] || running=$(timeout 5 docker inspect -f '{{.State.Pid}} {{.Name}}' $ids 2>&1 </dev/null)
  rc=$?
  [ "$rc" -ne 0 ] || docker=ok
}

inside() { # ROOT PATH -> $found, "" for a loop of links
  at='' rest=$2 hops=0
  while [ -n "$rest" ]; do
    rest=${rest#/}
    part=${rest%%/*}
    case $rest in */*) rest=/${rest#*/} ;; *) rest='' ;; esac
    case $part in '' | .) continue ;; ..) at=${at%/*}; continue ;; esac
    if [ -L "$1$at/$part" ]; then
      hops=$((hops + 1))
      if [ "$hops" -gt 40 ]; then found=''; return; fi
      to=$(readlink "$1$at/$part")
      case $to in /*) at='' ;; esac
      rest=/${to#/}$rest
      continue
    fi
    at=$at/$part
  done
  found=$1$at
}

look() { # KEY LABEL ROOT PATH HOW TEXT
  inside "$3" "$4"
  if [ -z "$found" ]; then echo "k $1 $2 failed -"; return; fi
  if [ ! -e "$found" ]; then
    up=${found%/*}
    while [ -n "$up" ] && [ ! -e "$up" ]; do up=${up%/*}; done
    if [ -x "${up:-/}" ]; then echo "k $1 $2 absent -"; else echo "k $1 $2 denied -"; fi
    return
  fi
  if [ ! -f "$found" ]; then echo "k $1 $2 failed -"; return; fi
  if [ ! -r "$found" ]; then echo "k $1 $2 denied -"; return; fi
  case $5 in
    text)
      timeout "$LIMIT" grep -qaF -e "$6" "$found" </dev/null 2>/dev/null
      case $? in 0) echo "k $1 $2 text 1" ;; 1) echo "k $1 $2 text 0" ;; 124 | 137) echo "k $1 $2 slow -" ;; *) echo "k $1 $2 failed -" ;; esac
      ;;
    sha256)
      sum=$(timeout "$LIMIT" sha256sum <"$found" 2>/dev/null)
      rc_sum=$?
      sum=${sum%% *}
      case $rc_sum:$sum in
        0:????????????????????????????????????????????????????????????????) echo "k $1 $2 sha256 $sum" ;;
        124:* | 137:*) echo "k $1 $2 slow -" ;;
        *) echo "k $1 $2 failed -" ;;
      esac
      ;;
    *) echo "k $1 $2 failed -" ;;
  esac
}

boxes
case $docker in
  failed) printf 'docker failed %s %s\n' "$rc" "$(printf '%s\n' "$running" | tail -n 1 | cut -c1-200)"; running='' ;;
  *) echo "docker $docker 0 -" ;;
esac
while [ $# -ge 6 ]; do
  if [ "$2" = host ]; then
    look "$1" host '' "$4" "$5" "$6"
  elif [ "$docker" != failed ]; then
    key=$1 glob=$3 path=$4 how=$5 want=$6
    hits=$(printf '%s\n' "$running" | while read -r pid name; do
      # shellcheck disable=SC2254 # a glob is meant
      case ${name#/} in $glob) echo "$pid ${name#/}" ;; esac
    done | head -n "$BOXES")
    if [ -z "$hits" ]; then echo "n $key"; fi
    printf '%s\n' "$hits" | while read -r pid name; do
      case $pid in '' | 0 | *[!0-9]*) continue ;; esac
      if [ -d "/proc/$pid/root/" ]; then look "$key" "$name" "/proc/$pid/root" "$path" "$how" "$want"; else echo "k $key $name failed -"; fi
    done
  fi
  shift 6
done
echo end
