"""Sweeps on Spark: killed anywhere, interrupted, with users' generators; rows as computed alone."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import cepbench as cep
from cepbench.arguments import whole
from cepbench.engines.detection.registry import plan_evaluator
from cepbench.engines.runs.protocol import Option
from cepbench.errors import DatasetError, ExperimentError
from cepbench.experiments.sweeps.cells import (
    ERROR,
    LATENCY,
    OF_METHODS,
    OK,
    REFUSED,
    RESULT_SCHEMA,
    Cell,
)
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.on_spark import job as sweep
from cepbench.experiments.sweeps.on_spark.job import estimate_sweep, run_sweep, sweep_data
from cepbench.experiments.sweeps.store import (
    ResultsStore,
    count_rows,
    is_finished,
    read_kept,
    read_results,
    read_with_user_parts,
)
from cepbench.experiments.sweeps.sweep_file import read_sweep
from cepbench.experiments.sweeps.workload import PATTERN_SETS
from cepbench.patterns.parse import parse
from cepbench.planning.planners.registry import (
    PLAN_GENERATORS,
    default_generators,
    find_generator,
    plan_generator,
)
from cepbench.streams.event_stream import EventStream
from tests.naive.matcher import naive_matches

IDENTITY = ["pattern_id", *Cell._fields]

# A user's script: a generator of its own in __main__, slow enough that the sweep can be killed.
SLOW_SWEEP = """
import sys, time
import cepbench.experiments.sweeps.on_spark.job as sweep
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.planning.planners.registry import plan_generator
from cepbench.spark.session import spark_session

PAUSE = 0.05

@plan_generator("SLOW", kind="order")
def slow(problem, rng):
    time.sleep(PAUSE)
    return sorted(range(problem.n), key=problem.rate)

if __name__ == "__main__":
    config = SweepConfig(
        data=sys.argv[1], pattern_sets=["sequence", "conjunction"], sizes=[3], patterns=4,
        repetitions=2, strategies=["any", "consuming"], alphas=[0, 0.5], latency=True,
        generators=["SLOW", "DP-B"], window="1 minutes",
    )
    spark = spark_session("local[2]", memory="1g", java_options="-XX:TieredStopAtLevel=1")
    sweep.run_sweep(spark, config, sys.argv[2])
"""


def write_events(folder: Path, counts: list[int], seconds: float) -> Path:
    """So many events of S0, S1, … at random moments, as a folder of Parquet."""
    rng = np.random.default_rng(11)
    symbols = np.repeat([f"S{number}" for number in range(len(counts))], counts)
    offsets = np.sort(rng.uniform(0, seconds, size=len(symbols)))
    frame = pd.DataFrame(
        {
            "symbol": rng.permutation(symbols),
            "ts": (pd.Timestamp("2026-01-05 14:30") + pd.to_timedelta(offsets, unit="s")).floor(
                "us"
            ),
            "price": 100.0,
            "difference": rng.normal(size=len(symbols)).round(2),
        }
    )
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.set_column(1, "ts", table["ts"].cast(pa.timestamp("us", tz="UTC")))
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "part-0.parquet")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half an hour of ten identifiers, 1 to 10 events a minute."""
    counts = [30 * (1 + number) for number in range(10)]
    return write_events(tmp_path_factory.mktemp("events"), counts, seconds=1800)


def small(data: Path, **changes: Any) -> SweepConfig:
    values = {
        "pattern_sets": ["sequence", "conjunction"],
        "sizes": [3, 4],
        "patterns": 2,
        "repetitions": 2,
        "window": "1 minutes",
    }
    return SweepConfig.from_dict({"data": data, **values, **changes})


def journals(folder: Path) -> dict[str, bytes]:
    """The whole lines of each pattern's journal."""
    texts = {path.name: path.read_bytes() for path in (folder / "journals").glob("*.jsonl")}
    return {name: text[: text.rfind(b"\n") + 1] for name, text in texts.items()}


def assert_kept_and_completed(folder: Path, kept: dict[str, bytes], patterns: int) -> None:
    """What was finished is still there byte for byte, and every cell has one row."""
    for name, text in kept.items():
        assert (folder / "journals" / name).read_bytes().startswith(text)
    results = read_results(folder)
    assert not results[IDENTITY].duplicated().any()
    assert results["pattern_id"].nunique() == patterns
    assert results.groupby("pattern_id").size().nunique() == 1


def test_a_sweep_fills_every_cell(spark: SparkSession, data: Path, tmp_path: Path) -> None:
    config = small(data, patterns=1, evaluators=["lazy-nfa", "tree"])
    results = run_sweep(spark, config, tmp_path / "out")
    generators = default_generators()
    expected = set(
        Grid(generators=generators, evaluators=["lazy-nfa", "tree"], repetitions=2).cells()
    )
    for _, rows in results.groupby("pattern_id"):
        cells = [Cell(*row) for row in rows[IDENTITY[1:]].itertuples(index=False)]
        assert len(cells) == len(set(cells)) and set(cells) == expected
    assert results["pattern_id"].nunique() == 2 * 2
    assert list(results.columns) == RESULT_SCHEMA.names
    assert (results["status"] == OK).all()
    missing = ["reason", "measured_with", "details", "commit", *LATENCY, *OF_METHODS]
    assert not results.drop(columns=missing).isna().any(axis=None)
    identity = read_kept(tmp_path / "out", "sweep")
    assert identity["generators"] == generators
    assert identity["data_made_from"]["events"] == 30 * 55
    assert results["configuration"].nunique() == 1
    # Complete: nothing runs again, not even with no Spark at hand.
    again = run_sweep(None, config, tmp_path / "out")  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(again, results)


def test_the_workers_count_what_is_there(spark: SparkSession, tmp_path: Path) -> None:
    data = write_events(tmp_path / "data", [6, 9, 12, 9, 6], seconds=90)
    config = small(data, patterns=1, repetitions=1, generators=["GREEDY", "DP-B"])
    results = run_sweep(spark, config, tmp_path / "out")
    assert len(results) == 2 * 2 * 2
    stream = EventStream.from_parquet(data)
    for row in results.to_dict("records"):
        pattern = parse(row["pattern"])
        part = stream.of_types([variable.type for variable in pattern.variables])
        assert row["events"] == len(part)
        events = part.to_pandas().astype({"time": "int64"})
        assert row["matches"] == len(naive_matches(pattern, events)) > 0


def test_plans_on_streams_of_chosen_selectivity(spark: SparkSession, tmp_path: Path) -> None:
    """A study of plans: query × parameter of the stream × plan × engine, in ticks."""
    file = tmp_path / "ticks.toml"
    file.write_text(
        """
        evaluators = ["tree", "lazy-nfa"]
        repetitions = 1
        seconds = 0
        stream_defaults = { kind = "stock-rates", events = 2000 }
        [user_patterns]
        one = "PATTERN IBM a; Sun b; Oracle c WHERE a.price > b.price WITHIN 60 units"
        other = "PATTERN IBM a; Sun b WITHIN 60 units"
        [streams.all]
        selectivities = { "IBM > Sun" = 1.0 }
        [streams.few]
        selectivities = { "IBM > Sun" = 0.03125 }
        [plans]
        left-deep = { tree = [["a", "b"], "c"] }
        right-deep = { tree = ["a", ["b", "c"]] }
        as-written = { order = ["a", "b", "c"] }
        """,
        encoding="utf-8",
    )
    asked = read_sweep(file)
    paths = sweep_data(spark, asked, tmp_path)
    results = run_sweep(spark, asked.config(paths), tmp_path / "out")
    assert len(results) == 2 * 2 * 4
    is_one = results["pattern"].str.contains("Oracle")
    assert (results["status"] == is_one.map({True: OK, False: REFUSED})).all()
    assert results.loc[~is_one, "reason"].str.contains("'c' that the pattern has not").all()
    found = results[is_one].set_index(["stream", "generator", "evaluator"]).sort_index()
    assert set(found.loc["all", "plan"]) == {"((a, b), c)", "(a, (b, c))", "a, b, c"}
    for name, path in paths.items():
        stream = EventStream.from_parquet(path).of_types(["IBM", "Sun", "Oracle"])
        pattern = parse(found["pattern"].iloc[0])
        plan = cep.plan(pattern, cep.measure_statistics(pattern, stream))
        expected = cep.evaluate(pattern, stream, plan, output="count").metrics.matches
        assert (found.loc[name, "matches"] == expected).all() and expected > 0
    held = found["matches"].groupby("stream").first()
    assert held["few"] / held["all"] == pytest.approx(1 / 32, rel=0.5)
    # The cost sees the selectivity: joining the compared events first pays only if few pass.
    costs = found["plan_cost"].xs("tree", level="evaluator").groupby(level=[0, 1]).first().unstack()
    gain = costs["right-deep"] / costs["left-deep"]
    assert gain["few"] > 1.5 > gain["all"] > 0.8
    # Rates are per tick: each of four names comes every fourth one.
    rates = read_kept(tmp_path / "out", "cardinalities@all")
    assert {round(events / 1200, 1) for events in rates.values()} <= {0.2, 0.3}


def test_windows_go_with_streams_and_outputs_vary(spark: SparkSession, tmp_path: Path) -> None:
    """Without a plan no statistics are measured; types may be in another column than symbol."""
    file = tmp_path / "ticker.toml"
    file.write_text(
        """
        evaluators = ["stack-nfa"]
        outputs = ["count", "arrow"]
        repetitions = 2
        seconds = 0
        stream_defaults = { kind = "stock-ticker", events = 1500 }
        [user_patterns]
        rise = "PATTERN SEQ(STOCK a, STOCK b) WHERE [symbol] AND b.price > a.price WITHIN 1 units"
        [streams.short]
        window = "10 units"
        [streams.long]
        p = 0.55
        window = "30 units"
        """,
        encoding="utf-8",
    )
    asked = read_sweep(file)
    paths = sweep_data(spark, asked, tmp_path)
    results = run_sweep(spark, asked.config(paths), tmp_path / "out")
    assert (results["status"] == OK).all(), results["reason"].dropna().unique()
    assert results.groupby(["output", "repetition"]).size().tolist() == [2] * 4
    assert {*zip(results["stream"], results["window"], strict=True)} == {
        ("short", "10 units"), ("long", "30 units"),
    }  # fmt: skip
    for row in results.to_dict("records"):
        ticks, pattern = EventStream.from_parquet(paths[row["stream"]]), parse(row["pattern"])
        plan = cep.plan(pattern, cep.measure_statistics(pattern, ticks))
        expected = cep.evaluate(pattern, ticks, plan, output="count").metrics.matches
        assert row["matches"] == expected > 0
    assert not list((tmp_path / "out").glob("*statistics*"))


def test_every_pattern_set_strategy_and_weight(
    spark: SparkSession, data: Path, tmp_path: Path
) -> None:
    config = small(
        data,
        pattern_sets=list(PATTERN_SETS),
        sizes=[3],
        patterns=1,
        strategies=["any", "consuming", "strict_contiguity"],
        alphas=[0, 1],
        latency=True,
        share_equal_plans=True,
        generators=["GREEDY", "DP-B"],
        repetitions=1,
    )
    results = run_sweep(spark, config, tmp_path / "out")
    assert list(results["pattern_set"].unique()) == list(PATTERN_SETS)
    assert len(results) == 5 * 3 * 2 * 2
    assert (results["status"] == OK).all(), results["reason"].dropna().unique()
    matches = results.groupby(["pattern_set", "strategy"])["matches"].first().unstack()
    assert (matches["any"] > 0).all()
    # Fewer matches under consumption, and under contiguity, which any-match has all of.
    assert (matches["consuming"] < matches["any"]).all()
    assert (matches["strict_contiguity"] <= matches["any"]).all()
    found = results[results["matches"] > 0]
    assert (found["latency_mean"] > 0).all() and (found["latency_p99"] > 0).all()
    assert results["measured_with"].notna().any()
    assert results[results["pattern_set"] == "disjunction"]["plan"].str.count(r"\|").eq(2).all()
    stream = EventStream.from_parquet(data)
    for row in results.drop_duplicates(["pattern_id", "strategy"]).to_dict("records"):
        pattern = parse(row["pattern"])
        part = stream.of_types([variable.type for variable in pattern.variables])
        plan = cep.plan(pattern, cep.measure_statistics(pattern, part), "TRIVIAL")
        assert cep.evaluate(pattern, part, plan).metrics.matches == row["matches"]


def test_streams_and_windows_vary(
    spark: SparkSession, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same patterns on every stream and under every window, each with statistics of its own."""
    other = write_events(tmp_path / "other", [60, 30, 90, 30, 60], seconds=900)
    rising = "PATTERN SEQ(S0 a, S2 b) WHERE a.difference < b.difference WITHIN 5 seconds"
    config = SweepConfig(
        streams={"ten": data, "five": other},  # type: ignore[arg-type]
        windows=("30 seconds", "1 minutes"), pattern_sets=("sequence",), sizes=(3,), patterns=2,
        user_patterns={"rising": rising},  # type: ignore[arg-type]
        generators=("EFREQ", "DP-B"), repetitions=1, max_partial_matches=1e3,
    )  # fmt: skip
    table = estimate_sweep(spark, config, tmp_path / "out")
    assert table["patterns"].tolist()[-1] == 3 and (table["core_seconds"] > 0).all()
    results = run_sweep(spark, config, tmp_path / "out")
    assert (results["status"] == OK).all(), results["reason"].unique()
    assert len(results) == 3 * 2 * 2 * 2
    assert not results[["stream", *IDENTITY]].duplicated().any()
    assert {path.name for path in (tmp_path / "out" / "journals").glob("user*.jsonl")} == {
        f"user-rising@{name}.jsonl" for name in ("ten", "five")
    }
    streams = {name: EventStream.from_parquet(path) for name, path in config.streams}
    for row in results.to_dict("records"):
        pattern = parse(row["pattern"])
        assert row["pattern"].endswith(f"WITHIN {row['window']}")
        part = streams[row["stream"]].of_types([variable.type for variable in pattern.variables])
        assert row["events"] == len(part)
        plan = cep.plan(pattern, cep.measure_statistics(pattern, part), "TRIVIAL")
        assert cep.evaluate(pattern, part, plan).metrics.matches == row["matches"]
    texts = results["pattern"].str.rpartition(" WITHIN ")[0]
    assert texts.groupby(results["pattern_id"]).nunique().eq(1).all()
    costs = results.groupby(["pattern_id", "generator", "stream", "window"])["plan_cost"].first()
    assert costs.nunique() == len(costs)
    # Resumed where one stream's row is missing: that one alone is measured.
    kept = journals(tmp_path / "out")
    (tmp_path / "out" / "results.parquet").unlink()
    lacking = tmp_path / "out" / "journals" / "user-rising@five.jsonl"
    lacking.write_bytes(b"".join(kept[lacking.name].splitlines(keepends=True)[:3]))
    again = run_sweep(spark, config, tmp_path / "out")
    assert len(again) == len(results)
    changed = {name for name, text in journals(tmp_path / "out").items() if text != kept[name]}
    assert changed == {lacking.name}


def test_regimes_lie_side_by_side(spark: SparkSession, data: Path, tmp_path: Path) -> None:
    regimes = {
        "sparse": {"most_rate": 5.5},
        "dense": {
            "least_rate": 6, "duration": "10 minutes", "patterns": 1, "predicates": "n",
            "selectivities": [0.05, 0.2],
        },
    }  # fmt: skip
    config = small(data, generators=["EFREQ", "DP-B"], repetitions=1, regimes=regimes)
    results = run_sweep(spark, config, tmp_path / "out")
    assert (results["status"] == "ok").all()
    assert results.groupby("regime")["pattern_id"].nunique().to_dict() == {"sparse": 8, "dense": 4}
    assert list(results["regime"].unique()) == ["sparse", "dense"]
    times = pd.read_parquet(data).set_index("symbol")["ts"]
    for row in results.itertuples():
        types = {v.type for v in parse(row.pattern).variables}
        rates = {int(name[1:]) + 1 for name in types}
        of_types = times[times.index.isin(types)]
        if row.regime == "dense":
            assert min(rates) >= 6
            of_types = of_types[of_types < of_types.min() + pd.Timedelta("10 minutes")]
        else:
            assert max(rates) <= 5
        assert row.events == len(of_types)
    measured = json.loads((tmp_path / "out" / "statistics.json").read_text())
    selectivities = [
        one[-1]
        for name, its in measured.items()
        if name.startswith("dense")
        for one in its["selectivities"]
    ]
    assert selectivities and min(selectivities) > 0.02 and max(selectivities) < 0.35


def test_a_killed_sweep_loses_no_row_and_repeats_none(
    spark: SparkSession,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script, folder = tmp_path / "slow_sweep.py", tmp_path / "out"
    script.write_text(SLOW_SWEEP)
    command = [sys.executable, str(script), str(data), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 300
        while count_rows(folder) < 12:
            assert process.poll() is None, process.communicate()[1].decode()
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    kept = journals(folder)
    rows = 2 * 4 * 2 * 2 * 2 * 2
    assert 12 <= sum(text.count(b"\n") for text in kept.values()) < rows
    assert not (folder / "results.parquet").exists()

    # Taken up by another process: this one, which has a Spark already.
    spec = importlib.util.spec_from_file_location("slow_sweep", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "slow_sweep", module)
    spec.loader.exec_module(module)
    config = SweepConfig.from_dict(
        {
            name: value
            for name, value in read_kept(folder, "sweep").items()
            if name not in ("data_made_from", "user_generators")
        }
        | {"data": data}
    )
    assert len(run_sweep(spark, config, folder)) == rows
    assert_kept_and_completed(folder, kept, patterns=8)
    results = read_results(folder)
    assert set(results["strategy"]) == {"any", "consuming"} and set(results["alpha"]) == {0, 0.5}
    assert (results["status"] == OK).all() and set(results["generator"]) == {"SLOW", "DP-B"}


def test_every_field_of_a_sweep_reaches_its_patterns(tmp_path: Path) -> None:
    """In the job that workers get: whatever a configuration and a grid share."""
    config = SweepConfig(
        data="somewhere", pattern_sets=("sequence",), sizes=(3,), repetitions=5, alphas=(0, 0.25),
        generators=("GREEDY",), evaluators=("tree",), strategies=("consuming",), latency=True,
        share_equal_plans=True, seed=7, time_selectivity="exact", partial_match_limit=77,
        windows=("1 minutes", "2 minutes"), cost="comparisons", options=(("tree", ('{"a": 1}',)),),
        plans=(("left", '{"tree": [["a", "b"], "c"]}'),), orders_in_trees=False,
        outputs=("arrow",), policies=(("adaptive", '{"policy": "bound"}'),), batch_size=64,
        seconds=0.25,
    )  # fmt: skip
    shared = {each.name for each in fields(Grid)} & {each.name for each in fields(SweepConfig)}
    of_workloads = {"methods", "sharing", "planners"}  # which a sweep has instead of generators
    shared -= of_workloads
    plain = SweepConfig(data="", pattern_sets=("sequence",))
    assert all(getattr(config, n) != getattr(plain, n) for n in shared)
    assert {each.name for each in fields(Grid)} - shared == {"reuse_cost"} | of_workloads
    job = sweep.SweepJob(config, "{}", tmp_path, sweep.pickled(config, [find_generator("GREEDY")]))
    grid = job.grid("")
    assert [getattr(each, "name", each) for each in grid.generators] == ["GREEDY", "left"]
    assert getattr(grid.cost, "name", None) == "comparisons"  # itself, for it may be user-defined
    assert {name: getattr(grid, name) for name in shared} == {
        name: getattr(config, name) for name in shared
    } | {
        "generators": grid.generators,
        "options": {"tree": config.options[0][1]},
        "policies": {"adaptive": {"policy": "bound"}},
        "cost": grid.cost,
    }


def test_the_stream_of_a_pattern_is_that_of_its_own_types() -> None:
    pattern = parse("PATTERN SEQ(A a, A other, B b) WITHIN 5 seconds")
    rates = {"a": 2.0, "other": 2.0, "b": 3.0}
    measured = cep.Statistics(rates=rates, stream_rate=100.0)
    assert sweep.of_own_types(measured, pattern).stream_rate == 5.0
    assert sweep.of_own_types(measured, pattern).rates == rates


def test_an_interrupted_sweep_goes_on(spark: SparkSession, data: Path, tmp_path: Path) -> None:
    config = small(data, patterns=3, generators=["EFREQ", "DP-LD", "DP-B"])

    over = threading.Event()

    def interrupting() -> None:
        while not over.wait(0.005):
            if sum(text.count(b"\n") for text in journals(tmp_path).values()) >= 20:
                os.kill(os.getpid(), signal.SIGINT)
                return

    watcher = threading.Thread(target=interrupting)
    watcher.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_sweep(spark, config, tmp_path)
    finally:
        over.set()
        watcher.join()
    kept = journals(tmp_path)
    assert sum(text.count(b"\n") for text in kept.values()) >= 20
    assert not (tmp_path / "results.parquet").exists()
    run_sweep(spark, config, tmp_path)
    assert_kept_and_completed(tmp_path, kept, patterns=12)


def test_users_generators_travel_from_a_notebook_and_from_a_file(
    spark: SparkSession,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What a notebook cell defines stands in __main__.
    cell = "def cheapest_first(problem, rng): return sorted(range(problem.n), key=problem.rate)"
    notebook: dict[str, Any] = {"__name__": "__main__"}
    exec(cell, notebook)
    plan_generator("NOTEBOOK", kind="order")(notebook["cheapest_first"])
    # A module beside the notebook, which the workers cannot import, with a helper of its own.
    (tmp_path / "beside.py").write_text(
        "def helper(n):\n    return list(range(n))[::-1]\n"
        "def backwards(problem, rng):\n    return helper(problem.n)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import beside  # type: ignore[import-not-found]

    plan_generator("FILE", kind="order")(beside.backwards)
    config = small(data, sizes=[3], generators=["EFREQ", "NOTEBOOK", "FILE"])
    results = run_sweep(spark, config, tmp_path / "out")
    assert (results["status"] == OK).all(), results["reason"].dropna().iloc[0]
    plans = results.groupby(["generator", "pattern_id"], sort=False)["plan"].first()
    pd.testing.assert_series_equal(plans["NOTEBOOK"], plans["EFREQ"])
    assert set(plans["FILE"]) == {"c, b, a"}


def test_users_evaluators_travel_with_their_options(
    spark: SparkSession, data: Path, tmp_path: Path
) -> None:
    engine: dict[str, Any] = {"__name__": "__main__", "cep": cep}
    exec(
        "def halves(pattern, stream, plan, *, parts):\n"
        "    return cep.evaluate(pattern, stream, plan, evaluator='tree').matches",
        engine,
    )
    options = {"parts": Option(1, partial(whole, least=1))}
    plan_evaluator("halves", options=options)(engine["halves"])
    config = small(
        data, sizes=[3], patterns=1, repetitions=1, generators=["EFREQ"],
        evaluators=["tree", "halves"], options={"halves": {"parts": [1, 2]}},
    )  # fmt: skip
    results = run_sweep(spark, config, tmp_path / "out")
    assert (results["status"] == OK).all(), results["reason"].dropna().iloc[0]
    runs = results.groupby(["evaluator", "options"]).size()
    assert runs.to_dict() == {
        ("tree", "{}"): 2, ("halves", '{"parts": 1}'): 2, ("halves", '{"parts": 2}'): 2,
    }  # fmt: skip
    assert list(read_kept(tmp_path / "out", "sweep")["user_evaluators"]) == ["halves"]


def test_a_generator_may_fail_or_refuse_in_some_patterns(
    spark: SparkSession, data: Path, tmp_path: Path
) -> None:
    notebook: dict[str, Any] = {"__name__": "__main__"}
    exec("def picky(problem, rng): return range(problem.n) if problem.n == 3 else 1 / 0", notebook)
    plan_generator("PICKY", kind="order")(notebook["picky"])
    plan_generator("SMALL-ONLY", kind="order", max_size=3)(notebook["picky"])
    config = small(data, generators=["PICKY", "SMALL-ONLY", "DP-LD"])
    results = run_sweep(spark, config, tmp_path)
    by_size = results.groupby(["generator", "size"])["status"].unique().map(list)
    assert by_size["PICKY"].tolist() == [[OK], [ERROR]]
    assert by_size["SMALL-ONLY"].tolist() == [[OK], [REFUSED]]
    assert by_size["DP-LD"].tolist() == [[OK], [OK]]
    assert results["reason"].str.contains("PICKY failed: ZeroDivisionError").any()


def test_an_edited_generator_or_configuration_needs_another_folder(
    spark: SparkSession, data: Path, tmp_path: Path
) -> None:
    config = small(data, sizes=[3], patterns=1, repetitions=1, generators=["IDEA", "EFREQ"])

    def idea(problem: Any, rng: Any) -> Any:
        return range(problem.n)

    plan_generator("IDEA", kind="order")(idea)
    with ResultsStore(tmp_path, sweep.identity_of(config, [PLAN_GENERATORS["IDEA"]])):
        pass
    with pytest.raises(ExperimentError, match="another configuration: seed is 0 there and 1 here"):
        run_sweep(spark, replace(config, seed=1), tmp_path)
    PLAN_GENERATORS.remove("IDEA")

    def idea(problem: Any, rng: Any) -> Any:  # type: ignore[no-redef]
        return range(problem.n)[::-1]

    plan_generator("IDEA", kind="order")(idea)
    with pytest.raises(ExperimentError, match="another configuration: user_generators is"):
        run_sweep(spark, config, tmp_path)


def test_what_cannot_be_measured_is_told_with_its_pattern(
    spark: SparkSession, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(DatasetError, match="no data set or Parquet file"):
        run_sweep(spark, small(tmp_path / "nothing"), tmp_path / "out")
    config = small(data, sizes=[3], patterns=1, repetitions=1, generators=["EFREQ"])
    with ResultsStore(tmp_path / "out", sweep.identity_of(config, [])) as store:
        # As if somebody had edited the file.
        broken = {"cardinalities": {"a": "many"}}
        store.kept("statistics", lambda: {f"{s}-3-0000": broken for s in config.pattern_sets})
    with pytest.raises(
        ExperimentError, match=r"2 of 2 patterns .*-3-0000: StatisticsError: .*many"
    ):
        run_sweep(spark, config, tmp_path / "out")


def test_a_generator_of_ones_own_is_measured_without_measuring_the_others_again(
    spark: SparkSession, data: Path, tmp_path: Path
) -> None:
    config = small(data, share_equal_plans=True)
    folder = tmp_path / "out"
    alone = run_sweep(spark, config, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    notebook: dict[str, Any] = {"__name__": "__main__"}
    exec("def mine(problem, rng): return sorted(range(problem.n), key=problem.rate)", notebook)
    plan_generator("MINE", kind="order")(notebook["mine"])
    assert not is_finished(folder) and is_finished(folder, [])
    results = run_sweep(spark, config, folder)
    assert is_finished(folder)
    for path, content in before.items():
        assert path.read_bytes() == content or path.name == "sweep.pid", path
    own = results[results["generator"] == "MINE"]
    others = results[results["generator"] != "MINE"]
    pd.testing.assert_frame_equal(
        others.sort_values(IDENTITY, ignore_index=True),
        alone.sort_values(IDENTITY, ignore_index=True),
    )
    assert len(own) == len(alone) / alone["generator"].nunique() and (own["status"] == OK).all()
    # The same plans as EFREQ's: its runs count for both, and ratios are exactly 1.
    efreq = others[others["generator"] == "EFREQ"].set_index(["pattern_id", "repetition"])
    own = own.set_index(["pattern_id", "repetition"])
    pd.testing.assert_series_equal(own["plan"], efreq["plan"].loc[own.index])
    pd.testing.assert_series_equal(own["seconds"], efreq["seconds"].loc[own.index])
    assert own["measured_with"].notna().all()
    # Read again without Spark, and the whole of it pattern by pattern.
    assert len(read_with_user_parts(folder)) == len(results)
    assert len(read_results(folder)) == len(alone)
