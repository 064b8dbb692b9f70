"""What the page of operators counts, beside counts by hand."""

from __future__ import annotations

from itertools import product
from math import comb

import pandas as pd
import pytest

from cepbench.experiments.studies.mei2009 import STUDY
from cepbench.experiments.studies.mei2009.operators import CLASSES, operator_runs
from cepbench.presentation.reporting.claims import claims
from cepbench.presentation.reporting.verdicts import ledger
from cepbench.streams.stock_rates import StockRates

# One worker: the runs take longer than the tests.
pytestmark = pytest.mark.xdist_group("mei2009 operators")


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return operator_runs()


def test_claims_are_about_what_is_measured(runs: pd.DataFrame) -> None:
    found = [claim for claim in claims(STUDY) if claim.results == "operators"]
    assert found
    for check in (test.check for claim in found for test in claim.tests):
        for side in (check.over, check.under):
            assert side is None or {*side.generators} <= {*runs["generator"]}, check
        assert {*check.pattern_sets} <= {*runs["pattern_set"]}, check


def of(runs: pd.DataFrame, setting: str, series: str) -> pd.DataFrame:
    return runs[(runs["pattern_set"] == setting) & (runs["generator"] == series)]


def test_operators_try_and_make_what_table_2_says(runs: pd.DataFrame) -> None:
    for seed, window in product(range(5), (2, 100)):
        names = StockRates(3_000, seed, {"IBM": 1.0, "Sun": 1.0}).table(0, 3_000)["name"]
        types = names.to_pylist()
        near = [
            (types[first], types[last])
            for first in range(3_000)
            for last in range(first + 1, min(first + window + 1, 3_000))
        ]
        expected = {
            "OR": 3_000,
            "SEQ": near.count(("IBM", "Sun")),
            "AND": near.count(("IBM", "Sun")) + near.count(("Sun", "IBM")),
        }
        for structure, count in expected.items():
            its = of(runs, f"window of {window} units", structure)
            its = its[its["repetition"] == seed]
            assert list(its["work"]) == [2 * count], (structure, window)


def test_algorithm_5_joins_each_cut_of_each_interval_once(runs: pd.DataFrame) -> None:
    for classes in CLASSES:
        assert set(of(runs, str(classes), "ZSTREAM")["pairs"]) == {comb(classes + 1, 3)}


def test_k_is_the_time_that_a_condition_adds_beside_that_of_an_input(runs: pd.DataFrame) -> None:
    for run in range(5):
        its = runs[runs["repetition"] == run]
        with_it, without = (
            of(its, "conditions", series).iloc[0] for series in ("conditions", "no condition")
        )
        assert with_it["inputs_tried"] == with_it["records_made"] == without["records_made"]
        assert with_it["conditions_tested"] == 4 * with_it["inputs_tried"]
        added = (with_it["seconds"] - without["seconds"]) / with_it["conditions_tested"]
        access = without["seconds"] / (without["inputs_tried"] + without["records_made"])
        assert with_it["k"] == pytest.approx(added / access)
    assert runs["k"].notna().sum() == 5


def test_both_searches_for_equal_values_and_all_plans_find_the_same(runs: pd.DataFrame) -> None:
    plans = runs[runs["generator"].isin(["left-deep", "right-deep", "hashing", "nested loops"])]
    found = plans.groupby(["pattern_set", "repetition"])["matches"].nunique()
    assert (found == 1).all() and (plans["matches"] > 0).all()


def test_claims_follow_the_counts(runs: pd.DataFrame) -> None:
    judged = ledger("mei2009", {"operators": runs}).drop_duplicates("id").set_index("id")
    overall = judged["overall"].to_dict()
    # With one event of each class in a window a sequence tries less than a disjunction reads.
    assert overall["disjunction-below-sequence"] == "holds in part"
    for name in (
        "sequence-below-conjunction", "hashing-reduces-work", "planning-is-cubic",
        "left-deep-ahead-on-longer", "gap-grows-on-four", "gap-grows-on-five",
        "memory-does-not-grow", "memory-by-window", "memory-by-length", "memory-by-selectivity",
    ):  # fmt: skip
        assert overall[name] == "holds", name
    assert overall["planning-20-classes"] == "not testable"
