"""What every study keeps: different claims about each of its pages, and pages that name their sweeps."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from cepbench.experiments.studies.registry import STUDIES
from cepbench.experiments.studies.study import Study
from cepbench.presentation.reporting.claims import claims

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
