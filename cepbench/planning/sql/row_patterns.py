"""A pattern as MATCH_RECOGNIZE: single events one after the other, of which a row begins one match at most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from cepbench.patterns.model import Clause, Kind, Pattern, Returned
from cepbench.planning.sql.branch import Names
from cepbench.planning.sql.conditions import ConditionWriter, Place
from cepbench.planning.sql.dialects import Dialect
from cepbench.planning.sql.pairs import Columns, Pairs


def without_row_pattern(pattern: Pattern, dialect: Dialect) -> str | None:
    """Why MATCH_RECOGNIZE does not return exactly the matches of a pattern; None if it does."""
    names, before = pattern.positive_names, pattern.structure.precedence()
    strategy, output = pattern.strategy, pattern.output
    if not dialect.row_patterns:
        return f"{dialect.name} has no MATCH_RECOGNIZE"
    if ("datetime" if pattern.window.is_datetime else "units") not in dialect.row_patterns:
        return f"{dialect.name} orders the rows of MATCH_RECOGNIZE by a timestamp, not by integers"
    if strategy.name not in ("strict_contiguity", "partition_contiguity", "next"):
        return f"MATCH_RECOGNIZE finds one match from a row on, and STRATEGY {strategy} several"
    if any(variable.kind is not Kind.PLAIN for variable in pattern.variables):
        return "MATCH_RECOGNIZE is written for plain items, not for NOT, KL and GROUP"
    if len(pattern.branches()) > 1:
        return (
            "MATCH_RECOGNIZE finds the match of one alternative from a row on, and OR those of all"
        )
    if not all(pair in before for pair in pairwise(names)):
        return "MATCH_RECOGNIZE is written for items in sequence, not for AND"
    if output != "all" and (
        strategy.name == "next"
        or (strategy.attribute and {*pattern.equivalences} - {strategy.attribute})
    ):
        return f"AFTER MATCH SKIP PAST LAST ROW takes the first match, and OUTPUT {output} here another"
    return None


class RowPatternWriter:
    """Writes the query of a pattern that :func:`without_row_pattern` has nothing against.

    Rows of contiguous matches are neighbours. Under ``next`` rows that do not begin an item are mapped
    to a variable before it, so that the first one that does is taken, as by a run of the automaton.
    ``clauses`` are the conditions, those on time on the column of the table.
    """

    def __init__(
        self,
        pattern: Pattern,
        clauses: Sequence[Clause],
        conditions: ConditionWriter,
        dialect: Dialect,
        table: str,
        columns: Columns,
    ) -> None:
        self._pattern = pattern
        self._names = pattern.positive_names
        self._clauses = clauses
        self._conditions = conditions
        self._dialect = dialect
        self._table = table
        self._columns = columns
        self._types = Pairs(pattern.branches()[0], columns, None, dialect)
        self._quote = dialect.identifier

    def write(self, value: Callable[[Returned, Place], str], *, counted: bool) -> str:
        """The query, or that of the number of its rows; ``value`` writes a column of RETURN."""
        key, position = self._pattern.strategy.attribute, self._columns.position
        mapped, define = self._mapped()
        within = self._dialect.row_pattern_limit(self._pattern.window)
        labels = Names([] if key is None else [key])
        placed = {labels.new(name): self._place(name, position) for name in self._names}
        first, *_, last = [*placed, *placed]
        shown = dict(zip(placed, self._names, strict=True))
        if self._pattern.returns:
            shown = {labels.new(its.name): its.name for its in self._pattern.returns}
            values = (value(its, self._place) for its in self._pattern.returns)
            placed |= dict(zip(shown, values, strict=True))
        selected = "count(*) AS matches"
        if not counted:
            selected = ", ".join(
                self._quote(label) + (f" AS {self._quote(name)}" if name != label else "")
                for label, name in shown.items()
            )
        measures = (f"{text} AS {self._quote(label)}" for label, text in placed.items())
        return "\n".join(
            [
                f"SELECT {selected}",
                f"FROM {self._table} MATCH_RECOGNIZE (",
                *([] if key is None else [f"  PARTITION BY {self._quote(key)}"]),
                f"  ORDER BY {self._quote(self._columns.time)}, {self._quote(position)}",
                f"  MEASURES {', '.join(measures)}",
                "  ONE ROW PER MATCH",
                f"  AFTER MATCH SKIP {'TO NEXT' if self._pattern.output == 'all' else 'PAST LAST'} ROW",
                f"  PATTERN ({' '.join(mapped)})",
                *([] if within is None else [f"  WITHIN {within}"]),
                "  DEFINE",
                ",\n".join(f"    {name} AS {' AND '.join(its)}" for name, its in define.items()),
                ")",
                *(
                    [f"ORDER BY {self._quote(last)}, {self._quote(first)}"]
                    if self._dialect.sorts and not counted
                    else []
                ),
            ]
        )

    def _mapped(self) -> tuple[list[str], dict[str, list[str]]]:
        """The parts of PATTERN, and the conditions of each of its variables."""
        mapped, define = [], {}
        free = Names(self._names)
        for at, name in enumerate(self._names):
            begins, _ = self._begin(at, self._place)
            if at and self._pattern.strategy.name == "next":
                skipped = free.new("skipped")

                def place(variable: str, column: str, name: str = name, of: str = skipped) -> str:
                    return self._place(of if variable == name else variable, column)

                _, fails = self._begin(at, place)
                if fails:
                    define[self._quote(skipped)] = [
                        f"({' OR '.join(fails)})",
                        self._near(place, at),
                    ]
                    mapped.append(f"{self._quote(skipped)}*")
            mapped.append(self._quote(name))
            # A variable without a condition is in DEFINE too, which some engines require.
            define[self._quote(name)] = begins or ["TRUE"]
        return mapped, define

    def _begin(self, at: int, place: Place) -> tuple[list[str], list[str]]:
        """What holds if a row begins an item, of which the last is near, and how each of it fails."""
        name, known = self._names[at], {*self._names[: at + 1]}
        (variable,) = (its for its in self._pattern.variables if its.name == name)
        holds = [its.write(place) for its in self._types.of_type(variable)]
        key = self._pattern.strategy.attribute
        if at == 0 and key is not None:
            # A missing value is in no partition.
            holds.append(f"{place(name, key)} = {place(name, key)}")
        if at and self._pattern.order == "time":
            time, before = self._columns.time, self._names[at - 1]
            holds.append(f"{place(name, time)} > {place(before, time)}")
        due = [its for its in self._clauses if name in its.variables and known >= {*its.variables}]
        fails = [f"NOT ({text})" for text in holds]
        fails += [self._conditions.fails(its, place) for its in due]
        holds += [self._conditions.clause(its, place) for its in due]
        if at and at == len(self._names) - 1:
            holds.append(self._near(place, at))
        return holds, fails

    def _near(self, place: Place, at: int) -> str:
        """That the row of an item is in the window of the first one."""
        time = self._columns.time
        its, first = place(self._names[at], time), place(self._names[0], time)
        return self._dialect.not_after(its, first, self._pattern.window)

    def _place(self, variable: str, column: str) -> str:
        return f"{self._quote(variable)}.{self._quote(column)}"
