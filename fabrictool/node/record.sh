# shellcheck shell=sh
# Prints one section's answer: `E RC MS`, encoded stderr, `O`, encoded stdout, `.`. No temporary files.
# Arguments: FEW HEAD ENCODE LIMIT-COMMAND RUN-TEXT OUT-BYTES ERR-BYTES SECONDS SUDO TEXT ITEM...
# Each stream is read one byte past its limit, so that the reader can tell whether it was cut, and then drained: the command
# must not die of a closed pipe. Order: a reader prints only at its end of file, and whoever prints before it still holds
# that pipe open. Processes are what a section costs, so one (FEW, od) reads and encodes where a text three times as long is no harm.
few=$1 head=$2 encode=$3 limit=$4 run=$5 out=$6 err=$7
shift 7

clock() {
  now=0
  if read -r up _ </proc/uptime; then now=$((${up%.*} * 1000 + (1${up#*.} - 100) * 10)); fi
} 2>/dev/null

# shellcheck disable=SC2086  # $few, $head and $encode are words
read_stream() { # BYTES -> $text
  if [ -n "$few" ] && [ "$1" -le 1048576 ]; then
    text=$($few "$(($1 + 1))")
  else
    text=$($head "$(($1 + 1))" | $encode)
  fi
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
  { go "$@" 3>&- 4>&-; clock; printf 'E %s %s\n' "$status" "$((now - begin))" >&4; } 2>&1 >&3 3>&- | {
    read_stream "$err" 4>&-
    printf '%s\nO\n' "$text" >&4
  } 3>&-
} 3>&1 | {
  read_stream "$out" 4>&-
  printf '%s\n.\n' "$text"
}
