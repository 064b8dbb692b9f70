"""A pattern without OR as self-joins of the table of events, in any order or a plan's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from cepbench.patterns.equivalences import Equalities
from cepbench.patterns.model import Clause, Pattern, Variable
from cepbench.planning.plans.tree import leaves
from cepbench.planning.sql.conditions import ConditionWriter, Place
from cepbench.planning.sql.dialects import Dialect
from cepbench.planning.sql.pairs import Columns, Condition, Pairs

#: A variable and a column of its event.
Key = tuple[str, str]


class Names:
    """Generates names that are distinct in SQL, which ignores case."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in taken}

    def new(self, wanted: str) -> str:
        """``wanted``, with a number appended if the name is taken."""
        name, number = wanted, 1
        while name.lower() in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name.lower())
        return name


@dataclass(frozen=True)
class Numbered:
    """The events with their consecutive ranks in the stream or in their partition."""

    #: As written in FROM.
    source: str
    rank: str


@dataclass(frozen=True)
class Relation:
    """An operand of a join."""

    alias: str
    #: As written in FROM, with its alias.
    text: str
    labels: dict[Key, str]


@dataclass(frozen=True)
class Near:
    """Two variables whose events are at most a window apart, hence in adjacent buckets."""

    #: The side of the join, 0 or 1, whose rows are copied into several buckets.
    side: int
    #: A variable of that side, and one of the other.
    copied: str
    other: str
    #: By how many buckets the event of ``other`` may follow that of ``copied``.
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Selection:
    """Rows of some tables that satisfy some conditions."""

    #: As written in FROM.
    sources: tuple[str, ...]
    conditions: tuple[str, ...]
    #: (variable, column) → its expression over these sources.
    place: Place

    def write(self, columns: Sequence[str], indent: str = "") -> str:
        """The query that selects ``columns``."""
        lines = [f"SELECT {', '.join(columns)}", f"FROM {', '.join(self.sources)}"]
        lines += [f"{'  AND' if k else 'WHERE'} {text}" for k, text in enumerate(self.conditions)]
        # textwrap.indent would alter multi-line texts.
        return "\n".join(indent + line for line in lines)


@dataclass(frozen=True)
class Shared:
    """What the writers of all branches of a query share."""

    conditions: ConditionWriter
    dialect: Dialect
    #: The table of events as written in FROM.
    table: str
    columns: Columns
    #: The events with their ranks, under a contiguity strategy.
    numbered: Numbered | None
    #: Those taken in the whole query, its variables among them.
    names: Names


class Writer:
    """Writes the query of one branch of a pattern without OR, step by step."""

    def __init__(self, branch: Pattern, shared: Shared) -> None:
        #: Common table expressions: name, and query in brackets.
        self.steps: list[tuple[str, str]] = []
        self.branch = branch
        self._conditions = shared.conditions
        self._dialect = shared.dialect
        self._columns = shared.columns
        self._names = shared.names
        self._table = shared.table

    def _add_step(self, wanted: str, query: str) -> str:
        """Add a common table expression; its name."""
        name = self._names.new(wanted)
        self.steps.append((f"{self._quote(name)} {self._dialect.step}", query))
        return name

    def _with_event(self, variable: str, bound: Place) -> Place:
        """The columns of an event of the table, whose alias is its variable, beside those bound."""

        def place(other: str, column: str) -> str:
            if other == variable:
                return f"{self._quote(variable)}.{self._quote(column)}"
            return bound(other, column)

        return place

    def _quote(self, name: str) -> str:
        return self._dialect.identifier(name)


class BranchWriter(Writer):
    """Writes the query of a branch of plain and negated variables."""

    def __init__(self, branch: Pattern, shared: Shared) -> None:
        super().__init__(branch, shared)
        numbered = shared.numbered
        self._source = numbered.source if numbered else shared.table
        self._ranked = numbered is not None
        rank = numbered.rank if numbered else None
        self._pairs = Pairs(branch, shared.columns, rank, shared.dialect)
        negated = {variable.name for variable in branch.negated}
        self._equalities = Equalities(branch.conditions, branch.planned_names)
        self._known = [
            *(c for variable in branch.positive for c in self._pairs.of_type(variable)),
            *(self._of(c) for c in branch.conditions if not negated.intersection(c.variables)),
            *map(self._none_of, branch.negated),
        ]

    def select(self, joined: Any, wanted: Sequence[Key]) -> Selection:
        """The rows of a join, with the columns wanted.

        A variable, a pair of a plan's tree, or all variables, to be joined in any order.
        """
        parts = (joined,) if isinstance(joined, str) else joined
        groups = [set(leaves(part)) for part in parts]
        here = self._due(parts, groups)
        near = self._near(parts, groups)
        needed = {*wanted, *(key for condition in here for key in condition.columns)}
        if near:
            needed |= {(near.copied, self._columns.time), (near.other, self._columns.time)}
        sources = [
            self._events(part, needed) if isinstance(part, str) else self._step(part, needed)
            for part in parts
        ]
        found = {key: source for source in sources for key in source.labels}

        def place(variable: str, column: str) -> str:
            key = (variable, column)
            return f"{self._quote(found[key].alias)}.{self._quote(found[key].labels[key])}"

        written = [source.text for source in sources]
        conditions = []
        if near:
            # Conditions on the copied events alone are checked before they are copied.
            alone = groups[near.side] if isinstance(parts[near.side], str) else set()
            before = [condition for condition in here if condition.variables <= alone]
            here = [condition for condition in here if condition not in before]
            written[near.side], condition = self._copied(sources[near.side], near, before, place)
            conditions.append(condition)
        conditions += [condition.write(place) for condition in here]
        return Selection(tuple(written), tuple(conditions), place)

    def last(self) -> str | None:
        """The variable whose event is the last of every match, if it is always the same."""
        names = self.branch.positive_names
        for name in names:
            if all((other, name) in self._pairs.before for other in names if other != name):
                return name
        return None

    def _due(self, parts: Sequence[Any], groups: Sequence[set[str]]) -> list[Condition]:
        """The conditions of a join: those that could not be checked in one of its parts."""
        names = set().union(*groups)
        below = [group for part, group in zip(parts, groups, strict=True) if part not in group]
        found = [
            condition
            for condition in self._known
            if condition.variables <= names and not any(condition.variables <= g for g in below)
        ]
        # Types and conditions on single events first, negation last, for readability.
        single = [c for c in found if len(c.variables) == 1]
        if len(parts) == 2:
            pairs = list(self._pairs.between(groups[0], groups[1]))
            equal = self._equalities.between(groups[0], groups[1])
            pairs += [self._of(clause) for clause in equal if clause not in self._equalities]
        else:
            pairs = [c for x, y in combinations(parts, 2) for c in self._pairs.all(x, y)]
        return [*single, *pairs, *(c for c in found if len(c.variables) > 1)]

    def _events(self, variable: str, needed: Iterable[Key]) -> Relation:
        """The events of a variable."""
        text = f"{self._source} AS {self._quote(variable)}"
        return Relation(
            variable, text, {key: key[1] for key in sorted(needed) if key[0] == variable}
        )

    def _step(self, joined: Any, needed: Iterable[Key]) -> Relation:
        """A join below another one, as a common table expression."""
        group = set(leaves(joined))
        wanted = sorted(key for key in needed if key[0] in group)
        inner = self.select(joined, wanted)
        labels = Names()
        label = {key: labels.new("_".join(key)) for key in wanted}
        columns = [f"{inner.place(*key)} AS {self._quote(label[key])}" for key in wanted]
        name = self._add_step("step", inner.write(columns, indent="  "))
        return Relation(name, self._quote(name), label)

    # -- buckets ---------------------------------------------------------------------------------

    def _near(self, parts: Sequence[Any], groups: Sequence[set[str]]) -> Near | None:
        """A pair of events of the two sides that must be within a window."""
        if len(parts) != 2 or self._ranked or not self._dialect.can_bucket(self.branch.window):
            return None
        # Prefer copying a single event: a step may have many rows.
        side = 1 if isinstance(parts[1], str) and not isinstance(parts[0], str) else 0
        names = self.branch.positive_names
        pairs = [
            (x, y) for x in names for y in names if x in groups[side] and y in groups[1 - side]
        ]
        # Probing two buckets is better than three.
        x, y = min(pairs, key=lambda pair: len(self._buckets_apart(*pair)))
        return Near(side, x, y, self._buckets_apart(x, y))

    def _buckets_apart(self, x: str, y: str) -> tuple[int, ...]:
        """By how many buckets the event of ``y`` may follow that of ``x``."""
        if (x, y) in self._pairs.before:
            return (0, 1)
        return (-1, 0) if (y, x) in self._pairs.before else (-1, 0, 1)

    def _copied(
        self, source: Relation, near: Near, before: Sequence[Condition], place: Place
    ) -> tuple[str, str]:
        """The rows of a relation, one per bucket to probe, and the join condition on buckets."""
        time, window = self._columns.time, self.branch.window
        bucket = self._dialect.bucket(place(near.copied, time), window)
        label = self._quote(Names(source.labels.values()).new("bucket"))
        buckets = [
            f"{bucket} {'-' if k < 0 else '+'} {abs(k)}" if k else bucket for k in near.steps
        ]
        alias = self._quote(source.alias)
        columns = [f"{alias}.{self._quote(name)}" for name in source.labels.values()]
        inner = Selection(
            (source.text,), tuple(condition.write(place) for condition in before), place
        )
        query = inner.write([*columns, f"{self._dialect.each(buckets)} AS {label}"], indent="    ")
        other = self._dialect.bucket(place(near.other, time), window)
        return f"(\n{query}\n  ) AS {alias}", f"{other} = {alias}.{label}"

    # -- conditions ------------------------------------------------------------------------------

    def _of(self, clause: Clause) -> Condition:
        keys = tuple(dict.fromkeys((a.variable, a.name) for a in clause.attributes()))
        return Condition(keys, lambda place: self._conditions.clause(clause, place))

    def _none_of(self, negated: Variable) -> Condition:
        """That no event satisfies the conditions of a negated variable."""
        own = negated.name
        inner = [
            *self._pairs.of_type(negated),
            *self._pairs.between({own}, set(self.branch.positive_names)),
            *(self._of(c) for c in self.branch.conditions if own in c.variables),
        ]
        keys = tuple(
            dict.fromkeys(key for condition in inner for key in condition.columns if key[0] != own)
        )

        places = {self._columns.time}
        if self.branch.order == "arrival":
            places.add(self._columns.position)
        other = min(
            (variable for variable, column in keys if column in places),
            key=lambda name: len(self._buckets_apart(own, name)),
        )
        near = Near(0, own, other, self._buckets_apart(own, other))
        mine = {key[1] for condition in inner for key in condition.columns if key[0] == own}
        labels = {(own, column): column for column in sorted({*mine, self._columns.time})}

        def write(place: Place) -> str:
            placed = self._with_event(own, place)
            source = Relation(own, f"{self._table} AS {self._quote(own)}", labels)
            text, texts, rest = source.text, [], inner
            if self._dialect.can_bucket(self.branch.window):
                before = [condition for condition in inner if condition.variables == {own}]
                rest = [condition for condition in inner if condition not in before]
                text, found = self._copied(source, near, before, placed)
                texts.append(found)
            texts += [condition.write(placed) for condition in rest]
            return f"NOT EXISTS (SELECT 1 FROM {text} WHERE {' AND '.join(texts)})"

        return Condition((*keys, (other, self._columns.time)), write)
