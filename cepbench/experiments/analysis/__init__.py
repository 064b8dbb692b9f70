"""Analysis of results: summaries, ratios, comparisons of sweeps, checks of claims.

Everywhere ``results`` is a table as :func:`cepbench.experiments.sweeps.store.read_results` returns it, and
``seed`` and ``resamples`` are those of a bootstrap.
"""
