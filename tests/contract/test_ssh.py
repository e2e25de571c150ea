"""What ops/ and engine/ rely on or work around in paramiko and in pyinfra's SSH connector, against a real sshd."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabrictool.lab import keys
from fabrictool.lab.handle import Lab
from tests.contract.driver import found
from tests.lab.fleet import built

pytestmark = pytest.mark.lab
LIMIT_S = 240


@pytest.fixture(scope="module")
def two() -> Iterator[Lab]:
    with built("ssh", 2, "plain") as lab:
        yield lab


def data(lab: Lab, **changed: object) -> dict[str, object]:
    """pyinfra's data of a node of the lab, as our inventory gives it; `changed` keys on top."""
    first = lab.nodes[0]
    return {"ssh_hostname": "127.0.0.1", "ssh_port": lab.port(first), "ssh_user": "admin", "ssh_key": str(lab.layout.user_key),
            "ssh_known_hosts_file": str(lab.layout.root / "known_hosts"), "ssh_strict_host_key_checking": "yes", **changed}


@contextmanager
def listener(answer: bytes | None) -> Iterator[int]:
    """A port on 127.0.0.1 that accepts and then says nothing at all (None), or says `answer` and closes."""
    server = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            if answer is None:
                held.append(line)
            else:
                line.sendall(answer)
                line.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for line in held:
            line.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert isinstance(port, int)
    return port


def test_nagle_is_on_and_disconnect_closes_nothing(two: Lab) -> None:
    """Workarounds: engine/connect.py `_tune` (TCP_NODELAY, about 40 ms for each exec) and `close`."""
    got = found(f"""
        import socket
        inventory = Inventory(([("n", {data(two)!r})], {{}}))
        state = State(inventory, Config())
        state.set_stage(StateStage.Connect)
        h = inventory.get_host("n")
        h.connect(raise_exceptions=True)
        line = h.connector.client.get_transport()
        nodelay = line.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        h.disconnect()
        say(nodelay=nodelay, open=line.is_active(), fd=line.sock.fileno() >= 0)
        """)
    assert got == {"nodelay": 0, "open": True, "fd": True}


def test_our_connection_has_no_nagle_and_is_closed(two: Lab) -> None:
    got = found(f"""
        import socket
        from fabrictool.engine.connect import close, connect, reconnect
        from fabrictool.engine.progress import Silent
        conn = connect([("n", {data(two)!r})], Silent())
        first = conn.hosts["n"].connector.client.get_transport()
        nodelay = [first.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)]
        again = reconnect(conn.hosts["n"])
        second = conn.hosts["n"].connector.client.get_transport()
        nodelay.append(second.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        new = second is not first and second.is_active() and not first.is_active()
        close(conn)
        say(nodelay=[n != 0 for n in nodelay], refused=again is not None, new=new, open=second.is_active())
        """)
    assert got == {"nodelay": [True, True], "refused": False, "new": True, "open": False}


def test_each_way_to_fail_has_its_code(two: Lab, tmp_path: Path) -> None:
    """Relied on: the words of paramiko and pyinfra that engine/connect.py `classify` knows. One run: none hides another."""
    keys.make_key(tmp_path / "stranger", "not of this lab")
    first = two.nodes[0]
    (tmp_path / "none").write_text("")
    (tmp_path / "changed").write_text(keys.known_hosts_line(two.port(first), tmp_path / "stranger"))
    two.forward(two.nodes[1], "hang-in-login")
    with listener(None) as silent, listener(b"") as closes, listener(b"HTTP/1.0 400 Bad Request\r\n\r\n") as other:
        cases = {
            "fine": data(two),
            "changed": data(two, ssh_known_hosts_file=str(tmp_path / "changed")),
            "unknown": data(two, ssh_known_hosts_file=str(tmp_path / "none")),
            "wrong-key": data(two, ssh_key=str(tmp_path / "stranger")),
            "no-key": data(two, ssh_key=str(tmp_path / "nothing")),
            "refused": data(two, ssh_port=free_port()),
            "silent": data(two, ssh_port=silent),
            "closes": data(two, ssh_port=closes),
            "not-ssh": data(two, ssh_port=other),
            "login-hangs": data(two, ssh_port=two.port(two.nodes[1])),
            "no-name": data(two, ssh_hostname="nobody.invalid"),
        }
        got = found(f"""
            os.environ.pop("SSH_AUTH_SOCK", None); os.environ["HOME"] = {str(tmp_path)!r}
            from fabrictool.engine.connect import connect
            from fabrictool.engine.progress import Silent
            with connect(list({cases!r}.items()), Silent()) as conn:
                say(fine=sorted(conn.hosts), codes={{n: str(r.code) for n, r in conn.refused.items()}},
                    why={{n: r.why for n, r in conn.refused.items()}}, remedy=all(r.remedy for r in conn.refused.values()))
            """, LIMIT_S)
    two.forward(two.nodes[1], "ok")
    assert got["fine"] == ["fine"]
    assert got["codes"] == {
        "changed": "HOST_KEY_CHANGED", "unknown": "HOST_KEY_UNKNOWN", "wrong-key": "LOGIN_REFUSED", "no-key": "LOGIN_REFUSED",
        "refused": "UNREACHABLE", "silent": "UNREACHABLE", "closes": "UNREACHABLE", "not-ssh": "UNREACHABLE",
        "login-hangs": "UNREACHABLE", "no-name": "UNREACHABLE"}, got["why"]
    assert all(got["why"].values())
    assert got["remedy"]


@pytest.mark.parametrize("trusted", [True, False])
def test_a_jump_host_of_the_spec_is_used_and_its_key_is_checked(two: Lab, tmp_path: Path, trusted: bool) -> None:
    """Relied on: pyinfra takes ProxyJump from the ssh_config that spec/sshconfig.py generates. The target's address exists only
    behind the jump."""
    hop, target = two.plan.nodes
    host_key = keys.public(two.layout.node(target.name).host_key).read_text().split()[:2]
    address = target.management.address.partition("/")[0]
    hop_line = keys.known_hosts_line(two.port(hop.name), two.layout.node(hop.name).host_key) if trusted else ""
    (tmp_path / "known_hosts").write_text(hop_line + f"{address} {' '.join(host_key)}\n")
    text = (two.layout.root / "lab.yaml").read_text()
    text = text.replace("sudo: nopasswd}", f"sudo: nopasswd, jump: 'admin@127.0.0.1:{two.port(hop.name)}'}}")
    text = text.replace(f"{{host: 127.0.0.1, port: {two.port(target.name)}}}", f"{{host: {address}}}")
    (tmp_path / "lab.yaml").write_text(text)
    got = found(f"""
        os.environ.update(HOME={str(tmp_path)!r}, XDG_CACHE_HOME={str(tmp_path / "cache")!r})
        os.environ.pop("SSH_AUTH_SOCK", None)
        from pathlib import Path
        from fabrictool.engine.connect import connect
        from fabrictool.engine.progress import Silent
        from fabrictool.spec.inventory import host_data, load_site
        site = load_site(Path({str(tmp_path / "lab.yaml")!r}))
        nodes = [(n.name, host_data(site, n)) for n in site.nodes if n.name == {target.name!r}]
        with connect(nodes, Silent()) as conn:
            said = {{n: h.run_shell_command(StringCommand("hostname")) for n, h in conn.hosts.items()}}
            say(said={{n: (ok, out.stdout) for n, (ok, out) in said.items()}},
                refused={{n: [str(r.code), r.why] for n, r in conn.refused.items()}})
        """, LIMIT_S)
    if trusted:
        assert got == {"said": {target.name: [True, target.name]}, "refused": {}}
    else:
        assert got["said"] == {}
        assert got["refused"][target.name][0] == "HOST_KEY_UNKNOWN", got
