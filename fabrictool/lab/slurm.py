"""Real Slurm on the nodes of a lab: its controller on the first node, its daemon on each. Nothing of it is there until somebody asks."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from fabrictool.lab.errors import LabError

if TYPE_CHECKING:
    from fabrictool.lab.handle import Lab

NEEDS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "srun": "slurm-client"}
WAIT_S = 30
CPUS = 16  # as many tasks as anybody could want; the machine's own number does not count
CONFIG = """ClusterName={lab}
SlurmctldHost={head}({address})
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SlurmdParameters=config_overrides
{nodes}PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# No cgroups here: version 1 is asked for, and never mounted.
CGROUP = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"
# Slurm's plugin for PMIx opens the library by a name that only its development package brings.
PREPARE = """mkdir -p /var/spool/slurmctld /var/spool/slurmd
for d in /usr/lib/*/pmix2/lib /usr/lib/*/pmix/lib; do
  [ ! -e "$d/libpmix.so.2" ] || [ -e "$d/libpmix.so" ] || ln -s libpmix.so.2 "$d/libpmix.so"
done
"""


def missing() -> list[str]:
    """Debian packages that this machine lacks for it."""
    return sorted({package for tool, package in NEEDS.items() if shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin") is None})


def config(lab: Lab) -> str:
    """slurm.conf, the same on every node. Nodes are reached by their management addresses."""
    def address(name: str) -> str:
        return lab.plan.node(name).management.address.partition("/")[0]

    nodes = "".join(f"NodeName={n} NodeAddr={address(n)} CPUs={CPUS} State=UNKNOWN\n" for n in lab.nodes)
    return CONFIG.format(lab=lab.plan.name, head=lab.nodes[0], address=address(lab.nodes[0]), nodes=nodes)


def start(lab: Lab) -> None:
    """Returns when all nodes are free for jobs. LabError with what is missing, or with the controller's last words."""
    lacking = missing()
    if lacking:
        raise LabError(f"these packages are missing: apt-get install {' '.join(lacking)}")
    for name in lab.nodes:
        lab.write_file(name, "/etc/slurm/slurm.conf", config(lab))
        lab.write_file(name, "/etc/slurm/cgroup.conf", CGROUP)
        daemons = "slurmctld\nslurmd\n" if name == lab.nodes[0] else "slurmd\n"
        done = lab.exec(name, ["sh", "-ec", PREPARE + daemons])
        if not done.ok:
            raise LabError(f"{name}: Slurm did not start: {done.err.strip()[-300:]}")
    deadline = time.monotonic() + WAIT_S
    while lab.exec(lab.nodes[0], ["sinfo", "-h", "-N", "-o", "%T"]).out.split() != ["idle"] * len(lab.nodes):
        if time.monotonic() > deadline:
            words = lab.exec(lab.nodes[0], ["tail", "-n", "5", "/var/log/slurmctld.log"]).out
            raise LabError(f"Slurm's nodes do not become free: {words.strip()}")
        time.sleep(0.2)
