# One writer per node: sh -c THIS fabrictool-lock take|drop RUN WHO
# The lock is a directory in /run: a reboot frees it. One older than 60 minutes is stale: no run holds it that long without a write.
set -u
verb=$1 run=$2 who=$3 lock=/run/fabrictool.lock
mine() { [ "$(cat "$lock/run" 2>/dev/null)" = "$run" ]; }
if [ "$verb" = drop ]; then
  mine && rm -rf "$lock"
  exit 0
fi
mine && { touch "$lock"; exit 0; }
if [ -d "$lock" ] && [ -n "$(find "$lock" -maxdepth 0 -mmin +60 2>/dev/null)" ]; then rm -rf "$lock"; fi
if mkdir "$lock" 2>/dev/null; then
  printf '%s\n' "$run" >"$lock/run" && printf '%s\n' "$who" >"$lock/who" && exit 0
  rm -rf "$lock"
  echo "cannot write $lock" >&2
  exit 1
fi
# A full or read-only /run, or something else of that name, is nobody's lock.
[ -d "$lock" ] || { echo "cannot make the folder $lock" >&2; exit 1; }
echo "locked by run $(cat "$lock/run" 2>/dev/null) of $(cat "$lock/who" 2>/dev/null); remove $lock on the node if that run is gone" >&2
exit 75
