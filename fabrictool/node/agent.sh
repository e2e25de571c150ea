# How Open MPI reaches another node: sh FOLDER/agent.sh FOLDER RUN SECONDS HOST COMMAND...
# The daemon there gets the run's id and a time limit of its own, as mpirun may be gone by then, and starts only while the run is on.
set -u
folder=$1 run=$2 seconds=$3 host=$4
shift 4
command=$(printf '%s' "$*" | sed "s/'/'\\\\''/g")
exec ssh -x -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 -- "$host" \
  "test -d $folder && exec env FABRICTOOL_RUN=$run timeout -k 5 $seconds sh -c '$command'"
