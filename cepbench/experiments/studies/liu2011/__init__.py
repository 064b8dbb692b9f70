"""[liu2011]_, section VII: queries that reuse each other's matches along patterns and concepts."""

from pathlib import Path

from cepbench.experiments.studies.study import Study

STUDY = Study(
    "liu2011",
    Path(__file__).parent,
    notebooks=(
        "figures_13_14_15",
        "figure_16",
        "figure_17",
        "figure_18",
        "figure_19",
        "scale",
        "drift",
        "evacuation",
    ),
    engines=("hierarchical-stacks",),
)
