"""The public names, each loaded from its module on first use: :mod:`cepbench.public_names` reads this file."""

from typing import Any

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
from cepbench.experiments.conformance.engines import OUTSIDE_ENGINES as OUTSIDE_ENGINES
from cepbench.experiments.conformance.engines import Conformance as Conformance
from cepbench.experiments.conformance.engines import compare_engines as compare_engines
from cepbench.experiments.conformance.evaluator_checks import check_evaluator as check_evaluator
from cepbench.experiments.conformance.generator_checks import check_generator as check_generator
from cepbench.experiments.conformance.outside import outside_engine as outside_engine
from cepbench.experiments.conformance.workload_planner_checks import (
    check_workload_planner as check_workload_planner,
)
from cepbench.experiments.sweeps.store import read_results as read_results
from cepbench.patterns.concepts import ConceptHierarchy as ConceptHierarchy
from cepbench.patterns.model import Pattern as Pattern
from cepbench.patterns.parse import parse as parse
from cepbench.patterns.rewriting import rewrite as rewrite
from cepbench.patterns.row_counterpart import counterpart as counterpart
from cepbench.patterns.row_pattern import RowPattern as RowPattern
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
from cepbench.presentation.comparison.compare import compare as compare
from cepbench.presentation.comparison.sweep import sweep as sweep
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

__version__: str

def load_ipython_extension(shell: Any) -> None: ...
