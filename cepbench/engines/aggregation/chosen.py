"""The method of a pattern on a finite stream, where that of its place in the registry takes longer than another.

A method that counts takes as long for an event as the window has others, or as its trees have levels, whether there
are matches or not; ``two-step`` takes as long as there are matches. So few matches are listed where counting is slow: by
``greta``, or in partitions, each with counters of its own. And ``a-seq`` reads a number for each first event in the
window, but ``order-statistics`` sums over several levels for each event, once more for each digit of a float; so
that the former is faster, unless there are many first events. Which of two is faster by half or more depends on
these numbers alone, and on no price.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from cepbench.engines.aggregation.a_seq import A_SEQ
from cepbench.engines.aggregation.greta import GRETA
from cepbench.engines.aggregation.order_statistics import ORDER_STATISTICS
from cepbench.engines.aggregation.protocol import AggregationTask
from cepbench.engines.aggregation.semirings import has_floats
from cepbench.engines.aggregation.two_step import TWO_STEP
from cepbench.engines.detection.chosen import sampled_matches
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.reach import with_shared_keys
from cepbench.streams.event_stream import EventStream

#: Events of the items on which a method takes less than a millisecond more than another: if matches are counted without
#: partitions, and else.
_SHORT_COUNTS, _SHORT = 10_000, 5_000

#: Matches for each event of an item that are listed in the time in which they are counted, in partitions and by greta.
_FEW, _FEW_BY_GRETA = 3.0, 50.0

#: First events in a window whose numbers are read in the time of sums over levels; those of extremes are compared more
#: slowly, and integers are added up more slowly, as their sums may have more than 64 bits.
_MANY, _MANY_EXTREMES, _MANY_SUMS = 2_000.0, 400.0, 50.0


class ChosenMethod(NamedTuple):
    """A method, and why."""

    method: str
    reason: str


def faster(by_place: str, task: AggregationTask, stream: EventStream) -> ChosenMethod | None:
    """A method that is expected to be faster for a stream that the pattern fits than the first one that runs it."""
    pattern = with_shared_keys(task.pattern.without_aggregate())
    is_keyed, is_graph = bool(pattern.equivalences), by_place == GRETA.name
    is_ranked = by_place == ORDER_STATISTICS.name
    if by_place == TWO_STEP.name or not pattern.window.length or pattern.order != "time":
        return None
    adds = any(its.function != "COUNT" for its in task.pattern.aggregates)
    by_type = stream.counts_by_type()
    events = sum(by_type.get(its.type or "", len(stream)) for its in pattern.variables)
    if events < (_SHORT if is_keyed or is_graph or adds else _SHORT_COUNTS):
        return None
    has_rival = is_ranked and _runs_by_start(task)
    if not (is_keyed or is_graph or has_rival):
        return None
    found = sampled_matches(pattern, stream)
    if found.matches <= (_FEW_BY_GRETA if is_graph else _FEW if is_keyed else -1.0):
        return ChosenMethod(
            TWO_STEP.name, f"about {_about(found.matches)} matches for each event of an item"
        )
    has_extremes = any(its.function in ("MIN", "MAX") for its in task.pattern.aggregates)
    most = _MANY_EXTREMES if has_extremes else _MANY
    if _adds_integers(task, stream):
        most = _MANY_SUMS if not is_keyed else -1.0
    if has_rival and found.firsts <= most:
        return ChosenMethod(
            A_SEQ.name, f"about {_about(found.firsts)} first events that may be joined"
        )
    return None


def _about(number: float) -> str:
    return f"{float(f'{number:.2g}'):,g}"


def _runs_by_start(task: AggregationTask) -> bool:
    with suppress(UnsupportedPatternError):
        A_SEQ.open(task)
        return True
    return False


def _adds_integers(task: AggregationTask, stream: EventStream) -> bool:
    return any(
        its.function in ("SUM", "AVG")
        and its.attribute is not None
        and not has_floats(stream.column(its.attribute))
        for its in task.pattern.aggregates
    )
