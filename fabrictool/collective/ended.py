"""Whether a run came to its end, and if not, what stopped it. Decided by the text; the exit status only where the text is silent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fabrictool.collective.model import Ending, ErrorKind, RunError, TestRun
from fabrictool.model import Code, Finding, Status, Subject, Value
from fabrictool.room import About

WANT = "the closing line of nccl-tests"
# timeout(1) 124, mpirun --timeout 110 (ETIMEDOUT); 137 = 128 + SIGKILL is timeout's too when its first signal did not do.
TIMED_OUT = frozenset({124, 110})
SIGNALLED = range(129, 160)  # 128 + signal, as shells and launchers give it

TAKEN = ("Requested nodes are busy", "Immediate execution impossible")  # srun --immediate


def ended(run: TestRun, ending: Ending, subject: Subject, path: str, nodes: Mapping[str, Subject]) -> Iterator[Finding]:
    """One finding; a second where the program's own gate for bandwidth was not reached."""
    rc = ending.rc if ending.rc is not None else run.exit_status
    about = _About(subject, f"{path}.ended", nodes)
    yield _after_result(run, ending, rc, about) if run.concluded else _without_result(run, ending, rc, about)
    if run.average_ok == Value(False) and isinstance(run.average_busbw, Value):
        yield About(Code.LOW_BUSBW, subject, f"{path}.average", "").warn(
            f"{run.average_busbw.value:g} GB/s on average", "0.9 of NCCL_TESTS_MIN_BW",
            "the environment sets NCCL_TESTS_MIN_BW, and the average over all sizes stayed below it",
            remedy="unset it: an average over sizes is no measure of a link")


class _About:
    """The fixed part, with a code and, where one host did it, that host's own subject."""

    def __init__(self, subject: Subject, path: str, nodes: Mapping[str, Subject]) -> None:
        self.subject, self.path, self.nodes = subject, path, nodes

    def __call__(self, code: Code, error: RunError | None = None) -> About:
        return About(code, self.nodes.get(error.host, self.subject) if error else self.subject, self.path, "")


def timed_out(ending: Ending, rc: int | None) -> bool:
    """Whether the exit status says that a time limit ended it."""
    if rc in TIMED_OUT:
        return True
    over = ending.took_s is not None and ending.limit_s is not None and 0 < ending.limit_s <= ending.took_s
    return over and rc != 0


def _status(rc: int | None) -> str:
    return "" if rc is None else f", exit status {rc}"


def _after_result(run: TestRun, ending: Ending, rc: int | None, about: _About) -> Finding:
    """The result is there. What came after it may still tell of a fabric or node that is not well."""
    died = next(iter(run.of_kind(ErrorKind.DIED)), None)
    late = run.of_kind(ErrorKind.TIMEOUT)
    want = f"{WANT}, exit status 0"
    if late or timed_out(ending, rc):
        return about(Code.RUN_TIMEOUT).fail(f"closing line, then no end{_status(rc)}", want,
                                            "the results were printed, and then the processes did not end within their limit",
                                            remedy="see what the ranks wait for: py-spy or gdb on each, dmesg for Xid and NIC errors")
    if died or rc in SIGNALLED:
        return about(Code.RANK_DIED, died).fail(died.text if died else f"closing line{_status(rc)}", want,
                                                "the results were printed, and then a process died", remedy=DIED)
    odd = run.of_kind(ErrorKind.NCCL, ErrorKind.CUDA) or (run.of_kind(ErrorKind.LAUNCHER) if rc != 0 else ())
    explained = any(p.right == Value(False) for r in run.rows for p in r.placements) or run.average_ok == Value(False)
    if odd or (rc not in (0, None) and not explained):
        return about(Code.RANK_DIED, odd[0] if odd else None).fail(
            f"closing line{_status(rc)}" + (f": {odd[0].text[:120]}" if odd else ""), want,
            "the results were printed, and yet something failed", status=Status.UNKNOWN, remedy="read the end of the output")
    return about(Code.NO_RESULT).ok(f"closing line{_status(rc)}", WANT)


DIED = "look at that node: dmesg for OOM, Xid and segfaults, then the last lines of that rank's log"
OOM = re.compile(r"oom[_-]kill|Out Of Memory")  # Slurm's words where the limit of the job's control group was met
OOM_WHY = "the job's memory limit was met, and the kernel killed a process of this step"
OOM_FIX = "give the job more memory (--mem, --mem-per-cpu, --mem-per-gpu), or let it take less: batch, cache, workers; dmesg on that " \
    "node names the process"


def _without_result(run: TestRun, ending: Ending, rc: int | None, about: _About) -> Finding:
    first = {kind: run.of_kind(kind)[0] for kind in ErrorKind if run.of_kind(kind)}
    cut = next((f for f in run.fragments if f.cut), None)
    if ErrorKind.GPUS in first:
        where = first.get(ErrorKind.FOLLOWED) or first[ErrorKind.GPUS]
        return about(Code.TOO_FEW_GPUS, where).fail(first[ErrorKind.GPUS].text, WANT, "a node has fewer GPUs than its processes ask for",
                                                    remedy="look at nvidia-smi and CUDA_VISIBLE_DEVICES there, and at the slots per node")
    if ErrorKind.USAGE in first:
        option = first.get(ErrorKind.ARGUMENT)
        return about(Code.NO_RESULT).fail(f"usage text{_status(rc)}" + (f": {option.text[:120]}" if option else ""), WANT,
                                          "an unknown option or -h: nothing was run, whatever the exit status says",
                                          remedy="correct the command line")
    if ErrorKind.ARGUMENT in first:
        return about(Code.BAD_ARGUMENT).fail(first[ErrorKind.ARGUMENT].text, WANT, "nccl-tests does not take the arguments",
                                             remedy="correct the command line")
    if ErrorKind.TIMEOUT in first or timed_out(ending, rc):
        return _late(run, rc, about, first.get(ErrorKind.TIMEOUT))
    if ErrorKind.DIED in first or rc in SIGNALLED:
        error = first.get(ErrorKind.DIED)
        hungry = next((e for e in run.of_kind(ErrorKind.DIED) if OOM.search(e.text)), None)
        if hungry is not None:
            if run.of_nccl_tests:
                return about(Code.RANK_DIED, hungry).fail(hungry.text, WANT, OOM_WHY, remedy=OOM_FIX)
            return about(Code.OOM_KILLED, hungry).fail(hungry.text, "no process killed", OOM_WHY, remedy=OOM_FIX)
        return about(Code.RANK_DIED, error).fail(error.text if error else f"no closing line{_status(rc)}", WANT,
                                                 "a process died before the run came to its end", remedy=DIED)
    failed = first.get(ErrorKind.NCCL) or first.get(ErrorKind.CUDA)
    if failed:
        return about(Code.NO_RESULT, failed).fail(failed.text, WANT, "a call of NCCL or CUDA failed: its log says why",
                                                  remedy="read the first NCCL WARN of that host's log")
    if cut:
        return about(Code.RANK_DIED).fail(f"line {cut.line}: a row that was begun: {cut.text[:80]}", WANT,
                                          "the output ends within a row: a process died there, or the text is not all", remedy=DIED)
    error = first.get(ErrorKind.LAUNCHER)
    taken = next((e for e in run.of_kind(ErrorKind.LAUNCHER) if any(word in e.text for word in TAKEN)), None)
    if taken and not run.of_nccl_tests:
        return about(Code.LAUNCH_FAILED).fail(taken.text, WANT, "other jobs have these nodes: nothing was run", status=Status.UNKNOWN,
                                              remedy="wait until the nodes are free (squeue), then run again")
    if error and not run.table:
        return about(Code.LAUNCH_FAILED, error).fail(error.text, WANT, "the launcher could not start the ranks, or they ended at once",
                                                     remedy="run the launcher with `hostname` in place of the program")
    return about(Code.NO_RESULT).fail(f"no closing line{_status(rc)}", WANT,
                                      "the run did not come to its end" if run.of_nccl_tests else "nothing of nccl-tests in the output",
                                      remedy="read the whole output of the run, and what the launcher says")


def _late(run: TestRun, rc: int | None, about: _About, error: RunError | None) -> Finding:
    got = (error.text if error else f"no closing line{_status(rc)}")
    if run.devices and not run.table:
        return about(Code.INIT_HANG).fail(got, WANT, "the time limit passed while the communicator was being set up",
                                          remedy="compare the bootstrap interfaces in the logs of all ranks, and test TCP between them")
    return about(Code.RUN_TIMEOUT, error).fail(got, WANT, "the run did not end within its time limit",
                                               remedy="raise the limit if the size needs it; else see what the ranks wait for")
