"""[agrawal2008]_, section 6: automata with runs apart, merged and backtracking, on a stock ticker."""

from pathlib import Path

from cepbench.experiments.studies.study import Study

STUDY = Study(
    "agrawal2008",
    Path(__file__).parent,
    notebooks=(
        "automaton", "figure_8a_table_2", "figure_8b_8c", "figure_8d", "figure_8e", "figure_8f",
        "figure_8g_table_3", "price_increase",
    ),
)  # fmt: skip
