"""The file of a ledger: what its claims are about, and errors that say what is wrong with it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cepbench.errors import ReportError
from cepbench.experiments.analysis.checks import CHECK_KINDS, ClaimCheck, Selection
from cepbench.experiments.studies.kolchinsky2018 import STUDY
from cepbench.experiments.studies.registry import STUDIES
from cepbench.experiments.sweeps.workload import PATTERN_SETS
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.presentation.reporting.claims import (
    ARITHMETIC,
    PARTIAL_MATCHES,
    PLACEHOLDER,
    Claim,
    Reason,
    claims,
    ledger_file,
)

CLAIMS = claims(STUDY)
EVERY_CLAIM = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)


def sides(check: ClaimCheck) -> list[Selection]:
    return [side for side in (check.over, check.under, *(check.than or ())) if side]


@EVERY_CLAIM
def test_a_claim_is_about_what_exists(claim: Claim) -> None:
    for test in claim.tests:
        for side in sides(test.check):
            assert set(side.generators) <= set(PLAN_GENERATORS)
        assert set(test.check.pattern_sets) <= set(PATTERN_SETS)
        assert test.check.kind in CHECK_KINDS
        assert test.low < test.high
    assert "“" not in claim.statement and '"' not in claim.statement  # ours, no quotation


@EVERY_CLAIM
def test_claims_on_clocks_and_bytes_are_tested_on_partial_matches_first(claim: Claim) -> None:
    """But those on overheads, which are no partial matches, and on what a cost does not count."""
    bases = [test.basis for test in claim.tests]
    overheads = {"trivial-wins-contiguity", "contiguity-overhead-slight", "ii-greedy-memory"}
    assert (bases[0] == PARTIAL_MATCHES) == (
        claim.main.check.metric in ("events_per_second", "peak_bytes") and claim.id not in overheads
    )


@EVERY_CLAIM
def test_orders_and_trees_are_compared_on_one_scale_of_cost(claim: Claim) -> None:
    check = claim.main.check
    kinds = {PLAN_GENERATORS[name].kind for side in sides(check) for name in side.generators}
    if len(kinds) > 1:
        assert "plan_cost" not in check.metric
        assert check.kind not in ("exponent", "rank_correlation")


def test_one_throughput_is_meant_everywhere() -> None:
    metrics = {test.check.metric for claim in CLAIMS for test in claim.tests}
    assert not {metric for metric in metrics if "stream" in metric}


@EVERY_CLAIM
def test_patterns_are_compared_with_each_other_by_the_time_too(claim: Claim) -> None:
    """Whether a throughput counts a pattern's own events or the stream's matters for these alone."""
    check = claim.main.check
    across_patterns = check.metric == "events_per_second" and check.under is None
    assert ("seconds" in {test.check.metric for test in claim.tests}) == across_patterns


def test_printed_factors_of_averages_are_tested_on_averages() -> None:
    """And partial matches, of which the paper prints no averages, pattern by pattern."""
    averaged = {claim.id for claim in CLAIMS if claim.main.check.kind == "ratio_of_averages"}
    assert averaged == {
        "dp-ld-over-efreq-kleene", "dp-ld-over-efreq-conjunction", "dp-ld-over-efreq-other-sets",
        "dp-b-over-zstream", "join-orders-memory", "dp-b-memory", "dp-b-over-zstream-size-3",
        "dp-b-over-zstream-size-7", "dp-ld-cheaper-than-heuristics",
        "dp-b-cheaper-than-heuristics", "dp-cheaper-by-57",
    }  # fmt: skip
    kinds = {test.check.kind for claim in CLAIMS for test in claim.tests if test is not claim.main}
    assert "ratio_of_averages" not in kinds


def test_a_test_on_the_time_may_take_the_other_end() -> None:
    (claim,) = (claim for claim in CLAIMS if claim.id == "throughput-falls-with-size")
    assert [(test.basis, test.check.take, test.low, test.high) for test in claim.tests] == [
        (PARTIAL_MATCHES, "highest", -math.inf, 0.8), ("time", "lowest", 1.25, math.inf),
        ("throughput", "highest", -math.inf, 0.8),
    ]  # fmt: skip


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.key)
def test_no_number_is_typed_into_a_reason(study: object) -> None:
    file = ledger_file(study)  # type: ignore[arg-type]
    reasons = {claim.reason for claim in file.claims if claim.reason}
    sentences = [text for reason in reasons for text in (reason.title, *reason.sentences)]
    for text in (*sentences, *file.regime_line, *file.last_line):
        plain = re.sub(r"section \d+(\.\d+)?|\bq\d+\b", "", PLACEHOLDER.sub("", text))
        assert not re.search(r"\d", plain), text


def test_a_reason_says_where_it_is_shown_or_that_it_is_a_guess() -> None:
    assert (
        Reason("Data: few", (), "figures_8_9").heading
        == "Data: few (shown on the page of figures 8, 9)"
    )
    assert Reason("No more", (), ARITHMETIC).heading == "No more (by arithmetic)"
    assert Reason("Data: few", ()).heading == "Data: few (a guess)"


def test_times_in_seconds_are_the_claims_that_are_not_compared() -> None:
    for study in STUDIES.values():
        for claim in claims(study):
            check = claim.main.check
            alone = check.under is None and check.kind in ("median", "ratio", "maximum")
            in_seconds = alone and claim.main.is_timed and "percent" not in check.metric
            of_two_times = check.metric in ("over_best", "k")
            assert claim.absolute == (in_seconds and not of_two_times), claim.id


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
        (("", "[reasons.r]\ntitle = 't'\ntext = ['{y}']"), "quotes 'y'; placeholders are ids"),
        (("", "[front]\nlast = ['{x|loud}']"), "quotes 'x' as 'loud'; .* forms are percent"),
        (("", "[headlines]\ny = 'l'"), "a headline for 'y', but no such claim"),
        (("", "partial_matches = { metric = 'm' }"), "the range for partial matches has neither"),
        (("", "work = { from = 1.0 }"), "work has no 'metric'"),
        (("", "[reasons.r]\ntitle = 't'\ntext = []\nshown = 'x'"), "on 'x', which is no notebook"),
        (("", "time = { from = 1.0, tak = 'lowest' }"), "time has an unknown key 'tak'"),
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
