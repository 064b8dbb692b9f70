"""[qi2014]_, section 6: aggregates over sequences with and without their matches, alone and shared."""

from pathlib import Path

from cepbench.experiments.studies.study import Study

STUDY = Study(
    "qi2014",
    Path(__file__).parent,
    notebooks=("figure_12", "figure_13", "figure_14", "figure_15", "figure_16", "expiry"),
)
