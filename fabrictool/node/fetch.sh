# What a run has left in its folder on this node: sh -c THIS fabrictool-fetch FOLDER NAME
# For each file `@ NAME BYTES SENT`, so many bytes, a newline; the last line is `end`. Of long files only the beginning is sent: NCCL says
# first what it uses. A link is not followed: the folder belongs to the user of the ranks.
set -u
LC_ALL=C
export LC_ALL
folder=$1 name=$2
budget=25165824 # 24 MiB over all files
count=0

give() { # LABEL FILE MOST
  [ -f "$2" ] && [ ! -L "$2" ] && [ -r "$2" ] || return 0
  case $1 in *[!A-Za-z0-9._-]*) return 0 ;; esac
  count=$((count + 1))
  [ "$count" -le 400 ] || return 0
  size=$(wc -c <"$2") || return 0
  size=$((size)) sent=$size
  [ "$sent" -le "$3" ] || sent=$3
  [ "$sent" -le "$budget" ] || sent=$budget
  budget=$((budget - sent))
  echo "@ $1 $size $sent"
  # A file that shrank meanwhile is filled up: the reader counts bytes.
  { head -c "$sent" "$2"; head -c "$sent" /dev/zero; } | head -c "$sent"
  echo
}

give clock.start "$folder/$name.start" 64
for file in "$folder/$name"/*; do
  label=${file##*/}
  case $label in
    *.rc) give "$label" "$file" 64 ;;
    *.out) give "$label" "$file" 1048576 ;;
    *.err) give "$label" "$file" 262144 ;;
    *.json) give "$label" "$file" 2097152 ;;
    *.log) give "$label" "$file" 1048576 ;;
  esac
done
echo end
