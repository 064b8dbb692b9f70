"""Two sweeps compared: pairs, ratios and verdicts against a plain twin; chance and planted gains."""

from __future__ import annotations

import json
import math
import statistics as plain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.summary import summarize
from cepbench.experiments.analysis.sweep_comparison import (
    BETTER,
    SAME,
    TOO_FEW,
    WORSE,
    compare_sweeps,
)
from cepbench.experiments.sweeps.cells import ERROR, OK, provenance, results_frame, results_table

RUNS = [("GREEDY", "order", "lazy-nfa"), ("DP-LD", "order", "tree"), ("DP-B", "tree", "tree")]
DATA = {"kind": "made up", "events": 10}


def made_up_sweep(
    seed: int,
    *,
    patterns: int = 8,
    noise: float = 0.1,
    faster: dict[str, float] | None = None,
    sets: tuple[str, ...] = ("sequence",),
    runs: list[tuple[str, str, str]] = RUNS,
    repetitions: int = 3,
    configuration: dict[str, Any] | None = None,
    **changes: Any,
) -> pd.DataFrame:
    """A sweep whose clock errs by ``noise``; its patterns and their true speeds are always alike."""
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(0)
    stated = {"data_made_from": DATA, "seed": 0, **(configuration or {})}
    rows = []
    for pattern_set in sets:
        for number in range(patterns):
            size = 3 + number % 2
            speed, matches = float(truth.lognormal(10, 1)), int(truth.integers(5, 50))
            for generator, plans, evaluator in runs:
                # What a pattern meets in one sweep all its repetitions share.
                met = speed * (faster or {}).get(generator, 1) * math.exp(rng.normal(0, noise))
                for repetition in range(repetitions):
                    rows.append(
                        {
                            "pattern_set": pattern_set,
                            "size": size,
                            "pattern_id": f"{pattern_set}-{size}-{number}",
                            "pattern": f"PATTERN {pattern_set} {number}",
                            "generator": generator,
                            "plan_kind": plans,
                            "evaluator": evaluator,
                            "strategy": "any",
                            "alpha": 0.0,
                            "repetition": repetition,
                            "status": OK,
                            "configuration": json.dumps(stated),
                            "events_per_second": met * math.exp(rng.normal(0, 0.02)),
                            "peak_bytes": 100 * matches,
                            "plan_cost": float("inf"),
                            "plan_log_cost": 1000.0 + matches,
                            "plan_seconds": 0.001,
                            "matches": matches,
                            **provenance(),
                            **changes,
                        }
                    )
    return results_frame(rows)


def naive_ratios(
    first: pd.DataFrame, second: pd.DataFrame, generator: str, size: int | None, metric: str
) -> list[float]:
    """Second / first of each pattern that both ran well, by plain loops."""
    medians: list[dict[str, float]] = []
    for table in (first, second):
        values: dict[str, list[float]] = {}
        failed = set()
        for row in table.to_dict("records"):
            if row["generator"] == generator and size in (None, row["size"]):
                key = row["pattern_id"] + row["pattern"]
                values.setdefault(key, []).append(row[metric])
                if row["status"] != OK:
                    failed.add(key)
        medians.append({k: plain.median(v) for k, v in values.items() if k not in failed})
    one, other = medians
    return [other[key] / one[key] for key in one if key in other]


def test_ratios_equal_the_naive_twin() -> None:
    first, second = made_up_sweep(1), made_up_sweep(2, faster={"DP-B": 1.4})
    broken = (second["generator"] == "GREEDY") & (second["pattern_id"] == "sequence-3-0")
    second.loc[broken & (second["repetition"] == 1), "status"] = ERROR
    found = compare_sweeps(first, second, by=["size"], resamples=300)
    table = found.ratios[found.ratios["metric"] == "events_per_second"]
    assert len(table) == 3 * 3 and list(table["size"][:4]) == [3, 3, 3, 4]
    assert list(table["generator"]) == [name for name, _, _ in RUNS] * 3
    for row in table.to_dict("records"):
        size = None if pd.isna(row["size"]) else int(row["size"])
        each = naive_ratios(first, second, row["generator"], size, "events_per_second")
        assert row["value"] == pytest.approx(math.prod(each) ** (1 / len(each)))
        assert row["low"] <= row["value"] <= row["high"] and row["low"] < row["high"]
        left_out = row["generator"] == "GREEDY" and size != 4
        assert (row["pairs"], row["left_out"]) == (len(each), int(left_out))
        # Four patterns of a size can never be more than chance.
        assert (row["verdict"] == TOO_FEW) == math.isnan(row["p_adjusted"]) == (size is not None)
    whole = table[table["size"].isna()].set_index("generator")
    assert whole.loc["DP-B", "verdict"] == BETTER
    assert (whole["p_adjusted"] >= whole["p"]).all()


def test_a_run_that_mostly_fails_is_not_called_faster() -> None:
    first, second = (
        made_up_sweep(1, patterns=20),
        made_up_sweep(2, patterns=20, faster={"GREEDY": 3.0}),
    )
    for failing, verdict in ((10, BETTER), (11, TOO_FEW)):
        broken = second.copy()
        gone = [f"sequence-{3 + number % 2}-{number}" for number in range(failing)]
        its = (broken["generator"] == "GREEDY") & broken["pattern_id"].isin(gone)
        broken.loc[its, "status"] = ERROR
        rows = compare_sweeps(first, broken, resamples=100).ratios
        row = rows[(rows["metric"] == "events_per_second") & (rows["generator"] == "GREEDY")].iloc[
            0
        ]
        assert (row["pairs"], row["left_out"]) == (20 - failing, failing)
        assert row["verdict"] == verdict


def test_costs_beyond_any_float_are_compared() -> None:
    first = made_up_sweep(1)
    second = made_up_sweep(1)
    second["plan_log_cost"] += math.log(1.5)
    rows = compare_sweeps(first, second, resamples=100).ratios.set_index(["metric", "generator"])
    costs = rows.loc["plan_cost"]
    assert list(costs["value"]) == pytest.approx([1.5] * 3) and set(costs["verdict"]) == {WORSE}
    # What is equal to the last digit differs by nothing, however often it is looked at.
    for metric in ("events_per_second", "peak_bytes", "plan_seconds"):
        assert set(rows.loc[metric, "value"]) == {1.0} and set(rows.loc[metric, "verdict"]) == {
            SAME
        }
        assert set(rows.loc[metric, "p"]) == {1.0}


def test_two_sweeps_of_the_same_thing_differ_no_more_often_than_chance() -> None:
    """Noise of 30 %, so that differences beyond what is negligible are common by chance.

    And machines of different speed, which would make all of them significant.
    """
    runs = [(f"G{k}", "order", "lazy-nfa") for k in range(8)]
    truth = made_up_sweep(1, patterns=12, noise=0, runs=runs, repetitions=1)
    rng = np.random.default_rng(8)
    some = 0
    for _ in range(12):
        one, other = (
            truth.assign(
                events_per_second=truth["events_per_second"]
                * np.exp(rng.normal(0, 0.3, size=len(truth)))
                # What the machine does to all runs of a pattern; they stand one after the other.
                * np.repeat(np.exp(rng.normal(machine, 0.2, size=12)), len(runs))
            )
            for machine in rng.normal(0, 0.5, size=2)
        )
        found = compare_sweeps(one, other, metrics=["events_per_second"], resamples=100)
        some += (found.ratios["verdict"] != SAME).any()
    # 1 may be; without the correction about 4 would be there.
    assert some <= 2


def test_a_planted_difference_is_found_and_no_other() -> None:
    first = made_up_sweep(1, patterns=20)
    second = made_up_sweep(2, patterns=20, faster={"DP-LD": 1 / 1.2})
    found = compare_sweeps(first, second)
    speeds = found.ratios[found.ratios["metric"] == "events_per_second"].set_index("generator")
    assert speeds.loc["DP-LD", "verdict"] == WORSE
    assert speeds.loc["DP-LD", "low"] < 1 / 1.2 < speeds.loc["DP-LD", "high"]
    assert speeds.loc[["GREEDY", "DP-B"], "verdict"].tolist() == [SAME, SAME]
    assert "slower; 20 pairs" in found.describe() and "faster" not in found.describe()
    back = compare_sweeps(second, first).ratios.set_index(["metric", "generator"])
    assert back.loc[("events_per_second", "DP-LD"), "verdict"] == BETTER


def test_few_pairs_do_not_stand_out_of_many_comparisons() -> None:
    """Seven patterns that all agree have p = 1/64: enough alone, not among twelve rows."""
    planted = {"DP-LD": 1 / 1.2}
    first = made_up_sweep(1, patterns=14, noise=0.02)
    second = made_up_sweep(2, patterns=14, noise=0.02, faster=planted)
    sets = ("sequence", "kleene", "negation", "conjunction")
    alone = first[first["size"] == 3], second[second["size"] == 3]
    many = (
        made_up_sweep(1, patterns=14, noise=0.02, sets=sets),
        made_up_sweep(2, patterns=14, noise=0.02, faster=planted, sets=sets),
    )

    def verdict(pair: tuple[pd.DataFrame, ...], **asked: Any) -> tuple[str, float]:
        rows = compare_sweeps(*pair, metrics=["events_per_second"], resamples=100, **asked).ratios
        rows = rows[rows["generator"] == "DP-LD"]
        return rows["verdict"].iloc[0], rows["p"].iloc[0]

    assert verdict(alone) == (WORSE, 2 / 2**7)
    one_set = tuple(table[table["size"] == 3] for table in many)
    mixed = tuple(
        table[(table["generator"] != "DP-LD") | (table["pattern_set"] == "sequence")]
        for table in one_set
    )
    assert verdict(mixed, by=["pattern_set"]) == (TOO_FEW, 2 / 2**7)


def test_small_differences_of_times_are_the_machines_but_not_those_of_counts() -> None:
    first, second = made_up_sweep(1, noise=0), made_up_sweep(1, noise=0)
    second["events_per_second"] *= 1.03
    second["peak_bytes"] += 1
    rows = compare_sweeps(first, second, resamples=100)
    verdicts = rows.ratios.groupby("metric")["verdict"].unique().map(list)
    assert verdicts["events_per_second"] == [SAME] and verdicts["peak_bytes"] == [WORSE]
    # But it is told.
    assert "1.030 (1.030 to 1.030) = 1.030 × 1.000 (1.000 to 1.000)" in rows.describe()


def test_a_machine_that_is_faster_on_the_whole_is_no_difference_of_a_generator() -> None:
    first, second = made_up_sweep(1, patterns=20), made_up_sweep(2, patterns=20)
    # By 30 % in all, and by more on some patterns than on others.
    machine = np.exp(np.random.default_rng(5).normal(0.26, 0.1, size=20))
    second["events_per_second"] *= machine[second["pattern_id"].str.split("-").str[2].astype(int)]
    fast = compare_sweeps(first, second, metrics=["events_per_second"]).ratios
    assert (fast["low"] > 1.15).all() and (fast["common"] > 1.2).all()
    assert set(fast["verdict"]) == {SAME}
    assert list(fast["common"] * fast["beside"]) == pytest.approx(list(fast["value"]))
    # A generator that gained besides is found all the same.
    second.loc[second["generator"] == "DP-B", "events_per_second"] *= 1.25
    verdicts = compare_sweeps(first, second, metrics=["events_per_second"]).ratios["verdict"]
    assert list(verdicts) == [SAME, SAME, BETTER]
    # With two generators alone nobody knows, and that is said.
    two = [table[table["generator"] != "DP-B"] for table in (first, second)]
    found = compare_sweeps(*two, metrics=["events_per_second"])
    assert set(found.ratios["verdict"]) == {BETTER} and found.ratios["common"].isna().all()
    assert "a faster machine looks like a faster run" in found.describe()


def test_what_only_one_has_and_what_differs_is_told_first() -> None:
    first = made_up_sweep(1, patterns=8, sets=("sequence", "kleene"))
    second = made_up_sweep(
        2, runs=RUNS[:2], patterns=9, configuration={"seed": 5}, cpu="another", commit="abc"
    )
    # The same name, but another pattern: no pair.
    second.loc[second["pattern_id"] == "sequence-3-0", "pattern"] = "PATTERN other"
    found = compare_sweeps(first, second, names=("before", "after"))
    assert set(found.ratios["pairs"]) == {7} and set(found.ratios["generator"]) == {
        "GREEDY",
        "DP-LD",
    }
    assert len(found.only_first) == 8 * 3 + 8 + 2 and len(found.only_second) == 2 * 2
    assert set(found.only_second["pattern_id"]) == {"sequence-3-0", "sequence-3-8"}
    differing = found.differences.set_index("key")
    assert list(differing.index) == ["seed", "commit", "cpu"]
    assert tuple(differing.loc["seed"]) == (0, 5) and differing.loc["cpu", "second"] == "another"
    told = found.describe()
    assert told.index("cpu: ") < told.index("Only in before: 34") < told.index("events per second:")
    assert found.same_data is True
    same = compare_sweeps(first, first, resamples=50)
    assert same.differences.empty and same.only_first.empty and same.only_second.empty
    assert "Configuration, data and machine are the same." in same.describe()


def test_other_numbers_of_matches_are_an_error_on_the_same_data_only() -> None:
    first, second = made_up_sweep(1), made_up_sweep(2)
    second.loc[second["pattern_id"] == "sequence-4-1", "matches"] += 1
    with pytest.raises(ExperimentError, match=r"1 of 8 patterns have other .*sequence-4-1 has \d+"):
        compare_sweeps(first, second)
    # Runs of methods have digests of their values instead.
    methods = [made_up_sweep(number, matches=None, digest="5a8d") for number in (1, 2)]
    assert compare_sweeps(*methods, resamples=50).counts_differ == 0
    methods[1].loc[methods[1]["pattern_id"] == "sequence-4-1", "digest"] = "f73a"
    with pytest.raises(ExperimentError, match=r"1 of 8 .*sequence-4-1 has 5a8d and f73a"):
        compare_sweeps(*methods)
    elsewhere = made_up_sweep(2, configuration={"data_made_from": {"kind": "other"}})
    elsewhere["matches"] = second["matches"]
    found = compare_sweeps(first, elsewhere, resamples=50)
    assert (found.same_data, found.counts_differ) == (False, 1)
    assert "1 patterns have other numbers of matches" in found.describe()
    unknown = made_up_sweep(2)
    unknown["configuration"] = ""
    found = compare_sweeps(first, unknown, resamples=50)
    assert found.same_data is None and "does not say which data" in found.describe()


def test_a_sweep_of_before_there_were_several_streams_is_compared() -> None:
    old, new = made_up_sweep(1).drop(columns="stream"), made_up_sweep(2)
    assert "stream" in new
    for pair in ((old, new), (new, old), (old, old)):
        found = compare_sweeps(*pair, metrics=["events_per_second"], resamples=50)
        assert found.counts_differ == 0 and len(found.ratios) > 0
    new.loc[new["pattern_id"] == "sequence-4-1", "matches"] += 1
    with pytest.raises(ExperimentError, match="1 of 8 patterns have other numbers"):
        compare_sweeps(old, new)


def test_sweeps_are_read_from_files(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    for name, seed in (("one", 1), ("two", 2)):
        rows = made_up_sweep(seed).astype(object).where(lambda table: table.notna(), None)
        pq.write_table(results_table(rows.to_dict("records")), tmp_path / f"{name}.parquet")
    files = tmp_path / "one.parquet", tmp_path / "two.parquet"
    found = compare_sweeps(*files, resamples=50)
    assert found.names == ("one.parquet", "two.parquet")
    pd.testing.assert_frame_equal(
        found.ratios, compare_sweeps(made_up_sweep(1), made_up_sweep(2), resamples=50).ratios
    )
    assert compare_sweeps(files[0], files[0], resamples=50).names[0] == "one.parquet (first)"


def test_tables_may_come_from_csv(tmp_path: Path) -> None:
    """Where empty texts are missing, names of digits are numbers, and counts have fractions."""

    def written(table: pd.DataFrame) -> pd.DataFrame:
        table.to_csv(tmp_path / "sweep.csv", index=False)
        return pd.read_csv(tmp_path / "sweep.csv")

    named: dict[str, Any] = {"options": "{}", "method": "", "sharing": "", "output": "count"}
    tables = []
    for seed in (1, 2):
        parts = [
            made_up_sweep(seed, patterns=6, sets=(name,), window=window, regime=regime, stream=stream, **named)
            for name, window, regime, stream in (
                ("sequence", "", "dense", "1"), ("user", "5 minutes", "", "02"), ("kleene", "", "", "1"),
            )
        ]  # fmt: skip
        table = pd.concat(parts, ignore_index=True)
        failed = (table["generator"] == "DP-B") & (table["size"] == 3)
        table.loc[failed, ["matches", "events_per_second"]] = (
            None  # so that counts are floats there
        )
        table.loc[failed, "status"] = ERROR
        table["stream"] = table["stream"].str.removeprefix("0")
        tables.append(table)
    first, second = tables
    due = compare_sweeps(first, second, resamples=50)
    assert {*due.ratios["window"]} == {"", "5 minutes"} and {*due.ratios["regime"]} == {"", "dense"}
    for pair in (
        (written(first), second),
        (first, written(second)),
        (written(first), written(second)),
    ):
        found = compare_sweeps(*pair, resamples=50)
        pd.testing.assert_frame_equal(found.ratios, due.ratios)
        assert found.differences.empty and found.counts_differ == 0
        assert found.only_first.empty and found.only_second.empty
    pd.testing.assert_frame_equal(summarize(written(first)), summarize(first))


def test_mistakes_are_told() -> None:
    table = made_up_sweep(1)
    with pytest.raises(ExperimentError, match="by is one of pattern_set, size, not 'generator'"):
        compare_sweeps(table, table, by=["generator"])
    with pytest.raises(ExperimentError, match=r"a metric is one of seconds, .*, not 'speed'"):
        compare_sweeps(table, table, metrics=["speed"])
    with pytest.raises(ExperimentError, match="no finished rows"):
        compare_sweeps(table, table[:0])
    with pytest.raises(ExperimentError, match="no pattern and run in common"):
        compare_sweeps(table, made_up_sweep(1, sets=("kleene",)))
