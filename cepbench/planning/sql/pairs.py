"""Conditions on a match's events and pairs of them: type, order, window, distinctness and contiguity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

from cepbench.patterns.event_columns import OWN, attribute_column
from cepbench.patterns.model import Kind, Pattern, Variable
from cepbench.patterns.structure import first_of, last_of
from cepbench.planning.sql.conditions import Place
from cepbench.planning.sql.dialects import Dialect


@dataclass(frozen=True)
class Columns:
    """Names of the columns of the table of events."""

    type: str
    time: str
    position: str

    def of_attribute(self, name: str) -> str:
        """The column of an attribute."""
        own = (self.type, self.time, self.position)
        return attribute_column(
            name, [its for its, usual in zip(own, OWN, strict=True) if its == usual]
        )


@dataclass(frozen=True)
class Condition:
    """A condition on the events of some variables."""

    #: The columns it reads.
    columns: tuple[tuple[str, str], ...]
    #: From the expressions of columns to SQL.
    write: Callable[[Place], str]

    @property
    def variables(self) -> set[str]:
        """The variables that it mentions."""
        return {variable for variable, _ in self.columns}


class Pairs:
    """The conditions on types and pairs of events of a pattern without OR.

    ``rank`` is the column of consecutive ranks, under a contiguity strategy.
    """

    def __init__(
        self, branch: Pattern, columns: Columns, rank: str | None, dialect: Dialect
    ) -> None:
        self.before = branch.structure.precedence()
        self._branch = branch
        self._columns = columns
        self._rank = rank
        self._dialect = dialect
        self._variables = {variable.name: variable for variable in branch.variables}

    def of_type(self, variable: Variable) -> Iterator[Condition]:
        """That the event of a variable is of its type."""
        types = self._branch.types_of(variable)
        if types is None:
            return
        key, names = (variable.name, self._columns.type), [*map(self._dialect.text, types)]
        its = f"= {names[0]}" if len(names) == 1 else f"IN ({', '.join(names)})"
        yield Condition((key,), lambda place: f"{place(*key)} {its}")

    def all(self, first: str, second: str) -> Iterator[Condition]:
        """All conditions on two positive variables, also those that others imply."""
        for x, y in ((first, second), (second, first)):
            if (x, y) in self.before:
                yield self._earlier(x, y)
            if (y, x) not in self.before:
                yield self._within(x, y)
        yield from self._different(first, second)
        yield from self._neighbours(first, second)

    def between(self, one: Set[str], other: Set[str]) -> Iterator[Condition]:
        """The conditions of a join of two sets of variables, without implied ones.

        Order is checked between variables with none in between, the window between a variable
        that may be the first and one that may be the last.
        """
        names = one | other
        firsts, lasts = first_of(names, self.before), last_of(names, self.before)
        for x in self._in_order(names):
            for y in self._in_order(names):
                if x == y or (x in one) == (y in one):
                    continue
                if (x, y) in self.before and not any(
                    (x, z) in self.before and (z, y) in self.before for z in names
                ):
                    yield self._earlier(x, y)
                if x in firsts and y in lasts:
                    yield self._within(x, y)
                if x in one:
                    yield from self._different(x, y)
                    yield from self._neighbours(x, y)

    def _in_order(self, names: Set[str]) -> list[str]:
        return [name for name in self._variables if name in names]

    def _earlier(self, x: str, y: str) -> Condition:
        # Times do not decrease along positions.
        column = self._columns.time if self._branch.order == "time" else self._columns.position
        return Condition(
            ((x, column), (y, column)), lambda place: f"{place(x, column)} < {place(y, column)}"
        )

    def _within(self, x: str, y: str) -> Condition:
        time, window = self._columns.time, self._branch.window
        return Condition(
            ((x, time), (y, time)),
            lambda place: self._dialect.not_after(place(y, time), place(x, time), window),
        )

    def _different(self, x: str, y: str) -> Iterator[Condition]:
        ordered = {(x, y), (y, x)} & self.before
        may_share = self._branch.overlap(self._variables[x], self._variables[y])
        if may_share and not ordered:
            position = self._columns.position
            yield Condition(
                ((x, position), (y, position)),
                lambda place: f"{place(x, position)} <> {place(y, position)}",
            )

    def _neighbours(self, x: str, y: str) -> Iterator[Condition]:
        """That the ranks of two events leave room for exactly the events between them."""
        rank = self._rank
        if rank is None or Kind.NEGATED in (self._variables[x].kind, self._variables[y].kind):
            return
        if (y, x) in self.before:
            x, y = y, x
        names = self._branch.positive_names
        most = len(names) - 1
        least = -most
        if (x, y) in self.before:
            most -= sum((z, x) in self.before or (y, z) in self.before for z in names)
            least = 1 + sum((x, z) in self.before and (z, y) in self.before for z in names)
        columns = ((x, rank), (y, rank))
        if least == most:
            yield Condition(columns, lambda place: f"{place(y, rank)} = {place(x, rank)} + {most}")
            return
        yield Condition(
            columns, lambda place: f"{place(y, rank)} - {place(x, rank)} BETWEEN {least} AND {most}"
        )
