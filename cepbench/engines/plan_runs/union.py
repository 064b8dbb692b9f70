"""The matches of a pattern with OR: those of its branches, without duplicates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cepbench.engines.plan_runs.groups import open_ended
from cepbench.engines.runs.matches import BranchMatches, Found, joined, matches_of_rows
from cepbench.errors import SnapshotError
from cepbench.patterns.model import Pattern

_NO_TIMES = np.empty(0, np.int64)


@dataclass(frozen=True)
class _Pending:
    """Matches of one branch that a waiting twin may also find, each up to a deadline.

    Attributes
    ----------
    matches : BranchMatches
    deadlines : ndarray of int64, shape (matches,)
        Timestamp after which the twin has decided.
    reported : ndarray of bool, shape (matches,)
        Whether they were reported; the others are held back for an earlier twin.
    """

    matches: BranchMatches
    deadlines: np.ndarray
    reported: np.ndarray

    def taken(self, kept: np.ndarray) -> _Pending:
        return _Pending(self.matches.taken(kept), self.deadlines[kept], self.reported[kept])


class _Twins:
    """Branches over the same variables; a match found by several is attributed to the first.

    Branches find the same match in the batch with its last event, except for those that wait for a
    negated event after all others: they decide a window after its first event.

    Parameters
    ----------
    branches : sequence of int
        Numbers of the branches, ascending.
    waiting : sequence of int
        Those that wait for a negated event after all others.
    """

    def __init__(self, branches: Sequence[int], waiting: Sequence[int]) -> None:
        self.branches = tuple(branches)
        self._waiting = list(waiting)
        self._prompt = [number for number in branches if number not in waiting]
        #: By branch; never of a waiting branch.
        self.pending: dict[int, _Pending] = {}

    @property
    def keeps(self) -> bool:
        """Whether state of earlier batches is needed."""
        return bool(self._waiting and self._prompt)

    def of(
        self,
        found: Mapping[int, BranchMatches],
        deadlines: Mapping[int, np.ndarray],
        last: int | None,
        *,
        ended: bool,
    ) -> dict[int, BranchMatches]:
        """The matches of each branch to report for a batch, including those held back before."""
        prompt = _firsts([found[number] for number in self._prompt])
        given = {}
        for number, rows in zip(self._prompt, prompt, strict=True):
            given[number] = found[number].taken(rows)
            if self.keeps:
                held = min(self._waiting) < number
                self._keep(number, given[number], deadlines[number][rows], held=held)
                if held:
                    given[number] = given[number].taken(np.empty(0, np.int64))
        if not self._waiting:
            return given
        decided = {number: self._decided(number, last, ended=ended) for number in self.pending}
        parts = {number: pending.matches for number, pending in decided.items()}
        parts |= {number: found[number] for number in self._waiting}
        numbers = sorted(parts)
        for number, rows in zip(numbers, _firsts([parts[n] for n in numbers]), strict=True):
            if number in decided:
                rows = rows[~decided[number].reported[rows]]
                given[number] = joined([given[number], parts[number].taken(rows)])
            else:
                given[number] = parts[number].taken(rows)
        return given

    def _keep(
        self, number: int, matches: BranchMatches, deadlines: np.ndarray, *, held: bool
    ) -> None:
        new = _Pending(matches, deadlines, np.full(len(matches), not held))
        old = self.pending.get(number)
        if old is not None:
            new = _Pending(
                joined([old.matches, new.matches]),
                np.concatenate((old.deadlines, new.deadlines)),
                np.concatenate((old.reported, new.reported)),
            )
        self.pending[number] = new

    def _decided(self, number: int, last: int | None, *, ended: bool) -> _Pending:
        """Remove and return the matches of a branch whose twins have decided."""
        pending = self.pending[number]
        due = np.full(len(pending.matches), ended)
        if last is not None and not ended:
            due = pending.deadlines < last
        self.pending[number] = pending.taken(np.flatnonzero(~due))
        return pending.taken(np.flatnonzero(due))


class Union:
    """The union of the branches' matches, batch by batch.

    Two matches are equal if they bind the same events to the same variables, so only branches over
    the same variables can have duplicates. A duplicate is attributed to the first branch; if that
    still waits for a negated event, the match is held back until it has decided. The state between
    batches is limited to the matches within a window.

    Parameters
    ----------
    branches : sequence of Pattern
        Branches of a pattern.
    """

    def __init__(self, branches: Sequence[Pattern]) -> None:
        self._branches = branches
        self._window = branches[0].window.length
        alike: dict[frozenset[str], list[int]] = {}
        if branches[0].strategy.name == "consuming":
            branches = ()  # consumed events are in no other match
        for number, branch in enumerate(branches):
            alike.setdefault(frozenset(branch.positive_names), []).append(number)
        self._twins = [
            _Twins(numbers, [number for number in numbers if waits(branches[number])])
            for numbers in alike.values()
            if len(numbers) > 1
        ]
        self._times = _NO_TIMES  # timestamps of the latest positions, if matches can be held back

    def compares(self, number: int) -> bool:
        """Whether a branch's matches are needed even if they are only counted."""
        return any(number in twins.branches for twins in self._twins)

    def of(self, found: Sequence[Found], times: np.ndarray, position: int, *, ended: bool) -> Found:
        """The number of matches, and the matches of each branch, unless only counted.

        Parameters
        ----------
        found : sequence of Found
            Matches of all branches for the same batch.
        times : ndarray of int64
            The batch's timestamps.
        position : int
            Position of the batch's first event.
        ended : bool
            Whether no events follow.
        """
        if not self._twins and len(found) == 1:
            return found[0]
        matches = [matches for part in found for matches in part.matches]
        if not self._twins:
            return Found(sum(part.number for part in found), tuple(matches))
        if any(twins.keeps for twins in self._twins):
            self._times = np.concatenate((self._times, times))
        last = int(times[-1]) if len(times) else None
        first_known = position + len(times) - len(self._times)
        for twins in self._twins:
            parts = {n: part for n in twins.branches if (part := matches[n]) is not None}
            deadlines = {}
            if twins.keeps:
                for number, part in parts.items():
                    first = part.first_positions() - first_known
                    deadlines[number] = self._times[first] + self._window
            for number, given in twins.of(parts, deadlines, last, ended=ended).items():
                matches[number] = given
        if last is not None:
            # No later match begins earlier.
            self._times = self._times[np.searchsorted(self._times, last - self._window) :]
        number = sum(
            part.number if kept is None else len(kept)
            for part, kept in zip(found, matches, strict=True)
        )
        return Found(number, tuple(matches))

    def packed(self) -> np.ndarray:
        """The state, for a snapshot."""
        pending = [
            [
                [number, kept.matches.rows(), kept.deadlines.tolist(), kept.reported.tolist()]
                for number, kept in twins.pending.items()
            ]
            for twins in self._twins
        ]
        return np.array(json.dumps({"times": self._times.tolist(), "pending": pending}))

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Resume from a snapshot.

        Raises
        ------
        SnapshotError
            If the snapshot is invalid.
        """
        try:
            known = json.loads(str(snapshot["union"]))
            self._times = np.array(known["times"], np.int64)
            for twins, kept in zip(self._twins, known["pending"], strict=True):
                twins.pending = {
                    number: _Pending(
                        matches_of_rows(self._branches[number].positive, rows),
                        np.array(deadlines, np.int64),
                        np.array(reported, bool),
                    )
                    for number, rows, deadlines, reported in kept
                }
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot is damaged: no usable 'union': {error!r}") from error


def waits(branch: Pattern) -> bool:
    """Whether a negated event may arrive after all other events."""
    before = branch.structure.precedence()
    names = branch.positive_names
    late = any(not any((v.name, y) in before for y in names) for v in branch.negated)
    return late or open_ended(branch)


def _firsts(parts: Sequence[BranchMatches]) -> list[np.ndarray]:
    """For each part, the rows that no earlier part has; all parts have the same variables."""
    if not parts:
        return []
    sizes = [len(part) for part in parts]
    names = sorted(parts[0].names)
    whole = joined([part.in_columns(names) for part in parts])
    keys = whole.codes()
    number = np.repeat(np.arange(len(parts)), sizes)
    order = np.lexsort((number, *keys))
    first = np.ones(len(order), bool)
    if len(order):
        first[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    kept = np.zeros(len(order), bool)
    kept[order] = first
    return [np.flatnonzero(rows) for rows in np.split(kept, np.cumsum(sizes)[:-1])]
