"""Stock ticks of chosen rates and selectivities: the synthetic stream of ZStream's experiments.

One tick a unit of time; fewer events are the beginning of more.

It models the data of [mei2009]_, section 6: "synthetic stock events so that event rates and the
selectivity of multi-class predicates could be controlled".

Differs from the paper
----------------------
The paper does not say how selectivities were controlled. Here each name's prices are uniform and 10
dollars wide, and the prices of two names are shifted against each other such that a comparison
holds for an independent pair of ticks with exactly the requested probability.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from cepbench.arguments import choice, elements, number, shown, whole
from cepbench.errors import CepbenchError, DatasetError
from cepbench.seeds import counted_draws, uniform
from cepbench.streams.synthetic import SEED, GeneratedStream, drawn_from, names_of, parameter

NAMES = ("IBM", "Sun", "Oracle", "Google")

#: Dollars: the lowest price of all, and the width of each name's prices.
_LOWEST, _WIDTH = 100.0, 10.0
#: A volume is a whole number of lots.
_LOT, _MOST_LOTS = 100, 50

_COMPARISON = re.compile(r"\s*([^<>]*[^<>\s])\s*([<>])\s*([^<>\s][^<>]*?)\s*")


def relative_rates(
    given: Any, name: str = "rates", error: type[CepbenchError] = DatasetError
) -> dict[str, float]:
    """Rates by name, each at least 0; a DatasetError if they are not a table of such numbers."""
    return {
        key: number(rate, f"the rate of {key}", error, least=0.0)
        for key, rate in _table(given, name, "{IBM = 1, Sun = 50}", error).items()
    }


def _selectivities(given: Any, name: str, error: type[CepbenchError]) -> dict[str, float]:
    """With each comparison written as ``a > b``."""
    table = _table(given, name, '{"IBM > Sun" = 0.5}', error)
    return {
        " > ".join(_pair(text)): number(
            value, f"the selectivity of {text}", error, least=0.0, most=1.0
        )
        for text, value in table.items()
    }


def _segments(
    given: Any, name: str, error: type[CepbenchError]
) -> list[dict[str, dict[str, float]]]:
    read = {"rates": relative_rates, "selectivities": _selectivities}
    segments = []
    for one in elements(given, name, "[{rates = {…}}]", error):
        table = _table(one, f"each of {name}", "{rates = {IBM = 0.01}}", error)
        check_names(table, read, "a segment")
        segments.append({key: read[key](value, key, error) for key, value in table.items()})
    return segments


def _table(given: Any, name: str, example: str, error: type[CepbenchError]) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise error(f"{name} must be a table such as {example}, not {shown(given)}")
    return dict(given)


@dataclass(frozen=True)
class StockRates(GeneratedStream):
    """Ticks of some stocks.

    A DatasetError if a number is out of range, or a comparison is not one of two names with rates,
    or closes a cycle.

    Examples
    --------
    >>> ticks = StockRates(1000, rates={"IBM": 1, "Sun": 1}, selectivities={"IBM > Sun": 1 / 32})
    >>> ticks.table(0, 1000).num_rows
    1000
    """

    kind = "stock-rates"

    events: int = parameter(whole, least=1)
    seed: int = SEED()
    #: Relative rate of each name: a tick is of a name with the probability of its rate over the
    #: sum of all.
    rates: Mapping[str, float] = parameter(relative_rates, partial(dict.fromkeys, NAMES, 1.0))
    #: Comparisons of the prices of two names, such as ``"IBM > Sun"``, and the probability that
    #: each holds for a tick of either name. Names that no comparison mentions have equal prices.
    #: Comparisons must not form a cycle, in which all but one decide the last.
    selectivities: Mapping[str, float] = parameter(_selectivities, dict)
    #: Parameter sets in a row, each for an equal share of the events: tables of ``rates`` and
    #: ``selectivities`` that replace some of the stream's.
    segments: Sequence[Mapping[str, Mapping[str, float]]] = parameter(_segments, ())

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.drawn  # raises errors of names and cycles

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The names, sorted, so that the order of rates does not matter."""
        return tuple(sorted(self.rates))

    def table(self, first: int, last: int) -> pa.Table:
        """The ticks from ``first`` to before ``last``, in the stored columns.

        ``symbol`` and ``name`` (the stock), ``ts`` and ``id`` (the number of the tick, from 0),
        ``price`` (dollars), ``volume`` (shares).
        """
        draws = counted_draws(self.seed, first, last - first)
        share = uniform(draws[:, 0])
        # Coarser than a float, so that no price is rounded up to the end of its range.
        place = (draws[:, 1] >> np.uint64(32)) * 2.0**-32
        codes = np.empty(last - first, np.int32)
        prices = np.empty(last - first)
        ends = [self.events * k // len(self.drawn) for k in range(len(self.drawn) + 1)]
        for (begin, end), (shares, lowest) in zip(pairwise(ends), self.drawn, strict=True):
            inside = slice(*(np.clip((begin, end), first, last) - first))
            codes[inside] = np.searchsorted(shares, share[inside], side="right")
            prices[inside] = lowest[codes[inside]] + _WIDTH * place[inside]
        names = names_of(codes, self.types)
        ticks = np.arange(first, last)
        return pa.table(
            {
                "symbol": names,
                "ts": ticks,
                "id": ticks,
                "name": names,
                "price": prices,
                "volume": _LOT * drawn_from(draws[:, 2], 1, _MOST_LOTS),
            }
        )

    @cached_property
    def drawn(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """By segment: cumulative shares and lowest prices of the names; float64, shape (names,)."""
        found = []
        for segment in self.segments or [{}]:
            rates = {**self.rates, **segment.get("rates", {})}
            own = segment.get("selectivities", {})
            replaced = [set(_pair(text)) for text in own]
            kept = {
                text: value
                for text, value in self.selectivities.items()
                if set(_pair(text)) not in replaced
            }
            check_names(rates, self.rates, "rates of a segment")
            shifts = _shifts({**kept, **own}, self.types)
            total = np.cumsum([rates[name] for name in self.types])
            if total[-1] == 0.0:
                raise DatasetError("rates: at least one name needs a rate above 0")
            found.append((total / total[-1], _LOWEST + _WIDTH * (shifts - shifts.min())))
        return found


def check_names(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Check names of a parameter, or raise a DatasetError that suggests the nearest of those known."""
    names = list(known)
    for name in given:
        choice(name, f"{where}: each name", names, DatasetError)


def _pair(text: str) -> tuple[str, str]:
    """The names of a comparison, that of the higher price first."""
    found = _COMPARISON.fullmatch(text)
    if found is None:
        raise DatasetError(
            f"selectivities: {text!r} is not a comparison of two names, such as 'IBM > Sun'"
        )
    return (found[1], found[3]) if found[2] == ">" else (found[3], found[1])


def _shifts(selectivities: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
    """Where the prices of each name begin, in widths; float64, shape (names,).

    The difference of two uniform variables has a triangular density, so two names that are d
    apart have ``P(a > b) = (1 + d)²/2`` for d <= 0, else ``1 - (1 - d)²/2``.
    """
    # Each name's component of the graph of comparisons, with the shifts in it.
    component = {name: {name: 0.0} for name in names}
    for text, selectivity in sorted(selectivities.items()):
        higher, lower = _pair(text)
        check_names((higher, lower), names, f"selectivities: {text!r}")
        one, other = component[higher], component[lower]
        if one is other:
            raise DatasetError(
                f"selectivities: {text!r} closes a cycle; leave one comparison of it out, which "
                "follows from the others"
            )
        distance = (
            math.sqrt(2.0 * selectivity) - 1.0
            if selectivity <= 0.5
            else 1.0 - math.sqrt(2.0 * (1.0 - selectivity))
        )
        move = one[higher] - distance - other[lower]
        one |= {name: shift + move for name, shift in other.items()}
        component |= dict.fromkeys(other, one)
    return np.array([component[name][name] for name in names])
