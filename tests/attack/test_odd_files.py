"""Odd things where configuration lies: FIFOs, devices, bind mounts, files of other users, lists that were cut short."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fabrictool.link.sections import SECTIONS as LINK
from fabrictool.link.sections import file_texts
from fabrictool.model import Code, Finding, Observed, Reason, Status, Unreadable, Value
from fabrictool.qos.persist import SCRIPT, UNIT_DIR, UNIT_PREFIX, persistence
from fabrictool.qos.read import read
from fabrictool.snapshot import Captured, Snapshot, files
from fabrictool.snapshot.model import FileText
from tests.env.sample import CONF, Spark, stream
from tests.link.sample import NETPLAN, OWN, Host, kept, keyfile, netplan
from tests.link.test_running import judged as linked
from tests.link.test_running import one as at_interface
from tests.names.sample import HOSTS, Named
from tests.qos.nodes import A, at, one, one_port, persisted
from tests.snapshot.shells import as_root, every_shell

BLANKED = {"link.netplan": ("/etc/netplan/", "x.yaml"), "link.nm_profiles": ("/etc/NetworkManager/system-connections/", "x"),
           "link.networkd": ("/etc/systemd/network/", "x.network")}


def blanked(shell: tuple[str, ...], name: str, folder: Path) -> object:
    """What the link room makes of `folder` in the place of the section's own folder under /etc; the other folders stay."""
    (section,) = [s for s in LINK if s.name == name]
    text = section.shell.replace(BLANKED[name][0], f"{folder}/")
    ran = subprocess.run([*shell, "-c", text], capture_output=True, timeout=30, stdin=subprocess.DEVNULL, check=False)
    return file_texts(Snapshot("n", {"f": Captured(ran.returncode, ran.stdout.decode(), ran.stderr.decode())}), "f")


@every_shell
@pytest.mark.parametrize("name", BLANKED)
@pytest.mark.parametrize("kind", ["fifo", "device", "not to be read"])
def test_what_is_no_plain_file_is_neither_absent_nor_empty(shell: tuple[str, ...], name: str, kind: str, tmp_path: Path) -> None:
    """/etc/netplan/x.yaml as a FIFO was passed over, and as a device it was an empty file: plan said that all was well."""
    path = tmp_path / BLANKED[name][1]
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else "/proc/self/mem")  # a plain file, whose reading fails
    got = blanked(shell, name, tmp_path)
    assert isinstance(got, Unreadable)
    assert str(path) in got.why


@every_shell
@pytest.mark.parametrize("name", BLANKED)
def test_the_twins_a_file_and_one_that_a_link_hides(shell: tuple[str, ...], name: str, tmp_path: Path) -> None:
    path = tmp_path / BLANKED[name][1]
    path.write_text("x: 1\n")
    (tmp_path / "folder.yaml").mkdir()
    hidden = tmp_path / BLANKED[name][1].replace("x", "y", 1)
    hidden.symlink_to("/dev/null")
    got = blanked(shell, name, tmp_path)
    assert isinstance(got, dict)
    assert (got[str(path)].text, got[str(hidden)].text) == ("x: 1\n", "")


def failed(captured: Captured, path: str) -> Captured:
    return Captured(0, f"@ failed - - {path}\n{captured.out}")


def test_the_verdict_on_a_node_with_a_fifo_is_unknown() -> None:
    host = Host()
    host.sections["link.netplan"] = failed(host.sections["link.netplan"], "/etc/netplan/90-more.yaml")
    f = at_interface(linked(host), "link.mtu_persisted")
    assert (f.status, f.steps) == (Status.UNKNOWN, ())
    assert "/etc/netplan/90-more.yaml" in f.why
    profiles = Host()
    profiles.netplan = None
    profiles.profiles = {"/etc/NetworkManager/system-connections/fab-a.nmconnection": keyfile(mtu=9000)}
    profiles.nm = {A: "connected:fab-a"}
    profiles.tables()
    assert at_interface(linked(profiles), "link.mtu_persisted").status is Status.PASS
    profiles.sections["link.nm_profiles"] = failed(profiles.sections["link.nm_profiles"], "/etc/NetworkManager/system-connections/z")
    assert at_interface(linked(profiles), "link.mtu_persisted").status is Status.UNKNOWN
    twin = linked(Host())
    assert [at_interface(twin, p).status for p in ("link.owner", "link.mtu_persisted")] == [Status.PASS] * 2
    assert NETPLAN in at_interface(twin, "link.owner").got


def qos_stream() -> str:
    """`qos.files` of a node as apply leaves it."""
    found, _ = persisted(one_port(), A)
    texts = {p: f.value.text for p, f in found.items() if isinstance(f, Value)}
    return stream(texts)


def test_a_cut_list_of_our_files_is_not_missing_files() -> None:
    """Between two files a cut list looks whole: the unit was "missing", and plan offered to write it."""
    whole = qos_stream()
    marks = [i for i in range(len(whole)) if whole.startswith("@ file ", i)]
    assert len(marks) == 4
    for end in (0, *marks[1:]):
        got = read(Snapshot("n", {"qos.files": Captured(0, whole[:end])})).files
        assert isinstance(got, Unreadable), end
        assert got.reason is Reason.CUT
        found = one(files=got)
        assert [(at(found, p).status, at(found, p).steps) for p in ("persist.script", "persist")] == [(Status.UNKNOWN, ())] * 2
    got = read(Snapshot("n", {"qos.files": Captured(0, whole)})).files
    found = one(files=got)
    assert [at(found, p).status for p in ("persist.script", "persist")] == [Status.PASS] * 2


def test_a_folder_that_cannot_be_listed_does_not_lack_the_unit() -> None:
    want = one_port()
    found, units = persisted(want, A)
    assert want.fabric.qos is not None
    gone = {p: f for p, f in found.items() if p != persistence(A, want.fabric.qos).unit_path}
    hidden: dict[str, Observed[FileText]] = {
        **gone, f"{UNIT_DIR}/{UNIT_PREFIX}*.service": Unreadable(Reason.NEEDS_ROOT, "permission denied")}
    f = at(one(files=hidden, units=units), "persist")
    assert (f.status, f.code, f.steps) == (Status.UNKNOWN, Code.NEEDS_ROOT, ())
    twin = at(one(files=gone, units=units), "persist")
    assert (twin.status, twin.got) == (Status.FAIL, "unit missing")
    assert twin.steps


def test_a_unit_that_is_cut_off_is_not_one_that_nothing_starts() -> None:
    writers = "/etc/systemd/system/roce.service:9:ExecStart=mlnx_qos -i ens0 -f 0,0,0,0,1,0,0,0\n# files read: 1\n"
    units = "systemctl says systemd 255\nroce.service wanted-by /etc/systemd/system/multi-user.target.wants\n# end of units\n"
    cut = "systemctl says systemd 255\n"

    def seen(units: str, writers: str = writers) -> tuple[bool, object]:
        got = read(Snapshot("n", {"qos.writers": Captured(0, writers), "qos.units": Captured(0, units)}))
        assert not isinstance(got.writers, Unreadable)
        return got.writers[0].enabled, got.units

    enabled, known = seen(cut)
    assert enabled
    assert isinstance(known, Unreadable)
    assert seen(units) == (True, {"roce.service": "wanted"})
    assert seen(f"{cut}# end of units\n") == (False, {})
    f = at(one(units=known), "persist")
    assert (f.status, f.steps) == (Status.UNKNOWN, ())


def mounted(stream: str, path: str) -> str:
    (head,) = [ln for ln in stream.splitlines() if ln.startswith("@ file ") and ln.endswith(f" {path}")]
    words = head.split(" ")
    return stream.replace(head, " ".join([words[0], words[1], f"{words[2]}:0:mount", *words[3:]]))


def hosts_of(named: Named, mount: bool) -> list[Finding]:
    out = named.snapshot().sections["names.files"].out
    named.broken = {"names.files": Captured(0, mounted(out, "/etc/hosts") if mount else out)}
    return [f for f in named.judge() if f.path in ("names.hosts", "names.self", "names.peers") and f.bad]


def test_a_bind_mounted_hosts_file_is_not_promised() -> None:
    """rename(2) gives EBUSY there: plan said "can be set", and apply failed."""
    wrong = HOSTS.replace("10.10.1.1 spark01", "127.0.1.1 spark01")
    found = hosts_of(Named(hosts=wrong), mount=True)
    assert {(f.path, f.status, f.steps) for f in found} == {(p, Status.FAIL, ()) for p in ("names.hosts", "names.self")}
    assert all("bind-mounted" in f.remedy and "where it comes from" in f.remedy for f in found)
    assert hosts_of(Named(), mount=True) == []
    twin = {f.path: f for f in hosts_of(Named(hosts=wrong), mount=False)}
    assert twin["names.hosts"].steps
    assert twin["names.self"].status is Status.WARN


def test_other_bind_mounted_targets_get_no_steps_either() -> None:
    spark = Spark()
    spark.files[CONF] += "NCCL_IB_TC=1\n"
    drift = next(f for f in spark.judge() if f.path == "env.nccl_conf")
    assert (drift.status, len(drift.steps)) == (Status.FAIL, 1)
    spark.broken = {"env.files": Captured(0, mounted(spark.snapshot().sections["env.files"].out, CONF))}
    drift = next(f for f in spark.judge() if f.path == "env.nccl_conf")
    assert (drift.status, drift.steps) == (Status.FAIL, ())
    assert "bind-mounted" in drift.remedy
    want = one_port()
    found, units = persisted(want, A)
    found[SCRIPT] = Value(FileText(SCRIPT, "other", 0o755, 0, True))
    script = at(one(files=found, units=units), "persist.script")
    assert (script.status, script.steps) == (Status.FAIL, ())
    assert "bind-mounted" in script.remedy
    host = Host()
    host.netplan = {NETPLAN: netplan(a=kept(A, 1500)), OWN: "network: {version: 2}\n"}
    host.tables()
    f = at_interface(linked(host), "link.mtu_persisted")
    assert (f.status, len(f.steps)) == (Status.FAIL, 2)
    host.sections["link.netplan_own"] = Captured(0, mounted(host.sections["link.netplan_own"].out, OWN))
    f = at_interface(linked(host), "link.mtu_persisted")
    assert (f.status, f.steps) == (Status.FAIL, ())
    assert "bind-mounted" in f.why


@every_shell
@as_root
def test_the_node_tells_mounts_and_owners(shell: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    for name in ("hosts", "plain", "source", "hosts.bak"):
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "link").symlink_to(tmp_path / "hosts")
    os.chown(tmp_path / "plain", 65534, 65534)
    section = files("f", *(f"{tmp_path}/{n}" for n in ("hosts", "plain", "hosts.bak", "link")))
    mount = 'mount --bind "$1" "$2" || exit 77; shift 2; exec "$@"'
    ran = subprocess.run(["unshare", "-m", "sh", "-c", mount, "sh", str(tmp_path / "source"), str(tmp_path / "hosts"), *shell, "-c",
                          section.shell], capture_output=True, text=True, timeout=30, check=False)
    if ran.returncode == 77 or "unshare" in ran.stderr:
        pytest.skip("no private mounts here")
    got = Snapshot("n", {"f": Captured(ran.returncode, ran.stdout)}).files("f")
    assert not isinstance(got, Unreadable)
    seen = {Path(p).name: (f.value.text, f.value.uid, f.value.mounted) for p, f in got.items() if isinstance(f, Value)}
    assert seen == {"hosts": ("source\n", 0, True), "link": ("source\n", 0, True), "plain": ("plain\n", 65534, False),
                    "hosts.bak": ("hosts.bak\n", 0, False)}


def owned(uid: str) -> list[Finding]:
    spark = Spark()
    out = spark.snapshot().sections["env.files"].out
    spark.broken = {"env.files": Captured(0, out.replace("@ file 644 ", f"@ file 644{uid} "))}
    return [f for f in spark.judge() if f.path == "env.nccl_conf.owner"]


def test_a_file_of_another_user_is_a_warning() -> None:
    """Its owner can change what every job of root reads, whatever its mode."""
    (f,) = owned(":1000")
    assert (f.status, f.code, f.steps) == (Status.WARN, Code.ENV_LINT, ())
    assert "uid 1000" in f.got
    assert f.remedy == f"on the node: chown root:root {CONF}"
    assert [f.status for f in owned(":0")] == [Status.PASS]
    assert owned("") == []  # the node could not tell
