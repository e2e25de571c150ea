"""Open MPI 4 and 5. It starts its own daemons on the other nodes by SSH, and the ranks by them."""

from __future__ import annotations

from fabrictool.probes.launch import LAUNCHER, RUN_VARIABLE, File, Job, Start, nccl_tests, networks

HOSTFILE = "hostfile"
AGENT = "agent.sh"


class Mpirun:
    """MPI itself is kept off RDMA (ob1 over TCP), or its traffic would count as NCCL's. Everything is given on the command line: the
    environment does not travel to other nodes unless it is named, and only the run's id is."""

    name = "mpirun"
    program = "nccl-tests"

    def files(self, job: Job) -> tuple[File, ...]:
        """One line per node with as many slots as GPUs, in rank order."""
        return (File(HOSTFILE, "".join(f"{s.node} slots={s.ranks}\n" for s in job.seats)),)

    def starts(self, job: Job, run: str) -> tuple[Start, ...]:
        argv = (
            job.tool.launcher, "-np", str(job.ranks), "--hostfile", job.path(HOSTFILE), "--map-by", "slot", "--bind-to", "none",
            "--timeout", str(job.limits.launcher_s),
            # A daemon that leaves its SSH session would also leave the time limit that the agent has put round it.
            "--leave-session-attached",
            "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "coll_hcoll_enable", "0",
            "--mca", "btl_tcp_if_include", networks(job),
            *_daemons(job), "-x", RUN_VARIABLE,
            *job.wrapped("one", run), *nccl_tests(job, run),
        )
        inside = job.wrapped("launch", run, str(job.limits.node_s))
        return (Start(job.seats[0].node, LAUNCHER, inside, argv),)


def _daemons(job: Job) -> tuple[str, ...]:
    """How daemons are started and talk. Version 5 took this out of Open MPI into PRRTE, under other names. Without a tree every daemon is
    started by the first node: no SSH between the others."""
    agent = f"sh {job.path(AGENT)} {job.folder} {job.run_id} {job.limits.node_s}"
    if job.tool.mpi >= 5:
        return ("--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", agent, "--prtemca", "plm_ssh_no_tree_spawn", "1",
                # oob_tcp_*: up to PRRTE 3.0; a name that is not known is ignored.
                "--prtemca", "prte_if_include", networks(job), "--prtemca", "oob_tcp_if_include", networks(job))
    return ("--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1",
            "--mca", "oob_tcp_if_include", networks(job))
