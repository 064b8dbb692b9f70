"""The map: gains, places and classes of rows whose numbers are known."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.time_model import TimeModel
from cepbench.experiments.studies.kolchinsky2018.gain_map import (
    EXTREMES,
    OF_RULE,
    class_labels,
    gain_rows,
    gains_by_class,
    gains_by_regime,
    predicted_gains,
    regime_classes,
    stakes_file,
)
from cepbench.experiments.sweeps.cells import LIMIT, OK
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.sweep_file import read_sweep
from cepbench.presentation.figures import interactive, static
from cepbench.presentation.figures.gain_map import LEAST, map_notes, map_points
from tests.experiments.made_rows import made_rows

#: Generator → evaluator, and times slower than the best one.
SLOWER = {"TRIVIAL": 8.0, "EFREQ": 4.0, "DP-LD": 1.0, "ZSTREAM": 3.0, "DP-B": 2.0}
CLASSES = pd.DataFrame(
    {"regime": ["thin", "thick"], "rates": ["1–4", "12–45"], "selectivity": ["0.5", "0.5"]}
)
EXPECTED = {"thin": 0.5, "thick": 50.0}


def results() -> pd.DataFrame:
    """Six patterns in each of two regimes; written orders of one of them end at the limit."""

    def numbers(run: Any) -> dict[str, Any]:
        limited = run.regime == "thick" and run.number == 5 and run.generator == "TRIVIAL"
        factor = SLOWER[run.generator] ** (1 if run.regime == "thick" else 0.5)
        return {
            "status": LIMIT if limited else OK, "measured_with": None, "plan": run.generator,
            "events": 1000, "seconds": 1e-3 * factor, "events_per_second": 1e6 / factor,
            "peak_bytes": np.nan if limited else 100.0 * factor, "comparisons": 10,
            "partial_matches_created": 0 if run.generator == "DP-LD" else int(100 * factor),
        }  # fmt: skip

    return pd.DataFrame(made_rows(numbers, regime=EXPECTED, number=range(6), generator=SLOWER))


def expected() -> pd.DataFrame:
    keys = results()[["pattern_id", "generator", "regime"]]
    return keys.assign(expected=keys["regime"].map(EXPECTED), expected_matches=0.0).drop(
        columns="regime"
    )


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return gain_rows(results(), expected(), CLASSES)


def of(rows: pd.DataFrame, comparison: str, metric: str, regime: str) -> pd.DataFrame:
    return rows[
        (rows["comparison"] == comparison) & (rows["metric"] == metric) & (rows["regime"] == regime)
    ]


def test_gains_are_above_one_where_the_plan_is_better(rows: pd.DataFrame) -> None:
    throughput = of(rows, "DP-LD / EFREQ", "events_per_second", "thick")
    assert throughput["gain"].tolist() == pytest.approx([4.0] * 6)
    assert throughput["rates"].unique() == ["12–45"]
    memory = of(rows, "DP-B / ZSTREAM", "peak_bytes", "thick")
    assert memory["gain"].tolist() == pytest.approx([1.5] * 6)
    # No partial matches count as one.
    created = of(rows, "DP-LD / EFREQ", "partial_matches_created", "thick")
    assert created["gain"].tolist() == pytest.approx([400.0] * 6)
    assert throughput["measured"].tolist() == pytest.approx([0.4] * 6)
    assert throughput["expected"].tolist() == [50.0] * 6


def test_the_best_is_compared_with_the_worst_of_orders_and_trees(rows: pd.DataFrame) -> None:
    found = of(rows, EXTREMES, "events_per_second", "thin")
    assert found["gain"].tolist() == pytest.approx([8.0**0.5] * 6)


def test_runs_at_the_limit_are_bounds(rows: pd.DataFrame) -> None:
    found = of(rows, OF_RULE, "events_per_second", "thick")
    assert found["bound"].tolist() == [False] * 5 + [True]
    assert found["gain"].tolist() == pytest.approx([8.0] * 6)
    assert found["measured"].notna().all()
    # Its memory tells nothing.
    assert of(rows, OF_RULE, "peak_bytes", "thick")["gain"].isna().sum() == 1


def test_classes_are_those_of_the_expected_number(rows: pd.DataFrame) -> None:
    table = gains_by_class(rows)
    own = table[(table["comparison"] == OF_RULE) & (table["metric"] == "events_per_second")]
    assert own["class"].tolist() == ["below 1", "10 to 100"]
    assert own["value"].tolist() == pytest.approx([8.0**0.5, 8.0])
    assert own["bounds"].tolist() == [0, 1] and own["patterns"].tolist() == [6, 6]
    assert class_labels() == ["below 1", "1 to 10", "10 to 100", "100 and more"]
    by_regime = gains_by_regime(rows)
    place = ("columnar", OF_RULE, "sequence", "12–45")
    assert by_regime.loc[place, "0.5"] == pytest.approx(8.0)
    read = tomllib.loads(stakes_file(table, {"cpu": "quick"}))
    assert read["cpu"] == "quick"
    assert [each["gain"] for each in read["classes"]] == pytest.approx([2.83, 8.0])
    assert [(each["least"], each["below"]) for each in read["classes"]] == [(0, 1), (10, 100)]


def test_a_model_of_time_predicts_gains(rows: pd.DataFrame) -> None:
    coefficients = {"run": 0.0, "event": 0.0, "partial match": 1e-6, "comparison": 0.0}
    model = TimeModel("tree", coefficients, 1, 0.0)
    found = predicted_gains(results(), rows, [model])
    assert found["comparison"].unique().tolist() == ["DP-B / ZSTREAM"]
    thick = found[found["regime"] == "thick"]
    assert thick["predicted"].tolist() == pytest.approx([1.5] * 6)
    assert thick["gain"].tolist() == pytest.approx([1.5] * 6)


def test_the_sweep_has_every_class_of_rates_and_selectivities() -> None:
    for profile in ("quick", "full"):
        sweep = read_sweep("kolchinsky2018/map", profile=profile)
        classes = regime_classes(sweep.config({"": "data"}))
        assert len(classes) == 9 and not classes.duplicated(["rates", "selectivity"]).any()
        assert classes["rates"].unique().tolist() == ["1–4", "4–12", "12–45"]
        assert classes["selectivity"].unique().tolist() == ["0.5", "0.1", "0.02"]
    with pytest.raises(ExperimentError, match="regime 'dense' has no most_rate"):
        regime_classes(SweepConfig(data="d", regimes={"dense": {"least_rate": 8.0}}))


def test_both_charts_show_every_pattern(rows: pd.DataFrame) -> None:
    table = gains_by_class(rows)
    figure = static.gain_map(rows, table, "events_per_second")
    titles = [axes.get_title("left") for axes in figure.axes]
    named = ["DP-LD / EFREQ", OF_RULE, "DP-B / ZSTREAM", EXTREMES]
    assert titles == [f"{name} (columnar)" for name in named]
    drawn = [
        sum(
            len(each.lines[0].get_xdata())
            for each in axes.containers
            if str(each.get_label()).endswith("window")
        )
        for axes in figure.axes
    ]
    assert drawn == [12] * 4
    chart = interactive.gain_map(rows, table, "events_per_second").to_dict()
    shown = [row for part in chart["datasets"].values() for row in part if "pattern_id" in row]
    assert len(shown) == 48 and max(row["gain"] for row in shown) == pytest.approx(8.0)
    points, _ = map_points(rows, table, "events_per_second")
    assert any("2 gains are lower bounds" in note for note in map_notes(points))
    both = [pd.concat([its, its.assign(engine="event by event")]) for its in (rows, table)]
    beside = interactive.gain_map(*both, "events_per_second").to_dict()
    assert [[panel["title"] for panel in row["hconcat"]] for row in beside["vconcat"]] == [
        [f"{name} (columnar)", f"{name} (event by event)"] for name in named
    ]
    few = points.assign(expected=LEAST / 10)
    assert any("48 points with fewer" in note for note in map_notes(few))
    with pytest.raises(ExperimentError, match="no gain in 'latency'"):
        static.gain_map(rows, table, "latency")
