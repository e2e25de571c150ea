"""What one run proves: every code in a failing output, and the healthy twin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabrictool.collective import tests_json, tests_text
from fabrictool.collective.fresh import beside, of_this_run
from fabrictool.collective.model import Asked, TestRun
from fabrictool.collective.result import gate_busbw
from fabrictool.model import Absent, Code, Status, Unreadable, Value
from fabrictool.room import About
from tests.collective.judging import ANYTHING, ASKED, FLEET, NODES, at, bad, judged, passes
from tests.collective.samples import (
    ASKS,
    CONCLUDED,
    DEVICES,
    HEAD,
    HEALTHY,
    IN,
    LAYOUTS,
    MIB256,
    OLD_ERROR,
    OUT,
    PREAMBLE,
    ROW,
    TABLE,
    TEXTS,
    capture,
)

BEGUN = HEAD + ASKS + DEVICES + TABLE
FAIL, WARN, UNKNOWN = Status.FAIL, Status.WARN, Status.UNKNOWN
STARTED = 1796062161.0  # 2026-11-30 18:09:21 UTC


def test_a_healthy_run_passes_with_evidence_for_everything() -> None:
    findings = judged(HEALTHY)
    assert bad(findings) == []
    assert {f.path.rpartition(".")[2] for f in findings} == {"result", "ended", "rows", "size", "ranks"}
    assert all(f.status is Status.PASS and f.got and f.subject == FLEET for f in findings)
    assert at(findings, "result").got == "0 wrong elements in 1 row, OK"
    assert at(findings, "ranks").got == "4 ranks on 4 nodes"


@pytest.mark.parametrize("text", [
    HEALTHY.replace(OUT, OUT[:-1] + "5").replace("0 OK", "1 FAILED"), HEALTHY.replace(IN, IN[:-1] + "7"),
    HEALTHY.replace("values : 0 OK", "values : 1 FAILED"), BEGUN + PREAMBLE + OUT[:-1] + "3" + IN + "\n",
    HEALTHY.replace(OUT, OUT.replace("      0", "  1e+06")).replace("0 OK", "1 FAILED"),
    OLD_ERROR.replace("5e-07    94.98", "5e-01*   94.98"),
])
def test_wrong_results_come_first(text: str) -> None:
    findings = judged(text, ANYTHING, rc=7)
    assert findings[0].code is Code.WRONG_RESULT
    assert findings[0].status is FAIL
    assert findings[0].why
    assert findings[0].remedy
    assert (Code.WRONG_RESULT, "allreduce.run1.result") not in passes(findings)


def test_how_many_were_wrong_is_said() -> None:
    assert at(judged(HEALTHY.replace(OUT, OUT[:-1] + "5")), "result").got == "5 wrong elements at 268435456 bytes, 1 row in all"
    assert "1,000,000" in at(judged(HEALTHY.replace(OUT, OUT.replace("      0", "  1e+06"))), "result").got
    assert "0.5" in at(judged(OLD_ERROR.replace("5e-07    94.98", "5e-01*   94.98"), ANYTHING), "result").got


@pytest.mark.parametrize("text", [
    HEALTHY.replace("validation: 1", "validation: 0").replace("22.88       0", "22.88     N/A").replace("22.90       0", "22.90     N/A"),
    HEALTHY.replace("22.90       0", "22.90     N/A"), HEALTHY.replace("# Out of bounds values : 0 OK\n", ""),
    HEALTHY.replace("0 OK", "1 OK"), HEALTHY.replace(ROW, ""), HEALTHY.replace(ROW, ROW + PREAMBLE + "\n"), HEALTHY + HEALTHY,
    HEALTHY.replace("# Collective test concluded: all_reduce_perf_mpi\n", ""),
])
def test_results_that_nobody_verified_are_not_right(text: str) -> None:
    finding = at(judged(text), "result")
    assert finding.status is UNKNOWN
    assert finding.why


NOTICED = "prterun noticed that process rank 1 with PID 77 on node spark02 exited on signal 11 (Segmentation fault).\n"
OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM Killed.\n"
CANCELLED = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-29T18:16:39 DUE TO TIME LIMIT ***\n"
FEW = "Invalid number of GPUs: 4 requested but only 2 were found.\n .. spark02 pid 7: Test failure common.cu:1454\n"
ENDS = [
    (BEGUN + PREAMBLE + "\n", 137, Code.RANK_DIED),
    (BEGUN, 139, Code.RANK_DIED),
    (BEGUN + PREAMBLE + OUT, 1, Code.RANK_DIED),
    (BEGUN + "srun: error: spark03: task 2: Killed\n", 1, Code.RANK_DIED),
    (BEGUN + "Segmentation fault (core dumped)\n", 1, Code.RANK_DIED),
    (BEGUN + NOTICED, 1, Code.RANK_DIED),
    (BEGUN + OOM, 1, Code.RANK_DIED),
    (BEGUN, 124, Code.RUN_TIMEOUT),
    (BEGUN, 110, Code.RUN_TIMEOUT),
    (BEGUN + PREAMBLE, 124, Code.RUN_TIMEOUT),
    (BEGUN + "spark02: Test timeout (30s) common.cu:600\n", 4, Code.RUN_TIMEOUT),
    (BEGUN + CANCELLED, 1, Code.RUN_TIMEOUT),
    (HEAD + ASKS + DEVICES, 124, Code.INIT_HANG),
    (HEAD + ASKS + FEW, 5, Code.TOO_FEW_GPUS),
    (HEAD + ASKS + "spark02: Test CUDA failure common.cu:892 'invalid device ordinal'\n", 2, Code.TOO_FEW_GPUS),
    ("invalid size specified for 'maxbytes'\n", 255, Code.BAD_ARGUMENT),
    ("invalid sizes for 'minbytes' and 'maxbytes': 9 > 8\n", 255, Code.BAD_ARGUMENT),
    ("invalid size specified for 'stepBytes'\n", 255, Code.BAD_ARGUMENT),
    ("all_reduce_perf: invalid option -- 'q'\ninvalid option '?'\nUSAGE: all_reduce_perf\n", 0, Code.NO_RESULT),
    ("docker: Error response from daemon: No such image: x\n", 125, Code.LAUNCH_FAILED),
    ("There are not enough slots available in the system\n", 1, Code.LAUNCH_FAILED),
    ("bash: all_reduce_perf: command not found\n", 127, Code.LAUNCH_FAILED),
    ("srun: error: Unable to create step\n", 1, Code.LAUNCH_FAILED),
    ("ssh: Could not resolve hostname spark02: Name or service not known\n", 1, Code.LAUNCH_FAILED),
    ("", 0, Code.NO_RESULT),
    ("hello\n", 0, Code.NO_RESULT),
    (BEGUN + ROW, 0, Code.NO_RESULT),
    (BEGUN + ROW, None, Code.NO_RESULT),
    (BEGUN + "spark02: Test NCCL failure common.cu:222 'remote process exited'\n", 3, Code.NO_RESULT),
    (BEGUN + PREAMBLE + "\nspark02: Test NCCL failure common.cu:222 'unhandled system error'\n", 3, Code.NO_RESULT),
    (HEALTHY.replace("# Collective test concluded: all_reduce_perf_mpi\n", ""), 0, Code.NO_RESULT),
]


@pytest.mark.parametrize(("text", "rc", "code"), ENDS)
def test_a_run_without_its_closing_line_never_passes(text: str, rc: int | None, code: Code) -> None:
    findings = judged(text, rc=rc)
    ended = at(findings, "ended")
    assert (ended.code, ended.status) == (code, FAIL)
    assert ended.why
    assert ended.remedy
    assert at(findings, "result").status is UNKNOWN
    assert isinstance(gate_busbw(tests_text.parse(text)), Unreadable)


def test_the_host_that_a_launcher_names_is_the_subject() -> None:
    assert at(judged(BEGUN + "srun: error: spark03: task 2: Killed\n", rc=1), "ended").subject == NODES["spark03"]
    assert at(judged(BEGUN + "srun: error: other: task 2: Killed\n", rc=1), "ended").subject == FLEET
    assert at(judged(HEAD + ASKS + FEW, rc=5), "ended").subject == NODES["spark02"]


def test_a_full_queue_is_no_fault() -> None:
    """What srun --immediate printed on nodes that another job had."""
    taken = at(judged("srun: job 2 queued and waiting for resources\nsrun: error: Unable to allocate resources: Requested nodes are busy\n",
                      rc=1), "ended")
    assert (taken.code, taken.status, taken.subject) == (Code.LAUNCH_FAILED, UNKNOWN, FLEET)
    assert "squeue" in taken.remedy
    unasked = at(judged("srun: error: Unable to allocate resources: Requested node configuration is not available\n", rc=1), "ended")
    assert (unasked.code, unasked.status) == (Code.LAUNCH_FAILED, FAIL)


def test_killed_at_its_limit_is_late_and_not_dead() -> None:
    assert at(judged(BEGUN, rc=137, took_s=61.0), "ended").code is Code.RUN_TIMEOUT
    assert at(judged(BEGUN, rc=137, took_s=20.0), "ended").code is Code.RANK_DIED
    assert at(judged(HEALTHY, rc=0, took_s=61.0), "ended").status is Status.PASS


@pytest.mark.parametrize(("text", "rc", "code", "status"), [
    (HEALTHY, 124, Code.RUN_TIMEOUT, FAIL), (HEALTHY, 137, Code.RANK_DIED, FAIL), (HEALTHY, 3, Code.RANK_DIED, UNKNOWN),
    (HEALTHY + "srun: error: spark03: task 2: Segmentation fault\n", None, Code.RANK_DIED, FAIL),
    (HEALTHY + "spark02: Test NCCL failure common.cu:9 'x'\n", 0, Code.RANK_DIED, UNKNOWN),
    (HEALTHY.replace("22.89\n", "22.89 FAILED\n"), 7, Code.LOW_BUSBW, WARN),
])
def test_what_goes_wrong_after_the_result(text: str, rc: int | None, code: Code, status: Status) -> None:
    findings = judged(text, rc=rc)
    assert bad(findings) == [(code, status)]
    assert (Code.WRONG_RESULT, "allreduce.run1.result") in passes(findings)


def test_an_exit_status_that_wrong_results_explain_is_said_once() -> None:
    for rc in (1, 6, 7):  # the number for it, up to 2.17.0, up to 2.17.6, and since
        assert bad(judged(HEALTHY.replace(IN, IN[:-1] + "7").replace("0 OK", "1 FAILED"), rc=rc)) == [(Code.WRONG_RESULT, FAIL)]
    assert bad(judged(HEALTHY + "# error: something old\n")) == []


@pytest.mark.parametrize("text", [HEALTHY.replace(OUT + IN, OUT), HEALTHY.replace(ROW, ""), HEALTHY + HEALTHY,
                                  HEALTHY.replace(ROW, ROW.replace("15.25", "15.2x"))])
def test_rows_that_are_not_whole(text: str) -> None:
    assert (Code.RESULT_UNPARSED, UNKNOWN) in bad(judged(text))
    assert at(judged(HEALTHY), "rows").status is Status.PASS


def test_another_size_than_asked_for() -> None:
    small = HEALTHY.replace("#\n#   ", "#\n# Reducing maxBytes to 134217728 due to memory limitation\n#\n#   ", 1)
    assert (Code.SIZE_REDUCED, FAIL) in bad(judged(small))
    assert isinstance(gate_busbw(tests_text.parse(small)), Unreadable)
    assert bad(judged(HEALTHY, replace(ASKED, size_bytes=2 * MIB256))) == [(Code.SIZE_REDUCED, FAIL)]
    other = HEALTHY.replace(PREAMBLE, PREAMBLE.replace("268435456", "268435400", 1).replace("268435400", "168435456"))
    assert bad(judged(other)) == [(Code.SIZE_REDUCED, UNKNOWN)]
    assert at(judged(HEALTHY), "size").got == "268435456 bytes"


def test_other_ranks_or_nodes_than_asked_for() -> None:
    alone = HEALTHY.replace(DEVICES, DEVICES.splitlines(True)[0])
    assert bad(judged(alone)) == [(Code.LAUNCH_FAILED, FAIL)]
    assert "without MPI" in at(judged(alone), "ranks").why
    assert gate_busbw(tests_text.parse(alone)) == Absent("bus bandwidth of a single rank")
    assert bad(judged(HEALTHY, replace(ASKED, ranks=8))) == [(Code.LAUNCH_FAILED, FAIL)]
    one = "".join(ln.replace(f"spark0{n + 1} device  0", f"spark01 device  {n}") for n, ln in enumerate(DEVICES.splitlines(True)))
    assert bad(judged(HEALTHY.replace(DEVICES, one))) == [(Code.SINGLE_NODE, FAIL)]
    assert bad(judged(HEALTHY.replace("spark04", "spark03").replace("device  0", "device  1", 1))) == [(Code.LAUNCH_FAILED, UNKNOWN)]
    assert bad(judged(HEALTHY, replace(ASKED, nodes=2))) == [(Code.LAUNCH_FAILED, FAIL)]
    lost = HEALTHY.replace(DEVICES.splitlines(True)[1], "")
    assert at(judged(lost), "ranks").status is UNKNOWN


def test_a_result_of_an_earlier_run() -> None:
    run = tests_json.parse(capture("two.json"))
    assert isinstance(run, TestRun)  # started 18:16:24 by the host's own clock
    day = 1795957200.0  # 2026-11-29 13:00:00 UTC
    here = Asked(started_s=day + 984.0, ended_s=day + 990.0)  # 13:16:24, so that host is five hours ahead
    assert at(judged(run, here), "fresh").status is Status.PASS
    assert at(judged(run, replace(here, utc_offset_s=5 * 3600)), "fresh").status is Status.PASS
    for stale in (replace(here, utc_offset_s=0), replace(here, started_s=day + 1090, ended_s=day + 1096),
                  replace(here, started_s=day + 3 * 86400 + 984, ended_s=day + 3 * 86400 + 990)):
        assert (Code.RESULT_STALE, FAIL) in bad(judged(run, stale))
    assert (Code.RESULT_STALE, FAIL) in bad(judged(capture("socket.txt"), Asked(result_file="/tmp/out/socket.json.0")))
    assert at(judged(capture("socket.txt"), Asked(result_file="/tmp/out/socket.json")), "fresh").status is Status.PASS
    undated = tests_json.parse(capture("two.json").replace('"start_time":"2026', '"start_time":"x026'))
    assert isinstance(undated, TestRun)
    assert at(judged(undated, here), "fresh").status is UNKNOWN
    assert not of_this_run(STARTED, ANYTHING)


def test_file_and_output_of_one_run() -> None:
    about = About(Code.RESULT_STALE, FLEET, "allreduce.run1.json", "")
    text, file = tests_text.parse(capture("mpi_twohosts.txt")), tests_json.parse(capture("two.json"))
    assert isinstance(file, TestRun)
    assert beside(text, file, about).status is Status.PASS
    assert beside(tests_text.parse(capture("mpi_local.txt")), file, about).status is FAIL  # other processes
    assert beside(text, replace(file, rows=file.rows[:-1]), about).status is FAIL
    assert beside(text, replace(file, devices=()), about).status is UNKNOWN


@pytest.mark.parametrize("name", TEXTS)
def test_verdicts_on_captures(name: str) -> None:
    codes = {"badarg.txt": Code.BAD_ARGUMENT, "badhca.txt": Code.NO_RESULT, "badif.txt": Code.NO_RESULT, "help.txt": Code.NO_RESULT,
             "mpi_T.txt": Code.RUN_TIMEOUT, "mpi_killed.txt": Code.RANK_DIED, "timeout.txt": Code.RUN_TIMEOUT,
             "toomany.txt": Code.TOO_FEW_GPUS, "wrongnccl.txt": Code.NO_RESULT}
    findings = judged(capture(name), ANYTHING, rc=None)
    assert at(findings, "ended").code is codes.get(name, Code.NO_RESULT)
    assert (bad(findings) == []) == (name in CONCLUDED)


def test_the_gate_is_the_largest_size_and_the_lower_placement() -> None:
    assert gate_busbw(tests_text.parse(capture("nvlink.txt"))) == Value(313.53)
    assert gate_busbw(tests_text.parse(capture("socket.txt"))) == Value(3.19)
    for name, text in LAYOUTS.items():
        assert isinstance(gate_busbw(tests_text.parse(text)), Value), name


@pytest.mark.parametrize("row", [ROW.replace("22.88", "92.88"), ROW.replace("15.25", "75.25"), ROW.replace("17600.0", "7600.0"),
                                 ROW.replace("22.88", "52.88").replace("22.90", "52.90"), ROW.replace("268435456", "868435456")])
def test_a_row_that_contradicts_itself_gates_nothing(row: str) -> None:
    assert isinstance(gate_busbw(tests_text.parse(HEALTHY.replace(ROW, row))), Unreadable)
