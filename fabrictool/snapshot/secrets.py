"""What is a secret in one line of text: by its name, by its place, by its form. See scrub.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

MARK = "__scrubbed__"  # a plain word in YAML, JSON strings, INI and shell alike
_MOST = 65_536  # characters of one value

_ALWAYS = frozenset({"TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "PSK", "APIKEY",
                     "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "AUTHTOKEN", "ACCESSTOKEN"})
_ENDINGS = ("PASSWORD", "PASSWD", "PASSPHRASE")  # PGPASSWORD
_LAST = frozenset({"KEY", "AUTH", "PASS", "PWD", "CRED", "CREDS"})  # only as the last of several words: PWD is a directory
_ALONE = frozenset({"KEY", "AUTH", "PASS"})  # alone only before a value that looks random
_NO_VALUE = frozenset({"FILE", "PATH", "DIR", "SOCK", "TYPE", "NAME", "TIMEOUT", "TTL", "LEN", "LENGTH", "COUNT", "MAX", "MIN", "SIZE",
                       "LIMIT", "ENABLED", "FLAGS", "URL"})  # TOKEN_FILE, psk-flags
_PLAIN = frozenset({"", "true", "false", "null", "none", "yes", "no", "on", "off", "|", ">", "{", "[", "~"})
_REFERENCE = re.compile(r"\$\w+|\$\{[^}]*\}|\{\{.*\}\}|\$\(.*\)")
_RANDOM = re.compile(r"(?=.*[0-9])[A-Za-z0-9+/_=-]{16,}")
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

_NAME = r"(?<![A-Za-z0-9_.-])(?P<name>[A-Za-z][A-Za-z0-9_.-]{0,80})"
_ASSIGNED = re.compile(_NAME + r"(?P<close>\\{0,8}[\"'])?\s{0,4}(?P<sep>:|=(?!=))(?P<gap>\s{0,4})(?P<open>\\{0,8}[\"'])?")
_FLAG = re.compile(r"(?<![A-Za-z0-9_.-])--?(?P<name>[A-Za-z][A-Za-z0-9_.-]{0,80})(?:\x00|[ \t]{1,4}|\\{0,8}[\"'],\s{0,4}\\{0,8}[\"'])"
                   r"(?P<value>[^\s\x00\"'\\,-][^\s\x00\"',\\]*)")
_LINE_START = re.compile(r"\s*(?:export\s+|-\s+|e\s+)?[\"']?")  # `e `: consumers.sh
_WORD = re.compile(r"[^\s\x00,;}\]\"'\\]+")

# Each has `pre` (kept) and `value` (not kept). All repeats are bounded: lines may have megabytes.
_PLACES = (
    # a URL's user:password@
    re.compile(r"(?P<pre>\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s/:@\"']{0,200}:)(?P<value>[^\s/\"']{1,400})(?=@)"),
    re.compile(r"(?P<pre>\b(?:(?:proxy-)?authorization|x-[a-z-]{0,40}(?:token|key|auth)|(?:set-)?cookie)\\{0,8}[\"']?\s{0,4}[:=]\s{0,4}"
               r"\\{0,8}[\"']?)(?P<value>[^\s\"'\\][^\"'\\\r\n\x00]*)", re.I),
    re.compile(r"(?P<pre>\b(?:bearer|basic)\s{1,4})(?P<value>(?=[^\s]*[0-9=])[A-Za-z0-9._~+/-]{12,4096}={0,2})", re.I),
    # AWS, GitHub, GitLab, Hugging Face, OpenAI, NVIDIA, Slack, Google, a JWT
    re.compile(r"(?P<pre>\b)(?P<value>(?:AKIA|ASIA)[0-9A-Z]{16}\b|gh[oprsu]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255}"
               r"|glpat-[\w-]{16,255}|hf_[A-Za-z0-9]{20,255}|sk-[A-Za-z0-9_-]{20,255}|nvapi-[\w-]{20,255}|xox[abprs]-[\w-]{10,255}"
               r"|AIza[\w-]{35}|eyJ[\w-]{8,256}\.eyJ[\w-]{8,4096}\.[\w-]{0,2048})"),
)
_HINT = re.compile(r"token|secret|passw|passphrase|cred|psk|key|auth|pass|pwd|://|bearer|basic|cookie|AKIA|ASIA|gh[oprsu]_|github_"
                   r"|glpat|hf_|sk-|nvapi|xox|AIza|eyJ", re.I)


def secret_name(name: str) -> bool:
    """Whether a value with this name is a secret whatever it looks like."""
    words = _words(name)
    if not words or words[-1] in _NO_VALUE:
        return False
    if _strong(words) or words[-2:] == ["KEY", "ID"]:
        return True
    return len(words) > 1 and words[-1] in _LAST


def line(value: str) -> str:
    """One line without secrets; the same string when it has none."""
    if not _HINT.search(value):
        return value
    value = _cut_out(value, _assigned(value))
    flags = ((m.start("value"), m.end("value"), MARK) for m in _FLAG.finditer(value) if _secret(m["name"], m["value"]))
    value = _cut_out(value, flags)
    for place in _PLACES:
        value = place.sub(lambda m: m[0] if MARK in m["value"] else m["pre"] + MARK, value)
    return value


def _cut_out(text: str, spans: Iterator[tuple[int, int, str]]) -> str:
    out, at = [], 0
    for start, end, mark in spans:
        if start >= at:
            out += [text[at:start], mark]
            at = end
    return "".join([*out, text[at:]]) if out else text


def _assigned(text: str) -> Iterator[tuple[int, int, str]]:
    """Where the values of `NAME=value`, `name: value` and `"name": "value"` are secrets, and what to put there."""
    first = _LINE_START.match(text)
    begin = first.end() if first else 0
    for m in _ASSIGNED.finditer(text):
        at_start = m.start() == begin
        before = text[m.start() - 1] if m.start() else ""
        if m["sep"] == ":" and not (m["close"] or at_start or text[max(0, m.start() - 40):m.start()].rstrip().endswith(("{", ","))):
            continue  # prose: "kernel key: ..."
        start = m.end()
        end = _value_end(text, m, at_start, before)
        if _secret(m["name"], text[start:end]):
            quote = m["close"] if m["close"] and m["sep"] == ":" and not m["open"] else ""  # a JSON number
            yield start, end, f"{quote}{MARK}{quote}"


def _value_end(text: str, m: re.Match[str], at_start: bool, before: str) -> int:
    start, most = m.end(), min(len(text), m.end() + _MOST)
    if m["open"]:  # up to its closing quote
        end = text.find(m["open"], start, most)
        while len(m["open"]) == 1 and end > start and text[end - 1] == "\\":
            end = text.find(m["open"], end + 1, most)
        return end if end >= 0 else most
    if before in ('"', "'") and not m["close"]:  # "HF_TOKEN=a b"
        end = text.find(before, start, most)
        if end >= 0:
            return end
    elif at_start and not m["close"]:  # an env file, INI or YAML: the whole rest
        return start + len(text[start:most].rstrip())
    word = _WORD.match(text, start, most)
    return word.end() if word else start


def _secret(name: str, value: str) -> bool:
    bare = value.strip("\"'\\ ")
    if bare.lower() in _PLAIN or bare.startswith(MARK) or _REFERENCE.fullmatch(bare) or value.startswith(("{", "[")):
        return False
    if secret_name(name):
        return _strong(_words(name)) or not bare.startswith(("/", "./", "~/"))  # SSL_KEY=/etc/ssl/private/x.key
    return name.upper() in _ALONE and bool(_RANDOM.fullmatch(bare))


def _strong(words: list[str]) -> bool:
    return any(w in _ALWAYS or w.endswith(_ENDINGS) for w in words)


def _words(name: str) -> list[str]:
    words = [w.upper() for w in _WORDS.findall(name)]
    while len(words) > 1 and words[-1].isdigit():  # wep-key0
        words.pop()
    return words
