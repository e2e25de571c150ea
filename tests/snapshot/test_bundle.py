"""Bundles: what was collected comes back, a person can edit one, and a hostile one is refused with a reason."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Reason, Unreadable, Value
from fabrictool.snapshot import Captured, Snapshot, bundle, scrub, untar
from fabrictool.snapshot.bundle import BundleError, Meta

META = Meta("0.1.0", "2026-01-01T00:00:00+00:00", "abc123")
PFC = "PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   1   0   0   0   0\n"
NODE = Snapshot("n1", {
    "qos.mlnx[enp1s0f0np0]": Captured(0, PFC, "", 200), "ip": Captured(0, "caf\udce9\r\n\0", "warn\n", 10, True, False, True),
    "gone": Captured(127, "", "sh: 1: x: not found\n"), "root": Captured(1, "", "", 0, False, True),
}, taken="T", ssh="10.0.0.9 1 10.0.0.1 22", uid=1000, notes=("a note",))
LOST = Snapshot("n2", error=Unreadable(Reason.UNREACHABLE, "no route to host"), taken="T")


def saved(path: Path, *snaps: Snapshot) -> Path:
    bundle.write(path, snaps or (NODE, LOST), META)
    return path


def test_round_trip(tmp_path: Path) -> None:
    got = bundle.read(saved(tmp_path / "b.tar.gz"))
    assert got.meta == META
    assert dict(got.snapshots) == {"n1": NODE, "n2": LOST}
    assert list(got.snapshots["n1"].sections) == list(NODE.sections)


def test_the_file_itself(tmp_path: Path) -> None:
    one, two = saved(tmp_path / "1.tar.gz", NODE, LOST), saved(tmp_path / "2.tar.gz", LOST, NODE)
    assert one.read_bytes() == two.read_bytes()
    assert one.stat().st_mode & 0o777 == 0o600
    with tarfile.open(one) as tar:
        members = tar.getmembers()
    assert [m.name for m in members] == sorted(m.name for m in members)
    assert {(m.mtime, m.uid, m.gid, m.uname, m.mode, m.isreg()) for m in members} == {(0, 0, 0, "", 0o600, True)}
    assert "nodes/n1/qos.mlnx@enp1s0f0np0.txt" in {m.name for m in members}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1.tar.gz", "2.tar.gz"]


def test_an_existing_file_stays_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_text("mine")
    with pytest.raises(BundleError, match="exists already"):
        bundle.write(path, [NODE], META)
    assert path.read_text() == "mine"
    bundle.write(path, [NODE], META, force=True)
    assert set(bundle.read(path).snapshots) == {"n1"}
    assert [p.name for p in tmp_path.iterdir()] == ["b.tar.gz"]


def test_a_file_that_appears_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_text("mine")
    monkeypatch.setattr(Path, "exists", lambda _: False)
    with pytest.raises(BundleError, match="exists already"):
        bundle.write(path, [NODE], META)
    assert path.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["b.tar.gz"]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        saved(tmp_path / "b.tar.gz")
    assert not list(tmp_path.iterdir())


def test_a_person_can_edit_one_line(tmp_path: Path) -> None:
    saved(tmp_path / "b.tar.gz")
    folder = tmp_path / "open"
    folder.mkdir()
    subprocess.run(["tar", "-xzf", "../b.tar.gz"], cwd=folder, check=True)
    text = folder / "nodes/n1/qos.mlnx@enp1s0f0np0.txt"
    text.write_text(text.read_text().replace("0   0   0   1   0", "0   0   0   0   1"))
    for n, names in enumerate((["meta.json", "nodes"], ["."], ["./meta.json", "./nodes"])):
        subprocess.run(["tar", "-czf", f"../new{n}.tar.gz", *names], cwd=folder, check=True)
        got = bundle.read(tmp_path / f"new{n}.tar.gz").snapshots["n1"].text("qos.mlnx", "enp1s0f0np0")
        assert got == Value(PFC.replace("0   0   0   1   0", "0   0   0   0   1"))
    subprocess.run(["tar", "-czf", "outside.tar.gz", "open"], cwd=tmp_path, check=True)
    with pytest.raises(BundleError, match="packed from outside"):
        bundle.read(tmp_path / "outside.tar.gz")


def test_secrets_do_not_reach_the_file(tmp_path: Path) -> None:
    stream = "@ file 600 40 /etc/netplan/w.yaml\n   password: 'hunter2hunter2hunter2'    \n\n@ file 644 3 /b\nxy\n\n"
    size = stream.index("\n@ file 644") - stream.index("\n") - 1
    dirty = Snapshot("n1", {"f": Captured(0, stream.replace(" 40 ", f" {size} ")),
                            "e": Captured(0, "HF_TOKEN=hf_abcdefghijklmnop1234", "psk=abc")})
    path = saved(tmp_path / "b.tar.gz", dirty)
    unpacked = gzip.decompress(path.read_bytes())
    assert not any(word in unpacked for word in (b"hunter2", b"hf_abc", b"psk=abc"))
    got = bundle.read(path).snapshots["n1"]
    assert got == scrub.snapshot(dirty)
    file = got.file("f", "/etc/netplan/w.yaml")
    assert isinstance(file, Value)
    assert file.value.text == f"   password: '{scrub.MARK}'    \n"
    assert isinstance(got.file("f", "/b"), Value)


def pack(path: Path, files: Iterable[tuple[tarfile.TarInfo | str, bytes]], name: str = "x.tar.gz") -> Path:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for info, data in files:
            member = tarfile.TarInfo(info) if isinstance(info, str) else info
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    (path / name).write_bytes(gzip.compress(raw.getvalue()))
    return path / name


def members(path: Path) -> list[tuple[tarfile.TarInfo | str, bytes]]:
    with tarfile.open(path) as tar:
        return [(m.name, f.read()) for m in tar.getmembers() if (f := tar.extractfile(m))]


def special(name: str, kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(("extra", "why"), [
    (("../../etc/cron.d/x", b""), "no path"), (("/etc/passwd", b""), "no path"), (("nodes/../x", b""), "no path"),
    (("nodes/n1/.hidden", b""), "no path"), (("nodes//n1", b""), "no path"), (("a/b/c/d/e/f", b""), "no path"),
    (("nodes/n1/a\nb", b""), "no path"), (("nodes/n1/" + "x" * 700, b""), "no path"),
    ((special("nodes/n1/l", tarfile.SYMTYPE), b""), "link"), ((special("nodes/n1/l", tarfile.LNKTYPE), b""), "link"),
    ((special("nodes/n1/d", tarfile.CHRTYPE), b""), "device"), ((special("nodes/n1/f", tarfile.FIFOTYPE), b""), "device"),
    (("meta.json", b"{}"), "twice"), (("nodes/n1/ip.txt", b"other"), "twice"), (("./meta.json", b"{}"), "twice"),
    (("nodes/n1/extra.txt", b"x"), "in no index"), (("nodes/n3/index.json", b"{}"), "in no index"), (("readme", b"x"), "in no index"),
    (("nodes/n1/big.txt", b"\0" * (untar.MAX_FILE + 1)), "more than 32 MiB"),
])
def test_hostile_members(tmp_path: Path, extra: tuple[tarfile.TarInfo | str, bytes], why: str) -> None:
    good = members(saved(tmp_path / "b.tar.gz"))
    assert set(bundle.read(pack(tmp_path, good, "same.tar.gz")).snapshots) == {"n1", "n2"}
    with pytest.raises(BundleError, match=why):
        bundle.read(pack(tmp_path, [*good, extra]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.tar.gz", "same.tar.gz", "x.tar.gz"]


@pytest.mark.parametrize("form", ["gnu", "posix"])
def test_sparse_files_are_refused(tmp_path: Path, form: str) -> None:
    """Holes unpack from nothing: no limit on what was read would see them."""
    saved(tmp_path / "b.tar.gz")
    subprocess.run(["tar", "-xzf", "b.tar.gz"], cwd=tmp_path, check=True)
    holes = tmp_path / "nodes/n1/ip.txt"
    holes.write_bytes(b"")
    os.truncate(holes, 4 * 2**20)
    for name, more in (("dense", ()), ("sparse", ("-S",))):
        subprocess.run(["tar", f"--format={form}", *more, "-czf", f"{name}.tar.gz", "meta.json", "nodes"], cwd=tmp_path, check=True)
    assert set(bundle.read(tmp_path / "dense.tar.gz").snapshots) == {"n1", "n2"}
    with pytest.raises(BundleError, match=r"sparse|no path"):
        bundle.read(tmp_path / "sparse.tar.gz")


def _index(change: Callable[[dict[str, object]], object], file: str = "nodes/n1/index.json"
           ) -> Callable[[dict[str, bytes]], None]:
    def apply(files: dict[str, bytes]) -> None:
        held = json.loads(files[file])
        change(held)
        files[file] = json.dumps(held).encode()
    return apply


def _section(**changes: object) -> Callable[[dict[str, bytes]], None]:
    return _index(lambda held: held["sections"][0].update(changes))  # type: ignore[index]


META_JSON = "meta.json"


@pytest.mark.parametrize(("change", "why"), [
    (_section(rc="0"), "rc"), (_section(rc=True), "rc"), (_section(rc=256), "rc"), (_section(rc=-1), "rc"), (_section(ms=1.5), "ms"),
    (_section(cut=0), "cut"), (_section(key=7), "key"), (_section(more=1), "more"), (_section(out="../../meta.json"), "missing"),
    (_section(out="/etc/passwd"), "missing"), (_section(out="ip.txt"), "missing, or used twice"), (_section(key="ip"), "twice"),
    (_index(lambda h: h.update(sections={})), "sections"), (_index(lambda h: h.update(node="n2")), "is about"),
    (_index(lambda h: h.update(error={"reason": "bored", "why": ""})), "reason"), (_index(lambda h: h.pop("taken")), "taken"),
    (_index(lambda h: h.update(uid="0")), "uid"), (_index(lambda h: h.update(notes="x")), "notes"),
    (_index(lambda h: h.update(format=2), META_JSON), "format 2"), (_index(lambda h: h.update(format="1"), META_JSON), "format"),
    (_index(lambda h: h.update(nodes=["n1", "n1"]), META_JSON), "twice"),
    (_index(lambda h: h.update(nodes=["../n1"]), META_JSON), "not a name"),
    (_index(lambda h: h.update(nodes=["n1", "n2", "n3"]), META_JSON), "missing"),
    (_index(lambda h: h.update(nodes=["n1"]), META_JSON), "in no index"),
    (lambda f: f.pop("meta.json"), "no meta.json"), (lambda f: f.update({"meta.json": b"[]"}), "meta.json"),
    (lambda f: f.update({"meta.json": b"\xff{"}), "meta.json"), (lambda f: f.update({"meta.json": b"[" * 100_000}), "meta.json"),
    (lambda f: f.update({"nodes/n1/index.json": b"null"}), "index.json"), (lambda f: f.pop("nodes/n1/ip.txt"), "ip.txt: missing"),
    (lambda f: f.pop("nodes/n2/index.json"), "index.json: missing"),
])
def test_hostile_contents(tmp_path: Path, change: Callable[[dict[str, bytes]], object], why: str) -> None:
    files = {str(n): d for n, d in members(saved(tmp_path / "b.tar.gz"))}
    change(files)
    with pytest.raises(BundleError, match=why):
        bundle.read(pack(tmp_path, files.items()))


def test_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untar, "MAX_TOTAL", 2**20)
    many = [(f"f{n}", b"\0" * 100_000) for n in range(20)]
    with pytest.raises(BundleError, match="unpacks to more than 1 MiB"):
        bundle.read(pack(tmp_path, many))
    (tmp_path / "tail.tar.gz").write_bytes(gzip.compress(gzip.decompress(saved(tmp_path / "b.tar.gz").read_bytes()) + b"\0" * 2**21))
    with pytest.raises(BundleError, match="more than 1 MiB"):
        bundle.read(tmp_path / "tail.tar.gz")
    long = tarfile.TarInfo("././@LongLink")  # a header that claims a huge name
    long.type = tarfile.GNUTYPE_LONGNAME
    with pytest.raises(BundleError, match="more than 1 MiB"):
        bundle.read(pack(tmp_path, [(long, b"x" * 2**21), ("a", b"")]))
    monkeypatch.setattr(untar, "MAX_FILES", 2)
    with pytest.raises(BundleError, match="more than 2 files"):
        bundle.read(pack(tmp_path, [(f"f{n}", b"") for n in range(4)]))
    with pytest.raises(BundleError, match="choose fewer nodes"):
        saved(tmp_path / "c.tar.gz")


def test_every_prefix_and_most_damage_is_an_error(tmp_path: Path) -> None:
    data = saved(tmp_path / "b.tar.gz").read_bytes()
    path = tmp_path / "cut"
    for end in range(0, len(data), 7):
        path.write_bytes(data[:end])
        with pytest.raises(BundleError):
            bundle.read(path)
    whole = bundle.read(tmp_path / "b.tar.gz")
    for at in range(10, len(data), 5):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1:])
        try:
            assert bundle.read(path) == whole
        except BundleError:
            continue


def test_not_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "gz").write_bytes(gzip.compress(b"hello" * 500))
    for name in ("text", "empty", "gz", "nothing", "."):
        with pytest.raises(BundleError, match=r"tar\.gz|cannot be read|not a bundle"):
            bundle.read(tmp_path / name)


@pytest.mark.parametrize("names", [("../x",), ("a b",), ("",), (".x",), ("n1", "n1")])
def test_node_names_that_cannot_be_saved(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(BundleError):
        saved(tmp_path / "b.tar.gz", *(Snapshot(n) for n in names))
    assert not list(tmp_path.iterdir())


RAW = st.binary(max_size=60).map(lambda b: b.decode("utf-8", "surrogateescape"))
KEY = st.text(alphabet="abz.[]/%@+~\n\udcff é", max_size=12) | st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(st.dictionaries(KEY, st.builds(Captured, st.integers(0, 255), RAW, RAW, st.integers(0, 10**9), st.booleans(), st.booleans(),
                                      st.booleans()), max_size=6),
       st.sampled_from([None, 0, 1000]), RAW)
@settings(max_examples=150, deadline=None)
def test_any_snapshot_round_trips(tmp_path_factory: pytest.TempPathFactory, sections: dict[str, Captured], uid: int | None,
                                  ssh: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.tar.gz"
    snap = Snapshot("n1", sections, uid=uid, ssh=ssh.encode("utf-8", "replace").decode())
    bundle.write(path, [snap], META, force=True)
    assert bundle.read(path).snapshots["n1"] == scrub.snapshot(snap)


@given(st.binary(max_size=400), st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_file_is_an_error(tmp_path_factory: pytest.TempPathFactory, data: bytes, zipped: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "noise"
    path.write_bytes(gzip.compress(data) if zipped else data)
    with pytest.raises(BundleError):
        bundle.read(path)
