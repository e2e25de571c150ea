"""paramiko stops at a byte that is not UTF-8; the engine does not. In a process of its own: the engine changes paramiko."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from io import BytesIO
if sys.argv[1] == "engine":
    import fabrictool.engine
from paramiko.file import BufferedFile

class File(BufferedFile):
    def __init__(self, data):
        super().__init__()
        self._left = BytesIO(data)
        self._set_mode("r")
    def _read(self, size):
        return self._left.read(size)

try:
    print(ascii(list(File(b"Welcome\\n\\xff\\xfe\\ncaf\\xc3\\xa9 \\\\xff\\nlast"))))
except UnicodeDecodeError:
    print("UnicodeDecodeError")
"""


def said(who: str) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM, who], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_paramiko_itself_still_stops() -> None:
    """When this fails, fabrictool/engine/decode.py can go."""
    assert said("paramiko") == "UnicodeDecodeError"


def test_the_engine_reads_on() -> None:
    assert said("engine") == ascii(["Welcome\n", "\\xff\\xfe\n", "caf\u00e9 \\xff\n", "last"])
