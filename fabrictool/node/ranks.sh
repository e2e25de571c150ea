# What runs inside a unit, session or container, as the user of the ranks: sh FOLDER/ranks.sh VERB FOLDER NAME ...
#   one     FOLDER NAME COMMAND...                            becomes COMMAND (a rank of MPI or Slurm)
#   launch  FOLDER NAME SECONDS COMMAND...                    mpirun or srun
#   ranks   FOLDER NAME SECONDS FIRST COUNT WORLD MASTER PORT COMMAND...     COUNT ranks, numbered from FIRST
#   box     FOLDER NAME SECONDS CONTAINER IMAGE COMMAND...    a container, in which COMMAND (`ranks`) runs
# A rank's environment is the consumer's (FOLDER/env) and what the tool adds (FOLDER/NAME.added), with what MPI or Slurm need; nothing
# else that happens to be set here. Each program leaves LABEL.out, LABEL.err and LABEL.rc (status, milliseconds) in FOLDER/NAME; status
# 124: its time limit.
set -u
verb=$1 folder=$2 name=$3
shift 3
out=$folder/$name

# shellcheck disable=SC1090,SC1091 # both were made by stage.sh
load() {
  if [ -n "${FABRICTOOL_BOX:-}" ]; then return 0; fi # the container has been given everything
  for word in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
    case $word in
      PATH | HOME | USER | LOGNAME | SHELL | LANG | LC_* | TZ | TMPDIR | PWD | LD_LIBRARY_PATH | XDG_RUNTIME_DIR | FABRICTOOL_RUN) ;;
      CUDA_VISIBLE_DEVICES) [ -n "${SLURM_PROCID:-}" ] || unset CUDA_VISIBLE_DEVICES ;; # what Slurm has given this task
      OMPI_* | OPAL_* | ORTE_* | PRTE_* | PMIX_* | PMI_* | HWLOC_* | SLURM* | SRUN_*) ;;
      *) command unset "$word" ;;
    esac
  done
  . "$folder/env"
  . "$folder/$name.added"
}

clock() { # milliseconds since boot -> $now
  read -r up _ </proc/uptime
  now=$((${up%.*} * 1000 + (1${up#*.} - 100) * 10))
}

until_gone() { # PID, a child -> $rc
  wait "$1"
  rc=$?
  while [ "$rc" -gt 128 ] && kill -0 "$1" 2>/dev/null; do # a signal ended the wait, not the child
    wait "$1"
    rc=$?
  done
  [ "$rc" -gt 128 ] || return 0
  wait "$1" # as long as nobody has asked for it, the child's own status is kept
  own=$?
  [ "$own" = 127 ] || rc=$own
}

timed() { # LABEL SECONDS COMMAND...
  label=$1 seconds=$2
  shift 2
  clock
  began=$now
  if command -v timeout >/dev/null 2>&1; then set -- timeout -k 5 "$seconds" "$@"; fi
  "$@" </dev/null >"$out/$label.out" 2>"$out/$label.err" &
  child=$!
  trap 'kill -s TERM "$child" 2>/dev/null' TERM INT HUP
  until_gone "$child"
  clock
  if [ "$rc" = 137 ] && [ "$((now - began))" -ge "$((seconds * 1000))" ]; then rc=124; fi
  printf '%s %s\n' "$rc" "$((now - began))" >"$out/$label.part" && mv -f "$out/$label.part" "$out/$label.rc"
}

failed() { # whether a rank of this node has ended badly
  for file in "$out"/*.rc; do
    [ -f "$file" ] || continue
    read -r rc _ <"$file" && [ "$rc" != 0 ] && return 0
  done
  return 1
}

done_count() {
  ended=0
  for file in "$out"/*.rc; do [ ! -f "$file" ] || ended=$((ended + 1)); done
}

umask 077
# Outputs and logs lie in memory (/run): one that floods them is ended by SIGXFSZ at 1 GiB a file (blocks of 512 bytes), before the node is.
ulimit -f 2097152 2>/dev/null || : # or a smaller limit is in force
case $verb in
  one)
    load
    exec "$@"
    ;;
  launch)
    seconds=$1
    shift
    load
    # Open MPI asks root twice.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    timed launcher "$seconds" "$@"
    ;;
  ranks)
    seconds=$1 first=$2 count=$3 WORLD_SIZE=$4 MASTER_ADDR=$5 MASTER_PORT=$6
    shift 6
    load
    export WORLD_SIZE MASTER_ADDR MASTER_PORT
    children='' local=0
    while [ "$local" -lt "$count" ]; do
      (
        RANK=$((first + local)) LOCAL_RANK=$local
        export RANK LOCAL_RANK
        timed "$RANK" "$seconds" "$@"
      ) &
      children="$children $!"
      local=$((local + 1))
    done
    # shellcheck disable=SC2064,SC2086 # the list is complete now, and is words
    trap "kill -s TERM $children 2>/dev/null" TERM INT HUP
    # The others would wait for one that has failed until their limit. They get a few seconds to say what they saw.
    grace=10
    while done_count && [ "$ended" -lt "$count" ] && [ "$grace" -gt 0 ]; do
      sleep 1
      if failed; then grace=$((grace - 1)); fi
    done
    # shellcheck disable=SC2086 # a list of words
    [ "$ended" -ge "$count" ] || kill -s TERM $children 2>/dev/null
    for one in $children; do until_gone "$one"; done
    ;;
  box)
    seconds=$1 box=$2 image=$3
    shift 3
    load
    FABRICTOOL_BOX=1
    export FABRICTOOL_BOX
    set -- "$image" "$@"
    # Names only: docker takes the values from this environment, and no command line shows them.
    for word in FABRICTOOL_RUN FABRICTOOL_BOX $(cat "$folder/names") $(sed -n 's/^export \([A-Z0-9_]*\)=.*/\1/p' "$folder/$name.added"); do
      set -- -e "$word" "$@"
    done
    # With nothing but the node's own nccl.conf as the consumer, the container has to see it.
    if [ ! -s "$folder/names" ] && [ -f /etc/nccl.conf ]; then set -- -v /etc/nccl.conf:/etc/nccl.conf:ro "$@"; fi
    if [ -e /dev/infiniband ]; then set -- --device /dev/infiniband "$@"; fi
    timed box "$seconds" docker run --rm --name "$box" --network host --ipc host --pull=never --gpus all --ulimit memlock=-1 --init \
      -v "$out:$out" -v "$folder/ranks.sh:$folder/ranks.sh:ro" -v "$folder/allreduce.py:$folder/allreduce.py:ro" "$@"
    timeout 15 docker rm -f "$box" </dev/null >/dev/null 2>&1
    ;;
  *)
    echo "what to do? $verb" >&2
    exit 64
    ;;
esac
exit 0
