# Put a file in place: sh -c THIS fabrictool-write PATH MODE BEFORE RUN CONTENT_BASE64
# BEFORE: sha256 of the bytes that were judged, "" when the file must not exist. Backup under /var/lib/fabrictool/RUN, never beside
# the file: directories are globbed by their readers. Temp + fsync + rename. Exit 75: the file changed since it was read.
set -u
umask 077
path=$1 mode=$2 before=$3 run=$4 content=$5
[ -L "$path" ] && path=$(readlink -f "$path")
dir=${path%/*}
# A rename would put a file in the place of a device, and a FIFO would never answer.
if [ -e "$path" ] && [ ! -f "$path" ]; then
  echo "$1 is no plain file ($path): nothing written" >&2
  exit 1
fi
digest() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1" | cut -d' ' -f1
  else openssl dgst -sha256 <"$1" | sed 's/.*= *//'; fi
}
if [ -e "$path" ]; then now=$(digest "$path"); else now=; fi
if [ "$now" != "$before" ]; then
  echo "$path changed since it was read (now ${now:-absent}); nothing written" >&2
  exit 75
fi
[ -d "$dir" ] || (umask 022 && mkdir -p "$dir") || exit 1
keep=/var/lib/fabrictool/$run
# A copy that was cut short (a full disk) must never be taken for the backup.
keep_whole() { cp -p "$path" "$keep$path.part" && mv -f "$keep$path.part" "$keep$path" || { rm -f "$keep$path.part"; return 1; }; }
mkdir -p "$keep${dir}" || exit 1
if [ ! -e "$keep$path" ] && [ ! -e "$keep$path.absent" ]; then
  if [ -e "$path" ]; then keep_whole || exit 1; else : >"$keep$path.absent" || exit 1; fi
fi
temp=$(mktemp "$dir/.fabrictool.XXXXXX") || exit 1
trap 'rm -f "$temp"' EXIT
printf '%s' "$content" | base64 -d >"$temp" || exit 1
chmod "$mode" "$temp" || exit 1
if [ -e "$path" ]; then chown "$(stat -c %u:%g "$path")" "$temp" || exit 1; fi
sync "$temp" 2>/dev/null || sync
mv -f "$temp" "$path" || exit 1
command -v restorecon >/dev/null 2>&1 && restorecon "$path"
sync "$dir" 2>/dev/null || sync
exit 0
