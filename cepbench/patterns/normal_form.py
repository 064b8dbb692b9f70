"""Conditions of a WHERE clause, and their conjunctive normal form.

A comparison with a missing value is unknown, as in SQL's three-valued logic, and a condition
selects where it is true. Every rewriting preserves that: pushing NOT inwards (the opposite
operator is unknown where the operator is), de Morgan's and the distributive laws, and dropping
duplicate and implied conjuncts. ``x < y OR x >= y`` is *not* always true and is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.arrays import constant_holds
from cepbench.patterns.expressions import OPPOSITE, Comparison, Conjunct, without_implied

#: Limit of a condition's conjuncts during rewriting.
MAXIMUM_CONJUNCTS = 1024

#: Limit of their comparisons in total, and of the conjuncts tried.
MAXIMUM_WORK = 50_000


@dataclass(frozen=True, slots=True)
class Negation:
    """``NOT operand``."""

    operand: Condition


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All of ``parts``."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """At least one of ``parts``."""

    parts: tuple[Condition, ...]


Condition = Comparison | Negation | Conjunction | Disjunction


def conjunctive_normal_form(condition: Condition) -> tuple[Conjunct, ...]:
    """The conjuncts of ``condition``: all are true exactly where it is.

    They are in order of appearance, without duplicates and implied conjuncts. Comparisons of
    constants are folded: no conjuncts means always true, a single empty conjunct never true.

    Raises UnsupportedPatternError if one OR would take more than :data:`MAXIMUM_CONJUNCTS`
    conjuncts, or all together more than :data:`MAXIMUM_WORK` conjuncts or comparisons.
    """
    parts = _conjoined(condition)
    return without_implied(
        conjunct for part, negated in parts for conjunct in _Rewriting().conjuncts(part, negated)
    )


def _conjoined(condition: Condition) -> Iterator[tuple[Condition, bool]]:
    """The top-level conjuncts in order, each with whether it is negated."""
    waiting = [(condition, False)]
    while waiting:
        part, negated = waiting.pop()
        # de Morgan: a negated disjunction is a conjunction of negated parts, and the reverse.
        if isinstance(part, Negation):
            waiting.append((part.operand, not negated))
        elif isinstance(part, Disjunction if negated else Conjunction):
            waiting.extend((inner, negated) for inner in reversed(part.parts))
        else:
            yield part, negated


class _Rewriting:
    """Distribution of OR over AND; a conjunct is a bit set of comparisons, held in an integer."""

    def __init__(self) -> None:
        # In order of appearance. 64 comparisons take one machine instruction.
        self._numbers: dict[Comparison, int] = {}
        self._tried = 0

    def conjuncts(self, condition: Condition, negated: bool) -> Iterator[Conjunct]:
        """The normal form of ``condition``, or of its negation."""
        form = self._normal(condition, negated)
        if len(form) > 1 and sum(map(int.bit_count, form)) > MAXIMUM_WORK:
            raise _too_large()
        comparisons = list(self._numbers)
        for conjunct in form:
            yield tuple(comparisons[number] for number in _bits(conjunct))

    def _normal(self, condition: Condition, negated: bool) -> tuple[int, ...]:
        match condition:
            case Comparison(operator, left, right):
                if negated:
                    condition = Comparison(OPPOSITE[operator], left, right)
                if next(condition.attributes(), None) is not None:
                    return (1 << self._numbers.setdefault(condition, len(self._numbers)),)
                return () if constant_holds(condition) else (0,)
            case Negation(operand):
                return self._normal(operand, not negated)
            case Conjunction(parts) | Disjunction(parts):
                forms = (self._normal(part, negated) for part in parts)
                if isinstance(condition, Disjunction) != negated:
                    return self._distributed(forms)
                conjuncts = tuple(itertools.chain.from_iterable(forms))
                if len(conjuncts) > MAXIMUM_WORK:
                    raise _too_large()
                return _absorbed(conjuncts)

    def _distributed(self, forms: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
        """The normal form of the disjunction of ``forms``."""
        # A form of a single conjunct is united with all; equal forms are taken once.
        everywhere = 0
        different: dict[tuple[int, ...], None] = {}
        for form in forms:
            if len(form) == 1:
                everywhere |= form[0]
            else:
                different[form] = None
        product: tuple[int, ...] = (everywhere,)
        for form in different:
            tried = len(product) * len(form)
            self._tried += tried
            if tried > MAXIMUM_CONJUNCTS or self._tried > MAXIMUM_WORK:
                raise _too_large()
            product = _absorbed(first | second for first in product for second in form)
        return product


def _too_large() -> UnsupportedPatternError:
    return UnsupportedPatternError(
        f"this condition has more than {MAXIMUM_CONJUNCTS} conjuncts, or {MAXIMUM_WORK} "
        "comparisons, in conjunctive normal form; use fewer ANDs inside ORs"
    )


def _absorbed(conjuncts: Iterable[int]) -> tuple[int, ...]:
    """``conjuncts`` without duplicates and, unless there are too many, without implied ones."""
    different = tuple(dict.fromkeys(conjuncts))
    if 0 in different:
        return (0,)
    if not 1 < len(different) <= MAXIMUM_CONJUNCTS:
        return different
    kept: list[int] = []
    for candidate in sorted(different, key=int.bit_count):
        if not any(shorter & candidate == shorter for shorter in kept):
            kept.append(candidate)
    remaining = set(kept)
    return tuple(conjunct for conjunct in different if conjunct in remaining)


def _bits(conjunct: int) -> Iterable[int]:
    """The indices of the bits set, ascending."""
    return (number for number, bit in enumerate(reversed(f"{conjunct:b}")) if bit == "1")
