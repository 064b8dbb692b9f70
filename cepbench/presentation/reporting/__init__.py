"""Notebooks → pages that open offline, and an index. ``python -m cepbench.presentation.reporting`` runs it."""
