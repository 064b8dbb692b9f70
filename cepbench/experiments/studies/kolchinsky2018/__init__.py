"""[kolchinsky2018]_, section 6: nine plan generators over random patterns of stock prices."""

from pathlib import Path

from cepbench.experiments.studies.study import Study

STUDY = Study(
    "kolchinsky2018",
    Path(__file__).parent,
    notebooks=(
        "figures_3_4_5", "figure_6", "figure_7", "figure_8", "figure_9", "figure_7_extended",
        "when_plans_matter", "robustness", "cost_models",
    ),
    # Section 6.1.
    generators=(
        "TRIVIAL", "EFREQ", "GREEDY", "II-RANDOM", "II-GREEDY", "DP-LD",
        "ZSTREAM", "ZSTREAM-ORD", "DP-B",
    ),
    engines=("event by event",),
)  # fmt: skip
