"""What every study keeps: different claims about each of its pages, and pages that name their sweeps."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from cepbench.experiments.studies.registry import STUDIES
from cepbench.experiments.studies.study import Study
from cepbench.presentation.reporting.claims import Claim, claims
from tests.experiments.studies.agrawal2008 import test_agrawal2008_sweeps as agrawal2008
from tests.experiments.studies.liu2011 import test_liu2011_sweeps as liu2011
from tests.experiments.studies.mei2009 import test_mei2009_sweeps as mei2009
from tests.experiments.studies.qi2014 import test_qi2014_sweeps as qi2014

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"
EVERY_STUDY = pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.key)

#: Pages beyond the papers, about which they claim nothing.
BEYOND = {"cost_models", "evacuation", "figure_7_extended", "robustness", "when_plans_matter"}


@EVERY_STUDY
def test_different_claims_are_about_every_page_and_its_figures(study: Study) -> None:
    found = claims(study)
    assert len({claim.id for claim in found}) == len(found) >= 20
    assert len({claim.statement for claim in found}) == len(found)
    assert {claim.results for claim in found} == {*study.notebooks} - BEYOND
    for claim in found:
        numbers = re.findall(r"\d+[a-z]?", claim.results)
        assert not numbers or {claim.figure.lower(), claim.figure.rstrip("abcd")} & {*numbers}


#: Study and page → what its results have as pattern sets, and as generators. The claims of
#: kolchinsky2018 are in ``test_claims``, those of operators in ``test_mei2009_operators``.
MEASURED = {
    "agrawal2008": lambda page: (agrawal2008.settings_of(page), agrawal2008.series_of(page)),
    "liu2011": lambda page: (liu2011.settings(page), liu2011.SERIES),
    "mei2009": lambda page: (mei2009.settings_of(page), mei2009.plans_of(page)),
    "qi2014": qi2014.settings_and_series,
}


@pytest.mark.parametrize(
    ("study", "claim"),
    [
        pytest.param(study, claim, id=f"{study}-{claim.id}")
        for study in MEASURED
        for claim in claims(STUDIES[study])
        if claim.results != "operators"
    ],
)
def test_a_claim_is_about_what_its_page_measures(study: str, claim: Claim) -> None:
    settings, series = MEASURED[study](claim.results)
    for test in claim.tests:
        for side in (test.check.over, test.check.under):
            assert side is None or set(side.generators) <= series
        assert set(test.check.pattern_sets) <= settings


@EVERY_STUDY
def test_pages_name_the_sweeps_that_they_read(study: Study) -> None:
    sweeps = {path.stem for path in (study.folder / "sweeps").glob("*.toml")}
    read = set()
    for name in study.notebooks:
        notebook = nbformat.read(NOTEBOOKS / study.key / f"{name}.ipynb", as_version=4)
        text = "".join(cell.source for cell in notebook.cells)
        named = {each.removeprefix(f"{study.key}/") for each in notebook.metadata.get("sweeps", [])}
        written = {each for each in sweeps if f'"{study.key}/{each}"' in text}
        in_a_loop = f'f"{study.key}/' in text
        assert named == written or (named and in_a_loop), name
        read |= named
    # The drift of mei2009 is read by segment.
    assert read | {"drift", "drift_columnar"} & sweeps == sweeps
