"""The switch's packet filters, run by an interpreter of their few instructions on packets made by hand."""

from __future__ import annotations

import pytest

from fabrictool.lab import filters
from fabrictool.lab.filters import AND, BYTE, DROP, HALF, IND_BYTE, IND_HALF, JEQ, JGE, JGT, LEN, NEXT, RET, WORD, X_IP, Instruction

MAC, OTHER = "02:5b:00:00:02:01", "02:5b:00:00:02:02"


def verdict(program: list[Instruction], packet: bytes) -> int:
    """As the kernel: a load from behind the end gives 0."""
    a = x = at = 0
    while True:
        code, yes, no, k = program[at]
        at += 1
        if code == RET:
            return k
        if code in (JEQ, JGT, JGE):
            at += yes if {JEQ: a == k, JGT: a > k, JGE: a >= k}[code] else no
        elif code == AND:
            a &= k
        elif code == LEN:
            a = len(packet)
        elif code == X_IP:
            x = 4 * (packet[k] & 0xF)
        else:
            size = {WORD: 4, HALF: 2, BYTE: 1, IND_HALF: 2, IND_BYTE: 1}[code]
            start = k + (x if code in (IND_HALF, IND_BYTE) else 0)
            if start + size > len(packet):
                return 0
            a = int.from_bytes(packet[start:start + size], "big")


def frame(mac: str, payload: bytes) -> bytes:
    return bytes.fromhex(mac.replace(":", "")) + bytes(6) + b"\x08\x00" + payload


def tcp(port: int, flags: int, options: int = 0, protocol: int = 6) -> bytes:
    ip = bytes([0x45 + options, 0]) + bytes(7) + bytes([protocol]) + bytes(10 + 4 * options)
    return frame(MAC, ip + (1234).to_bytes(2, "big") + port.to_bytes(2, "big") + bytes(9) + bytes([flags]) + bytes(6))


@pytest.mark.parametrize(("mac", "size", "out"), [
    (MAC, 1500, NEXT), (MAC, 1501, DROP), (MAC, 9000, DROP), (OTHER, 9000, NEXT), ("03:5b:00:00:02:01", 9000, NEXT)])
def test_large_frames_to_one_address_are_dropped(mac: str, size: int, out: int) -> None:
    assert verdict(filters.frames_to(MAC, 1500), frame(mac, bytes(size))) == out


@pytest.mark.parametrize(("packet", "out"), [
    (tcp(40000, 0x02), DROP), (tcp(32768, 0x02), DROP), (tcp(32767, 0x02), NEXT), (tcp(22, 0x02), NEXT), (tcp(40000, 0x12), NEXT),
    (tcp(40000, 0x10), NEXT), (tcp(40000, 0xC2), DROP), (tcp(40000, 0x02, options=3), DROP), (tcp(40000, 0x02, protocol=17), NEXT),
    (frame(MAC, b"")[:13] + b"\x06" + tcp(40000, 2)[14:], NEXT)])
def test_only_new_connections_to_high_ports_are_dropped(packet: bytes, out: int) -> None:
    assert verdict(filters.new_connections(32768), packet) == out


def test_bytecode_is_what_tc_takes() -> None:
    assert filters.bytecode([(LEN, 0, 0, 0), (RET, 0, 0, 2)]) == "2,128 0 0 0,6 0 0 2"
