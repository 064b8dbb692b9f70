"""Plan and engine of a pattern for which neither is given: the engine of the least expected time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.detection.planned import Known, default_plan, planned, sampled
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.detection.tasks import able, runs_some
from cepbench.engines.runs.choice import Choice
from cepbench.engines.runs.protocol import Arguments, Evaluator
from cepbench.engines.sase.layout import MOST_FLAGS
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.model import Operator, Pattern
from cepbench.planning.costs.engine_work import EngineRows, expected_seconds, joining_seconds
from cepbench.planning.costs.logarithms import SMALLEST
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream

#: Seconds by which times differ for reasons that no estimate knows, such as the state of the processor's caches.
_TIE = 2e-4


class Chosen(NamedTuple):
    """A plan, if its evaluator needs one, the evaluator, and why; None where it is not chosen by time."""

    plan: AnyPlan | None
    evaluator: str | Evaluator | None
    choice: Choice | None


class SampledMatches(NamedTuple):
    """What a sample of a stream tells of the matches of a pattern without OR."""

    matches: float  #: for each event of an item
    firsts: float  #: events of the first item in a window; of a partition, those that an event of the last item fits


def sampled_matches(pattern: Pattern, stream: EventStream) -> SampledMatches:
    """What a sample of a stream, which the pattern fits, tells of its matches."""
    statistics, _ = sampled(pattern, stream)
    (branch,) = pattern.branches()
    rows = EngineRows(branch, statistics)
    first, last = rows.names[0], rows.names[-1]
    firsts = statistics.cardinality(first, rows.window)
    if pattern.equivalences and first != last:
        firsts *= rows.selectivity(first, last)
    return SampledMatches(rows.found / max(sum(rows.rates.values()), SMALLEST), firsts)


def chosen(
    pattern: Pattern,
    stream: EventStream,
    asked: Arguments,
    *,
    whole_stream: bool,
    plan: AnyPlan | None = None,
    known: Known | None = None,
    least: float = 0.0,
) -> Chosen:
    """Plan and evaluator by statistics sampled from a stream that the pattern fits.

    An evaluator that is asked for is kept. In a window of length 0, in which nothing has a rate, that of the plan's kind runs it.

    Parameters
    ----------
    plan : AnyPlan, optional
        For evaluators that run its kind; by default that of the default generator.
    known : Known, optional
        See :func:`cepbench.engines.detection.planned.sampled`.
    least : float
        Seconds: where joins along the plan are expected to take less, no evaluator is chosen.
    """
    if asked.evaluator is not None or not pattern.window.length:
        plan = planned(pattern, stream, asked.evaluator) if plan is None else plan
        return Chosen(plan, asked.evaluator, None)
    statistics, active = sampled(pattern, stream, known)
    plan = default_plan(pattern, statistics) if plan is None else plan
    if least and plan is not None:
        counts = asked.output == "count"
        if active * joining_seconds(pattern, statistics, plan, "tree", counts=counts) < least:
            return Chosen(plan, None, None)
    return fastest(pattern, plan, statistics, active, asked, whole_stream=whole_stream)


def chosen_queries(
    plan: WorkloadPlan,
    asked: Arguments,
    choose: Callable[[str, AnyPlan | None, Arguments], Chosen],
) -> dict[str, Chosen]:
    """What is chosen for each query that is computed from scratch, given its plan and what is asked of it.

    The matches of sources are listed, whatever the output.
    """
    ways = [plan.reuse(query) for query in plan.order]
    sources = {source for way in ways for source in way.sources}
    listed = replace(asked, output="matches")
    return {
        query: choose(query, plan.plans.get(query), listed if query in sources else asked)
        for query in (way.query for way in ways if way.source is None)
    }


def fastest(
    pattern: Pattern,
    plan: AnyPlan | None,
    statistics: Statistics,
    active: float,
    asked: Arguments,
    *,
    whole_stream: bool,
) -> Chosen:
    """The built-in evaluator of the least expected time among those that can do what is asked, and its plan.

    Parameters
    ----------
    plan : AnyPlan, optional
        For the evaluators that run it.
    active : float
        Active time of the stream in seconds (or ticks).
    """
    counts = asked.output == "count" and pattern.output == "all"
    seconds = partial(expected_seconds, pattern, statistics, plan, counts=counts, active=active)
    is_able = able(pattern, plan, asked, whole_stream=whole_stream)

    def able_ones(expected: Mapping[str, float]) -> Iterator[str]:
        any_before = False
        for name in _by_time(expected):
            entry = EVALUATORS[name]
            # Compiling takes longer than all else, and only the first one is run.
            compiles = any_before or "automaton" not in entry.kinds or _has_automaton(pattern)
            if compiles and is_able(entry):
                any_before = True
                yield name

    # The rest is not estimated if one of the fastest is able.
    expected = seconds(within=_TIE)

    def found() -> dict[str, float]:
        every = expected if counts or plan is None else seconds()
        return {name: every[name] for name in able_ones(every)}

    engine = next(able_ones(expected), None)
    if engine is None or expected[engine] > min(expected.values()) + _TIE:
        engine = next(iter(found()), None)
    if engine is None:
        return Chosen(plan, None, None)
    runs_plan = plan is not None and runs_some(EVALUATORS[engine], plan.kind)
    return Chosen(plan if runs_plan else None, engine, Choice(engine, found))


def _by_time(expected: Mapping[str, float]) -> list[str]:
    """The engines by their times, of which those within a tie are as fast as the fastest."""
    # Sorting is stable, so that ties are in the order of the engines' forms.
    least = min(expected.values())
    return sorted(expected, key=lambda name: max(expected[name], least + _TIE))


def _has_automaton(pattern: Pattern) -> bool:
    """Whether a pattern has an automaton that engines can run; an AND has none where it is counted."""
    if pattern.structure.has(Operator.AND):
        return True
    edges = (sum(1 + its.is_set for its in branch.variables) for branch in pattern.branches())
    try:
        return max(edges) <= MOST_FLAGS and automaton(pattern) is not None
    except UnsupportedPatternError:
        return False
