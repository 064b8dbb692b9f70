"""What benchmarks of every engine share: the engines of the registry, and a plan for each."""

from __future__ import annotations

from collections.abc import Sequence

import cepbench as cep

#: The engine that ratios are to, unless another one is asked for.
BASELINE = "tree"

#: The engines of cepbench that go live.
ENGINES = tuple(
    name for name, entry in cep.EVALUATORS.items() if entry.is_builtin and entry.batches
)


def plan_for(name: str, variables: Sequence[str]) -> cep.OrderPlan | None:
    """The variables in this order, or no plan for an engine that needs none.

    Parameters
    ----------
    name : str
        Of an engine.
    variables : sequence of str
    """
    return None if cep.EVALUATORS[name].without_plan else cep.OrderPlan(list(variables))
