"""A results table is split into the settings whose runs can be compared."""

from __future__ import annotations

import pandas as pd

from cepbench.experiments.analysis.settings import Setting, by_setting, per_engine


def test_rows_are_split_by_regime_engine_and_predicates() -> None:
    table = pd.DataFrame(
        [
            {"regime": regime, "evaluator": name}
            for regime in ("sparse", "dense")
            for name in ("lazy-nfa", "tree", "lazy-nfa-instances", "tree-instances", "mine")
        ]
    )
    found = dict(by_setting(table))
    assert list(found) == [
        Setting(regime, engine)
        for regime in ("sparse", "dense")
        for engine in ("columnar", "event by event", "mine")
    ]
    assert list(found[Setting("dense", "event by event")]["evaluator"]) == [
        "lazy-nfa-instances", "tree-instances",
    ]  # fmt: skip
    costs = pd.DataFrame({"predicates": ["n", "n/2", "n"], "size": [3, 3, 4]})
    assert {each: len(rows) for each, rows in by_setting(costs)} == {
        Setting(predicates="n"): 2, Setting(predicates="n/2"): 1,
    }  # fmt: skip


def test_a_table_for_each_engine_by_regime() -> None:
    table = pd.DataFrame(
        [
            {"regime": regime, "evaluator": name, "size": size}
            for name in ("lazy-nfa", "tree", "tree-instances")
            for regime in ("sparse", "dense")
            for size in range(2 if name == "tree-instances" else 3)
        ]
    )
    found = per_engine(
        table, lambda own: own.groupby("regime", sort=False).size().reset_index(name="runs")
    )
    assert found.to_dict("list") == {
        "regime": ["sparse", "sparse", "dense", "dense"],
        "runs": [6, 2, 6, 2],
        "engine": ["columnar", "event by event"] * 2,
    }


def test_a_table_that_varies_none_of_them_is_one_setting() -> None:
    table = pd.DataFrame({"size": [3, 4], "regime": [None, ""]}, index=[7, 7])
    ((setting, rows),) = by_setting(table)
    assert setting == Setting() and list(rows["size"]) == [3, 4]
