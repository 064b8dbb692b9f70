"""[mei2009]_, section 6: plans of ZStream's engine over streams of chosen rates and selectivities."""

from pathlib import Path

from cepbench.experiments.studies.study import Study

STUDY = Study(
    "mei2009",
    Path(__file__).parent,
    notebooks=(
        "figures_8_9", "figures_10_11", "figures_12_13_table_3", "figure_14", "figures_15_16",
        "figure_17_tables_4_5", "operators",
    ),
    generators=("left-deep", "right-deep", "bushy", "inner", "NFA", "ZSTREAM", "NSEQ", "NEG",
        "adaptive", "OR", "SEQ", "AND", "conditions", "no condition", "hashing", "nested loops"),
    engines=("zstream, as given", "zstream, making matches", "zstream"),
)  # fmt: skip
