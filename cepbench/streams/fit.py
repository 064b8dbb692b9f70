"""Checks that a pattern fits a stream: kind of time, event types, attributes and their types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from cepbench.streams.advice import UNIT_OF_TIMES
from cepbench.streams.columns import declared_kind, kind_of_column
from cepbench.streams.event_stream import EventStream

#: The kinds of constants that are no numbers.
_KINDS: dict[type, str] = {str: "text", bool: "boolean"}

#: The literal that a constant beside a boolean stands for.
_TRUTHS = {"1": "true", "0": "false", "true": "true", "false": "false"}


def check_fit(pattern: Pattern, stream: EventStream) -> None:
    """Check that a pattern's window, conditions and RETURN fit the columns of a stream.

    Raises
    ------
    StreamError
        For a window in seconds over integer time or the reverse, an attribute that is missing or
        cannot be compared (that of partition_contiguity included), values of two kinds compared
        (texts, numbers, booleans), an order comparison of texts or booleans, and arithmetic on them
        or aggregates of them other than ``count``. A column without any value fits every use.
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
    sides = comparison.left, comparison.right
    declared = _declared_kind(sides[0], stream)
    if declared == _declared_kind(sides[1], stream) and (
        declared == "number" or (declared and comparison.operator in ("=", "!="))
    ):
        return  # whatever the values are
    kinds = [_kind(side, stream) for side in sides]
    if kinds[0] != kinds[1]:
        # Numbers may be missing throughout, as a text column is that pandas read as floats.
        kinds = [
            kind_of_column(stream.column(side.name)) if isinstance(side, Attribute) else kind
            for side, kind in zip(sides, kinds, strict=True)
        ]
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
    if isinstance(expression, Aggregate):
        parts: tuple[Expression, ...] = (expression.attribute,)
    elif isinstance(expression, Negative):
        parts = (expression.operand,)
    else:
        parts = (expression.left, expression.right)
    return "number" if all(_declared_kind(part, stream) == "number" for part in parts) else None


def _kind(expression: Expression, stream: EventStream) -> str | None:
    """The kind of an expression's values; None of a text or boolean column without any value."""
    match expression:
        case Attribute(_, name):
            column = stream.column(name)
            declared = declared_kind(column)
            return declared if declared == "number" else kind_of_column(column)
        case Aggregate(function, attribute):
            kind = _kind(attribute, stream)
            if kind in ("text", "boolean") and function != "count":
                raise StreamError(
                    f"{expression}: arithmetic on a {kind}; {kind}s can only be counted"
                )
            return "number"
        case Constant(value):
            return _KINDS.get(type(value), "number")
        case Negative(operand):
            parts: tuple[Expression, ...] = (operand,)
        case Arithmetic(_, left, right):
            parts = (left, right)
    for part in parts:
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
