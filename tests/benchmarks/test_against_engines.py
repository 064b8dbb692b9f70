"""The benchmarks against DuckDB, Polars and NumPy run; all of them find as many matches."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def bench(request) -> ModuleType:
    return importlib.import_module(request.param)


ENGINES = (
    "cepbench DP-LD",
    "cepbench DP-B",
    "DuckDB cep.to_sql DP-B",
    "Polars join_where",
    "Polars ranges",
    "Polars ranges in memory",
)
#: What counts without listing, as cepbench does.
COUNTING = {"DuckDB running counts", "Polars ranges", "Polars ranges in memory", "NumPy ranges"}


def check_rows(rows: pd.DataFrame, tasks: list, shown: str, repetitions: int) -> None:
    assert set(rows["task"]) == {task.name for task in tasks}
    for task in tasks:
        its = rows[rows["task"] == task.name]
        assert its["matches"].nunique() == 1 and its["matches"].iloc[0] > 0
        assert set(ENGINES) <= set(its["contestant"]) and (its["seconds"] > 0).all()
        for output in ("count", "positions"):
            found = its[its["output"] == output]
            assert set(ENGINES) <= set(found["contestant"])
            assert (found.groupby("contestant").size() == repetitions).all()
        assert f"{task.name}: {task.text}" in shown
    assert shown.count(" / cepbench DP-") == shown.count("The quickest other, ") == 2 * len(tasks)


@pytest.mark.parametrize("bench", ["bench_detection"], indirect=True)
def test_detection(bench, tmp_path, capsys) -> None:
    out = tmp_path / "deeper" / "rows.parquet"
    bench.main(["--events", "4000", "--repetitions", "2", "--out", str(out)])
    rows, shown = pd.read_parquet(out), capsys.readouterr().out
    check_rows(rows, bench.TASKS, shown, 2)
    assert "load of the machine" in shown
    counting = rows[(rows["output"] == "count") & ~rows["ours"] & ~rows["lists"]]
    for task in bench.TASKS:
        assert set(counting.loc[counting["task"] == task.name, "contestant"]) == COUNTING


@pytest.mark.parametrize("bench", ["bench_detection"], indirect=True)
def test_nothing_is_timed_where_numbers_of_matches_differ(bench, monkeypatch) -> None:
    def counting(found: int):
        def run() -> tuple[float, int]:
            timed.append(found)
            return 1.0, found

        return bench.Contestant(f"finds {found}", "count", False, False, run)

    timed: list[int] = []
    monkeypatch.setattr(bench, "contestants", lambda task, data: [counting(7), counting(8)])
    with pytest.raises(SystemExit, match=r"P3: the numbers of matches differ.*7.*8"):
        bench.measure(bench.TASKS[:1], None, 5)
    assert timed == [7, 8]


@pytest.mark.parametrize("bench", ["bench_detection"], indirect=True)
@pytest.mark.parametrize("tick", [1_000, 15_000])
def test_running_counts_are_right_where_many_events_share_a_time(bench, tick: int) -> None:
    table = bench.ten_symbols(3_000, 5)
    data = bench.data_of(table.assign(ts=table["ts"] // tick * tick))
    for task in bench.TASKS:
        plan = bench.cep.OrderPlan(task.pattern.names)
        expected = bench.cep.evaluate(task.pattern, data.stream, plan, output="count")
        counting = [
            run for run in bench.contestants(task, data) if run.output == "count" and not run.ours
        ]
        assert {run.name for run in counting} >= COUNTING and expected.metrics.matches > 0
        for run in counting:
            assert run.run()[1] == expected.metrics.matches, (task.name, run.name)


@pytest.mark.parametrize("bench", ["bench_detection"], indirect=True)
def test_positions_of_all_engines_are_the_same(bench) -> None:
    data = bench.prepared(4_000, 3)
    for task in bench.TASKS:
        plan = bench.cep.OrderPlan(task.pattern.names)
        expected = bench.cep.evaluate(task.pattern, data.stream, plan).matches
        names = list(expected.columns)
        frames = [
            frame.build(data.tables, True).select(*names).collect(engine=frame.engine).to_pandas()
            for frame in task.frames.values()
        ]
        frames += [
            data.connection.sql(query.listing).df()
            for query in task.queries.values()
            if query.listing
        ]
        assert len(expected) > 100
        for frame in frames:
            found = frame[names].astype(np.int64).sort_values(names).to_numpy()
            np.testing.assert_array_equal(found, expected.sort_values(names).to_numpy())


def messages(count: int) -> str:
    """Made-up messages: orders that are submitted, and executed or deleted a moment later."""
    rng = np.random.default_rng(2)
    lines = []
    for order in range(count):
        time, side = rng.uniform(34_200, 34_230), rng.choice([1, -1])
        size, price = rng.integers(1, 9) * 100, 5_850_000 + 100 * int(rng.integers(0, 30))
        later = time + rng.uniform(0, 2)
        kind = rng.choice([3, 4])
        lines += [(time, 1, order, size, price, side), (later, kind, order, size, price, side)]
    return "".join(
        f"{time:.9f},{kind},{order},{size},{price},{side}\n"
        for time, kind, order, size, price, side in sorted(lines)
    )


@pytest.mark.parametrize("bench", ["bench_detection"], indirect=True)
def test_ratios_are_of_one_repetition_and_to_our_quickest(bench) -> None:
    seconds = {
        "cepbench P": (1.0, 2.0),
        "cepbench slow": (9.0, 9.0),
        "DuckDB lists": (9.0, 8.0),
        "Polars lists": (80.0, 80.0),
        "DuckDB counts": (4.0, 2.0),
    }
    rows = pd.DataFrame(
        [
            ("T", "count", name, name[0] == "c", "lists" in name, number, 7, value)
            for name, values in seconds.items()
            for number, value in enumerate(values)
        ],
        columns=[
            "task",
            "output",
            "contestant",
            "ours",
            "lists",
            "repetition",
            "matches",
            "seconds",
        ],
    )
    *_, ours, _, listing, _, counting, counted, listed = bench.summary(
        rows, [bench.Task("T", "PATTERN …")]
    ).splitlines()
    assert ours.split() == [
        "cepbench",
        "P",
        "1500.0",
        "ms",
        "1000.0",
        "ms",
        "2000.0",
        "ms",
        "1.00",
        "[1.00,",
        "1.00]",
    ]
    assert listing.split()[-5:] == ["6.50", "[4.00,", "9.00]", "lists", "all"]
    assert counting.split()[-3:] == ["2.50", "[1.00,", "4.00]"]
    assert "The quickest other, DuckDB counts, takes 2.50 [1.00, 4.00] times as long." in counted
    assert "Of those that list all matches, DuckDB lists: 6.50 [4.00, 9.00] times." in listed


@pytest.mark.parametrize("bench", ["bench_order_book"], indirect=True)
def test_order_book(bench, tmp_path, capsys) -> None:
    hour = tmp_path / "lobster_made_up_2012-06-21_message.csv"
    hour.write_text(messages(600), encoding="utf-8")
    out = tmp_path / "rows.parquet"
    bench.main(["--hour", str(hour), "--repetitions", "1", "--out", str(out)])
    shown = capsys.readouterr().out
    assert "1,200 messages, 0 rows that cannot be read" in shown
    check_rows(pd.read_parquet(out), bench.TASKS, shown, 1)


@pytest.mark.parametrize("bench", ["bench_order_book"], indirect=True)
def test_a_real_hour_has_matches_of_all_patterns(bench) -> None:
    named = os.environ.get("CEPBENCH_REAL_DATA")
    if not named:
        pytest.skip("CEPBENCH_REAL_DATA names no folder of real data")
    (hour,) = Path(named).glob("lobster_*_message.csv")
    data = bench.prepared(hour)
    contestants = importlib.import_module("bench_detection").contestants
    for task in bench.TASKS:
        counted = {run.name: run.run()[1] for run in contestants(task, data)}
        assert len(set(counted.values())) == 1 and min(counted.values()) > 1_000


def test_without_a_file_nothing_is_measured() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", FOLDER / "bench_order_book.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("no file given; see")


@pytest.mark.parametrize("bench", ["bench_detection"], indirect=True)
def test_rows_are_written_as_parquet_only(bench, capsys) -> None:
    with pytest.raises(SystemExit):
        bench.main(["--out", "rows.csv"])
    assert "must end in .parquet" in capsys.readouterr().err


@pytest.mark.parametrize("bench", ["bench_peers"], indirect=True)
def test_peers(bench, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("CEPBENCH_PEERS", str(tmp_path / "none"))
    out = tmp_path / "rows.parquet"
    few = ["--events", "3000", "--windows", "300", "1200", "--repetitions", "2"]
    page = tmp_path / "peers.md"
    bench.main([*few, "--out", str(out), "--page", str(page)])
    rows, shown = pd.read_parquet(out), capsys.readouterr().out
    assert "the fastest in" in page.read_text(encoding="utf-8")
    assert page.with_suffix(".txt").read_text(encoding="utf-8") in shown
    assert "Peers beside cepbench" in page.with_suffix(".svg").read_text(encoding="utf-8")
    timed = rows[rows["repetition"] >= 0]
    for task in bench.TASKS:
        its = timed[timed["task"] == task.name]
        wanted = {"cepbench"}
        if task.name != "Kleene":
            wanted |= {"DuckDB"}
        if task.name == "neighbours":
            wanted |= {"Polars shift", "NumPy"}
        elif task.steps:
            wanted |= {"DuckDB to_sql", "Polars buckets"}
            wanted |= set() if task.key else {"Polars ranges", "NumPy"}
        assert set(its["contestant"]) == wanted and (its["seconds"] > 0).all()
        assert (its.groupby(["window", "contestant"]).size() == 2).all()
    # The events are few, but for each pattern there is something to find.
    assert (timed.groupby("task")["matches"].max() > 0).all()
    asked = rows[rows["note"].str.startswith("not installed")]
    assert set(asked["contestant"]) == {"chDB", "CORE", "Flink CEP"}
    assert "Flink CEP, condition: not installed" in shown and "CORE, condition" not in shown


@pytest.mark.parametrize("bench", ["bench_peers"], indirect=True)
def test_peers_have_to_find_the_same_events(bench, monkeypatch) -> None:
    ours, right, wrong = [(0, (1, 2)), (0, 1)], [(0, (1,)), (0, (1, 2))], [(0, 1), (0, (1, 3))]
    found = {"cepbench": ours, "right": right, "wrong": wrong}

    def contestants(task, window, data, longest):
        return [
            (name, lambda times, its=its: ([], pd.DataFrame(its))) for name, its in found.items()
        ]

    monkeypatch.setattr(bench, "contestants", contestants)
    with pytest.raises(SystemExit, match="wrong: 1 matches are lacking, 1 beyond"):
        bench.measure([100], [300], bench.TASKS[:1], 1, 0, 9.0)


@pytest.mark.parametrize("bench", ["bench_peers"], indirect=True)
def test_the_first_lines_name_who_is_ahead(bench) -> None:
    def row(task: str, name: str, seconds: float) -> dict:
        return {
            "task": task, "events": 1_000_000, "window": 300, "contestant": name, "repetition": 0,
            "matches": 7, "seconds": seconds, "note": "",
        }  # fmt: skip

    slow, quick, best = ("DuckDB", 0.5), ("DuckDB to_sql", 0.05), ("cepbench", 0.1)
    rows = [row("keyed", *its) for its in (slow, quick, best)]
    rows += [row("AND", *its) for its in (slow, best)]
    rows = pd.DataFrame(rows)
    found, shown = bench.found_of(bench.best_of(rows)), bench.summary(rows).splitlines()
    assert found.splitlines()[0] == (
        "Of 2 cells (a task, a number of events, a window) cepbench is the fastest in 1, DuckDB in 1. "
        "Others are ahead of it:"
    )
    assert found.splitlines()[-1] == "- **keyed**: DuckDB up to 2.0 times (1 of 1 cells)"
    assert "10.0 [10.0, 10.0]" in shown[-2] and shown[-1].split()[-1] == "5"
    later = row("OR", "cepbench", np.nan) | {"note": bench.LATER}
    rows = pd.concat([rows, pd.DataFrame([later, row("OR", "DuckDB", 0.5)])])
    shown = bench.summary(rows).splitlines()
    assert shown[-1].split() == ["OR", "7", "too", "slow"]
