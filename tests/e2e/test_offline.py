"""A bundle gives the verdicts that the fleet gave, without a network; and it holds raw text only, without secrets or fault names."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fabrictool.lab.fault_kit import sh
from fabrictool.lab.faults import FAULTS
from fabrictool.lab.handle import Lab
from fabrictool.model import Reason
from tests.e2e import fleet, outside
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
COMMANDS = ("plan", "drift", "check")
# On top of each other, mildest first, so that every fleet differs from the one before.
STAGES: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("healthy", ()),
    ("names", (("spark01", "hosts-loopback"), ("spark02", "cloud-init-hosts"))),
    ("environment", (("spark01", "env-edited"), ("spark02", "gid-pinned"))),
    ("mtu", (("spark01", "mtu-1500"), ("spark02", "two-owners"))),
    ("qos", (("spark01", "pfc-wrong-prio"), ("spark02", "dscp-map-custom"))),
    ("owners", (("spark01", "other-owner"), ("spark02", "stale-consumer"))),
    ("devices", (("spark01", "gid-v1"), ("spark02", "port-down"))),
    ("blind", (("spark01", "tool-traceback"), ("spark02", "sudo-password"))),
    ("gone", (("spark01", "unreachable"), ("spark02", "qps-up"))),
)
SECRET = "hunter2-Zq8xV3tB"
PSK = "correct horse battery"
DAEMONS = {"lldpad"}  # a fault that is named after the program it starts


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with built("safe-off", 2) as lab:
        yield lab


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


def offline(lab: Lab, command: str, bundle: Path, *words: str) -> fleet.Ended:
    """In a network namespace without so much as a loopback that is up."""
    argv = ("unshare", "-n", *fleet.CLI, command, "-i", fleet.spec(lab), "--from", str(bundle), *words)
    return fleet.run(argv)


def snapshot(lab: Lab, bundle: Path) -> fleet.Ended:
    return fleet.tool("snapshot", "-i", fleet.spec(lab), "-o", str(bundle))


def compare(lab: Lab, bundle: Path) -> dict[str, fleet.Ended]:
    """Online and offline say the same. The online answers."""
    online = {c: fleet.tool(c, "-i", fleet.spec(lab), "-o", "json", "-v") for c in ("plan", "check")}
    saved = snapshot(lab, bundle)
    assert saved.rc in (0, 3), saved.all
    with ThreadPoolExecutor(2) as pool:
        off = dict(zip(COMMANDS, pool.map(lambda c: offline(lab, c, bundle, "-o", "json", "-v"), COMMANDS), strict=True))
    for command, said in off.items():
        live = online["check" if command == "check" else "plan"]
        assert said.rc == live.rc, f"{command}\n{outside.short(said)}\n{outside.short(live)}"
        assert told(said) == told(live), f"{command}: {sorted(told(said) ^ told(live), key=str)}"
        assert len(told(said)) > 1
    return online


def told(ended: fleet.Ended) -> frozenset[fleet.Said]:
    """All but the words about how a node could not be reached: a bundle says when it was so."""
    return frozenset(f if f.check != "reach" else replace(f, code="", id="", got="") for f in fleet.findings(ended))


def test_offline_says_what_online_says(lab: Lab, folder: Path) -> None:
    lab.clear()
    compare(lab, folder / "factory.tar.gz")
    assert fleet.apply(lab).rc == 0
    secrets(lab)
    codes = []
    for name, faults in STAGES:
        for node, fault in faults:
            outside.fault(lab, node, fault)
        online = compare(lab, folder / f"{name}.tar.gz")
        codes.append((online["plan"].rc, online["check"].rc, told(online["plan"])))
    assert [c[:2] for c in codes[:3]] == [(0, 0), (2, 1), (1, 1)]
    assert len({c[2] for c in codes}) == len(STAGES)  # each fleet is another


def secrets(lab: Lab) -> None:
    """A Wi-Fi key where netplan keeps it, a token in a served model's environment, and one in the NCCL file."""
    wifi = f'network:\n  version: 2\n  wifis:\n    wlP9s9:\n      access-points: {{"home": {{password: "{PSK}"}}}}\n'
    lab.write_file("spark01", "/etc/netplan/80-wifi.yaml", wifi, 0o600)
    out = sh(lab, "spark01", 'env -i HF_TOKEN="$1" NCCL_IB_TC=104 API_KEY="$1" NCCL_AUTH_TOKEN="$1" sleep 1000000 '
                             "</dev/null >/dev/null 2>&1 & echo $!", SECRET)
    with lab.edit_state("spark01") as state:
        state.containers.append({"name": "other-main", "pid": int(out), "image": "example/serve:1"})


def unpacked(bundle: Path) -> dict[str, bytes]:
    with tarfile.open(bundle) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}  # type: ignore[union-attr]


def packed(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def test_bundles_hold_no_fault_name_and_no_secret(folder: Path) -> None:
    bundles = sorted(folder.glob("*.tar.gz"))
    assert len(bundles) == len(STAGES) + 1
    for bundle in bundles:
        assert bundle.stat().st_mode & 0o777 == 0o600
        files = unpacked(bundle)
        everything = b"\n".join([*(n.encode() for n in files), *files.values()])
        assert b"enp1s0f0np0" in everything
        ours = {r.value for r in Reason}  # "unreachable" is the bundle's own word for a node that did not answer
        found = [f.name for f in FAULTS if f.name.encode() in everything and f.name not in DAEMONS and f.name not in ours]
        assert found == [], bundle.name
        for secret in (SECRET, PSK):
            assert secret.encode() not in everything, bundle.name
        assert not any(word in everything for word in (b'"status"', b'"findings"', b"QOS_", b"LINK_MTU"))  # raw text only
    for word in (b"wlP9s9", b"NCCL_AUTH_TOKEN=__scrubbed__"):  # the file was read, and so was the process
        assert any(word in data for data in unpacked(folder / "healthy.tar.gz").values()), word


def edited(folder: Path, name: str, old: str, new: str) -> Path:
    """The healthy bundle with one raw line of spark01 changed, as a person would do it."""
    files, changed = unpacked(folder / "healthy.tar.gz"), 0
    for file, data in files.items():
        if file.startswith("nodes/spark01/") and old.encode() in data:
            files[file] = data.replace(old.encode(), new.encode())
            changed += 1
    assert changed, old
    return packed(folder.parent / f"{name}.tar.gz", files)


def test_one_raw_line_changes_the_verdict(lab: Lab, folder: Path) -> None:
    same = packed(folder.parent / "same.tar.gz", unpacked(folder / "healthy.tar.gz"))
    assert offline(lab, "plan", same).rc == 0
    mask = "enabled     0   0   0   1   0   0   0   0"
    bundle = edited(folder, "edited", mask, "enabled     0   0   0   0   1   0   0   0")
    said = offline(lab, "plan", bundle, "-o", "json")
    # The second reader still tells the old mask: no verdict, and not a silent choice of one of them.
    assert said.rc == 3, outside.short(said)
    assert "QOS_READERS_DISAGREE" in {f.code for f in fleet.findings(said)}
    assert {f.node for f in fleet.findings(said)} == {"spark01"}


@pytest.mark.parametrize("how", ["cut", "text", "empty", "climbs", "no-node", "two-nodes-one-file"])
def test_a_bundle_that_is_none_is_a_clear_error(lab: Lab, folder: Path, tmp_path: Path, how: str) -> None:
    whole = (folder / "healthy.tar.gz").read_bytes()
    files, bad = unpacked(folder / "healthy.tar.gz"), tmp_path / "bad.tar.gz"
    if how == "climbs":
        packed(bad, files | {"../../../tmp/escaped.txt": b"x"})
    elif how == "no-node":
        packed(bad, {n: d for n, d in files.items() if not n.endswith("index.json")})
    elif how == "two-nodes-one-file":
        packed(bad, files | {"nodes/spark01/index.json": files["nodes/spark02/index.json"]})
    else:
        bad.write_bytes({"cut": whole[:len(whole) // 2], "text": b"QoS is fine\n", "empty": b""}[how])
    before = subprocess.run(["ls", "-A", str(tmp_path), "/"], capture_output=True, check=True).stdout
    said = offline(lab, "check", bad)
    assert said.rc == 3, said.all
    assert said.out == ""
    assert str(bad) in said.err
    assert "Traceback" not in said.err
    assert "bug" not in said.err
    assert subprocess.run(["ls", "-A", str(tmp_path), "/"], capture_output=True, check=True).stdout == before
