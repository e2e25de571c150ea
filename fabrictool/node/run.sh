# shellcheck shell=sh
# Runs one section's text under its time limit; sets $status. Arguments: LIMIT-COMMAND SECONDS TEXT ITEM...
# The limit command makes its own process group, numbered like its pid: what the text left behind in it is killed, or a
# background child would hold the pipe open.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
umask 077
limit=$1 seconds=$2 section=$3
shift 3
if [ -n "$limit" ]; then
  # shellcheck disable=SC2086  # $limit is words
  $limit "$seconds" sh -c "$section" sh "$@" </dev/null &
else
  sh -c "$section" sh "$@" </dev/null &
fi
child=$!
wait "$child"
# shellcheck disable=SC2034  # the caller reads it
status=$?
kill -9 "-$child" 2>/dev/null
# busybox lets the signal end the command itself: 128 + SIGTERM.
case $limit:$status in *setsid*:143) status=124 ;; esac
