"""Events as tests draw them: types by chance, at every tick or at random moments, and columns by chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.streams.event_stream import EventStream

Column = Callable[[np.random.Generator, int], Any]

#: Where times are datetimes.
MORNING = pd.Timestamp("2026-01-05 09:30")


def normal(rng: np.random.Generator, count: int) -> Any:
    return rng.normal(size=count)


def uniform(rng: np.random.Generator, count: int) -> Any:
    return rng.random(count)


def below(most: int) -> Column:
    """Whole numbers from 0 on."""
    return lambda rng, count: rng.integers(0, most, count)


def drawn_events(
    count: int,
    types: Sequence[str],
    *,
    seed: int = 0,
    p: Sequence[float] | None = None,
    within: int | None = None,
    seconds: int | None = None,
    names: tuple[str, str] = ("type", "time"),
    **columns: Column,
) -> pd.DataFrame:
    """So many events, one a tick; or ``within`` so many ticks, or so many ``seconds`` of a morning.

    The columns of type and time have the ``names``; all is drawn in the order of the columns.
    """
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({names[0]: rng.choice([*types], count, p=p)})
    if seconds is not None:
        drawn = np.sort(rng.integers(0, seconds, count))
        frame[names[1]] = MORNING + pd.to_timedelta(drawn, unit="s")
    elif within is not None:
        frame[names[1]] = np.sort(rng.integers(0, within, count))
    else:
        frame[names[1]] = np.arange(count)
    return frame.assign(**{name: drawn(rng, count) for name, drawn in columns.items()})


def drawn_stream(
    count: int, types: Sequence[str], *, hierarchy: ConceptHierarchy | None = None, **how: Any
) -> EventStream:
    """The events of :func:`drawn_events` as a stream."""
    type, time = how.get("names", ("type", "time"))
    events = drawn_events(count, types, **how)
    return EventStream.from_pandas(events, type=type, time=time, hierarchy=hierarchy)
