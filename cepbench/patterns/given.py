"""A pattern as users hand it in: the object, or its text."""

from __future__ import annotations

from typing import Any

from cepbench.arguments import kind_of
from cepbench.errors import PatternError
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse


def pattern_from(given: Any) -> Pattern:
    """The pattern that somebody means: a text is parsed.

    Raises
    ------
    PatternError
        If it is neither a pattern nor a text, or the text is no sentence of the language.
    """
    if isinstance(given, Pattern):
        return given
    if isinstance(given, str):
        return parse(given)
    raise PatternError(
        f"pattern must be a Pattern or its text, not {kind_of(given)}; write "
        'cep.parse("PATTERN SEQ(A a, B b) WITHIN 5 minutes"), and see to the order of the arguments'
    )
