"""OUTPUT non_overlap: of matches that overlap in time within a partition, the first one."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from cepbench.errors import SnapshotError
from cepbench.evaluators.matches import (
    BranchMatches,
    Found,
    SetColumn,
    joined,
    matches_of_rows,
    no_matches,
)
from cepbench.evaluators.plan_runs.union import waits
from cepbench.patterns.model import Pattern
from cepbench.streams.numeric import NumericReader
from cepbench.streams.recent import RecentEvents

#: The values of a partition's attributes, None where missing.
_Partition = tuple[float | None, ...]


class NonOverlap:
    """Selects non-overlapping matches from all matches, batch by batch [agrawal2008]_, section 2.

    Matches are taken in the order of the position of their last event; of those with the same last
    event, the one whose first event comes last, then the one with the fewest events, then that of
    the smallest positions in written order. One is reported if its first event comes after the last
    event of the match reported before in its partition: the values of all ``[attr]`` and of the
    attribute of partition contiguity at its first event, or the whole stream.

    A match is decided when no match with an earlier last event can come: at once, or, if a negated
    item or a group may wait, one window after its last event.

    Parameters
    ----------
    pattern : Pattern
    """

    def __init__(self, pattern: Pattern) -> None:
        self._branches = pattern.branches()
        self._written = pattern.positive_names
        self._window = pattern.window.length
        self._waits = any(map(waits, self._branches))
        names = [*pattern.equivalences, *filter(None, [pattern.strategy.attribute])]
        is_one = pattern.strategy.name == "strict_contiguity"
        #: The attributes of a partition.
        self.attributes = () if is_one else tuple(dict.fromkeys(names))
        self._reader = NumericReader()
        self._undecided = [no_matches(branch.positive) for branch in self._branches]
        #: Partition → the position of the last event of the match reported last.
        self._ends: dict[_Partition, int] = {}

    def of(self, found: Found, recent: RecentEvents, *, ended: bool) -> Found:
        """The matches to report for a batch.

        Parameters
        ----------
        found : Found
            All matches of the batch.
        recent : RecentEvents
            The events of the batch and of two windows before it, with :attr:`attributes`.
        ended : bool
            Whether no events follow.
        """
        if found.number:
            self._undecided = [
                joined([old, new])
                for old, new in zip(self._undecided, found.matches, strict=True)
                if new is not None
            ]
        if not any(map(len, self._undecided)):
            return Found(0, tuple(self._undecided))
        partitions: list[_Partition] = []
        candidates = []
        due_rows = []
        for number, matches in enumerate(self._undecided):
            due = self._due(matches, recent, ended=ended)
            due_rows.append(due)
            columns = matches.taken(due).in_columns(
                [name for name in self._written if name in matches.names]
            )
            first, last = columns.first_positions(), columns.last_positions()
            size = np.sum([_sizes(column) for column in columns.columns], axis=0)
            partition = self._partitions(first, recent, partitions)
            order = np.lexsort((*columns.codes()[::-1], size, -first, last, partition))
            # Of those with the same last event no other one can be reported.
            new = np.diff(last[order], prepend=-1) != 0
            new |= np.diff(partition[order], prepend=-1) != 0
            best = order[new]
            rows = columns.taken(best).rows() if len(self._branches) > 1 else [()] * len(best)
            for row, bound in zip(best.tolist(), rows, strict=True):
                sets = [its if isinstance(its, tuple) else (its,) for its in bound]
                rank = (int(last[row]), -int(first[row]), int(size[row]), sets, number)
                candidates.append((rank, row, int(partition[row])))
        kept: list[list[int]] = [[] for _ in self._branches]
        for (last_position, first_position, _, _, number), row, code in sorted(candidates):
            if -first_position > self._ends.get(partitions[code], -1):
                self._ends[partitions[code]] = last_position
                kept[number].append(row)
        chosen = [
            matches.taken(due[np.array(rows, np.int64)])
            for matches, due, rows in zip(self._undecided, due_rows, kept, strict=True)
        ]
        self._undecided = [
            matches.taken(np.setdiff1d(np.arange(len(matches)), due))
            for matches, due in zip(self._undecided, due_rows, strict=True)
        ]
        # No later match begins before the events kept.
        self._ends = {key: end for key, end in self._ends.items() if end >= recent.first}
        return Found(sum(map(len, chosen)), tuple(chosen))

    def _due(self, matches: BranchMatches, recent: RecentEvents, *, ended: bool) -> np.ndarray:
        """The rows of matches that no match to come can precede."""
        if ended or not self._waits:
            return np.arange(len(matches))
        times = recent.stream.timestamps
        passed = times[matches.last_positions() - recent.first] + self._window < times[-1]
        return np.flatnonzero(passed)

    def _partitions(
        self, first: np.ndarray, recent: RecentEvents, known: list[_Partition]
    ) -> np.ndarray:
        """The number of each match's partition in ``known``, to which new ones are added."""
        events, event = np.unique(first, return_inverse=True)
        columns = [
            self._reader.read(recent.stream, name, events - recent.first).tolist()
            for name in self.attributes
        ]
        numbers = {partition: number for number, partition in enumerate(known)}
        codes = np.zeros(len(events), np.int64)
        for row, values in enumerate(zip(*columns, strict=True)):
            partition = tuple(None if value != value else value for value in values)
            codes[row] = numbers.setdefault(partition, len(numbers))
        if not columns:
            numbers = {(): 0}
        known[:] = numbers
        return codes[event]

    def packed(self) -> dict[str, np.ndarray]:
        """The state as plain arrays."""
        known = {
            "undecided": [matches.rows() for matches in self._undecided],
            "ends": list(self._ends.items()),
            "texts": self._reader.texts,
        }
        return {"known": np.frombuffer(json.dumps(known).encode(), np.uint8)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from what :meth:`packed` returned.

        Raises
        ------
        SnapshotError
            If it is no such state.
        """
        try:
            known = json.loads(state["known"].tobytes())
            self._undecided = [
                matches_of_rows(branch.positive, rows)
                for branch, rows in zip(self._branches, known["undecided"], strict=True)
            ]
            self._ends = {tuple(partition): end for partition, end in known["ends"]}
            self._reader = NumericReader(known["texts"])
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(
                f"the snapshot is damaged: no usable 'output': {error!r}"
            ) from error


def _sizes(column: np.ndarray | SetColumn) -> np.ndarray:
    """How many events each entry has."""
    if isinstance(column, SetColumn):
        return np.diff(column.offsets)
    return np.ones(len(column), np.int64)
