"""All evaluators by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cepbench.errors import EvaluationError
from cepbench.evaluators.lazy_nfa import chain
from cepbench.evaluators.tree import tree_of_instances
from cepbench.plans.model import OrderPlan, Plan, Tree, TreePlan, UnionPlan


@dataclass(frozen=True)
class Evaluator:
    """An evaluator: a way to run a plan.

    Attributes
    ----------
    name : str
    plans : str
        The kind of plan that it was made for, ``"order"`` or ``"tree"``.
    structure : callable
        Plan → the tree of joins that it comes down to; refuses plans that it cannot run.
    source : str
    """

    name: str
    plans: str
    structure: Callable[[OrderPlan | TreePlan], Tree]
    source: str


#: The evaluators; the first one made for a kind of plan is the default for it.
EVALUATORS: Mapping[str, Evaluator] = MappingProxyType(
    {
        evaluator.name: evaluator
        for evaluator in (
            Evaluator("lazy-nfa", "order", chain, "[kolchinsky2018]_, section 2.2"),
            Evaluator("tree", "tree", tree_of_instances, "[kolchinsky2018]_, section 2.3"),
        )
    }
)


def evaluator_for(plan: Plan | UnionPlan, name: str | None = None) -> Evaluator:
    """The evaluator called ``name``, or the default one for this kind of plan.

    Raises
    ------
    EvaluationError
        If there is none of that name.
    """
    if name is None:
        return next(e for e in EVALUATORS.values() if e.plans == plan.kind)
    if name not in EVALUATORS:
        near = difflib.get_close_matches(str(name), EVALUATORS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise EvaluationError(f"no evaluator {name!r}; there are {', '.join(EVALUATORS)}{hint}")
    return EVALUATORS[name]
