"""What commands tell is what the library computes, and what the naive matcher finds."""

from __future__ import annotations

import csv as python_csv
import errno
import json
import math
import os
import re
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

import cepbench as cep
from cepbench.planning.planners.registry import default_generators
from cepbench.presentation.commands.app import main
from cepbench.presentation.commands.matching import SHOWN
from cepbench.presentation.commands.output import write_json
from tests.drawn_events import drawn_events, normal
from tests.naive.matcher import naive_matches

#: A pattern that the small data has matches of.
PATTERN = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 10 units"

#: Of ``compare``: every plan once.
FEW = ["--repetitions", "1", "--seconds", "0"]


@pytest.fixture(scope="module")
def stream(frame: pd.DataFrame) -> cep.EventStream:
    return cep.EventStream.from_pandas(frame, type="symbol", time="ts")


@pytest.fixture(scope="module")
def expected(frame: pd.DataFrame) -> set[tuple]:
    found = naive_matches(
        cep.parse(PATTERN), frame.rename(columns={"symbol": "type", "ts": "time"})
    )
    assert len(found) > 10
    return found


def test_plans_are_those_of_the_library(told, stream, data) -> None:
    document = told(["plan", PATTERN, "--data", data, "--seed", "3"])
    pattern = cep.parse(PATTERN)
    statistics = cep.measure_statistics(pattern, stream, seed=3)
    assert document["pattern"] == PATTERN
    assert cep.Statistics.from_dict(document["statistics"]) == statistics
    assert [row["generator"] for row in document["plans"]] == default_generators()
    for row in document["plans"]:
        plan = cep.plan(pattern, statistics, row["generator"], seed=3)
        assert row["kind"] == plan.kind
        assert row["cost"] == pytest.approx(plan.cost)
        assert row["log_cost"] == pytest.approx(math.log(row["cost"]))
        assert row["status"] == "ok"
        nodes = cep.explain(pattern, plan, statistics).nodes
        assert [node["variables"] for node in row["nodes"]] == list(nodes["variables"])
        assert [node["estimated"] for node in row["nodes"]] == pytest.approx(
            list(nodes["estimated"])
        )


def test_the_text_of_plans(run, data) -> None:
    shown = run(["plan", PATTERN, "--data", data]).stdout
    lines = shown.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(tuple(default_generators()))] == (
        default_generators()
    )
    assert "order plan by" in shown
    assert "tree plan by" in shown
    assert "├ " in shown
    named = run(["plan", PATTERN, "--data", data, "-g", "efreq", "-g", "trivial"]).stdout
    assert "order plan by EFREQ" in named
    assert "order plan by TRIVIAL" in named
    assert "tree plan" not in named


def test_statistics_by_hand_and_latency_need_no_data(run, told, tmp_path) -> None:
    file = tmp_path / "statistics.json"
    file.write_text('{"cardinalities": {"a": 5, "b": 3, "c": 1}, "selectivities": [["a","b",0.5]]}')
    words = ["plan", PATTERN, "--statistics", str(file), "-g", "DP-LD"]
    (row,) = told(words)["plans"]
    statistics = cep.Statistics(
        cardinalities={"a": 5, "b": 3, "c": 1}, selectivities={("a", "b"): 0.5}
    )
    pattern = cep.parse(PATTERN)
    assert row["cost"] == pytest.approx(cep.plan(pattern, statistics, "DP-LD").cost)
    words[1], words[-1] = pattern_of("AND"), "TRIVIAL"
    words += ["--alpha", "2", "--last", "a"]
    (late,) = told(words)["plans"]
    planned = cep.plan(cep.parse(words[1]), statistics, "TRIVIAL", alpha=2, last="a")
    assert late["cost"] == pytest.approx(planned.cost)
    assert late["cost"] > row["cost"]
    assert late["log_latency"] == pytest.approx(planned.log_latency)
    assert " latency " in run(words).stdout
    assert "give --last" in run(words[:-2], code=1).stderr
    words[1] = PATTERN
    assert re.search(r"^TRIVIAL +order +\S+ +1 +0 ", run(words[:-2]).stdout, re.MULTILINE)


def test_a_rewritten_pattern_is_planned(run, told, tmp_path) -> None:
    file = tmp_path / "statistics.json"
    file.write_text('{"cardinalities": {"a": 5, "b": 3, "c": 1}}')
    before = "PATTERN AND(A a, SEQ(B b), C c) WHERE a.ts < b.ts WITHIN 9 units"
    words = ["plan", before, "--statistics", str(file), "-g", "DP-B", "--rewrite", "--time", "ts"]
    document = told(words)
    assert document["pattern"] == "PATTERN AND(SEQ(A a, B b), C c) WITHIN 9 units"
    assert [step["rule"] for step in document["steps"]] == ["flatten", "order"]
    assert document["steps"][0]["before"] == before
    assert "  flatten: A;(B;C) is A;B;C" in run(words).stdout
    assert told(words[:-3])["pattern"] == before


def pattern_of(operator: str) -> str:
    return PATTERN.replace("SEQ", operator)


def test_what_one_command_measures_another_one_reads(told, tmp_path) -> None:
    named = ["--data", "nasdaq-style/sample", "-g", "DP-B"]
    first = told(["plan", "--pattern-name", "four-stocks", *named])
    measured = told(["data", "stats", "nasdaq-style/sample", "--pattern", "four-stocks"])
    for document in (first, measured):
        file = tmp_path / "statistics.json"
        file.write_text(json.dumps(document))
        again = told(["plan", first["pattern"], "--statistics", str(file), "-g", "DP-B"])
        assert again["statistics"] == document["statistics"]
    assert first["plans"][0]["plan"] == again["plans"][0]["plan"]


@pytest.mark.parametrize("uneven", [False, True])
def test_noise_is_told(uneven: bool, run, tmp_path, data) -> None:
    plugin = tmp_path / "sleepy.py"
    plugin.write_text(
        "import itertools, time\n"
        "import cepbench as cep\n"
        f"seconds = itertools.cycle([0.03, {0.06 if uneven else 0.03}])\n"
        '@cep.plan_evaluator("sleepy")\n'
        "def sleepy(pattern, stream, plan):\n"
        "    time.sleep(next(seconds))\n"
        '    return cep.evaluate(pattern, stream, plan, evaluator="tree").matches\n'
    )
    words = ["compare", PATTERN, "--data", data, "--repetitions", "5", "--seconds", "0"]
    words += ["-g", "GREEDY", "--evaluator", "sleepy", "--plugin", str(plugin)]
    assert ("The interquartile range" in run(words).stdout) == uneven


def test_the_event_that_comes_last_is_found_on_the_data(told, data) -> None:
    words = ["plan", pattern_of("AND"), "--data", data, "--alpha", "1", "-g", "GREEDY"]
    (row,) = told(words)["plans"]
    named = {name: told([*words, "--last", name])["plans"][0]["cost"] for name in ("a", "b", "c")}
    assert row["cost"] in named.values()
    assert len(set(named.values())) > 1


#: A plug-in with an evaluator.
ENGINE = """
import cepbench as cep

@cep.plan_evaluator("my-engine", source="a dream")
def my_engine(pattern, stream, plan):
    return cep.evaluate(pattern, stream, plan, evaluator="tree").matches
"""

READERS = {
    ".parquet": pq.read_table,
    ".csv": csv.read_csv,
    ".arrow": lambda file: ipc.open_file(file).read_all(),
}


@pytest.mark.parametrize("ending", READERS)
def test_matches_are_written(ending: str, told, tmp_path, data, frame, expected) -> None:
    file = tmp_path / "new" / f"matches{ending}"
    words = ["run", PATTERN, "--data", data, "-o", str(file), "--attribute", "name"]
    document = told(words)
    table = READERS[ending](file).to_pylist()
    assert document["written"] == document["metrics"]["matches"] == len(table) == len(expected)
    assert {(row["a"], row["b"], row["c"]) for row in table} == expected
    for row in table:
        for name in "abc":
            assert row[f"{name}.time"] == frame["ts"][row[name]]
            assert row[f"{name}.name"] == frame["name"][row[name]]
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("evaluator", ["tree", "my-engine"])
@pytest.mark.parametrize("ending", READERS)
def test_more_matches_than_are_written_at_once(
    ending: str, evaluator: str, run, tmp_path, monkeypatch
) -> None:
    """600 × 600, each pair once, in files and in the first five that are shown."""
    count = 600
    frame = pd.DataFrame({"symbol": ["A"] * count + ["B"] * count, "ts": range(2 * count)})
    frame.to_parquet(tmp_path / "events.parquet")
    file, plugin = tmp_path / f"matches{ending}", tmp_path / "mine.py"
    plugin.write_text(ENGINE)
    words = ["run", "PATTERN SEQ(A a, B b) WITHIN 2000 units", "-g", "GREEDY"]
    words += ["--data", str(tmp_path / "events.parquet"), "--plugin", str(plugin)]
    shown = run([*words, "--evaluator", evaluator, "-o", str(file)]).stdout
    assert "360,000 matches" in shown
    table = READERS[ending](file)
    a, b = (table.column(name).to_numpy() for name in "ab")
    assert len(np.unique(a * 2 * count + b)) == len(a) == count * count
    assert a.max() < count <= b.min()


@pytest.mark.parametrize("ending", READERS)
def test_sets_of_events_are_written(ending: str, told, tmp_path, data, frame) -> None:
    file = tmp_path / f"matches{ending}"
    pattern = "PATTERN SEQ(A a, KL(C c)) WITHIN 12 units"
    told(["run", pattern, "--data", data, "--output", str(file), "--attribute", "name"])
    expected = naive_matches(
        cep.parse(pattern), frame.rename(columns={"symbol": "type", "ts": "time"})
    )
    assert any(len(c) > 1 for _, c in expected)
    found = set()
    for row in READERS[ending](file).to_pylist():
        c = str(row["c"]).split() if ending == ".csv" else row["c"]
        found.add((row["a"], tuple(map(int, c))))
        names = json.loads(row["c.name"]) if ending == ".csv" else row["c.name"]
        assert names == [frame["name"][int(position)] for position in c]
    assert found == expected


@pytest.mark.parametrize("ending", READERS)
def test_the_columns_of_return_are_written(ending: str, run, told, tmp_path, frame) -> None:
    frame.to_parquet(tmp_path / "events.parquet")
    file = tmp_path / f"matches{ending}"
    text = "PATTERN SEQ(A a, KL(C c)) WITHIN 12 units RETURN c, count(c.x) AS n, a.name, a"
    words = ["run", text, "--data", str(tmp_path / "events.parquet"), "--only-types"]
    document = told([*words, "-o", str(file)])
    rows = READERS[ending](file).to_pylist()
    assert document["written"] == document["metrics"]["matches"] == len(rows) > 10
    for row in rows:
        assert list(row) == ["c", "n", "a.name", "a"]
        c = str(row["c"]).split() if ending == ".csv" else row["c"]
        assert len(c) == row["n"]
        assert set(frame["symbol"][[*map(int, c)]]) == {"C"} and frame["symbol"][row["a"]] == "A"
        assert row["a.name"] == frame["name"][row["a"]]
    assert told(words)["first_matches"][0].keys() == rows[0].keys()
    lines = run(words).stdout.splitlines()
    assert any(line.split() == ["c", "n", "a.name", "a"] for line in lines)
    refused = run([*words, "--attribute", "x"], code=2)
    assert "add the attribute there, as in a.x" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("ending", READERS)
def test_positions_are_those_in_the_data_however_little_of_it_is_read(
    ending: str, told, tmp_path, frame
) -> None:
    """In Parquet in no order too, which is sorted first: they are its rows as they lie."""
    shuffled = frame.sample(frac=1, random_state=3).reset_index(drop=True)
    shuffled.to_parquet(tmp_path / "events.parquet")
    words = ["run", PATTERN, "--data", str(tmp_path / "events.parquet"), "--attribute", "x"]
    tables = []
    for option in ([], ["--only-types"]):
        file = tmp_path / f"matches{ending}"
        document = told([*words, *option])
        assert told([*words, *option, "-o", str(file)])["written"] > 10
        rows = READERS[ending](file).to_pylist()
        assert document["first_matches"] == rows[:SHOWN]
        tables.append(sorted(rows, key=str))
    assert tables[0] == tables[1]
    for row in tables[1]:
        for name in "abc":
            event = shuffled.loc[row[name]]
            assert event["symbol"] == name.upper()
            assert event["ts"] == row[f"{name}.time"] and event["x"] == row[f"{name}.x"]


@pytest.mark.parametrize("name", ["nasdaq-style/sample", "minute-bars/sample"])
def test_positions_are_those_in_the_data_set(name: str, told, tmp_path) -> None:
    file = tmp_path / "matches.parquet"
    stream = cep.open_dataset(name).stream()
    types = [f"{kind} {variable}" for kind, variable in zip(stream.type_names, "abc", strict=False)]
    words = ["run", f"PATTERN SEQ({', '.join(types)}) WITHIN 4 minutes", "--data", name]
    told([*words, "--only-types", "--days", "1", "-o", str(file), "--attribute", "price"])
    table = pq.read_table(file)
    assert table.num_rows > 10
    again = cep.with_events(table.select([*"abc"]), stream, ["type", "time", "price"])
    assert set(again.column("c.type").to_pylist()) == {stream.type_names[2]}
    for column in ("a.time", "b.time", "c.time", "a.price", "c.price"):
        assert table.column(column).to_pylist() == again.column(column).to_pylist()


def test_neighbours_are_those_among_all_events(told, data) -> None:
    text = "PATTERN SEQ(A a, C c) ORDER BY arrival STRATEGY strict_contiguity WITHIN 9 units"
    words = ["run", text, "--data", data, "--count"]
    counts = [told([*words, *its])["metrics"]["matches"] for its in ([], ["--only-types"])]
    assert counts[0] == counts[1] > 0


def test_counting_finds_as_many(told, data, expected) -> None:
    document = told(["run", PATTERN, "--data", data, "--count", "-g", "DP-B"])
    assert document["metrics"]["matches"] == len(expected)
    assert document["evaluator"] == "tree"
    assert document["first_matches"] == []


def test_a_window_of_length_0_has_matches_too(told, data, stream) -> None:
    text = "PATTERN AND(A a, B b) WITHIN 0 units"
    due = len(cep.evaluate(text, stream).matches)
    assert due and told(["run", text, "--data", data, "--count"])["metrics"]["matches"] == due
    assert told(["run", text, "--data", data, "-g", "GREEDY"])["metrics"]["matches"] == due


def test_the_first_matches_are_shown_by_their_times(run, told, data, frame, expected) -> None:
    document = told(["run", PATTERN, "--data", data])
    first = document["first_matches"]
    assert len(first) == SHOWN
    assert {(row["a"], row["b"], row["c"]) for row in first} <= expected
    lines = run(["run", PATTERN, "--data", data]).stdout.splitlines()
    heads = lines.index(next(line for line in lines if line.startswith("a: A")))
    assert lines[heads + 1].split() == [str(first[0][f"{name}.time"]) for name in "abc"]
    assert f"matches:         {len(expected):,}" in lines


def test_a_limit_stops_early(told, tmp_path, data, expected) -> None:
    file = tmp_path / "some.parquet"
    document = told(["run", PATTERN, "--data", data, "--limit", "4", "-o", str(file)])
    assert document["stopped_by_limit"]
    assert document["written"] == pq.read_metadata(file).num_rows == 4
    assert document["metrics"]["events"] < 90
    more = told(["run", PATTERN, "--data", data, "--limit", str(len(expected) + 1)])
    assert not more["stopped_by_limit"]


#: Runs a command until it is known to work, then again where files stay small, as if a disk were
#: full: the limit is that of a process, so it is one of its own.
LIMITED = """
import json, resource, sys
from typer.testing import CliRunner
from cepbench.presentation.commands.app import app
words, shown = sys.argv[1:], []
for limit in (resource.RLIM_INFINITY, 200):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for ending in (".parquet", ".csv", ".arrow"):
        done = CliRunner().invoke(app, [*words, "-o", f"matches{ending}"])
        shown.append([done.exit_code, done.stderr])
    done = CliRunner().invoke(app, ["explain", *words[1:], "--html", "page.html"])
    shown.append([done.exit_code, done.stderr.splitlines()[-1]])
print(json.dumps(shown))
"""


def test_nothing_is_left_of_a_file_that_could_not_be_finished(tmp_path, data) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LIMITED, "run", PATTERN, "--data", data],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stderr == ""
    *good, picture, parquet, text, arrow, page = json.loads(done.stdout)
    advice = "write to a file system that takes larger files"
    assert good == [[0, ""]] * 3
    assert picture == [0, "The picture is in page.html."]
    assert page == [1, f"error: File too large: page.html; {advice}"]
    assert (tmp_path / "page.html").read_text().endswith("</html>\n")  # from before
    for ending, shown in ((".parquet", parquet), (".csv", text), (".arrow", arrow)):
        assert shown == [1, f"error: File too large: matches{ending}; {advice}\n"]
        assert READERS[ending](tmp_path / f"matches{ending}").num_rows > 10  # from before
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"events.parquet", "page.html", *(f"matches{ending}" for ending in READERS)}


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "No space left on device: {file}; free some space, or write to another"),
        (errno.EACCES, "Permission denied: {file}; check its permissions"),
        (errno.EROFS, "Read-only file system: {file}; the file system is read-only"),
    ],
)
def test_what_the_system_refuses_comes_with_advice(
    number: int, advice: str, run, tmp_path, data, monkeypatch
) -> None:
    file = tmp_path / "matches.csv"

    def refused(*_: object) -> None:
        # As Arrow says it: without the name of a file.
        raise OSError(number, f"Error. Detail: [errno {number}] {os.strerror(number)}")

    monkeypatch.setattr(csv, "CSVWriter", refused)
    result = run(["run", PATTERN, "--data", data, "-o", str(file)], code=1)
    assert result.stderr.startswith(f"error: {advice.format(file=file)}")
    assert {path.name for path in tmp_path.iterdir()} == {"events.parquet"}


def test_the_comparison_is_that_of_the_library(run, told, data, stream, expected) -> None:
    words = ["compare", PATTERN, "--data", data, *FEW]
    rows = told(words)["rows"]
    table = cep.compare(cep.parse(PATTERN), stream, repetitions=1, seconds=0)
    assert [row["generator"] for row in rows] == list(table["generator"])
    for row, other in zip(rows, table.to_dict("records"), strict=True):
        for key in ("plan", "cost", "evaluator", "comparisons", "peak_bytes", "matches", "status"):
            assert row[key] == other[key]
        assert row["matches"] == len(expected)
    shown = run([*words, "-g", "DP-B", "-g", "GREEDY", "--evaluator", "tree"]).stdout
    names = [line.split()[:2] for line in shown.splitlines() if line.startswith(("DP-B", "GREEDY"))]
    assert names == [["DP-B", "tree"], ["GREEDY", "tree"]]


def test_a_refusal_is_a_row(run, told, tmp_path) -> None:
    names = [f"v{k}" for k in range(26)]
    pattern = f"PATTERN SEQ({', '.join(f'A {name}' for name in names)}) WITHIN 50 units"
    file = tmp_path / "statistics.json"
    cardinalities = ", ".join(f'"{name}": 1' for name in names)
    file.write_text(f'{{"cardinalities": {{{cardinalities}}}}}')
    words = ["plan", pattern, "--statistics", str(file), "-g", "DP-LD"]
    refused, made = told([*words, "-g", "GREEDY"])["plans"]
    assert (refused["status"], refused["plan"], refused["nodes"]) == ("refused", None, [])
    assert made["status"] == "ok"
    assert "refused: DP-LD takes at most" in run([*words, "-g", "GREEDY"]).stdout
    assert "DP-LD takes at most" in run(words, code=1).stderr


def test_an_explanation_is_that_of_the_library(run, told, tmp_path, data, stream) -> None:
    page = tmp_path / "plan.html"
    document = told(["explain", PATTERN, "--data", data, "-g", "ZSTREAM", "--html", str(page)])
    pattern = cep.parse(PATTERN)
    statistics = cep.measure_statistics(pattern, stream)
    plan = cep.plan(pattern, statistics, "ZSTREAM")
    expected = cep.explain(pattern, plan, statistics, stream)
    for key in ("variables", "created", "comparisons"):
        assert [node[key] for node in document["nodes"]] == expected.nodes[key].tolist()
    assert document["metrics"]["matches"] == expected.metrics.matches
    text = page.read_text(encoding="utf-8")
    assert "<svg" in text
    assert "http" not in text.replace("http://www.w3.org", "")
    bare = told(["explain", PATTERN, "--data", data, "--no-run"])
    assert bare["metrics"] is None
    assert "measured" not in bare["nodes"][0]
    shown = run(["explain", PATTERN, "--data", data]).stdout
    assert "off by" in shown


def test_lists_have_what_is_registered(run, told) -> None:
    rows = told(["generators"])
    assert [row["name"] for row in rows] == list(cep.PLAN_GENERATORS)
    assert [row["name"] for row in rows if row["default"]] == default_generators()
    assert all(row["source"] for row in rows)
    shown = run("generators").stdout
    assert all(name in shown for name in cep.PLAN_GENERATORS)
    assert [row["name"] for row in told(["evaluators"])] == list(cep.EVALUATORS)
    assert "Kolchinsky & Schuster 2018, section 2.2" in run("evaluators").stdout


def test_a_plugin_is_in_every_table(run, told, tmp_path, data) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "import cepbench as cep\n"
        '@cep.plan_generator("MY-IDEA", kind="order", source="a dream")\n'
        "def my_idea(problem, rng):\n"
        "    return sorted(range(problem.n), key=problem.rate)\n"
    )
    own = ["--plugin", str(plugin)]
    assert told(["generators", *own])[-1]["source"] == "a dream"
    rows = told(["compare", PATTERN, "--data", data, *FEW, *own])["rows"]
    assert rows[-1]["generator"] == "MY-IDEA"
    assert rows[-1]["plan"] == "c, a, b"
    for command in ("plan", "run", "explain"):
        assert "MY-IDEA" in run([command, PATTERN, "--data", data, "-g", "MY-IDEA", *own]).stdout


@pytest.mark.parametrize("limit", [None, 3])
def test_an_evaluator_of_ones_own_runs(limit, run, told, tmp_path, data, expected) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(ENGINE)
    file = tmp_path / "matches.parquet"
    words = ["run", PATTERN, "--data", data, "--evaluator", "my-engine", "--plugin", str(plugin)]
    limited = ["--limit", str(limit)] if limit else []
    document = told([*words, "--output", str(file), *limited])
    found = {(row["a"], row["b"], row["c"]) for row in pq.read_table(file).to_pylist()}
    assert document["evaluator"] == "my-engine"
    assert document["metrics"]["peak_bytes"] is None
    assert found <= expected
    assert len(found) == document["written"] == (limit or len(expected))
    if limit is None:
        assert told([*words, "--count"])["metrics"]["matches"] == len(expected)
        assert "memory" not in run(words).stdout
        listed = told(["evaluators", "--plugin", str(plugin)])
        assert [row["name"] for row in listed if row["user_defined"]] == ["my-engine"]
        compared = ["compare", *words[1:], "--evaluator", "tree", *FEW]
        shown = run([*compared, "-g", "DP-B"]).stdout
        assert "my-engine" in shown
        assert "nan" not in shown


def test_patterns_come_from_files_standard_input_and_libraries(told, tmp_path, data) -> None:
    file = Path(tmp_path / "pattern.txt")
    file.write_text(PATTERN + "\n")
    words = ["--data", data, "--count"]
    counts = {
        told(["run", str(file), *words])["metrics"]["matches"],
        told(["run", "-", *words], stdin=PATTERN)["metrics"]["matches"],
        told(["run", PATTERN, *words])["metrics"]["matches"],
    }
    assert len(counts) == 1
    library = cep.open_dataset("ten-symbols/sample").patterns
    name = next(iter(library))
    document = told(["plan", "--pattern-name", name, "--data", "ten-symbols/sample", "-g", "EFREQ"])
    assert document["pattern"] == str(library[name])


def test_the_columns_of_ones_own_parquet(told, tmp_path, frame, data) -> None:
    shuffled = frame.rename(columns={"symbol": "kind", "ts": "when"}).sort_values(
        "when", ascending=False, kind="stable"
    )
    shuffled[shuffled["kind"] != "D"].to_parquet(tmp_path / "other.parquet")
    other = ["--data", str(tmp_path / "other.parquet"), "--columns", "kind,when", "--count"]
    one = told(["run", PATTERN, "--data", data, "--count", "--only-types"])["metrics"]
    assert one["events"] == (frame["symbol"] != "D").sum()
    two = told(["run", PATTERN, *other])["metrics"]
    assert (one["events"], one["matches"]) == (two["events"], two["matches"])


def test_only_the_first_days_of_a_data_set(told) -> None:
    words = ["run", "--pattern-name", "four-stocks", "--data", "nasdaq-style/sample", "--count"]
    dataset = cep.open_dataset("nasdaq-style/sample")
    assert told([*words, "--days", "1"])["metrics"]["events"] == len(dataset.stream(days=1))
    assert told(words)["metrics"]["events"] == len(dataset.stream()) > len(dataset.stream(days=1))


#: Command → plan and cost of the first row.
COMMANDS = {
    "plan": lambda told: told["plans"][0],
    "run": lambda told: told,
    "explain": lambda told: told,
    "compare": lambda told: told["rows"][0],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_seed_is_for_statistics_and_for_plans(command: str, told, tmp_path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "import cepbench as cep\n"
        '@cep.plan_generator("RANDOM", kind="order")\n'
        "def draw(problem, rng):\n"
        "    return rng.permutation(problem.n).tolist()\n"
    )
    # More pairs than are sampled, so that a seed decides the statistics, and with them the costs.
    frame = drawn_events(1_200, "ABC", seed=7, names=("symbol", "ts"), x=normal)
    frame.to_parquet(tmp_path / "long.parquet")
    stream = cep.EventStream.from_pandas(frame, type="symbol", time="ts")
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x AND a.x > 1.5 WITHIN 500 units"
    words = [command, text, "--data", str(tmp_path / "long.parquet"), "--plugin", str(plugin)]
    if command == "compare":
        words += FEW

    def row(generator: str, seed: int) -> dict[str, Any]:
        return COMMANDS[command](told([*words, "-g", generator, "--seed", str(seed)]))

    costs = []
    for seed in (1, 2):
        statistics = cep.measure_statistics(cep.parse(text), stream, seed=seed)
        costs.append(cep.plan(text, statistics, "TRIVIAL").cost)
        assert row("TRIVIAL", seed)["cost"] == pytest.approx(costs[-1])
    assert costs[0] != pytest.approx(costs[1])
    plans = [row("RANDOM", seed)["plan"] for seed in (1, 2, 3, 4, 1)]
    assert plans[0] == plans[-1] and len(set(plans)) > 1


def test_the_day_is_that_of_the_first_event(run, tmp_path) -> None:
    times = pd.to_datetime(["2026-01-05 23:59:59.250", "2026-01-06 00:00:01.000"])
    frame = pd.DataFrame({"symbol": ["A", "B"], "ts": times})
    frame.to_parquet(tmp_path / "night.parquet")
    words = ["run", "PATTERN AND(B b, A a) WITHIN 1 minutes", "--data"]
    shown = run([*words, str(tmp_path / "night.parquet")]).stdout.splitlines()
    assert shown[-1].split() == ["2026-01-05", "00:00:01.000", "23:59:59.250"]


def test_what_a_branch_lacks_is_missing_in_csv_too(told, tmp_path, data) -> None:
    """Sets as well, for which an empty text would be a set of no events."""
    file = tmp_path / "matches.csv"
    pattern = "PATTERN OR(SEQ(A a, KL(C c)), SEQ(B b, D d)) WITHIN 6 units"
    told(["run", pattern, "--data", data, "-o", str(file), "--attribute", "name"])
    found = csv.read_csv(
        file,
        convert_options=csv.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    assert set(found.column("branch").to_pylist()) == {0, 1}
    for row in found.to_pylist():
        present = {name for name, value in row.items() if value is not None}
        own = "ac" if row["branch"] == 0 else "bd"
        assert present == {"branch", *(f"{v}{end}" for v in own for end in ("", ".time", ".name"))}


@pytest.mark.parametrize("alpha", ["0", "2"])
def test_an_explained_plan_weighs_latency_as_one_that_is_planned(alpha: str, told, data) -> None:
    words = [pattern_of("AND"), "--data", data, "--alpha", alpha, "-g", "DP-LD"]
    (row,) = told(["plan", *words])["plans"]
    explained = told(["explain", *words, "--no-run"])
    assert (explained["plan"], explained["cost"]) == (row["plan"], pytest.approx(row["cost"]))


def test_numbers_of_every_kind_become_json(capsys) -> None:
    write_json(
        {
            "nothing": float("nan"),
            "infinite": np.inf,
            "numbers": np.array([1, 2]),
            "rows": pd.DataFrame({"x": [1.5], "when": [pd.Timestamp("2026-01-02")]}),
            "path": Path("a/b"),
            "table": pa.array([1, None]).to_pylist(),
        }
    )
    assert json.loads(capsys.readouterr().out) == {
        "nothing": None,
        "infinite": None,
        "numbers": [1, 2],
        "rows": [{"x": 1.5, "when": "2026-01-02 00:00:00"}],
        "path": "a/b",
        "table": [1, None],
    }


def test_a_pattern_needs_no_bracket_and_a_file_may_have_one(run, data, tmp_path) -> None:
    """What a file of this name exists for is read from there; else PATTERN begins a pattern."""
    written = run(f"plan 'PATTERN A a; B b WITHIN 5 units' --data {data} --json")
    file = tmp_path / "my (1).cep"
    file.write_text("PATTERN SEQ(A a, B b) WITHIN 5 units")
    read = run(f"plan '{file}' --data {data} --json")
    first, second = (json.loads(result.stdout)["pattern"] for result in (written, read))
    assert first == second == "PATTERN SEQ(A a, B b) WITHIN 5 units"


def test_lists_in_csv_read_back_equal(run, told, tmp_path) -> None:
    """Values of Kleene variables and groups: missing ones, texts of any kind, numbers, booleans, none."""
    texts = ["New York", None, 'say "hi", ok', "two\nlines", "", "é 提交 \\", "[1]", "null"]
    count = len(texts)
    frame = pd.DataFrame(
        {
            "symbol": ["A", *"B" * count, "C", "A", "C"],
            "ts": pd.date_range("2024-01-01", periods=count + 4, freq="min"),
            "text": [None, *texts, "end", "x", "y"],
            "number": [0.0, 1.5, np.nan, np.inf, -np.inf, 1e300, -0.1, 3.0, 1 / 3, 0.0, 0.0, 0.0],
            "whole": np.arange(count + 4) * 2**53,
            "time": range(count + 4),
        }
    )
    frame.to_parquet(tmp_path / "events.parquet")
    pattern = "PATTERN SEQ(A a, GROUP(B b, *), C c) WITHIN 1 hour"
    names = ["text", "number", "whole", "time"]
    words = ["run", pattern, "--data", str(tmp_path / "events.parquet")]
    for name in names:
        words += ["--attribute", name]
    outputs = {ending: tmp_path / f"matches{ending}" for ending in (".csv", ".parquet")}
    for file in outputs.values():
        told([*words, "--output", str(file)])
    due = pq.read_table(outputs[".parquet"]).to_pylist()
    with outputs[".csv"].open(newline="", encoding="utf-8") as content:
        rows = list(python_csv.DictReader(content))
    assert len(rows) == len(due) == 3
    assert sorted(len(match["b"]) for match in due) == [0, count, count]
    for row, match in zip(rows, due, strict=True):
        assert [int(p) for p in row["b"].strip("[]").split()] == match["b"]
        for name in names:
            read = json.loads(row[f"b.{name}"])
            assert read == [None if value != value else value for value in match[f"b.{name}"]]
        times = [pd.Timestamp(time) for time in json.loads(row["b.event time"])]
        assert times == match["b.event time"] == [frame.ts[place] for place in match["b"]]
        assert match["b.text"] == [frame.text[place] for place in match["b"]]
        assert match["b.time"] == match["b"]
    returned = (
        f"{pattern} RETURN b, b.text AS t, count(b.whole) AS n, a.time AS time, b.number AS branch"
    )
    told(["run", returned, *words[2:4], "--output", str(outputs[".csv"])])
    with outputs[".csv"].open(newline="", encoding="utf-8") as content:
        again = list(python_csv.DictReader(content))
    assert [row["t"] for row in again] == [row["b.text"] for row in rows]
    assert [row["branch"] for row in again] == [row["b.number"] for row in rows]
    shown = run(["run", returned, *words[2:4]]).stdout
    assert '["New York", null, "say \\"hi\\", ok"' in shown


def test_sorting_is_said(run, tmp_path, frame) -> None:
    frame[::-1].to_parquet(tmp_path / "events.parquet", index=False)
    words = [PATTERN, "--data", str(tmp_path / "events.parquet")]
    for command in ("run", "plan"):
        assert "not in order of ts: its events were sorted" in run([command, *words]).stderr
    frame.to_parquet(tmp_path / "events.parquet", index=False)
    assert "sorted" not in run(["run", *words]).stderr


@pytest.mark.filterwarnings("always::cepbench.errors.MissingTypeWarning")
def test_a_missing_type_is_said_once(run, data) -> None:
    """By a command that measures statistics, plans and runs."""
    for command in (["plan"], ["run"], ["run", "--only-types"], ["explain"], ["compare"]):
        words = [*command, "PATTERN SEQ(A a, Q q) WITHIN 10 units", "--data", str(data)]
        stderr = run(words).stderr
        assert stderr.count("no event of type 'Q'") == 1 and "missing_types" not in stderr
    near = run(["plan", "PATTERN SEQ(AA a) WITHIN 5 units", "--data", str(data)]).stderr
    assert "no event of type 'AA' (variable 'a'; did you mean 'A'?)" in " ".join(near.split())


def test_values_of_aggregates_have_rows_of_the_data(told, tmp_path, frame) -> None:
    shuffled = frame.sample(frac=1, random_state=4).reset_index(drop=True)
    shuffled.to_parquet(tmp_path / "events.parquet")
    file = tmp_path / "values.parquet"
    pattern = "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 10 units"
    words = ["aggregate", pattern, "--data", str(tmp_path / "events.parquet")]
    told([*words, "-o", str(file)])
    rows = pq.read_table(file).to_pylist()
    assert len(rows) > 10
    for row in rows:
        event = shuffled.loc[row["position"]]
        assert (event["symbol"], event["ts"]) == ("B", row["time"])


def test_columns_of_a_data_set_are_its_own(run) -> None:
    words = ["run", "PATTERN SEQ(MSFT a, GOOG b) WITHIN 1 minute", "--data", "nasdaq-style/sample"]
    run([*words, "--columns", "symbol,ts", "--count"])
    for columns in ("sector,ts", "symbol,time", "symbol"):
        for more in ([], ["--spark"]):
            refused = run([*words, "--columns", columns, *more], code=2)
            assert "'--columns'" in refused.stderr


def test_a_home_folder_and_a_folder_with_other_files(run, tmp_path, monkeypatch, frame) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "data").mkdir()
    frame.to_parquet(tmp_path / "data" / "0.parquet")
    (tmp_path / "data" / "README.md").write_text("about")
    (tmp_path / "pattern.txt").write_text(PATTERN)
    for data in ("~/data", "~/data/0.parquet"):
        run(["run", "~/pattern.txt", "--data", data, "-o", "~/matches.csv"])
    assert (tmp_path / "matches.csv").is_file()
    run(["explain", PATTERN, "--data", "~/data", "--html", "~/plan.html"])
    assert (tmp_path / "plan.html").is_file()
    (tmp_path / "data" / "0.parquet").unlink()
    assert "neither Parquet files" in run(["run", PATTERN, "--data", "~/data"], code=1).stderr


@pytest.mark.parametrize(
    ("encoding", "more"),
    [("ascii", []), ("latin-1", []), ("cp1252", ["--json"])],
)
def test_pipes_of_other_encodings(encoding: str, more: list[str], tmp_path, monkeypatch) -> None:
    frame = pd.DataFrame({"symbol": ["A", "B"], "ts": [1, 2], "city": ["Łódź", "提交 é"]})
    frame.to_parquet(tmp_path / "events.parquet")
    words = ["run", 'PATTERN SEQ(A a, B b) WITHIN 9 units RETURN a.city AS "stadt é", b.city']
    words += ["--data", str(tmp_path / "events.parquet")]
    # As of a process that is started with PYTHONIOENCODING.
    pipes = [TextIOWrapper(BytesIO(), encoding, errors="strict", write_through=True) for _ in "oe"]
    monkeypatch.setattr("sys.argv", ["cepbench", *words, *more])
    monkeypatch.setattr("sys.stdout", pipes[0])
    monkeypatch.setattr("sys.stderr", pipes[1])
    with pytest.raises(SystemExit) as ended:
        main()
    output, errors = (pipe.buffer.getvalue() for pipe in pipes)
    assert ended.value.code == 0, errors
    # Click writes UTF-8 where the encoding is that of a system without any settings.
    text = output.decode(encoding.replace("ascii", "utf-8"))
    if more:
        (found,) = json.loads(text)["first_matches"]
        assert list(found.values()) == list(frame.city)
    else:
        assert "stadt é" in text
