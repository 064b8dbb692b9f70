"""Verdicts: every check of every claim can hold, fail and be left open, on results made for it."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest

from cepbench.experiments.analysis.checks import (
    DERIVED,
    FEWEST,
    NO_CASE,
    NO_DATA,
    TOO_FEW,
    Measured,
    measure,
)
from cepbench.experiments.studies.kolchinsky2018 import STUDY
from cepbench.experiments.studies.registry import STUDIES
from cepbench.experiments.sweeps.cells import ERROR
from cepbench.presentation.reporting.claims import PARTIAL_MATCHES, ClaimTest, claims
from cepbench.presentation.reporting.ledger import counts_for_readers
from cepbench.presentation.reporting.states import (
    EXCEEDS,
    FAILS,
    HOLDS,
    IN_WORK,
    NOT_COMPARABLE,
    OPEN,
    STATES,
    UNDECIDED,
    judge,
)
from cepbench.presentation.reporting.verdicts import (
    by_claim,
    counts_of,
    filled,
    ledger,
    numbers,
    quotable,
    shown_value,
)
from tests.budgets import covering
from tests.presentation.reporting.made_results import inside, outside, table_measuring

CLAIMS = claims(STUDY)
TESTS = [
    pytest.param(test, id=f"{study.key}-{claim.id}-{test.basis}")
    for study in STUDIES.values()
    for claim in claims(study)
    for test in claim.tests
]


def shape(test: ClaimTest) -> tuple[object, ...]:
    """All by which tests are measured in another way than others."""
    check = test.check
    return (
        check.kind, check.across, check.take, check.than is None, not check.sizes,
        not check.needed_sizes, check.with_matches, not check.apart, check.metric in DERIVED,
        test.is_timed,
    )  # fmt: skip


def features(test: ClaimTest) -> tuple[object, ...]:
    """All by which they are judged in another way."""
    low, high = test.low, test.high
    ends = low > -math.inf, high < math.inf, low > 1, high < 1, low >= 0.8 and high <= 1.25
    return (*shape(test), test.check.metric, test.is_factor, ends)


#: Tests that differ in more than numbers and names from each other: one of each.
DIFFERENT = {features(each.values[0]): each for each in TESTS}.values()
#: Tests that cover what others do: every two features that come together in some test.
TYPICAL = covering(TESTS, lambda parameter: features(parameter.values[0]))
EVERY_SHAPE = pytest.mark.parametrize(
    "test", covering(TESTS, lambda parameter: shape(parameter.values[0]))
)
OF_PLANS = ("exponent", "rank_correlation")


def measured_on(test: ClaimTest, table: pd.DataFrame | None) -> Measured:
    return measure(test.check, table, resamples=100)


def verdict_on(test: ClaimTest, table: pd.DataFrame | None) -> tuple[str, str, str]:
    return judge(measured_on(test, table), test.low, test.high, is_factor=test.is_factor)


def test_every_test_can_hold_and_fail() -> None:
    for test in (each.values[0] for each in TESTS):
        assert test.low <= inside(test) <= test.high, test
        assert outside(test) and not any(test.low <= its <= test.high for its in outside(test))


@pytest.mark.parametrize("test", DIFFERENT)
def test_a_test_holds_where_its_value_is_measured(test: ClaimTest) -> None:
    measured = measured_on(test, table_measuring(test, inside(test)))
    assert measured.problem == ""
    assert measured.value == pytest.approx(inside(test), rel=1e-6)
    assert judge(measured, test.low, test.high) == (HOLDS, "", "")


@pytest.mark.parametrize("test", TYPICAL)
def test_a_test_fails_beyond_every_end_of_its_range(test: ClaimTest) -> None:
    for value in outside(test):
        found = verdict_on(test, table_measuring(test, value))
        is_surpassed = 1 < test.low < test.high < value or value < test.low < test.high < 1
        slight = test.low >= 0.8 and test.high <= 1.25
        surpassed = test.is_factor and is_surpassed and not slight
        assert found == (EXCEEDS if surpassed else FAILS, "", ""), value


@EVERY_SHAPE
def test_a_test_is_left_open_where_nothing_was_measured(test: ClaimTest) -> None:
    table = table_measuring(test, inside(test))
    assert verdict_on(test, None) == (OPEN, NO_DATA, "its notebook did not run")
    of_plans = test.check.kind in OF_PLANS
    absent = test.check.over.generators[: None if of_plans else 1]
    assert verdict_on(test, table[~table["generator"].isin(absent)])[0] == OPEN
    assert verdict_on(test, table.assign(status=ERROR))[0] == OPEN
    sized = test.check.sizes or test.check.needed_sizes or test.check.kind == "trend"
    assert verdict_on(test, table.assign(size=99))[0] == (OPEN if sized else HOLDS)
    if test.check.with_matches:
        assert verdict_on(test, table.assign(matches=0))[:2] == (OPEN, NO_CASE)


@EVERY_SHAPE
def test_a_test_is_left_open_on_few_patterns(test: ClaimTest) -> None:
    if test.check.kind == "maximum":
        return  # about every run, and no average
    table = table_measuring(test, inside(test), patterns=1)
    few = table[table["pattern_id"].isin(table["pattern_id"].unique()[: FEWEST - 1])]
    verdict, lack, why = verdict_on(test, few)
    assert verdict in (OPEN, UNDECIDED) and lack and why


def noisy(test: ClaimTest) -> bool:
    """Whether noise leaves it open: the highest of several noisy sets lies above each of them."""
    one_end = math.isinf(test.low) or math.isinf(test.high)
    # The highest lies above the lower end, at which the test is held here.
    beyond = one_end or test.check.take == "highest"
    return test.check.kind in ("ratio", "trend") and not (
        beyond and test.check.across in ("pattern_set", "size") and test.check.take != "median"
    )


@pytest.mark.parametrize("test", [each for each in TYPICAL if noisy(each.values[0])])
def test_a_test_is_left_open_where_patterns_contradict_each_other(test: ClaimTest) -> None:
    end = test.low if test.low > -math.inf else test.high
    verdict, lack, why = verdict_on(test, table_measuring(test, end, jitter=1.0))
    assert (verdict, lack) == (UNDECIDED, TOO_FEW)
    assert why.startswith("the interval contains ")


CLAIM = next(claim for claim in CLAIMS if claim.id == "dp-ld-over-efreq-conjunction")


def in_regimes(**factors: tuple[float, float]) -> pd.DataFrame:
    """Results of :data:`CLAIM`: in each regime its throughput and its saving of partial matches."""
    tables = []
    for regime, (gain, saving) in factors.items():
        made = table_measuring(CLAIM.main, gain).assign(regime=regime, evaluator="lazy-nfa")
        made["partial_matches_created"] = np.where(
            made["generator"] == "DP-LD", 999.0, 1000.0 * saving - 1
        )
        tables.append(made.assign(events=2000))
    return pd.concat(tables)


@cache
def ledger_of(**factors: tuple[float, float]) -> pd.DataFrame:
    return ledger(STUDY.key, {CLAIM.results: in_regimes(**factors)})


def judged(**factors: tuple[float, float]) -> pd.DataFrame:
    table = ledger_of(**factors)
    return table[table["id"] == CLAIM.id]


def test_every_regime_is_judged_on_partial_matches_and_then_on_the_clock() -> None:
    rows = judged(sparse=(1.0, 1.5), dense=(2.5, 4.0))
    assert list(zip(rows["regime"], rows["basis"], rows["verdict"], strict=True)) == [
        ("sparse", PARTIAL_MATCHES, HOLDS), ("sparse", "throughput", FAILS),
        ("dense", PARTIAL_MATCHES, HOLDS), ("dense", "throughput", HOLDS),
    ]  # fmt: skip
    assert rows["value"].to_numpy() == pytest.approx([1.5, 1.0, 4.0, 2.5])
    assert list(rows["is_timed"]) == [False, True, False, True] and not rows["also"].any()
    assert set(rows["overall"]) == {IN_WORK}
    assert set(rows["why"]) == {
        "holds (sparse: partial matches; dense: partial matches, throughput); "
        "does not hold (sparse: throughput)"
    }
    assert set(judged(dense=(9.0, 4.0))["overall"]) == {EXCEEDS}


def test_a_claim_is_undecided_where_one_of_its_tests_is() -> None:
    made = in_regimes(sparse=(1.0, 1.0), dense=(1.0, 1.0))
    noise = np.where(made["pattern_id"].str.endswith(("1", "3", "5")), 3.0, 1.0)
    wide = (made["regime"] == "dense") & (made["generator"] == "DP-LD")
    made.loc[wide, "events_per_second"] *= noise[wide]
    table = ledger(STUDY.key, {CLAIM.results: made})
    row = table[table["id"] == CLAIM.id].iloc[0]
    assert row["overall"] == UNDECIDED
    assert row["why"] == (
        "undecided (dense: throughput); "
        "does not hold (sparse: partial matches, throughput; dense: partial matches)"
    )


def test_the_paper_s_engine_decides_and_others_stand_beside_it() -> None:
    columnar = in_regimes(dense=(1.0, 4.0))
    instances = in_regimes(dense=(2.5, 4.0)).assign(evaluator="lazy-nfa-instances")
    table = ledger(STUDY.key, {CLAIM.results: pd.concat([columnar, instances])})
    rows = table[table["id"] == CLAIM.id]
    assert list(rows["engine"]) == ["columnar", "columnar", "event by event", "event by event"]
    assert list(rows["verdict"]) == [HOLDS, FAILS, HOLDS, HOLDS]
    assert list(rows["also"]) == [True, True, False, False]
    assert set(rows["overall"]) == {HOLDS} and set(rows["why"]) == {""}
    counts = counts_for_readers(table, ["regime", "engine"])
    assert counts is not None
    shown = counts.data.set_index("engine")
    assert shown.loc["event by event", HOLDS] >= 1
    assert shown.loc["columnar", IN_WORK] >= 1
    assert counts_for_readers(table, ["regime"]) is None  # there is one
    alone = ledger(STUDY.key, {CLAIM.results: columnar})
    assert set(alone.loc[alone["id"] == CLAIM.id, "overall"]) == {IN_WORK}


def test_claims_about_plans_alone_are_judged_once_for_all_engines() -> None:
    claim = next(claim for claim in CLAIMS if claim.id == "heuristics-find-the-optimum")
    columnar = table_measuring(claim.main, 1.0).assign(regime="dense", evaluator="lazy-nfa")
    fewer = columnar[columnar["pattern_id"] == columnar["pattern_id"].iloc[0]]
    both = pd.concat([columnar, fewer.assign(evaluator="lazy-nfa-instances")])
    table = ledger(STUDY.key, {claim.results: both})
    (row,) = table[table["id"] == claim.id].itertuples()
    assert (row.regime, row.engine) == ("dense", "")
    assert row.patterns == columnar["pattern_id"].nunique()


def test_the_ledger_has_rows_of_every_claim_in_its_order() -> None:
    table = ledger_of(dense=(2.5, 4.0))
    assert list(by_claim(table)["id"]) == [claim.id for claim in CLAIMS]
    assert set(table["overall"]) <= set(STATES)
    open_ones = table[table["overall"] == OPEN]
    assert (open_ones["why"] != "").all() and (open_ones["lack"] != "").all()
    assert sum(counts_of(table).values()) == len(CLAIMS)
    assert (ledger(STUDY.key, {})["lack"] == NO_DATA).all()


def test_a_time_in_seconds_is_measured_and_not_compared() -> None:
    claim = next(claim for claim in CLAIMS if claim.absolute)
    values = [*outside(claim.main), inside(claim.main)]
    made = [table_measuring(claim.main, its).assign(regime=f"{its}") for its in values]
    table = ledger(STUDY.key, {claim.results: pd.concat(made)})
    rows = [*table[table["id"] == claim.id].itertuples()]
    assert [row.value for row in rows] == pytest.approx(values)
    for row in rows:
        assert (row.overall, row.lack) == (OPEN, NOT_COMPARABLE)
        assert row.why == "not comparable: a time in seconds on another machine"


def test_reasons_are_given_unless_the_claim_holds_with_the_numbers_of_the_run() -> None:
    assert CLAIM.reason is not None
    for gain, given in ((2.5, False), (1.0, True)):
        row = judged(dense=(gain, 4.0)).iloc[0]
        assert (row["title"] == CLAIM.reason.heading) == given
        assert ("EFREQ's plans create 2.00 per event" in row["reason"]) == given
        assert ("{" in row["reason"]) is False
        assert "ZSTREAM" not in row["reason"]  # it was not measured, so that sentence is left out
    several = judged(sparse=(1.0, 1.5), dense=(2.5, 4.0))["reason"].iloc[0]
    assert "create 0.75 (sparse), 2.00 (dense) per event" in several


def test_sentences_quote_values_shares_and_partial_matches() -> None:
    factors = {"sparse": (1.0, 1.5), "dense": (2.5, 4.0)}
    of_run = numbers(STUDY.key, {CLAIM.results: in_regimes(**factors)})
    found = quotable(ledger_of(**factors), of_run)
    one = "Gain {dp-ld-over-efreq-conjunction} ({dp-ld-over-efreq-conjunction|partial matches})."
    assert filled([one], found, regime="dense") == "Gain 2.50 (4.00)."
    assert filled(["{dp-ld-over-efreq|percent}"], found, regime="sparse") == "100 %"
    assert filled(["Known {dp-ld-saves}.", "{dp-ld-saves} and {same-order}."], found) == (
        "Known 1.50 (sparse), 4.00 (dense)."
    )


def test_a_claim_on_work_and_time_is_quoted_by_what_it_is_about() -> None:
    setting = dict.fromkeys(("engine", "predicates"), "")
    found = pd.DataFrame(
        {"id": "gain", "regime": regime, **setting, "basis": basis, "value": value}
        for regime, values in (("dense", (5.0, 2.0)), ("sparse", (4.0, 1.0)))
        for basis, value in zip(("updates", "time"), values, strict=True)
    )
    assert filled(["{gain} times"], found) == "2.00 (dense), 1.00 (sparse) times"
    assert filled(["{gain} times"], found, regime="dense") == "2.00 times"


def test_values_have_three_digits_and_a_minus_sign() -> None:
    assert [shown_value(value) for value in (0.0501, -0.5, 7.6, 180000.0, math.inf)] == [
        "0.0501", "−0.50", "7.60", "180 k", "?",
    ]  # fmt: skip
    assert [shown_value(value) for value in (999.9, 9_999.0, 999_900.0, 8.24e10, 3.01e18)] == [
        "1,000", "10 k", "1 M", "82.4 G", "3.01·10¹⁸",
    ]  # fmt: skip
