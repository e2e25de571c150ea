"""What the stand-in of all_reduce_perf prints and writes, held against what the real one did: numbers from its JSON give its text, and
numbers from its text and JSON give its JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fabrictool.lab.nodeside.nccl import options, results, table
from fabrictool.lab.nodeside.nccl.options import Refused, Usage
from fabrictool.lab.nodeside.nccl.table import Placement

REAL = Path(__file__).parents[1] / "captures" / "nccl-tests"
# text, JSON, and the command line
RUNS = (("mpi_twohosts.txt", "two.json", "-b 1M -e 256M -f 16 -g 1"), ("socket.txt", "socket.json", "-b 1M -e 256M -f 4 -g 2"),
        ("nvlink.txt", "nvlink.json", "-b 8 -e 1G -f 4 -g 2"), ("i_p99.txt", "periter.json", "-b 1M -e 256M -f 16 -g 2 -I 1 -n 100"))


def own_lines(name: str) -> list[str]:
    """The program's own lines: without NCCL's, the command and the status."""
    kept = []
    for line in (REAL / name).read_text().split("\n"):
        if not re.match(r"\$ |rc=|\S+:\d+:\d+ \[\d+\] NCCL|\[\d{4}-", line) and not line.startswith("# Writing"):
            kept.append(line)
    return kept


def placement(row: dict[str, Any], which: str) -> Placement:
    p = row[which]
    every = tuple(row.get(f"{which}_per_iter", {}).get("times_us", ()))
    return Placement(p["time"], p["alg_bw"], p["bus_bw"], p["nwrong"], every)


def printed(data: dict[str, Any], o: options.Options, program: str) -> list[str]:
    lines = table.opening(program, o)
    config = data["config"]
    for d in config["devices"]:
        for i in range(config["ngpus"]):
            bus = d["device_hex"][:-1] + str(int(d["device_hex"][-1]) + i)
            lines.append(table.device(d["rank"] + i, d["pid"], d["hostname"], d["device"] + i, bus, d["device_info"]))
    lines += table.heading(o)
    for row in data["results"]:
        text = table.begin(row["size"], row["count"], row["type"], row["redop"])
        lines.append(text + table.half(placement(row, "out_of_place"), o) + table.half(placement(row, "in_place"), o))
    return lines + table.closing(program, data["out_of_bounds"]["count"], data["average_bus_bandwidth"]["bandwidth"], None)


@pytest.mark.parametrize(("text", "file", "argv"), RUNS)
def test_the_same_numbers_give_the_same_text(text: str, file: str, argv: str) -> None:
    data = json.loads((REAL / file).read_text())
    program = Path(data["args"][0]).name
    got = printed(data, options.parse(argv.split()), program)
    assert got.count(table.STAND_IN) == 1
    got.remove(table.STAND_IN)
    want = own_lines(text)
    assert got == [line for i, line in enumerate(want) if line or i < len(want) - 1]


@pytest.mark.parametrize(("text", "file", "argv"), RUNS)
def test_the_same_numbers_give_the_same_json(text: str, file: str, argv: str) -> None:
    raw = (REAL / file).read_text().strip()
    data = json.loads(raw)
    o = options.parse(argv.split())
    rows = [results.row(r["size"], r["count"], r["type"], r["redop"], placement(r, "out_of_place"), placement(r, "in_place"), o)
            for r in data["results"]]
    env = dict(e.split("=", 1) for e in data["env"])
    average = data["average_bus_bandwidth"]
    got = results.document(data["args"], env, o, data["config"]["devices"], rows, data["out_of_bounds"]["count"],
                           (average["bandwidth"], average["okay"]), (data["start_time"], data["end_time"]))
    assert got.count(results.NOTE) == len(rows)
    # worked out from times that were rounded for the file: the sixth decimal of the spread may differ
    spread = re.compile(r'("cv_pct":\d+\.\d{5})\d*')
    assert spread.sub(r"\1", got.replace(results.NOTE, "")) == spread.sub(r"\1", raw)


def test_usage_is_the_real_ones() -> None:
    want = "\n".join((REAL / "help.txt").read_text().split("\n")[1:-2]) + "\n"
    assert options.usage("all_reduce_perf") == want


@pytest.mark.parametrize("argv", ["-h", "--help", "-q 1", "--bogus", "-b"])
def test_what_it_does_not_know_is_usage(argv: str) -> None:
    with pytest.raises(Usage):
        options.parse(argv.split())


def test_bad_sizes_are_refused_in_its_words() -> None:
    with pytest.raises(Refused, match=r"^invalid size specified for 'maxbytes'$"):
        options.parse(["-b", "1M", "-e", "1Q", "-g", "2"])
    with pytest.raises(Refused):
        options.parse(["-b", "2M", "-e", "1M"])


def test_options_are_read_as_getopt_reads_them() -> None:
    words = "-b8 --maxbytes=1G -f2 -n 5 -w 0 -c 0 -o all -d half -z 1 -a 3 -N 2 -J x.json -T 9"
    o = options.parse(words.split())
    assert (o.minbytes, o.maxbytes, o.stepfactor, o.iters, o.warmup_iters, o.check) == (8, 1 << 30, 2, 5, 0, 0)
    assert (o.ops, o.types, o.blocking, o.run_cycles, o.output) == (list(options.OPS), ["half"], 1, 2, "x.json")
    assert options.parse(["-b", "1M", "-e", "3M"]).sizes() == [1 << 20, 2 << 20, 3 << 20]
    assert options.parse(["-b", "1M", "-e", "4M", "-f", "2"]).sizes() == [1 << 20, 2 << 20, 4 << 20]
    assert options.parse(["-b", "256M", "-e", "256M"]).sizes() == [1 << 28]


@pytest.mark.parametrize(("value", "width", "text"), [
    (460.73, 7, " 460.73"), (1437.55, 7, "1437.55"), (20041.8, 7, "20041.8"), (176000.4, 7, " 176000"), (1234567.8, 7, "1234568"),
    (12345678.0, 7, "1.2e+07"), (2.28, 6, "  2.28"), (0.0, 6, "  0.00"), (12345.6, 6, " 12346")])
def test_numbers_lose_decimals_as_they_grow(value: float, width: int, text: str) -> None:
    assert table.number(value, width) == text


def test_wrong_results_and_unchecked_ones() -> None:
    o = options.parse([])
    assert table.half(Placement(1.0, 1.0, 1.0, 1048576.0), o).endswith("  1.04858e+06")
    assert table.half(Placement(1.0, 1.0, 1.0, -1.0), o).endswith("     N/A")
    assert table.closing("x", 2, 3.0, None)[:2] == ["# Out of bounds values : 2 FAILED", "# Avg bus bandwidth    : 3 "]
    assert table.closing("x", 0, 3.0, 10.0)[1] == "# Avg bus bandwidth    : 3 FAILED"


def test_a_result_file_is_never_written_over(tmp_path: Path) -> None:
    path = str(tmp_path / "out.json")
    for name in (path, f"{path}.0", f"{path}.1"):
        found = results.opened(path)
        assert found is not None
        assert found[1] == name
        found[0].close()
    assert results.opened(str(tmp_path / "out.txt")) is None
    assert results.opened(str(tmp_path / "none" / "out.json")) is None
