"""A program that sends and receives over one RDMA device until it is ended: `stream.py DEVICE`. It stands for storage or another job."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from fabrictool.lab.nodeside.nccl.device import Hardware

EVERY_S = 0.2
BYTES = 200 << 20  # each time and way: about 1 GB/s


def main(device: str) -> None:
    """OSError when the node's service has gone."""
    hardware = Hardware()
    tos = hardware.open(device, 2, 0)
    flow = {"rdma": device, "sent": BYTES, "received": BYTES, "mtu": 4096, "tos": tos, "peer_tos": tos}
    while True:
        hardware.carry([flow], 0)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main(sys.argv[1])
