"""cepbench: a workbench that compares plan generators for complex event processing.

>>> import cepbench as cep
>>> pattern = cep.parse("PATTERN SEQ(MSFT a, GOOG b) WHERE a.price < b.price WITHIN 20 minutes")

These names are the public API; ``docs/architecture.md`` describes the packages. Importing it starts
no JVM and compiles nothing: names are loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

__version__ = version("cepbench")

if TYPE_CHECKING:
    from cepbench.adaptation.adapt import adapt as adapt
    from cepbench.adaptation.policies import ADAPTATION_POLICIES as ADAPTATION_POLICIES
    from cepbench.adaptation.policies import adaptation_policy as adaptation_policy
    from cepbench.adaptation.workload_detector import AdaptiveDetector as AdaptiveDetector
    from cepbench.aggregators.aggregate import aggregate as aggregate
    from cepbench.aggregators.live import Aggregator as Aggregator
    from cepbench.aggregators.registry import AGGREGATORS as AGGREGATORS
    from cepbench.aggregators.registry import aggregator as aggregator
    from cepbench.app.app import explore as explore
    from cepbench.automata.compilation import automaton as automaton
    from cepbench.automata.model import Automaton as Automaton
    from cepbench.conformance.aggregator_checks import check_aggregator as check_aggregator
    from cepbench.conformance.evaluator_checks import check_evaluator as check_evaluator
    from cepbench.conformance.generator_checks import check_generator as check_generator
    from cepbench.conformance.workload_planner_checks import (
        check_workload_planner as check_workload_planner,
    )
    from cepbench.costs.models import COST_MODELS as COST_MODELS
    from cepbench.costs.models import cost_model as cost_model
    from cepbench.costs.nodes import plan_cost as plan_cost
    from cepbench.datasets.opening import open_dataset as open_dataset
    from cepbench.errors import CepbenchError as CepbenchError
    from cepbench.evaluators.arrow_matches import with_events as with_events
    from cepbench.evaluators.evaluate import evaluate as evaluate
    from cepbench.evaluators.match_batches import match_batches as match_batches
    from cepbench.evaluators.registry import EVALUATORS as EVALUATORS
    from cepbench.evaluators.registry import plan_evaluator as plan_evaluator
    from cepbench.evaluators.workload_runs.live import Detector as Detector
    from cepbench.explainer.explain import explain as explain
    from cepbench.explainer.trace import trace as trace
    from cepbench.exploration.predicate_graph import predicate_graph as predicate_graph
    from cepbench.exploration.rates import rates_over_time as rates_over_time
    from cepbench.exploration.side_by_side import plans_side_by_side as plans_side_by_side
    from cepbench.exploration.timeline_chart import match_timeline as match_timeline
    from cepbench.exploration.value_series import value_series as value_series
    from cepbench.exploration.what_if import what_if as what_if
    from cepbench.patterns.concepts import ConceptHierarchy as ConceptHierarchy
    from cepbench.patterns.model import Pattern as Pattern
    from cepbench.patterns.parse import parse as parse
    from cepbench.patterns.rewriting import rewrite as rewrite
    from cepbench.planners.generate import plan as plan
    from cepbench.planners.registry import PLAN_GENERATORS as PLAN_GENERATORS
    from cepbench.planners.registry import plan_generator as plan_generator
    from cepbench.planners.sharing.generate import plan_workload as plan_workload
    from cepbench.planners.sharing.registry import WORKLOAD_PLANNERS as WORKLOAD_PLANNERS
    from cepbench.planners.sharing.registry import workload_planner as workload_planner
    from cepbench.planners.stakes import plan_stakes as plan_stakes
    from cepbench.plans.model import OrderPlan as OrderPlan
    from cepbench.plans.model import TreePlan as TreePlan
    from cepbench.plans.model import UnionPlan as UnionPlan
    from cepbench.plans.tree import Either as Either
    from cepbench.plans.workload import WorkloadPlan as WorkloadPlan
    from cepbench.sql.to_sql import to_sql as to_sql
    from cepbench.statistics.measure import measure_statistics as measure_statistics
    from cepbench.statistics.model import Statistics as Statistics
    from cepbench.statistics.output_profiler import OutputProfiler as OutputProfiler
    from cepbench.streams.event_stream import EventStream as EventStream
    from cepbench.sweeps.compare import compare as compare
    from cepbench.workloads.cube_operations import concept_drill_down as concept_drill_down
    from cepbench.workloads.cube_operations import concept_roll_up as concept_roll_up
    from cepbench.workloads.cube_operations import pattern_drill_down as pattern_drill_down
    from cepbench.workloads.cube_operations import pattern_roll_up as pattern_roll_up
    from cepbench.workloads.model import Workload as Workload

_HOMES = {
    "ADAPTATION_POLICIES": "cepbench.adaptation.policies",
    "AGGREGATORS": "cepbench.aggregators.registry",
    "AdaptiveDetector": "cepbench.adaptation.workload_detector",
    "Aggregator": "cepbench.aggregators.live",
    "Automaton": "cepbench.automata.model",
    "COST_MODELS": "cepbench.costs.models",
    "CepbenchError": "cepbench.errors",
    "ConceptHierarchy": "cepbench.patterns.concepts",
    "Detector": "cepbench.evaluators.workload_runs.live",
    "EVALUATORS": "cepbench.evaluators.registry",
    "Either": "cepbench.plans.tree",
    "EventStream": "cepbench.streams.event_stream",
    "OrderPlan": "cepbench.plans.model",
    "PLAN_GENERATORS": "cepbench.planners.registry",
    "OutputProfiler": "cepbench.statistics.output_profiler",
    "Pattern": "cepbench.patterns.model",
    "Statistics": "cepbench.statistics.model",
    "WORKLOAD_PLANNERS": "cepbench.planners.sharing.registry",
    "Workload": "cepbench.workloads.model",
    "WorkloadPlan": "cepbench.plans.workload",
    "TreePlan": "cepbench.plans.model",
    "UnionPlan": "cepbench.plans.model",
    "adapt": "cepbench.adaptation.adapt",
    "adaptation_policy": "cepbench.adaptation.policies",
    "aggregate": "cepbench.aggregators.aggregate",
    "aggregator": "cepbench.aggregators.registry",
    "automaton": "cepbench.automata.compilation",
    "check_aggregator": "cepbench.conformance.aggregator_checks",
    "check_evaluator": "cepbench.conformance.evaluator_checks",
    "check_generator": "cepbench.conformance.generator_checks",
    "check_workload_planner": "cepbench.conformance.workload_planner_checks",
    "compare": "cepbench.sweeps.compare",
    "concept_drill_down": "cepbench.workloads.cube_operations",
    "concept_roll_up": "cepbench.workloads.cube_operations",
    "cost_model": "cepbench.costs.models",
    "evaluate": "cepbench.evaluators.evaluate",
    "explain": "cepbench.explainer.explain",
    "explore": "cepbench.app.app",
    "match_batches": "cepbench.evaluators.match_batches",
    "match_timeline": "cepbench.exploration.timeline_chart",
    "measure_statistics": "cepbench.statistics.measure",
    "open_dataset": "cepbench.datasets.opening",
    "parse": "cepbench.patterns.parse",
    "pattern_drill_down": "cepbench.workloads.cube_operations",
    "pattern_roll_up": "cepbench.workloads.cube_operations",
    "plan": "cepbench.planners.generate",
    "plan_cost": "cepbench.costs.nodes",
    "plan_evaluator": "cepbench.evaluators.registry",
    "plan_generator": "cepbench.planners.registry",
    "plan_stakes": "cepbench.planners.stakes",
    "plan_workload": "cepbench.planners.sharing.generate",
    "plans_side_by_side": "cepbench.exploration.side_by_side",
    "predicate_graph": "cepbench.exploration.predicate_graph",
    "rates_over_time": "cepbench.exploration.rates",
    "rewrite": "cepbench.patterns.rewriting",
    "to_sql": "cepbench.sql.to_sql",
    "trace": "cepbench.explainer.trace",
    "value_series": "cepbench.exploration.value_series",
    "what_if": "cepbench.exploration.what_if",
    "with_events": "cepbench.evaluators.arrow_matches",
    "workload_planner": "cepbench.planners.sharing.registry",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "spark":
        return import_module("cepbench.spark")
    if name not in _HOMES:
        raise AttributeError(f"module 'cepbench' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext cepbench``: the cell magic ``%%cep``, and charts that need no network."""
    from cepbench.app.magic import load

    load(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
