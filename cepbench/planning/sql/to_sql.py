"""The front end: a pattern, and optionally a plan, as one SQL query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cepbench.arguments import choice, shown
from cepbench.errors import QueryError, UnsupportedPatternError
from cepbench.patterns.event_columns import OWN
from cepbench.patterns.expressions import with_attribute, with_terms
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Attribute, Kind, Pattern, Returned
from cepbench.patterns.times import of_column, read_columns
from cepbench.planning.plans.given import plan_for, plan_from
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.sql.branch import BranchWriter, Key, Names, Numbered, Shared
from cepbench.planning.sql.conditions import ConditionWriter, Place
from cepbench.planning.sql.dialects import DIALECTS, Dialect
from cepbench.planning.sql.groups import GroupWriter
from cepbench.planning.sql.pairs import Columns
from cepbench.planning.sql.row_patterns import RowPatternWriter, without_row_pattern


def to_sql(
    pattern: Pattern | str,
    plan: AnyPlan | None = None,
    dialect: str = "duckdb",
    *,
    table: str = "events",
    type_column: str = "type",
    time_column: str = "time",
    position_column: str = "position",
    output: str = "matches",
) -> str:
    """The pattern as one SQL query, for DuckDB, Spark, Trino or Flink, that finds exactly its matches.

    For Trino and Flink it has MATCH_RECOGNIZE where that finds the same, and joins elsewhere. Its rows are those of ``evaluate(...).matches`` in their order: the columns of RETURN, or without it one
    column per positive variable with the position of its event, and for a pattern with several branches
    ``branch``; NULL for variables that a branch lacks. Of a group a list of positions.

    Parameters
    ----------
    pattern : Pattern or str
        SEQ, AND, OR and NOT, nested to any depth, without KL; for DuckDB also GROUP; any strategy
        but ``consuming``, and ``next`` where MATCH_RECOGNIZE has it. Under ``pattern.with_hierarchy(h)`` items of a concept are of any type below.
    plan : OrderPlan, TreePlan or UnionPlan, optional
        The joins of the query, see the notes; with OR, a plan for each branch. Without a plan, a
        branch is a single join of all its variables with all pairwise conditions, and the
        engine's optimizer chooses the order.
    dialect : {"duckdb", "spark", "trino", "flink", "standard"}
        ``standard`` is plain joins that several engines read, of a table that has no NaN.
    table : str
        Name of the table of events; dots separate catalog, schema and table.
    type_column, time_column, position_column : str
        Its columns: the event type, a text (or an integer, in the pattern as a text); the time, a
        timestamp, or an integer for a window in ``units``; and the position, an integer that
        increases in order of arrival. Attributes are the other columns, by name. The defaults are
        the columns of ``stream.to_pandas().reset_index()``, where an attribute with such a name is
        ``attribute type``, …, and so it is in the query.
    output : {"matches", "count"}
        One row per match, or a single row with their number in column ``matches``.

    Raises
    ------
    UnsupportedPatternError
        For a Kleene variable, the consuming strategy, variables or columns whose names differ in case
        only, or an attribute used both as a text and as a number. For a group in Spark, one whose
        values RETURN reads, and see :class:`cepbench.planning.sql.groups.GroupWriter`.
    PlanError
        If the plan does not fit the pattern.
    QueryError
        For an unknown dialect or output, or an empty name.

    Notes
    -----
    A plan's inner joins, [kolchinsky2018]_, section 4, are common table expressions (``WITH``), each
    over the two operands that the plan joins. Conditions, negation included, are checked in the
    first join that has all their variables; of groups, which further expressions find for the
    matches of the plain variables, last. Time is joined by buckets as long as the window.
    docs/sql.md has the differences of the two engines.

    Values compare as in the evaluators: as doubles, and false where one is NULL or NaN.
    """
    pattern = pattern_from(pattern)
    choice(dialect, "dialect", DIALECTS, QueryError)
    choice(output, "output", ("matches", "count"), QueryError)
    columns = (type_column, time_column, position_column)
    for name in (table, *columns):
        if not isinstance(name, str):
            raise QueryError(f"names of tables and columns are texts, not {shown(name)}")
    if not all(columns) or not all(table.split(".")):
        raise QueryError(
            f"a name is empty: table {table!r}, columns {', '.join(map(repr, columns))}"
        )
    why_not = without_row_pattern(pattern, DIALECTS[dialect])
    if plan is not None and why_not is None:
        why_not = "the plan is one of joins"
    _check_pattern(pattern, why_not)
    _check_attributes(pattern, columns)
    pattern = _over_columns(pattern, Columns(*columns))
    query = _Query(pattern, DIALECTS[dialect], table, Columns(*columns))
    if why_not is None:
        return query.in_rows(counted=output == "count")
    branches = pattern.branches()
    joins: list[Any] = [branch.planned_names for branch in branches]
    if plan is not None:
        plan = plan_for(plan_from(plan), joins)
        joins = [part.tree for part in plan.parts]
    return query.write(joins, counted=output == "count")


def _of_column(pattern: Pattern, time: str) -> Pattern:
    """The pattern with conditions on time of the column of the table."""
    return replace(pattern, conditions=tuple(of_column(its, time) for its in pattern.conditions))


def _check_pattern(pattern: Pattern, no_row_pattern: str | None) -> None:
    for variable in pattern.variables:
        if variable.kind is Kind.KLEENE:
            raise UnsupportedPatternError(
                f"{variable} binds sets of events, and a join binds single events; use an "
                "evaluator, or remove the item",
                culprit=variable,
            )
    groups = {variable.name for variable in pattern.groups}
    for column in pattern.returns:
        if not isinstance(column.value, str) and groups.intersection(column.variables):
            raise UnsupportedPatternError(
                f"RETURN {column} reads values of a group's events, of which a query has only the "
                "positions; use an evaluator",
                culprit=column,
            )
    is_selective = pattern.output != "all" or pattern.strategy.name in ("consuming", "next")
    if is_selective and no_row_pattern is not None:
        chosen = f"STRATEGY {pattern.strategy}"
        if pattern.output != "all":
            chosen = f"OUTPUT {pattern.output}"
        raise UnsupportedPatternError(
            f"{chosen} depends on what was matched before, which a join cannot express, and "
            f"{no_row_pattern}; use an evaluator, or leave it out"
        )
    taken = {"branch": "the column of branches"} if len(pattern.branches()) > 1 else {}
    for name in pattern.names:
        if name.lower() in taken:
            raise UnsupportedPatternError(
                f"variable {name!r} clashes with {taken[name.lower()]} in SQL, whose names ignore "
                "case; rename it"
            )
        taken[name.lower()] = f"variable {name!r}"
    columns: dict[str, str] = {}
    for column in pattern.returns:
        other = columns.setdefault(column.name.lower(), column.name)
        if other != column.name:
            raise UnsupportedPatternError(
                f"RETURN has the columns {other!r} and {column.name!r}, and names in SQL ignore "
                "case; rename one of them by AS",
                culprit=column,
            )


def _check_attributes(pattern: Pattern, columns: Sequence[str]) -> None:
    known = {name.lower(): name for name in columns if name not in OWN}
    for name in pattern.attributes:
        other = known.setdefault(name.lower(), name)
        if other != name:
            raise UnsupportedPatternError(
                f"the columns {other!r} and {name!r} differ in case only, which names in SQL ignore; "
                "rename one of them in the table and in the pattern"
            )


def _over_columns(pattern: Pattern, columns: Columns) -> Pattern:
    """The pattern over columns of the table: attributes may have other names there."""
    if all(columns.of_attribute(name) == name for name in pattern.attributes):
        return pattern
    pattern = pattern.expanded

    def in_table(attribute: Attribute) -> Attribute:
        return replace(attribute, name=columns.of_attribute(attribute.name))

    strategy, shared = pattern.strategy, pattern.strategy.attribute
    if shared is not None:
        strategy = replace(strategy, attribute=columns.of_attribute(shared))
    returns = tuple(
        column
        if isinstance(column.value, str)
        else Returned(
            with_terms(column.value, partial(with_attribute, change=in_table)), column.name
        )
        for column in pattern.returns
    )
    conditions = tuple(clause.with_attributes(in_table) for clause in pattern.conditions)
    return replace(pattern, conditions=conditions, returns=returns, strategy=strategy)


class _Query:
    """Combines the queries of the branches."""

    def __init__(self, pattern: Pattern, dialect: Dialect, table: str, columns: Columns) -> None:
        self._names = pattern.positive_names
        self._groups = {variable.name for variable in pattern.groups}
        self._returns = pattern.returns
        self._branches = tuple(_of_column(its, columns.time) for its in pattern.branches())
        self._pattern = pattern
        self._dialect = dialect
        self._columns = columns
        self._position = columns.position
        self._free = Names([*pattern.names, table.split(".")[-1]])
        self._steps: list[tuple[str, str]] = []
        self._conditions = conditions = ConditionWriter(
            _of_column(pattern.expanded, columns.time), dialect, columns.time
        )
        self._table = written = dialect.table(table)
        numbered = self._numbered(pattern, columns, written)
        shared = Shared(conditions, dialect, written, columns, numbered, self._free)
        self._writers = [
            (GroupWriter if branch.groups else BranchWriter)(branch, shared)
            for branch in map(Pattern.with_partition, self._branches)
        ]

    def _numbered(self, pattern: Pattern, columns: Columns, table: str) -> Numbered | None:
        """The step that ranks the events, under a contiguity strategy."""
        if pattern.strategy.name == "any":
            return None
        parts = ""
        if pattern.strategy.attribute is not None:
            parts = f"PARTITION BY {self._quote(pattern.strategy.attribute)} "
        read = list(
            dict.fromkeys(
                [columns.type, columns.time, columns.position, *read_columns(pattern.attributes)]
            )
        )
        rank = Names(read).new("rank")
        name = self._quote(self._free.new("numbered"))
        number = f"row_number() OVER ({parts}ORDER BY {self._quote(columns.position)})"
        listed = ", ".join(map(self._quote, read))
        query = f"  SELECT {listed}, {number} AS {self._quote(rank)}\n  FROM {table}"
        self._steps.append((f"{name} AS", query))
        return Numbered(name, rank)

    def in_rows(self, *, counted: bool) -> str:
        """The query with MATCH_RECOGNIZE."""
        clauses = self._branches[0].conditions
        writer = RowPatternWriter(
            self._pattern, clauses, self._conditions, self._dialect, self._table, self._columns
        )
        return writer.write(self._value, counted=counted)

    def write(self, joins: Sequence[Any], *, counted: bool) -> str:
        """The query, by the argument of :meth:`BranchWriter.select` for each branch."""
        several = len(self._branches) > 1
        body = (self._several if several else self._single)(joins, counted=counted)
        steps = ",\n".join(f"{name} (\n{query}\n)" for name, query in self._steps)
        return f"WITH {steps}\n{body}" if steps else body

    def _single(self, joins: Sequence[Any], *, counted: bool) -> str:
        (writer,), (joined,) = self._writers, joins
        names = () if counted else self._branches[0].positive_names
        values = [] if counted else self._values(self._names)
        selection = writer.select(joined, [*((name, self._position) for name in names), *values])
        self._steps += writer.steps
        if counted:
            return selection.write(["count(*) AS matches"])
        placed = {name: selection.place(name, self._position) for name in names}
        ends = [self._end(name, placed[name]) for name in names]
        columns = [f"{placed[name]} AS {self._quote(name)}" for name in names]
        if self._returns:
            columns = [
                f"{self._value(column, selection.place)} AS {self._quote(column.name)}"
                for column in self._returns
            ]
        last = writer.last()
        order = [placed[last] if last else self._dialect.greatest(ends)]
        order += [placed[name] for name in names if name != last]
        return self._sorted(selection.write(columns), order)

    def _several(self, joins: Sequence[Any], *, counted: bool) -> str:
        alike = Counter(frozenset(branch.positive_names) for branch in self._branches)
        repeated = max(alike.values()) > 1
        shown = [] if counted and not repeated else list(self._names)
        labels = Names([*self._names, "branch"])
        returned = {} if counted else {self._quote(labels.new("value")): c for c in self._returns}
        queries = []
        for number, (writer, joined) in enumerate(zip(self._writers, joins, strict=True)):
            own = [name for name in shown if name in self._branches[number].positive_names]
            values = self._values(own) if returned else []
            selection = writer.select(joined, [*((name, self._position) for name in own), *values])
            self._steps += writer.steps
            columns = [
                f"{selection.place(name, self._position) if name in own else self._dialect.nothing()} "
                f"AS {self._quote(name)}"
                for name in shown
            ]
            for label, column in returned.items():
                known = set(own).issuperset(column.variables)
                value = self._value(column, selection.place) if known else self._dialect.nothing()
                columns.append(f"{value} AS {label}")
            queries.append(selection.write([*columns, f"{number} AS branch"], indent="  "))
        found = self._quote(self._free.new("found"))
        self._steps.append((f"{found} AS", "\n  UNION ALL\n".join(queries)))
        listed = ", ".join([*map(self._quote, shown), *returned])
        if repeated:
            # A match of several branches is attributed to the first.
            once = self._quote(self._free.new("once"))
            query = f"  SELECT {listed}, min(branch) AS branch\n  FROM {found}\n  GROUP BY {listed}"
            self._steps.append((f"{once} AS", query))
            found = once
        if counted:
            return f"SELECT count(*) AS matches\nFROM {found}"
        ends = [self._end(name, self._quote(name)) for name in shown]
        order = [self._dialect.greatest(ends), "branch", *self._keys()]
        selected = [f"{label} AS {self._quote(c.name)}" for label, c in returned.items()]
        if not self._returns:
            selected = [*map(self._quote, shown), "branch"]
        return self._sorted(f"SELECT {', '.join(selected)}\nFROM {found}", order)

    def _sorted(self, query: str, order: Sequence[str]) -> str:
        return f"{query}\nORDER BY {', '.join(order)}" if self._dialect.sorts else query

    def _values(self, names: Collection[str]) -> list[Key]:
        """The columns that RETURN reads of the events of some variables."""
        read = (a for column in self._returns for a in column.attributes())
        return [(a.variable, a.name) for a in read if a.variable in names]

    def _value(self, column: Returned, place: Place) -> str:
        """The expression of a column of RETURN."""
        match column.value:
            case str(variable):
                return place(variable, self._position)
            case Attribute(variable, name):
                return place(variable, name)
            case value:
                return self._conditions.number(value, place)

    def _end(self, name: str, positions: str) -> str:
        """The last position of a variable."""
        return f"{positions}[-1]" if name in self._groups else positions

    def _keys(self) -> list[str]:
        """The positions in each branch's order of variables, which may differ from the columns'."""
        orders = [branch.positive_names for branch in self._branches]
        if all(tuple(n for n in self._names if n in order) == order for order in orders):
            return [self._quote(name) for name in self._names]
        return [
            "CASE branch "
            + " ".join(
                f"WHEN {number} THEN {self._key(order[place])}"
                for number, order in enumerate(orders)
                if place < len(order)
            )
            + " END"
            for place in range(max(map(len, orders)))
        ]

    def _key(self, name: str) -> str:
        """The positions of a variable, as a list if some are a group's."""
        quoted = self._quote(name)
        return f"[{quoted}]" if self._groups and name not in self._groups else quoted

    def _quote(self, name: str) -> str:
        return self._dialect.identifier(name)
