# A sign of life, and the start of a run: sh -c THIS fabrictool-mark FOLDER SECONDS NAME
# Everything of the run ends by itself after so many seconds, unless another sign comes. NAME: the clock is noted for it ("" = none).
# The run's lock is made young again: to others one of 60 minutes is stale (lock.sh), and several slow runs take longer.
set -u
folder=$1 seconds=$2 name=$3
read -r up _ </proc/uptime
echo "$((${up%.*} + seconds))" >"$folder/until.new" && mv -f "$folder/until.new" "$folder/until" || exit 1
[ -z "$name" ] || date +%s.%N >"$folder/$name.start" || exit 1
lock=/run/fabrictool.lock
if [ "$(cat "$lock/run" 2>/dev/null)" = "${folder##*/}" ]; then touch "$lock"; fi
exit 0
