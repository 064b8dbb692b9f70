"""Persons who are evacuated from Texas to Oklahoma, read at bus stations, shelters and hospitals.

Each person has random numbers of its own, so fewer persons are the first of more.

It stands for the RFID readings of [liu2011]_, section I, with the event types of Figure 2; the paper
has no such data. Routes, shares, times and age groups are chosen here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cepbench.arguments import whole
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.seeds import counted_draws, uniform
from cepbench.streams.parquet_files import under_hierarchy
from cepbench.streams.synthetic import SEED, GeneratedStream, names_of, parameter

_STATES = {"TX": ("G", "A", "D"), "OK": ("O", "T")}
_CITIES = tuple(city for cities in _STATES.values() for city in cities)
_STOPS = ("BusStation", "Shelter", "Hospital")

#: Figure 2, with the states and cities as the queries of Figure 1 name them.
HIERARCHY = ConceptHierarchy(
    {
        "USA": {
            state: {city: [city + stop for stop in _STOPS] for city in cities}
            for state, cities in _STATES.items()
        }
    }
)

#: Cities of a route -> its share of the persons.
ROUTES = {
    "GADT": 0.25, "GADO": 0.15, "GAT": 0.15, "GDAT": 0.05, "GA": 0.05, "ADT": 0.1, "ADO": 0.1,
    "DT": 0.1, "DO": 0.05,
}  # fmt: skip

AGE_GROUPS = ("child", "adult", "senior")
_AGES = (0.25, 0.6, 0.15)

#: Of each stop in a city: the probability that a person is read there.
_READ = (1.0, 0.5, 0.125)

#: Hours in which all persons begin; of a journey between cities, and of a way within one.
_BEGIN, _JOURNEY, _WAY = 72, (2, 12), (1, 8)
_HOUR = 3_600_000

_LONGEST = max(map(len, ROUTES))

# Purposes of random numbers.
_OF_PERSONS, _OF_READINGS = range(2)


@dataclass(frozen=True)
class Evacuation(GeneratedStream):
    """The readings of some persons."""

    kind = "evacuation"
    required = ("persons",)
    per_file = 40_000

    persons: int = parameter(whole, least=1)
    seed: int = SEED()

    @property
    def expected(self) -> float:
        cities = sum(share * len(route) for route, share in ROUTES.items())
        return self.persons * cities * sum(_READ)

    def table(self, first: int, last: int) -> pa.Table:
        """The readings of the persons from ``first`` to before ``last``, in the stored columns.

        ``symbol`` (the place), ``ts`` (whole milliseconds from 1970), ``id`` and ``person_id`` (the
        person), ``age-group``, ``sequence`` (by person; breaks ties of time). In the order of time.
        """
        count, readings = last - first, _LONGEST * len(_STOPS)
        persons = uniform(counted_draws(self.seed, first, count, _OF_PERSONS))
        draws = uniform(
            counted_draws(self.seed, first * readings, count * readings, _OF_READINGS)
        ).reshape(count, _LONGEST, len(_STOPS), 4)
        cities = _cities_of_routes()[_chosen(persons[:, 0], tuple(ROUTES.values()))]
        read = (draws[..., 0] < _READ) & (cities >= 0)[:, :, None]
        low, high = np.array([_JOURNEY, _WAY, _WAY]).T
        hours = np.where(read, low + (high - low) * draws[..., 1], 0.0)
        begins = _BEGIN * persons[:, 1]
        times = (begins[:, None] + np.cumsum(hours.reshape(count, readings), axis=1)) * _HOUR
        rows = np.flatnonzero(read)
        moments = times.ravel()[rows].astype(np.int64)
        rows = rows[np.argsort(moments, kind="stable")]
        moments.sort(kind="stable")
        codes = (cities[:, :, None] * len(_STOPS) + np.arange(len(_STOPS))).ravel()[rows]
        who = rows // readings
        ages = _chosen(persons[:, 2], _AGES)[who]
        table = pa.table(
            {
                "symbol": names_of(codes, HIERARCHY.leaves("USA")),
                "ts": moments.view("datetime64[ms]"),
                "id": first + who,
                "person_id": first + who,
                "age-group": names_of(ages, AGE_GROUPS),
                "sequence": first * readings + rows,
            }
        )
        return under_hierarchy(table, HIERARCHY)


def _chosen(uniform: np.ndarray, shares: tuple[float, ...]) -> np.ndarray:
    """Places in a distribution."""
    # The last sum may be below 1 by rounding.
    return np.searchsorted(np.cumsum(shares)[:-1], uniform, side="right")


def _cities_of_routes() -> np.ndarray:
    """The cities of each route by their codes, -1 after its end; shape (routes, longest)."""
    codes = [[_CITIES.index(city) for city in route] for route in ROUTES]
    return np.array([route + [-1] * (_LONGEST - len(route)) for route in codes])
