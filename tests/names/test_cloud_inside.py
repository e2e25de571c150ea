"""cloud-init's template, and names inside containers: each code failing, and its healthy twin."""

from __future__ import annotations

import pytest

from fabrictool.model import Code, Status
from fabrictool.names.sections import CLOUD_OVERRIDE
from fabrictool.snapshot import Captured
from tests.env.sample import Box, bad, consumers_text, only, written
from tests.names.sample import Named

TMPL = "template /etc/cloud/templates/hosts.debian.tmpl\nend\n"


@pytest.mark.parametrize("value", ["true", "True", "template", "localhost", "'yes'"])
def test_template(value: str) -> None:
    named = Named(cloud=f"set false /etc/cloud/cloud.cfg\nset {value} /etc/cloud/cloud.cfg.d/10-x.cfg\n{TMPL}")
    f = only(named.judge(), Code.NAME_TEMPLATE)
    assert f.aspect == "template"
    assert "hosts.debian.tmpl" in f.why
    assert written(f).path == CLOUD_OVERRIDE
    assert bad(named.applied().judge()) == []


@pytest.mark.parametrize("cloud", [
    "end\n", TMPL, "set false /etc/cloud/cloud.cfg\nend\n", "disabled\nset true /etc/cloud/cloud.cfg\nend\n",
    "set - /etc/cloud/cloud.cfg\nend\n",
])
def test_no_template(cloud: str) -> None:
    assert bad(Named(cloud=cloud).judge()) == []


@pytest.mark.parametrize("path", ["/var/lib/cloud/instance/cloud-config.txt", "/etc/cloud/cloud.cfg.d/99-zz.cfg"])
def test_template_that_wins_over_ours(path: str) -> None:
    f = only(Named(cloud=f"set true {path}\nend\n").judge(), Code.NAME_TEMPLATE)
    assert not f.steps
    assert path in f.remedy


@pytest.mark.parametrize(("captured", "code"), [
    (Captured(0, "denied /etc/cloud/cloud.cfg.d/90.cfg\nend\n"), Code.NEEDS_ROOT), (Captured(1, "", denied=True), Code.NEEDS_ROOT),
    (Captured(0, "set true /etc/cloud/cloud.cfg\n"), Code.UNREADABLE), (Captured(124, ""), Code.TOOL_TIMEOUT),
])
def test_cloud_that_cannot_be_read(captured: Captured, code: Code) -> None:
    found = Named(broken={"names.cloud": captured}).judge()
    assert [(f.status, f.code, f.aspect) for f in found if f.bad] == [(Status.UNKNOWN, code, "template")]


def no_gloo() -> dict[str, str]:
    return {"NCCL_IB_TC": "104"}


@pytest.mark.parametrize(("box", "code", "status"), [
    (Box(env=no_gloo(), hosts="127.0.1.1 spark01\n"), Code.GLOO_LOOPBACK, Status.FAIL),
    (Box(hosts="127.0.1.1 spark01\n"), Code.GLOO_LOOPBACK, Status.WARN),
    (Box(env=no_gloo(), hosts="127.0.0.1 localhost\n"), Code.GLOO_LOOPBACK, Status.WARN),
    (Box(env=no_gloo(), hosts="172.17.0.3 abc123\n", hostname="abc123"), Code.NAME_DIFFERS, Status.WARN),
])
def test_inside_a_container(box: Box, code: Code, status: Status) -> None:
    f = only(Named(consumers=consumers_text(box)).judge(), code)
    assert (f.status, f.path, f.steps) == (status, "names.inside.docker:vllm-a", ())
    assert f.remedy
    healthy = Box(env=no_gloo(), hosts=f"10.10.1.1 {box.hostname}\n", hostname=box.hostname)
    assert bad(Named(consumers=consumers_text(healthy)).judge()) == []


def test_inside_not_readable() -> None:
    text = consumers_text(Box()).replace("f 4001 file 1700050000 /etc/hosts", "f 4001 link - /etc/hosts").replace(
        "F 127.0.0.1 localhost\n", "").replace("F 10.10.1.1 spark01\n", "")
    found = Named(consumers=text).judge()
    assert [(f.status, f.path) for f in found if f.bad] == [(Status.UNKNOWN, "names.inside.docker:vllm-a")]
    denied = Named(broken={"consumers": Captured(1, "", denied=True)}).judge()
    assert [f.code for f in denied if f.bad] == [Code.NEEDS_ROOT]
