"""Slurm: it starts the ranks, in an allocation that it makes for this run."""

from __future__ import annotations

from fabrictool.probes.launch import LAUNCHER, RUN_VARIABLE, File, Job, Start, nccl_tests, networks

WAIT_S = 30  # for the nodes to be free: a queue is no place for a check


class Srun:
    """One task per GPU; the job is named like the units of other launchers. Only the run's id travels, with what a shell needs. Open MPI
    inside the ranks is kept off RDMA, as with mpirun; without mpirun only its environment tells it so."""

    name = "srun"
    program = "nccl-tests"

    def files(self, job: Job) -> tuple[File, ...]:
        return ()

    def starts(self, job: Job, run: str) -> tuple[Start, ...]:
        each = job.seats[0].ranks
        minutes, seconds = divmod(job.limits.launcher_s, 60)
        argv = (
            job.tool.launcher, f"--job-name={job_name(job.run_id)}", f"--nodelist={','.join(s.node for s in job.seats)}",
            f"--nodes={len(job.seats)}", f"--ntasks={job.ranks}", f"--ntasks-per-node={each}", "--distribution=block",
            *((f"--gpus-per-node={each}",) if job.tool.gres else ()), *((f"--mpi={job.tool.pmi}",) if job.tool.pmi else ()),
            f"--time={minutes}:{seconds:02d}", f"--immediate={WAIT_S}", "--kill-on-bad-exit=1", "--input=none", "--unbuffered",
            f"--export={RUN_VARIABLE},PATH,HOME,USER,LANG",
            *job.wrapped("one", run), "env", *_off_rdma(job), *nccl_tests(job, run),
        )
        inside = job.wrapped("launch", run, str(job.limits.node_s))
        return (Start(job.seats[0].node, LAUNCHER, inside, argv),)


def _off_rdma(job: Job) -> tuple[str, ...]:
    return ("OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,self", "OMPI_MCA_coll_hcoll_enable=0", f"OMPI_MCA_btl_tcp_if_include={networks(job)}")


def job_name(run_id: str) -> str:
    """The Slurm job's name: what `scancel --name` takes."""
    return f"ft-{run_id}"
