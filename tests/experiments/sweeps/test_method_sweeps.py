"""Sweeps over aggregation methods: their grid, rows, agreement, and mistakes that are told."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.aggregation.protocol import Row
from cepbench.engines.aggregation.two_step import TwoStepRun
from cepbench.errors import ExperimentError, PlanningRefusedError
from cepbench.experiments.sweeps.aggregation import MatchLimitError, aggregated, text_of
from cepbench.experiments.sweeps.cells import (
    ERROR,
    LIMIT,
    NO_PLAN,
    OK,
    REFUSED,
    VALUES,
    check_agreement,
    results_frame,
)
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.estimate import expected_log_work, time_pattern
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import measure_pattern
from cepbench.experiments.sweeps.on_spark.job import own_stream, run_sweep, sweep_data, workload_of
from cepbench.experiments.sweeps.restrictions import restrictions
from cepbench.experiments.sweeps.sweep_file import read_sweep
from cepbench.experiments.sweeps.workload import WORKLOAD, user_specs
from cepbench.planning.workloads.model import Workload
from cepbench.streams.ticker_trades import TICKERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWO = "PATTERN SEQ(DELL a, IPIX b) AGG COUNT, AVG(a.price) WITHIN < 1000 milliseconds"
THREE = (
    "PATTERN SEQ(DELL a, IPIX b, NOT(QQQ n), AMAT c) AGG COUNT, SUM(b.volume) "
    "WITHIN < 1000 milliseconds"
)
EITHER = "PATTERN OR(DELL a, IPIX b) AGG COUNT WITHIN 1 seconds"
QUERIES = f"Q1 = {TWO}\nQ2 = {THREE}"
SHARED = "\n".join(
    f"Q{number} = PATTERN SEQ({first} x, DELL a, IPIX b, {last} y) AGG COUNT WITHIN < 1 seconds"
    for number, (first, last) in enumerate([("QQQ", "MSFT"), ("QQQ", "INTC"), ("AMAT", "INTC")])
)

METHODS = ("window-product", "a-seq", "two-step")
CONFIG = {"data": "x", "methods": ["a-seq", "two-step"], "user_patterns": {"two": TWO}}


@pytest.fixture(scope="module")
def sample() -> cep.EventStream:
    return cep.open_dataset("ticker-trades/sample").stream()[:3000]


def rows_of(
    sample: cep.EventStream, grid_changes: dict[str, Any] | None = None, **changes: Any
) -> pd.DataFrame:
    config = SweepConfig.from_dict({**CONFIG, "repetitions": 1, **changes})
    specs = workload_of(config, {"": dict.fromkeys(TICKERS, 1.0)})
    grid = replace(config.grid([]), **(grid_changes or {}))  # user-defined ones are for it alone
    return results_frame(row for spec in specs for row in measure_pattern(spec, sample, {}, grid))


def test_cells_are_methods_in_windows() -> None:
    config = SweepConfig.from_dict({**CONFIG, "windows": ["< 1 seconds", "5 seconds"]})
    cells = config.grid([]).cells()
    assert len(cells) == 2 * 2 * 3
    assert {(cell.generator, cell.evaluator, cell.output) for cell in cells} == {
        ("a-seq", NO_PLAN, VALUES), ("two-step", NO_PLAN, VALUES),
    }  # fmt: skip
    assert SweepConfig.from_dict(config.to_dict()) == config
    # As earlier versions named the folders of sweeps of plans.
    assert not {"methods", "sharing", "user_workloads"} & SweepConfig(data="x").to_dict().keys()


def test_sharing_goes_with_methods_that_can() -> None:
    grid = Grid(
        generators=[],
        methods=["A-SEQ", "two_step"],
        sharing=["none", "PRETREE", "STEINER"],
    )
    assert grid.aggregations() == {
        "a-seq": ("a-seq", "none"),
        "two-step": ("two-step", "none"),
        "a-seq PRETREE": ("a-seq", "PRETREE"),
        "e-cube STEINER": ("e-cube", "STEINER"),
    }
    with pytest.raises(
        ExperimentError, match=r"sharing 'STEINER': none of .* a-seq shares so; add 'two-step'"
    ):
        replace(grid, methods=["a-seq"]).cells()
    with pytest.raises(ExperimentError, match=r"sharing 'PRETREE'.*add 'a-seq'"):
        replace(grid, methods=["two-step"]).cells()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"methods": ["a-sek"]}, "'a-sek'"),
        ({"generators": ["GREEDY"]}, "generators is about plans, and methods run none"),
        ({"strategies": ["consuming"]}, "strategies is about plans"),
        ({"pattern_sets": ["sequence"]}, "pattern_sets is about plans"),
        ({"latency": True}, "latency is about plans"),
        ({"methods": []}, "'two' of user_patterns has AGG, which plans do not run"),
        ({"methods": [], "user_patterns": {}, "user_workloads": {"w": QUERIES}}, "them in planners"),
        ({"methods": [], "user_patterns": {}, "sharing": ["PRETREE"]}, "sharing is about aggregat"),
        ({"sharing": ["PRETREE"]}, "between the queries of user_workloads"),
        ({"sharing": ["PRETREES"]}, "sharing is one of none, .* did you mean 'PRETREE'"),
        ({"user_patterns": {"a": "PATTERN SEQ(A a) WITHIN 1 units"}}, "'a' of user_patterns has no AGG"),
        ({"user_workloads": {"w": "Q1 = PATTERN SEQ(A a) WITHIN 1 units"}}, "'w' of user_workl.* no A"),
        ({"user_workloads": {"w": TWO}}, "workload 'w': a workload's text begins with the name"),
        ({"user_workloads": {"w/": QUERIES}}, "a workload's name has only letters"),
        ({"user_patterns": {}}, "the sweep has no patterns: name user_patterns"),
    ],
)  # fmt: skip
def test_a_sweep_is_of_plans_or_of_methods(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ExperimentError, match=told):
        SweepConfig.from_dict({**CONFIG, **changes})


def test_rows_have_the_metrics_and_values_of_each_method(sample: cep.EventStream) -> None:
    rows = rows_of(
        sample, user_patterns={"two": TWO, "three": THREE}, windows=["1 seconds", "< 300 milliseconds"],
        methods=METHODS, repetitions=2,
    )  # fmt: skip
    assert (rows["status"] == OK).all(), rows["reason"].dropna().unique()
    assert len(rows) == 2 * 2 * 3 * 2
    assert (rows["method"] == rows["generator"]).all() and set(rows["sharing"]) == {"none"}
    assert (rows["plan_kind"] == NO_PLAN).all()
    for (pattern, _), same in rows.groupby(["pattern", "window"]):
        values = cep.aggregate(pattern, sample, "two-step")
        assert set(same["values"]) == {len(values.values)} and same["digest"].nunique() == 1
        assert set(same["events"]) == {len(sample)}
        updates = same.groupby("method")["updates"].agg(["min", "max"])
        assert (updates["min"] == updates["max"]).all()
        assert updates.loc["two-step", "min"] == values.metrics.updates > 0
    assert rows["digest"].nunique() == 4
    assert rows["seconds_per_slide"].to_numpy() == pytest.approx(rows["seconds"] / len(sample))
    assert rows["events_per_second"].to_numpy() == pytest.approx(len(sample) / rows["seconds"])
    check_agreement(rows)
    rows.loc[3, "digest"] = "0"
    with pytest.raises(ExperimentError, match=r"the values of .* differ from those of"):
        check_agreement(rows)


def test_workloads_run_each_query(sample: cep.EventStream) -> None:
    rows = rows_of(
        sample, user_patterns={}, user_workloads={"w": QUERIES}, windows=["< 300 milliseconds"]
    )
    assert (rows["status"] == OK).all(), rows["reason"].dropna().unique()
    assert set(rows["pattern_id"]) == {"workload-w"} and set(rows["pattern_set"]) == {WORKLOAD}
    assert set(rows["size"]) == {4} and rows["digest"].nunique() == 1
    found = Workload.parse(rows["pattern"].iloc[0])
    assert {str(pattern.window) for pattern in found.patterns.values()} == {"< 300 milliseconds"}
    alone = [cep.aggregate(pattern, sample) for pattern in found.patterns.values()]
    assert set(rows["values"]) == {sum(len(each.values) for each in alone)}
    listed = [cep.aggregate(p, sample, "two-step").metrics for p in found.patterns.values()]
    assert rows.set_index("method")["updates"]["two-step"] == sum(each.updates for each in listed)


def test_sharing_as_planned_changes_no_value(sample: cep.EventStream) -> None:
    changes: dict[str, Any] = {
        "user_patterns": {}, "user_workloads": {"w": SHARED}, "methods": ["a-seq", "two-step"],
        "sharing": ["none", "PRETREE", "CHOP-CONNECT", "STEINER"],
    }  # fmt: skip
    rows = rows_of(sample, **changes)
    assert (rows["status"] == OK).all(), rows["reason"].dropna().unique()
    assert len(rows) == 5 and rows["digest"].nunique() == 1
    rows = rows.set_index("generator")
    assert rows.loc["a-seq PRETREE", ["method", "sharing"]].tolist() == ["a-seq", "PRETREE"]
    workload = Workload.parse(SHARED)
    statistics = cep.measure_statistics(workload, sample)
    for name in ("PRETREE", "CHOP-CONNECT"):
        plan = cep.plan_workload(workload, statistics, name, method="a-seq")
        row = rows.loc[f"a-seq {name}"]
        assert row["plan"] == plan.describe() and row["plan_cost"] == plan.cost
        assert row["plan_seconds"] > 0
        shared = cep.aggregate(workload, sample, "a-seq", sharing=plan).metrics
        assert row["updates"] == shared.updates
    # A planner may find that nothing is worth a cut; a common prefix costs nothing to share.
    assert rows.loc["a-seq PRETREE", "updates"] < rows.loc["a-seq", "updates"]
    assert rows.loc[["a-seq", "two-step"], "plan"].isna().all()
    row, plan = rows.loc["e-cube STEINER"], cep.plan_workload(workload, statistics, "STEINER")
    assert row[["method", "sharing", "plan"]].tolist() == ["e-cube", "STEINER", plan.describe()]

    @cep.workload_planner("REFUSING")
    def refusing(problem: Any, rng: Any) -> Any:
        raise PlanningRefusedError("too many")

    refused = rows_of(sample, {"sharing": ["none", "REFUSING"]}, **changes).set_index("generator")
    assert refused.loc["e-cube REFUSING", "status"] == REFUSED
    assert refused.loc["a-seq", "status"] == OK


def test_what_a_method_cannot_run_is_refused(sample: cep.EventStream) -> None:
    rows = rows_of(sample, user_patterns={"either": EITHER}).set_index("method")
    assert rows.loc["a-seq", "status"] == REFUSED
    assert "a-seq cannot aggregate OR" in str(rows.loc["a-seq", "reason"])
    assert rows.loc["two-step", "status"] == OK


def test_listing_too_many_matches_ends_a_run(sample: cep.EventStream) -> None:
    rows = rows_of(sample, partial_match_limit=100).set_index("method")
    assert rows.loc["a-seq", "status"] == OK
    ended = rows.loc["two-step"]
    assert ended["status"] == LIMIT and "more than 100 matches were listed" in ended["reason"]
    # The metrics are those until then.
    assert ended["events"] < len(sample) and ended["updates"] > 100
    assert ended["seconds_per_slide"] == pytest.approx(ended["seconds"] / ended["events"])
    assert pd.isna(ended["digest"]) and pd.isna(ended["values"])


def test_a_run_that_ends_keeps_what_only_its_method_counts(sample: cep.EventStream) -> None:
    changes = {"user_patterns": {}, "user_workloads": {"w": SHARED}, "partial_match_limit": 100}
    rows = rows_of(sample, {"sharing": ["none", "STEINER"]}, **changes).set_index("generator")
    ended = rows.loc["e-cube STEINER"]
    assert ended["status"] == LIMIT
    counted = json.loads(ended["details"])
    assert "reused" in counted and counted["delta"] > 0
    assert not rows.columns.intersection(list(counted)).size


class OneMore(TwoStepRun):
    """A method that counts one match too many."""

    def push(self, batch: cep.EventStream) -> list[Row]:
        return [
            row._replace(values=(row.values[0] + 1, *row.values[1:])) for row in super().push(batch)
        ]


def test_other_values_are_an_error(sample: cep.EventStream) -> None:
    cep.aggregator("one-more")(OneMore)
    rows = rows_of(sample, {"methods": ["a-seq", "one-more"]}).set_index("method")
    assert rows.loc["a-seq", "status"] == OK and rows.loc["one-more", "status"] == ERROR
    assert rows.loc["one-more", "reason"].startswith("its values differ from those of a-seq")


@given(
    st.lists(
        st.tuples(st.sampled_from("ABC"), st.integers(0, 3), st.none() | st.integers(-9, 9)),
        min_size=1,
        max_size=20,
    ),
    st.booleans(),
    st.integers(1, 5),
)
def test_a_digest_is_of_the_values_alone(
    events: list[tuple[str, int, int | None]], is_float: bool, first: int
) -> None:
    """Not of the batches, whose columns differ in type where values are missing."""
    names, gaps, values = zip(*events, strict=True)
    frame = pd.DataFrame({"type": list(names), "ts": pd.Series(gaps, dtype="int64").cumsum()})
    frame["x"] = pd.array(values, dtype="Int64").astype("float64" if is_float else "Int64")
    stream = cep.EventStream.from_pandas(frame, type="type", time="ts")
    pattern = cep.parse(
        "PATTERN SEQ(A a, B b) AGG COUNT, SUM(a.x), AVG(b.x), MAX(a.x) WITHIN 4 units"
    )
    batches = aggregated(pattern, stream, "two-step", 1 << 40, first=first, most=first)
    whole = aggregated(pattern, stream, "two-step", 1 << 40)
    assert batches["digest"] == whole["digest"] and batches["updates"] == whole["updates"]


def test_rows_are_written_as_their_values_read() -> None:
    times = [0, 1_500_000_000, 1_000_001, -2_000, 86_400_000_000_001]
    rows = pd.DataFrame(
        {
            "position": [0, 1, 2, 3, 4],
            "time": pd.Series(times).astype("datetime64[ns]"),
            "COUNT": pd.Series([10**30, 7, None, 0, -1], dtype=object),
            "MAX": pd.array([1, None, 3, 4, 5], dtype="Int64"),
            "AVG": [0.5, float("nan"), 1.0, 2.0, 3.0],
        }
    )
    expected = []
    for at in rows.index:
        row = rows.loc[at]
        texts = {name: f"{row[name]}" for name in ("position", "time", "COUNT", "MAX")}
        texts["AVG"] = f"{math.pi * row['AVG']:.5e}"
        present = [name for name in rows if not pd.isna(row[name])]
        expected.append("".join(f" {name}={texts[name]}" for name in present) + "\n")
    assert text_of(rows) == "".join(expected)
    assert text_of(rows[:0]) == ""


def test_the_rounding_of_sums_is_not_in_the_digest(sample: cep.EventStream) -> None:
    frame = sample.to_pandas()
    frame["price"] = frame["price"] / 100
    dollars = cep.EventStream.from_pandas(frame, type="type", time="time")
    pattern = cep.parse(TWO.replace("AGG", "AGG SUM(b.price),"))
    found = {aggregated(pattern, dollars, method, 1 << 40)["digest"] for method in METHODS}
    assert len(found) == 1
    values = [cep.aggregate(pattern, dollars, method).values["SUM(b.price)"] for method in METHODS]
    assert any((one != values[0]).any() for one in values[1:])


def test_methods_that_list_matches_take_short_batches(sample: cep.EventStream) -> None:
    with pytest.raises(MatchLimitError) as caught:
        aggregated(cep.parse(TWO), sample, "two-step", 1)
    assert caught.value.measured["events"] == 64 + 128
    assert aggregated(cep.parse(TWO), sample[:0], "a-seq", 1)["values"] == 0


def test_types_of_workloads_are_checked() -> None:
    with pytest.raises(ExperimentError, match=r"workload 'w': the data has no event of type 'QQQ'"):
        user_specs((("w", QUERIES),), ["DELL", "IPIX", "AMAT"], 0, WORKLOAD)


def test_a_sweep_file_of_methods_runs_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "methods.toml"
    file.write_text(
        f"""
        methods = ["a-seq", "two-step"]
        repetitions = 1
        seconds = 0
        partial_match_limit = 1_000_000
        data = {{ kind = "ticker-trades", events = 2000 }}
        [user_patterns]
        two = "{TWO}"
        [user_workloads]
        both = '''
{QUERIES}'''
        """,
        encoding="utf-8",
    )
    asked = read_sweep(file)
    described = asked.describe()
    assert "methods     a-seq, two-step" in described and "workload both" in described
    assert "strategies" not in described
    config = asked.config(sweep_data(spark, asked, tmp_path))
    assert restrictions(config) == [
        "A run ends when it lists more than 1,000,000 matches; what it took until then is a bound.",
        "1 pattern chosen by hand, each method run once.",
        "1 workload chosen by hand, each method run once.",
    ]
    results = run_sweep(spark, config, tmp_path / "out")
    assert (results["status"] == OK).all(), results["reason"].dropna().unique()
    assert results["pattern_id"].tolist() == [*["user-two"] * 2, *["workload-both"] * 2]
    for spec in workload_of(config, {"": dict.fromkeys(TICKERS, 1.0)}):
        events = own_stream(config.data, spec, config)
        expected = sum(len(cep.aggregate(pattern, events).values) for pattern in spec.patterns)
        rows = results[results["pattern_id"] == spec.pattern_id]
        assert set(rows["events"]) == {len(events)} and set(rows["values"]) == {expected} != {0}
        timing = time_pattern(spec, events, {}, config.grid([]), long_enough=0.0)
        assert timing.running > 0 and timing.limited == 0
        assert expected_log_work(spec, dict.fromkeys(TICKERS, 1.0)) > -10
