"""The grid of runs of a pattern: cells in the order of their measurement, and their settings."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cepbench.engines.aggregation.e_cube import E_CUBE
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.aggregation.workload_run import SHARED
from cepbench.engines.detection.registry import default_evaluator, evaluator_for
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT, options_of, runs_without
from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.cells import NO_OPTIONS, NO_PLAN, NO_SHARING, VALUES, Cell
from cepbench.planning.costs.model import CostModel
from cepbench.planning.planners.registry import PlanGenerator, find_generator
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS

#: The generator of a policy that names none: that of [mei2009]_, by which recorded sweeps were measured.
POLICY_GENERATOR = "ZSTREAM"


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The cells of one pattern on one stream, and their common settings."""

    #: Names in :data:`cepbench.planning.planners.registry.PLAN_GENERATORS`, or generators
    #: themselves.
    generators: Sequence[str | PlanGenerator]
    #: Each runs every plan of its kinds. By default every plan runs in the default evaluator of its
    #: kind: order plans in the lazy NFA and tree plans in the tree, as in [kolchinsky2018]_,
    #: section 6.2. An evaluator that runs without a plan, and no plans of the generators, has cells
    #: of its own.
    evaluators: Sequence[str] | None = None
    #: Whether evaluators of trees run orders, too, as left-deep trees.
    orders_in_trees: bool = True
    #: Evaluator -> options that it runs with in turn, each a JSON object. Other evaluators run with
    #: their defaults.
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Selection strategies, as the pattern language writes them.
    strategies: Sequence[str] = ("any",)
    #: Windows that the pattern runs under, as texts after WITHIN; ``""`` is its own.
    windows: Sequence[str] = ("",)
    #: Weights of the latency in the cost of plans. Under AND, the event that is expected to arrive
    #: last is the one that most matches on the beginning of the stream end with.
    alphas: Sequence[float] = (0.0,)
    repetitions: int = 3
    #: Whether every run is followed by another one that measures detection latency only: reading
    #: the clock for every match would slow down a run that measures throughput.
    latency: bool = False
    #: Whether equal plans of several generators run once in each repetition. The rows of the others
    #: repeat the outcome, with the generator of the run in ``measured_with``. Ratios between equal
    #: plans are then exactly 1.
    share_equal_plans: bool = False
    #: Minimum time of each plan's runs together: after the repetitions, the plan with the least
    #: time is run again until all plans have reached it. Runs stay interleaved, so that a drift of
    #: the machine's speed affects all plans alike.
    seconds: float = 0.0
    #: Of the plan generators that draw at random.
    seed: int = 0
    #: See :func:`cepbench.planning.planners.generate.plan`.
    time_selectivity: str = "adjacent"
    #: A run that stores more partial matches ends with status ``partial_match_limit``.
    partial_match_limit: int = PARTIAL_MATCH_LIMIT
    #: ``count``, ``matches`` or ``arrow``. Matches in Arrow are built batch by batch and dropped.
    outputs: Sequence[str] = ("count",)
    #: The cost that plans minimize, see :func:`cepbench.planning.planners.generate.plan`.
    cost: str | CostModel = "throughput"
    #: Adaptive runs by name: ``policy``, ``generator``, ``cost``, ``threshold`` and ``gain`` as
    #: :func:`cepbench.adapt` takes them.
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Events of a push, and of a round of adaptive runs; 0 for the whole stream, and rounds of the
    #: default size.
    batch_size: int = 0
    #: Aggregation methods, which run instead of plans.
    methods: Sequence[str] = ()
    #: How they share work between the queries of a workload: ``none``; names of workload planners,
    #: of counts for ``a-seq``, of matches for methods that list them, which run as ``e-cube``.
    sharing: Sequence[str] = (NO_SHARING,)
    #: Planners of workloads that reuse matches, which run instead of plan generators, each in every
    #: evaluator, by default the tree.
    planners: Sequence[str] = ()
    #: The cost that their plans minimize, of :data:`cepbench.planning.costs.reuse.REUSE_COSTS`.
    reuse_cost: str = "calibrated"

    def cells(self) -> list[Cell]:
        """All cells, in the order of their measurement.

        Repetitions are the outer loop, and every repetition starts one run later, so that a drift
        of the machine's speed affects all generators alike and ratios are paired.

        A PlanGeneratorError if a generator is unknown. An ExperimentError if a generator's plans
        fit none of the evaluators. An EvaluationError if an evaluator or method is unknown, or an
        evaluator does not have an option or take its value.
        """
        if self.repetitions < 1:
            raise ExperimentError(f"{self.repetitions} repetitions: at least one is needed")
        options = self.checked_options()
        runs = [
            Cell(generator, evaluator, 0, strategy, float(alpha), window, some, output)
            for output, window, strategy, alpha, (generator, evaluator) in itertools.product(
                (VALUES,) if self.methods else self.outputs,
                self.windows,
                self.strategies,
                self.alphas,
                self._pairs(),
            )
            for some in options.get(evaluator, (NO_OPTIONS,))
            # Adaptive runs minimize no latency.
            if not (alpha and generator in self.policies)
        ]
        cells: list[Cell] = []
        for repetition in range(self.repetitions):
            shift = repetition % max(1, len(runs))
            cells.extend(run._replace(repetition=repetition) for run in runs[shift:] + runs[:shift])
        unused = options.keys() - {cell.evaluator for cell in cells}
        if unused:
            raise ExperimentError(
                f"options of {min(unused)!r}, in which no plan of the sweep runs; name it in "
                "evaluators"
            )
        return cells

    def plan_generators(self) -> dict[str, PlanGenerator]:
        """The plan generators by name."""
        found = (find_generator(g) if isinstance(g, str) else g for g in self.generators)
        return {generator.name: generator for generator in found}

    def policy_kinds(self) -> dict[str, str]:
        """The kind of plans of each adaptive run."""
        return {
            name: find_generator(policy.get("generator", POLICY_GENERATOR)).kind
            for name, policy in self.policies.items()
        }

    def aggregations(self) -> dict[str, tuple[str, str]]:
        """Name of each run of a method, in the place of a plan generator's → method and sharing.

        An ExperimentError if none of the methods shares as one of ``sharing`` says.
        """
        methods = [AGGREGATORS.find(name) for name in self.methods]
        reuses = {name: its.shares == "matches" for name, its in WORKLOAD_PLANNERS.items()}
        found = {}
        for method in methods:
            for sharing in self.sharing:
                if sharing == NO_SHARING:
                    found[method.name] = method.name, sharing
                elif reuses[sharing] and method.lists_matches:
                    found[f"{E_CUBE} {sharing}"] = E_CUBE, sharing
                elif not reuses[sharing] and method.name == SHARED:
                    found[f"{method.name} {sharing}"] = method.name, sharing
        for sharing in self.sharing:
            if self.methods and sharing not in {each for _, each in found.values()}:
                fitting = "two-step" if reuses[sharing] else SHARED
                raise ExperimentError(
                    f"sharing {sharing!r}: none of the methods {', '.join(self.methods)} shares so; "
                    f"add {fitting!r}, or leave it out"
                )
        return found

    def checked_options(self) -> dict[str, Sequence[str]]:
        """The options by the names of evaluators.

        An EvaluationError if an evaluator is unknown, or does not have an option or take its value.
        """
        for name, several in self.options.items():
            for text in several:
                options_of(evaluator_for(name), json.loads(text))
        return {evaluator_for(name).name: several for name, several in self.options.items()}

    def _pairs(self) -> list[tuple[str, str]]:
        """Each generator with each evaluator that runs its plans; what runs without a plan alone."""
        if self.methods:
            return [(name, NO_PLAN) for name in self.aggregations()]
        chosen = None if self.evaluators is None else [*map(evaluator_for, self.evaluators)]
        if self.planners:
            engines = [entry.name for entry in chosen or [default_evaluator("tree")]]
            return [*itertools.product(self.planners, engines)]
        kinds = {name: generator.kind for name, generator in self.plan_generators().items()}
        kinds |= self.policy_kinds()
        made = [*kinds.values()]
        pairs = [(NO_PLAN, entry.name) for entry in chosen or () if runs_without(entry, made)]
        if chosen is not None and len(pairs) == len(chosen):
            return pairs
        for name, kind in kinds.items():
            fitting = [
                entry
                for entry in chosen or [default_evaluator(kind)]
                if kind in entry.kinds
                and (self.orders_in_trees or kind != "order" or "tree" not in entry.kinds)
            ]
            if not fitting:
                raise ExperimentError(
                    f"{name} makes {kind} plans, which none of the evaluators "
                    f"{', '.join(entry.name for entry in chosen or ())} runs; add "
                    f"{default_evaluator(kind).name!r}"
                )
            pairs += [(name, evaluator.name) for evaluator in fitting]
        return pairs
