"""Checks that a pattern fits a stream: kind of time, event types, attributes and their types."""

from __future__ import annotations

from collections.abc import Iterable

from cepbench.errors import StreamError, did_you_mean
from cepbench.patterns.model import (
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Expression,
    Negative,
    Pattern,
)
from cepbench.streams.columns import CodedStrings
from cepbench.streams.event_stream import EventStream


def check_fit(pattern: Pattern, stream: EventStream) -> None:
    """Check that a pattern's window, conditions and RETURN fit the columns of a stream.

    Raises
    ------
    StreamError
        For a window in seconds over integer time or the reverse, an attribute that is missing or
        cannot be compared (that of partition_contiguity included), a text compared with a number,
        an order comparison of texts, or an aggregate over texts other than ``count``.
    """
    if pattern.window.is_datetime and not stream.is_datetime:
        raise StreamError(
            f"WITHIN {pattern.window} needs a datetime column, but this stream's time is an "
            "integer; write WITHIN … units, or convert the column to datetimes"
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
            _is_text(column.value, stream)


def under_one_hierarchy(pattern: Pattern, stream: EventStream) -> tuple[Pattern, EventStream]:
    """The pattern and the stream, both under the concept hierarchy that either of them has.

    Raises
    ------
    StreamError
        If they have different ones.
    """
    if pattern.hierarchy is None:
        return pattern.with_hierarchy(stream.hierarchy), stream
    if stream.hierarchy is None:
        return pattern, stream.with_hierarchy(pattern.hierarchy)
    if pattern.hierarchy != stream.hierarchy:
        raise StreamError(
            "the stream has another concept hierarchy than the pattern; make both with the same "
            "one, or leave out one of them: stream.with_hierarchy(None)"
        )
    return pattern, stream


def under_hierarchy_of(patterns: Iterable[Pattern], batch: EventStream) -> EventStream:
    """A batch under the concept hierarchy of the patterns that a run is of.

    Raises
    ------
    StreamError
        If the batch has another one, or one under which a pattern would have other matches.
    """
    for pattern in patterns:
        its, batch = under_one_hierarchy(pattern, batch)
        if pattern.hierarchy is None and its.reads_hierarchy:
            raise StreamError(
                "the batch has a concept hierarchy, and the pattern none; start with "
                "pattern.with_hierarchy(batch.hierarchy)"
            )
    return batch


def check_types(pattern: Pattern, stream: EventStream) -> None:
    """Check that a stream or its hierarchy has the types of a pattern; an empty stream passes.

    Raises
    ------
    StreamError
        With the unknown type and the nearest known one.
    """
    if not len(stream):
        return
    concepts = () if stream.hierarchy is None else stream.hierarchy.names
    known = {*stream.type_names, *concepts}
    for variable in pattern.variables:
        if variable.type is not None and variable.type not in known:
            hint = did_you_mean(variable.type, known)
            if not hint and stream.hierarchy is None:
                hint = "; a concept needs a hierarchy, as stream.with_hierarchy(...) adds it"
            shown = ", ".join(stream.type_names[:8])
            more = f" and {len(stream.type_names) - 8} more" if len(stream.type_names) > 8 else ""
            raise StreamError(
                f"no event of type {variable.type!r} (variable {variable.name!r}) in the stream, "
                f"whose types are {shown}{more}{hint}"
            )


def _check_comparison(comparison: Comparison, clause: Clause, stream: EventStream) -> None:
    left, right = _is_text(comparison.left, stream), _is_text(comparison.right, stream)
    if left != right:
        raise StreamError(f"condition {clause}: {comparison} compares a text with a number")
    if left and comparison.operator not in ("=", "!="):
        raise StreamError(
            f"condition {clause}: {comparison} orders texts; texts can only be = or !="
        )


def _is_text(expression: Expression, stream: EventStream) -> bool:
    match expression:
        case Attribute(_, name):
            return isinstance(stream.column(name), CodedStrings)
        case Aggregate(function, attribute):
            if _is_text(attribute, stream) and function != "count":
                raise StreamError(f"{expression}: arithmetic on a text; texts can only be counted")
            return False
        case Constant(value):
            return isinstance(value, str)
        case Negative(operand):
            parts: tuple[Expression, ...] = (operand,)
        case Arithmetic(_, left, right):
            parts = (left, right)
    if any(_is_text(part, stream) for part in parts):
        raise StreamError(f"{expression}: arithmetic on a text; texts can only be = or !=")
    return False
