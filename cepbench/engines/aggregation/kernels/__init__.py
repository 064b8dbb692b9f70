"""Kernels of aggregation, a package for each method."""
