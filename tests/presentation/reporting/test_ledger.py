"""Tables of the ledger for readers."""

from __future__ import annotations

from functools import cache
from html import unescape

import pandas as pd

from cepbench.experiments.studies.kolchinsky2018 import STUDY
from cepbench.presentation.reporting.claims import claims
from cepbench.presentation.reporting.ledger import (
    LOOKS,
    for_readers,
    ledger_for_readers,
)
from cepbench.presentation.reporting.states import PARTLY, STATES
from cepbench.presentation.reporting.verdicts import ledger
from tests.presentation.reporting.made_results import table_measuring

CLAIM = next(claim for claim in claims(STUDY) if claim.id == "dp-ld-over-efreq-conjunction")


@cache
def verdicts() -> pd.DataFrame:
    """One claim in two regimes, one of which it holds in."""
    made = [
        table_measuring(CLAIM.main, gain).assign(
            regime=regime, evaluator="lazy-nfa", partial_matches_created=99
        )
        for regime, gain in (("sparse", 1.0), ("dense", 2.5))
    ]
    table = ledger(STUDY.key, {CLAIM.results: pd.concat(made)})
    return table[table["id"] == CLAIM.id].reset_index(drop=True)


def test_every_verdict_has_a_look_and_a_sign_of_its_own() -> None:
    assert tuple(LOOKS) == STATES
    assert len(set(LOOKS.values())) == len({sign for _, sign, _ in LOOKS.values()}) == len(STATES)


def test_a_claim_is_a_row_that_leads_to_its_numbers() -> None:
    html = ledger_for_readers(verdicts(), "../claims.html").to_html()
    for head in ("figure", "claim", "verdict", "why"):
        assert f">{head}</th>" in html, head
    link = f'href="../claims.html#kolchinsky2018-{CLAIM.id}">'
    assert link in html and html.count(CLAIM.statement) == 1 and f">{PARTLY}</td>" in html
    reason = CLAIM.reason
    assert reason and f"{reason.heading}.".lower() in unescape(html).lower()
    assert "href" not in ledger_for_readers(verdicts()).to_html()
    for raw in (">nan<", ">None<", ">&lt;NA&gt;<"):
        assert raw not in ledger_for_readers(ledger(STUDY.key, {})).to_html()


def test_tables_for_readers_are_escaped_and_have_no_raw_missing_values() -> None:
    for page in ("", "../claims.html"):
        table = verdicts().assign(title="<b>why</b>", statement="<b>what</b>")
        html = ledger_for_readers(table, page).to_html()
        assert html.count("&lt;b&gt;") == 2 and "<b>" not in html
    ratios = pd.DataFrame({"ratio": ["<i>"], "value": [1.0], "low": [0.9], "high": [1.1],
                           "size": [pd.NA]})  # fmt: skip
    html = for_readers(ratios).to_html()
    assert "&lt;i&gt;" in html and "1.00 (0.90 to 1.10)" in html and ">all<" in html
