"""Rows that are printed in three writes, with other writers' text between them: put together, or a fragment, never a wrong number."""

from __future__ import annotations

import pytest

from fabrictool.collective.model import Row
from fabrictool.collective.result import gate_busbw
from fabrictool.collective.rows import CURRENT, Layout, layout_of, row
from fabrictool.collective.tests_text import parse
from fabrictool.model import Unreadable
from tests.collective.samples import ALL_COLUMNS, HEALTHY, IN, OUT, PREAMBLE, ROW, STAMPED

INFO = "NCCL INFO Channel 00/0 : 1[0] -> 0[0] [send] via NET/IB/0"
WANT = parse(HEALTHY).rows


def values(rows: tuple[Row, ...]) -> list[tuple[object, ...]]:
    return [(r.size_bytes, r.count, r.type, r.redop, r.root, r.out_of_place, r.in_place) for r in rows]


def test_layouts_by_their_number_of_words() -> None:
    assert [Layout(root=False).tokens, CURRENT.tokens, Layout(stamp=True).tokens, Layout(per_iteration=True).tokens,
            Layout(per_iteration=True, stamp=True).tokens] == [12, 13, 15, 21, 23]
    heads = [next(lay for ln in text.splitlines() if (lay := layout_of(ln))) for text in (HEALTHY, STAMPED, ALL_COLUMNS)]
    assert heads == [CURRENT, Layout(stamp=True), Layout(per_iteration=True, stamp=True)]
    gather = "#       size         count      type     time   algbw   busbw  error     time   algbw   busbw  error"
    assert layout_of(gather) == Layout(redop=False, root=False, deviation=True)
    made = row(["8", "1", "float", "21.03", "0.00", "0.00", "0e+00", "20.68", "0.00", "0.00", "0e+00"], layout_of(gather) or CURRENT, 1)
    assert made
    assert (made.redop, made.root) == ("", None)
    assert layout_of("#       size         count      type   redop    root     cputime   algbw   busbw  #wrong     cputime   algbw   busbw"
                     "  #wrong") == Layout(cpu_time=True)


@pytest.mark.parametrize("head", [
    "", "#", "# size count", "#   size count type redop root time algbw busbw #wrong", "# size count type redop rXot time algbw busbw "
    "#wrong time algbw busbw #wrong", "# size count type redop root time algbw busbw #wrong time algbw busbw error",
])
def test_a_head_that_is_not_understood_is_none(head: str) -> None:
    assert layout_of(head) is None


SPLIT = {
    "tags before each part": f"[1,0]<stdout>:{PREAMBLE}[1,0]<stdout>:{OUT}[1,0]<stdout>:{IN}\n",
    "bare tags": f"[1,0]{PREAMBLE}[1,0]{OUT}[1,0]{IN}\n",
    "labels": f"0: {PREAMBLE} 0: {OUT} 0: {IN}\n",
    "parts on lines": f"{PREAMBLE}\n{OUT}\n{IN}\n",
    "tagged lines, another rank between": f"[1,0]<stdout>:{PREAMBLE}\n[1,1]<stdout>:spark02:9:9 [0] {INFO}\n[1,0]<stdout>:{OUT}{IN}\n",
    "a log line of a known host": f"{PREAMBLE}spark01:4100:4111 [0] {INFO}\n{OUT}spark01:4100:4111 [0] {INFO}\n{IN}\n",
    "a warning with its empty line": f"{PREAMBLE}\n[2026-11-29 18:16:39] spark01:4100:4111 [0] net.cc:72 NCCL WARN x\n{OUT}\n\n{IN}\n",
    "a warning on the line": f"{PREAMBLE}[2026-11-29 18:16:39] spark01:4100:4111 [0] net.cc:72 (f) NCCL WARN x\n{OUT}{IN}\n",
    "another rank on the line": f"[1,0]<stdout>:{PREAMBLE}[1,1]<stdout>:spark02:9:9 [0] {INFO}\n[1,0]<stdout>:{OUT}{IN}\n",
}


@pytest.mark.parametrize("how", SPLIT)
def test_a_row_in_parts_is_put_together(how: str) -> None:
    text = HEALTHY.replace("# Using devices\n", f"# Using devices\nspark01:4100:4100 [0] {INFO}\n").replace(ROW, SPLIT[how])
    run = parse(text)
    assert not run.fragments
    assert values(run.rows) == values(WANT)


@pytest.mark.parametrize("piece", [
    f"{PREAMBLE}\n", f"{PREAMBLE}{OUT}\n", f"{OUT}{IN}\n", f"{PREAMBLE}{OUT}{IN} 7\n", f"{PREAMBLE} x{OUT}{IN}\n",
    f"{PREAMBLE}{OUT}{IN}".replace("268435456", "26843545x") + "\n", f"{PREAMBLE}{OUT}{IN}".replace("float", "flo\0t") + "\n",
    f"{PREAMBLE}{PREAMBLE}{OUT}{OUT}{IN}{IN}\n", f"{PREAMBLE}\n{PREAMBLE}\n{OUT}\n{IN}\n{OUT}\n{IN}\n",
    f"{PREAMBLE}{OUT}{IN}".replace("22.88", "nan") + "\n", f"{PREAMBLE}{OUT}{IN}".replace("17600.0", "-17600.0") + "\n",
    f"{PREAMBLE}{OUT}  17580.0   15.27   22.90       ?\n", f"{PREAMBLE}1node:1:2 [0] NCCL INFO x\n{OUT}{IN}\n",
    f"{PREAMBLE}{OUT}  17580.0   15.27   22.90    1.5\n", f"{PREAMBLE}{OUT}  17580.0   15.27   22.90   0e+00\n",
])
def test_what_is_not_a_row_is_a_fragment_and_never_a_number(piece: str) -> None:
    run = parse(HEALTHY.replace(ROW, piece))
    assert run.fragments
    assert values(run.rows) in ([], values(WANT))
    assert isinstance(gate_busbw(run), Unreadable)


def test_a_host_name_that_looks_like_a_number_is_told_apart_where_it_is_known() -> None:
    log = f"node:4100:4111 [0] {INFO}\n"
    assert not parse(HEALTHY.replace(ROW, f"7{log}{PREAMBLE}7{log}{OUT}{IN}\n")).fragments  # 7node is known
    both = parse(HEALTHY.replace(ROW, f"7{log}{log}{PREAMBLE}7{log}{OUT}{IN}\n"))  # -1 + 7node, or -17 + node
    assert both.fragments
    assert both.rows == ()
