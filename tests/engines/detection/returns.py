"""Random RETURN clauses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from cepbench.patterns.expressions import AGGREGATES
from cepbench.patterns.model import (
    Aggregate,
    Arithmetic,
    Attribute,
    Expression,
    Kind,
    Negative,
    Pattern,
    Returned,
    Variable,
)


@st.composite
def returns(draw: st.DrawFn, pattern: Pattern) -> tuple[Returned, ...]:
    """Up to four columns of all kinds, each over variables of one branch."""
    found: dict[str, Returned] = {}
    for number in range(draw(st.integers(1, 4))):
        branch = draw(st.sampled_from(pattern.branches()))
        alias = draw(st.sampled_from([None, f"c{number}", "a b"]))
        column = Returned(draw(_values(branch.positive)), alias)
        found.setdefault(column.name, column)
    return tuple(found.values())


@st.composite
def _values(draw: st.DrawFn, variables: tuple[Variable, ...]) -> str | Expression:
    variable = draw(st.sampled_from(variables))
    match draw(st.integers(0, 3)):
        case 0:
            return variable.name
        case 1:
            return Attribute(variable.name, draw(st.sampled_from("xys")))
        case 2:
            return draw(_numbers(variable, "xys"))
    left, right = (draw(_numbers(draw(st.sampled_from(variables)), "xy")) for _ in range(2))
    made = Arithmetic(draw(st.sampled_from("+-*/")), left, right)
    return Negative(made) if draw(st.integers(0, 4)) == 0 else made


@st.composite
def _numbers(draw: st.DrawFn, variable: Variable, attributes: str) -> Expression:
    """A term with one value a match; a number unless it is read from a single event."""
    if variable.kind is Kind.PLAIN:
        return Attribute(variable.name, draw(st.sampled_from(attributes)))
    element = draw(st.sampled_from(["first", "last", *AGGREGATES]))
    if element in AGGREGATES:
        names = attributes if element == "count" else "xy"
        return Aggregate(element, Attribute(variable.name, draw(st.sampled_from(names))))
    return Attribute(variable.name, draw(st.sampled_from(attributes)), element)


def plain(value: Any) -> Any:
    """A cell of a table of matches, None where it is missing."""
    if isinstance(value, tuple | list):
        return tuple(map(plain, value))
    if pd.isna(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def rows_of(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows of a table of matches."""
    return [tuple(map(plain, row)) for row in table.itertuples(index=False, name=None)]
