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
    from cepbench.engines.adaptation.adapt import adapt as adapt
    from cepbench.engines.adaptation.detector import AdaptiveDetector as AdaptiveDetector
    from cepbench.engines.adaptation.policies import ADAPTATION_POLICIES as ADAPTATION_POLICIES
    from cepbench.engines.adaptation.policies import adaptation_policy as adaptation_policy
    from cepbench.engines.aggregation.aggregate import aggregate as aggregate
    from cepbench.engines.aggregation.live import Aggregator as Aggregator
    from cepbench.engines.aggregation.protocol import AggregateMetrics as AggregateMetrics
    from cepbench.engines.aggregation.registry import AGGREGATORS as AGGREGATORS
    from cepbench.engines.aggregation.registry import aggregator as aggregator
    from cepbench.engines.automata.compilation import automaton as automaton
    from cepbench.engines.automata.model import Automaton as Automaton
    from cepbench.engines.detection.evaluate import evaluate as evaluate
    from cepbench.engines.detection.match_batches import match_batches as match_batches
    from cepbench.engines.detection.registry import EVALUATORS as EVALUATORS
    from cepbench.engines.detection.registry import plan_evaluator as plan_evaluator
    from cepbench.engines.detection.workload_detector import Detector as Detector
    from cepbench.engines.runs.arrow_matches import with_events as with_events
    from cepbench.engines.runs.protocol import Option as Option
    from cepbench.engines.runs.result import Metrics as Metrics
    from cepbench.errors import CepbenchError as CepbenchError
    from cepbench.experiments.analysis.summary import paired_ratios as paired_ratios
    from cepbench.experiments.analysis.summary import summarize as summarize
    from cepbench.experiments.analysis.sweep_comparison import compare_sweeps as compare_sweeps
    from cepbench.experiments.conformance.aggregator_checks import (
        check_aggregator as check_aggregator,
    )
    from cepbench.experiments.conformance.evaluator_checks import check_evaluator as check_evaluator
    from cepbench.experiments.conformance.generator_checks import check_generator as check_generator
    from cepbench.experiments.conformance.workload_planner_checks import (
        check_workload_planner as check_workload_planner,
    )
    from cepbench.experiments.sweeps.compare import compare as compare
    from cepbench.experiments.sweeps.store import read_results as read_results
    from cepbench.patterns.concepts import ConceptHierarchy as ConceptHierarchy
    from cepbench.patterns.model import Pattern as Pattern
    from cepbench.patterns.parse import parse as parse
    from cepbench.patterns.rewriting import rewrite as rewrite
    from cepbench.planning.costs.models import COST_MODELS as COST_MODELS
    from cepbench.planning.costs.models import cost_model as cost_model
    from cepbench.planning.costs.nodes import plan_cost as plan_cost
    from cepbench.planning.planners.generate import plan as plan
    from cepbench.planning.planners.registry import PLAN_GENERATORS as PLAN_GENERATORS
    from cepbench.planning.planners.registry import plan_generator as plan_generator
    from cepbench.planning.planners.sharing.generate import plan_workload as plan_workload
    from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS as WORKLOAD_PLANNERS
    from cepbench.planning.planners.sharing.registry import workload_planner as workload_planner
    from cepbench.planning.planners.stakes import plan_stakes as plan_stakes
    from cepbench.planning.plans.model import OrderPlan as OrderPlan
    from cepbench.planning.plans.model import TreePlan as TreePlan
    from cepbench.planning.plans.model import UnionPlan as UnionPlan
    from cepbench.planning.plans.tree import Either as Either
    from cepbench.planning.plans.workload import WorkloadPlan as WorkloadPlan
    from cepbench.planning.sql.to_sql import to_sql as to_sql
    from cepbench.planning.statistics.measure import measure_statistics as measure_statistics
    from cepbench.planning.statistics.model import Statistics as Statistics
    from cepbench.planning.statistics.output_profiler import OutputProfiler as OutputProfiler
    from cepbench.planning.workloads.cube_operations import concept_drill_down as concept_drill_down
    from cepbench.planning.workloads.cube_operations import concept_roll_up as concept_roll_up
    from cepbench.planning.workloads.cube_operations import pattern_drill_down as pattern_drill_down
    from cepbench.planning.workloads.cube_operations import pattern_roll_up as pattern_roll_up
    from cepbench.planning.workloads.model import Workload as Workload
    from cepbench.presentation.app.app import explore as explore
    from cepbench.presentation.explainer.explain import explain as explain
    from cepbench.presentation.explainer.trace import trace as trace
    from cepbench.presentation.exploration.predicate_graph import predicate_graph as predicate_graph
    from cepbench.presentation.exploration.rates import rates_over_time as rates_over_time
    from cepbench.presentation.exploration.side_by_side import (
        plans_side_by_side as plans_side_by_side,
    )
    from cepbench.presentation.exploration.timeline_chart import match_timeline as match_timeline
    from cepbench.presentation.exploration.value_series import value_series as value_series
    from cepbench.presentation.exploration.what_if import what_if as what_if
    from cepbench.streams.datasets.opening import open_dataset as open_dataset
    from cepbench.streams.event_stream import EventStream as EventStream

_HOMES = {
    "ADAPTATION_POLICIES": "cepbench.engines.adaptation.policies",
    "AGGREGATORS": "cepbench.engines.aggregation.registry",
    "AdaptiveDetector": "cepbench.engines.adaptation.detector",
    "AggregateMetrics": "cepbench.engines.aggregation.protocol",
    "Aggregator": "cepbench.engines.aggregation.live",
    "Automaton": "cepbench.engines.automata.model",
    "COST_MODELS": "cepbench.planning.costs.models",
    "CepbenchError": "cepbench.errors",
    "ConceptHierarchy": "cepbench.patterns.concepts",
    "Detector": "cepbench.engines.detection.workload_detector",
    "EVALUATORS": "cepbench.engines.detection.registry",
    "Either": "cepbench.planning.plans.tree",
    "EventStream": "cepbench.streams.event_stream",
    "Metrics": "cepbench.engines.runs.result",
    "Option": "cepbench.engines.runs.protocol",
    "OrderPlan": "cepbench.planning.plans.model",
    "OutputProfiler": "cepbench.planning.statistics.output_profiler",
    "PLAN_GENERATORS": "cepbench.planning.planners.registry",
    "Pattern": "cepbench.patterns.model",
    "Statistics": "cepbench.planning.statistics.model",
    "TreePlan": "cepbench.planning.plans.model",
    "UnionPlan": "cepbench.planning.plans.model",
    "WORKLOAD_PLANNERS": "cepbench.planning.planners.sharing.registry",
    "Workload": "cepbench.planning.workloads.model",
    "WorkloadPlan": "cepbench.planning.plans.workload",
    "adapt": "cepbench.engines.adaptation.adapt",
    "adaptation_policy": "cepbench.engines.adaptation.policies",
    "aggregate": "cepbench.engines.aggregation.aggregate",
    "aggregator": "cepbench.engines.aggregation.registry",
    "automaton": "cepbench.engines.automata.compilation",
    "check_aggregator": "cepbench.experiments.conformance.aggregator_checks",
    "check_evaluator": "cepbench.experiments.conformance.evaluator_checks",
    "check_generator": "cepbench.experiments.conformance.generator_checks",
    "check_workload_planner": "cepbench.experiments.conformance.workload_planner_checks",
    "compare": "cepbench.experiments.sweeps.compare",
    "compare_sweeps": "cepbench.experiments.analysis.sweep_comparison",
    "concept_drill_down": "cepbench.planning.workloads.cube_operations",
    "concept_roll_up": "cepbench.planning.workloads.cube_operations",
    "cost_model": "cepbench.planning.costs.models",
    "evaluate": "cepbench.engines.detection.evaluate",
    "explain": "cepbench.presentation.explainer.explain",
    "explore": "cepbench.presentation.app.app",
    "match_batches": "cepbench.engines.detection.match_batches",
    "match_timeline": "cepbench.presentation.exploration.timeline_chart",
    "measure_statistics": "cepbench.planning.statistics.measure",
    "open_dataset": "cepbench.streams.datasets.opening",
    "paired_ratios": "cepbench.experiments.analysis.summary",
    "parse": "cepbench.patterns.parse",
    "pattern_drill_down": "cepbench.planning.workloads.cube_operations",
    "pattern_roll_up": "cepbench.planning.workloads.cube_operations",
    "plan": "cepbench.planning.planners.generate",
    "plan_cost": "cepbench.planning.costs.nodes",
    "plan_evaluator": "cepbench.engines.detection.registry",
    "plan_generator": "cepbench.planning.planners.registry",
    "plan_stakes": "cepbench.planning.planners.stakes",
    "plan_workload": "cepbench.planning.planners.sharing.generate",
    "plans_side_by_side": "cepbench.presentation.exploration.side_by_side",
    "predicate_graph": "cepbench.presentation.exploration.predicate_graph",
    "rates_over_time": "cepbench.presentation.exploration.rates",
    "read_results": "cepbench.experiments.sweeps.store",
    "rewrite": "cepbench.patterns.rewriting",
    "summarize": "cepbench.experiments.analysis.summary",
    "to_sql": "cepbench.planning.sql.to_sql",
    "trace": "cepbench.presentation.explainer.trace",
    "value_series": "cepbench.presentation.exploration.value_series",
    "what_if": "cepbench.presentation.exploration.what_if",
    "with_events": "cepbench.engines.runs.arrow_matches",
    "workload_planner": "cepbench.planning.planners.sharing.registry",
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
    from cepbench.presentation.app.magic import load

    load(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
