# What a run would need on this node: sh -c THIS fabrictool-launchtools LAUNCHER PROGRAM PYTHON IMAGE   ("" = not needed, or to be found)
# Prints, as far as it applies: `program PATH`, `options LETTERS` (of all_reduce_perf), `mpirun PATH VERSION`, `srun PATH`, `pmi NAME`,
# `gres`, `python PATH VERSION`, `image ID`, `missing WHAT`, `silent TOOL STATUS MESSAGE` (it is there, and gave no answer: 124 = none in
# time), `port N` (free now), and at last `end`. Starts nothing on a GPU.
set -u
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
launcher=$1 program=$2 python=$3 image=$4
# Where MPI lies that was not installed by a package manager.
MORE=$PATH:/usr/lib64/openmpi/bin:/usr/local/mpi/bin:/opt/hpcx/ompi/bin:/opt/amazon/openmpi/bin:/usr/mpi/gcc/openmpi/bin

first() { # NAME...: the path of the first that there is
  for one in "$@"; do
    case $one in
      /*) [ -f "$one" ] && [ -x "$one" ] && { echo "$one"; return 0; } ;;
      *) path=$(PATH=$MORE command -v "$one" 2>/dev/null) && { echo "$path"; return 0; } ;;
    esac
  done
  return 1
}

tests() {
  if [ -n "$program" ]; then set -- "$program"; else set -- all_reduce_perf_mpi all_reduce_perf; fi
  if ! found=$(first "$@"); then echo "missing $*"; return; fi
  echo "program $found"
  # Its usage needs no GPU and no MPI: it is printed before either is touched.
  help=$(timeout 10 "$found" --help 2>&1 </dev/null | head -c 65536)
  echo "options $(printf '%s\n' "$help" | sed -n 's/^[[:space:]]*\[-\([A-Za-z]\),.*/\1/p' | tr -d '\n')"
}

silent() { # TOOL STATUS WORDS
  [ "$2" -ne 143 ] || set -- "$1" 124 "$3" # busybox lets the signal end the command itself
  echo "silent $1 $2 $(printf '%s\n' "$3" | grep -v '^[[:space:]]*$' | tail -n 1 | tr -cd '[:print:]' | cut -c1-200)"
}

case $launcher in
  mpirun)
    tests
    if found=$(first mpirun); then
      echo "mpirun $found $(timeout 10 "$found" --version 2>&1 </dev/null | head -n 1 | tr -cd '[:print:]' | cut -c1-120)"
    else
      echo "missing mpirun"
    fi
    ;;
  srun)
    tests
    if found=$(first srun); then
      echo "srun $found"
      listed=$(timeout 10 "$found" --mpi=list 2>&1 </dev/null)
      for pmi in pmix pmi2; do
        if printf '%s\n' "$listed" | tr -s ' \t,:' '\n' | grep -qx "$pmi"; then echo "pmi $pmi"; break; fi
      done
      if command -v sinfo >/dev/null 2>&1; then
        said=$(timeout 10 sinfo -h -o %G 2>&1 </dev/null)
        rc=$?
        if [ "$rc" -ne 0 ]; then silent sinfo "$rc" "$said"
        elif printf '%s\n' "$said" | grep -q gpu; then echo gres; fi
      fi
    else
      echo "missing srun"
    fi
    ;;
  direct)
    if [ -n "$image" ]; then
      if ! command -v docker >/dev/null 2>&1; then echo "missing docker"
      else
        said=$(timeout 15 docker image inspect -f '{{.Id}}' "$image" 2>&1 </dev/null)
        rc=$?
        id=$(printf '%s\n' "$said" | grep -E '^(sha256:)?[0-9a-f]+$' | tail -n 1) # warnings of docker's may stand around it
        # Docker's and podman's words. Anything else (no daemon, no permission, no time) says nothing of the image.
        if [ "$rc" -eq 0 ] && [ -n "$id" ]; then echo "image $id"
        elif printf '%s\n' "$said" | grep -qiE 'no such (image|object)|image not known'; then echo "missing image $image"
        else silent docker "$rc" "$said"; fi
      fi
    elif found=$(first "${python:-python3}"); then
      echo "python $found $(timeout 10 "$found" -c 'import sys; print(*sys.version_info[:3], sep=".")' 2>/dev/null </dev/null)"
    else
      echo "missing ${python:-python3}"
    fi
    ;;
esac

# One that nobody holds, from the range in which every other connection is made too: a firewall has to leave that open in any case.
read -r low high 2>/dev/null </proc/sys/net/ipv4/ip_local_port_range || { low=32768 high=60999; }
number=$(od -A n -N 2 -t u2 /dev/urandom | tr -d ' ')
for _ in 1 2 3 4 5 6 7 8 9 10; do
  port=$((low + number % (high - low + 1)))
  hex=$(printf '%04X' "$port")
  if ! cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v hex=":$hex" 'substr($2, length($2) - 4) == hex { found = 1 } END { exit !found }'; then
    echo "port $port"
    break
  fi
  number=$((number + 7919))
done
echo end
