"""Conditions of a WHERE clause, and their conjunctive normal form.

A comparison with a missing value is neither true nor false but unknown, as in SQL, and a
condition selects where it is true. Everything done here keeps that: pushing NOT inwards (the
opposite operator is unknown where the operator is), de Morgan's and the distributive laws,
and leaving out duplicates and conjuncts that another one implies. ``x < y OR x >= y`` is
*not* always true and therefore stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.arrays import comparison_holds
from cepbench.patterns.model import Attribute, Comparison, Conjunct, without_implied

#: Largest number of conjuncts that a condition may grow to while it is being rewritten.
MAXIMUM_CONJUNCTS = 1024

#: The comparison that is true where the other one is false, and unknown where it is unknown.
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}


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
    """Conjuncts that are true together exactly where ``condition`` is true.

    Parameters
    ----------
    condition : Comparison, Negation, Conjunction or Disjunction

    Returns
    -------
    tuple of tuple of Comparison
        In the order in which they were written, without duplicates and without conjuncts that
        another one implies. Comparisons of constants are decided: no conjuncts at all means
        always true, a single empty conjunct never true.

    Raises
    ------
    UnsupportedPatternError
        If more than :data:`MAXIMUM_CONJUNCTS` conjuncts would have to be looked at.
    """
    return _normal(condition, negated=False)


def _normal(condition: Condition, *, negated: bool) -> tuple[Conjunct, ...]:
    match condition:
        case Comparison(operator, left, right):
            if negated:
                condition = Comparison(OPPOSITE[operator], left, right)
            if next(condition.attributes(), None) is not None:
                return ((condition,),)
            return () if _constant_holds(condition) else ((),)
        case Negation(operand):
            return _normal(operand, negated=not negated)
        case Conjunction(parts) | Disjunction(parts):
            forms = [_normal(part, negated=negated) for part in parts]
    # de Morgan: a negated disjunction is a conjunction of negated parts, and the reverse.
    if isinstance(condition, Conjunction) != negated:
        return without_implied(conjunct for form in forms for conjunct in form)
    product: tuple[Conjunct, ...] = ((),)
    for form in forms:
        if len(product) * len(form) > MAXIMUM_CONJUNCTS:
            raise UnsupportedPatternError(
                f"this condition becomes more than {MAXIMUM_CONJUNCTS} conjuncts when it is "
                "written as a conjunction of disjunctions; use fewer ANDs inside of ORs"
            )
        product = without_implied(
            tuple(dict.fromkeys((*first, *second))) for first in product for second in form
        )
    return product


def _constant_holds(comparison: Comparison) -> bool:
    codes: dict[str, float] = {}

    def code(text: str) -> float:
        return codes.setdefault(text, float(len(codes)))

    def values(attribute: Attribute) -> np.ndarray:
        raise AssertionError(f"{attribute} is no constant")

    return bool(comparison_holds(comparison, values, code))
