"""A branch with groups [mei2009]_, section 4.4.5: its plain variables joined, groups by aggregation.

The matches of the plain variables are numbered. For each group a step finds the events that fit each
of them, and aggregates them to a list of positions, their first and last time, and the values that
conditions on the finished group read. Negated items are checked last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.model import Aggregate, Attribute, Clause, Pattern, Variable
from cepbench.planning.sql.branch import BranchWriter, Key, Names, Selection, Shared, Writer
from cepbench.planning.sql.conditions import Place
from cepbench.planning.sql.pairs import Condition, Pairs

Term = Attribute | Aggregate

#: Columns of a finished group: its first and last time.
_FIRST, _LAST = ":first", ":last"


@dataclass(frozen=True)
class _Rows:
    """A step of the query."""

    #: Quoted.
    name: str
    labels: dict[Key, str]
    #: The column with the number of the row.
    match: str


class GroupWriter(Writer):
    """Writes the query of a branch with groups.

    Raises UnsupportedPatternError if the dialect has no groups, a condition compares a group with a
    negated item, or the events of a group with another group, or two groups can share an event.
    """

    def __init__(self, branch: Pattern, shared: Shared) -> None:
        super().__init__(branch, shared)
        self._plain = BranchWriter(branch.without((*branch.groups, *branch.negated)), shared)
        self._pairs = Pairs(branch, shared.columns, None, shared.dialect)
        self._groups = {variable.name: variable for variable in branch.groups}
        self._check()

    def _check(self) -> None:
        if not self._dialect.has_groups:
            raise UnsupportedPatternError(
                f"GROUP is not written for {self._dialect.name}; use the dialect duckdb, or an evaluator",
                culprit=self.branch.groups[0],
            )
        negated = {variable.name for variable in self.branch.negated}
        for clause in self.branch.conditions:
            groups = [name for name in clause.variables if name in self._groups]
            if groups and (
                negated & {*clause.variables}
                or (len(groups) > 1 and any(self._is_stepped(clause, name) for name in groups))
            ):
                raise UnsupportedPatternError(
                    f"condition {clause} compares the events of a group with a negated item or with "
                    "another group, which SQL does not express here; use an evaluator",
                    culprit=clause,
                )
        for place, one in enumerate(self.branch.groups):
            for other in self.branch.groups[place + 1 :]:
                ordered = {(one.name, other.name), (other.name, one.name)} & self._pairs.before
                if self.branch.overlap(one, other) and not ordered:
                    raise UnsupportedPatternError(
                        f"{one} and {other} may share an event, which SQL does not rule out here; "
                        "use an evaluator",
                        culprit=other,
                    )

    def last(self) -> str | None:
        """None: it may be a variable or a group."""
        return None

    def select(self, joined: Any, wanted: Sequence[Key]) -> Selection:
        """The rows of the branch; see :meth:`BranchWriter.select`."""
        plain = self.branch.planned_names
        read = [(a.variable, a.name) for c in self.branch.conditions for a in c.attributes()]
        own = [
            (x, column) for x in plain for column in (self._columns.position, self._columns.time)
        ]
        keys = list(dict.fromkeys(key for key in (*own, *read, *wanted) if key[0] in plain))
        inner = self._plain.select(joined, keys)
        self.steps += self._plain.steps
        labels = Names()
        rows = _Rows("", {key: labels.new("_".join(key)) for key in keys}, labels.new("match"))
        order = ", ".join(inner.place(x, self._columns.position) for x in plain)
        rows = self._step(
            "plain",
            rows,
            inner.write(
                [
                    *(f"{inner.place(*key)} AS {self._quote(rows.labels[key])}" for key in keys),
                    f"row_number() OVER (ORDER BY {order}) AS {self._quote(rows.match)}",
                ],
                indent="  ",
            ),
        )
        for group in self.branch.groups:
            rows = self._with_group(rows, group, labels)
        place = self._place(rows)
        tested = [
            self._conditions.clause(clause.with_terms(self._labelled), place)
            for clause in self.branch.conditions
            if {*self._groups} & {*clause.variables}
            and not any(
                self._chooses(clause, x) or self._is_stepped(clause, x) for x in self._groups
            )
        ]
        tested += [place(name, ":holds") for name in self._groups]
        tested += [self._none_of(variable, place) for variable in self.branch.negated]
        return Selection((rows.name,), tuple(tested), place)

    def _step(self, name: str, rows: _Rows, query: str) -> _Rows:
        return replace(rows, name=self._quote(self._add_step(name, query)))

    def _place(self, rows: _Rows) -> Place:
        return lambda variable, column: f"{rows.name}.{self._quote(rows.labels[variable, column])}"

    # -- groups ----------------------------------------------------------------------------------

    def _with_group(self, rows: _Rows, group: Variable, labels: Names) -> _Rows:
        """The rows with each choice of a group."""
        name, columns = group.name, self._columns
        read = dict.fromkeys(
            a.name for c in self.branch.conditions for a in c.attributes() if a.variable == name
        )
        used = list(dict.fromkeys([columns.position, columns.time, *read]))
        own = Names([*used, "holds"])
        match, number, start = own.new("match"), own.new("number"), own.new("start")
        fitting = self._fitting(rows, group, used, match, number)
        # A group of n is each run of n successive events; else there is one, of all events.
        source, begin = f"{fitting} AS member", "0"
        if isinstance(group.size, int):
            runs = f"SELECT {self._quote(match)} AS owner, {self._quote(number)} AS begin"
            source += (
                f" JOIN ({runs} FROM {fitting}) AS run ON member.{self._quote(match)} = run.owner "
                f"AND member.{self._quote(number)} BETWEEN run.begin AND run.begin + {group.size - 1}"
            )
            begin = "run.begin"
        frame = f"PARTITION BY {_member(self._quote(match))}, {begin}"
        listed = [_member(self._quote(column)) for column in (match, *used)]
        held = [self._held(clause, rows, name, frame) for clause in self._stepped(name)]
        holds = f"{' AND '.join(held) or 'TRUE'} AS holds"
        members = self._step(
            "members",
            rows,
            f"  SELECT {', '.join(listed)}, {begin} AS {self._quote(start)}, {holds}\n"
            f"  FROM {source} JOIN {rows.name} ON {_member(self._quote(match))} = "
            f"{rows.name}.{self._quote(rows.match)}",
        )
        time, position = self._quote(columns.time), self._quote(columns.position)
        values = {
            (name, columns.position): f"list({position} ORDER BY {position})",
            (name, _FIRST): f"min({time})",
            (name, _LAST): f"max({time})",
            (name, ":holds"): "bool_and(holds)",
        }
        for term in dict.fromkeys(t for c in self.branch.conditions for t in c.terms()):
            if term.variable == name and _is_whole(term):
                value = self._labelled(term)
                values[value.variable, value.name] = self._aggregated(term)
        found = {key: labels.new("_".join(key)) for key in values}
        grouped = self._step(
            "grouped",
            rows,
            f"  SELECT {self._quote(match)}, {self._quote(start)}, "
            + ", ".join(f"{text} AS {self._quote(found[key])}" for key, text in values.items())
            + f"\n  FROM {members.name}\n  GROUP BY {self._quote(match)}, {self._quote(start)}"
            + (f"\n  HAVING count(*) = {group.size}" if isinstance(group.size, int) else ""),
        )
        empty = {columns.position: "[]", ":holds": "TRUE"}
        chosen = []
        for (variable, column), label in found.items():
            text = f"{grouped.name}.{self._quote(label)}"
            missing = "0" if variable.endswith(":count") else empty.get(column)
            chosen.append(
                f"{f'coalesce({text}, {missing})' if missing else text} AS {self._quote(label)}"
            )
        kept = [f"{rows.name}.{self._quote(label)}" for label in rows.labels.values()]
        order = f"{rows.name}.{self._quote(rows.match)}, {grouped.name}.{self._quote(start)}"
        return self._step(
            "chosen",
            replace(rows, labels={**rows.labels, **found}),
            f"  SELECT {', '.join([*kept, *chosen])}, row_number() OVER (ORDER BY {order}) AS "
            f"{self._quote(rows.match)}\n  FROM {rows.name} {'LEFT ' * (group.size == '*')}JOIN "
            f"{grouped.name} ON {rows.name}.{self._quote(rows.match)} = "
            f"{grouped.name}.{self._quote(match)}",
        )

    def _fitting(
        self, rows: _Rows, group: Variable, used: Sequence[str], match: str, number: str
    ) -> str:
        """The step with the events that fit a group, numbered for each row."""
        place = self._with_event(group.name, self._place(rows))
        tested = [condition.write(place) for condition in self._near(group)]
        tested += [
            self._conditions.clause(clause, place)
            for clause in self.branch.conditions
            if self._chooses(clause, group.name)
        ]
        row, position = f"{rows.name}.{self._quote(rows.match)}", self._columns.position
        numbered = (
            f"row_number() OVER (PARTITION BY {row} ORDER BY {place(group.name, position)}) "
            f"AS {self._quote(number)}"
        )
        listed = [place(group.name, column) for column in used]
        source = f"{self._table} AS {self._quote(group.name)}"
        selection = Selection((rows.name, source), tuple(tested), place)
        return self._step(
            "fitting",
            rows,
            selection.write([f"{row} AS {self._quote(match)}", *listed, numbered], indent="  "),
        ).name

    def _near(self, variable: Variable) -> Iterator[Condition]:
        """Type, order, window and distinctness of an event beside the plain ones."""
        yield from self._pairs.of_type(variable)
        yield from self._pairs.between({variable.name}, {*self.branch.planned_names})

    def _chooses(self, clause: Clause, group: str) -> bool:
        """Whether a condition chooses the events of a group."""
        known = {group, *self.branch.planned_names}
        return group in clause.variables and clause.is_elementwise and known >= {*clause.variables}

    def _is_stepped(self, clause: Clause, group: str) -> bool:
        """Whether a condition tests each event of a finished group."""
        return not self._chooses(clause, group) and any(
            term.variable == group and not _is_whole(term) for term in clause.terms()
        )

    def _stepped(self, group: str) -> list[Clause]:
        return [clause for clause in self.branch.conditions if self._is_stepped(clause, group)]

    def _held(self, clause: Clause, rows: _Rows, group: str, frame: str) -> str:
        """Whether a condition holds for an event of a finished group."""
        position = _member(self._quote(self._columns.position))
        order = f"{frame} ORDER BY {position}"
        whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        known = {self._labelled(term): term for term in clause.terms() if term.variable == group}
        bound = self._place(rows)

        def place(variable: str, column: str) -> str:
            term = known.get(Attribute(variable, column))
            if term is None:
                return bound(variable, column)
            value = _member(self._quote(column))
            if isinstance(term, Aggregate):
                over = (
                    f"{order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
                    if term.before
                    else frame
                )
                return self._aggregate(term.function, value, f" OVER ({over})")
            if term.element in ("each", "rest"):
                return value
            if term.element == "previous":
                return f"lag({value}) OVER ({order})"
            return f"{term.element}_value({value}) OVER ({order} {whole})"

        text = (
            f"coalesce({self._conditions.clause(clause.with_terms(self._labelled), place)}, FALSE)"
        )
        if clause.is_running:
            text = f"(lag({position}) OVER ({order}) IS NULL OR {text})"
        return text

    def _labelled(self, term: Term) -> Attribute:
        """A group's term as an attribute of a variable of its own."""
        name = term.variable
        if name not in self._groups:
            assert isinstance(term, Attribute)
            return term
        if isinstance(term, Attribute):
            return Attribute(f"{name}:{term.element}", term.name)
        return Attribute(f"{name}:{'before:' * term.before}{term.function}", term.attribute.name)

    def _aggregated(self, term: Term) -> str:
        """The value of a term over a whole group."""
        if isinstance(term, Aggregate):
            return self._aggregate(term.function, self._quote(term.attribute.name), "")
        position = self._quote(self._columns.position)
        place = 1 if term.element == "first" else -1
        return f"list({self._quote(term.name)} ORDER BY {position})[{place}]"

    def _aggregate(self, function: str, column: str, over: str) -> str:
        """An aggregate, missing if a value is."""
        if function == "count":
            return f"count(*){over}"
        value = f"coalesce(CAST({column} AS DOUBLE), {self._dialect.number(float('nan'))})"
        text = f"{function}({value}){over}"
        if function != "min":
            return text
        # NaN is the largest number.
        largest = f"max({value}){over}"
        return f"CASE WHEN isnan({largest}) THEN {largest} ELSE {text} END"

    # -- negation --------------------------------------------------------------------------------

    def _none_of(self, negated: Variable, bound: Place) -> str:
        """That no event satisfies the conditions of a negated item beside plain and group events."""
        columns, place = self._columns, self._with_event(negated.name, bound)
        tested = [condition.write(place) for condition in self._near(negated)]
        time = place(negated.name, columns.time)
        for name, group in self._groups.items():
            first, last = bound(name, _FIRST), bound(name, _LAST)
            window = self.branch.window
            near = [
                self._dialect.not_after(time, first, window),
                self._dialect.not_after(last, time, window),
            ]
            taken, position = bound(name, columns.position), place(negated.name, columns.position)
            begin, end, own = first, last, time
            if self.branch.order == "arrival":
                begin, end, own = f"{taken}[1]", f"{taken}[-1]", position
            if (name, negated.name) in self._pairs.before:
                near.append(f"{end} < {own}")
            elif (negated.name, name) in self._pairs.before:
                near.append(f"{own} < {begin}")
            elif self.branch.overlap(group, negated):
                near.append(f"NOT list_contains({taken}, {position})")
            tested.append(f"({first} IS NULL OR ({' AND '.join(near)}))")
        tested += [
            self._conditions.clause(clause, place)
            for clause in self.branch.conditions
            if negated.name in clause.variables
        ]
        source = f"{self._table} AS {self._quote(negated.name)}"
        return f"NOT EXISTS (SELECT 1 FROM {source} WHERE {' AND '.join(tested)})"


def _member(column: str) -> str:
    return f"member.{column}"


def _is_whole(term: Term) -> bool:
    """Whether a term is one value for a finished group."""
    if isinstance(term, Aggregate):
        return not term.before
    return term.element in ("first", "last")
