"""One package a paper, by its citation key; :mod:`cepbench.studies.registry` lists them."""
