"""Runs on a node (Python 3.8 or later, standard library): listens on a free port for a few seconds, connects to such a port of another
node, and ends what it started. The words that it prints are read by fabrictool.prove.bootstrap_tcp.

    listen RUN ADDRESS SECONDS          -> listening ADDRESS PORT PID
    connect RUN ADDRESS PORT SECONDS    -> connected LOCAL-ADDRESS ADDRESS PORT MILLISECONDS, or one word and the error
    stop RUN PID                        -> was listening | was gone
    left RUN                            -> a line `process PID COMMAND` for everything of this run that is still there, then `end`
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import sys
import time

WORDS = {
    errno.ECONNREFUSED: "refused", errno.ETIMEDOUT: "timed-out", errno.EHOSTUNREACH: "no-route", errno.ENETUNREACH: "no-route",
    errno.EPERM: "not-permitted", errno.EACCES: "not-permitted", errno.ECONNRESET: "wrong-answer",
}


def greeting(run: str) -> bytes:
    return f"fabrictool {run}\n".encode("ascii")


def family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def listen(run: str, address: str, seconds: int) -> int:
    """The listener is a process of its own, which ends by itself after `seconds`, whatever becomes of the one who started it."""
    server = socket.socket(family(address), socket.SOCK_STREAM)
    try:
        server.bind((address, 0))
        server.listen(128)
    except OSError as error:
        sys.stderr.write(f"cannot listen on {address}: {error.strerror}\n")
        return 1
    child = os.fork()
    if child:
        print("listening", address, server.getsockname()[1], child)
        return 0
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    while True:
        with contextlib.suppress(OSError):
            connection = server.accept()[0]
            with contextlib.closing(connection):
                connection.settimeout(2)
                connection.sendall(greeting(run))


def connect(run: str, address: str, port: int, seconds: float) -> int:
    begin = time.monotonic()
    try:
        with contextlib.closing(socket.socket(family(address), socket.SOCK_STREAM)) as client:
            client.settimeout(seconds)
            client.connect((address, port))
            local = client.getsockname()[0]
            said = b""
            while not said.endswith(b"\n") and len(said) < 200:
                part = client.recv(200)
                if not part:
                    break
                said += part
    except socket.timeout:  # another class than TimeoutError before Python 3.10
        print(f"timed-out nothing within {seconds:g} s")
        return 1
    except OSError as error:
        number = error.errno or 0
        print(WORDS.get(number, "failed"), errno.errorcode.get(number, str(number)), error.strerror or error)
        return 1
    if said != greeting(run):
        print(f"wrong-answer {len(said)} bytes that are not ours")
        return 1
    print(f"connected {local} {address} {port} {1000 * (time.monotonic() - begin):.1f}")
    return 0


def words(pid: int) -> list[str]:
    """The command line of a process; [] once it is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return []


def parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def stop(run: str, pid: int) -> int:
    """Only a process that carries the run's name is ended: numbers are used again."""
    if run not in words(pid):
        print("was gone")
        return 0
    os.kill(pid, signal.SIGTERM)
    for _ in range(40):
        if run not in words(pid):
            break
        time.sleep(0.05)
    print("was listening")
    return 0


def left(run: str) -> int:
    """This process and those that started it carry the name too."""
    own, pid = set(), os.getpid()
    while pid > 1 and pid not in own:
        own.add(pid)
        pid = parent(pid)
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in own and any(run in word for word in words(int(name))):
            print("process", name, " ".join(words(int(name)))[:200])
    print("end")
    return 0


def main(verb: str, run: str, *rest: str) -> int:
    if verb == "listen":
        return listen(run, rest[0], int(rest[1]))
    if verb == "connect":
        return connect(run, rest[0], int(rest[1]), float(rest[2]))
    return stop(run, int(rest[0])) if verb == "stop" else left(run)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
