"""The matches of a pattern with OR: those of its branches, each once, consumed in one order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cepbench.errors import SnapshotError, UnsupportedPatternError
from cepbench.evaluators.matches import BranchMatches, joined, one_match
from cepbench.patterns.model import Pattern

if TYPE_CHECKING:
    from cepbench.evaluators.engine import Found


@dataclass(frozen=True)
class _Held:
    """A match that a branch before its own may still claim, up to a timestamp."""

    deadline: int
    branch: int
    key: str
    match: BranchMatches


class Union:
    """Puts the branches' matches together, batch by batch.

    Two branches over the same variables may find the same match, which is then the first branch's:
    if that one still waits for a negated event, the match is held back until it has decided. Where
    an event may be in one match only, matches of all branches count in the order of the position of
    their last event, then of all their positions as the pattern is written, then of their branch.

    Parameters
    ----------
    pattern : Pattern

    Raises
    ------
    UnsupportedPatternError
        If events are consumed across branches of which one has to wait for negated events.
    """

    def __init__(self, pattern: Pattern) -> None:
        branches = pattern.branches()
        self._written = pattern.positive_names
        self._window = branches[0].window.length
        alike = [sorted(branch.positive_names) for branch in branches]
        self._twins = [alike.count(names) > 1 for names in alike]
        self._yields = [
            any(_waits(branches[other]) for other in range(number) if alike[other] == names)
            for number, names in enumerate(alike)
        ]
        # Match -> the latest timestamp that had been seen when it was reported.
        self._seen: dict[str, int] = {}
        self._held: list[_Held] = []
        self._times = np.empty(0, np.int64)  # of the latest positions, if any match may be held
        self._consumes = len(branches) > 1 and branches[0].strategy.name == "consuming"
        self._consumed: set[int] = set()
        if self._consumes and any(_waits(branch) for branch in branches):
            raise UnsupportedPatternError(
                "STRATEGY consuming under OR cannot wait for a negated event behind the others; "
                "put an item after the NOT, or evaluate the branches one by one"
            )

    def compares(self, number: int) -> bool:
        """Whether a branch's matches have to be seen, even where they are only counted."""
        return self._consumes or self._twins[number]

    @property
    def consumes(self) -> bool:
        """Whether events are consumed here, across branches, and not within each of them."""
        return self._consumes

    def of(
        self, found: Sequence[Found], times: np.ndarray, position: int, *, ended: bool
    ) -> tuple[int, list[BranchMatches | None]]:
        """The number of matches, and those of each branch, as far as they are known.

        None stands for the matches of a branch that are only counted.

        Parameters
        ----------
        found : sequence of Found
            One a branch, of the same batch.
        times : ndarray of int64
            The batch's timestamps.
        position : int
            Of the batch's first event.
        ended : bool
            Whether no events follow.
        """
        if not (self._consumes or any(self._twins)):
            return sum(part.number for part in found), [part.matches for part in found]
        if self._consumes:
            kept: list[list[int]] = [[] for _ in found]
            self._consume(found, kept)
            return sum(map(len, kept)), _taken(found, kept)
        if any(self._yields):
            self._times = np.concatenate((self._times, times))
        kept = [self._new(number, part, position, times) for number, part in enumerate(found)]
        matches = _taken(found, kept)
        number = sum(map(len, kept))
        last = int(times[-1]) if len(times) else None
        released = self._release(last, ended=ended)
        for held in released:
            before = matches[held.branch]
            assert before is not None  # `compares` has seen to it
            matches[held.branch] = joined([before, held.match])
        self._forget(last)
        return number + len(released), matches

    def _new(self, number: int, part: Found, position: int, times: np.ndarray) -> list[int]:
        """Which of a branch's matches are to be reported at once."""
        if not self._twins[number] or part.matches is None:
            return list(range(part.number))
        rows = []
        first_known = position + len(times) - len(self._times)
        earliest = part.matches.first_positions() if self._yields[number] else None
        for row, key in enumerate(self._keys(part.matches)):
            if key in self._seen:
                continue
            if earliest is None:
                rows.append(row)
                self._seen[key] = int(times[-1]) if len(times) else 0
            else:
                deadline = int(self._times[earliest[row] - first_known]) + self._window
                match = part.matches.taken(np.array([row]))
                self._held.append(_Held(deadline, number, key, match))
        return rows

    def _release(self, last: int | None, *, ended: bool) -> list[_Held]:
        """Matches that were held back, and that no branch before theirs can claim any more."""
        released = []
        waiting = []
        for held in self._held:
            if not ended and (last is None or held.deadline >= last):
                waiting.append(held)
            elif held.key not in self._seen:
                self._seen[held.key] = last or 0
                released.append(held)
        self._held = waiting
        return released

    def _forget(self, last: int | None) -> None:
        """Forget what is older than anything that may still be reported."""
        if last is None:
            return
        # A match that waited comes at most a window after its twin.
        oldest = last - 2 * self._window
        self._seen = {key: at for key, at in self._seen.items() if at >= oldest}
        self._times = self._times[np.searchsorted(self._times, oldest) :]

    def _consume(self, found: Sequence[Found], kept: list[list[int]]) -> None:
        candidates: list[tuple[int, list[int], int, int]] = []
        for number, part in enumerate(found):
            assert part.matches is not None  # `compares` has seen to it
            matches = part.matches
            order = [matches.names.index(n) for n in self._written if n in matches.names]
            lasts = matches.last_positions().tolist()
            for row, key in enumerate(matches.rows()):
                events = [
                    position
                    for entry in (key[at] for at in order)
                    for position in (entry if isinstance(entry, tuple) else (entry,))
                ]
                candidates.append((lasts[row], events, number, row))
        for _, events, number, row in sorted(candidates):
            if self._consumed.isdisjoint(events):
                self._consumed.update(events)
                kept[number].append(row)

    def _keys(self, matches: BranchMatches) -> list[str]:
        """Each match as a text that does not depend on the order of the variables."""
        order = sorted(range(len(matches.names)), key=matches.names.__getitem__)
        return [json.dumps([key[at] for at in order]) for key in matches.rows()]

    def packed(self) -> np.ndarray:
        """What must be known to go on, for a snapshot."""
        known = {
            "seen": self._seen,
            "consumed": sorted(self._consumed),
            "times": self._times.tolist(),
            "held": [
                [held.deadline, held.branch, held.key, held.match.names, held.match.rows()[0]]
                for held in self._held
            ],
        }
        return np.array(json.dumps(known))

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on where a snapshot was taken.

        Raises
        ------
        SnapshotError
            If it does not say what was known.
        """
        try:
            known = json.loads(str(snapshot["union"]))
            self._seen, self._consumed = dict(known["seen"]), set(known["consumed"])
            self._times = np.array(known["times"], np.int64)
            self._held = [
                _Held(deadline, branch, key, one_match(names, row))
                for deadline, branch, key, names, row in known["held"]
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot is damaged: no usable 'union': {error!r}") from error


def _taken(found: Sequence[Found], kept: Sequence[Sequence[int]]) -> list[BranchMatches | None]:
    return [
        None if part.matches is None else part.matches.taken(np.array(rows, np.int64))
        for part, rows in zip(found, kept, strict=True)
    ]


def _waits(branch: Pattern) -> bool:
    """Whether a negated event may still come when all others have."""
    before = branch.structure.precedence()
    names = branch.positive_names
    return any(not any((v.name, y) in before for y in names) for v in branch.negated)
