"""The users of a node: the machine's system accounts (sshd's own among them), root, and one that logs in."""

from __future__ import annotations

import ctypes
import ctypes.util
import secrets

from fabrictool.lab.errors import LabError
from fabrictool.lab.factory import USER, File

UID = 1000
FIRST_PERSON = 1000  # UID_MIN of Debian's login.defs: from here on accounts are people's


def hashed(password: str) -> str:
    """SHA-512 crypt by the C library, which is what reads it later."""
    name = ctypes.util.find_library("crypt")
    if name is None:
        raise LabError("libcrypt is not there: install libcrypt1 (Debian, Ubuntu)")
    crypt = ctypes.CDLL(name).crypt
    crypt.restype = ctypes.c_char_p
    result = crypt(password.encode(), f"$6$rounds=1000${secrets.token_hex(8)}".encode())
    if not isinstance(result, bytes) or not result.startswith(b"$6$"):
        raise LabError("libcrypt does not know SHA-512")
    return result.decode()


def files(passwd: str, group: str, password_hash: str) -> dict[str, File]:
    """From the machine's /etc/passwd and /etc/group. Nobody but the login user has a password."""
    users = [line for line in passwd.splitlines() if _system(line) and not line.startswith((f"{USER}:", "root:"))]
    groups = [line for line in group.splitlines() if _system(line) and not line.startswith((f"{USER}:", "sudo:"))]
    groups = [line.rpartition(":")[0] + ":" for line in groups]  # members are people of this machine
    users = ["root:x:0:0:root:/root:/bin/bash", *users, f"{USER}:x:{UID}:{UID}:{USER}:/home/{USER}:/bin/bash"]
    groups += [f"sudo:x:27:{USER}", f"{USER}:x:{UID}:"]
    names = [line.partition(":")[0] for line in users]
    shadow = [f"{n}:{password_hash if n == USER else '*'}:20000:0:99999:7:::" for n in names]
    return {"/etc/passwd": File("\n".join(users) + "\n"), "/etc/group": File("\n".join(groups) + "\n"),
            "/etc/shadow": File("\n".join(shadow) + "\n", 0o600), "/etc/gshadow": File("", 0o600)}


def _system(line: str) -> bool:
    fields = line.split(":")
    return len(fields) > 2 and fields[2].isdigit() and (int(fields[2]) < FIRST_PERSON or fields[0] in ("nobody", "nogroup"))
