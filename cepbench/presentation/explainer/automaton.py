"""The explanation of an automaton: its edges, the bound on its runs, and those of a run on a stream."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cepbench.diagram import Diagram
from cepbench.engines.automata.drawing import automaton_diagram
from cepbench.engines.automata.model import Automaton
from cepbench.presentation.explainer.columns import (
    MISSING,
    Column,
    Row,
    numbers,
    percent,
    shares,
    short,
    texts,
)
from cepbench.presentation.explainer.explanation import Explanation
from cepbench.presentation.explainer.report import WIDTH, Content, table_lines, wrapped

#: Columns that a run adds.
_COUNTED = (
    numbers("tested", "tested"),
    numbers("passed", "passed"),
    Column("of tests", lambda row: _share(row["passed"], row["tested"])),
    shares("time", "time_share"),
    numbers("runs", "mean_runs"),
    numbers("at most", "peak_runs"),
)


@dataclass(frozen=True, repr=False)
class AutomatonExplanation(Explanation):
    """An automaton and, if it was run, its run.

    ``nodes`` has a row for each edge: ``branch``, and the columns of
    :meth:`cepbench.engines.automata.model.Automaton.table`; of a run by an engine that counts them also
    ``tested`` and ``passed``, runs and events for which the edge was tested and held; ``time_share``,
    its share of the matching time, by the number of tests, which are too short to be timed;
    ``mean_runs`` and ``peak_runs``, the runs in its state. What is not counted is NaN, see
    :func:`cepbench.engines.sase.edge_table.edge_counts`; states that an engine adds for NOT are
    only in ``Result.nodes``. There are no remarks and no stakes.
    """

    legend = ""

    def describe(self, width: int = WIDTH) -> str:
        """The edges with their formulas, what a run counted at them, and the bound on runs.

        Sentences have up to ``width`` characters a line; an edge is on one line.
        """
        counted: list[str] = []
        if self._is_counted:
            columns = [texts("state", "state"), texts("edge", "edge"), *_COUNTED]
            lines = table_lines(columns, self._branches(), width)
            counted = ["", *(f"  {line}" for line in lines)]
        return "\n".join([self.plan.describe(), *counted, "", *wrapped(self.sentences(), width)])

    def sentences(self) -> list[str]:
        """The bound on runs of each branch, and what the run counted."""
        return [*self._bounds(), *self._found(), *self._engines()]

    @property
    def _is_counted(self) -> bool:
        return "tested" in self.nodes

    def _automata(self) -> list[Automaton]:
        return [part for part in self.plan.parts if isinstance(part, Automaton)]

    def _bounds(self) -> Iterator[str]:
        several = len(self.plan.parts) > 1
        for number, automaton in enumerate(self._automata()):
            where = f"branch {number}, " if several else ""
            found = automaton.nondeterminism()
            at = "; ".join(
                f"{state}: {', '.join(kinds)}"
                for state, kinds in zip(found.states, found.kinds, strict=True)
                if kinds
            )
            bound = f"{where}{found.bound} ({at or 'runs never split'})."
            yield bound[0].upper() + bound[1:]

    def _found(self) -> Iterator[str]:
        metrics = self.metrics
        if metrics is None:
            return
        yield (
            f"{self.evaluator} found {metrics.matches:,} matches in {metrics.events:,} events, "
            f"{metrics.events_per_second:,.0f} events/s, with at most "
            f"{metrics.peak_partial_matches:,} runs at a time."
        )
        yield from self._work()
        runs = metrics.runs
        if runs is not None:
            yield (
                f"{runs.runs_started:,} runs started, {runs.runs_split:,} split off and "
                f"{runs.runs_merged:,} were merged; {runs.runs_per_step:.3g} were looked at for an "
                "event" + _without_merging(runs.runs_apart_per_step, runs.merged_percent)
            )
        if self._is_counted:
            yield (
                "Tested and passed count runs and events; the time of an edge is its share of the "
                "tests; runs are those in the state, averaged over the events, and at most."
            )

    def _content(self) -> Content:
        names = [texts("state", "state"), texts("edge", "edge"), texts("to", "target")]
        counted = _COUNTED if self._is_counted else ()
        branches = self._branches()
        figures = (
            (f"automaton of {automaton.pattern}", self._drawing(automaton, rows))
            for automaton, rows in zip(self._automata(), branches, strict=True)
        )
        return Content([], [*names, *counted, texts("formula", "formula")], branches, figures)

    def _drawing(self, automaton: Automaton, rows: Sequence[Row]) -> Diagram:
        """The automaton with passes at its edges and the mean number of runs in its states."""
        if not self._is_counted:
            return automaton_diagram(automaton.states, automaton.edges)
        notes = {
            edge: f"{short(row['passed'])} of {short(row['tested'])}"
            for edge, row in zip(automaton.edges, rows, strict=True)
            if not math.isnan(row["tested"])
        }
        means = {row["state"]: row["mean_runs"] for row in rows}
        contents = [
            "" if math.isnan(mean) else f"ø {short(mean)}"
            for mean in (means[state.name] for state in automaton.states[:-1])
        ]
        return automaton_diagram(automaton.states, automaton.edges, notes, contents)


def _share(part: float, whole: float) -> str:
    return percent(part / whole) if whole > 0 else MISSING


def _without_merging(apart: float, merged: float) -> str:
    if not merged > 0:
        return "."
    return (
        f", and would have been {apart:.3g} without merging, which saves {percent(merged / 100)}."
    )
