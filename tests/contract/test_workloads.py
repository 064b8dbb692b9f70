"""Every engine and planner of workloads finds for each query, shared or not, what the twin does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.detection.slices import SliceDetection
from cepbench.engines.detection.tasks import evaluator_without_plan
from cepbench.engines.runs.protocol import Evaluator
from tests.budgets import only_compiled
from tests.contract.cases import WorkloadCase, statistics_of, workload_cases
from tests.contract.declared import ALL, families_of, outputs_of, refused
from tests.contract.entries import EVALUATORS
from tests.contract.tally import Tally, explored
from tests.contract.ways import agrees, found, frame_of, in_slices
from tests.engines.detection.strategies import batches_of
from tests.engines.reuse.test_reuse import frames, plans

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.filterwarnings("ignore::cepbench.errors.MissingTypeWarning"),
]

#: Words of an error → what a workload may be refused for besides what its engine declares.
LIMITS = {
    "one pass": "one pass",
    "a window of length 0": "adaptive, window 0",
    "after the end of its window": "too late",
    "has min or max over a set": "reuse, min or max",
    "there is no lower bound of the cost": "adaptive, no bound",
    "so a change of the plan would lose": "adaptive, delays",
    "nothing can be estimated": "adaptive, virtual query more specific than all",
}


@dataclass(frozen=True)
class _Choice:
    engine: Evaluator | None
    planner: str | None
    plan: cep.WorkloadPlan | None
    output: str

    @property
    def evaluator(self) -> str | None:
        return None if self.engine is None else self.engine.name


def whole(case: WorkloadCase, how: _Choice, data: st.DataObject) -> None:
    result = cep.evaluate(
        case.workload, case.stream, how.plan, evaluator=how.evaluator, output=how.output
    )
    for query, expected in case.expected.items():
        its = result[query]
        shown = its.metrics.matches if how.output == "count" else its.matches
        if how.output == "arrow":
            shown = its.arrow
        agrees(expected, [found(case.patterns[query], shown)])


def live(case: WorkloadCase, how: _Choice, data: st.DataObject) -> None:
    detector = cep.Detector(case.workload, how.plan, evaluator=how.evaluator, output=how.output)
    _pushed(case, detector, data)


def adaptive(case: WorkloadCase, how: _Choice, data: st.DataObject) -> None:
    detector = cep.AdaptiveDetector(
        case.workload,
        planner=how.planner,
        evaluator=how.evaluator,
        initial=how.plan,
        policy=data.draw(st.sampled_from([*cep.ADAPTATION_POLICIES])),
        batch_size=data.draw(st.integers(1, 9)),
        threshold=data.draw(st.sampled_from([0.0, 0.5])),
        gain=0.0,
        output=how.output,
    )
    _pushed(case, detector, data)


def _pushed(case: WorkloadCase, detector: cep.Detector, data: st.DataObject) -> None:
    pushed = []
    for batch in data.draw(batches_of(case.stream)):
        pushed.append(detector.push(batch))
        if data.draw(st.booleans()):
            detector = type(detector).restore(detector.snapshot())
    pushed.append(detector.flush())
    for query, expected in case.expected.items():
        agrees(expected, [found(case.patterns[query], its[query]) for its in pushed])


def sliced(case: WorkloadCase, how: _Choice, data: st.DataObject) -> None:
    tables, counted = in_slices(
        SliceDetection(case.workload, how.evaluator), case.stream, case.events, how.plan, data
    )
    for query, expected in case.expected.items():
        pattern = case.patterns[query]
        names = [*pattern.positive_names, *(["branch"] if len(pattern.branches()) > 1 else [])]
        parts = [
            found(
                pattern,
                frame_of([r[query] for r in table.to_pylist() if r["query"] == query], names),
            )
            for table in tables
        ]
        agrees(expected, parts)
        assert sum(its[query] for its in counted) == len(expected)


WAYS: Mapping[str, Callable[[WorkloadCase, _Choice, st.DataObject], None]] = {
    "whole": whole, "live": live, "sliced": sliced, "adaptive": adaptive,
}  # fmt: skip


#: The planners of workloads that share matches.
PLANNERS = [its.name for its in cep.WORKLOAD_PLANNERS.values() if its.shares == "matches"]


@pytest.mark.parametrize("name", EVALUATORS)
def test_engine(name: str, tally: Tally, seeds: Callable[[int], Sequence[int]]) -> None:
    tally.pinned, tally.most = name, 0.8

    def check(data: st.DataObject) -> None:
        planner = data.draw(st.sampled_from([*PLANNERS, None]))
        _check(data, tally, name, cep.EVALUATORS[name], planner)

    explored(name, seeds(1), check, each=3)


@only_compiled
@pytest.mark.parametrize("name", PLANNERS)
def test_planner(name: str, tally: Tally, seeds: Callable[[int], Sequence[int]]) -> None:
    tally.pinned, tally.most = name, 0.8

    def check(data: st.DataObject) -> None:
        engine = data.draw(st.sampled_from([None, None, *cep.EVALUATORS.values()]))
        _check(data, tally, name, engine, name)

    explored(name, seeds(1), check, each=3)


def _check(
    data: st.DataObject, tally: Tally, name: str, engine: Evaluator | None, planner: str | None
) -> None:
    """One workload by an engine, or those that its queries ask for, in all ways."""
    plan: cep.WorkloadPlan | None = None
    delays = data.draw(st.booleans())
    if data.draw(st.booleans()):
        plan = data.draw(plans())
        case = WorkloadCase(plan.workload, data.draw(frames()), "pandas")
    else:
        families = st.sampled_from([*ALL.values()]) if engine is None else families_of(engine)
        case = data.draw(workload_cases(families))
    if planner is not None and (plan is None or data.draw(st.booleans())):
        plan = cep.plan_workload(
            case.workload,
            data.draw(statistics_of(case)),
            planner,
            delays=delays,
            seed=data.draw(st.integers(0, 9)),
            evaluator=None if engine is None else engine.name,
        )
    outputs = ["matches", "count", "arrow"]
    if engine is not None:
        its = case.workload.patterns.values()
        outputs = [each for each in outputs if each in outputs_of(engine, its)]
    reason = _refused(case, engine, plan)
    alone = _refused(case, engine, None)
    for way, check in WAYS.items():
        how = _Choice(engine, planner, plan, data.draw(st.sampled_from(outputs)))
        # An adaptive run may compute any query from scratch later.
        why = alone or reason if way == "adaptive" else reason
        if why is None:
            with tally.allowing(name, way, LIMITS):
                check(case, how, data)
        else:
            tally.must_refuse(name, why, lambda check=check, how=how: check(case, how, data))


def _refused(
    case: WorkloadCase, engine: Evaluator | None, plan: cep.WorkloadPlan | None
) -> str | None:
    """Why a query that would have to be computed from scratch has to be refused.

    If no engine is given, only strategies that no plan is run for may have such queries.
    """
    patterns = case.workload.patterns if plan is None else plan.computed.patterns
    for query, pattern in patterns.items():
        its = engine or evaluator_without_plan(pattern.strategy.name)
        if its is not None and (plan is None or plan.reuse(query).source is None):
            reason = refused(its, pattern.with_hierarchy(case.workload.hierarchy))
            if reason is not None:
                return reason
    return None
