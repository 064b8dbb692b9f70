"""Notebooks → pages that open offline, and an index. ``python -m cepbench.reporting`` runs it."""
