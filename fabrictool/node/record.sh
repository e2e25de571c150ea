# shellcheck shell=sh
# Prints one section's answer: `E RC MS`, encoded stderr, `O`, encoded stdout, `.`. No temporary files.
# Arguments: HEAD ENCODE LIMIT-COMMAND RUN-TEXT OUT-BYTES ERR-BYTES SECONDS SUDO TEXT ITEM...
# Each stream is read one byte past its limit, so that the reader can tell whether it was cut, and then drained: the command
# must not die of a closed pipe. Order: a reader prints only at its end of file, and whoever prints before it still holds
# that pipe open.
head=$1 encode=$2 limit=$3 run=$4 out=$5 err=$6
shift 6

clock() {
  now=0
  if read -r up _ </proc/uptime; then now=$((${up%.*} * 1000 + (1${up#*.} - 100) * 10)); fi
} 2>/dev/null

read_stream() { # BYTES -> $text
  # shellcheck disable=SC2086  # $head and $encode are words
  text=$($head "$(($1 + 1))" | $encode)
  [ "${#text}" -lt "$1" ] || cat >/dev/null
}

go() { # SECONDS SUDO TEXT ITEM...
  seconds=$1 sudo=$2 section=$3
  shift 3
  if [ -n "$sudo" ]; then
    # shellcheck disable=SC2086  # $sudo is words
    $sudo sh -c "$run
exit \$status" sh "$limit" "$seconds" "$section" "$@"
    status=$?
  else
    set -- "$limit" "$seconds" "$section" "$@"
    eval "$run"
  fi
}

exec 4>&1
clock
begin=$now
{
  told=$(
    {
      { go "$@" 3>&- 4>&- 5>&-; echo "$status" >&5; } 2>&1 >&3 3>&- 4>&- | {
        read_stream "$err" 5>&-
        printf '%s\nO\n' "$text"
      } 3>&- 4>&-
    } 5>&1
  )
  clock
  nl='
'
  status=${told%%"$nl"*}
  case $status in
    '' | *[!0-9]*) ;; # killed from outside: the caller sees that the `E` line is missing
    *) printf 'E %s %s\n%s\n' "$status" "$((now - begin))" "${told#*"$nl"}" >&4 ;;
  esac
} 3>&1 | {
  read_stream "$out" 4>&-
  printf '%s\n.\n' "$text"
}
