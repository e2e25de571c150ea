# Starts one node's part of a run under the run's id and waits for it. Sent on the standard input of a shell:
#   sh -s RUN FOLDER NAME NUMBER SECONDS IMAGE COMMAND...
# NAME: of the run; NUMBER: of its first rank, or "launcher"; COMMAND: what ranks.sh takes, by way of `sh`. It runs as the owner of
# FOLDER/NAME (the login user), in a unit ft-RUN-NUMBER where systemd runs and we are root, else in a session of its own; with IMAGE in a
# container of that name. FABRICTOOL_RUN=RUN is in the environment of everything that it starts.
# Prints `LABEL STATUS MILLISECONDS` for each program that ended by itself or by its limit. Exit status: that of the start.
set -u
run=$1 folder=$2 name=$3 number=$4 seconds=$5 image=$6
shift 6
unit=ft-$run-$number
out=$folder/$name
owner=$(stat -c %u "$out") || exit 1
[ "$(id -u)" = 0 ] || owner=
if [ -n "$image" ]; then
  set -- sh "$folder/ranks.sh" box "$folder" "$name" "$seconds" "$unit" "$image" "$@"
  [ -z "$owner" ] || owner=0
fi
me=${owner:-$(id -u)}
home=$(getent passwd "$me" | cut -d: -f6)
user=$(id -nu "$me" 2>/dev/null) || user=$me
group=$(id -g "$me") || exit 1
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# The limit of all of it, over that of each program in it.
most=$((seconds + 10))

FABRICTOOL_RUN=$run
export FABRICTOOL_RUN
set -- env -i "PATH=$path" "HOME=${home:-/}" "USER=$user" "LOGNAME=$user" LANG=C.UTF-8 "FABRICTOOL_RUN=$run" "$@"
if [ "$(id -u)" = 0 ] && [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; then
  [ "$owner" = 0 ] || set -- setpriv --reuid="$owner" --regid="$group" --init-groups "$@"
  # By way of a file: systemd would put its own variables in the place of every $ on the command line.
  words="exec"
  for word; do words="$words '$(printf '%s' "$word" | sed "s/'/'\\\\''/g")'"; done
  printf '%s\n' "$words" >"$folder/$name.$number.sh" || exit 1
  systemd-run --quiet --collect --unit="$unit" --description="fabrictool run $run" --property=KillMode=control-group \
    --property=RuntimeMaxSec="$most" --property=TimeoutStopSec=5 --property=LimitMEMLOCK=infinity \
    --setenv="FABRICTOOL_RUN=$run" -- sh "$folder/$name.$number.sh" </dev/null
  status=$?
  # Not by --wait: that needs D-Bus, and a start does not.
  while [ "$status" = 0 ] && systemctl is-active --quiet "$unit.service" </dev/null; do sleep 1; done
else
  case $owner in '' | 0) ;; *) set -- setpriv --reuid="$owner" --regid="$group" --init-groups "$@" ;; esac
  setsid timeout -k 5 "$most" "$@" </dev/null &
  wait $!
  status=$?
fi
for file in "$out"/*.rc; do
  [ -f "$file" ] && [ ! -L "$file" ] || continue
  label=${file##*/}
  read -r rc ms <"$file" || continue
  case $rc$ms in *[!0-9]*) ;; *) echo "${label%.rc} $rc $ms" ;; esac
done
exit "$status"
