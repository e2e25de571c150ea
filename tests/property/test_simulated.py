"""From any state, apply leads to what the spec wants, once, and undo leads back: on simulated nodes, some hundred random ones.

How it is simulated. A case is a seed. cases.py draws a spec and a node: QoS registers, MTUs, owners, files, tool era, broken tools.
sim.py is the node, in this process: the lab's state model and its stand-ins (mlnx_qos, dcb, ethtool, rdma, nmcli, netplan, systemctl ...)
run as the lab's tool server runs them; files lie in a temporary folder; the kernel is a table of links. show.py prints the sections of a
snapshot: a section's own shell text says which tool, which globs, which loop; only six long scripts are modelled by hand, and
test_ssh.py holds the simulated node's judgements against those over real SSH for the same states. A shell per section would be more
real, and would make five hundred cases of some twenty readings each take an hour instead of a minute.

host.py then drives the product's own converge, collect and undo (pyinfra's generator contract, no SSH) in the order of
deploys/site.py; laws.py says what must hold.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES, BATCH = 520, 65


def run(*words: str) -> tuple[int, list[str]]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))}
    done = subprocess.run([sys.executable, "-m", "tests.property.suite", *words], cwd=ROOT, env=env, capture_output=True, text=True,
                          timeout=550, check=False)
    return done.returncode, (done.stdout + done.stderr[-4000:]).splitlines()


@pytest.mark.parametrize("first", range(0, CASES, BATCH))
def test_any_node_converges_once_and_can_be_put_back(first: int) -> None:
    rc, said = run("any", str(first), str(BATCH))
    assert (rc, said[-1:]) == (0, [f"held {BATCH}"]), "\n".join(said[-60:])


@pytest.mark.parametrize(("tool", "mode"), [(t, m) for t in ("mlnx_qos", "ethtool") for m in ("lies", "refuses")] + [("mlnx_qos", "half")])
def test_a_tool_that_does_not_do_it_never_counts_as_done(tool: str, mode: str) -> None:
    rc, said = run("wrong", tool, mode)
    assert (rc, said[-1:]) == (0, ["held 12"]), "\n".join(said[-60:])


def test_the_cases_reach_what_they_are_for() -> None:
    rc, said = run("reach")
    assert (rc, said[-1:]) == (0, ["held 50"]), "\n".join(said[-60:])
