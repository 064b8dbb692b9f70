"""Tables of the ledger for readers."""

from __future__ import annotations

import re
from functools import cache
from html import unescape

import pandas as pd

from cepbench.experiments.studies.kolchinsky2018 import STUDY
from cepbench.presentation.reporting.claims import claims
from cepbench.presentation.reporting.ledger import (
    LOOKS,
    for_readers,
    ledger_for_readers,
    measured_text,
    reasons_for_readers,
)
from cepbench.presentation.reporting.states import FAILS, HOLDS, PARTLY, STATES
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


def test_work_and_time_are_columns_and_a_test_in_a_setting_is_a_line() -> None:
    html = ledger_for_readers(verdicts()).to_html()
    for head in ("claim", "verdict", "in work", "in time", "why", "check"):
        assert f">{head}</th>" in html, head
    assert f'aria-label="{FAILS}"' in html and f'aria-label="{HOLDS}"' in html
    assert "partial matches: wholly below 1.25; throughput: wholly below 2.16 or wholly " in html
    assert re.search(r"dense 2\.50[^;]*; 12 patterns", html)
    assert "sparse 1.00; 12 patterns<br>" in html  # no spread, so no interval
    assert f">{PARTLY}</td>" in html
    assert 'id="claim-dp-ld-over-efreq-conjunction"' in html


def test_a_short_table_has_neither_checks_nor_anchors() -> None:
    html = ledger_for_readers(verdicts(), short=True).to_html()
    assert "fails if" not in html and 'id="claim-' not in html


def test_what_was_not_measured_says_why() -> None:
    row = next(ledger(STUDY.key, {}).itertuples())
    assert measured_text(row) == "no data: its notebook did not run"
    html = ledger_for_readers(ledger(STUDY.key, {})).to_html()
    assert "No data: its notebook did not run." in html
    for raw in (">nan<", ">None<", ">&lt;NA&gt;<"):
        assert raw not in html


def test_bounds_and_what_is_left_out_are_counted() -> None:
    row = verdicts().assign(bounds=2, left_out=1).iloc[1]
    assert measured_text(row).endswith("12 patterns, 2 bounds, 1 left out")


def test_reasons_stand_once_with_their_claims() -> None:
    table = verdicts()
    html = reasons_for_readers(table).to_html()
    assert CLAIM.statement in html and table["reason"].iloc[0] in unescape(html)
    assert CLAIM.statement not in reasons_for_readers(table.assign(reason="")).to_html()


def test_tables_for_readers_are_escaped_and_have_no_raw_missing_values() -> None:
    html = ledger_for_readers(verdicts().assign(why="<b>why</b>")).to_html()
    assert "&lt;b&gt;why" in html and "<b>why" not in html
    ratios = pd.DataFrame({"ratio": ["<i>"], "value": [1.0], "low": [0.9], "high": [1.1],
                           "size": [pd.NA]})  # fmt: skip
    html = for_readers(ratios).to_html()
    assert "&lt;i&gt;" in html and "1.00 (0.90 to 1.10)" in html and ">all<" in html
