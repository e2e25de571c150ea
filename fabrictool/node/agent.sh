# How Open MPI reaches another node: sh agent.sh RUN SECONDS HOST COMMAND...
# The daemon there gets the run's id and a time limit of its own: mpirun may be gone by then.
set -u
run=$1 seconds=$2 host=$3
shift 3
command=$(printf '%s' "$*" | sed "s/'/'\\\\''/g")
exec ssh -x -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 -- "$host" \
  "exec env FABRICTOOL_RUN=$run timeout -k 5 $seconds sh -c '$command'"
