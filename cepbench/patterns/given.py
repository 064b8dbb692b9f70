"""Pattern arguments: a Pattern or its text."""

from __future__ import annotations

from typing import Any

from cepbench.arguments import comes_from, kind_of
from cepbench.errors import PatternError, UnsupportedPatternError
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.patterns.row_counterpart import counterpart
from cepbench.patterns.row_pattern import RowPattern


def pattern_from(given: Any, *, aggregates: bool = False) -> Pattern:
    """The pattern of an argument, which may have AGG if ``aggregates``; a text is parsed.

    Raises PatternError if it is neither a pattern nor a text, or the text is not a valid pattern;
    UnsupportedPatternError if it has AGG and may not.
    """
    if isinstance(given, str):
        given = parse(given)
    if isinstance(given, Pattern):
        if given.aggregates and not aggregates:
            raise UnsupportedPatternError(
                f"AGG {given.aggregates[0]} is over all matches: cep.aggregate computes it; for the "
                "matches use pattern.without_aggregate()"
            )
        return given
    if comes_from(given, "cepbench", "Workload"):
        raise PatternError(
            "pattern must be a single Pattern, not a Workload; give one of its queries, "
            "workload.patterns[...]"
        )
    if isinstance(given, RowPattern):
        counterpart(given)  # which names the clause that has none
        raise PatternError(
            "pattern must be a Pattern, and this RowPattern runs by cep.evaluate on a whole stream; "
            "cep.counterpart(pattern) is the Pattern that says the same: give that"
        )
    raise PatternError(
        f"pattern must be a Pattern or its text, not {kind_of(given)}; write "
        'cep.parse("PATTERN SEQ(A a, B b) WITHIN 5 minutes"), and check the order of the arguments'
    )
