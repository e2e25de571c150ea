"""The doctor's judgements, each with a healthy twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrictool.cli import doctor, run
from fabrictool.model import Status


def test_python() -> None:
    assert doctor.python((3, 11, 0)).status is Status.PASS
    assert doctor.python((3, 10, 9)).status is Status.FAIL


@pytest.mark.parametrize(("version", "status"), [("3.10.0", Status.PASS), ("3.99.1", Status.PASS), ("3.9.9", Status.FAIL),
                                                 ("4.0.0", Status.FAIL), (None, Status.FAIL), ("x", Status.FAIL)])
def test_pins(version: str | None, status: Status) -> None:
    assert doctor.pinned("pyinfra", version, (3, 10), (4, 0)).status is status


def test_keys(tmp_path: Path) -> None:
    none = (1, "The agent has no identities.")
    assert doctor.keys(tmp_path, (0, "256 SHA256:x me (ED25519)")).status is Status.PASS
    assert doctor.keys(tmp_path, none).status is Status.WARN
    (tmp_path / ".ssh").mkdir()
    key = tmp_path / ".ssh" / "id_ed25519"
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text("x")
    assert doctor.keys(tmp_path, none).status is Status.WARN
    key.write_text("x")
    key.chmod(0o600)
    assert doctor.keys(tmp_path, none).status is Status.PASS
    key.chmod(0o644)
    assert "chmod 600" in doctor.keys(tmp_path, none).do


def test_known_hosts(tmp_path: Path) -> None:
    assert doctor.known_hosts(tmp_path).status is Status.WARN
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "known_hosts").write_text("")
    assert doctor.known_hosts(tmp_path).status is Status.PASS


def test_clock() -> None:
    assert doctor.clock((0, "yes")).status is Status.PASS
    for said in ((0, "no"), (0, ""), (1, "yes"), (127, "not found")):
        assert doctor.clock(said).status is Status.WARN


def test_lab() -> None:
    def there(name: str) -> str | None:
        return f"/bin/{name}"
    assert [i.status for i in doctor.lab("linux", True, there, lambda: (0, ""))] == [Status.PASS, Status.PASS]
    refused = list(doctor.lab("linux", True, there, lambda: (1, "unshare failed: Operation not permitted")))
    assert refused[-1].status is Status.WARN
    assert "not permitted" in refused[-1].seen
    assert [i.what for i in doctor.lab("linux", False, there, lambda: (0, ""))] == ["lab: tools", "lab: root"]
    assert [i.status for i in doctor.lab("darwin", True, there, lambda: (0, ""))] == [Status.WARN]
    bare = next(doctor.lab("linux", True, lambda name: None if name == "sshd" else name, lambda: (0, "")))
    assert "apt-get install openssh-server" in bare.do


def test_run_folder(tmp_path: Path) -> None:
    assert doctor.run_folder(tmp_path / "a" / "b").status is Status.PASS
    (tmp_path / "file").write_text("")
    assert doctor.run_folder(tmp_path / "file" / "b").status is Status.WARN


def test_a_tool_that_is_missing_or_hangs_is_an_answer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.answer(["/no/such/tool"])[0] == 127
    assert doctor.answer(["sh", "-c", "echo out; exit 3"]) == (3, "out")
    monkeypatch.setattr(doctor, "LIMIT_S", 0.1)
    assert doctor.answer(["sleep", "20"])[0] == 124


def test_the_command_exits_1_only_on_a_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "items", lambda: iter([doctor.Item(Status.PASS, "a", "x"), doctor.Item(Status.WARN, "b", "y", "do it")]))
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "ok    a" in out
    assert "warn  b" in out
    assert "do it" in out
    monkeypatch.setattr(doctor, "items", lambda: iter([doctor.Item(Status.FAIL, "a", "x", "y")]))
    assert run(["doctor"]) == 1
