"""What a user points tools at: the lab as a spec (lab.yaml, lab.py beside it), an ssh_config and a known_hosts."""

from __future__ import annotations

import resource
from pathlib import Path

from fabrictool.lab import keys
from fabrictool.lab.factory import USER, VENV
from fabrictool.lab.paths import Layout
from fabrictool.lab.plan import SWITCH_MTU, LabPlan, NodePlan, Owner

INVENTORY_PY = '''"""The lab as a pyinfra inventory: every node of the spec beside this file."""
from fabrictool.spec.inventory import hosts

nodes = hosts(__file__)
'''


def _ports(plan: LabPlan) -> str:
    """One block per physical port, its functions below it."""
    devices = [d for d in plan.profile.devices if d.rail]
    lines = []
    for name in dict.fromkeys(d.port for d in devices):
        mine = [d for d in devices if d.port == name]
        lines += [f"      {name}:", f"        rate_gbit: {mine[0].rate_gbit}", "        switch: sw1", "        functions:"]
        lines += [f"          - {{rail: {d.rail}, rdma: {d.rdma}, interface: {d.interface}}}" for d in mine]
    return "\n".join(lines)


def _env(plan: LabPlan) -> str:
    if plan.profile.owner is Owner.NETWORKD:
        return '    env: {write: [docker_env], set: {UCX_TLS: "rc,cuda_copy,cuda_ipc,sm,self"}, consumers: ["docker:sglang-*"]}'
    return ('    env:\n      write: [nccl_conf, docker_env]\n      hca_match: plain\n'
            '      set: {NCCL_IB_QPS_PER_CONNECTION: 4, NCCL_IB_SPLIT_DATA_ON_QPS: 1, VLLM_HOST_IP: "{bootstrap.address}"}\n'
            '      consumers: ["docker:vllm-*"]')


CAP_SYS_RESOURCE = 24
WANTED_LOCKED = 16 << 30  # bytes: what the check `memlock` wants where a spec says nothing


def _memlock() -> str:
    """Nodes cannot lock more than this machine's root may allow them; where that is little, the spec has to ask for no more."""
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    status = Path("/proc/self/status").read_text()
    capable = int(status.partition("CapEff:")[2].split()[0], 16) >> CAP_SYS_RESOURCE & 1
    if capable or hard == resource.RLIM_INFINITY or hard >= WANTED_LOCKED:
        return ""
    return f"    memlock: {{at_least: {hard // 1024}KiB}}      # this machine allows no more\n"


def _range(plan: LabPlan) -> str:
    return f"{plan.profile.prefix}[01-{len(plan.nodes):02d}]" if len(plan.nodes) > 1 else plan.nodes[0].name


def spec(layout: Layout, plan: LabPlan, ports: dict[str, int], bare: bool = False) -> str:
    """lab.yaml. `bare`: without how this lab is reached, as an example of the shape."""
    p = plan.profile
    rails = "\n".join(f"    {name}: {{subnet: {net}.0/24}}" for name, net in p.subnets.items())
    protected = [p.management.interface] if p.management.interface != p.bootstrap else []
    storage = [d.rdma for d in p.devices if not d.rail]
    extra = f"    other_rdma: [{', '.join(storage)}]\n" if storage else ""
    nodes = "".join(f"  {n.name}: {{ssh: {{host: 127.0.0.1, port: {ports.get(n.name, 22)}}}}}\n" for n in plan.nodes)
    return f"""# The lab {plan.name!r}: nodes are namespaces of one machine, RDMA and GPUs are stand-ins.
version: 1
site: {plan.name}
simulated: true
ssh: {{user: {USER}, key: {layout.user_key if not bare else 'keys/id_ed25519'}, known_hosts: ./known_hosts, sudo: nopasswd}}
switches:
  sw1: {{mtu: {SWITCH_MTU}, mtu_counts: ip, pfc: [3], keeps_dscp: unknown}}
fabric:
  mtu: 9000
  traffic_class: 104
  qos: {{trust: dscp, dscp_to_priority: {{26: 3}}, pfc: [3], global_pause: false, writer: mlnx_qos}}
  rails:
{rails}
groups:
  {p.group}:
    nodes: {_range(plan)}
    gpu: {{model: {p.gpu}, count: {p.gpus}{', unified_memory: true' if p.name == 'spark' else ''}}}
    ports:
{_ports(plan)}
{extra}    bootstrap: {p.bootstrap}
    protected: [{', '.join(protected)}]
{_memlock()}{_env(plan)}
{_collective(plan)}
nodes:
{nodes}"""


def _collective(plan: LabPlan) -> str:
    if plan.profile.gpus == 1:
        why, size = "Small: over sockets a lab really sends every byte.", "8MiB"
    else:
        why, size = "With fewer bytes the steps of so many ranks take longer than the bytes do.", "256MiB"
    return f"# {why}\ncollective: {{launcher: direct, venv: {VENV}, size: {size}, runs: 3}}"


def ssh_config(layout: Layout, plan: LabPlan, ports: dict[str, int]) -> str:
    """For plain ssh: `ssh -F ssh_config NODE`."""
    blocks = [f"Host {n.name}\n  HostName 127.0.0.1\n  Port {ports[n.name]}\n" for n in plan.nodes]
    return "".join(blocks) + (f"Host *\n  User {USER}\n  IdentityFile {layout.user_key}\n  IdentitiesOnly yes\n"
                              f"  UserKnownHostsFile {layout.root / 'known_hosts'}\n  StrictHostKeyChecking yes\n"
                              "  GlobalKnownHostsFile /dev/null\n  BatchMode yes\n  LogLevel ERROR\n")


def write(layout: Layout, plan: LabPlan, ports: dict[str, int]) -> None:
    """All four files into the run folder."""
    (layout.root / "lab.yaml").write_text(spec(layout, plan, ports))
    (layout.root / "lab.py").write_text(INVENTORY_PY)
    (layout.root / "ssh_config").write_text(ssh_config(layout, plan, ports))
    (layout.root / "known_hosts").write_text("".join(_known(layout, n, ports) for n in plan.nodes))


def _known(layout: Layout, node: NodePlan, ports: dict[str, int]) -> str:
    return keys.known_hosts_line(ports[node.name], layout.node(node.name).host_key)
