"""Merging, ranges in keys, waves, and that each distinct tree is validated once."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from fabrictool.bundled import folder
from fabrictool.spec import resolve
from fabrictool.spec.problems import SpecError
from fabrictool.spec.resolve import load_site
from fabrictool.spec.schema import Sudo
from fabrictool.spec.validate import Validated, validate
from tests.spec.base import BASE, edited, look, marked, short, write


@pytest.mark.parametrize(("name", "nodes"), [("spark4", 4), ("h20x2", 2), ("lab", 4), ("example", 4)])
def test_the_shipped_inventories_load(name: str, nodes: int) -> None:
    site = load_site(folder("inventories") / f"{name}.py")
    assert len(site.nodes) == nodes
    assert site.path.suffix == ".yaml"


def test_spark4_is_read_as_written() -> None:
    site = load_site(folder("inventories") / "spark4.yaml")
    first, last = site.node("spark01"), site.node("spark04")
    assert first.ssh.host == "192.168.1.11"
    assert last.ssh.host is None
    assert last.ssh.sudo is Sudo.ASK
    assert last.fabric.qos is not None
    assert dict(last.fabric.qos.dscp_to_priority) == {26: 3}
    assert [f.rdma for f in last.ports["p0"].functions] == ["rocep1s0f0", "roceP2p1s0f0"]
    assert last.nodes == ("spark01", "spark02", "spark03", "spark04")
    assert last.collective is not None
    assert last.collective.size == 256 << 20
    assert last.checkpoints["glm-5.3-flash-nvfp4"].limits.bytes_per_s == 2 * 10**9
    assert {p.what.split(" ")[0] for p in site.warnings} == {"switch", '"IMAGE@sha256:DIGEST"', "revision"}


def test_h20x2_expands_in_step() -> None:
    site = load_site(folder("inventories") / "h20x2.yaml")
    node = site.node("gpu02")
    assert [p.functions[0].rdma for p in node.ports.values()] == [f"mlx5_{n}" for n in (0, 1, 2, 3, 6, 7, 8, 9)]
    assert node.ports["p5"].functions[0].interface == "ens5np0"
    assert node.fabric.rails["r7"].subnet == IPv4Network("10.20.7.0/24")
    assert node.other_rdma == ("mlx5_4", "mlx5_5")
    assert node.kernel_caches["sglang"].container == "sglang-*"


def test_inner_levels_win_and_lists_are_replaced(tmp_path: Path) -> None:
    text = edited("  n1: {ssh: {host: 192.0.2.1}}", "  n1: {ssh: {user: root, sudo: root}, protected: [e2], fabric: {mtu: 4200}}")
    text = text.replace("    bootstrap: eth0\n", "    bootstrap: eth0\n    ssh: {port: 2222}\n")
    site = look(tmp_path, text).site
    assert site is not None
    one, two = site.nodes
    assert (one.ssh.user, one.ssh.port, one.ssh.known_hosts, one.ssh.sudo) == ("root", 2222, "./known_hosts", Sudo.ROOT)
    assert (two.ssh.user, two.ssh.port) == ("admin", 2222)
    assert (one.protected, two.protected) == (("e2",), ("eth1",))
    assert (one.fabric.mtu, two.fabric.mtu, one.fabric.traffic_class) == (4200, 9000, 104)


def test_null_takes_away_what_was_inherited(tmp_path: Path) -> None:
    text = edited("known_hosts: ./known_hosts}", "known_hosts: k, jump: b}").replace("{host: 192.0.2.1}", "{jump: null}")
    site = look(tmp_path, text).site
    assert site is not None
    assert [n.ssh.jump for n in site.nodes] == [None, "b"]


def test_a_node_key_with_a_range_steps_with_its_values(tmp_path: Path) -> None:
    site = look(tmp_path, edited("  n1: {ssh: {host: 192.0.2.1}}", '  "n[2,1]": {ssh: {host: "192.0.2.[7,8]"}}')).site
    assert site is not None
    assert [n.ssh.host for n in site.nodes] == ["192.0.2.8", "192.0.2.7"]


def test_a_later_override_of_the_same_node_wins(tmp_path: Path) -> None:
    site = look(tmp_path,
                edited("  n1: {ssh: {host: 192.0.2.1}}", "  n[1-2]: {ssh: {port: 22, user: a}}\n  n1: {ssh: {port: 23}}")).site
    assert site is not None
    assert [(n.ssh.user, n.ssh.port) for n in site.nodes] == [("a", 23), ("a", 22)]


@pytest.mark.parametrize(("old", "new", "what"), [
    ("version: 1", "version: ¦2", 'version "2" of the spec is not known here'),
    ("version: 1", "version: ¦'1'", 'version "1" of the spec is not known here'),
    ("version: 1\nsite", "¦site", 'the key "version" is missing here'),
    ("site: s\n", "site: ¦'a b'\n", '"site" has to be a name, not "a b"'),
    ("fabric:\n", "fabrik: {}\nfabric:\n", None),
    ("  mtu: 9000", "  ¦mtuu: 9000", 'unknown key "mtuu"'),
    ("  g:\n", "  h: {nodes: ¦n2}\n  g:\n", None),
    ("    nodes: n[1-2]\n", "    ¦node: n[1-2]\n", 'unknown key "node"'),
    ("nodes: n[1-2]", "nodes: ¦n[2-1]", "this is no set of nodes: n[2-1]: the range 2-1 runs backwards"),
    ("nodes: n[1-2]", "nodes: ¦[]", "an empty set of nodes"),
    ("nodes: n[1-2]", "nodes: [n1, ¦2]", "nodes are named by text such as node[01-04], not by a number"),
    ("  n1: {ssh", "  ¦n9: {ssh", 'node "n9" is in no group'),
    ("  n1: {ssh", "  ¦'@g': {ssh", "this is no set of nodes"),
    ("  n1: {ssh: {host: 192.0.2.1}}", "  n1: ¦7", 'node "n1" has to be a mapping'),
    ("subnet: 10.10.1.0/24", "subnet: ¦10.10.1.1/24", '"subnet" "10.10.1.1/24": 10.10.1.1/24 has host bits set'),
    ("subnet: 10.10.1.0/24", "subnet: ¦fd00::/64", '"subnet" "fd00::/64": Expected 4 octets'),
    ("mtu: 9000", "mtu: ¦big", '"mtu" has to be a whole number, not "big"'),
    ("mtu: 9000", "mtu: ¦70000", '"mtu" has to be at most 65535, not "70000"'),
    ("trust: dscp", "trust: ¦both", '"trust" has to be dscp or pcp, not "both"'),
    ("{26: 3}", "{¦64: 3}", "64 is no DSCP: 0..63"),
    ("{26: 3}", "{26: ¦8}", "has to be at most 7"),
    ("keeps_dscp: true", "keeps_dscp: ¦[]", "has to be"),
    ("rate_gbit: 200", "rate_gbit: ¦200G", '"rate_gbit" has to be a whole number'),
    ("size: 1GiB", "size: ¦1GB/s", "not a size"),
    ("kinds: [triton]", "kinds: [¦cuda]", "has to be deepgemm or tvm-ffi or triton"),
    ("write: [nccl_conf]", "write: ¦nccl_conf", '"write" has to be a list'),
    ("gpu: {model: NVIDIA GB10}", "¦gpu: {count: 1}", 'the key "model" is missing here'),
    ("collective: {size: 1GiB}", "collective: {control: {max_bytes_per_node: ¦1 mile}}", "not a size"),
])
def test_structural_errors_are_at_their_place(old: str, new: str, what: str | None, tmp_path: Path) -> None:
    text = edited(old, new)
    if what is None:
        assert look(tmp_path, text.replace("¦", "")).site is None
        return
    text, place = marked(text)
    seen = look(tmp_path, text)
    hits = [p for p in seen.problems if what in p.what]
    assert [(p.line, p.col) for p in hits] == [place], seen.problems
    assert len(seen.problems) == 1 or what == 'unknown key "node"', "one cause, one problem"
    assert seen.site is None


@pytest.mark.parametrize(("old", "new", "do"), [
    ("  mtu: 9000", "  mtuu: 9000", 'did you mean "mtu"?'), ("keeps_dscp: true", "keep_dscp: true", 'did you mean "keeps_dscp"?'),
    ("rdma: mlx5_1", "rdna: mlx5_1", 'did you mean "rdma"?'), ("fabric:\n", "fabrik: {}\nfabric:\n", 'did you mean "fabric"?'),
    ("pfc: [3]}", "pfc: [3], global_pause: off}", "write true or false: YAML 1.2 reads yes, no, on and off as text"),
    ("user: admin", "user: 1000", 'quote it: "1000"'),
    ("bootstrap: eth0", "bootstrap: {eth0}", "quote it: an unquoted { starts a mapping"),
])
def test_errors_say_what_to_write(old: str, new: str, do: str, tmp_path: Path) -> None:
    assert do in {p.do for p in look(tmp_path, edited(old, new)).problems}


def test_an_override_is_blamed_where_it_stands(tmp_path: Path) -> None:
    text, place = marked(edited("  n1: {ssh: {host: 192.0.2.1}}", "  n1: {fabric: {mtu: ¦nine}}"))
    assert [(p.line, p.col) for p in look(tmp_path, text).problems] == [place]


def test_a_problem_of_the_site_is_said_once_for_all_nodes(tmp_path: Path) -> None:
    assert short(look(tmp_path,
                      edited("mtu: 9000", "mtu: nine")).problems) == ['7:8 error: "mtu" has to be a whole number, not "nine"']


def test_two_groups_cannot_share_a_node(tmp_path: Path) -> None:
    seen = look(tmp_path, edited("groups:\n", "groups:\n  h: {nodes: 'n[2-3]'}\n"))
    assert short(seen.problems) == ['16:12 error: node "n2" is in two groups, h and g']


def test_a_group_cannot_be_named_like_a_node(tmp_path: Path) -> None:
    seen = look(tmp_path, edited("groups:\n", "groups:\n  n1: {nodes: x1}\n"))
    assert '14:3 error: "n1" is a group and a node' in short(seen.problems)


@pytest.mark.parametrize(("old", "new", "what"), [
    ("    a: {subnet: 10.10.1.0/24}\n    b: {subnet: 10.10.2.0/24}", '    x[0-2]: {subnet: ¦"10.10.[1-2].0/24"}',
     '"10.10.[1-2].0/24" stands for 2 values, its key for 3'),
    ("bootstrap: eth0", "bootstrap: ¦eth[0-1]", '"eth[0-1]": a range, but its key has none to step with'),
    ("    b: {subnet: 10.10.2.0/24}", '    ¦"[a-b]": {subnet: 10.10.2.0/24}', None),
    ("    a: {subnet: 10.10.1.0/24}", "    ¦a[1-9999]: {subnet: 10.10.1.0/24}", "a[1-9999] stands for more than 4096 names"),
    ("      p0:\n", "      p[0-1]: {functions: []}\n      ¦p0:\n", 'the key "p0" is here a second time'),
])
def test_ranges_that_do_not_fit(old: str, new: str, what: str | None, tmp_path: Path) -> None:
    text, place = marked(edited(old, new))
    seen = look(tmp_path, text)
    hits = [p for p in seen.problems if (what or "has to be text that matches") in p.what]
    assert [(p.line, p.col) for p in hits] == [place], seen.problems


def test_lists_splice_ranges_and_free_text_keeps_them(tmp_path: Path) -> None:
    text = edited("protected: [eth1]", 'protected: ["eth[1-3]", x]').replace("{NCCL_IB_QPS_PER_CONNECTION: 4}", '{X: "a[0-9]"}')
    site = look(tmp_path, text).site
    assert site is not None
    assert site.nodes[0].protected == ("eth1", "eth2", "eth3", "x")
    assert site.nodes[0].env.set["X"] == "a[0-9]"
    assert site.nodes[0].kernel_caches["k"].container == "x-[0-9]"


def test_waves(tmp_path: Path) -> None:
    four = BASE.replace("n[1-2]", "n[1-4]")
    assert look(tmp_path, four).site.waves == (("n1", "n2", "n3", "n4"),)  # type: ignore[union-attr]
    seen = look(tmp_path, four.replace("groups:", 'waves: [n2, "n[3-4]"]\ngroups:'))
    assert seen.site is not None
    assert seen.site.waves == (("n2",), ("n3", "n4"), ("n1",))


@pytest.mark.parametrize(("waves", "what"), [("[n1, ¦n7]", 'node "n7" is in no group'),
                                             ("[n1, ¦n1]", 'node "n1" is in two waves'),
                                             ("¦n1", '"waves" has to be a list of node sets'),
                                             ("[¦[]]", "an empty set of nodes")])
def test_waves_that_do_not_fit(waves: str, what: str, tmp_path: Path) -> None:
    text, place = marked(edited("groups:\n", f"waves: {waves}\ngroups:\n"))
    hits = [p for p in look(tmp_path, text).problems if what in p.what]
    assert [(p.line, p.col) for p in hits] == [place]


def test_512_nodes_are_validated_once_per_distinct_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = validate

    def counted(tree: object, name: str, *more: object) -> Validated:
        calls.append(name)
        return real(tree, name, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(resolve, "validate", counted)
    text = BASE.replace("n[1-2]", "n[001-512]").replace(
        "  n1: {ssh: {host: 192.0.2.1}}", '  n007: {ssh: {host: a}}\n  "n[100-199]": {ssh: {port: 2222}}')
    site = load_site(write(tmp_path, text))
    assert len(site.nodes) == 512
    assert calls == ["n001", "n007", "n100"]
    assert [site.node(n).ssh.port for n in ("n099", "n100", "n199", "n200")] == [None, 2222, 2222, None]
    assert len({n.name for n in site.nodes}) == 512


def test_load_site_raises_with_all_problems(tmp_path: Path) -> None:
    path = write(tmp_path, edited("mtu: 9000", "mtu: nine").replace("switch: sw\n", "switch: sv\n"))
    with pytest.raises(SpecError) as e:
        load_site(path)
    assert len(e.value.problems) == 2
    assert "2 errors" in str(e.value)


def test_the_digest_is_of_the_file(tmp_path: Path) -> None:
    import hashlib

    path = write(tmp_path, BASE)
    assert load_site(path).digest == hashlib.sha256(path.read_bytes()).hexdigest()
