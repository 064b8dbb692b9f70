"""Plan and engine of a pattern for which neither is given: the engine of the least expected time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.detection.planned import default_plan, planned, sampled
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.detection.tasks import able, runs_some
from cepbench.engines.runs.choice import Choice
from cepbench.engines.runs.protocol import Arguments, Evaluator
from cepbench.engines.sase.layout import MOST_FLAGS
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.engine_work import expected_seconds
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream

#: Seconds by which times differ for reasons that no estimate knows, such as the state of the processor's caches.
_TIE = 2e-4


class Chosen(NamedTuple):
    """A plan, if its evaluator needs one, the evaluator, and why; None where it is not chosen by time."""

    plan: AnyPlan | None
    evaluator: str | Evaluator | None
    choice: Choice | None


def chosen(
    pattern: Pattern, stream: EventStream, asked: Arguments, *, whole_stream: bool
) -> Chosen:
    """Plan and evaluator by statistics sampled from a stream that the pattern fits.

    An evaluator that is asked for is kept. In a window of length 0, in which nothing has a rate, that of the plan's kind runs it.
    """
    if asked.evaluator is not None or not pattern.window.length:
        return Chosen(planned(pattern, stream, asked.evaluator), asked.evaluator, None)
    statistics, active = sampled(pattern, stream)
    plan = default_plan(pattern, statistics)
    return fastest(pattern, plan, statistics, active, asked, whole_stream=whole_stream)


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
    expected = expected_seconds(pattern, statistics, plan, counts=counts, active=active)
    is_able = able(pattern, plan, asked, whole_stream=whole_stream)
    known: dict[str, float] = {}
    for name in _by_time(expected):
        entry = EVALUATORS[name]
        # Compiling takes longer than all else, and only the first one is run.
        compiles = bool(known) or "automaton" not in entry.kinds or _has_automaton(pattern)
        if compiles and is_able(entry):
            known[name] = expected[name]
    if not known:
        return Chosen(plan, None, None)
    choice = Choice(known)
    runs_plan = plan is not None and runs_some(EVALUATORS[choice.evaluator], plan.kind)
    return Chosen(plan if runs_plan else None, choice.evaluator, choice)


def _by_time(expected: Mapping[str, float]) -> list[str]:
    """The engines by their times, of which those within a tie are as fast as the fastest."""
    # Sorting is stable, so that ties are in the order of the engines' forms.
    least = min(expected.values())
    return sorted(expected, key=lambda name: max(expected[name], least + _TIE))


def _has_automaton(pattern: Pattern) -> bool:
    """Whether a pattern has an automaton that engines can run."""
    edges = (sum(1 + its.is_set for its in branch.variables) for branch in pattern.branches())
    try:
        return max(edges) <= MOST_FLAGS and automaton(pattern) is not None
    except UnsupportedPatternError:
        return False
