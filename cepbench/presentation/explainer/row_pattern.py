"""The explanation of a row pattern that no pattern says: its automaton, and why no plan is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cepbench.engines.row_patterns.automaton import AT_END, AT_START, END, Automaton, automaton_of
from cepbench.engines.row_patterns.conditions import is_alone
from cepbench.engines.row_patterns.evaluate import evaluate_rows
from cepbench.engines.row_patterns.table import EventTable
from cepbench.engines.runs.result import Metrics
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.row_counterpart import nearest
from cepbench.patterns.row_pattern import ROWS, SKIPS, RowPattern, interval_text
from cepbench.presentation.explainer.columns import Column, texts
from cepbench.presentation.explainer.report import (
    WIDTH,
    Content,
    Report,
    table_lines,
    wrapped,
)
from cepbench.streams.event_stream import EventStream

_COLUMNS = (
    Column("state", lambda row: str(row["state"])),
    texts("variable", "variable"),
    texts("then, in order of preference", "then"),
    texts("if the row", "condition"),
)


@dataclass(frozen=True, repr=False)
class RowExplanation(Report):
    """A query that runs as rows only, and if it was run its run.

    ``states`` has a row for each state: its number (0: before the first row), its ``variable``, ``then``,
    the states that may follow in order of preference, and the ``condition`` of its row.
    """

    pattern: RowPattern
    states: pd.DataFrame
    #: Why there is no plan: the clause without counterpart, marked in the query.
    reason: str
    #: The nearest query that has a counterpart, and what it changes; None if it is not known.
    nearest: tuple[RowPattern, tuple[str, ...]] | None
    #: Of a run, and the rows of each partition.
    metrics: Metrics | None = None
    partitions: tuple[int, ...] = ()

    def describe(self, width: int = WIDTH) -> str:
        """The automaton, what bounds the search, why there is no plan, and what would have one."""
        return "\n".join(
            [
                *table_lines(_COLUMNS, [self.states.to_dict("records")], width),
                "",
                *wrapped(self.sentences(), width),
                "",
                "No plan is chosen:",
                self.reason,
                *self._advice(),
            ]
        )

    def sentences(self) -> list[str]:
        """What runs, and what bounds its time and memory."""
        return [*self._search(), *self._bounds(), *self._found()]

    def _search(self) -> Iterator[str]:
        its = self.pattern
        edges = sum(len(then.split(", ")) for then in self.states["then"])
        over = (
            f"in each partition by {', '.join(its.partition_by)}"
            if its.partition_by
            else "over all rows"
        )
        yield (
            f"It runs by an automaton of {len(self.states)} states and {edges} edges, {over} by itself "
            "from row to row: edges are tried in order of preference, and the first match found is taken."
        )
        following = {
            SKIPS[0]: "behind the last row of a match",
            SKIPS[1]: "at the row after the first one, so that matches overlap",
        }.get(its.skip, f"at the {its.skip.split()[-1].lower()} row of {its.skip_to}")
        yield f"AFTER MATCH SKIP: the next match begins {following}."

    def _bounds(self) -> Iterator[str]:
        its = self.pattern
        size = "its partition" if its.partition_by else "the stream"
        if its.within is not None:
            length = its.within.length + 1
            text = f"INTERVAL {interval_text(length)}" if its.within.is_datetime else f"{length}"
            yield f"WITHIN bounds a match: its rows are less than {text} apart, and in {size}."
        else:
            yield f"Without WITHIN a match may be as long as {size}, which is all that bounds its memory."
        others = [name for name, condition in its.define if not is_alone(its, name, condition)]
        if others:
            yield (
                f"DEFINE {', '.join(others)} reads other rows of the match, or all: what failed once may hold "
                "on another way, so that a search may take exponential time; partial_match_limit ends it."
            )
        else:
            yield (
                "Conditions read a row and its neighbours: a state that failed at a row is not tried again, "
                "for a bit for each row and state, and time is in the product of rows and edges."
            )
        if its.rows != ROWS[0]:
            yield "The result has each row of a match, and again in each match that shares it."

    def _found(self) -> Iterator[str]:
        if self.metrics is None:
            return
        its = self.metrics
        tried = its.details["rows_tried"]
        yield (
            f"{its.matches:,} matches in {its.events:,} events of {len(self.partitions):,} partitions, the "
            f"largest of {max(self.partitions, default=0):,} rows; {tried / max(its.events, 1):.3g} rows were "
            f"tried for each event, in {its.seconds:.3g} s."
        )

    def _advice(self) -> list[str]:
        if self.nearest is None:
            return ["No query near it is known to have a counterpart."]
        query, changes = self.nearest
        return [
            f"The nearest query that has a counterpart, with {'; '.join(changes)}:",
            *(f"  {line}" for line in query.describe().splitlines()),
        ]

    def _content(self) -> Content:
        headlines = ["No plan is chosen:", *self.reason.splitlines(), *self._advice()]
        return Content(headlines, _COLUMNS, [self.states.to_dict("records")], iter(()))


def explain_rows(
    pattern: RowPattern, stream: EventStream | None, reason: UnsupportedPatternError, limit: int
) -> RowExplanation:
    """The explanation of a query that has no counterpart for this reason; runs it on a stream."""
    metrics, partitions = None, ()
    if stream is not None:
        evaluate_rows(pattern, stream[:0], limit)  # the time excludes loading compiled code
        metrics = evaluate_rows(pattern, stream, limit).metrics
        partitions = tuple(np.diff(EventTable(stream, pattern).bounds).tolist())
    return RowExplanation(
        pattern, _states(pattern), str(reason), nearest(pattern), metrics, partitions
    )


def _states(pattern: RowPattern) -> pd.DataFrame:
    automaton, define = automaton_of(pattern), dict(pattern.define)
    names = ["", *(pattern.variables[number] for number in automaton.variables)]
    return pd.DataFrame(
        {
            "state": range(len(names)),
            "variable": names,
            "then": [_then(automaton, names, state) for state in range(len(names))],
            "condition": [str(define.get(name, "is any")) if name else "" for name in names],
        }
    )


def _then(automaton: Automaton, names: list[str], state: int) -> str:
    edges = range(automaton.begins[state], automaton.begins[state + 1])
    said = []
    for edge in edges:
        place, guard = int(automaton.places[edge]), int(automaton.guards[edge])
        text = "match" if place == END else f"{place + 1} {names[place + 1]}"
        text += " at the start" * bool(guard & AT_START) + " at the end" * bool(guard & AT_END)
        said.append(text)
    return ", ".join(said)
