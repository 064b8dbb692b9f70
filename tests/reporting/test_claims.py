"""The paper's claims: each can come out right, wrong, undecided and not measured."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from cepbench.experiments.cells import LIMIT, OK, results_frame
from cepbench.planners.registry import PLAN_GENERATORS
from cepbench.reporting.claims import (
    CLAIMS,
    COMPARABLE,
    FEWEST,
    Claim,
    compare_with_paper,
    for_readers,
    gains_by_size,
    readable,
)


def name_of(claim: Claim) -> str:
    size = "" if claim.size is None else f"-{claim.size}"
    sets = "+".join(claim.pattern_sets)
    return f"{claim.figure}-{claim.metric}-{claim.algorithm}-{claim.baseline}{size}-{sets}"


def results_with(
    claim: Claim, ratios: list[float], algorithm: str | None = None, status: str = OK
) -> pd.DataFrame:
    """One pattern a ratio, in each pattern set and size: the metric is ``ratio`` against 1."""
    rows = []
    for pattern_set in ("sequence", "conjunction"):
        for size in (3, 7):
            for number, ratio in enumerate(ratios):
                values = {claim.baseline: 1_000.0, algorithm or claim.algorithm: 1_000.0 * ratio}
                for generator, value in values.items():
                    value = round(value) if claim.metric == "peak_bytes" else value
                    plans = PLAN_GENERATORS[generator].plans
                    rows.append(
                        {
                            "pattern_set": pattern_set,
                            "size": size,
                            "pattern_id": f"{pattern_set}-{size}-{number}",
                            "algorithm": generator,
                            "plans": plans,
                            "evaluator": "tree" if plans == "tree" else "lazy-nfa",
                            "repetition": 0,
                            "status": status,
                            claim.metric: value if status == OK else None,
                        }
                    )
    return results_frame(rows)


def verdicts(claim: Claim, results: pd.DataFrame) -> set[str]:
    table = compare_with_paper(results, claim.figure)
    name = {"events_per_second": "throughput", "peak_bytes": "peak memory"}[claim.metric]
    own = table[
        (table["ratio"] == f"{name}, {claim.algorithm} / {claim.baseline}")
        & (table["paper"] == claim.paper)
        & table["pattern_set"].isin(claim.pattern_sets)
        & (table["size"].isna() if claim.size is None else table["size"] == claim.size)
    ]
    assert len(own) == len(claim.pattern_sets)
    return set(own["verdict"])


def as_the_paper_has_it(claim: Claim) -> float:
    if claim.low is not None and claim.high is not None:
        return math.sqrt(claim.low * claim.high)
    return {"more": 3.0, "less": 0.4, "same": 1.0}[claim.expects]


EVERY_CLAIM = pytest.mark.parametrize("claim", CLAIMS, ids=name_of)


def test_claims_are_different_ones_about_generators_that_exist() -> None:
    assert len({name_of(claim) for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.figure for claim in CLAIMS} == {"3", "4", "5"}
    for claim in CLAIMS:
        assert {claim.algorithm, claim.baseline} <= set(PLAN_GENERATORS)
        assert (claim.low is None) == (claim.high is None)


@EVERY_CLAIM
def test_a_claim_holds_where_the_paper_s_ratio_is_measured(claim: Claim) -> None:
    ratio = as_the_paper_has_it(claim)
    around = [ratio * 0.97, ratio * 1.03] * 3
    assert verdicts(claim, results_with(claim, around)) == {"as in the paper"}


@EVERY_CLAIM
def test_a_claim_fails_where_the_opposite_is_measured(claim: Claim) -> None:
    ratio = 1 / as_the_paper_has_it(claim) if claim.expects != "same" else 2 * COMPARABLE
    expected = "differs" if claim.expects == "same" else "the other way round"
    assert verdicts(claim, results_with(claim, [ratio] * 6)) == {expected}


@EVERY_CLAIM
def test_a_claim_is_undecided_where_patterns_contradict_each_other(claim: Claim) -> None:
    found = verdicts(claim, results_with(claim, [0.1, 10.0] * 4))
    expected = "undecided" if claim.expects == "same" else "undecided: the interval holds 1"
    assert found == {expected}


@EVERY_CLAIM
def test_a_claim_that_cannot_be_measured_says_so(claim: Claim) -> None:
    generator = "TRIVIAL"  # no claim is about it
    assert generator not in (claim.algorithm, claim.baseline)
    absent = results_with(claim, [2.0, 2.0], algorithm=generator)
    assert verdicts(claim, absent) == {"not measured"}
    unfinished = results_with(claim, [2.0, 2.0], status=LIMIT)
    assert verdicts(claim, unfinished) == {"not measured"}


@EVERY_CLAIM
def test_a_claim_is_undecided_on_few_patterns(claim: Claim) -> None:
    # Over all sizes, patterns of both sizes count.
    few = FEWEST - 1 if claim.size else (FEWEST - 1) // 2
    found = verdicts(claim, results_with(claim, [as_the_paper_has_it(claim)] * few))
    assert found == {f"undecided: fewer than {FEWEST} patterns"}


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (1.1, "same direction, smaller"),
        (1.75, "as in the paper"),
        (2.65, "as in the paper"),
        (9.0, "same direction, larger"),
    ],
)
def test_a_range_of_the_paper_is_held_against_the_interval(ratio: float, verdict: str) -> None:
    claim = next(c for c in CLAIMS if c.pattern_sets == ("sequence",) and c.size is None)
    assert (claim.low, claim.high) == (1.7, 2.7)
    assert verdicts(claim, results_with(claim, [ratio] * 6)) == {verdict}


def test_less_memory_than_the_paper_s_range_counts_as_a_larger_effect() -> None:
    claim = next(c for c in CLAIMS if c.metric == "peak_bytes" and c.low == 0.65)
    found = {ratio: verdicts(claim, results_with(claim, [ratio] * 6)) for ratio in (0.3, 0.7, 0.95)}
    assert found == {
        0.3: {"same direction, larger"},
        0.7: {"as in the paper"},
        0.95: {"same direction, smaller"},
    }


def test_gains_by_size_are_geometric_means_of_pairs() -> None:
    claim = next(c for c in CLAIMS if (c.algorithm, c.baseline) == ("DP-B", "ZSTREAM"))
    gains = gains_by_size(results_with(claim, [1.0, 4.0]), "events_per_second")
    assert list(zip(gains["pattern_set"], gains["size"], strict=True)) == [
        ("sequence", 3), ("sequence", 7), ("conjunction", 3), ("conjunction", 7),
    ]  # fmt: skip
    assert list(gains["value"]) == pytest.approx([2.0] * 4)
    assert set(gains["baseline"]) == {"ZSTREAM"}  # DP-LD and EFREQ did not run


def test_tables_for_people_have_no_raw_missing_values() -> None:
    claim = CLAIMS[0]
    table = readable(compare_with_paper(results_with(claim, [2.0] * 3), claim.figure))
    texts = {str(value) for value in table.to_numpy().ravel()}
    assert not texts & {"nan", "<NA>", "None"}
    assert "2.00 (2.00 to 2.00)" in set(table["measured (95 %)"])
    assert "–" in set(table["measured (95 %)"])  # of claims about others
    assert "all" in set(table["size"])


def test_names_in_tables_for_people_are_escaped() -> None:
    table = pd.DataFrame(
        {"ratio": ["<b>mine</b>"], "value": [1.0], "low": [0.9], "high": [1.1], "size": [3]}
    )
    html = for_readers(table).to_html()
    assert "&lt;b&gt;mine&lt;/b&gt;" in html and "<b>" not in html
    assert "1.00 (0.90 to 1.10)" in html
