"""Engines that construct the sequences of a SEQ depth first: rounds of a batch, chunks of matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from cepbench.engines.plan_runs.kernels import sequences
from cepbench.engines.plan_runs.programs import Compared, ProgramWriter, Rule
from cepbench.engines.runs.pieces import events_at_once, matches_at_once
from cepbench.kernels import counts
from cepbench.kernels.batches import FIRST_CHUNK, LARGEST_CHUNK
from cepbench.kernels.instructions import EQUAL, LOAD_LEFT, STACK
from cepbench.patterns.equivalences import Derived
from cepbench.patterns.model import Clause
from cepbench.streams.event_stream import EventStream

#: Events in a round, so that memory does not grow with batches.
ROUND = 1 << 15


def rounds_of(
    batch: EventStream | None, position: int, size: int = ROUND, *, with_ties: bool = False
) -> Iterator[tuple[EventStream, int]]:
    """A batch, or None for no events, in rounds of a size, each with the position of its first event.

    ``with_ties``: rounds have all events of their last timestamp.
    """
    size = events_at_once(size)
    begin, events = 0, 0 if batch is None else len(batch)
    while begin < events:
        assert batch is not None
        end = min(begin + size, events)
        if with_ties:
            end = int(np.searchsorted(batch.timestamps, batch.timestamps[end - 1], "right"))
        yield batch[begin:end], position + begin
        begin = end


def candidate_rules(
    programs: ProgramWriter,
    name: str,
    clauses: Iterable[Clause],
    column: Callable[[Derived], int],
    owner: Callable[[Derived], int],
    is_implied: Callable[[Derived, Derived], bool],
) -> dict[int, list[Rule]]:
    """The conditions that are tested for each candidate of a variable, by kind of rule.

    ``column`` and ``owner`` number values; ``is_implied`` says of two values whether all candidates
    have them equal.
    """

    def compare(found: Compared) -> Rule | None:
        left, operator, right = found
        if operator == EQUAL and is_implied(left, right):
            return None
        return column(left), column(right), operator, owner(right)

    def load(value: Derived) -> Rule:
        return LOAD_LEFT, column(value), owner(value), 0

    rules, others = programs.conditions(clauses, (name,), compare, load)
    return {sequences.COMPARE: rules, sequences.PROGRAM: others}


def new_scratch(
    items: int, longest: int, owners: int, values: np.ndarray, origins: np.ndarray
) -> sequences.Scratch:
    """Working space for a construction with ranges of at most ``longest`` candidates."""
    return sequences.Scratch(
        candidates=np.empty((items, longest), np.int64),
        sizes=np.ones(items + 1, np.int64),
        at=np.zeros(items + 1, np.int64),
        bound=np.empty(owners, np.int64),
        values=values,
        origins=origins,
        stack=np.empty(STACK),
        progress=np.array([items, 0, 0]),
        tallies=np.zeros((items, sequences.TALLIES), np.int64),
    )


def constructed(
    construct: Callable[[np.ndarray], bool],
    scratch: sequences.Scratch,
    node_counts: np.ndarray,
    *,
    least: int,
    reports: bool,
) -> Iterator[np.ndarray]:
    """The matches that a kernel writes to arrays of at least ``least`` columns, until it has ended.

    What it took is added to the counts of the nodes, of which the inner ones are suffixes.
    """
    items = len(scratch.candidates)
    size = max(matches_at_once(FIRST_CHUNK), least) if reports else 0
    ended = False
    while not ended:
        matches = np.empty((items, size), np.int64)
        ended = construct(matches)
        yield matches[:, : scratch.progress[sequences.WRITTEN]]
        size = max(least, min(2 * size, matches_at_once(LARGEST_CHUNK)))
    for item in range(items - 1):
        its = node_counts[len(node_counts) - 1 - item]
        its[counts.CREATED] += scratch.tallies[item, sequences.EXTENDED]
        its[counts.COMPARED] += scratch.tallies[item, sequences.COMPARED]
