"""Checks that a pattern fits a stream: kind of time, event types, attributes and their types."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, Self, TypeVar

from cepbench.arguments import choice
from cepbench.errors import MissingTypeWarning, StreamError, did_you_mean, suggest
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import (
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Duration,
    Expression,
    Negative,
    Pattern,
)
from cepbench.streams.advice import UNIT_OF_TIMES
from cepbench.streams.columns import declared_kind, kind_of_column
from cepbench.streams.event_stream import EventStream

#: The kinds of constants that are no numbers.
_KINDS: dict[type, str] = {str: "text", bool: "boolean"}

#: The literal that a constant beside a boolean stands for.
_TRUTHS = {"1": "true", "0": "false", "true": "true", "false": "false"}

#: What to do about the types of a pattern that no event of the stream has.
MISSING_TYPES = ("warn", "error")

#: What the warning adds where the call has this argument.
AS_AN_ERROR = '. missing_types="error" makes it an error'

#: Of the call at hand: what to do, and of which types it has warned.
_asked: ContextVar[tuple[str, set[str]] | None] = ContextVar("missing_types", default=None)


def check_fit(pattern: Pattern, stream: EventStream) -> None:
    """Check that a pattern's window, conditions and RETURN fit the columns of a stream.

    A StreamError for a window in seconds over integer time or the reverse, an attribute that is
    missing or cannot be compared (that of partition_contiguity included), values of two kinds
    compared (texts, numbers, booleans), an order comparison of texts or booleans, and arithmetic on
    them or aggregates of them other than ``count``. A column without any value fits every use.
    """
    if pattern.window.is_datetime and not stream.is_datetime:
        raise StreamError(
            f"WITHIN {pattern.window} needs a datetime column, but this stream's time is an "
            "integer; write WITHIN … units, or convert the column to datetimes: pandas.to_datetime "
            f"{UNIT_OF_TIMES}"
        )
    if stream.is_datetime and not pattern.window.is_datetime:
        raise StreamError(
            f"WITHIN {pattern.window} counts ticks, but this stream's time is a datetime; write "
            "WITHIN … seconds (or minutes, hours, days)"
        )
    if pattern.strategy.attribute is not None:
        try:
            stream.column(pattern.strategy.attribute)
        except StreamError as error:
            raise StreamError(f"STRATEGY {pattern.strategy}: {error}") from None
    for clause in pattern.expanded.conditions:
        for comparison in clause.comparisons:
            _check_comparison(comparison, clause, stream)
    for column in pattern.returns:
        if not isinstance(column.value, str):
            _kind(column.value, stream)
    if stream.is_datetime and stream.time_name in pattern.attributes:
        _check_uses_of_time(pattern, stream)


class _Queries(Protocol):
    """A pattern or a workload."""

    @property
    def hierarchy(self) -> ConceptHierarchy | None: ...

    @property
    def by_query(self) -> bool: ...

    def with_hierarchy(self, hierarchy: ConceptHierarchy | None) -> Self: ...


_Asked = TypeVar("_Asked", bound=_Queries)


def under_one_hierarchy(pattern: _Asked, stream: EventStream) -> tuple[_Asked, EventStream]:
    """The pattern or workload and the stream, both under the concept hierarchy that either of them has.

    A StreamError if they have different ones.
    """
    if pattern.hierarchy is None:
        return pattern.with_hierarchy(stream.hierarchy), stream
    if stream.hierarchy is None:
        return pattern, stream.with_hierarchy(pattern.hierarchy)
    if pattern.hierarchy != stream.hierarchy:
        asked = "workload" if pattern.by_query else "pattern"
        raise StreamError(
            f"the stream has another concept hierarchy than the {asked}; make both with the same "
            "one, or leave out one of them: stream.with_hierarchy(None)"
        )
    return pattern, stream


def under_hierarchy_of(patterns: Iterable[Pattern], batch: EventStream) -> EventStream:
    """A batch under the concept hierarchy of the patterns that a run is of.

    A StreamError if the batch has another one, or one under which a pattern would have other
    matches.
    """
    for pattern in patterns:
        if pattern.hierarchy is batch.hierarchy:
            continue
        its, batch = under_one_hierarchy(pattern, batch)
        if pattern.hierarchy is None and its.reads_hierarchy:
            raise StreamError(
                "the batch has a concept hierarchy, and the pattern none; start with "
                "pattern.with_hierarchy(batch.hierarchy)"
            )
    return batch


@contextmanager
def reporting_missing_types(missing_types: str) -> Iterator[None]:
    """Within a call of a user, report each missing type once, as its argument ``missing_types`` says.

    Calls inside follow the outermost one. A StreamError if it is not one of :data:`MISSING_TYPES`.
    """
    chosen = choice(missing_types, "missing_types", MISSING_TYPES, StreamError)
    if _asked.get() is not None:
        yield
        return
    token = _asked.set((chosen, set()))
    try:
        yield
    finally:
        _asked.reset(token)


def check_types(pattern: Pattern, stream: EventStream) -> None:
    """Report the types of a pattern that no event of a stream has; an empty stream passes.

    An item of such a type binds nothing. It is a warning, or an error within
    :func:`reporting_missing_types` if that asks for one, and if a concept hierarchy declares the
    types. A StreamError with the unknown type and the nearest known one.
    """
    if len(stream):
        declared = () if stream.hierarchy is None else stream.hierarchy.names
        report_types([pattern], stream.type_names, "stream", declared)


def report_types(
    patterns: Iterable[Pattern], present: Iterable[str], where: str, declared: Iterable[str] = ()
) -> None:
    """Report the types of patterns that are missing, see :func:`check_types`.

    ``where`` events have the types that are present, for the message; ``declared`` are the names of a
    concept hierarchy, empty without one.
    """
    types, concepts = [*present], [*declared]
    known = {*types, *concepts}
    missing = {
        v.type: v.name
        for its in patterns
        for v in its.variables
        if v.type is not None and v.type not in known
    }
    if not missing:
        return
    call = _asked.get()
    asked, warned = call or ("warn", set[str]())
    shown = ", ".join(types[:8])
    more = f" and {len(types) - 8} more" if len(types) > 8 else ""
    said = []
    for kind, name in missing.items():
        if asked == "error" or concepts:
            hint = did_you_mean(kind, known)
            if not hint and not concepts:
                hint = "; a concept needs a hierarchy, as stream.with_hierarchy(...) adds it"
            raise StreamError(
                f"no event of type {kind!r} (variable {name!r}) in the {where}, whose types are "
                f"{shown}{more}{hint}"
            )
        near = suggest(kind, types, cutoff=0.0)
        hint = did_you_mean(kind, types) or f"; the nearest is {near!r}"
        said += [f"{kind!r} (variable {name!r}{hint})"] if kind not in warned else []
        warned.add(kind)
    if said:
        warnings.warn(
            f"no event of type {', '.join(said)} in the {where}, whose types are {shown}{more}; an "
            f"item of it binds nothing{'' if call is None else AS_AN_ERROR}",
            MissingTypeWarning,
            stacklevel=_level_of_caller(),
        )


def _level_of_caller() -> int:
    """The level of the first caller outside this package, for a warning of the function that asks."""
    package, level, frame = __name__.partition(".")[0], 1, sys._getframe(1)
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] == package
    ):
        frame, level = frame.f_back, level + 1
    return level


def _check_uses_of_time(pattern: Pattern, stream: EventStream) -> None:
    """Check that a datetime is compared with another one or with a duration, and not calculated with."""
    for clause in pattern.conditions:
        for comparison in clause.comparisons:
            sides = (comparison.left, comparison.right)
            times = [its for its in comparison.attributes() if stream.is_time(its.name)]
            if times and not isinstance(comparison.right, Duration) and list(sides) != times:
                raise StreamError(
                    f"condition {clause}: {times[0].name} is the time of the stream, a datetime; "
                    f"compare it with that of another event, or with a length of time: b.{times[0].name} "
                    f"- a.{times[0].name} <= 10 seconds"
                )
    read = [its.name for column in pattern.returns for its in column.attributes()]
    for name in (*read, pattern.strategy.attribute or ""):
        check_no_time(name, stream)


def check_no_time(name: str, stream: EventStream) -> None:
    """Raise a StreamError if an attribute is the stream's time, whose values only conditions know."""
    if stream.is_datetime and stream.is_time(name):
        raise StreamError(
            f"{name!r} is the time of the stream, a datetime, which only conditions read; keep a copy "
            "as a number under another name"
        )


def _check_comparison(comparison: Comparison, clause: Clause, stream: EventStream) -> None:
    sides = comparison.left, comparison.right
    declared = _declared_kind(sides[0], stream)
    if declared == _declared_kind(sides[1], stream) and (
        declared == "number" or (declared and comparison.operator in ("=", "!="))
    ):
        return  # whatever the values are
    kinds = [_kind(side, stream) for side in sides]
    if None in kinds or kinds == ["number", "number"]:
        return
    what = f"condition {clause}" + (f": {comparison}" if len(clause.comparisons) > 1 else "")
    if kinds[0] != kinds[1]:
        one, other = sorted(map(str, kinds), key=("text", "boolean", "number").index)
        raise StreamError(f"{what} compares a {one} with a {other}; {_instead(comparison, kinds)}")
    if comparison.operator not in ("=", "!="):
        raise StreamError(f"{what} orders {kinds[0]}s; {kinds[0]}s can only be = or !=")


def _declared_kind(expression: Expression, stream: EventStream) -> str | None:
    """The kind of an expression by the types of its columns; None where values decide."""
    if isinstance(expression, Attribute):
        return declared_kind(stream.column(expression.name))
    if isinstance(expression, Constant):
        return _KINDS.get(type(expression.value), "number")
    parts = _parts(expression)
    return "number" if all(_declared_kind(part, stream) == "number" for part in parts) else None


def _parts(expression: Aggregate | Negative | Arithmetic) -> tuple[Expression, ...]:
    match expression:
        case Aggregate():
            return (expression.attribute,)
        case Negative():
            return (expression.operand,)
    return expression.left, expression.right


def _kind(expression: Expression, stream: EventStream) -> str | None:
    """The kind of an expression's values; None of a column without any value.

    That may be of numbers too, as a text column is that pandas read as floats.
    """
    match expression:
        case Attribute(_, name):
            return kind_of_column(stream.column(name))
        case Aggregate(function, attribute):
            kind = _kind(attribute, stream)
            if kind in ("text", "boolean") and function != "count":
                raise StreamError(
                    f"{expression}: arithmetic on a {kind}; {kind}s can only be counted"
                )
            return "number"
        case Constant(value):
            return _KINDS.get(type(value), "number")
    for part in _parts(expression):
        kind = _kind(part, stream)
        if kind in ("text", "boolean"):
            raise StreamError(f"{expression}: arithmetic on a {kind}; {kind}s can only be = or !=")
    return "number"


def _instead(comparison: Comparison, kinds: Sequence[str | None]) -> str:
    """What to do about a comparison of values of two kinds."""
    sides = comparison.left, comparison.right
    for side, kind, other in zip(sides, kinds, reversed(sides), strict=True):
        if not isinstance(side, Attribute) or not isinstance(other, Constant):
            continue
        written = str(other).strip("'")
        column = f"frame[{side.name!r}]"
        if kind == "boolean":
            return f"{side} is a boolean: write {side} = {_TRUTHS.get(written.lower(), 'true')}"
        if kind == "number":
            if isinstance(other.value, bool):
                return f"{side} is a number: compare it with one, as {side} = {int(other.value)}"
            return f"{side} is a number: write {written} without quotes if it is one"
        convert = f"pandas.to_numeric({column})"
        if isinstance(other.value, bool):
            convert = f"{column}.map({{'true': True, 'false': False}})"
        quote = f"write '{written}', or " if comparison.operator in ("=", "!=") else ""
        return f"{side} is a text: {quote}convert its column, as by {convert}"
    named = [f"{side} is a {kind}" for side, kind in zip(sides, kinds, strict=True)]
    return (
        f"{' and '.join(named)}: convert a column before making the stream, texts to numbers by "
        "pandas.to_numeric, booleans to numbers by astype('Int8')"
    )
