# Where process $1 stands: py-spy, else gdb, else eu-stack, else what the kernel tells of its threads. A tool stops the process for the
# moment of its look; none writes to it. Prints the tool's own text, or "@task TID NAME WCHAN SYSCALL" lines; the last line is "end TOOL".
set -u
export LC_ALL=C
pid=$1
[ -d "/proc/$pid" ] || { echo "process $pid is gone" >&2; exit 3; }
spy=
for at in py-spy /usr/local/bin/py-spy /root/.local/bin/py-spy /opt/py-spy/bin/py-spy; do
  if command -v "$at" >/dev/null 2>&1; then spy=$at; break; fi
done
try() { # TOOL SECONDS ARGV...: its answer, if it has one
  tool=$1 limit=$2
  shift 2
  out=$(timeout -s INT -k 5 "$limit" "$@" </dev/null)
  rc=$?
  [ "$rc" -eq 0 ] && [ -n "$out" ] || return 1
  printf '%s\nend %s\n' "$out" "$tool"
  exit 0
}
if [ -n "$spy" ]; then
  try py-spy 20 "$spy" dump --native --pid "$pid"
  try py-spy 10 "$spy" dump --nonblocking --pid "$pid"
fi
if command -v gdb >/dev/null 2>&1; then
  try gdb 30 gdb -p "$pid" -batch -nx -nh -ex 'set pagination off' -ex 'thread apply all bt 64'
fi
if command -v eu-stack >/dev/null 2>&1; then try eu-stack 20 eu-stack -p "$pid"; fi
count=0
for task in /proc/"$pid"/task/[0-9]*; do
  count=$((count + 1))
  [ "$count" -le 300 ] || break
  name=$(tr -c 'A-Za-z0-9_.:+-' '_' <"$task/comm" 2>/dev/null)
  printf '@task %s %s %s %s\n' "${task##*/}" "${name%_}" "$(cat "$task/wchan" 2>/dev/null || echo '?')" \
    "$(cut -d' ' -f1 "$task/syscall" 2>/dev/null || echo '?')"
done
echo 'end kernel'
