"""hosts(): what pyinfra gets, and the ssh_config for jump hosts as pyinfra itself reads it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pyinfra.connectors.sshuserclient.client import SSHClient, get_ssh_config

from fabrictool.bundled import folder
from fabrictool.spec import inventory, sshconfig
from fabrictool.spec.inventory import host_data, hosts, load_site
from fabrictool.spec.problems import SpecError
from fabrictool.spec.schema import NODE
from tests.spec.base import BASE, edited, write


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    inventory._jump_file.cache_clear()
    sshconfig.lookup_in.cache_clear()
    return home


def site_folder(tmp_path: Path, text: str = BASE) -> Path:
    place = tmp_path / "site"
    place.mkdir()
    write(place, text)
    (place / "s.py").write_text((folder("inventories") / "lab.py").read_text())
    return place / "s.py"


@pytest.mark.parametrize("name", ["spark4", "h20x2", "lab", "example"])
def test_the_node_spec_survives_as_json(name: str) -> None:
    path = folder("inventories") / f"{name}.py"
    site = load_site(path)
    found = json.loads(json.dumps(hosts(str(path))))
    assert [n for n, _ in found] == list(site.names)
    assert tuple(NODE.validate_json(json.dumps(data["fabric"])) for _, data in found) == site.nodes


def test_only_what_the_spec_says_is_given(tmp_path: Path) -> None:
    text = edited("ssh: {user: admin, known_hosts: ./known_hosts}\n", "").replace("  n1: {ssh: {host: 192.0.2.1}}", "  n1:")
    py = site_folder(tmp_path, text)
    for _, data in hosts(str(py)):
        assert set(data) == {"fabric", "ssh_strict_host_key_checking"}
        assert data["ssh_strict_host_key_checking"] == "yes"


def test_ssh_settings_are_given_with_absolute_paths(tmp_path: Path, own_home: Path) -> None:
    py = site_folder(tmp_path,
                     edited("{user: admin, known_hosts: ./known_hosts}",
                            "{user: me, known_hosts: ./kh, key: ~/k, port: 2222, config: c}"))
    (name, data), _ = hosts(str(py))
    del data["fabric"]
    assert name == "n1"
    assert data == {"ssh_hostname": "192.0.2.1", "ssh_user": "me", "ssh_port": 2222, "ssh_key": str(own_home / "k"),
                    "ssh_known_hosts_file": str(tmp_path / "site/kh"), "ssh_config_file": str(tmp_path / "site/c"),
                    "ssh_strict_host_key_checking": "yes"}


def test_sudo_root_logs_in_as_root(tmp_path: Path) -> None:
    py = site_folder(tmp_path, edited("{user: admin, known_hosts: ./known_hosts}", "{known_hosts: k, sudo: root}"))
    assert {data["ssh_user"] for _, data in hosts(str(py))} == {"root"}


def jump_config(tmp_path: Path, jump: str, more: str = "") -> Path:
    py = site_folder(tmp_path,
                     edited("{user: admin, known_hosts: ./known_hosts}",
                            f"{{user: admin, known_hosts: kh, jump: '{jump}'{more}}}"))
    files = {str(data["ssh_config_file"]) for _, data in hosts(str(py))}
    assert len(files) == 1, "one file for all nodes with the same jump"
    return Path(files.pop())


def test_a_jump_becomes_an_ssh_config_that_pyinfra_reads(tmp_path: Path, own_home: Path) -> None:
    (own_home / ".ssh/config").write_text("Include more\nHost n2\n  HostName 10.0.0.2\n  User other\n")
    (own_home / ".ssh/more").write_text("ConnectTimeout 7\n")
    path = jump_config(tmp_path, "me@bastion:2200")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    config = get_ssh_config(str(path))
    target = config.lookup("n2")
    assert (target["proxyjump"], target["hostname"], target["connecttimeout"]) == ("me@bastion:2200", "10.0.0.2", "7")
    assert config.lookup("192.0.2.1")["proxyjump"] == "me@bastion:2200"
    shorthand = SSHClient.derive_shorthand(config, "me@bastion:2200")  # type: ignore[no-untyped-call]
    assert shorthand == ("bastion", {"port": 2200, "username": "me", "timeout": 7})
    hop = config.lookup("bastion")
    assert "proxyjump" not in hop
    assert hop["stricthostkeychecking"] == "yes"
    assert hop["userknownhostsfile"].split() == [str(tmp_path / "site/kh"), "~/.ssh/known_hosts"]


def test_the_chain_of_jumps_is_written_out(tmp_path: Path, own_home: Path) -> None:
    (own_home / ".ssh/config").write_text(
        "Host inner\n  HostName 10.0.0.9\n  Port 2201\n  ProxyJump u@outer\n  IdentityFile ~/.ssh/inner\n"
        "Host outer\n  HostName gate.example\n")
    config = get_ssh_config(str(jump_config(tmp_path, "inner", ", key: k")))
    assert config.lookup("n1")["proxyjump"] == "u@gate.example:22,10.0.0.9:2201"
    assert [os.path.basename(f) for f in config.lookup("10.0.0.9")["identityfile"]] == ["inner", "k"]
    assert "proxyjump" not in config.lookup("10.0.0.9")


@pytest.mark.parametrize(("config", "jump", "text"), [
    ("Host b\n  ProxyCommand nc %h %p\n", "b", "reached by a ProxyCommand"),
    ("Host b\n  ProxyJump c\nHost c\n  ProxyJump b\n", "b", "never ends"),
    ("Host n2\n  ProxyCommand nc %h %p\n", "b", "would win over the jump"), ("nonsense\n", "b", "cannot be read"),
    ("Include config\n", "b", "nested too deeply"), ("Host b\n  Port x\n", "b", "the port x of b cannot be used"),
    ("CanonicalizeHostname yes\n", "b", "KeyError"),
])
def test_jumps_that_pyinfra_cannot_follow_are_refused(config: str, jump: str, text: str, tmp_path: Path, own_home: Path) -> None:
    (own_home / ".ssh/config").write_text(config)
    with pytest.raises(SpecError, match=text):
        jump_config(tmp_path, jump)


def test_a_healthy_own_config_is_accepted(tmp_path: Path, own_home: Path) -> None:
    (own_home / ".ssh/config").write_text("Host other\n  ProxyCommand nc %h %p\nHost b\n  Port 24\n")
    assert get_ssh_config(str(jump_config(tmp_path, "b"))).lookup("n2")["proxyjump"] == "b:24"


def test_the_config_of_the_spec_is_included_instead(tmp_path: Path, own_home: Path) -> None:
    (own_home / ".ssh/config").write_text("Host *\n  User wrong\n")
    (tmp_path / "c").write_text("Host *\n  User right\n")
    config = get_ssh_config(str(jump_config(tmp_path, "b", f", config: {tmp_path / 'c'}")))
    assert config.lookup("n1")["user"] == "right"


def test_blanks_in_known_hosts_cannot_stand_in_an_ssh_config(tmp_path: Path) -> None:
    site = load_site(write(tmp_path, edited("./known_hosts}", "'a b', jump: bastion}")))
    with pytest.raises(SpecError, match="a path with blanks"):
        host_data(site, site.nodes[0])


def test_a_cache_that_cannot_be_written_is_a_clear_error(tmp_path: Path, own_home: Path) -> None:
    (own_home / "cache").write_text("a file")
    with pytest.raises(SpecError, match="cannot be written"):
        jump_config(tmp_path, "b")


def pyinfra(py: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run([sys.executable, "-m", "pyinfra", str(py), "debug-inventory"], capture_output=True, text=True, env=env,
                          cwd="/", timeout=60)


def test_plain_pyinfra_takes_the_inventory(tmp_path: Path) -> None:
    done = pyinfra(site_folder(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "[n1]" in done.stdout + done.stderr


def test_plain_pyinfra_shows_spec_errors_without_a_traceback(tmp_path: Path) -> None:
    done = pyinfra(site_folder(tmp_path, edited("mtu: 9000", "mtu: nine").replace("switch: sw\n", "switch: sv\n")))
    text = done.stdout + done.stderr
    assert done.returncode != 0
    assert "s.yaml:7:8: error" in text
    assert 'switch "sv" is not in switches' in text
    assert "Traceback" not in text


def test_a_py_without_its_yaml(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("")
    with pytest.raises(SpecError, match=r"x\.yaml: error: there is no such file"):
        hosts(str(tmp_path / "x.py"))
