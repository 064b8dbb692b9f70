"""Whether a pattern can have a match at all."""

from __future__ import annotations

from cepbench.patterns.model import Pattern


def check_satisfiable(pattern: Pattern) -> None:
    """To come."""
