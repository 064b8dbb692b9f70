"""Notebooks → pages that open offline, and an index: ``cepbench report build``."""
