"""The pieces in which engines work: sizes that change time and memory, and no match.

Engines take up a batch in rounds, write matches into arrays of some length, and make tables with room
for more. Boundaries of such pieces are rare in a short stream; :func:`pieces_of` makes them frequent::

    with pieces_of(events=3, matches=2, room=1):
        result = cep.evaluate(pattern, stream, plan)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class _Most:
    events: float = inf
    matches: float = inf
    room: float = inf


_OWN = _Most()
_MOST: ContextVar[_Most] = ContextVar("_MOST")


@contextmanager
def pieces_of(*, events: float = inf, matches: float = inf, room: float = inf) -> Iterator[None]:
    """Let engines work in pieces that are at most so large, in this thread.

    ``events`` are taken up at once: in a round, or a step. ``matches``, or partial matches, are
    written at once. ``room`` is what a new table has besides what it gets.
    """
    token = _MOST.set(_Most(events, matches, room))
    try:
        yield
    finally:
        _MOST.reset(token)


def events_at_once(size: int) -> int:
    """An engine's own number of events, or the one that :func:`pieces_of` allows."""
    return int(min(size, _MOST.get(_OWN).events))


def matches_at_once(size: int) -> int:
    """An engine's own number of matches, or the one that :func:`pieces_of` allows."""
    return int(min(size, _MOST.get(_OWN).matches))


def room_for_more(size: int) -> int:
    """An engine's own room, or the one that :func:`pieces_of` allows."""
    return int(min(size, _MOST.get(_OWN).room))
