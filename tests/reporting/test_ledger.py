"""The ledger: every claim can hold, fail and be left open, on tables made for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cepbench.analysis.checks import (
    CHECK_KINDS,
    DERIVED,
    FEWEST,
    ClaimCheck,
    Measured,
    Selection,
    measure,
)
from cepbench.errors import ReportError
from cepbench.planners.registry import PLAN_GENERATORS
from cepbench.reporting.ledger import (
    FAILS,
    HOLDS,
    OPEN,
    VERDICTS,
    Claim,
    claims,
    counts_of,
    for_readers,
    judge,
    ledger,
    ledger_for_readers,
    reasons_for_readers,
)
from cepbench.studies.kolchinsky2018 import STUDY
from cepbench.sweeps.cells import LIMIT, OK
from cepbench.sweeps.workload import PATTERN_SETS

CLAIMS = claims(STUDY)
EVERY_CLAIM = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
PATTERNS = 6  # of each size in each set


def sides(check: ClaimCheck) -> list[Selection]:
    return [side for side in (check.over, check.under, *(check.than or ())) if side]


def table_measuring(
    claim: Claim, value: float, jitter: float = 0.0, patterns: int = PATTERNS
) -> pd.DataFrame:
    """Results in which the claim's check measures ``value``, exactly without ``jitter``."""
    check = claim.check
    sets = check.pattern_sets or tuple(PATTERN_SETS)
    sizes = tuple(dict.fromkeys([*(check.sizes or (3, 7)), *check.needed_sizes]))
    rng = np.random.default_rng(1)
    rows = []
    for pattern_set in sets:
        for size in sizes:
            for number in range(patterns):
                noise = jitter * (-1) ** number
                # The cost of one pattern's plans, which the checks of Figure 6 follow.
                level = float(rng.normal())
                for generator, alpha, strategy, log in runs(check, value, size, level, noise):
                    rows.append(
                        {
                            "pattern_set": pattern_set,
                            "size": size,
                            "pattern_id": f"{pattern_set}-{size}-{number}",
                            "generator": generator,
                            "alpha": alpha,
                            "strategy": strategy,
                            "status": OK,
                            **columns(check, log, level),
                        }
                    )
    return pd.DataFrame(rows)


def runs(
    check: ClaimCheck, value: float, size: int, level: float, noise: float
) -> list[tuple[str, float, str, float]]:
    """Algorithm, alpha, strategy and the metric's logarithm, once for each run that is needed."""
    found: dict[tuple[str, float, str], float] = {}
    for rank, side in enumerate(sides(check)):
        for generator in side.generators:
            key = (generator, side.alpha or 0.0, side.strategy or "any")
            found[key] = log_of(check, value, size, level, noise) if rank == 0 else 0.0
    return [(*key, log) for key, log in found.items()]


def log_of(check: ClaimCheck, value: float, size: int, level: float, noise: float) -> float:
    """What the first side's runs have; the others have 0."""
    match check.kind:
        case "trend":
            return (math.log(value) + noise) * size
        case "exponent":
            return (value + noise) * level
        case "rank_correlation":
            return math.copysign(1, value) * level
        case "share_equal":
            return 0.0 if value > 0.5 else 1.0
        case _:
            return math.log(value) + noise


def columns(check: ClaimCheck, log: float, level: float) -> Mapping[str, float]:
    if check.metric in DERIVED:
        needed = DERIVED[check.metric][0]
        falls = check.metric == "stream_throughput"  # as the time rises
        first = log if needed[0] == "plan_log_cost" else math.exp(-log if falls else log)
        return {needed[0]: first, **dict.fromkeys(needed[1:], 1.0)}
    return {check.metric: math.exp(log), "log_cost": level}


def inside(claim: Claim) -> float:
    if claim.check.kind == "rank_correlation":
        return 1.0 if claim.low > 0 else -1.0
    if claim.check.kind == "share_equal":
        return 1.0
    if claim.low > -math.inf and claim.high < math.inf:
        return (claim.low + claim.high) / 2
    return claim.low + abs(claim.low) if claim.low > -math.inf else claim.high - abs(claim.high) / 2


def outside(claim: Claim) -> list[float]:
    """One value beyond every end of the range."""
    if claim.check.kind == "rank_correlation":
        return [-inside(claim)]
    if claim.check.kind == "share_equal":
        return [0.0]
    values = []
    if claim.low > -math.inf:
        values.append(claim.low * 0.9)
    if claim.high < math.inf:
        values.append(claim.high + abs(claim.high) * 0.1)
    return values


def verdict_on(claim: Claim, table: pd.DataFrame | None) -> tuple[str, str]:
    return judge(measured_on(claim, table), claim.low, claim.high)


def measured_on(claim: Claim, table: pd.DataFrame | None) -> Measured:
    return measure(claim.check, table, resamples=100)


def test_claims_are_different_ones_about_every_figure() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS) >= 20
    assert len({claim.statement for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.figure for claim in CLAIMS} == {"3", "4", "5", "6", "7", "8", "9"}
    assert {claim.section for claim in CLAIMS} == {"6.3"}


@EVERY_CLAIM
def test_a_claim_is_about_what_exists(claim: Claim) -> None:
    notebooks = Path(__file__).resolve().parents[2] / "notebooks"
    assert (notebooks / STUDY.key / f"{claim.results}.ipynb").is_file()
    for side in sides(claim.check):
        assert set(side.generators) <= set(PLAN_GENERATORS)
    assert set(claim.check.pattern_sets) <= set(PATTERN_SETS)
    assert claim.check.kind in CHECK_KINDS
    assert claim.low < claim.high
    assert "“" not in claim.statement and '"' not in claim.statement  # ours, no quotation


@EVERY_CLAIM
def test_a_claim_holds_where_its_value_is_measured(claim: Claim) -> None:
    measured = measured_on(claim, table_measuring(claim, inside(claim)))
    assert measured.problem == ""
    assert measured.value == pytest.approx(inside(claim), rel=1e-6)
    assert judge(measured, claim.low, claim.high) == (HOLDS, "")


@EVERY_CLAIM
def test_a_claim_fails_beyond_every_end_of_its_range(claim: Claim) -> None:
    assert outside(claim)
    for value in outside(claim):
        assert verdict_on(claim, table_measuring(claim, value)) == (FAILS, ""), value


@EVERY_CLAIM
def test_a_claim_is_left_open_where_nothing_was_measured(claim: Claim) -> None:
    table = table_measuring(claim, inside(claim))
    assert verdict_on(claim, None) == (OPEN, "its notebook did not run")
    of_plans = claim.check.kind in ("exponent", "rank_correlation")
    absent = claim.check.over.generators[: None if of_plans else 1]
    assert verdict_on(claim, table[~table["generator"].isin(absent)])[0] == OPEN
    # Points of a fit have no status: they were all run.
    unfinished = {claim.check.metric: 0.0} if of_plans else {"status": LIMIT}
    assert verdict_on(claim, table.assign(**unfinished))[0] == OPEN
    assert verdict_on(claim, table.assign(size=99))[0] == (
        HOLDS if not (claim.check.sizes or claim.check.needed_sizes)
        and claim.check.kind != "trend" else OPEN
    )  # fmt: skip


@EVERY_CLAIM
def test_a_claim_is_left_open_on_few_patterns(claim: Claim) -> None:
    if claim.check.kind == "maximum":
        return  # about every run, and no average
    table = table_measuring(claim, inside(claim), patterns=1)
    few = table[table["pattern_id"].isin(table["pattern_id"].unique()[: FEWEST - 1])]
    verdict, why = verdict_on(claim, few)
    assert verdict == OPEN and why


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.check.kind in ("ratio", "trend")],
                         ids=lambda claim: claim.id)  # fmt: skip
def test_a_claim_is_left_open_where_patterns_contradict_each_other(claim: Claim) -> None:
    end = claim.low if claim.low > -math.inf else claim.high
    verdict, why = verdict_on(claim, table_measuring(claim, end, jitter=1.0))
    assert verdict == OPEN
    assert why.startswith("the interval contains ")


def results(ratios: list[float], **more: object) -> pd.DataFrame:
    """DP-LD's throughput is ``ratio`` times EFREQ's, a pattern a ratio."""
    return pd.DataFrame(
        [
            {"pattern_set": "sequence", "size": 3, "pattern_id": str(number), "status": OK,
             "generator": name, "events_per_second": value, **more}
            for number, ratio in enumerate(ratios)
            for name, value in (("EFREQ", 100.0), ("DP-LD", 100.0 * ratio))
        ]
    )  # fmt: skip


GAIN = ClaimCheck("ratio", "events_per_second", Selection(("DP-LD",)), Selection(("EFREQ",)))


def test_a_ratio_is_the_geometric_mean_over_patterns() -> None:
    measured = measure(GAIN, results([1.0, 4.0] * 5))
    assert measured.value == pytest.approx(2.0)
    assert 1.0 < measured.low < 2.0 < measured.high < 4.0
    assert (measured.patterns, measured.left_out) == (10, 0)


def test_repetitions_count_once_and_one_that_failed_leaves_the_pattern_out() -> None:
    table = pd.concat([results([2.0] * 8), results([3.0] * 8), results([2.0] * 8)])
    assert measure(GAIN, table).value == pytest.approx(2.0)
    table.loc[(table["pattern_id"] == "3") & (table["events_per_second"] == 300.0), "status"] = (
        LIMIT
    )
    measured = measure(GAIN, table)
    assert (measured.patterns, measured.left_out) == (7, 1)


def test_more_patterns_left_out_than_counted_decide_nothing() -> None:
    table = results([2.0] * 12)
    slow = table["generator"] == "EFREQ"
    for failing in (6, 7):
        table.loc[slow & (table["pattern_id"].astype(int) < failing), "status"] = LIMIT
        measured = measure(GAIN, table)
        assert (measured.patterns, measured.left_out) == (12 - failing, failing)
        if failing == 6:
            assert measured.value == pytest.approx(2.0) and not measured.problem
        else:
            assert "7 patterns were left out, more than the 5 that count" in measured.problem
            assert math.isnan(measured.value) and judge(measured, 1.0, 3.0)[0] == OPEN


def test_the_level_of_a_set_is_no_trend() -> None:
    """Conjunctions gain ten times as much, and are of larger sizes; each set falls with the size."""
    table = pd.concat(
        [
            results([10.0**which * 2.0 ** -(size - first)] * 6).assign(pattern_set=name, size=size)
            for which, (name, first) in enumerate({"sequence": 3, "conjunction": 6}.items())
            for size in range(first, first + 3)
        ]
    )
    table["pattern_id"] = table["pattern_id"] + "-" + table["size"].astype(str)
    measured = measure(ClaimCheck("trend", GAIN.metric, GAIN.over, GAIN.under), table)
    assert measured.value == pytest.approx(0.5)
    assert measured.low == pytest.approx(0.5) and measured.high == pytest.approx(0.5)


def test_plans_that_cost_nearly_the_same_are_not_equal() -> None:
    rows = [
        {"size": 5, "pattern_id": str(number), "generator": name, "status": OK,
         "plan_log_cost": 7.0 + (by if name == "GREEDY" else 0.0)}
        for number, by in enumerate([0.0, 1e-12, 1e-3, 0.05] * 3)
        for name in ("GREEDY", "DP-LD")
    ]  # fmt: skip
    check = ClaimCheck("share_equal", "plan_cost", Selection(("GREEDY",)), Selection(("DP-LD",)))
    assert measure(check, pd.DataFrame(rows)).value == pytest.approx(0.5)


def test_across_sets_the_highest_counts() -> None:
    table = pd.concat(
        [results([2.0] * 6), results([8.0] * 6).assign(pattern_set="conjunction"),
         results([3.0] * 6).assign(pattern_set="kleene")]
    )  # fmt: skip
    for take, value in {"lowest": 2.0, "median": 3.0, "highest": 8.0}.items():
        check = ClaimCheck("ratio", "events_per_second", GAIN.over, GAIN.under,
                      across="pattern_set", take=take)  # fmt: skip
        assert measure(check, table).value == pytest.approx(value)


def test_a_run_that_did_not_end_leaves_a_maximum_without_bound() -> None:
    table = pd.DataFrame(
        [
            {"size": 22, "pattern_id": str(number), "generator": "DP-B", "plan_seconds": seconds,
             "status": OK if seconds < 4 else "time_budget"}
            for number, seconds in enumerate([1.0, 2.0, 3.0, 4.0])
        ]
    )  # fmt: skip
    check = ClaimCheck("maximum", "plan_seconds", Selection(("DP-B",)))
    measured = measure(check, table)
    assert (measured.value, measured.low, measured.high) == pytest.approx((3.0, 3.0, math.inf))
    assert measured.left_out == 1
    assert judge(measured, -math.inf, 2.5)[0] == FAILS
    assert judge(measured, -math.inf, 3.5) == (OPEN, "1 runs did not end")
    assert judge(measured, 2.5, math.inf)[0] == HOLDS


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [((1.5, 2.0), HOLDS), ((1.3, 2.7), HOLDS), ((0.9, 1.1), FAILS), ((3.0, 4.0), FAILS),
     ((1.0, 1.5), OPEN), ((2.0, 3.0), OPEN), ((0.5, 9.0), OPEN), ((math.nan, math.nan), OPEN)],
)  # fmt: skip
def test_the_whole_interval_decides(interval: tuple[float, float], verdict: str) -> None:
    low, high = interval
    found, why = judge(Measured(1.0, low, high, 9), 1.3, 2.7)
    assert found == verdict
    assert bool(why) == (verdict == OPEN)


def test_the_ledger_has_a_row_a_claim_with_its_verdict_and_reason() -> None:
    good = CLAIMS[0]
    tables = {good.results: table_measuring(good, inside(good))}
    table = ledger("kolchinsky2018", tables)
    assert list(table["id"]) == [claim.id for claim in CLAIMS]
    assert set(table["verdict"]) <= set(VERDICTS)
    own = table.set_index("id").loc[good.id]
    assert own["verdict"] == HOLDS and own["why"] == ""
    assert (table.loc[table["verdict"] == OPEN, "why"] != "").all()
    assert sum(counts_of(table).values()) == len(CLAIMS)


def test_fewer_partial_matches_are_shown_beside_throughput() -> None:
    claim = next(claim for claim in CLAIMS if claim.id == "dp-ld-over-efreq-conjunction")
    made = table_measuring(claim, inside(claim))
    saving = made.assign(
        partial_matches_created=[50.0 if name == "DP-LD" else 150.0 for name in made["generator"]]
    )
    table = ledger("kolchinsky2018", {claim.results: saving}).set_index("id")
    assert table.loc[claim.id, "saved"] == pytest.approx(3.0)
    assert np.isnan(table.loc["join-orders-memory", "saved"])
    assert "3.00 (3.00 to 3.00)" in ledger_for_readers(table.reset_index()).to_html()


def test_the_interval_of_saved_partial_matches_is_that_of_the_ratio_s_inverse() -> None:
    claim = next(claim for claim in CLAIMS if claim.id == "dp-ld-over-efreq-conjunction")
    made = table_measuring(claim, inside(claim))
    factors = made["pattern_id"].rank(method="dense").to_numpy()
    ours = (made["generator"] == "DP-LD").to_numpy()
    made["partial_matches_created"] = np.where(ours, 100.0, 100.0 * (1 + factors / 10))
    row = ledger("kolchinsky2018", {claim.results: made}).set_index("id").loc[claim.id]
    expected = np.exp(np.mean(np.log(1 + factors[ours] / 10)))
    assert row["saved"] == pytest.approx(expected)
    assert 1 < row["saved_low"] < row["saved"] < row["saved_high"] < 1 + factors.max() / 10


def test_reasons_are_told_unless_the_claim_holds() -> None:
    claim = next(claim for claim in CLAIMS if claim.id == "dp-ld-over-efreq-conjunction")
    assert claim.reason is not None
    for value, told in ((inside(claim), False), (1.0, True)):
        table = ledger("kolchinsky2018", {claim.results: table_measuring(claim, value)}).set_index(
            "id"
        )
        assert (claim.reason.title in table.loc[claim.id, "why"]) == told
        assert (claim.reason.text == table.loc[claim.id, "reason"]) == told
        html = reasons_for_readers(table.loc[[claim.id]].reset_index()).to_html()
        assert (claim.statement in html) == told


def test_the_table_for_readers_escapes_and_has_no_raw_missing_values() -> None:
    table = ledger("kolchinsky2018", {})
    table.loc[0, "why"] = "<b>why</b>"
    html = ledger_for_readers(table).to_html()
    assert "&lt;b&gt;why" in html and "<b>why" not in html
    for raw in (">nan<", ">None<", ">&lt;NA&gt;<"):
        assert raw not in html
    ratios = pd.DataFrame({"ratio": ["<i>"], "value": [1.0], "low": [0.9], "high": [1.1],
                           "size": [pd.NA]})  # fmt: skip
    html = for_readers(ratios).to_html()
    assert "&lt;i&gt;" in html and "1.00 (0.90 to 1.10)" in html and ">all<" in html


WHOLE = """
[[claim]]
id = "x"
figure = "3"
section = "6.3"
statement = "s"
kind = "ratio"
results = "figures_3_4_5"
metric = "events_per_second"
over = { generators = ["DP-LD"] }
under = { generators = ["EFREQ"] }
expected = { from = 1.0 }
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("expected = { from = 1.0 }", "expected = {}"), "cannot fail"),
        (("expected = { from = 1.0 }", ""), "has no 'expected'"),
        (('kind = "ratio"', 'kind = "rato"'), "no kind 'rato'; there are ratio"),
        (("section", "sektion"), "unknown key 'sektion'"),
        (("", WHOLE), "two claims 'x'"),
    ],
)
def test_a_ledger_with_a_mistake_says_which(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    path = tmp_path / "ledger.toml"
    study = replace(STUDY, folder=tmp_path)
    text = WHOLE + change[1] if not change[0] else WHOLE.replace(*change)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ReportError, match=message):
        claims(study)
