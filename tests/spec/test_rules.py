"""Every rule with a spec that breaks it, at the exact place, and a twin that does not."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.spec.base import BASE, edited, look, marked


class Case(NamedTuple):
    """`old` in the base spec becomes `bad` (¦ marks the expected place) or `good` (None: the base itself is the twin)."""

    name: str
    old: str
    bad: str
    severity: str
    what: str
    good: str | None = None


TC, QOS = "traffic_class: 104", "qos: {trust: dscp, dscp_to_priority: {26: 3}, pfc: [3]}"
SET, MTU = "{NCCL_IB_QPS_PER_CONNECTION: 4}", "mtu: 9216, mtu_counts: frame"
TWO = "          - {rail: b, rdma: mlx5_10, interface: if1}\n    bootstrap: eth0\n    env:\n"
SW, F2 = "pfc: [3], keeps_dscp: true}", "{rail: b, rdma: mlx5_2, interface: if1}"
C = "collective: {size: 1GiB}"
SSH = "ssh: {user: admin, known_hosts: ./known_hosts}"

CASES = (
    Case("dscp without pfc", QOS, "qos: {dscp_to_priority: {26: 3, 34: ¦4}, pfc: [3]}", "error",
         "DSCP 34 maps to priority 4, which has no PFC",
         "qos: {dscp_to_priority: {26: 3, 34: 4}, pfc: [3, 4]}"),
    Case("the NIC's own CNP map is no error, another is", QOS, "qos: {dscp_to_priority: {26: 3, 48: ¦5}, pfc: [3]}", "error",
         "DSCP 48 maps",
         "qos: {dscp_to_priority: {26: 3, 48: 6}, pfc: [3]}"),
    Case("tc: no such dscp", TC, "traffic_class: ¦96", "error", "a traffic class with no DSCP behind it: 96 is DSCP 24"),
    Case("tc: no qos", "\n  " + QOS, "", "error", "a traffic class with no DSCP behind it: there is no qos"),
    Case("tc: ecn 3", TC, "traffic_class: ¦107", "error", "both ECN bits", "traffic_class: 106"),
    Case("tc: missing", "\n  " + TC + "\n  " + QOS, "\n  ¦" + QOS, "warning", "no traffic_class"),
    Case("tc: pcp", QOS, QOS.replace("trust: dscp", "trust: ¦pcp"), "warning", "with trust pcp"),
    Case("mtu: frame", MTU, "mtu: ¦9017, mtu_counts: frame", "error",
         "switch sw takes 9017, the fabric needs 9018",
         "mtu: 9022, mtu_counts: frame"),
    Case("mtu: frame with a tag", MTU, "mtu: ¦9021, mtu_counts: frame", "warning",
         "no room for a VLAN tag",
         "mtu: 9022, mtu_counts: frame"),
    Case("mtu: ip", MTU, "mtu: ¦8999, mtu_counts: ip", "error",
         "switch sw takes 8999, the fabric needs 9000",
         "mtu: 9000, mtu_counts: ip"),
    Case("switch: no pfc", SW, "pfc: ¦none, keeps_dscp: true}", "warning", "no PFC on priority 3"),
    Case("switch: other pfc", SW, "pfc: ¦[4], keeps_dscp: true}", "warning", "no PFC on priority 3",
         "pfc: [3, 4], keeps_dscp: true}"),
    Case("switch: rewrites dscp", SW, "pfc: [3], keeps_dscp: ¦false}", "warning", "to rewrite the DSCP"),
    Case("switch: dscp not known", SW, "pfc: [3], keeps_dscp: ¦unknown}", "warning", "not to be known to keep the DSCP"),
    Case("switch: pfc word", SW, "pfc: ¦some, keeps_dscp: true}", "error", "has to be a list of priorities"),
    Case("switch: dscp word", SW, "pfc: [3], keeps_dscp: ¦yes}", "error", "has to be true, false or unknown"),
    Case("rails overlap", "b: {subnet: 10.10.2.0/24}", "b: {subnet: ¦10.10.0.0/16}", "warning", "rails a and b overlap"),
    Case("rail idle", "b: {subnet: 10.10.2.0/24}", "b: {subnet: 10.10.2.0/24}\n    c: ¦{subnet: 10.10.3.0/24}", "warning",
         'no function of any node is on rail "c"'),
    Case("no selector", F2, "¦{rail: b}", "error", "no selector", "{rail: b, mac: 02:00:00:00:00:0a}"),
    Case("no such rail", F2, "{rail: ¦bb, rdma: mlx5_2}", "error", 'rail "bb" is not in fabric.rails'),
    Case("no such switch", "switch: sw\n", "switch: ¦sv\n", "error", 'switch "sv" is not in switches'),
    Case("rdma twice", F2, "{rail: b, rdma: ¦mlx5_1, interface: if1}", "error", 'rdma "mlx5_1" is on this node twice'),
    Case("interface twice", F2, "{rail: b, rdma: mlx5_2, interface: ¦if0}", "error", 'interface "if0" is on this node twice'),
    Case("interface too long", F2, "{rail: b, rdma: mlx5_2, interface: ¦enP2p1s0f0np0v10}", "error", "no name of an interface",
         "{rail: b, rdma: mlx5_2, interface: enP2p1s0f0np0v1}"),
    Case("interface as an option", F2, '{rail: b, rdma: mlx5_2, interface: ¦"-f"}', "error", "no name of an interface"),
    Case("rdma with a path", F2, "{rail: b, rdma: ¦../x, interface: if1}", "error", "no name of an RDMA device"),
    Case("bootstrap name", "bootstrap: eth0", "bootstrap: ¦eth0:1", "error", "no name of an interface", "bootstrap: eth0.100"),
    Case("protected name", "protected: [eth1]", "protected: [¦'a b']", "error", "no name of an interface", "protected: [a]"),
    Case("port name", "      p0:\n", '      ¦"p 0":\n', "error", 'no name of a port: "p 0"'),
    Case("switch name", "  sw: {", '  ¦"s\\e[m": {', "error", "no name of a switch"),
    Case("rail twice", F2, "{rail: ¦a, rdma: mlx5_2, interface: if1}", "warning", 'rail "a" has two functions'),
    Case("rate in Mb/s", "rate_gbit: 200", "rate_gbit: ¦200000", "error", "no port is that fast"),
    Case("rate unusual", "rate_gbit: 200", "rate_gbit: ¦240", "warning", "no usual rate", "rate_gbit: 400"),
    Case("function protected", "protected: [eth1]", "protected: [eth1, ¦if1]", "error",
         "at the same time the function of rail b"),
    Case("hca prefix", "if0}\n          - " + F2 + "\n    bootstrap: eth0\n    protected: [eth1]\n    env:\n",
         "if0}\n" + TWO + "      hca_match: plain\n", "error", "mlx5_1 is the beginning of mlx5_10",
         "if0}\n" + TWO + "      hca_match: exact\n"),
    Case("hca prefix of storage", "    env:\n", "    other_rdma: [mlx5_20]\n    env:\n      hca_match: plain\n", "error",
         "mlx5_2 is the beginning of mlx5_20", "    other_rdma: [mlx5_30]\n    env:\n      hca_match: plain\n"),
    Case("other_rdma in use", "    env:\n", "    other_rdma: [¦mlx5_1]\n    env:\n", "error", "in other_rdma and a function"),
    *(Case(f"derived {n}", SET, f"{{¦{n}: x}}", "error", f"{n} is derived") for n in (
        "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_IB_TC", "UCX_NET_DEVICES")),
    Case("dscp key", QOS, "qos: {dscp_to_priority: {¦64: 3}, pfc: [3]}", "error", "64 is no DSCP: 0..63",
         "qos: {dscp_to_priority: {26: 3, 63: 3}, pfc: [3]}"),
    Case("unit: a dot", "[nccl_conf]", '[¦"systemd:."]', "error", '"." is no systemd unit', '["systemd:vllm@0.service"]'),
    Case("unit: a dash", "[nccl_conf]", '[¦"systemd:-x"]', "error", '"-x" is no systemd unit', '["systemd:x-y"]'),
    Case("unit: too long", "[nccl_conf]", f'[¦"systemd:{"u" * 246}"]', "error", "246 characters: at most 245",
         f'["systemd:{"u" * 245}"]'),
    Case("consumer: a dot", "[nccl_conf]", '[nccl_conf]\n      consumers: [¦"systemd:.."]', "error", "is no systemd unit",
         '[nccl_conf]\n      consumers: ["systemd:vllm"]'),
    Case("ssh user: a dash", SSH, SSH.replace("admin", '¦"-oProxyCommand=x"'), "error", "is no SSH user",
         SSH.replace("admin", "ad-min")),
    Case("ssh user: too long", SSH, SSH.replace("admin", "¦" + "u" * 256), "error", "256 characters: at most 255",
         SSH.replace("admin", "u" * 255)),
    Case("ssh host: a dash", "host: 192.0.2.1", "host: ¦-x", "error", "is no SSH host", "host: a-x"),
    Case("ssh host: a control character", "host: 192.0.2.1", 'host: ¦"a\\x1bb"', "error", "is no SSH host"),
    Case("ssh host: too long", "host: 192.0.2.1", "host: ¦" + "h" * 256, "error", "256 characters: at most 255",
         "host: " + "h" * 255),
    *(Case(f"ssh jump: {n}", SSH, SSH.replace("}", f", jump: ¦{bad}}}"), "error", "is no jump host",
           SSH.replace("}", ', jump: "bastion,me@inner:22"}'))
      for n, bad in (("a blank", '" bastion"'), ("a line end", '"bastion\\n"'), ("a dash", '"me@-x"'), ("too long", "j" * 256))),
    *(Case(f"ssh key: {n}", SSH, SSH.replace("}", f", key: ¦{bad}}}"), "error", what, SSH.replace("}", ", key: ~/.ssh/id-x}"))
      for n, bad, what in (("a dash", '"-x"', "begins with a dash"), ("a blank", '"a b"', "holds blanks"),
                           ("a control character", '"a\\x1b"', "is no path"))),
    Case("gid index", SET, "{¦NCCL_IB_GID_INDEX: 3}", "error", "NCCL_IB_GID_INDEX is never written"),
    Case("debug", SET, "{¦NCCL_DEBUG_SUBSYS: NET}", "warning", "NCCL_DEBUG_SUBSYS in a persistent file"),
    Case("retry", SET, "{NCCL_IB_RETRY_CNT: ¦15}", "error", "from 0 to 7", "{NCCL_IB_RETRY_CNT: 7}"),
    Case("qps", SET, "{NCCL_IB_QPS_PER_CONNECTION: ¦many}", "error", "from 1 to 128", '{NCCL_IB_QPS_PER_CONNECTION: "4"}'),
    Case("timeout", SET, "{NCCL_IB_TIMEOUT: ¦23}", "warning", "waits 34 s", "{NCCL_IB_TIMEOUT: 22}"),
    Case("ib disabled", SET, "{NCCL_IB_DISABLE: ¦1}", "error", "contradicts ports", "{NCCL_IB_DISABLE: 0}"),
    Case("socket net", SET, "{NCCL_NET: ¦socket}", "error", "contradicts ports", "{NCCL_NET: IB}"),
    Case("cross nic", "  mtu: 9000\n", "  mtu: 9000\n  cross_rail: false\n", "error", "contradicts cross_rail",
         "  mtu: 9000\n  cross_rail: true\n"),
    Case("family", SET, "{NCCL_SOCKET_FAMILY: ¦ipv4}", "error", "AF_INET or AF_INET6", "{NCCL_SOCKET_FAMILY: AF_INET}"),
    Case("ucx without cuda", SET, '{UCX_TLS: ¦"rc,sm,self"}', "warning", "no CUDA transport",
         '{UCX_TLS: "rc,cuda_copy,cuda_ipc,sm,self"}'),
    Case("ucx without rdma", SET, '{UCX_TLS: ¦"tcp,cuda_copy"}', "warning", "no RDMA transport", '{UCX_TLS: "^tcp"}'),
    Case("loopback", SET, "{VLLM_NIXL_SIDE_CHANNEL_HOST: ¦localhost}", "error", "is a loopback address",
         '{VLLM_NIXL_SIDE_CHANNEL_HOST: "{bootstrap.address}"}'),
    Case("address is a name", SET, "{VLLM_HOST_IP: ¦n1}", "error", "has to be an IP address",
         '{VLLM_HOST_IP: "{bootstrap.address}"}'),
    Case("one address, two nodes", SET, "{VLLM_HOST_IP: ¦192.0.2.7}", "error", 'VLLM_HOST_IP is "192.0.2.7" on n1 and on n2',
         '{VLLM_HOST_IP: "{bootstrap.address}"}'),
    Case("placeholder", SET, '{VLLM_HOST_IP: ¦"{bootstrap.adress}"}', "error", "placeholder {bootstrap.adress} is not known",
         '{VLLM_HOST_IP: "{bootstrap.address}", X: "{\\"json\\": 1}"}'),
    Case("control character", SET, '{X: ¦"a\\nb"}', "error", "holds a control character", '{X: "a b"}'),
    Case("blank", SET, '{X: ¦" a"}', "error", "begins or ends with a blank", '{X: "a"}'),
    Case("no bootstrap", "    bootstrap: eth0\n", "", "warning", "no bootstrap interface"),
    Case("known_hosts", SSH, "¦ssh: {user: admin}", "warning", "ssh has no known_hosts"),
    Case("sudo root", SSH, "ssh: {user: admin, known_hosts: k, sudo: ¦root}", "error", "sudo: root logs in as root",
         "ssh: {user: root, known_hosts: k, sudo: root}"),
    Case("root sudo", SSH, "ssh: {user: root, known_hosts: k, sudo: ¦ask}", "warning", "user root with sudo: ask",
         "ssh: {user: admin, known_hosts: k, sudo: ask}"),
    Case("user", SSH, 'ssh: {user: ¦"-oProxyCommand=x", known_hosts: k}', "error", "is no SSH user"),
    Case("host", "n1: {ssh: {host: 192.0.2.1}}", 'n1: {ssh: {host: ¦"a b"}}', "error", "is no SSH host",
         "n1: {ssh: {host: 'fe80::1%eth0'}}"),
    Case("jump", SSH, 'ssh: {user: admin, known_hosts: k, jump: ¦"-x"}', "error", "is no jump host",
         "ssh: {user: admin, known_hosts: k, jump: 'me@bastion:22,b2'}"),
    Case("jump to itself", "n1: {ssh: {host: 192.0.2.1}}", "n1: {ssh: {host: 192.0.2.1, jump: ¦a@192.0.2.1}}", "error",
         "through itself",
         "n1: {ssh: {host: 192.0.2.1, jump: a@192.0.2.2}}"),
    Case("same host", "n1: {ssh: {host: 192.0.2.1}}", "n1: {ssh: {host: ¦n2}}", "error",
         "nodes n1 and n2 have the same SSH host n2, port 22",
         "n1: {ssh: {host: n2, port: 2222}}"),
    Case("tag", "collective: {size: 1GiB}", "collective: {runtime: {image: ¦a:latest}}", "warning", "is not pinned",
         "collective: {runtime: {image: 'a@sha256:" + "0" * 64 + "'}}"),
    Case("digest", "collective: {size: 1GiB}", "collective: {runtime: {image: ¦'a@sha256:12'}}", "error",
         "is no image with a digest",
         "collective: {runtime: {image: 'a@sha256:" + "0" * 64 + "'}}"),
    Case("digest placeholder", "collective: {size: 1GiB}", "collective: {runtime: {image: ¦'IMAGE@sha256:DIGEST'}}", "warning",
         "is a placeholder",
         "collective: {runtime: {image: 'a@sha256:" + "0" * 64 + "'}}"),
    *(Case(f"pull {how}", C, f"collective: {{launcher: direct, runtime: {{image: 'a@sha256:{64 * '0'}', pull: ¦{how}}}}}", "error",
           f"pull: {how} is not done", f"collective: {{launcher: direct, runtime: {{image: 'a@sha256:{64 * '0'}', pull: never}}}}")
      for how in ("missing", "always")),
    Case("image: an option", C, "collective: {runtime: {image: ¦-v}}", "error", "is no image with a digest"),
    Case("image: mpirun", C, f"collective: {{launcher: mpirun, runtime: ¦{{image: 'a@sha256:{64 * '0'}'}}}}", "error",
         "starts no containers", f"collective: {{launcher: direct, runtime: {{image: 'a@sha256:{64 * '0'}'}}}}"),
    Case("program: direct", C, "collective: {program: ¦/opt/all_reduce_perf}", "error", "program is not for the launcher direct",
         "collective: {launcher: mpirun, program: /opt/all_reduce_perf}"),
    Case("python: srun", C, "collective: {launcher: srun, python: ¦/usr/bin/python3}", "error", "python is not for the launcher srun",
         "collective: {python: /usr/bin/python3}"),
    *(Case(f"program path {bad}", C, f"collective: {{launcher: mpirun, program: ¦{bad}}}", "error", "program is an absolute path",
           "collective: {launcher: mpirun, program: /usr/local/bin/all_reduce_perf}")
      for bad in ("all_reduce_perf", "/a/../b", '"/a\\nb"')),
    Case("venv and python", C, "collective: {venv: ¦/opt/v, python: /usr/bin/python3}", "error", "name the same thing twice",
         "collective: {venv: /opt/v}"),
    Case("venv and image", C, f"collective: {{venv: ¦/opt/v, runtime: {{image: 'a@sha256:{64 * '0'}'}}}}", "error",
         "does not see a venv", f"collective: {{python: /usr/bin/python3, runtime: {{image: 'a@sha256:{64 * '0'}'}}}}"),
    Case("consumer: not listed", C, 'collective: {consumer: ¦"docker:vllm-*"}', "error", "is not in env.consumers",
         "collective: {consumer: file:/etc/fabrictool/nccl.env}"),
    Case("consumer: relative", C, "collective: {consumer: ¦file:/a/../b}", "error", "takes an absolute path"),
    Case("consumer: no kind", C, "collective: {consumer: ¦vllm}", "error", "has to be text that matches"),
    Case("size: no float32", C, "collective: {size: ¦67108865B}", "error", "is no number of float32 values",
         "collective: {size: 67108864B}"),
    Case("size: none", C, "collective: {size: ¦0B}", "error", "is no number of float32 values"),
    Case("size: small", C, "collective: {size: ¦32MiB}", "warning", "too small for a bandwidth", "collective: {size: 64MiB}"),
    Case("size: unified memory", C, "gpu: {unified_memory: true}\ncollective: {size: ¦2GiB}", "warning", "share the system's memory",
         "gpu: {unified_memory: true}\ncollective: {size: 1GiB}"),
    Case("control: small", C, "collective: {control: {max_bytes_per_node: ¦1MiB}}", "error", "needs room for 32 MiB",
         "collective: {control: {max_bytes_per_node: 32MiB}}"),
    Case("size without unit", "collective: {size: 1GiB}", "collective: {size: ¦1024}", "error", "size 1024 has no unit",
         "collective: {size: 1 kB}"),
    Case("revision", "0123456789abcdef0123456789abcdef01234567", "¦main", "error", "a revision is a commit of 40 hex digits"),
    Case("revision placeholder", "0123456789abcdef0123456789abcdef01234567", "¦COMMIT40", "warning",
         "revision COMMIT40 is a placeholder"),
    Case("source", 'source: "dir:/m"', "source: ¦/m", "error", "a source is KIND:PLACE"),
    Case("relative source", 'source: "dir:/m"', 'source: ¦"dir:m"', "error", "the path has to be absolute"),
    Case("target", "target: /models", "target: ¦models", "error", "a target is an absolute path"),
    Case("cache path", "host_path: /a", "host_path: ¦/a/../b", "error", "host_path is an absolute path"),
)

PLACES = {  # where the base itself has the place, because the edit is elsewhere
    "tc: no qos": "traffic_class: ¦104", "hca prefix": "rdma: ¦mlx5_1,", "hca prefix of storage": "rdma: ¦mlx5_2",
          "no bootstrap": "write: ¦[nccl_conf]",
}


def test_the_base_has_no_problem(tmp_path: Path) -> None:
    seen = look(tmp_path, BASE)
    assert seen.problems == ()
    assert seen.site is not None
    assert seen.site.names == ("n1", "n2")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_broken_rule_is_named_at_its_place(case: Case, tmp_path: Path) -> None:
    text = edited(case.old, case.bad)
    if case.name == "cross nic":
        text = text.replace(SET, "{NCCL_CROSS_NIC: ¦1}")
    elif case.name in PLACES:
        text = text.replace(PLACES[case.name].replace("¦", ""), PLACES[case.name])
    text, place = marked(text)
    seen = look(tmp_path, text)
    hits = [p for p in seen.problems if case.what in p.what]
    assert len(hits) == 1, seen.problems
    assert (hits[0].line, hits[0].col) == place
    assert hits[0].severity == case.severity
    assert (seen.site is None) == (case.severity == "error")


@pytest.mark.parametrize("case", [c for c in CASES if c.good is not None], ids=lambda c: c.name)
def test_the_healthy_twin_passes(case: Case, tmp_path: Path) -> None:
    text = edited(case.old, str(case.good))
    if case.name == "cross nic":
        text = text.replace(SET, "{NCCL_CROSS_NIC: 1}")
    seen = look(tmp_path, text)
    assert not [p for p in seen.problems if case.what in p.what]
    assert seen.site is not None, seen.problems
