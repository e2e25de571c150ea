# The kernel's log of the last $1 hours of this boot, its end at most, and this node's own clock. Read only. Prints lines:
#   clock SECONDS (since 1970)   uptime SECONDS   boot ID
#   first SECONDS     after the boot, of the oldest line of any program that the system's journal still has of it (where it tells)
#   log journalctl|dmesg, then the log as that tool prints it, then "rc N" and "end"
set -u
export LC_ALL=C
MOST=1000000
nl='
'
case ${1:-} in '' | *[!0-9]*) echo "hours: a whole number" >&2; exit 2 ;; esac
printf 'clock %s\n' "$(date +%s)"
printf 'uptime %s\n' "$(cut -d' ' -f1 /proc/uptime)"
printf 'boot %s\n' "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo -)"
if command -v journalctl >/dev/null 2>&1; then
  log=$({ journalctl -k -q --no-pager -o short-iso "--since=-$1hours" 2>&1 </dev/null; echo "rc $?"; } | tail -c "$MOST")
  # No line at all: nothing keeps the kernel's messages in the journal here (a container, ReadKMsg=no).
  case $log in
    'rc 0') ;;
    *"${nl}rc 0")
      # A journal that is full gives up its oldest files: what was in them nobody can tell.
      oldest=$(journalctl --system -b -q --no-pager -o short-monotonic 2>/dev/null </dev/null | head -n 1)
      case $oldest in '['*.*']'*) oldest=${oldest#?} && printf 'first %s\n' "${oldest%%]*}" ;; esac
      printf 'log journalctl\n%s\nend\n' "$log"
      exit 0
      ;;
  esac
fi
if ! command -v dmesg >/dev/null 2>&1; then
  [ -z "${log-}" ] || { printf 'log journalctl\n%s\nend\n' "$log"; exit 0; }
  echo "journalctl, dmesg: not found" >&2
  exit 127
fi
form='--time-format iso'
dmesg $form >/dev/null 2>&1 </dev/null || form='' # busybox and old util-linux have no formats
echo 'log dmesg'
# shellcheck disable=SC2086 # words
{ dmesg $form 2>&1 </dev/null; echo "rc $?"; } | tail -c "$MOST"
echo end
