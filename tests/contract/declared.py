"""What the entries of the registries declare, and what a task then has to come to.

Nothing here names an entry: one that is registered is held to what it declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.automata.compilation import automaton
from cepbench.engines.detection.tasks import constructs_of
from cepbench.engines.runs.protocol import Evaluator
from cepbench.errors import (
    AdaptationError,
    EvaluationError,
    PlanError,
    PlanningRefusedError,
    StatisticsError,
    UnsupportedPatternError,
    UnsupportedTaskError,
)
from cepbench.patterns.model import Kind, Pattern
from cepbench.planning.planners.registry import PlanGenerator
from cepbench.planning.plans.model import AnyPlan
from tests.contract.entries import EVALUATORS
from tests.engines.detection.constructs import AUTOMATA, FAMILIES, GROUP_FAMILIES, NEXT, Family

#: All constructs and selection strategies.
ALL = {
    **FAMILIES,
    **GROUP_FAMILIES,
    **AUTOMATA,
    **{f"{name}, next": its for name, its in NEXT.items()},
}

#: The registries whose entries find matches of one pattern, each entry in turn with any others.
AXES = {
    "evaluator": EVALUATORS,
    "generator": cep.PLAN_GENERATORS,
    "policy": cep.ADAPTATION_POLICIES,
}

#: The errors by which something is refused; any other one is a failure.
REFUSALS = (
    UnsupportedPatternError,
    UnsupportedTaskError,
    EvaluationError,
    PlanError,
    PlanningRefusedError,
    AdaptationError,
    StatisticsError,
)

_CONSTRUCTS = {Kind.NEGATED: "NOT", Kind.KLEENE: "KL", Kind.GROUP: "GROUP"}


def kinds_planned(entry: Evaluator) -> list[str]:
    """The kinds of plans that are drawn for an evaluator, those of which it runs some among them."""
    return [kind for kind in ("order", "tree") if kind in (*entry.kinds, *entry.some_kinds)]


def engines_of(generator: PlanGenerator) -> list[Evaluator]:
    """The evaluators that run all plans of a generator."""
    return [entry for entry in cep.EVALUATORS.values() if generator.kind in entry.kinds]


def may_refuse(generator: PlanGenerator) -> bool:
    """Whether a generator plans some problems only: those whose conditions connect all variables."""
    return "without cross products" in generator.space


def outputs_of(entry: Evaluator, patterns: Iterable[Pattern]) -> list[str]:
    """The forms of output that are asked of an evaluator; a table in Arrow is made of its matches.

    Not the number of matches of constructs of which it only counts some.
    """
    found = [*entry.outputs, *(["arrow"] if "matches" in entry.outputs else [])]
    some = any(constructs_of(its) & {*entry.counted} for its in patterns)
    return [its for its in found if its != "count"] if some else found


def refused(entry: Evaluator, pattern: Pattern, plan: AnyPlan | None = None) -> str | None:
    """Why an evaluator has to refuse a pattern, by what it declares; None if it has to run it."""
    for construct in sorted(constructs_of(pattern) - {*entry.constructs}):
        return f"no {construct}"
    if pattern.strategy.name not in entry.strategies:
        return f"no STRATEGY {pattern.strategy.name}"
    if "automaton" in entry.kinds and not _has_automaton(pattern):
        return "no automaton"
    if plan is not None and plan.kind not in entry.kinds and entry.check_plan is not None:
        try:
            for part in plan.parts:
                entry.check_plan(part)
        except EvaluationError:
            return f"not this {plan.kind} plan"
    return None


def _has_automaton(pattern: Pattern) -> bool:
    """Whether no condition needs all events of a Kleene variable that is complete."""
    try:
        automaton(pattern)
    except UnsupportedPatternError:
        return False
    return True


def narrowed(family: Family, entry: Evaluator) -> Family | None:
    """As much of a family as an evaluator declares; None if nothing is left."""
    kinds = tuple(kind for kind in family.kinds if _CONSTRUCTS.get(kind, "SEQ") in entry.constructs)
    rows = tuple(
        row
        for row in family.rows
        if all(_CONSTRUCTS.get(kind, "SEQ") in entry.constructs for kind in row)
    )
    operators = tuple(its for its in family.operators if str(its) in entry.constructs)
    strategies = tuple(its for its in family.strategies if its in entry.strategies)
    if not (kinds and operators and strategies) or (family.rows and not rows):
        return None
    nested = family.nested and "nesting" in entry.constructs
    return replace(
        family, kinds=kinds, rows=rows, operators=operators, strategies=strategies, nested=nested
    )


def families_of(entry: Evaluator) -> st.SearchStrategy[Family]:
    """Mostly a family as far as an evaluator declares it, now and then one as it is."""
    possible = [its for family in ALL.values() if (its := narrowed(family, entry)) is not None]
    return st.integers(0, 7).flatmap(
        lambda n: st.sampled_from([*ALL.values()] if n == 7 else possible)
    )


@st.composite
def options_of(draw: st.DrawFn, entry: Evaluator) -> dict[str, Any]:
    """Values of some of an evaluator's options, such as their checks allow."""
    found = {}
    for name, option in entry.options.items():
        words = re.findall(r"(\w+):", option.description)
        fitting = []
        for value in (True, False, 1, 3, *words):
            try:
                fitting.append(option.check(value, name, EvaluationError))
            except EvaluationError:
                continue
        if fitting and draw(st.booleans()):
            found[name] = draw(st.sampled_from(fitting))
    return found
