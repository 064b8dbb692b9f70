"""GROUP BY type(a) without matches: each partition is divided by the types of some items' events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, product

import numpy as np

from cepbench.engines.aggregation.protocol import Key
from cepbench.engines.sase.kernels import tables
from cepbench.errors import UnsupportedPatternError
from cepbench.kernels.arrays import read_only
from cepbench.patterns.model import EventType, Pattern
from cepbench.streams.event_stream import EventStream

#: The most parts into which a partition is divided.
_MOST = 1000


class TypedParts:
    """The parts of a partition: one for each combination of values of ``type(a)``, ``type(b, 1)``, ….

    In a part these items bind only events of its types, and the others bind what they always do. So
    each match is counted in one part, and an event in as many as there are combinations at most.

    ``flags`` are those of the events that each variable may bind, ``name`` that of the method for errors.
    There may be 1,000 parts.
    """

    def __init__(self, pattern: Pattern, flags: Mapping[str, int], name: str) -> None:
        self._hierarchy, self._flags = pattern.hierarchy, flags
        self._keys = [key for key in pattern.group_by if isinstance(key.attribute, EventType)]
        #: The places of each item's keys among all.
        self._places: dict[str, list[int]] = {}
        for place, key in enumerate(self._keys):
            self._places.setdefault(str(key.variable), []).append(place)
        of = {variable.name: pattern.types_of(variable) for variable in pattern.positive}
        values = [
            {self._values(places, its) for its in of[variable] or ()}
            for variable, places in self._places.items()
        ]
        number = int(np.prod([float(len(its)) for its in values]))
        if number > _MOST:
            raise UnsupportedPatternError(
                f"{name} cannot aggregate GROUP BY {', '.join(map(str, self._keys))}, which have "
                f"{number:,} combinations of types; use the method two-step, or a level nearer to the "
                "root"
            )
        order = np.argsort([*chain.from_iterable(self._places.values())])
        parts = ([*chain.from_iterable(its)] for its in product(*values))
        #: Of each part, the values of the keys that are types, ascending.
        self.keys = sorted(tuple(part[place] for place in order) for part in parts)
        self._barred: dict[str, np.ndarray] = {}

    def _values(self, places: Sequence[int], own: str) -> Key:
        """The values of some keys for an event of a type."""
        levels = [self._keys[place].attribute.level for place in places]  # type: ignore[union-attr]
        known = self._hierarchy
        return tuple(own if known is None else known.at_level(own, level) for level in levels)

    def divided(
        self, batch: EventStream, events: tables.Events, weights: Sequence[np.ndarray]
    ) -> tuple[tables.Events, list[np.ndarray]]:
        """Events once for each part, one after the other, and so their weights.

        Row r of a batch becomes the rows from r times the number of parts on.
        """
        number = len(self.keys)
        barred = np.array([self._barred_by(name) for name in batch.type_names], np.int64)
        flags = (events.flags[:, None] & ~barred.reshape(-1, number)[batch.type_codes]).ravel()
        return (
            events._replace(
                rows=np.flatnonzero(flags),
                times=read_only(np.repeat(events.times, number)),
                flags=flags,
                values=np.repeat(events.values, number, axis=1),
            ),
            [np.repeat(its, number) for its in weights],
        )

    def _barred_by(self, own: str) -> np.ndarray:
        """By part, the flags that an event of a type cannot have."""
        if own not in self._barred:
            barred = [
                sum(
                    self._flags[variable]
                    for variable, places in self._places.items()
                    if self._values(places, own) != tuple(part[place] for place in places)
                )
                for part in self.keys
            ]
            self._barred[own] = np.array(barred, np.int64)
        return self._barred[own]
