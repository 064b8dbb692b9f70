"""Compiled searches for plans over the variables 0 … n−1.

In all of them ``terms`` is the cost to minimize, in logarithms (:mod:`cepbench.planning.kernels.terms`),
``last`` the index of a variable, negative for none, and a search ends after ``most`` steps or at the
``deadline`` on the clock of :func:`cepbench.kernels.clock.now`. Arrays of numbers are float64.
"""
