"""Number of partial matches at a node of a plan, counted by finding them all.

The partial matches at a node are the matches of the pattern restricted to the node's variables:
their types, the conditions and the order in time among them, the same window. They are found by
running that smaller pattern, so the numbers do not depend on what an evaluator stores or evicts
early, and are the same at every node over the same variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT
from cepbench.errors import ExperimentError
from cepbench.patterns.equivalences import Equalities
from cepbench.patterns.model import Pattern
from cepbench.planning.planners.generate import plan
from cepbench.planning.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream

#: Events per batch: matches of a long stream need not fit in memory.
_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class NodeCount:
    """The partial matches over some variables in a stream."""

    #: In the whole stream.
    matches: int
    #: At an average moment: each match counts from its last event until the window of its first one
    #: has passed.
    alive: float
    #: In a window's time.
    created: float
    #: What one match of average life would make of ``alive``: less cannot be measured.
    least: float
    #: The largest part of the matches that a single event is in; NaN without matches.
    heaviest: float


def restricted(pattern: Pattern, names: Iterable[str]) -> Pattern:
    """A pattern without OR, restricted to some of its variables.

    Conditions that mention others are left out, but for equalities that follow from them, and so
    are negated variables that are not named. Events are free to be in any number of matches: what a
    strategy rules out depends on the rest.

    Raises ExperimentError if the pattern has no such variable, or no name is given.
    """
    wanted = frozenset(names)
    unknown = sorted(wanted - {*pattern.names})
    if unknown or not wanted:
        raise ExperimentError(
            f"the variables {', '.join(unknown) or '(none)'} are none of the pattern's, "
            f"which are {', '.join(pattern.names)}"
        )

    expanded = pattern.expanded
    conditions = [c for c in expanded.conditions if wanted.issuperset(c.variables)]
    equalities = Equalities(expanded.conditions, pattern.planned_names)
    planned = [name for name in pattern.planned_names if name in wanted]
    for number, name in enumerate(planned):
        tested = equalities.between(planned[:number], [name])
        conditions += [clause for clause in tested if clause not in equalities]
    structure = pattern.structure.without({*pattern.names} - wanted)
    return Pattern(structure, tuple(conditions), pattern.window, order=pattern.order)


def count_node(
    pattern: Pattern,
    stream: EventStream,
    names: Iterable[str],
    *,
    statistics: Statistics,
    active: float,
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
) -> NodeCount:
    """Find and count all partial matches over the variables of a node, of a pattern without OR.

    Only the way to the number depends on the statistics. ``active`` are the seconds (or ticks) of
    the stream in which events could arrive, more than 0.

    Raises PartialMatchLimitError if more have to be stored on the way than the limit of
    :func:`cepbench.engines.detection.evaluate.evaluate`.
    """
    part = restricted(pattern, names)
    window = part.window.length
    events = stream.of_types(part.types or stream.type_names)
    detector = Detector(
        part,
        plan(part, statistics, "GREEDY"),
        output="matches",
        partial_match_limit=partial_match_limit,
    )
    found, lives = 0, 0
    uses = np.zeros(len(events), dtype=np.int64)
    for batch in events.batches(_BATCH):
        complete = detector.take(batch)
        found += complete.number
        for matches in detector.in_branches([complete]):
            spans = (
                events.timestamps[matches.last_positions()]
                - events.timestamps[matches.first_positions()]
            )
            lives += complete.number * window - int(spans.sum())
            for column in matches.columns:
                if isinstance(column, np.ndarray):
                    uses += np.bincount(column, minlength=len(events))
    per_second = 1e9 if part.window.is_datetime else 1.0
    windows = active / part.window.seconds if window else math.inf
    return NodeCount(
        found,
        lives / per_second / active,
        found / windows,
        1.0 / (len(part.positive) * windows),
        float(uses.max() / found) if found else math.nan,
    )
