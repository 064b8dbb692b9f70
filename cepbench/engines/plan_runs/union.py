"""The matches of a pattern with OR: those of its branches, without duplicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cepbench.engines.plan_runs.compiled import CompiledBranch
from cepbench.engines.plan_runs.groups import open_ended
from cepbench.engines.runs.matches import BranchMatches, Found, joined, no_matches
from cepbench.patterns.model import Pattern
from cepbench.state import Stateful

_NO_TIMES = np.empty(0, np.int64)


@dataclass
class _Pending(Stateful):
    """Matches of one branch that a waiting twin may also find, each up to a deadline."""

    SAVED = ("matches", "deadlines", "reported")

    matches: BranchMatches
    deadlines: np.ndarray  #: int64 (matches,): timestamp after which the twin has decided
    #: bool (matches,): whether they were reported; the others are held back for an earlier twin.
    reported: np.ndarray

    def taken(self, kept: np.ndarray) -> _Pending:
        return _Pending(self.matches.taken(kept), self.deadlines[kept], self.reported[kept])


class _Twins(Stateful):
    """Branches over the same variables, by ascending number; a match found by several is attributed
    to the first.

    Branches find the same match in the batch with its last event, except for those that wait for a
    negated event after all others: they decide a window after its first event.
    """

    SAVED = ("pending",)

    def __init__(self, branches: Mapping[int, Pattern]) -> None:
        self.branches = tuple(branches)
        #: Those that wait for a negated event after all others.
        self._waiting = [number for number, its in branches.items() if waits(its)]
        self._prompt = [number for number in branches if number not in self._waiting]
        #: By branch; never of a waiting branch.
        self.pending = {
            number: _Pending(no_matches(branches[number].positive), _NO_TIMES, _NO_TIMES > 0)
            for number in self._prompt
            if self.keeps
        }

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
        old = self.pending[number]
        self.pending[number] = _Pending(
            joined([old.matches, matches]),
            np.append(old.deadlines, deadlines),
            np.append(old.reported, np.full(len(matches), not held)),
        )

    def _decided(self, number: int, last: int | None, *, ended: bool) -> _Pending:
        """Remove and return the matches of a branch whose twins have decided."""
        pending = self.pending[number]
        due = np.full(len(pending.matches), ended)
        if last is not None and not ended:
            due = pending.deadlines < last
        self.pending[number] = pending.taken(np.flatnonzero(~due))
        return pending.taken(np.flatnonzero(due))


class Union(Stateful):
    """The union of the branches' matches, batch by batch.

    Two matches are equal if they bind the same events to the same variables, so only branches over
    the same variables can have duplicates. A duplicate is attributed to the first branch; if that
    still waits for a negated event, the match is held back until it has decided. The state between
    batches is limited to the matches within a window.
    """

    SAVED = ("_times", "_twins")

    def __init__(self, branches: Sequence[Pattern]) -> None:
        self._window = branches[0].window.length
        alike: dict[frozenset[str], list[int]] = {}
        if branches[0].strategy.name == "consuming":
            branches = ()  # consumed events are in no other match
        for number, branch in enumerate(branches):
            alike.setdefault(frozenset(branch.positive_names), []).append(number)
        self._twins = [
            _Twins({number: branches[number] for number in numbers})
            for numbers in alike.values()
            if len(numbers) > 1
        ]
        self._times = _NO_TIMES  # timestamps of the latest positions, if matches can be held back

    def compares(self, number: int) -> bool:
        """Whether a branch's matches are needed even if they are only counted."""
        return any(number in twins.branches for twins in self._twins)

    def of(self, found: Sequence[Found], times: np.ndarray, position: int, *, ended: bool) -> Found:
        """The number of matches, and the matches of each branch, unless only counted, of a batch
        whose first event is at ``position``.
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


def waits(branch: Pattern) -> bool:
    """Whether a negated event may arrive after all other events."""
    return CompiledBranch.of(branch).is_late or open_ended(branch)


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
