"""One package a paper, by its citation key; :mod:`cepbench.experiments.studies.registry` lists them."""
