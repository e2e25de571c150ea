"""Lines by which nccl-tests, its launchers and the shell tell that something went wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabrictool.collective.model import ErrorKind, RunError

SHOWN = 300  # characters of a line that are kept


@dataclass(frozen=True, slots=True)
class Phrase:
    """`pattern` may name `host` and `rank`. `head`: such a line stands before all others of a run, so it begins one."""

    kind: ErrorKind
    pattern: re.Pattern[str]
    head: bool = False


def _p(kind: ErrorKind, pattern: str, *, head: bool = False) -> Phrase:
    return Phrase(kind, re.compile(pattern), head)


_SIGNALS = r"(?:Killed|Segmentation fault|Bus error|Aborted|Terminated|Illegal instruction|Floating point exception)"
_HOST = r"(?<![A-Za-z0-9_.-])(?P<host>[A-Za-z0-9_.-]{1,255})"

PHRASES: tuple[Phrase, ...] = (
    _p(ErrorKind.GPUS, r"Invalid number of GPUs: [0-9]+ requested but only [0-9]+ were found"),
    _p(ErrorKind.GPUS, rf"{_HOST}: Test CUDA failure \S+ '?invalid device ordinal"),
    _p(ErrorKind.ARGUMENT, r"^invalid (?:sizes? (?:specified )?for|option) '", head=True),
    _p(ErrorKind.ARGUMENT, r"_perf\S{0,80}: (?:invalid option|unrecognized option|option requires an argument|option .{1,80} "
                           r"(?:requires|doesn't allow) an argument|ambiguous option)", head=True),
    _p(ErrorKind.USAGE, r"^USAGE: \S{0,200}_perf", head=True),
    _p(ErrorKind.TIMEOUT, rf"{_HOST}: Test timeout \([0-9]+s\)"),
    _p(ErrorKind.TIMEOUT, r"The user-provided time limit for job execution has been reached"),  # mpirun --timeout
    _p(ErrorKind.TIMEOUT, r"DUE TO TIME LIMIT"),  # Slurm
    _p(ErrorKind.NCCL, rf"{_HOST}: Test NCCL failure "),
    _p(ErrorKind.CUDA, rf"{_HOST}: Test CUDA failure "),
    _p(ErrorKind.FOLLOWED, rf"^\.\. {_HOST} pid [0-9]+: Test failure "),
    _p(ErrorKind.DIED, r"(?:mpirun|prterun|mpiexec|orterun)\S{0,80} noticed that process rank (?P<rank>[0-9]{1,7}) with PID [0-9]+ on "
                       rf"node {_HOST} exited on signal [0-9]+"),
    _p(ErrorKind.DIED, rf"srun: error: {_HOST}: tasks? (?:(?P<rank>[0-9]{{1,7}})|\S{{1,200}}): (?:{_SIGNALS}|Out Of Memory)"),
    _p(ErrorKind.DIED, r"slurmstepd: error: .{0,200}(?:oom_kill|oom-kill|Out Of Memory)"),
    _p(ErrorKind.DIED, r"exitcode ?: ?-[0-9]{1,2}\b.{0,60}local_rank: [0-9]+"),  # torchrun
    _p(ErrorKind.DIED, rf"^(?:\S{{1,200}}: line [0-9]+: +[0-9]+ )?{_SIGNALS}(?: \(core dumped\))?(?: |$)"),  # the shell
    _p(ErrorKind.LAUNCHER, rf"srun: error: {_HOST}: tasks? (?:(?P<rank>[0-9]{{1,7}})|\S{{1,200}}): Exited with exit code [1-9]"),
    _p(ErrorKind.LAUNCHER, r"^(?:srun: (?:error|fatal)|slurmstepd: error): "),
    _p(ErrorKind.LAUNCHER, r"^(?:docker|podman|Error): .{0,80}(?:response from daemon|OCI runtime|no such container)"),
    _p(ErrorKind.LAUNCHER, r"(?:mpirun|prterun|mpiexec|orterun)\S{0,80} (?:detected that one or more processes exited|was unable to)"),
    _p(ErrorKind.LAUNCHER, r"There are not enough slots available|has lost communication with a remote daemon|"
                           r"unable to reliably start one or more daemons|executable file not found"),
    _p(ErrorKind.LAUNCHER, r"^ssh: (?:Could not resolve hostname|connect to host) "),
    _p(ErrorKind.LAUNCHER, r"Permission denied \(publickey|Host key verification failed|: command not found$"),
    _p(ErrorKind.LAUNCHER, r"_perf\S{0,40}: (?:No such file or directory|not found|Permission denied)|"
                           r"error while loading shared libraries: "),
    _p(ErrorKind.LAST, r"^# error: \S"),
)

# What any of the phrases has in it: most lines of a long log have none of these.
_QUICK = re.compile(r"ailure|nvalid|imeout|time limit|TIME LIMIT|USAGE|noticed that|srun|slurmstepd|exitcode|Killed|fault|error|Aborted|"
                    r"Terminated|Illegal|Floating|option|unable|not enough|lost comm|denied|verification|not found|No such|"
                    r"exited|ssh: ")


def phrase(text: str, line: int) -> tuple[RunError, bool] | None:
    """The error that a line, without space around it, tells of, and whether it begins a run."""
    if not _QUICK.search(text):
        return None
    for known in PHRASES:
        m = known.pattern.search(text)
        if m:
            said = m.groupdict()
            rank = said.get("rank")
            error = RunError(known.kind, text[:SHOWN], said.get("host") or "", int(rank) if rank else None, line)
            return error, known.head
    return None
