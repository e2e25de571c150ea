# The environment that a run's ranks get, taken on the node itself: sh -c THIS fabrictool-rankenv FOLDER NAMES CANDIDATE...
# FOLDER: where `env` (lines for a shell) and `names` are written; - = nowhere. NAMES: an extended regular expression of the variables
# that count. The first candidate that is here wins:
#   docker:GLOB     a container: of its main process what that was started with; of one that is stopped what it would be started with
#   systemd:GLOB    a service: of its main process, or else as its unit and its EnvironmentFiles say
#   file:/PATH      docker's env-file rules: no quotes, nothing expands, a name alone takes nothing
# Prints `source CANDIDATE` (`source -`: none is here), `n NAME` for each variable, `conf NAME` for each that /etc/nccl.conf or the login
# user's ~/.nccl.conf sets, and at last `end`. Values are never printed. Docker or systemd that does not answer in time may have the
# candidate: exit status 1. A docker without its daemon has none.
set -u
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
folder=$1 allowed=$2
shift 2
found=-

ask() { # COMMAND...: its answer. `timeout` says 124 of one that hangs: then nobody knows whose environment it is
  timeout -k 2 10 "$@" 2>/dev/null </dev/null
}
silent() { # STATUS NAME
  case $1 in 124 | 137) echo "$2 did not answer in time: whether the consumer is here is not known" >&2; exit 1 ;; esac
}

# Each reader gives NAME=VALUE records; a newline inside a value travels as \001.
environ() { tr '\000\n' '\n\001' <"/proc/$1/environ"; } 2>/dev/null

# {"A=x","B=y"} of docker inspect -> records.
json_words() {
  awk '{
    text = $0; word = ""; inside = 0; n = length(text)
    for (i = 1; i <= n; i++) {
      c = substr(text, i, 1)
      if (!inside) { if (c == "\"") { inside = 1; word = "" } continue }
      if (c == "\"") { inside = 0; print word; continue }
      if (c == "\\") {
        c = substr(text, ++i, 1)
        if (c == "n") c = "\001"
        else if (c == "t") c = "\t"
        else if (c == "r") c = "\r"
        else if (c == "u") {
          hex = tolower(substr(text, i + 1, 4)); i += 4
          c = hex == "003c" ? "<" : hex == "003e" ? ">" : hex == "0026" ? "&" : "?"
        }
      }
      word = word c
    }
  }'
}

# Words of a unit`s Environment= as `systemctl show` prints it -> records.
unit_words() {
  awk '{
    n = length($0); word = ""; quote = ""; some = 0
    for (i = 1; i <= n; i++) {
      c = substr($0, i, 1)
      if (c == "\\" && i < n) { c = substr($0, ++i, 1); if (c == "n") c = "\001"; else if (c == "t") c = "\t"; word = word c; some = 1; continue }
      if (quote == "" && (c == "\"" || c == "\047")) { quote = c; some = 1; continue }
      if (quote != "" && c == quote) { quote = ""; continue }
      if (quote == "" && c == " ") { if (some) print word; word = ""; some = 0; continue }
      word = word c; some = 1
    }
    if (some) print word
  }'
}

# A file as systemd reads it: comments with # or ;, a line that ends in \ goes on, one pair of quotes round the value is taken off, and
# a backslash hides the next character (between double quotes only of a few).
unit_file() {
  awk '
    function plain(text, only,   i, c, out) {
      out = ""
      for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "\\" && i < length(text) && (only == "" || index(only, substr(text, i + 1, 1)))) c = substr(text, ++i, 1)
        out = out c
      }
      return out
    }
    function give(line,   at, name, value, q) {
      sub(/^[ \t]+/, "", line); sub(/[ \t\r]+$/, "", line)
      if (line == "" || line ~ /^[#;]/) return
      at = index(line, "="); if (at < 2) return
      name = substr(line, 1, at - 1); value = substr(line, at + 1)
      sub(/[ \t]+$/, "", name); sub(/^[ \t]+/, "", value)
      q = substr(value, 1, 1)
      if ((q == "\"" || q == "\047") && length(value) > 1 && substr(value, length(value)) == q) {
        value = substr(value, 2, length(value) - 2)
        if (q == "\"") value = plain(value, "\"\\`$")
      } else value = plain(value, "")
      print name "=" value
    }
    { line = held $0; held = ""; if (line ~ /\\$/ && line !~ /^[ \t]*[#;]/) { held = substr(line, 1, length(line) - 1); next } give(line) }
    END { if (held != "") give(held) }' "$1"
}

docker_file() { awk '{ sub(/^[ \t]+/, ""); sub(/\r$/, "") } /^#/ || !/=/ { next } { print }' "$1"; }

from_docker() { # GLOB
  command -v docker >/dev/null 2>&1 || return 1
  for all in '' -a; do
    # shellcheck disable=SC2086 # nothing, or -a
    rows=$(ask docker ps $all --no-trunc --format '{{.ID}} {{.Names}}') || { silent $? docker; return 1; }
    while read -r id name; do
      # shellcheck disable=SC2254 # it is a glob
      case $name in $1) ;; *) continue ;; esac
      if [ -z "$all" ]; then
        pid=$(ask docker inspect -f '{{.State.Pid}}' "$id") || silent $? docker
        case $pid in '' | 0 | *[!0-9]*) continue ;; esac
        records=$(environ "$pid")
      else
        records=$(ask docker inspect -f '{{json .Config.Env}}' "$id") || silent $? docker
        records=$(printf '%s\n' "$records" | json_words)
      fi
      [ -n "$records" ] || continue
      found=docker:$name
      return 0
    done <<ROWS
$rows
ROWS
  done
  return 1
}

of_unit() { # PROPERTY UNIT
  ask systemctl show "--property=$1" --value "$2" || silent $? systemd
}

from_unit() { # GLOB
  command -v systemctl >/dev/null 2>&1 || return 1
  case $1 in *.*) glob=$1 ;; *) glob=$1.service ;; esac
  case $glob in
    *[*?[]*)
      unit=$(ask systemctl list-units --all --plain --no-legend --full --type=service "$glob") || silent $? systemd
      unit=$(printf '%s\n' "$unit" | awk 'NR == 1 { for (i = 1; i <= 2; i++) if ($i ~ /[.]service$/) { print $i; exit } }')
      ;;
    *) unit=$glob ;;
  esac
  [ -n "$unit" ] || return 1
  loaded=$(of_unit LoadState "$unit") || exit 1
  [ "$loaded" = loaded ] || return 1
  pid=$(of_unit MainPID "$unit") || exit 1
  case $pid in '' | 0 | *[!0-9]*) ;; *) records=$(environ "$pid") && [ -n "$records" ] && { found=systemd:$unit; return 0; } ;; esac
  words=$(of_unit Environment "$unit") || exit 1
  files=$(of_unit EnvironmentFiles "$unit") || exit 1
  records=$(
    printf '%s\n' "$words" | unit_words
    # Files come after Environment= and win over it.
    printf '%s\n' "$files" | sed -n 's/^\(.*\) (ignore_errors=[a-z]*)$/\1/p' |
      while IFS= read -r file; do [ -r "$file" ] && unit_file "$file"; done
  )
  found=systemd:$unit
}

from_file() { # PATH
  [ -f "$1" ] && [ -r "$1" ] || return 1
  records=$(docker_file "$1")
  found=file:$1
}

records=
for candidate in "$@"; do
  case $candidate in
    docker:*) from_docker "${candidate#docker:}" && break ;;
    systemd:*) from_unit "${candidate#systemd:}" && break ;;
    file:/*) from_file "${candidate#file:}" && break ;;
  esac
done
[ "$found" != - ] || records=
echo "source $found"

# Later records win, as docker and systemd have it; of a process there is only one of each.
kept=$(printf '%s\n' "$records" | awk -v names="^($allowed)=" '
  $0 ~ names { name = substr($0, 1, index($0, "=") - 1); if (!(name in value)) order[++n] = name; value[name] = substr($0, length(name) + 2) }
  END { for (i = 1; i <= n; i++) print order[i] "=" value[order[i]] }')
printf '%s\n' "$kept" | sed -n 's/^\([A-Za-z0-9_]*\)=.*/n \1/p'
if [ "$folder" != - ]; then
  printf '%s\n' "$kept" | awk '/=/ {
    at = index($0, "="); text = substr($0, at + 1); out = ""
    while ((i = index(text, "\047")) > 0) { out = out substr(text, 1, i - 1) "\047\\\047\047"; text = substr(text, i + 1) }
    print "export " substr($0, 1, at - 1) "=\047" out text "\047"
  }' | tr '\001' '\n' >"$folder/env" || exit 1
  printf '%s\n' "$kept" | sed -n 's/^\([A-Za-z0-9_]*\)=.*/\1/p' >"$folder/names" || exit 1
fi

home=
case ${SUDO_UID:-} in '' | *[!0-9]*) home=${HOME:-} ;; *) home=$(getent passwd "$SUDO_UID" | cut -d: -f6) ;; esac
for conf in /etc/nccl.conf ${home:+"$home/.nccl.conf"}; do
  [ -f "$conf" ] && [ -r "$conf" ] && sed -n 's/^\(NCCL_[A-Z0-9_]*\)=.*/conf \1/p' "$conf"
done
echo end
