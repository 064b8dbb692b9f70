"""Embeddings of a sequence in a more specific one, for sequences of plain items only."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

from cepbench.patterns.model import (
    Aggregate,
    Attribute,
    Clause,
    Expression,
    Kind,
    Operator,
    Pattern,
)


def embeddings(general: Pattern, specific: Pattern, hierarchy: Any) -> tuple[tuple[int, ...], ...]:
    """Each way in which a query is a part of a more specific one.

    Parameters
    ----------
    general, specific : Pattern
    hierarchy : ConceptHierarchy or None

    Returns
    -------
    tuple of tuple of int
        The places of the general query's items among those of the specific one.
    """
    if not all(map(_is_plain, (general, specific))):
        return ()
    if general.window.length < specific.window.length:
        return ()
    if not set(general.equivalences) <= set(specific.equivalences):
        return ()
    known = {_text(clause, {}) for clause in specific.conditions}
    found = []
    for places in combinations(range(len(specific.positive)), len(general.positive)):
        pairs = [(g, specific.positive[k]) for g, k in zip(general.positive, places, strict=True)]
        names = {g.name: s.name for g, s in pairs}
        above = all(g.type == s.type or _is_above(hierarchy, g.type, s.type) for g, s in pairs)
        if above and known.issuperset(_text(clause, names) for clause in general.conditions):
            found.append(places)
    return tuple(found)


def change_of(general: Pattern, specific: Pattern, embedding: tuple[int, ...]) -> str:
    """In what two queries differ: pattern, concept, both or condition."""
    concept = any(
        g.type != specific.positive[k].type
        for g, k in zip(general.positive, embedding, strict=True)
    )
    if len(general.variables) == len(specific.variables):
        return "concept" if concept else "condition"
    return "both" if concept else "pattern"


def _is_plain(pattern: Pattern) -> bool:
    kinds = {variable.kind for variable in pattern.variables}
    return (
        kinds == {Kind.PLAIN}
        and pattern.operator is Operator.SEQ
        and pattern.structure.depth == 1
        and pattern.strategy.name == "any"
        and pattern.output == "all"
    )


def _is_above(hierarchy: Any, general: str | None, specific: str | None) -> bool:
    return general is None or (hierarchy is not None and hierarchy.is_a(specific, general))


def _text(clause: Clause, names: dict[str, str]) -> frozenset[str]:
    """A condition as texts of its comparisons, with other names of the variables."""

    def renamed(term: Attribute | Aggregate) -> Expression:
        assert isinstance(term, Attribute)  # aggregates are over sets of events
        return replace(term, variable=names.get(term.variable, term.variable))

    return frozenset(map(str, clause.with_terms(renamed).comparisons))
