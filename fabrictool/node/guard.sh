# Stands by a run on its node: sh FOLDER/guard.sh RUN FOLDER SSHD TICKS. It is there before anything else of the run.
# When the workstation has gone, it ends everything of the run, removes the run's folder and frees the lock. Gone: the sshd of its
# connection has ended (SSHD, started TICKS after boot; "" = not known), or the time in FOLDER/until (seconds since boot) is over.
# It ends by itself when the folder is removed, and frees the lock where whoever removed that came no further. While it waits it keeps
# the run's lock young: to others one of 60 minutes is stale (lock.sh), and a single run may take longer. No process is started then but
# `sleep`, and `touch` every five minutes.
set -u
run=$1 folder=$2 sshd=$3 ticks=$4
trap '' HUP
until=0
sweep=$(cat "$folder/sweep.sh") || exit 1

over() {
  read -r until 2>/dev/null <"$folder/until" || :
  case $until in '' | *[!0-9]*) until=0 ;; esac
  read -r up _ </proc/uptime
  [ "${up%.*}" -lt "$until" ] || return 0
  [ -n "$sshd" ] || return 1
  read -r stat 2>/dev/null <"/proc/$sshd/stat" || return 0
  # shellcheck disable=SC2086 # fields after the command's name
  set -- ${stat##*) }
  [ "${20:-}" != "$ticks" ]
}

keep() {
  read -r holder 2>/dev/null </run/fabrictool.lock/run || holder=
  [ "$holder" != "$run" ] || touch /run/fabrictool.lock 2>/dev/null
}

turn=0
while [ -d "$folder" ]; do
  if over; then
    sh -c "$sweep" fabrictool-sweep "$run" end
    rm -rf "$folder"
    rmdir /run/fabrictool 2>/dev/null
    # What was just about to start, or to lock: without the folder nothing comes after it.
    sleep 1
    sh -c "$sweep" fabrictool-sweep "$run" end
    [ "$(cat /run/fabrictool.lock/run 2>/dev/null)" != "$run" ] || rm -rf /run/fabrictool.lock
    exit 0
  fi
  [ $((turn % 300)) != 0 ] || keep
  turn=$((turn + 1))
  sleep 1
done
sleep 1
# The folder may be there anew: one command line makes several runs one after the other.
[ -d "$folder" ] || [ "$(cat /run/fabrictool.lock/run 2>/dev/null)" != "$run" ] || rm -rf /run/fabrictool.lock
