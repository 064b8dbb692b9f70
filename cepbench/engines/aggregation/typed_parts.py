"""GROUP BY type(a) without matches: each partition is divided by the types of some items' events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from cepbench.engines.aggregation.protocol import Key
from cepbench.engines.plan_runs.engine import read_only
from cepbench.engines.sase.kernels import tables
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.model import EventType, Grouping, Pattern
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
        values: list[list[Key]] = []
        of = {variable.name: pattern.types_of(variable) for variable in pattern.positive}
        for variable in self._variables:
            types = of[variable]
            assert types is not None
            values.append([*dict.fromkeys(self._values(variable, its) for its in types)])
        number = int(np.prod([float(len(its)) for its in values]))
        if number > _MOST:
            raise UnsupportedPatternError(
                f"{name} cannot aggregate GROUP BY {', '.join(map(str, self._keys))}, which have "
                f"{number:,} combinations of types; use the method two-step, or a level nearer to the "
                "root"
            )
        parts = [dict(zip(self._variables, its, strict=True)) for its in product(*values)]
        self._parts = sorted(parts, key=self._key)
        #: Of each part, the values of the keys that are types, ascending.
        self.keys = [*map(self._key, self._parts)]
        self._barred: dict[str, np.ndarray] = {}

    @property
    def _variables(self) -> list[str]:
        return [*dict.fromkeys(str(key.variable) for key in self._keys)]

    def _values(self, variable: str, own: str) -> Key:
        """The values of the keys of an item for an event of a type."""
        levels = [its.attribute.level for its in self._of(variable)]  # type: ignore[union-attr]
        known = self._hierarchy
        return tuple(own if known is None else known.at_level(own, level) for level in levels)

    def _of(self, variable: str) -> list[Grouping]:
        return [key for key in self._keys if key.variable == variable]

    def _key(self, part: Mapping[str, Key]) -> Key:
        of = {
            key: value
            for variable, values in part.items()
            for key, value in zip(self._of(variable), values, strict=True)
        }
        return tuple(of[key] for key in self._keys)

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
            its = {variable: self._values(variable, own) for variable in self._variables}
            self._barred[own] = np.array(
                [
                    sum(self._flags[name] for name in its if its[name] != part[name])
                    for part in self._parts
                ],
                np.int64,
            )
        return self._barred[own]
