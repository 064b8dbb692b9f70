"""Every number that a command or a table prints is that of the frame, in the unit that stands there."""

from __future__ import annotations

import html
import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from tests.presentation.commands.test_workload_commands import TEXT, WORKLOAD

SEQUENCE = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 10 units"
COUNTED = "PATTERN SEQ(A a, B b) WHERE a.x < b.x AGG COUNT WITHIN 10 units"

ONCE = ["--repetitions", "1", "--seconds", "0"]

#: What stands behind a number → in the unit of the frame, seconds or bytes.
UNITS = {"": 1, "s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}

#: Heading → the column of the frame; the second end of a pair of numbers is ``_q3``.
COLUMNS = {
    "est. cost": "cost", "estimated cost": "cost", "planning": "plan_seconds",
    "events/s": "events_per_second", "middle half of the runs": "events_per_second_q1",
    "runs": "runs", "peak partial matches": "peak_partial_matches", "peak memory": "peak_bytes",
    "comparisons": "comparisons", "matches": "matches", "time": "seconds",
    "time per event": "seconds_per_slide", "updates": "updates", "peak counters": "peak_counters",
    "peak objects": "peak_objects", "values": "values", "× NAIVE": "times_naive",
    "reused": "reused", "ms": "seconds", "stored": "peak_partial_matches", "memory": "peak_bytes",
    "compared": "comparisons", "new": "delta",
}  # fmt: skip

#: Headings of texts, and of what is computed from other rows.
NOT_READ = {
    "plan generator", "evaluator", "plan", "method", "planner", "computed from others", "generator",
    "kind", "query", "computed", "by", "from other queries", "", "× least", "work",
}  # fmt: skip

NUMBER = re.compile(r"(-?[\d,]*\.?\d+(?:e[+-]?\d+)?) ?(ms|µs|ns|s|kB|MB|GB|B)?(?![\w.])")


@pytest.fixture(name="clock", autouse=True)
def even_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock takes 17.3 ms, so that a command takes as long each time."""
    ticks = itertools.count(1)
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks) * 0.0173)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(ticks) * 17_300_000)


def check(text: str, expected: float, unit: str = "") -> None:
    """The first number in a text, with its unit or that of its heading, is the expected one."""
    found = NUMBER.search(text)
    assert found, text
    value, written = found.groups()
    digits = value.replace(",", "").partition("e")[0].partition(".")[2]
    size = UNITS[written or unit]
    step = 0.5 * 10 ** -len(digits) * size  # of rounding, to this place or to three digits
    assert float(value.replace(",", "")) * size == pytest.approx(expected, rel=5e-3, abs=step), text


def check_row(cells: dict[str, str], row: dict[str, Any]) -> int:
    """How many cells of a printed row were compared with those of the frame."""
    compared = 0
    for heading, text in cells.items():
        if heading in NOT_READ:
            continue
        column = COLUMNS[heading] if COLUMNS[heading] in row else "results"
        if pd.isna(row[column]):
            assert text in ("", "–")
        elif not re.match("as |those of ", text):
            check(text, row[column], "ms" if heading == "ms" else "")
            assert row[column] > 0 or "second" not in column
            compared += 1
            if column == "events_per_second_q1":
                check(text.partition("–")[2], row["events_per_second_q3"])
    return compared


@pytest.fixture(name="stream", scope="module")
def events(frame: pd.DataFrame) -> cep.EventStream:
    return cep.EventStream.from_pandas(
        frame, type="symbol", time="ts", hierarchy=WORKLOAD.hierarchy
    )


@pytest.mark.parametrize(
    "asked", [SEQUENCE, COUNTED, WORKLOAD], ids=["plans", "methods", "queries"]
)
def test_the_table_of_a_comparison(asked: Any, stream: cep.EventStream) -> None:
    table = cep.compare(asked, stream, repetitions=2, seconds=0)
    head, *rows = [
        [html.unescape(cell).strip() for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line, re.S)]
        for line in re.findall(r"<tr>(.*?)</tr>", table._repr_html_(), re.S)
    ]  # fmt: skip
    ok = (table["status"] == "ok").to_numpy()
    assert len(rows) == len(table) and ok.sum() > 2
    for cells, row in itertools.compress(zip(rows, table.to_dict("records"), strict=True), ok):
        assert check_row(dict(zip(head, cells, strict=True)), row) >= 6


def printed_tables(text: str) -> Iterator[list[dict[str, str]]]:
    """Tables with headings, of which every column is apart from the next by two blanks."""
    for part in text.split("\n\n"):
        lines = part.splitlines()
        width = max(map(len, lines), default=0)
        blank = [all(line.ljust(width)[at] == " " for line in lines) for at in range(width)]
        starts = [
            0,
            *(at for at in range(2, width) if blank[at - 2] and blank[at - 1] and not blank[at]),
        ]
        spans = [*itertools.pairwise([*starts, width])]
        head, *rows = [[line[a:b].strip() for a, b in spans] for line in lines] or [[]]
        if rows and {"ms", "memory", "× NAIVE"} & {*head}:
            yield [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["plan", SEQUENCE], "plans"),
        (["plan", "QUERIES"], "plans"),
        (["run", "QUERIES"], "steps"),
        (["compare", SEQUENCE, *ONCE], "rows"),
        (["compare", "QUERIES", *ONCE], "rows"),
    ],
    ids=["plan", "plan queries", "run queries", "compare", "compare queries"],
)
def test_the_tables_of_commands(
    words: list[str], key: str, run: Any, told: Any, data: str, tmp_path: Path
) -> None:
    (tmp_path / "queries.txt").write_text(TEXT.replace("F a", "A a"))
    given = [word.replace("QUERIES", str(tmp_path / "queries.txt")) for word in words]
    command = [*given, "--data", data]
    rows = told(command)[key]
    (printed,) = printed_tables(run(command).stdout.partition("runs: inter")[0])
    assert len(printed) == len(rows) > 2
    for cells, row in zip(printed, rows, strict=True):
        assert check_row(cells, row) >= 2 or row.get("status", "ok") != "ok"


@pytest.mark.parametrize("words", [["run", SEQUENCE], ["aggregate", COUNTED]], ids=["run", "agg"])
def test_the_metrics_of_commands(words: list[str], run: Any, told: Any, data: str) -> None:
    metrics = told([*words, "--data", data])["metrics"]
    lines = run([*words, "--data", data]).stdout.splitlines()
    shown = dict(
        re.split(r": +", line, maxsplit=1) for line in lines if re.match(r"[\w ]+: +\d", line)
    )
    events, seconds = shown["events"].split(" in ")
    check(events, metrics["events"])
    check(seconds, metrics["seconds"])
    assert seconds.endswith(" s") and metrics["seconds"] > 0.01
    check(shown["memory"], metrics["peak_bytes"])
    named = {"throughput": "events_per_second", "comparisons": "comparisons", "updates": "updates",
             "objects": "peak_objects", "partial matches": "partial_matches_created"}  # fmt: skip
    for name, key in named.items():
        if name in shown:
            check(shown[name], metrics[key])


def test_sizes_of_data_sets_are_those_of_their_files(catalogue: Path) -> None:
    parts = catalogue / "nasdaq-style" / "data" / "quick" / "day=1"
    parts.mkdir(parents=True)
    for number, size in enumerate((2_340_000, 1_000_000)):
        (parts / f"{number}.parquet").write_bytes(bytes(size))
    listed = cep.open_dataset()["megabytes"]
    assert listed["nasdaq-style/quick"] == 3.3 and listed["nasdaq-style/full"] == 0


def test_the_report_of_a_generator() -> None:
    report = cep.check_generator("GREEDY", sizes=[2, 3])
    seconds = report.table.set_index("generator")["seconds"]
    lines = [line.split() for line in report.describe().splitlines() if line.endswith(" ms")]
    assert {name for name, *_ in lines} == {*seconds.index}
    for name, *_, number, unit in lines:
        check(f"{number} {unit}", seconds[name])
        assert seconds[name] > 0.01
