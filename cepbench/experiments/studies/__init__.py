"""One package a paper, by its citation key; :mod:`cepbench.experiments.studies.registry` lists them.

Unless a function says otherwise, ``results`` is a table as
:func:`cepbench.experiments.sweeps.store.read_results` returns it, ``runs`` one as
:func:`cepbench.experiments.studies.runs.figure_runs` returns it, and ``seed`` and ``resamples`` are those of a
bootstrap.
"""
