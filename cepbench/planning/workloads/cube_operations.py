"""Operations that lead from a query to a more general or a more specific one [liu2011]_, section II-A."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cepbench.arguments import shown, text, whole
from cepbench.errors import (
    HierarchyError,
    PatternError,
    PatternNameError,
    UnsupportedPatternError,
    did_you_mean,
)
from cepbench.patterns.concepts import ConceptHierarchy, hierarchy_from, types_above
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import reread
from cepbench.patterns.structure import Structure
from cepbench.planning.workloads.refinement import embeddings


def pattern_drill_down(pattern: Pattern | str, place: int, item: str) -> Pattern:
    """The more specific query with another item: pattern-drill-down of [liu2011]_, section II-A.

    Parameters
    ----------
    pattern : Pattern or str
        A SEQ or AND of items.
    place : int
        That of the new item, from 1, negated ones included.
    item : str
        As the pattern language writes it: ``"D d"``, ``"NOT(D d)"``. ``[attr]`` holds for it too.

    Raises
    ------
    PatternError
        For an invalid argument, and if the result is no refinement of the pattern: a positive item next to
        a negated one splits the gap in which no event may be.

    Examples
    --------
    >>> str(pattern_drill_down("PATTERN SEQ(G g, A a, T t) WHERE [id] WITHIN 48 hours", 3, "D d"))
    'PATTERN SEQ(G g, A a, D d, T t) WHERE [id] WITHIN 48 hours'
    """
    given = _flat(pattern)
    items = list(map(str, given.structure.items))
    place = whole(place, "place", PatternError, least=1, most=len(items) + 1)
    items.insert(place - 1, text(item, "item", PatternError))
    before = f"PATTERN {given.structure}"
    after = f"PATTERN {given.structure.operator}({', '.join(items)})"
    result = reread(f"{after}{str(given).removeprefix(before)}").with_hierarchy(given.hierarchy)
    return _checked(given, result, result, given.hierarchy)


def pattern_roll_up(pattern: Pattern | str, place: int) -> Pattern:
    """The more general query without the item at a place, from 1, and the conditions on it.

    Source: pattern-roll-up of [liu2011]_, section II-A; of a SEQ or AND of items, negated ones included.

    Raises
    ------
    PatternError
        For an invalid argument, and if the pattern is no refinement of the result: without a positive item,
        the gap of a negated one next to it is wider.

    Examples
    --------
    >>> str(pattern_roll_up("PATTERN SEQ(G g, A a, D d, T t) WHERE [id] WITHIN 48 hours", 3))
    'PATTERN SEQ(G g, A a, T t) WHERE [id] WITHIN 48 hours'
    """
    given = _flat(pattern)
    items = given.variables
    place = whole(place, "place", PatternError, least=1, most=len(items))
    return _checked(given, given.without([items[place - 1]]), given, given.hierarchy)


def concept_roll_up(
    pattern: Pattern | str, hierarchy: ConceptHierarchy, levels: int = 1
) -> Pattern:
    """The more general query with types that are higher in a concept hierarchy, under this one.

    Source: concept-roll-up of [liu2011]_, section II-A. Types are ``levels`` higher, the root at most. Those
    of negated items stay, since a higher one forbids more events; so do types that the hierarchy does not
    have, and names of variables.

    Raises
    ------
    HierarchyError
        If it is not a hierarchy.
    PatternError
        For an invalid pattern or number of levels, if no type has any above it, and for patterns
        that have no refinements.

    Examples
    --------
    >>> places = ConceptHierarchy({"TX": ["D"], "OK": ["T"]})
    >>> str(concept_roll_up("PATTERN SEQ(D a, T b) WHERE [id] WITHIN 48 hours", places))
    'PATTERN SEQ(TX a, OK b) WHERE [id] WITHIN 48 hours'
    """
    given, hierarchy = _under(pattern, hierarchy)
    levels = whole(levels, "levels", PatternError, least=1)
    types = {}
    for variable in given.positive:
        if above := types_above(variable.type, hierarchy):
            types[variable.name] = above[min(levels, len(above)) - 1]
    if not types:
        raise PatternError(
            f"no positive item of {given.structure} is of a type that has another one above it in "
            "the concept hierarchy"
        )
    return _checked(given, _retyped(given, types), given, hierarchy)


def concept_drill_down(
    pattern: Pattern | str, hierarchy: ConceptHierarchy, types: Mapping[str, str]
) -> Pattern:
    """The more specific query with types that are lower in a concept hierarchy, under this one.

    Source: concept-drill-down of [liu2011]_, section II-A. ``types`` has the new type of each variable, below
    the present one; of a negated item above it, so that more events are forbidden.

    Raises
    ------
    HierarchyError
        If it is not a hierarchy, or has no such type.
    PatternError
        For an invalid pattern, an unknown variable, and if the result is no refinement of the pattern.

    Examples
    --------
    >>> places = ConceptHierarchy({"TX": ["D"], "OK": ["T"]})
    >>> str(concept_drill_down("PATTERN SEQ(TX a, OK b) WITHIN 48 hours", places, {"a": "D"}))
    'PATTERN SEQ(D a, OK b) WITHIN 48 hours'
    """
    given, hierarchy = _under(pattern, hierarchy)
    if not isinstance(types, Mapping) or not types:
        raise PatternError(
            f'types is a mapping from variables to types, such as {{"a": "D"}}, not {shown(types)}'
        )
    for name, type_ in types.items():
        if name not in given.names:
            raise PatternNameError(
                f"unknown variable {shown(name)}; the pattern has {', '.join(given.names)}"
                f"{did_you_mean(str(name), given.names)}"
            )
        _check_below(given, name, text(type_, f"the type of {name}", PatternError), hierarchy)
    result = _retyped(given, types)
    return _checked(given, result, result, hierarchy)


def _check_below(pattern: Pattern, name: str, type_: str, hierarchy: ConceptHierarchy) -> None:
    """Raise unless a type is below that of a variable, or above that of a negated one."""
    hierarchy.interval(type_)
    (variable,) = (its for its in pattern.variables if its.name == name)
    own = variable.type
    if own is None:
        return
    is_negated = variable in pattern.negated
    lower, higher = (own, type_) if is_negated else (type_, own)
    if hierarchy.is_a(lower, higher):
        return
    there = types_above(own, hierarchy)
    if not is_negated:
        there = hierarchy.below(own)[1:] if own in hierarchy else ()
    way = "above" if is_negated else "below"
    raise PatternError(
        f"{name} is of type {own!r}, and {type_!r} is not {way} it; {way} it "
        + (f"are {', '.join(there)}" if there else "is none")
    )


def _flat(pattern: Any) -> Pattern:
    given = pattern_from(pattern, aggregates=True)
    if any(isinstance(item, Structure) for item in given.structure.items):
        raise UnsupportedPatternError(
            f"{given.structure} is nested, so that its items have no places; write it flat, or its "
            "branches as several queries"
        )
    return given


def _under(pattern: Any, hierarchy: Any) -> tuple[Pattern, ConceptHierarchy]:
    found = hierarchy_from(hierarchy)
    if found is None:
        raise HierarchyError(
            'hierarchy is a ConceptHierarchy such as cep.ConceptHierarchy({"TX": ["D"]}), not None'
        )
    return pattern_from(pattern, aggregates=True), found


def _retyped(pattern: Pattern, types: Mapping[str, str]) -> Pattern:
    """The pattern with other types of variables."""
    structure = pattern.structure.changed(lambda v: replace(v, type=types.get(v.name, v.type)))
    return replace(pattern, structure=structure, hierarchy=None)


def _checked(
    given: Pattern, result: Pattern, specific: Pattern, hierarchy: ConceptHierarchy | None
) -> Pattern:
    """The result, which is ``specific`` or the more general one."""
    general = given if specific is result else result
    if not embeddings(general, specific, hierarchy):
        raise PatternError(
            f"{specific} is no refinement of {general}: its matches, projected, need not be matches of "
            "that query. Types may only become lower, of negated items only higher, no positive item "
            "may come or go next to a negated one, and the strategy must be any"
        )
    return result.with_hierarchy(hierarchy)
