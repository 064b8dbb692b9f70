"""Tables and verdicts of the study's pages, from runs whose numbers are known."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd
import pytest

from cepbench.experiments.studies.agrawal2008.bounds import WINDOWS, bound_runs
from cepbench.experiments.studies.agrawal2008.printed import TABLE_2, TABLE_3
from cepbench.experiments.studies.agrawal2008.runs import (
    ENGINES,
    STRATEGIES,
    beside_the_prototype,
    compared,
    gains,
    runs_of,
    speedups,
)
from cepbench.experiments.studies.runs import exponents, figure_runs, number, summary_of, table_of
from cepbench.presentation.figures import interactive, static
from cepbench.presentation.reporting.verdicts import ledger
from tests.experiments.made_rows import made_rows

#: Evaluator → events per second and runs per step at W = 500; both halve and double with W.
SPEEDS = {"sase-basic": (100.0, 2.0), "sase": (150.0, 1.0), "sase-backtrack": (0.4, 0.5)}


def results(output: str = "arrow", sizes: tuple[int, ...] = (500, 2000)) -> pd.DataFrame:
    """Rows as a sweep has them: p1 and p2, both strategies, every engine, each W, five runs."""

    def numbers(run: Any) -> dict[str, Any]:
        speed, steps = SPEEDS[run.evaluator]
        size = int(run.stream[1:])
        times = size // 500
        counted = {
            "runs_started": 10.0, "runs_merged": 5.0, "runs_per_step": steps,
            "output_complexity": 0.0 if output == "count" else 1000.0 * times**2,
            "events_reprocessed": 60.0, "seconds_matching": 2.0 / speed,
            "seconds_construction": 1.0 / speed,
            "seconds_buffer": 1.0 / speed if run.evaluator == "sase-basic" else None,
        }  # fmt: skip
        return {
            "pattern_set": "user", "size": 2, "pattern": f"PATTERN … WITHIN {2 * size} units",
            "generator": "none", "plan_kind": "none", "options": "{}", "window": f"{2 * size} units",
            "output": output, "measured_with": None, "details": json.dumps(counted), "events": 100,
            "matches": 10 * times, "plan_cost": None, "plan_log_cost": None,
            "events_per_second": speed / times**2, "seconds": times**2 / speed,
        }  # fmt: skip

    runs = {"strategy": STRATEGIES, "repetition": range(5), "evaluator": SPEEDS}
    streams = [f"w{size}" for size in sizes]
    rows = made_rows(numbers, stream=streams, pattern_id=["user-p1", "user-p2"], **runs)
    return pd.DataFrame(rows)


def test_runs_have_the_numbers_of_the_papers_tables() -> None:
    runs = runs_of(results())
    assert set(runs["query"]) == {"p1s2", "p1s3", "p2s2", "p2s3"}
    assert set(runs["engine"]) == set(ENGINES.values()) and set(runs["window_size"]) == {500, 2000}
    first = runs.iloc[0]
    assert first["match_length"] == 100.0 and first["matching_percent"] == 75.0
    assert first["reprocessed_per_event"] == 0.6 and first["construction_percent"] == 25.0
    assert first["simultaneous_runs"] == 4.0  # of both symbols
    # Of each event: itself, two runs that it visits, and ten events of matches.
    assert first["fewer_steps"] == 1 / 13 and first["fewer_runs"] == 0.25
    assert first["matching"] == 0.03 and first["matching_and_construction"] == 0.04
    assert runs["match_length"][runs["window_size"] == 2000].eq(400.0).all()
    merged = runs.groupby("engine")["merged_percent"].agg(["min", "max", "count"])
    assert merged.loc["merging"].tolist() == [50.0, 50.0, 2 * 4 * 5]
    assert merged["count"].drop("merging").eq(0).all()
    alone = runs_of(results()[lambda its: its["evaluator"] == "sase"])
    assert alone["merged_percent"].isna().all()
    counted = runs_of(results("count"))
    assert counted[["match_length"]].isna().all(axis=None)


def test_the_name_of_a_stream_says_how_many_symbols_share_a_window() -> None:
    runs = runs_of(results(sizes=(500,)).assign(stream="symbols4-seed1"))
    assert set(runs["window_size"]) == {250} and set(runs["stream"]) == {"symbols4"}
    assert runs["simultaneous_runs"].iloc[0] == 8.0 and runs["fewer_runs"].iloc[0] == 1 / 8


def test_seeds_are_runs_of_their_own() -> None:
    apart = results()
    two = pd.concat([apart.assign(stream=apart["stream"] + f"-seed{seed}") for seed in (0, 4)])
    runs = runs_of(two)
    assert set(runs["stream"]) == {"w500", "w2000"} and len(runs) == 2 * len(apart)
    assert set(runs["repetition"]) == {f"{seed}.{k}" for seed in (0, 4) for k in range(5)}
    figure = figure_runs(runs[runs["engine"] == "merging"], "window_size", "query")
    assert not figure.duplicated(["pattern_id", "generator"]).any()
    assert runs["merged_percent"].count() == 2 * runs_of(apart)["merged_percent"].count()
    gained = gains(runs, "window_size", "query", over="merging", under="basic")
    assert len(gained) == 2 * 5 * 8 and gained["gain"].eq(1.5).all()


def last_tests(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """What each claim is about, by its id, without the work beside it."""
    judged = ledger("agrawal2008", tables)
    return judged.drop_duplicates("id", keep="last").set_index("id")


def test_windows_are_settings_and_queries_series() -> None:
    runs = runs_of(results())
    figure = figure_runs(runs[runs["engine"] == "basic"], "window_size", "query")
    printed = {"match_length": {"p1s3": (120, 350)}}
    table = table_of(figure, "events_per_second", "match_length", printed=printed).data
    assert list(table) == ["500", "2000"] and len(table) == 2 * 4 + 1
    assert table.loc["events per second, p1s3"].tolist() == [100.0, 6.25]
    below = table.index.get_loc("match length, p1s3") + 1
    assert table.index[below] == "match length, p1s3, in the paper"
    assert table.iloc[below - 1 : below + 1].to_numpy().tolist() == [[100, 400], [120, 350]]
    for y, x, expected in (
        ("events_per_second", "window_size", -2.0), ("seconds", "output_complexity", 1.0)
    ):  # fmt: skip
        fitted = exponents(figure, x, y)
        assert list(fitted.index) == ["p1s2", "p1s3", "p2s2", "p2s3"]
        assert fitted.to_numpy() == pytest.approx(expected)
    judged = last_tests({"figure_8b_8c": figure})
    for name, value, verdict in (
        ("quadratic-p1s3", 1 / 16, "holds"), ("length-is-linear", 4.0, "holds"),
        ("small-effect", 1 / 16, "does not hold"), ("complexity-p1s3", 1.0, "holds"),
    ):  # fmt: skip
        assert judged.loc[name, "value"] == pytest.approx(value)
        assert judged.loc[name, "verdict"] == verdict, name
    summary = summary_of(figure, ["events_per_second"], resamples=50)
    drawn = static.lines_by_setting(summary, "events_per_second", "W")
    (axes,) = drawn.axes
    assert sorted(axes.get_legend_handles_labels()[1]) == ["p1s2", "p1s3", "p2s2", "p2s3"]
    assert interactive.lines_by_setting(summary, "events_per_second", "W").to_dict()


def test_engines_are_series() -> None:
    runs = runs_of(results(sizes=(500,)))
    figure = figure_runs(runs, "query", "engine")
    judged = last_tests({"figure_8d": figure, "figure_8f": figure})
    assert judged.loc["basic-on-p2s2", "value"] == pytest.approx(250.0)
    assert judged.loc["basic-on-p2s2", "verdict"] == "exceeds"
    assert judged.loc["merging-p1s3", "value"] == pytest.approx(1.5)
    assert judged.loc["merging-p1s3", "verdict"] == "holds"
    assert judged.loc["reprocessed-p1s3", "verdict"] == "holds"
    assert compared(figure[figure["query"] == "p1s3"], "basic", "backtrack") == (
        "Basic has between 250 (p1s3) and 250 (p1s3) times the throughput of backtrack; in matching "
        "alone, it is between 167 (p1s3) and 167 (p1s3) times as fast."
    )
    factors = speedups(figure, "basic", "backtrack")
    assert list(factors) == ["p1s2", "p1s3", "p2s2", "p2s3"]
    assert factors.loc["all"].tolist() == pytest.approx([250.0] * 4)
    assert factors.loc["matching and construction"].tolist() == pytest.approx([187.5] * 4)
    assert factors.loc["matching"].tolist() == pytest.approx([5 / 0.03] * 4)
    slow = (figure["engine"] == "basic") & (figure["query"] == "p2s3")
    figure.loc[slow, "events_per_second"] = 50_000.0
    assert beside_the_prototype(figure[figure["engine"] == "basic"]) == (
        "The slowest query, p1s2, has a throughput of 100 events per second, the fastest, p2s3, of "
        "50,000: 0.01 and 5 times the 10,000 that the paper's prototype exceeds, with runs merged, "
        "on its expensive queries."
    )


def test_numbers_of_tables_are_whole_from_a_hundred_on() -> None:
    values = (math.inf, 2_449_999.0, 31244.4, 100.0, 99.94, 0.00665, math.nan)
    assert [number(value) for value in values] == [
        "∞", "2.45 M", "31,244", "100", "99.9", "0.00665", "–",
    ]  # fmt: skip


def test_printed_tables_have_a_number_for_each_setting() -> None:
    for tables, settings in ((TABLE_2, 6), (TABLE_3, 4)):
        assert {len(row) for rows in tables.values() for row in rows.values()} == {settings}


def test_gains_are_of_runs_of_one_repetition() -> None:
    runs = runs_of(results("count"))
    slow = (runs["repetition"] == "0.4") & (runs["engine"] != "backtrack")
    runs.loc[slow, "events_per_second"] /= 7  # both engines: the machine was busy
    gained = gains(runs, "window_size", "query", over="merging", under="basic")
    assert gained["gain"].to_list() == pytest.approx([1.5] * len(gained))
    summary = summary_of(gained, ["gain"], resamples=50)
    assert len(summary) == 2 * 4 and set(summary["patterns"]) == {5}
    assert summary[["value", "low", "high"]].to_numpy() == pytest.approx(1.5)


def test_the_runs_of_a_window_are_the_choices_of_its_events() -> None:
    runs = bound_runs().set_index(["generator", "size"])["window_runs"]
    # Of a window of n events so many sets have at most k, and at least k.
    for size in WINDOWS["next"]:
        few = {k: sum(math.comb(size, j) for j in range(1, k + 1)) for k in (2, 3)}
        for strategy in ("next", "partition contiguity"):
            assert runs[f"one loop, {strategy}, basic", size] == few[2]
            assert runs[f"two loops, {strategy}, basic", size] == few[3]
    for size in WINDOWS["any"]:
        # The last events may be b, or b and c.
        many = [sum(math.comb(size, j) for j in range(k, size + 1)) for k in (1, 2, 3)]
        assert runs["one loop, any, basic", size] == sum(many)
        assert runs["one loop, any, merging", size] < 2 * size
