"""Secrets go, and nothing else does: every case has a twin that looks much the same and must stay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictool.model import Value
from fabrictool.snapshot import Captured, Snapshot, scrub
from fabrictool.snapshot.scrub import MARK

S = "s3cretV4lue99"


@pytest.mark.parametrize(("dirty", "twin"), [
    (f"HF_TOKEN={S}", "TOKENIZERS_PARALLELISM=false"),
    (f"export OPENAI_API_KEY='{S} {S}'", "export MONKEY='abc def'"),
    (f"AWS_SECRET_ACCESS_KEY={S}", "NCCL_IB_HCA==mlx5_0,mlx5_1"),
    (f"REGISTRY_AUTH={S}", "SSH_AUTH_SOCK=/run/user/0/agent"),
    (f"PGPASSWORD={S}", "PASSWORD_FILE=/run/secrets/pg"),
    (f"MYSQL_PWD={S}", "PWD=/root"),
    (f"CREDENTIALS={S}", "CREDENTIALS_PATH=/etc/creds"),
    (f"WANDB_API_KEY={S}", "KEYBOARD=us"),
    (f"TOKEN={S}", "TOKEN=$TOKEN"),
    (f"SSL_KEY={S}", "SSL_KEY=/etc/ssl/private/a.key"),
    (f"psk={S}", "psk-flags=1"),
    (f"  wep-key0={S}", "  key-mgmt=wpa-psk"),
    (f"    password: {S}", "    renderer: networkd"),
    (f"    password: \"{S}\"", "    password: \"\""),
    (f"  auth: {{key-management: psk, password: {S}}}", "  auth: {key-management: psk}"),
    ("      key: aGVsbG8gd29ybGQ1aGVsbG8gd29ybGQ1", "      key: eth0"),
    (f"private-key={S}", "public=abc"),
    (f'{{"api_key": "{S}", "n": 1}}', '{"max_tokens": "8192", "n": 1}'),
    (f'{{"hfToken": "{S}"}}', '{"tokenizer": "auto"}'),
    ('  "token": 918273645,', '  "token": null,'),
    (f'{{\\"HF_TOKEN\\": \\"{S}\\"}}', '{\\"NCCL_DEBUG\\": \\"INFO\\"}'),
    (f'Environment="HF_TOKEN={S} {S}" NCCL_DEBUG=WARN', 'Environment="NCCL_DEBUG=WARN"'),
    (f"docker run -e HF_TOKEN={S} --rm img", "docker run -e NCCL_DEBUG=INFO --rm img"),
    (f"vllm serve --api-key {S} --port 1", "vllm serve --max-num-batched-tokens 8192 --port 1"),
    (f"vllm\0serve\0--api-key\0{S}\0", "vllm\0serve\0--tokenizer\0auto\0"),
    (f'["--api-key", "{S}"]', '["--tokenizer", "auto"]'),
    (f"http_proxy=http://user:{S}@proxy:3128/", "http_proxy=http://proxy:3128/"),
    (f"https://:{S}@host/x", "ssh://git@github.com:22/x"),
    (f"Authorization: Bearer {S}", "Authorization is required"),
    (f"curl -H 'X-Auth-Token: {S}' http://x", "curl -H 'X-Request-Id: 1' http://x"),
    ("AKIAIOSFODNN7EXAMPLE in a line", "AKIA in a line"),
    ("see ghp_abcdefghijklmnopqrstuvwxyz0123456789", "see ghp_short"),
    ("hf_abcdefghijklmnopqrstuvwxyz", "hf_model"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJhbGci"),
    (f"key ssh: password={S}", "[sudo] password for admin:"),
    (f"e HF_TOKEN={S}", "e NCCL_IB_GID_INDEX=3"),
])
def test_each_secret_and_its_twin(dirty: str, twin: str) -> None:
    clean = scrub.text(dirty)
    assert MARK in clean
    assert S not in clean
    assert scrub.text(clean) == clean
    assert scrub.text(twin) == twin
    assert scrub.text(f"{twin}\r\n{dirty}\r\n{twin}") == f"{twin}\r\n{clean}\r\n{twin}"


@pytest.mark.parametrize("key", [
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIabc+/=\nMIIdef\n-----END RSA PRIVATE KEY-----\n",
    "    key: |\n      -----BEGIN OPENSSH PRIVATE KEY-----\n      MIIabc\n      MIIdef\n      -----END OPENSSH PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----\r\nMIIabc\r\nMIIdef\r\n-----END PRIVATE KEY-----\r\n",
    '{"k": "-----BEGIN EC PRIVATE KEY-----\\nMIIabc\\nMIIdef\\n-----END EC PRIVATE KEY-----\\n"}',
    "-----BEGIN PRIVATE KEY-----\nMIIabc\nMIIdef",
])
def test_private_keys(key: str) -> None:
    text = f"before\n{key}\nafter: this line stays\n"
    clean = scrub.text(text)
    assert "MII" not in clean
    assert clean.startswith("before\n")
    assert clean.endswith("\nafter: this line stays\n") or "END" not in key
    assert scrub.text(clean) == clean
    public = key.replace("PRIVATE KEY", "CERTIFICATE")
    assert scrub.text(public) == public


def test_sizes_in_a_files_section_follow() -> None:
    one, two = f"a: 1\npassword: {S}\n", "MTU=9000\n"
    got = scrub.captured(Captured(0, f"@ file 600 {len(one)} /a b\n{one}\n@ denied - - /c\n@ file 644 {len(two)} /d\n{two}\n"))
    snap = Snapshot("n1", {"f": got})
    first, last = snap.file("f", "/a b"), snap.file("f", "/d")
    assert isinstance(first, Value)
    assert first.value.text == f"a: 1\npassword: {MARK}\n"
    assert isinstance(last, Value)
    assert last.value.text == two


def test_a_files_section_that_is_cut_stays_cut() -> None:
    whole = "@ file 600 40 /a\nTOKEN=x\n"
    for end in range(len(whole) + 1):
        got = Snapshot("n1", {"f": scrub.captured(Captured(0, whole[:end]))})
        assert not isinstance(got.file("f", "/a"), Value)


@given(st.lists(st.sampled_from(["TOKEN=", "password: ", '"key": "', '"', "'", "\\", "\n", "\r", " ", "abc123",
                                 "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "MII", "://", ":", "@", "{", "}", ",",
                                 "Bearer ", "--api-key ", "=", "\udcff", "\0", MARK,
                                 "export ", "$X", "/", "_KEY=", "AKIAIOSFODNN7EXAMPLE"]), max_size=14).map("".join))
@settings(max_examples=600, deadline=None)
def test_twice_is_once_and_lines_stay_lines(text: str) -> None:
    once = scrub.text(text)
    assert scrub.text(once) == once
    assert once.count("\n") == text.count("\n")


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_text_without_any_hint_is_the_same(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    hints = ("pass", "pwd", "key", "tok", "sec", "auth", "psk", "cred", "://", "bea", "bas", "coo", "_", "-", "ak", "as", "ai", "ey")
    if not any(hint in text.lower() for hint in hints):
        assert scrub.text(text) == text


@pytest.mark.parametrize("line", ["a" * 10_000_000, "key: " * 400_000, "-eyJ" * 500_000,
                                  '"token":"' * 200_000, "x://" * 500_000, "token=a " * 250_000])
def test_long_lines_do_not_hang(line: str) -> None:
    assert len(scrub.text(line)) > 0
