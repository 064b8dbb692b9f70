"""Runs of the automaton of [agrawal2008], one list of events a run; nothing is shared or merged.

Straight from the definition of ``next``: a run is the events chosen so far, each with its item, and
events come one by one. For the other strategies a run may besides ignore what it could take (any),
may ignore nothing (strict contiguity), or only events of other partitions (partition contiguity).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd

from cepbench.patterns.model import Aggregate, Attribute, Clause, Kind, Pattern, Structure, Variable
from tests.naive.concepts import TYPES, rows_with_types
from tests.naive.matcher import are_before, is_forbidden
from tests.naive.selection import non_overlapping
from tests.naive.values import Event, clause_true, in_window, missing

#: Positions by variable, in the order of the items: a number, or of a Kleene item a tuple of them.
Binding = dict[str, Any]


class Run(NamedTuple):
    """The events chosen so far."""

    chosen: tuple[tuple[int, int], ...]  # (number of the item, position), in order of position

    @property
    def item(self) -> int:
        """The item of the last event."""
        return self.chosen[-1][0]


def automaton_matches(pattern: Pattern, events: pd.DataFrame) -> set[tuple[int, tuple]]:
    """Positions of every match in the order of the pattern's positive variables, with its branch.

    ``events`` is as for :func:`tests.naive.matcher.naive_matches`. A branch is a SEQ.
    """
    rows = rows_with_types(events, pattern.hierarchy)
    found: dict[frozenset, tuple[int, Binding]] = {}
    for number, branch in enumerate(pattern.iter_branches()):
        for binding in _Branch(branch, rows).matches():
            found.setdefault(frozenset(binding.items()), (number, binding))
    order = list(pattern.positive_names)
    matches = list(found.values())
    if pattern.output == "non_overlap":
        matches = non_overlapping(pattern, order, matches, rows)
    return {(number, tuple(binding.get(name) for name in order)) for number, binding in matches}


class _Branch:
    """The runs of a pattern without OR over a table of events."""

    def __init__(self, pattern: Pattern, rows: list[Event]) -> None:
        self.pattern = pattern
        self.rows = rows
        self.items = [v for v in _items(pattern.structure) if v.kind is not Kind.NEGATED]
        self.last = len(self.items) - 1

    def matches(self) -> Iterator[Binding]:
        runs: list[Run] = []
        for position in range(len(self.rows)):
            kept = []
            for run in runs:
                moved = list(self._moves(run, position))
                # A run whose window has passed ends.
                kept += [run for run in moved if self._in_window(run, position)]
                yield from self._complete(run for run in moved if run.chosen[-1][1] == position)
            first = Run(((0, position),))
            if self._begins(first):
                kept.append(first)
                yield from self._complete([first])
            runs = [run for run in kept if self._waits(run)]

    def _moves(self, run: Run, position: int) -> Iterator[Run]:
        """The runs that a run becomes by an event; the same one if it ignores it."""
        loops = self.items[run.item].kind is Kind.KLEENE
        taken = Run((*run.chosen, (run.item, position)))
        begun = Run((*run.chosen, (run.item + 1, position)))
        takes = loops and self._takes(taken)
        begins = run.item < self.last and self._begins(begun)
        if takes:
            yield taken
        if begins and self._proceeds(run):
            yield begun
        # A loop is left by a copy; what becomes of the run does not depend on that.
        if self._ignores(run, position, uses=takes if loops else begins):
            yield run

    def _ignores(self, run: Run, position: int, *, uses: bool) -> bool:
        match self.pattern.strategy.name:
            case "next":
                return not uses
            case "strict_contiguity":
                return False
            case "partition_contiguity":
                name = self.pattern.strategy.attribute
                assert name is not None
                return self.rows[position][name] != self.rows[run.chosen[0][1]][name]
        return True

    def _waits(self, run: Run) -> bool:
        """Whether a run can take another event."""
        return run.item < self.last or self.items[self.last].kind is Kind.KLEENE

    def _complete(self, runs: Any) -> Iterator[Binding]:
        """The matches of the runs that have just bound an event."""
        for run in runs:
            if run.item == self.last and self._proceeds(run):
                binding = self._binding(run)
                if not is_forbidden(self.pattern, self.pattern.structure, binding, self.rows):
                    yield binding

    # -- formulas -------------------------------------------------------------------------------

    def _begins(self, run: Run) -> bool:
        """begin: whether the last event may be the first one of its item."""
        item, position = run.chosen[-1]
        before = [at for number, at in run.chosen if number == item - 1]
        if before and not are_before(before[-1:], [position], self.rows, self.pattern.order):
            return False
        return self._is_of(run) and self._hold(run, "begin")

    def _takes(self, run: Run) -> bool:
        """take: whether the last event may be a further one of its Kleene item."""
        return self._is_of(run) and self._hold(run, "take")

    def _proceeds(self, run: Run) -> bool:
        """proceed: whether the set of the last item may be finished; a plain one always is."""
        return self._hold(run, "proceed")

    def _is_of(self, run: Run) -> bool:
        """Type, window, and the values that all events share."""
        item, position = run.chosen[-1]
        row, first = self.rows[position], self.rows[run.chosen[0][1]]
        attribute = self.pattern.strategy.attribute
        if attribute is not None and missing(row[attribute]):
            return False
        shared = [*self.pattern.equivalences, *filter(None, [attribute])]
        return (
            self.items[item].type in row[TYPES]
            and self._in_window(run, position)
            and (
                position == run.chosen[0][1]
                or all(not missing(row[name]) and row[name] == first[name] for name in shared)
            )
        )

    def _in_window(self, run: Run, position: int) -> bool:
        times = [self.rows[at]["time"] for at in (run.chosen[0][1], position)]
        return in_window(times, self.pattern.window)

    def _hold(self, run: Run, edge: str) -> bool:
        """Whether the conjuncts of an edge hold for the events of a run."""
        # What a conjunct says of events before the last one was true when these were chosen.
        bound = {
            name: [self.rows[p] for p in value] if isinstance(value, tuple) else self.rows[value]
            for name, value in self._binding(run).items()
        }
        return all(
            clause_true(clause, bound)
            for clause in self.pattern.conditions
            if edge in self._edges(clause, run.item)
        )

    def _edges(self, clause: Clause, item: int) -> set[str]:
        """Where a conjunct stands at an item: at its last identifiers."""
        places = {name: number for number, name in enumerate(v.name for v in self.items)}
        if not set(clause.variables) <= set(places):
            return set()  # on a negated item
        if item != max(places[name] for name in clause.variables):
            return set()
        name = self.items[item].name
        own = [t for t in clause.terms() if _variable(t) == name]
        if any(_is_whole(term) for term in own):
            return {"proceed"}
        if any(_is_running(term) for term in own):
            return {"take"}
        if any(isinstance(term, Attribute) and term.element == "each" for term in own):
            return {"begin", "take"}
        return {"begin"}  # a[1]

    def _binding(self, run: Run) -> Binding:
        binding: Binding = {}
        for number, variable in enumerate(self.items):
            positions = tuple(position for item, position in run.chosen if item == number)
            if positions:
                binding[variable.name] = positions if variable.kind is Kind.KLEENE else positions[0]
        return binding


def _items(structure: Structure) -> Iterator[Variable]:
    for item in structure.items:
        if isinstance(item, Structure):
            yield from _items(item)
        else:
            yield item


def _variable(term: Attribute | Aggregate) -> str:
    return term.attribute.variable if isinstance(term, Aggregate) else term.variable


def _is_whole(term: Attribute | Aggregate) -> bool:
    return not term.before if isinstance(term, Aggregate) else term.element == "last"


def _is_running(term: Attribute | Aggregate) -> bool:
    return term.before if isinstance(term, Aggregate) else term.element in ("previous", "rest")
