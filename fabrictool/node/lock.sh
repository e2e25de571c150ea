# One writer per node: sh -c THIS fabrictool-lock take|drop RUN WHO
# The lock is a directory in /run: a reboot frees it. One older than 60 minutes is stale: a run that still goes on keeps its own young
# (mark.sh, guard.sh). Of several that find one stale, one takes it away, and only if it still is the one that was found.
set -u
verb=$1 run=$2 who=$3 lock=/run/fabrictool.lock
holder() { cat "$lock/run" 2>/dev/null; }
mine() { [ "$(holder)" = "$run" ]; }
stale() { [ -d "$lock" ] && [ -n "$(find "$lock" -maxdepth 0 -mmin +60 2>/dev/null)" ]; }
if [ "$verb" = drop ]; then
  mine && rm -rf "$lock"
  exit 0
fi
mine && { touch "$lock"; exit 0; }
old=$(holder)
if stale; then
  # Only whoever makes this folder may end that run's lock; by now another may have, and have taken its own: look again.
  over=$lock.over.$(printf '%s' "$old" | tr -cd 'A-Za-z0-9-')
  if mkdir "$over" 2>/dev/null; then
    trap 'rm -rf "$over"' EXIT
    trap 'exit 1' HUP INT TERM
    if [ "$(holder)" = "$old" ] && stale; then mv "$lock" "$over/"; fi
    rm -rf "$over"
    trap - EXIT HUP INT TERM
  fi
fi
if mkdir "$lock" 2>/dev/null; then
  printf '%s\n' "$run" >"$lock/run" && printf '%s\n' "$who" >"$lock/who" && exit 0
  rm -rf "$lock"
  echo "cannot write $lock" >&2
  exit 1
fi
# A full or read-only /run, or something else of that name, is nobody's lock.
[ -d "$lock" ] || { echo "cannot make the folder $lock" >&2; exit 1; }
echo "locked by run $(holder) of $(cat "$lock/who" 2>/dev/null); remove $lock on the node if that run is gone" >&2
exit 75
