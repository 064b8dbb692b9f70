"""The matches of a pattern with OR: those of its branches, each once, consumed in one order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cepbench.errors import SnapshotError, UnsupportedPatternError
from cepbench.evaluators.matches import BranchMatches
from cepbench.patterns.model import Pattern

if TYPE_CHECKING:
    from cepbench.evaluators.engine import Found


class Union:
    """Puts the branches' matches together, batch by batch.

    Two branches over the same variables may find the same match, which is then the first branch's
    (of matches that wait for a negated event, that of the branch which reports it first). Where an
    event may be in one match only, matches of all branches count in the order of the position of
    their last event, then of their branch, then of their positions.

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
        self._names = [branch.positive_names for branch in branches]
        alike = [sorted(names) for names in self._names]
        self._twins = [alike.count(names) > 1 for names in alike]
        # Match -> the latest timestamp that had been seen when it was reported.
        self._seen: dict[str, int] = {}
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
        self, found: Sequence[Found], last: int | None, *, ended: bool
    ) -> tuple[int, list[BranchMatches]]:
        """The number of matches, and those of each branch, as far as they are known.

        Parameters
        ----------
        found : sequence of Found
            One a branch, of the same batch.
        last : int or None
            Latest timestamp seen.
        ended : bool
            Whether no events follow.
        """
        if not (self._consumes or any(self._twins)):
            return sum(part.number for part in found), [
                p.matches for p in found if p.matches is not None
            ]
        kept: list[list[int]] = [[] for _ in found]
        if self._consumes:
            self._consume(found, kept)
        for number, part in enumerate(found):
            if self._consumes:
                continue
            if not self._twins[number] or part.matches is None:
                kept[number] = list(range(part.number))
                continue
            for row, key in enumerate(self._keys(part.matches)):
                if key not in self._seen:
                    kept[number].append(row)
                    self._seen[key] = last or 0
        if last is not None:
            # A match that waited comes at most a window after its twin.
            self._seen = {k: at for k, at in self._seen.items() if at >= last - 2 * self._window}
        matches = [
            part.matches.taken(np.array(rows, np.int64))
            for part, rows in zip(found, kept, strict=True)
            if part.matches is not None
        ]
        return sum(map(len, kept)), matches

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
        return np.array(json.dumps({"seen": self._seen, "consumed": sorted(self._consumed)}))

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
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"the snapshot is damaged: no usable 'union': {error!r}") from error


def _waits(branch: Pattern) -> bool:
    """Whether a negated event may still come when all others have."""
    before = branch.structure.precedence()
    names = branch.positive_names
    return any(not any((v.name, y) in before for y in names) for v in branch.negated)
