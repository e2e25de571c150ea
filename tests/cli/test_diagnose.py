"""`fabrictool diagnose` and `explain --codes` as they are typed."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fabrictool.cli import pastes, run
from fabrictool.model import RESERVED, Code
from tests.collective.nccl_log import Job
from tests.diagnose.table import CAPTURES, PASTES

SCHEMA = json.loads(files("fabrictool.report").joinpath("schema.json").read_text(encoding="utf-8"))
Capsys = pytest.CaptureFixture[str]


def paste(name: str) -> str:
    return str(PASTES / f"{name}.txt")


def as_json(capsys: Capsys, *argv: str) -> tuple[int, dict[str, Any]]:
    code = run(["diagnose", *argv, "-o", "json"])
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.validate(value, SCHEMA)
    return code, value


def codes(value: dict[str, Any]) -> set[str]:
    return {f["code"] for r in value["results"] for f in r["findings"]}


class Stdin(io.StringIO):
    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.buffer = io.BytesIO(data)  # type: ignore[misc]  # as a real stdin has one


def test_text_shows_code_proof_reason_and_fix(capsys: Capsys) -> None:
    assert run(["diagnose", paste("qos-trust-pcp")]) == 1
    out = "".join(capsys.readouterr().out.split())  # wrapped where the path is long
    for said in ("QOS_TRUST", "qos-trust-pcp.txt:3: Priority trust state: pcp", "why", "mlnx_qos -i enp1s0f0np0 --trust dscp", "spark01",
                 "1 fault: QOS_TRUST (exit 1)", "explain QOS_TRUST"):
        assert "".join(said.split()) in out


@pytest.mark.parametrize(("name", "said"), [
    ("slurm-oom", "Detected 1 oom_kill event in StepId=4711.0"), ("nccl-retry", "Got completion from peer 10.10.1.12<45017>"),
    ("nccl-retry", "remoteGids::ffff:10.10.1.12 hca rocep1s0f0"), ("python-gpu-memory", "CUDA out of memory. Tried to allocate"),
])
def test_a_line_is_shown_once_and_fits_the_page(capsys: Capsys, monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    monkeypatch.chdir(PASTES)
    assert run(["diagnose", f"{name}.txt"]) == 1
    out = capsys.readouterr().out
    assert "".join(out.split()).count("".join(said.split())) == 1
    assert [ln for ln in out.splitlines() if len(ln) > 80] == []


def test_what_is_short_is_said_beside_its_line(capsys: Capsys) -> None:
    assert run(["diagnose", paste("qos-trust-pcp")]) == 1
    assert "got   pcp  (should be: dscp)" in capsys.readouterr().out


def test_json_has_the_lines(capsys: Capsys) -> None:
    code, value = as_json(capsys, paste("qos-trust-pcp"))
    (result,) = value["results"]
    (finding,) = result["findings"]
    assert (code, result["check"], result["status"], result["code"]) == (1, "mlnx_qos", "fail", "QOS_TRUST")
    assert finding["lines"][0].endswith("qos-trust-pcp.txt:3: Priority trust state: pcp")
    assert finding["subject"] == {"kind": "function", "nodes": ["spark01"], "function": "enp1s0f0np0"}
    assert value["nodes"] == ["spark01"]


def test_healthy_and_unknown_have_exits_of_their_own(capsys: Capsys, tmp_path: Path) -> None:
    assert run(["diagnose", paste("qos-healthy")]) == 0
    assert "no fault in what is shown" in capsys.readouterr().out
    assert run(["diagnose", paste("mail")]) == 3
    out = capsys.readouterr().out
    assert "NOTHING_KNOWN" in out
    assert "nothing known found (exit 3)" in out
    (tmp_path / "empty").write_text("")
    assert run(["diagnose", str(tmp_path / "empty")]) == 3
    assert run(["diagnose", paste("devinfo-small-mtu")]) == 0
    assert run(["diagnose", "--strict", paste("devinfo-small-mtu")]) == 1


def test_stdin(capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    for argv in ([], ["-"]):
        monkeypatch.setattr(sys, "stdin", Stdin(gzip.compress(Path(paste("hosts-loopback")).read_bytes())))
        code, value = as_json(capsys, *argv)
        assert (code, codes(value)) == (1, {"NAME_LOOPBACK"})
        assert value["results"][0]["findings"][0]["lines"] == ["stdin:3: 127.0.1.1 spark01"]


def test_nothing_to_read_is_a_wrong_command_line(monkeypatch: pytest.MonkeyPatch, capsys: Capsys, tmp_path: Path) -> None:
    terminal = Stdin(b"")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert run(["diagnose"]) == 64
    assert run(["diagnose", str(tmp_path / "no-such-file")]) == 64
    assert "no-such-file: cannot be read" in capsys.readouterr().err
    assert run(["diagnose", "--node", "spark01", paste("mail")]) == 64


def test_files_give_their_verdicts_together(capsys: Capsys) -> None:
    code, value = as_json(capsys, paste("qos-trust-pcp"), paste("gids-healthy"), paste("mail"))
    assert (code, codes(value)) == (1, {"QOS_TRUST"})
    assert [r["status"] for r in value["results"]] == ["fail", "pass"]
    assert any("not recognised" in n and "mail.txt" in n for n in value["notes"])


def test_logs_of_a_folder_are_one_run(tmp_path: Path, capsys: Capsys) -> None:
    job = Job(hosts=("spark01", "spark02", "spark03"))
    folder = tmp_path / "logs" / "deep"
    folder.mkdir(parents=True)
    for rank in range(3):
        (folder / f"{job.host(rank)}.{job.pid(rank)}.log").write_text(job.log(rank))
    (folder / "core.1").write_bytes(b"\x7fELF\0\0" * 100)
    code, value = as_json(capsys, str(tmp_path))
    assert (code, codes(value)) == (0, set())
    assert any("core.1: skipped: no text" in n for n in value["notes"])
    (folder / f"spark03.{job.pid(2)}.log").unlink()
    code, value = as_json(capsys, str(tmp_path))
    assert (code, codes(value)) == (3, {"LOG_MISSING"})
    (folder / "spark03.4102.log.gz").write_bytes(gzip.compress(job.on(network="Socket").log(2).encode()))
    code, value = as_json(capsys, str(tmp_path))
    assert code == 1
    assert "TCP_FALLBACK" in codes(value)


def test_a_result_and_the_logs_beside_it_are_one_run(tmp_path: Path, capsys: Capsys) -> None:
    job = Job(hosts=("spark01", "spark02"))
    (tmp_path / "run.txt").write_text(Path(paste("run-healthy")).read_text())
    for rank in range(2):
        (tmp_path / f"{job.host(rank)}.log").write_text(job.log(rank))
    assert as_json(capsys, str(tmp_path))[0] == 0
    (tmp_path / "spark02.log").unlink()
    code, value = as_json(capsys, str(tmp_path))
    assert (code, codes(value)) == (3, {"LOG_MISSING"})
    assert any(f["subject"]["nodes"] == ["spark02"] for r in value["results"] for f in r["findings"])


def test_limits_of_a_folder(tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fabrictool.cli.pastes.MAX_FILES", 3)
    monkeypatch.setattr("fabrictool.cli.pastes.MAX_DEPTH", 2)
    for n in range(5):
        (tmp_path / f"{n}.txt").write_text("127.0.0.1 localhost\n")
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "0.fifo")
    code, value = as_json(capsys, str(tmp_path))
    notes = " ".join(value["notes"])
    assert code == 0
    assert "only the first 3 files were read" in notes
    assert "0.fifo: skipped: no plain file" in notes
    assert as_json(capsys, str(tmp_path / "a"))[0] == 3


def test_against_a_spec(capsys: Capsys) -> None:
    spec = ["-i", "inventories/spark4.yaml"]
    healthy = as_json(capsys, *spec, paste("qos-healthy"))
    assert (healthy[0], codes(healthy[1])) == (0, set())
    for name, code in (("qos-factory", "QOS_PFC_MASK"), ("qos-trust-pcp", "QOS_TRUST"), ("qos-firmware", "QOS_FW_DCBX")):
        found = as_json(capsys, *spec, paste(name))
        assert found[0] == 1, name
        assert code in codes(found[1])
    subject = found[1]["results"][0]["findings"][0]["subject"]
    assert (subject["nodes"], subject["port"], subject["rail"]) == (["spark01"], "p0", "a")
    down = as_json(capsys, *spec, "--node", "spark02", paste("devinfo-one-down"))
    assert (down[0], codes(down[1])) == (1, {"RDMA_DOWN"})
    small = as_json(capsys, *spec, "--node", "spark02", paste("devinfo-small-mtu"))
    assert (small[0], codes(small[1])) == (1, {"RDMA_ACTIVE_MTU"})
    assert as_json(capsys, *spec, "--node", "spark02", paste("ip-healthy"))[0] == 0
    kept = as_json(capsys, *spec, "--node", "spark02", paste("netplan-no-mtu"))
    assert (kept[0], codes(kept[1])) == (1, {"LINK_MTU_PERSISTED"})
    assert as_json(capsys, *spec, paste("run-healthy"))[0] == 0  # 22.9 of 25 GB/s
    lossy = as_json(capsys, *spec, paste("ethtool-discards"))  # its switch has no PFC
    assert (lossy[0], codes(lossy[1])) == (0, {"PACKET_LOSS"})
    assert run(["diagnose", *spec, "--node", "spark9", paste("mail")]) == 64
    assert "did you mean" in capsys.readouterr().err
    assert run(["diagnose", "-i", "no-such.yaml", paste("mail")]) == 78


def test_a_run_against_a_spec(tmp_path: Path, capsys: Capsys) -> None:
    spec = ["-i", "inventories/spark4.yaml"]
    slow = tmp_path / "run.txt"
    text = Path(paste("run-healthy")).read_text()
    slow.write_text(text.replace("  22.88 ", "  11.40 ").replace("11732.3", "23547.0"))
    assert as_json(capsys, str(slow))[0] == 0
    code, value = as_json(capsys, *spec, str(slow))
    assert (code, codes(value)) == (1, {"LOW_BUSBW"})
    assert "one rail" in value["results"][0]["findings"][0]["why"]
    (tmp_path / "nccl.log").write_text(Job(hosts=("spark01", "spark02"), hcas=("rocep1s0f0:1/RoCE",)).log())
    assert as_json(capsys, str(tmp_path / "nccl.log"))[0] == 0
    code, value = as_json(capsys, *spec, str(tmp_path / "nccl.log"))
    assert (code, codes(value)) == (1, {"SINGLE_RAIL"})


def test_a_secret_is_not_shown(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "env").write_text("HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123\nNCCL_IB_GID_INDEX=3\nMASTER_ADDR=127.0.0.1\n")
    assert run(["diagnose", "-v", str(tmp_path / "env")]) == 1
    assert "hf_abcdef" not in capsys.readouterr().out


def test_every_capture_ends_with_a_verdict(capsys: Capsys) -> None:
    for path in sorted(CAPTURES.rglob("*.*")):
        assert run(["diagnose", str(path)]) in (0, 1, 3), path
    assert "BUG  " not in capsys.readouterr().out


def test_explain_codes(capsys: Capsys) -> None:
    assert run(["explain", "--codes", "-o", "json"]) == 0
    value = json.loads(capsys.readouterr().out)
    by_code = {row["code"]: row for row in value["codes"]}
    assert set(Code) - set(by_code) <= RESERVED
    for code, row in by_code.items():
        assert row.keys() == {"code", "area", "when", "why", "fix"}
        assert all(len(text) > 2 for text in row.values()), code
        assert row["when"].endswith("."), code
    assert run(["explain", "--codes"]) == 0
    out = capsys.readouterr().out
    assert all(code in out for code in by_code)
    assert run(["explain", "QOS_TRUST"]) == 0
    out = capsys.readouterr().out
    assert [w in out for w in ("When:", "Why:", "Fix:")] == [True] * 3
    assert run(["explain", "qos", "--codes"]) == 64
    assert run(["explain", "qos", "-o", "json"]) == 64


def test_an_empty_file_beside_others_is_named(capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rank1.log").touch()
    assert run(["diagnose", paste("qos-trust-pcp"), "rank1.log"]) == 1
    assert "rank1.log: empty" in " ".join(capsys.readouterr().out.split())


def test_an_empty_name_is_not_the_folder_at_hand(tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """`diagnose "$LOG"` with an unset variable judged whatever lay there."""
    (tmp_path / "nccl.log").write_text("spark01:1:1 [0] NCCL INFO Using network Socket\n")
    monkeypatch.chdir(tmp_path)
    for name in ("", " "):
        assert run(["diagnose", name]) == 64
        assert "an empty name" in capsys.readouterr().err
    assert run(["diagnose", "."]) != 64


@pytest.mark.parametrize(("limit", "read"), [(10, False), (pastes.MAX_TOTAL, True)])
def test_what_is_named_one_by_one_is_bounded_too(limit: int, read: bool, capsys: Capsys, tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pastes, "MAX_TOTAL", limit)
    monkeypatch.chdir(tmp_path)
    Path("second.txt").write_text(Path(paste("qos-trust-pcp")).read_text())
    assert run(["diagnose", paste("qos-trust-pcp"), "second.txt"]) == 1
    assert ("second.txt: not read" in " ".join(capsys.readouterr().out.split())) is not read
