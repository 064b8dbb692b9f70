"""OUTPUT non_overlap: of matches that overlap in time within a partition, the first one."""

from __future__ import annotations

import numpy as np

from cepbench.engines.plan_runs.union import waits
from cepbench.engines.runs.compressed import CompressedMatches
from cepbench.engines.runs.kernels.graph import stored_nodes
from cepbench.engines.runs.matches import BranchMatches, Found, SetColumn, joined, no_matches
from cepbench.patterns.model import Pattern
from cepbench.state import Stateful
from cepbench.streams.numeric import NumericReader
from cepbench.streams.recent import RecentEvents

#: The values of a partition's attributes, None where missing.
_Partition = tuple[float | None, ...]


class NonOverlap(Stateful):
    """Selects non-overlapping matches from all matches, batch by batch [agrawal2008]_, section 2.

    Matches are taken in the order of their last event; of those with the same one, that whose first
    event comes last, then that with the fewest events, then that of the smallest positions in written
    order. One is reported if it begins after the end of the match reported before in its partition: the
    values of all ``[attr]`` and of the attribute of partition contiguity at its first event, or the whole
    stream.

    It is decided when no match with an earlier last event can come: at once, or, if a negated item or a
    group may wait, one window after its last event.
    """

    SAVED = ("_undecided", "_ends", "_reader")

    def __init__(self, pattern: Pattern) -> None:
        #: How many matches, or nodes of graphs of them, it was given.
        self.considered = 0
        self._branches = pattern.branches()
        self._written = pattern.positive_names
        self._window = pattern.window.length
        self._waits = any(map(waits, self._branches))
        names = [*pattern.equivalences, *filter(None, [pattern.strategy.attribute])]
        is_one = pattern.strategy.name == "strict_contiguity"
        #: The attributes of a partition.
        self.attributes = () if is_one else tuple(dict.fromkeys(names))
        #: Whether it takes graphs of matches, which are then not listed.
        self.takes_graphs = len(self._branches) == 1 and not (pattern.negated or self._waits)
        self._reader = NumericReader(4 * self._window)
        self._undecided = [no_matches(branch.positive) for branch in self._branches]
        #: Partition → the position of the last event of the match reported last.
        self._ends: dict[_Partition, int] = {}

    def of(self, found: Found, recent: RecentEvents, *, ended: bool) -> Found:
        """The matches to report for a batch, of all its matches; ``ended`` if no events follow.

        ``recent`` are the events of the batch and of two windows before it, with :attr:`attributes`.
        """
        listed = sum(len(matches) for matches in found.matches if matches is not None)
        nodes = sum(len(stored_nodes(part.graph)) for _, part in found.graphs)
        self.considered += listed + nodes
        if found.graphs:
            # All matches of a last event are of its partition, and one of them at most is reported.
            found = _of_latest(found, self._branches[0])
        if found.number:
            self._undecided = [
                joined([old, new])
                for old, new in zip(self._undecided, found.matches, strict=True)
                if new is not None
            ]
        due = [self._due(matches, recent, ended=ended) for matches in self._undecided]
        candidates = []
        for number, (matches, its) in enumerate(zip(self._undecided, due, strict=True)):
            rows = _first_ones(matches, np.flatnonzero(its))
            taken = matches.taken(rows)
            taken = taken.in_columns([name for name in self._written if name in taken.names])
            first, last = taken.first_positions().tolist(), taken.last_positions().tolist()
            for row, bound in enumerate(taken.rows()):
                sets = [its if isinstance(its, tuple) else (its,) for its in bound]
                rank = (last[row], -first[row], sum(map(len, sets)), sets, number)
                candidates.append((rank, int(rows[row])))
        candidates.sort()
        partitions = self._partitions([-first for (_, first, *_), _ in candidates], recent)
        kept: list[list[int]] = [[] for _ in self._branches]
        for ((last_event, first_event, *_, number), row), partition in zip(
            candidates, partitions, strict=True
        ):
            if -first_event > self._ends.get(partition, -1):
                self._ends[partition] = last_event
                kept[number].append(row)
        chosen = [
            matches.taken(np.array(rows, np.int64))
            for matches, rows in zip(self._undecided, kept, strict=True)
        ]
        self._undecided = [
            matches.taken(np.flatnonzero(~its))
            for matches, its in zip(self._undecided, due, strict=True)
        ]
        # No later match begins before the events kept.
        self._ends = {key: end for key, end in self._ends.items() if end >= recent.first}
        return Found(sum(map(len, chosen)), tuple(chosen))

    def _due(self, matches: BranchMatches, recent: RecentEvents, *, ended: bool) -> np.ndarray:
        """Which matches no match to come can precede, shape (matches,)."""
        if ended or not self._waits:
            return np.ones(len(matches), bool)
        times = recent.stream.timestamps
        due: np.ndarray = times[matches.last_positions() - recent.first] + self._window < times[-1]
        return due

    def _partitions(self, events: list[int], recent: RecentEvents) -> list[_Partition]:
        """The partition of each event."""
        rows = np.array(events, np.int64) - recent.first
        columns = [
            [
                None if value != value else value
                for value in self._reader.read(recent.stream, name, rows).tolist()
            ]
            for name in self.attributes
        ]
        return list(zip(*columns, strict=True)) if columns else [()] * len(events)


def _first_ones(matches: BranchMatches, rows: np.ndarray) -> np.ndarray:
    """Of the rows with one last event those that start last, and of these the smallest ones.

    No other one can be reported: it is in the same partition.
    """
    last = matches.last_positions()
    columns = matches.columns
    sizes = [c.sizes if isinstance(c, SetColumn) else np.ones_like(c) for c in columns]
    size = np.sum(sizes, axis=0)
    for rank in (-matches.first_positions(), size):
        if len(rows):
            at = last[rows] - last[rows].min()
            least = np.full(at.max() + 1, np.iinfo(np.int64).max)
            np.minimum.at(least, at, rank[rows])
            rows = rows[rank[rows] == least[at]]
    return rows


def _of_latest(found: Found, branch: Pattern) -> Found:
    """The match to prefer of each last event, of matches in graphs."""
    latest = CompressedMatches(branch, [(0, part.latest()) for _, part in found.graphs])
    (matches,) = latest.branch_matches()
    return Found(len(matches), (matches,))
