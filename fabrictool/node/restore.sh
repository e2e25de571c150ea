# Put a file back as it was before this run: sh -c THIS fabrictool-restore PATH RUN
set -u
path=$1 keep=/var/lib/fabrictool/$2
[ -L "$path" ] && path=$(readlink -f "$path")
if [ -e "$keep$path.absent" ]; then rm -f "$path"
elif [ -e "$keep$path" ]; then
  temp=$(mktemp "${path%/*}/.fabrictool.XXXXXX") && cp -p "$keep$path" "$temp" && mv -f "$temp" "$path" || exit 1
else
  echo "no backup of $path in $keep" >&2
  exit 1
fi
sync "${path%/*}" 2>/dev/null || sync
exit 0
