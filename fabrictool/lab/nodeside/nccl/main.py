"""Entry of the stand-in of all_reduce_perf in a lab node: `main.py PATH-OF-THE-PROGRAM ARGS...`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from fabrictool.lab.nodeside.nccl.perf import start

if __name__ == "__main__":
    start(sys.argv[1:])
