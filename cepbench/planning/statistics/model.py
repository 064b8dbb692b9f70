"""Statistics of a stream for plan generators: arrival rates and selectivities."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cepbench.arguments import kind_of, number, shown, text
from cepbench.errors import StatisticsError, did_you_mean
from cepbench.markup import Html

Pair = tuple[str, str]

#: Fields with a probability for each pair.
_PROBABILITIES = ("selectivities", "time_selectivities", "event_selectivities")

_TABLE = Html(
    """<table class="cep-statistics"><tr><th>quantity</th><th>variables</th><th>value</th>
<th>standard error</th></tr>{% for quantity, key, value, error in rows %}
<tr><td>{{ quantity }}</td><td>{{ key }}</td><td>{{ "%.4g" | format(value) }}</td>
<td>{{ "" if error is none else "± %.2g" | format(error) }}</td></tr>{% endfor %}</table>"""
)


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Arrival rates and selectivities of a pattern's variables [kolchinsky2018]_, section 3.1.

    Give exactly one of ``cardinalities`` and ``rates``. Mappings are copied; pairs are stored with
    their names in alphabetical order.

    Parameters
    ----------
    cardinalities : mapping of str to float, optional
        Expected number of events per window, ``W·r``, of each variable; at least 0.
    rates : mapping of str to float, optional
        Expected number of events per second (per tick for a window in ``units``); at least 0.
    selectivities : mapping of (str, str) to float, optional
        Probability, from 0 to 1, that the conditions over two variables hold; ``("a", "b")`` and
        ``("b", "a")`` are the same, ``("a", "a")`` is the filter on ``a`` alone. A missing pair has
        selectivity 1. The order in time of a SEQ is not part of them. Under partition contiguity
        equality of the partition is part of them, and a missing pair has selectivity
        ``1 / partitions``.
    time_selectivities : mapping of (str, str) to float, optional
        Probability that the events of two variables of a SEQ within a window are in order, which
        ZStream's costs read [mei2009]_, Table 1; 1/2 if it is not given.
    event_selectivities : mapping of (str, str) to float, optional
        Where conditions on the first or the last event of a Kleene variable, which hold for a set, are part of
        a selectivity: that of the others, which hold for each event. Only the expected work of
        engines reads it.
    standard_errors : mapping of str or (str, str) to float, optional
        For display only: of a rate or cardinality by the variable's name, of a selectivity by its
        pair.
    stream_rate : float, optional
        Events of all types per second (or tick); greater than 0. Only the cost models of
        contiguity need it.
    partitions : float, optional
        Number of partitions under partition contiguity, at least 1; if they differ in size, the
        number of equal partitions with the same average number of other events per event.

    Raises
    ------
    StatisticsError
        If a value is out of range, a name is unknown, or a pair has two values.
    """

    cardinalities: Mapping[str, float] | None = None
    rates: Mapping[str, float] | None = None
    selectivities: Mapping[Pair, float] = field(default_factory=dict)
    time_selectivities: Mapping[Pair, float] = field(default_factory=dict)
    event_selectivities: Mapping[Pair, float] = field(default_factory=dict)
    standard_errors: Mapping[str | Pair, float] = field(default_factory=dict)
    stream_rate: float | None = None
    partitions: float | None = None

    def __post_init__(self) -> None:
        if (self.cardinalities is None) == (self.rates is None):
            raise StatisticsError(
                "give exactly one of cardinalities= (events per window), rates= (events per second)"
            )
        kind = "rates" if self.cardinalities is None else "cardinalities"
        for key in (kind, *_PROBABILITIES, "standard_errors"):
            if not isinstance(getattr(self, key), Mapping):
                raise StatisticsError(
                    f"{key} is a mapping such as a dict, not {kind_of(getattr(self, key))}"
                )
        values = {}
        for name, value in getattr(self, kind).items():
            if not isinstance(name, str):
                raise StatisticsError(f"{kind} has a key {shown(name)}; a key is a variable's name")
            values[name] = _number(kind, name, value)
        object.__setattr__(self, kind, values)
        for key in _PROBABILITIES:
            probabilities = _by_pair(key, getattr(self, key), values)
            for pair, value in probabilities.items():
                if value > 1:
                    raise StatisticsError(
                        f"{key}[{shown(pair)}] = {value!r}; a probability is at most 1"
                    )
            object.__setattr__(self, key, probabilities)
        errors: dict[Any, float] = {}
        paired: dict[Any, float] = {}
        for name, value in self.standard_errors.items():
            if isinstance(name, str):
                _known("standard_errors", name, values)
                errors[name] = _number("standard_errors", name, value)
            else:
                paired[name] = value
        errors |= _by_pair("standard_errors", paired, values)
        object.__setattr__(self, "standard_errors", errors)
        for key, bound in (("stream_rate", {"least": 0.0}), ("partitions", {"least": 1.0})):
            value = getattr(self, key)
            if value is not None:
                object.__setattr__(self, key, number(value, key, StatisticsError, **bound))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that have a rate or cardinality."""
        return tuple(self._arrivals)

    @property
    def _arrivals(self) -> Mapping[str, float]:
        given = self.rates if self.cardinalities is None else self.cardinalities
        assert given is not None  # checked by __post_init__
        return given

    def cardinality(self, name: str, window: float) -> float:
        """Expected number of events for ``name`` in a window of ``window`` seconds (or ticks).

        Raises StatisticsError if ``name`` is unknown, or the number is too large for a float.
        """
        if text(name, "name", StatisticsError) not in (arrivals := self._arrivals):
            raise StatisticsError(
                f"there is no rate or cardinality for variable {name!r}, only for "
                f"{', '.join(self.names) or 'no variable'}"
            )
        value = arrivals[name]
        window = number(window, "window", StatisticsError, least=0.0)
        if self.cardinalities is not None:
            return value
        if math.isinf(value * window):
            raise StatisticsError(
                f"rates[{name!r}] = {value!r} in a window of {window!r} is too large for a float"
            )
        return value * window

    def selectivity(self, first: str, second: str) -> float:
        """Selectivity of the conditions over two variables (or on one); 1 if unknown."""
        return self.selectivities.get(_pair(first, second), 1.0)

    def time_selectivity(self, first: str, second: str) -> float:
        """Probability that events of two variables are in the order of a SEQ; 1/2 if unknown."""
        return self.time_selectivities.get(_pair(first, second), 0.5)

    def selectivity_of_events(self, first: str, second: str) -> float:
        """As :meth:`selectivity`, without conditions on the first or the last event of a set."""
        pair = _pair(first, second)
        return self.event_selectivities.get(pair, self.selectivities.get(pair, 1.0))

    def has_selectivity(self, first: str, second: str) -> bool:
        """Whether the selectivity of two variables (or of one) is given."""
        return _pair(first, second) in self.selectivities

    def stream_cardinality(self, window: float, *, partition: bool = False) -> float:
        """Expected number of events of all types in a window of the stream (or of a partition).

        Raises StatisticsError if the rate of the stream or the number of partitions is unknown.
        """
        if self.stream_rate is None:
            raise StatisticsError(
                "contiguity depends on the rate of all events; give the events per second of the "
                "whole stream as Statistics(stream_rate=...), or measure it"
            )
        window = number(window, "window", StatisticsError, least=0.0)
        return self.stream_rate * window / (self.partition_count() if partition else 1.0)

    def partition_count(self) -> float:
        """The number of partitions; StatisticsError if it is unknown."""
        if self.partitions is None:
            raise StatisticsError(
                "partition contiguity depends on the number of partitions; give "
                "Statistics(partitions=...), or measure it with the strategy in the pattern"
            )
        return self.partitions

    def rows(self) -> Iterator[tuple[str, str, float, float | None]]:
        """``(quantity, key, value, standard error or None)``, for display."""
        quantity = "events per second" if self.cardinalities is None else "events per window"
        for name, value in self._arrivals.items():
            yield quantity, name, value, self.standard_errors.get(name)
        for pair, value in self.selectivities.items():
            shown = pair[0] if pair[0] == pair[1] else ", ".join(pair)
            yield "selectivity", shown, value, self.standard_errors.get(pair)
        for pair, value in self.time_selectivities.items():
            yield "in order", ", ".join(pair), value, None
        if self.stream_rate is not None:
            yield "events per second", "whole stream", self.stream_rate, None
        if self.partitions is not None:
            yield "partitions", "whole stream", self.partitions, None

    def describe(self) -> str:
        """One number per line, with its standard error where known."""
        return "\n".join(
            f"{quantity:<18} {key}: {value:.4g}" + ("" if error is None else f" ± {error:.2g}")
            for quantity, key, value, error in self.rows()
        )

    def _repr_html_(self) -> str:
        return str(_TABLE(rows=self.rows()))

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serializable dict."""
        kind = "rates" if self.cardinalities is None else "cardinalities"
        optional: dict[str, Any] = {"stream_rate": self.stream_rate, "partitions": self.partitions}
        for key in _PROBABILITIES[1:]:
            optional[key] = [[*pair, value] for pair, value in getattr(self, key).items()] or None
        return {
            kind: dict(self._arrivals),
            "selectivities": [[*pair, value] for pair, value in self.selectivities.items()],
            "standard_errors": [
                [*([key] if isinstance(key, str) else key), value]
                for key, value in self.standard_errors.items()
            ],
            **{key: value for key, value in optional.items() if value is not None},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Statistics:
        """The inverse of :meth:`to_dict`; StatisticsError if ``data`` is not of this form."""
        try:
            errors = {
                row[0] if len(row) == 2 else (row[0], row[1]): row[-1]
                for row in data.get("standard_errors", ())
            }
            given: dict[str, Any] = {
                key: data.get(key)
                for key in ("cardinalities", "rates", "stream_rate", "partitions")
            }
            for key in _PROBABILITIES:
                given[key] = {(a, b): value for a, b, value in data.get(key, ())}
            return cls(**given, standard_errors=errors)
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise StatisticsError(f"not a result of Statistics.to_dict(): {error}") from error


def _pair(first: str, second: str) -> Pair:
    if not isinstance(first, str) or not isinstance(second, str):
        raise StatisticsError(f"a pair is two names, not {shown(first)} and {shown(second)}")
    return (first, second) if first <= second else (second, first)


def _number(where: str, key: object, value: Any) -> float:
    if type(value) is float and 0.0 <= value < math.inf:
        return value  # most are, and the name of a number for a message takes longer than its check
    return number(value, f"{where}[{shown(key)}]", StatisticsError, least=0.0)


def _known(where: str, name: str, names: Mapping[str, float]) -> None:
    if name not in names:
        raise StatisticsError(
            f"{where} mentions {shown(name)}, which has no rate or cardinality; there is one for "
            f"{', '.join(names) or 'no variable'}{did_you_mean(name, names)}"
        )


def _by_pair(where: str, given: Mapping[Any, Any], names: Mapping[str, float]) -> dict[Pair, float]:
    found: dict[Pair, float] = {}
    for key, value in given.items():
        if not (isinstance(key, tuple) and len(key) == 2 and all(isinstance(k, str) for k in key)):
            raise StatisticsError(
                f'{where}[{shown(key)}]: keys are pairs of names such as ("a", "b")'
            )
        for name in key:
            _known(where, name, names)
        pair, given_number = _pair(*key), _number(where, key, value)
        if found.setdefault(pair, given_number) != given_number:
            raise StatisticsError(
                f"{where} gives {found[pair]!r} and {given_number!r} for the pair {shown(pair)}; "
                "the order of names does not matter, so give it once"
            )
    return found
