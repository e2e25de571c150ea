#!/bin/sh
# RoCE QoS of one interface, set again when the interface appears. Written by fabrictool: change the spec, not this file.
#
# usage: qos.sh IF [trust=dscp|pcp] [map=26:3,DSCP:PRIORITY...] [pause=off|on] [pfc=0,0,0,1,0,0,0,0] [ecn=3:1,PRIORITY:0|1...]
#
# Compares before it writes (a PFC write takes the link down and up), makes one setting a call, reads each back.
# Exit status: 0 everything is as wanted; 1 something is not, or cannot be read; 2 wrong command line.
# shellcheck disable=SC2317  # the readers are called by name, through ensure
set -u
export LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
failed=0

say() { printf 'qos %s: %s\n' "$nic" "$*" >&2; }
limited() { timeout 20 "$@" </dev/null 2>&1; }

look() { state=$(limited mlnx_qos -i "$nic"); rc=$?; }

dcbx_now() {
	case $state in
	*'DCBX mode: OS controlled'*) echo os ;;
	*'DCBX mode: Firmware controlled'*) echo fw ;;
	*) echo unshown ;;
	esac
}

trust_now() {
	printf '%s\n' "$state" | sed -n -e 's/^Priority trust state: *\([a-z]*\).*/\1/p' -e 's/^Priority trust mode: *\([a-z]*\).*/\1/p'
}

# The priority of DSCP $1; "unmapped" when the map is shown without it.
map_now() {
	[ "$(trust_now)" = dscp ] || return 0
	found=
	shown=
	for row in $(printf '%s\n' "$state" | sed -n 's/^[[:space:]]*prio:\([0-7]\)[[:space:]]*dscp:\([0-9,]*\).*/\1=,\2,/p'); do
		shown=1
		case $row in *,"$1",* | *,0"$1",*) found=${row%%=*} ;; esac
	done
	if [ -n "$found" ]; then echo "$found"; elif [ -n "$shown" ]; then echo unmapped; fi
}

pfc_now() {
	# shellcheck disable=SC2046  # eight words are wanted
	set -- $(printf '%s\n' "$state" | sed -n 's/^[[:space:]]*enabled[[:space:]]\([01[:space:]]*\)$/\1/p')
	[ $# -eq 8 ] && echo "$1,$2,$3,$4,$5,$6,$7,$8"
}

# on, off, or mixed; nothing when either direction is not shown.
pause_now() {
	# shellcheck disable=SC2046  # two words are wanted
	set -- $(limited ethtool -a "$nic" | sed -n -e 's/^RX:[[:space:]]*\(o[nf]*\).*/\1/p' -e 's/^TX:[[:space:]]*\(o[nf]*\).*/\1/p')
	[ $# -eq 2 ] || return 0
	if [ "$1" = "$2" ]; then echo "$1"; else echo mixed; fi
}

ecn_now() { cat "$1" 2>/dev/null; }
ecn_set() { printf '%s\n' "$2" >"$1"; }

# ensure WHAT WANTED GETTER ARG COMMAND...: write only what is read and differs, then read it back.
ensure() {
	what=$1 wanted=$2 getter=$3 arg=$4
	shift 4
	got=$("$getter" "$arg")
	[ "$got" = "$wanted" ] && return 0
	if [ -z "$got" ]; then
		say "$what cannot be read: nothing written"
		failed=1
		return 0
	fi
	if [ "$1" = ecn_set ]; then said=$("$@" 2>&1); else said=$(limited "$@"); fi
	status=$?
	look
	now=$("$getter" "$arg")
	if [ "$now" = "$wanted" ]; then
		say "$what: $got -> $now"
	else
		say "$what: wanted $wanted, reads back ${now:-nothing} after \`$*\` (exit status $status: $(printf '%s\n' "$said" | tail -n 1))"
		failed=1
	fi
}

nic=${1:-}
[ -n "$nic" ] || { echo "usage: qos.sh IF [trust=...] [map=...] [pause=...] [pfc=...] [ecn=...]" >&2; exit 2; }
shift
for word in "$@"; do
	case $word in
	trust=dscp | trust=pcp | map=*[0-9]:[0-7] | pause=on | pause=off | pfc=[01],[01],[01],[01],[01],[01],[01],[01] | ecn=[0-7]:[01]*) ;;
	*) say "not understood: $word"; exit 2 ;;
	esac
done

# The driver may still be at work when its interface appears.
for attempt in 1 2 3; do
	look
	[ "$rc" -ne 127 ] || { say "mlnx_qos is missing"; exit 1; }
	case $state in *'PFC configuration'*) break ;; esac
	[ "$attempt" = 3 ] || sleep 1
done
case $state in
*'PFC configuration'*) ;;
*) say "no state from mlnx_qos (exit status $rc: $(printf '%s\n' "$state" | tail -n 1))"; exit 1 ;;
esac
case $state in
*'lldpad service is running'*) say "lldpad sets QoS here: nothing written"; exit 1 ;;
esac

[ "$(dcbx_now)" = unshown ] || ensure "DCBX mode" os dcbx_now - mlnx_qos -i "$nic" -d os
for word in "$@"; do
	value=${word#*=}
	case $word in
	trust=*) ensure trust "$value" trust_now - mlnx_qos -i "$nic" --trust "$value" ;;
	pause=*) ensure "global pause" "$value" pause_now - ethtool -A "$nic" rx "$value" tx "$value" ;;
	pfc=*) ensure "PFC" "$value" pfc_now - mlnx_qos -i "$nic" -f "$value" ;;
	map=*)
		while [ -n "$value" ]; do
			pair=${value%%,*}
			case $value in *,*) value=${value#*,} ;; *) value= ;; esac
			dscp=${pair%:*} priority=${pair#*:}
			ensure "DSCP $dscp" "$priority" map_now "$dscp" mlnx_qos -i "$nic" --dscp2prio "set,$dscp,$priority"
		done
		;;
	ecn=*)
		while [ -n "$value" ]; do
			pair=${value%%,*}
			case $value in *,*) value=${value#*,} ;; *) value= ;; esac
			for end in roce_np roce_rp; do
				path=/sys/class/net/$nic/ecn/$end/enable/${pair%:*}
				ensure "ECN $end ${pair%:*}" "${pair#*:}" ecn_now "$path" ecn_set "$path" "${pair#*:}"
			done
		done
		;;
	esac
done
exit "$failed"
