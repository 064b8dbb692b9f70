"""A pattern without OR as joins of the table of events with itself, in any order or a plan's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from cepbench.patterns.model import Attribute, Clause, Comparison, Pattern, Variable
from cepbench.plans.model import leaves
from cepbench.sql.conditions import ConditionWriter, Place
from cepbench.sql.dialects import Dialect
from cepbench.sql.pairs import Columns, Condition, Pairs

#: A variable and a column of its event.
Key = tuple[str, str]


class Names:
    """Gives out names that differ; SQL does not tell upper from lower case in them."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in taken}

    def new(self, wanted: str) -> str:
        """``wanted``, with a number behind it if there is such a name already."""
        name, number = wanted, 1
        while name.lower() in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name.lower())
        return name


@dataclass(frozen=True)
class Numbered:
    """The events with their ranks in the stream, or each in its partition, without gaps.

    Attributes
    ----------
    source : str
        As it is written in FROM.
    rank : str
        The name of the column.
    """

    source: str
    rank: str


@dataclass(frozen=True)
class Selection:
    """Rows of some tables that fulfil some conditions.

    Attributes
    ----------
    sources : tuple of str
        As they are written in FROM.
    conditions : tuple of str
    place : callable
        (variable, column) → how that is written beside these sources.
    """

    sources: tuple[str, ...]
    conditions: tuple[str, ...]
    place: Place

    def write(self, columns: Sequence[str], indent: str = "") -> str:
        """The query for these columns."""
        lines = [f"SELECT {', '.join(columns)}", f"FROM {', '.join(self.sources)}"]
        lines += [f"{'  AND' if k else 'WHERE'} {text}" for k, text in enumerate(self.conditions)]
        # Not textwrap.indent, which would change texts of several lines.
        return "\n".join(indent + line for line in lines)


class BranchWriter:
    """Writes the query of one branch of a pattern.

    Parameters
    ----------
    branch : Pattern
        Without OR and without Kleene variables.
    conditions : ConditionWriter
    dialect : Dialect
    table : str
        The table of events as it is written in FROM.
    columns : Columns
    numbered : Numbered or None
        The events with their ranks, where a match's events are neighbours.
    names : Names
        The variables of the whole query are among them.
    """

    def __init__(
        self,
        branch: Pattern,
        conditions: ConditionWriter,
        dialect: Dialect,
        table: str,
        columns: Columns,
        numbered: Numbered | None,
        names: Names,
    ) -> None:
        #: Queries with names that the selection builds on: name, and query in brackets.
        self.steps: list[tuple[str, str]] = []
        self.branch = branch
        self._conditions = conditions
        self._dialect = dialect
        self._columns = columns
        self._names = names
        self._table = table
        self._source = numbered.source if numbered else table
        self._pairs = Pairs(branch, columns, numbered.rank if numbered else None, dialect)
        negated = {variable.name for variable in branch.negated}
        self._known = [
            *map(self._of_type, branch.positive),
            *(self._of(c) for c in branch.conditions if not negated.intersection(c.variables)),
            *map(self._none_of, branch.negated),
        ]

    def select(self, joined: Any, wanted: Sequence[Key]) -> Selection:
        """The rows of a join.

        Parameters
        ----------
        joined : str or tuple
            A variable; the pair of a plan's tree; or all variables, to be joined in any order.
        wanted : sequence of (variable, column)
            What is asked of the rows.
        """
        parts = (joined,) if isinstance(joined, str) else joined
        groups = [set(leaves(part)) for part in parts]
        here = self._due(parts, groups)
        needed = {*wanted, *(key for condition in here for key in condition.columns)}
        places: dict[str, Place] = {}
        sources = []
        for part, group in zip(parts, groups, strict=True):
            if isinstance(part, str):
                sources.append(f"{self._source} AS {self._quote(part)}")
                places[part] = self._column
            else:
                source, place = self._step(part, sorted(k for k in needed if k[0] in group))
                sources.append(source)
                places |= dict.fromkeys(group, place)

        def placed(variable: str, column: str) -> str:
            return places[variable](variable, column)

        return Selection(tuple(sources), tuple(c.write(placed) for c in here), placed)

    def last(self) -> str | None:
        """The variable whose event is the last of every match, if that is always the same one."""
        names = self.branch.positive_names
        for name in names:
            if all((other, name) in self._pairs.before for other in names if other != name):
                return name
        return None

    def _due(self, parts: Sequence[Any], groups: Sequence[set[str]]) -> list[Condition]:
        """What a join must check: all that could not be checked in one of its parts."""
        names = set().union(*groups)
        below = [group for part, group in zip(parts, groups, strict=True) if part not in group]
        found = [
            condition
            for condition in self._known
            if condition.variables <= names and not any(condition.variables <= g for g in below)
        ]
        # Types and conditions on single events first, negation last, as one would write it.
        single = [c for c in found if len(c.variables) == 1]
        if len(parts) == 2:
            pairs = list(self._pairs.between(groups[0], groups[1]))
        else:
            pairs = [c for x, y in combinations(parts, 2) for c in self._pairs.all(x, y)]
        return [*single, *pairs, *(c for c in found if len(c.variables) > 1)]

    def _step(self, joined: Any, wanted: Sequence[Key]) -> tuple[str, Place]:
        """A join that another one builds on: its name, and how its columns are written."""
        inner = self.select(joined, wanted)
        name = self._quote(self._names.new("step"))
        labels = Names()
        label = {key: self._quote(labels.new("_".join(key))) for key in wanted}
        columns = [f"{inner.place(*key)} AS {label[key]}" for key in wanted]
        query = inner.write(columns or ["1 AS found"], indent="  ")
        self.steps.append((f"{name} {self._dialect.step}", query))
        return name, lambda variable, column: f"{name}.{label[variable, column]}"

    # -- conditions ------------------------------------------------------------------------------

    def _of(self, clause: Clause) -> Condition:
        keys = tuple(dict.fromkeys((a.variable, a.name) for a in clause.attributes()))
        return Condition(keys, lambda place: self._conditions.clause(clause, place))

    def _of_type(self, variable: Variable) -> Condition:
        key = (variable.name, self._columns.type)
        text = self._dialect.text(variable.type)
        return Condition((key,), lambda place: f"{place(*key)} = {text}")

    def _none_of(self, negated: Variable) -> Condition:
        """That there is no event that could be added as if the item were not negated."""
        own = negated.name
        inner = [
            self._of_type(negated),
            *self._pairs.between({own}, set(self.branch.positive_names)),
            *(self._of(c) for c in self.branch.conditions if own in c.variables),
        ]
        keys = tuple(
            dict.fromkeys(key for condition in inner for key in condition.columns if key[0] != own)
        )

        def write(place: Place) -> str:
            def placed(variable: str, column: str) -> str:
                return (self._column if variable == own else place)(variable, column)

            source = f"{self._table} AS {self._quote(own)}"
            texts = " AND ".join(condition.write(placed) for condition in inner)
            return f"NOT EXISTS (SELECT 1 FROM {source} WHERE {texts})"

        return Condition(keys, write)

    # -- names -----------------------------------------------------------------------------------

    def _column(self, variable: str, column: str) -> str:
        return f"{self._quote(variable)}.{self._quote(column)}"

    def _quote(self, name: str) -> str:
        return self._dialect.identifier(name)


def with_partition(pattern: Pattern) -> Pattern:
    """The pattern with its partition's attribute equal in all events, as conditions.

    A single event equals itself unless its value is missing, which is in no partition.
    """
    name = pattern.strategy.attribute
    if name is None:
        return pattern
    names = pattern.positive_names
    pairs = list(combinations(names, 2)) or [(names[0], names[0])]
    equal = tuple(
        Clause((Comparison("=", Attribute(x, name), Attribute(y, name)),)) for x, y in pairs
    )
    return replace(pattern, conditions=pattern.conditions + equal)
