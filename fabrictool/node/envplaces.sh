# Where NCCL/Gloo/UCX variables are set in files of other owners. Read only. Of these files only the assignments of the names below
# leave the node; what else stands in them (tokens, passwords) does not. Prints:
#   @ STYLE PATH    a file that was read     ! PATH    one that may not be read     < PATH    one that was not read whole
#   a LINE TEXT     an assignment as it stands there, quotes and all
#   f LINE PATH     a unit's EnvironmentFile
# The last line is "end".
set -u
export LC_ALL=C
command -v awk >/dev/null || { echo "awk: not found" >&2; exit 127; }

NAMES='NCCL_|GLOO_|UCX_|TP_SOCKET_IFNAME|MASTER_ADDR|HOST_IP|SGLANG_LOCAL_IP_NIC|CUTE_DSL_ARCH|VLLM_NIXL_SIDE_CHANNEL_'

# Whether what lies behind the part that is read may be ours too. A line that the limit cuts in two counts to both.
more() { # FILE
  size=$(wc -c <"$1")
  [ "$size" -gt 262144 ] || return 1
  [ "$size" -gt 16777216 ] || tail -c +245761 "$1" | grep -qaE "$NAMES"
}

# STYLE line: one assignment a line (to its end). STYLE words: shell words or systemd's.
scan() {
  style=$1 file=$2
  dir=${file%/*}
  if [ -d "$dir" ] && [ ! -x "$dir" ]; then echo "! $file"; return; fi
  [ -f "$file" ] || return
  if [ ! -r "$file" ]; then echo "! $file"; return; fi
  echo "@ $style $file"
  if more "$file"; then echo "< $file"; fi
  case $style in conf | pam | envfile) way=line ;; *) way=words ;; esac
  head -c 262144 "$file" | awk -v way="$way" -v style="$style" -v file="$file" '
    BEGIN { names = "^(NCCL_|GLOO_|UCX_)[A-Za-z0-9_.-]*$|^(TP_SOCKET_IFNAME|MASTER_ADDR|VLLM_HOST_IP|SGLANG_HOST_IP|SGLANG_LOCAL_IP_NIC|HOST_IP|CUTE_DSL_ARCH|VLLM_NIXL_SIDE_CHANNEL_HOST|VLLM_NIXL_SIDE_CHANNEL_PORT)$" }
    function give(w,   t, i) {
      t = w
      sub(/^Environment=/, "", t)
      w = t
      sub(/^["\047]/, "", t)
      i = index(t, "=")
      if (i < 2 || substr(t, 1, i - 1) !~ names) return
      # A second assignment within one word is not of ours to show.
      sub(/[ \t][A-Za-z_][A-Za-z0-9_]*=.*/, " (cut)", w)
      print "a " NR " " w
    }
    style == "unit" && /^[ \t]*EnvironmentFile[ \t]*=/ { f = $0; sub(/^[^=]*=[ \t]*-?/, "", f); sub(/[ \t\r]+$/, "", f); print "f " NR " " f; next }
    !/(NCCL_|GLOO_|UCX_|TP_SOCKET_IFNAME|MASTER_ADDR|HOST_IP|SGLANG_LOCAL_IP_NIC|CUTE_DSL_ARCH|VLLM_NIXL_SIDE_CHANNEL_)/ { next }
    length($0) > 16384 { print "< " file; next }
    way == "line" {
      i = index($0, "=")
      if (i < 2) next
      k = substr($0, 1, i - 1)
      sub(/^[ \t]*(export[ \t]+)?/, "", k)
      sub(/[ \t]+$/, "", k)
      if (k ~ names) print "a " NR " " $0
      next
    }
    style == "unit" && /^[ \t]*[#;]/ { next }
    {
      s = $0
      sub(/^[ \t]*Environment[ \t]*=[ \t]*/, "", s)
      n = length(s); w = ""; q = ""
      for (i = 1; i <= n; i++) {
        c = substr(s, i, 1)
        if (q == "") {
          if (c == "\\") { w = w c substr(s, ++i, 1); continue }
          if (c == "\"" || c == "\047") { q = c; w = w c; continue }
          if (c ~ /[ \t\r;&|()]/) { give(w); w = ""; continue }
          if (c == "#" && w == "") break
        } else {
          if (c == "\\" && q == "\"") { w = w c substr(s, ++i, 1); continue }
          if (c == q) q = ""
        }
        w = w c
      }
      give(w)
    }'
}

# Homes lie anywhere: those of services too, which may have no login shell.
{
  printf '%s\n' /root /home/*
  awk -F: '$6 ~ "^/[^/]" { print $6 }' /etc/passwd 2>/dev/null
} | sort -u | while IFS= read -r home; do
  scan conf "$home/.nccl.conf"
  for rc in .bashrc .bash_profile .profile .zshenv; do scan shell "$home/$rc"; done
done
scan pam /etc/environment
for f in /etc/bash.bashrc /etc/bashrc /etc/profile /etc/profile.d/*.sh; do scan shell "$f"; done
for d in /usr/lib/systemd/system /usr/local/lib/systemd/system /run/systemd/system /etc/systemd/system; do
  for f in "$d"/*.service "$d"/*.service.d/*.conf; do
    [ -f "$f" ] || continue
    # Hundreds of units set nothing of this: one grep each is cheaper than a scan.
    grep -qsaE 'NCCL_|GLOO_|UCX_|TP_SOCKET_IFNAME|MASTER_ADDR|HOST_IP|SGLANG_LOCAL_IP_NIC|CUTE_DSL_ARCH|EnvironmentFile' "$f" || continue
    scan unit "$f"
    sed -n 's/^[[:space:]]*EnvironmentFile[[:space:]]*=[[:space:]]*-*//p' "$f" | tr -d '\r' | while IFS= read -r e; do
      case $e in *[%*?[]* | *' '*) ;; /*) scan envfile "$e" ;; esac
    done
  done
done
echo end
