# shellcheck shell=sh
# The collector: runs all sections of one snapshot and prints one ASCII frame. POSIX sh; the disk is never written.
# Put before it: texts of run.sh and record.sh in $run_text and $record_text, and the function `sections`, one `each` line per section.
# Frame and record formats: fabrictool/snapshot/frame.py.
# shellcheck disable=SC2086,SC2154  # $few $head $encode $limit $peers are words; the texts are set by the caller

each() { # KIND(-,P,N,R) NAME ROOT(0,1) SECONDS BYTES TEXT TAGGED-ITEM...
  kind=$1 name=$2 root=$3 seconds=$4 bytes=$5 text=$6
  shift 6
  case $kind in
    -) one '' ;;
    P) one '' $peers ;;
    *)
      for tagged in "$@"; do
        case $tagged in "$kind"*) one "${tagged#?}" "${tagged#?}" ;; esac
      done
      ;;
  esac
}

one() { # ITEM ARGUMENT...: the section, if it is this lane's turn
  job=$((job + 1))
  [ "$((job % lanes))" -eq "$lane" ] || return 0
  case $1 in
    '') item=- ;;
    *[!A-Za-z0-9_.-]*) item="~$(printf %s "$1" | $encode | tr -d ' \n')" ;;
    *) item="=$1" ;;
  esac
  shift
  sudo='' flag=-
  if [ "$root" = 1 ] && [ "$uid" != 0 ]; then
    sudo='sudo -n' flag=sudo
    if [ "$sudo_works" != yes ]; then
      case $sudo_works in
        stuck) printf 'S %s %s %s %s stuck\nE 124 0\nO\n.\n' "$job" "$name" "$item" "$bytes" ;;
        *) printf 'S %s %s %s %s denied\nE 1 0\nO\n.\n' "$job" "$name" "$item" "$bytes" ;;
      esac
      return 0
    fi
  fi
  clock
  left=$(((deadline - now) / 1000))
  if [ "$left" -lt 1 ]; then
    printf 'S %s %s %s %s late\nE 124 0\nO\n.\n' "$job" "$name" "$item" "$bytes"
    return 0
  fi
  allowed=$seconds
  [ "$allowed" -le "$left" ] || allowed=$left
  # The inner limit is the section's. The outer one cuts loose what the inner cannot end: a process that hangs in the
  # kernel, or one that left the process group and holds the pipe open.
  record=$(
    exec 2>/dev/null
    set -- sh -c "$record_text" sh "$few" "$head" "$encode" "$limit" "$run_text" "$bytes" 65536 "$allowed" "$sudo" "$text" "$@"
    [ -n "$limit" ] || exec "$@"
    [ "$tool_flags" != - ] || exec $limit "$((allowed + 5))" "$@" # ends its whole group
    $limit "$((allowed + 5))" "$@" &
    child=$!
    wait "$child"
    kill -9 "-$child"
  )
  case $record in
    'E '*"$nl.") ;;
    *)
      began=$now
      clock
      flag=held record="E 124 $((now - began))${nl}O${nl}."
      ;;
  esac
  printf 'S %s %s %s %s %s\n%s\n' "$job" "$name" "$item" "$bytes" "$flag" "$record"
}

clock() { # milliseconds since boot -> $now
  now=0
  if read -r up _ </proc/uptime; then now=$((${up%.*} * 1000 + (1${up#*.} - 100) * 10)); fi
} 2>/dev/null

all_lanes() { # LANE TAGGED-ITEM...: the lanes' records one after the other; the lanes run at the same time
  lane=$1
  if [ "$((lane + 1))" -lt "$lanes" ]; then
    { records=$(one_lane "$@"); printf '%s\n' "$records"; } | {
      shift
      records=$(all_lanes "$((lane + 1))" "$@" </dev/null)
      cat
      printf '%s\n' "$records"
    }
  else
    one_lane "$@"
  fi
}

one_lane() { # LANE TAGGED-ITEM...
  lane=$1 job=-1
  shift
  sections "$@"
}

choose_tools() { # -> $few $head $encode $limit $tool_flags
  few='od -v -A n -t x1 -N'
  case $(printf 'a\377\n' | $few 2) in *0a*) few='' ;; *61*ff*) ;; *) few='' ;; esac
  for head in 'head -c' 'busybox head -c' ''; do
    [ -n "$head" ] || break
    [ "$(printf 'abc' | $head 2)" != ab ] || break
  done
  for encode in base64 'busybox base64' 'od -v -A n -t x1' 'busybox od -v -A n -t x1' ''; do
    [ -n "$encode" ] || break
    case $(printf 'a\377\n' | $encode) in Yf8K | *61*ff*0a*) break ;; esac
  done
  tool_flags=-
  for limit in 'timeout -k 2' 'busybox timeout -k 2' timeout 'busybox timeout' ''; do
    if [ -z "$limit" ]; then
      tool_flags=no-timeout
      break
    fi
    if $limit 9 true; then
      # Only GNU timeout makes a process group of its own, and says 124 itself.
      case $($limit --version </dev/null) in *coreutils*) break ;; esac
      tool_flags=plain-timeout
      if setsid true; then limit="setsid $limit"; elif busybox setsid true; then limit="busybox setsid $limit"; fi
      break
    fi
  done
} 2>/dev/null

session() { # -> $ssh: SSH_CONNECTION, of this process or of the process that called sudo
  ssh=${SSH_CONNECTION-}
  pid=$$
  for _ in 1 2 3 4 5 6; do
    if [ -n "$ssh" ]; then return; fi
    pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status")
    case $pid in '' | 0 | 1 | *[!0-9]*) return ;; esac
    ssh=$(tr '\000\n' '\n ' <"/proc/$pid/environ" | sed -n 's/^SSH_CONNECTION=//p')
  done
} 2>/dev/null

collect() { # LANES TOTAL-SECONDS NEEDS-ROOT(0,1) SYS PROC PEERS
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  LC_ALL=C
  export PATH LC_ALL
  unset ENV BASH_ENV CDPATH GREP_OPTIONS GZIP LANGUAGE PYTHONHOME PYTHONPATH
  umask 077
  { : >&2; } 2>/dev/null || exec 2>/dev/null
  cd / || return
  nl='
'
  lanes=$1 needs_root=$3 sys=$4 proc=$5 peers=$6
  clock
  deadline=$((now + $2 * 1000))
  session
  if [ -n "$ssh" ]; then
    SSH_CONNECTION=$ssh # sections ask where the session comes in
    export SSH_CONNECTION
  fi
  choose_tools
  uid=$(id -u)
  sudo_works=no
  if [ "$needs_root" = 1 ] && [ "$uid" != 0 ]; then
    { $limit ${limit:+9} sudo -n sh -c : </dev/null >/dev/null 2>&1; } 2>/dev/null
    # One that does not answer has not refused: no password would help.
    case $? in 0) sudo_works=yes ;; 124 | 137 | 143) sudo_works=stuck ;; esac
  fi

  set --
  for path in "$sys"/class/net/*; do
    name=${path##*/}
    if [ "$name" = lo ]; then continue; fi
    if [ -e "$path/device" ] || [ -d "$path/bonding" ] || [ -e "$proc/net/bonding/$name" ] || [ -e "$proc/net/vlan/$name" ]; then
      set -- "$@" "N$name"
    fi
  done
  for path in "$sys"/class/infiniband/*; do
    if [ -e "$path" ]; then set -- "$@" "R${path##*/}"; fi
  done

  form=b64
  case $encode in *od*) form=hex ;; esac
  one_lane -1 "$@" # runs nothing: counts the jobs
  jobs=$((job + 1))
  session_text=-
  if [ -z "$head" ] || [ -z "$encode" ]; then
    form=none jobs=0
  elif [ -n "$ssh" ]; then
    session_text=$(printf %s "$ssh" | $encode | tr -d ' \n')
  fi
  body="fabrictool-snapshot 1 $form $jobs ${uid:--} $session_text $tool_flags"
  if [ "$jobs" -gt 0 ]; then body="$body$nl$(all_lanes 0 "$@")"; fi
  body="$body${nl}end $jobs"

  packed=''
  if [ "$form" != none ]; then packed=$(printf '%s\n' "$body" | gzip -c 2>/dev/null | $encode); fi
  if [ -n "$packed" ]; then
    body=$packed form="gzip-$form" sum=-
  else
    form=plain sum=$(printf '%s\n' "$body" | cksum 2>/dev/null) || sum=-
    sum=${sum%% *}
  fi
  printf '\nFABRICTOOL-FRAME 1 %s\n%s\nFABRICTOOL-END 1 %s %s\n' "$form" "$body" "${#body}" "${sum:--}"
}
