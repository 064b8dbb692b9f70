"""State as data: what an object is restored from, declared once, and saved as named arrays.

A class of which runs are made names its state in :attr:`Stateful.SAVED`; nothing else is written by
hand. Plain values are one array of JSON, ``known``; arrays have the names of their attributes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, ClassVar, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from cepbench.engines.runs.matches import BranchMatches, SetColumn
from cepbench.engines.runs.snapshot import arrays_under, under
from cepbench.errors import SnapshotError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.streams.arrival import ArrivalClock
from cepbench.streams.columns import AttributeColumn, packed_column, unpacked_column
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader
from cepbench.streams.recent import RecentEvents

_KNOWN = "known"


class Codec(NamedTuple):
    """A way to save what is no plain value: as a plain value of a type, and back."""

    of: Callable[[Any], Any]  #: value → plain value
    type: Any
    back: Callable[[Any, Any], Any]  #: (value before, plain value) → value


class Part:
    """An attribute that is :class:`Stateful` itself, or a list of such, saved under its name."""


PART = Part()


def saving(**attributes: Any) -> Mapping[str, Any]:
    """What a class adds to :attr:`Stateful.SAVED` of its base."""
    return attributes


class Stateful:
    """An object that can be restored from its state.

    Attributes
    ----------
    SAVED : mapping of str to str, mapping, type, Codec or Part
        For each attribute what it is: an array of such a shape, or a list of such, by its words ``-`` for a dimension
        as of a new object (alone for all dimensions) and any other word for one that all arrays of an object share, or ``*``
        for one of any length, ``...`` for further ones, or ``=`` to be restored in place; a
        NamedTuple, or a list of such, of which these fields are saved; a plain value of such a
        type, also of dataclasses; or one saved by a codec. Leading underscores are not part of names.
    """

    SAVED: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        bases = (vars(base).get("SAVED", {}) for base in reversed(cls.__mro__))
        cls.SAVED = {name: how for saved in bases for name, how in saved.items()}

    def snapshot(self) -> dict[str, np.ndarray]:
        """The state as plain arrays, which do not change with it."""
        arrays = {name: _as_saved(array) for name, array, _ in self.saved_arrays()}
        known: dict[str, Any] = {}
        for name, how in self.SAVED.items():
            shown, value = name.lstrip("_"), getattr(self, name)
            if isinstance(how, Part):
                for prefix, part in _parts(shown, value):
                    arrays |= under(prefix, saved(part))
            elif not isinstance(how, str | Mapping):
                known[shown] = how.of(value) if isinstance(how, Codec) else _plain(value)
        return with_known(arrays, known)

    def saved_arrays(
        self, names: Iterable[str] | None = None
    ) -> Iterator[tuple[str, np.ndarray, str]]:
        """Of each array the name, the array, and the shape that is due."""
        for name in self.SAVED if names is None else names:
            how = self.SAVED[name]
            if isinstance(how, str | Mapping):
                value = getattr(self, name)
                shown = name.lstrip("_")
                is_list = isinstance(value, list)
                for number, each in enumerate(value if is_list else [value]):
                    prefix = f"{shown}/{number}" if is_list else shown
                    if isinstance(how, str):
                        yield prefix, each, how
                    else:
                        for its, shape in how.items():
                            yield f"{prefix}/{its}", getattr(each, its), shape

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from what :meth:`snapshot` returned.

        Raises
        ------
        SnapshotError
            If it is no state of such an object.
        """
        plain = {
            name: how
            for name, how in self.SAVED.items()
            if not isinstance(how, str | Mapping | Part)
        }
        known = read_known(state) if plain else {}
        for name, how in plain.items():
            shown = name.lstrip("_")
            if shown not in known:
                raise damaged(f"no usable {shown!r}")
            setattr(self, name, _value(shown, known[shown], how, getattr(self, name)))
        self.prepare_state()
        sizes: dict[str, int] = {}
        for name, how in self.SAVED.items():
            value = getattr(self, name)
            if isinstance(how, Part):
                for prefix, part in _parts(name.lstrip("_"), value):
                    found = resume(part, arrays_under(prefix, state))
                    if found is not part:
                        setattr(self, name, found)
            elif isinstance(how, str | Mapping):
                arrays = [stored(state, *each, sizes) for each in self.saved_arrays([name])]
                if how == "=":
                    value[:] = arrays[0]
                elif isinstance(how, str):
                    setattr(self, name, arrays if isinstance(value, list) else arrays[0])
                else:
                    setattr(self, name, _replaced(value, how, arrays))
        self.check_state()

    def prepare_state(self) -> None:
        """Make what arrays and parts are restored into, once plain values are restored."""

    def check_state(self) -> None:
        """Make what is not saved, and check what kernels would not: called at the end.

        Raises
        ------
        SnapshotError
            For arrays that do not belong together, such as row numbers of no row.
        """


def _as_saved(array: np.ndarray) -> np.ndarray:
    # Integers of any size are saved as texts.
    return array.astype(str) if array.dtype == object else array.copy()


def _replaced(value: Any, names: Iterable[str], arrays: list[np.ndarray]) -> Any:
    """A NamedTuple, or a list of such, with other arrays for some fields."""
    fields = [*names]
    if not isinstance(value, list):
        return value._replace(**dict(zip(fields, arrays, strict=True)))
    each = zip(*[iter(arrays)] * len(fields), strict=True)
    return [
        its._replace(**dict(zip(fields, own, strict=True)))
        for its, own in zip(value, each, strict=True)
    ]


def saved(part: Any) -> dict[str, np.ndarray]:
    """The state of a part, which may be one of another package."""
    return _saved_events(part) if isinstance(part, RecentEvents) else part.snapshot()


def resume(part: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Let a part resume from its state, or return a new one, as detectors are restored."""
    if isinstance(part, RecentEvents):
        return _resume_events(part, arrays)
    found = part.restore(arrays)
    return part if found is None else found


def with_known(arrays: dict[str, np.ndarray], known: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays, and plain values as an array of them if there are any."""
    if known:
        # As bytes, because NumPy's texts take four bytes per character.
        written = json.dumps(known, default=_unusual).encode()
        arrays[_KNOWN] = np.frombuffer(written, np.uint8).copy()
    return arrays


def read_known(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The plain values among the arrays.

    Raises
    ------
    SnapshotError
        If there are none.
    """
    try:
        return dict(json.loads(arrays[_KNOWN].tobytes()))
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(f"no usable {_KNOWN!r}: {error!r}") from error


def stored(
    arrays: Mapping[str, np.ndarray],
    name: str,
    like: np.ndarray,
    shape: str,
    sizes: dict[str, int] | None = None,
) -> np.ndarray:
    """A copy of an array of a snapshot.

    Parameters
    ----------
    arrays : mapping of str to ndarray
    name : str
    like : ndarray
        Of the type that is due.
    shape : str
        See :attr:`Stateful.SAVED`.
    sizes : dict of str to int, optional
        The lengths of words so far.

    Raises
    ------
    SnapshotError
        If it is missing, of another type, or of another shape.
    """
    found = arrays.get(name)
    words = ["-"] * like.ndim if shape in ("-", "=") else shape.split()
    if words[-1:] == ["..."] and found is not None:
        words[-1:] = ["*"] * (found.ndim - len(words) + 1)
    if like.dtype == object and found is not None and found.dtype.kind == "U":
        found = np.array([*map(int, found.flat), None], object)[:-1].reshape(found.shape)
    if found is None or found.dtype != like.dtype or found.ndim != len(words):
        what = "missing" if found is None else f"of {found.dtype} and {found.ndim} dimensions"
        raise damaged(f"{name!r} is {what}, where {like.dtype} and {len(words)} are due")
    sizes = {} if sizes is None else sizes
    its_shape = (*like.shape, *found.shape[like.ndim :])
    for size, its, word in zip(found.shape, its_shape, words, strict=True):
        due = size if word == "*" else its if word == "-" else sizes.setdefault(word, size)
        if size != due:
            raise damaged(f"{name!r} has the shape {found.shape}, where {size} should be {due}")
    return np.array(found, order="C")


def check_range(name: str, numbers: np.ndarray, low: int, behind: int) -> None:
    """Check that numbers, by which kernels index, are from one up to before another.

    Raises
    ------
    SnapshotError
    """
    if numbers.size and (numbers.min() < low or numbers.max() >= behind):
        raise damaged(f"{name!r} has numbers that are not from {low} to {behind - 1}")


def check_sorted(name: str, numbers: np.ndarray) -> None:
    """Check that numbers, which kernels search, do not descend.

    Raises
    ------
    SnapshotError
    """
    if (numbers[1:] < numbers[:-1]).any():
        raise damaged(f"{name!r} is not in order")


def check_matches(matches: BranchMatches, events: RecentEvents) -> None:
    """Check that matches are of some events.

    Raises
    ------
    SnapshotError
    """
    for column in matches.columns:
        positions = column.positions if isinstance(column, SetColumn) else column
        check_range("matches", positions, events.first, events.first + len(events.stream))


def damaged(what: str) -> SnapshotError:
    """The error of a snapshot of which something does not fit."""
    return SnapshotError(f"the snapshot is damaged: {what}")


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The prefixes and parts of an attribute; none for None."""
    if isinstance(value, list | tuple):
        yield from ((f"{name}/{number}/", part) for number, part in enumerate(value))
    elif isinstance(value, dict):
        yield from ((f"{name}/{key}/", part) for key, part in value.items())
    elif value is not None:
        yield f"{name}/", value


# -- plain values ---------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        return list(value.items())
    return value


def _unusual(value: Any) -> Any:
    """What JSON has no form for."""
    if is_dataclass(value):
        return {its.name: getattr(value, its.name) for its in fields(value)}
    return sorted(value) if isinstance(value, set) else value.tolist()


def _value(name: str, plain: Any, how: Any, before: Any) -> Any:
    try:
        if isinstance(how, Codec):
            return how.back(before, typed(plain, how.type))
        return typed(plain, how)
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise damaged(f"no usable {name!r}: {error!r}"[:200]) from error


def typed(plain: Any, due: Any) -> Any:
    """What a plain value of JSON is as one of a type.

    Raises
    ------
    TypeError, ValueError
        If it is none.
    """
    if due is int and type(plain) is int and not -(2**63) <= plain < 2**63:
        raise ValueError(f"{str(plain)[:40]} has more than 64 bits")
    if due is Any or (type(plain) is due and due not in (dict, list)):
        return plain
    if due is None:
        due = type(None)
    if due is float and type(plain) is int:
        return float(plain)
    origin, inner = get_origin(due), get_args(due)
    if origin in (Union, UnionType):
        for each in inner:
            try:
                return typed(plain, each)
            except (TypeError, ValueError):
                continue
    elif origin is list and isinstance(plain, list):
        return [typed(its, inner[0]) for its in plain]
    elif origin is set and isinstance(plain, list):
        return {typed(its, inner[0]) for its in plain}
    elif origin is tuple and isinstance(plain, list | tuple):
        if inner[-1] is Ellipsis:
            return tuple(typed(its, inner[0]) for its in plain)
        return tuple(typed(its, each) for its, each in zip(plain, inner, strict=True))
    elif origin in (dict, Mapping) and isinstance(plain, dict | list):
        pairs = plain.items() if isinstance(plain, dict) else plain
        return {typed(key, inner[0]): typed(its, inner[1]) for key, its in pairs}
    elif isinstance(due, type) and is_dataclass(due) and isinstance(plain, dict):
        hints = _hints(due)
        return due(**{key: typed(its, hints[key]) for key, its in plain.items()})
    elif plain is None and due is type(None):
        return None
    raise TypeError(f"{str(plain)[:40]!r} where {getattr(due, '__name__', due)} is due")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


#: The texts that a reader has given numbers.
TEXTS = Codec(
    lambda reader: reader.texts,
    list[str],
    lambda reader, texts: _with_texts(reader, texts),
)

#: Matches of a branch, by row.
MATCHES = Codec(
    lambda matches: matches.rows(),
    list[tuple[int | tuple[int, ...], ...]],
    lambda before, rows: _with_rows(before, rows),
)


#: Those of each branch.
MATCHES_BY_BRANCH = Codec(
    lambda listed: [matches.rows() for matches in listed],
    list[list[tuple[int | tuple[int, ...], ...]]],
    lambda before, listed: [_with_rows(*its) for its in zip(before, listed, strict=True)],
)


#: The clock of a stream in the order of arrival.
CLOCK = Codec(lambda clock: clock, ArrivalClock, lambda _, clock: _checked_clock(clock))


def _checked_clock(clock: ArrivalClock) -> ArrivalClock:
    if clock.unit < 1 or not 0 <= clock.rank < clock.slots < 1 << 62:
        raise ValueError(f"it cannot stamp events by {clock}")
    return clock


def _with_texts(reader: NumericReader, texts: list[str]) -> NumericReader:
    for text in texts:
        reader.code(text)
    return reader


def _with_rows(before: BranchMatches, rows: list[Any]) -> BranchMatches:
    entries = list(zip(*rows, strict=True)) or [()] * len(before.names)
    columns = [
        SetColumn.of_sets(its) if isinstance(old, SetColumn) else np.array(its, np.int64)
        for old, its in zip(before.columns, entries, strict=True)
    ]
    return BranchMatches(before.names, [columns])


# -- recent events --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Events:
    """What there is of some events besides arrays."""

    first: int
    attributes: list[str]
    kinds: list[Any]
    type_names: tuple[str, ...]
    is_datetime: bool
    hierarchy: Any


def _saved_events(recent: RecentEvents) -> dict[str, np.ndarray]:
    if not recent.pushed:
        return with_known({}, {"events": None})
    stream = recent.stream
    arrays = {"types": stream.type_codes.copy(), "times": stream.timestamps.copy()}
    kinds = []
    for number, column in enumerate(stream.attributes.values()):
        array, kind = packed_column(column)
        arrays[f"{number}"] = array.copy()
        kinds.append(kind)
    known = _Events(
        recent.first,
        [*stream.attributes],
        kinds,
        stream.type_names,
        stream.is_datetime,
        stream.hierarchy and stream.hierarchy.mapping,
    )
    return with_known(arrays, {"events": known})


def _resume_events(recent: RecentEvents, arrays: Mapping[str, np.ndarray]) -> RecentEvents:
    known = _value("events", read_known(arrays).get("events", 0), _Events | None, None)
    if known is None:
        return recent
    sizes: dict[str, int] = {}
    types = stored(arrays, "types", np.empty(0, np.int32), "events", sizes)
    times = stored(arrays, "times", np.empty(0, np.int64), "events", sizes)
    check_range("types", types, 0, len(known.type_names))
    check_sorted("times", times)
    columns = {}
    # Others may have been kept too, for a query that was removed.
    for name in recent.attributes:
        try:
            number = known.attributes.index(name)
            columns[name] = _column(arrays, number, known.kinds[number], sizes)
        except (IndexError, TypeError, ValueError) as error:
            raise damaged(f"no usable events: {error!r}") from error
    hierarchy = None if known.hierarchy is None else ConceptHierarchy(known.hierarchy)
    stream = EventStream(
        types, known.type_names, times, known.is_datetime, columns, {}, None, hierarchy
    )
    recent.resume(stream, known.first)
    return recent


def _column(
    arrays: Mapping[str, np.ndarray], number: int, kind: Any, sizes: dict[str, int]
) -> AttributeColumn:
    name = f"{number}"
    are_integers = name in arrays and arrays[name].dtype == np.int64
    due: Any = np.int64 if are_integers else np.float64
    behind: int | None = None
    match kind:
        case {"texts": [*texts]}:
            due, behind = np.int32, len(typed(texts, list[str]))
        case "booleans":
            due, behind = np.int8, 2
        case {"scale": int()}:
            due = np.float64
        case None:
            pass
        case _:
            raise damaged(f"no usable column {name}")
    array = stored(arrays, name, np.empty(0, due), "events", sizes)
    if behind is not None:
        check_range(name, array, -1, behind)
    return unpacked_column(array, kind)
