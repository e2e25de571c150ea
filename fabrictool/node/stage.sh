# shellcheck shell=sh
# Makes a run's folder on a node. Sent on the standard input of a shell, with calls of these functions after it. The folder belongs to
# whoever runs this (root); the folders of its runs to the login user, as whom ranks run. Prints `folder PATH`, `uid N`, what rankenv.sh
# says, and at last `staged`.

begin() { # RUN SECONDS: what comes to be after this ends by itself after so many seconds
  trap '' PIPE # nobody may be listening any more: the guard has to be started all the same
  connection
  run=$1
  owner=$(id -u)
  if [ "$owner" = 0 ]; then
    case ${SUDO_UID:-} in '' | *[!0-9]*) ;; *) owner=$SUDO_UID ;; esac
    folder=/run/fabrictool/$run
  else
    folder=/tmp/fabrictool-$run
  fi
  umask 022
  # Made by us now, and by nobody else before. The end of another run may take the folder of runs away under our hands.
  for try in 1 2 3; do
    [ "$folder" = "/tmp/fabrictool-$run" ] || { mkdir -p /run/fabrictool && chmod 711 /run/fabrictool; }
    mkdir "$folder" && break
    [ "$try" != 3 ] && [ ! -e "$folder" ] || return 1
  done
  chmod 711 "$folder" && alive "$2"
}

tell() {
  echo "folder $folder"
  echo "uid $owner"
}

alive() { # SECONDS
  read -r up _ </proc/uptime
  echo "$((${up%.*} + $1))" >"$folder/until.new" && mv -f "$folder/until.new" "$folder/until"
}

put() { # NAME BASE64
  printf '%s' "$2" | base64 -d >"$folder/$1"
}

run_folder() { # NAME
  mkdir -m 700 "$folder/$1" || return 1
  [ "$(id -u)" != 0 ] || chown "$owner" "$folder/$1"
}

environment() { # NAMES CONSUMER...: values stay in a file that only the login user can read
  (umask 077 && : >"$folder/env" && : >"$folder/names") || return 1
  [ "$(id -u)" != 0 ] || chown "$owner" "$folder/env" "$folder/names" || return 1
  sh "$folder/rankenv.sh" "$folder" "$@"
}

connection() { # -> $sshd $ticks: the sshd that serves this connection, and when it started
  sshd='' ticks='' pid=$$
  for _ in 1 2 3 4 5 6 7 8; do
    read -r stat 2>/dev/null <"/proc/$pid/stat" || return 0
    name=${stat#*(}
    name=${name%)*}
    # shellcheck disable=SC2086 # fields after the command's name
    set -- ${stat##*) }
    case $name in sshd | sshd-session) sshd=$pid ticks=${20}; return 0 ;; esac
    pid=$2
    [ "$pid" -gt 1 ] || return 0
  done
}

watch() {
  set -- sh "$folder/guard.sh" "$run" "$folder" "$sshd" "$ticks"
  if [ "$(id -u)" = 0 ] && [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; then
    # A unit: logind may end what a login session leaves behind.
    systemd-run --quiet --collect --unit="ft-$run-guard" --description="fabrictool: ends run $run when its workstation is gone" \
      --setenv="FABRICTOOL_GUARD=$run" -- "$@" </dev/null
  else
    FABRICTOOL_GUARD=$run setsid "$@" </dev/null >/dev/null 2>&1 &
  fi
}
