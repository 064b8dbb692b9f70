"""All kernels compiled beforehand: nothing that is run later has to wait for one."""

from __future__ import annotations

import numpy as np

from cepbench.engines.aggregation import counting, greta, shared, two_step
from cepbench.engines.hierarchical_stacks import hierarchical_stacks
from cepbench.engines.instances import engine as instances
from cepbench.engines.joins import engine as joins
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.reuse import reuse
from cepbench.engines.sase import run as automata
from cepbench.engines.sase.counting import CountingEngine
from cepbench.engines.sase.engine import SaseEngine
from cepbench.engines.sase.sase_backtrack import BacktrackEngine
from cepbench.engines.sase.sase_basic import BasicEngine
from cepbench.engines.stack_nfa import stack_nfa
from cepbench.engines.zstream import zstream
from cepbench.experiments.sweeps.measure import load_kernels
from cepbench.patterns.parse import parse
from cepbench.planning.costs.reuse import ReuseProblem
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.planners.sharing.chase import chase
from cepbench.planning.statistics.model import Statistics


def compile_kernels() -> None:
    """Compile what evaluators, aggregation methods and plan generators need, or load it from the disk cache.

    ``make env`` does so, and a sweep before it starts its workers.
    """
    for engine in (joins, instances, zstream, stack_nfa, hierarchical_stacks, reuse):
        engine.warm_up()
    for of_automata in (SaseEngine, BasicEngine, BacktrackEngine, CountingEngine, _with_digits):
        automata.warm_up(of_automata)
    for aggregators in (counting, greta, shared, two_step):
        aggregators.warm_up()
    for generator in PLAN_GENERATORS.values():
        if generator.is_builtin:
            load_kernels(generator)
    chase(ReuseProblem({"q": 1.0}, ()), np.random.default_rng(0))
    # Numbers that lie too far apart for floats are added up by a kernel of their own.
    many_sets = parse("PATTERN AND(A a, KL(B b), KL(C c)) WITHIN 1 units")
    plan(many_sets, Statistics(cardinalities={"a": 1.0, "b": 2e3, "c": 3e3}), "DP-B")


def _with_digits(task: BranchTask) -> CountingEngine:
    """An engine that counts as if the numbers had become large."""
    engine = CountingEngine(task)
    engine.widen()
    return engine


if __name__ == "__main__":
    compile_kernels()
