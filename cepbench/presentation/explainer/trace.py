"""The runs of an automaton step by step, as the engines of [agrawal2008]_ make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cepbench.arguments import choice
from cepbench.engines.automata.compilation import automaton
from cepbench.engines.automata.model import Automaton
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.sase.run import prunes
from cepbench.errors import EvaluationError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.presentation.explainer.buffer_drawing import buffer_svg
from cepbench.presentation.explainer.tracer import Pointer, Tracer, dewey
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import (
    check_fit,
    check_types,
    reporting_missing_types,
    under_one_hierarchy,
)
from cepbench.streams.given import Frame, events_from

#: The engines of automata whose runs can be traced.
TRACED = ("sase-basic", "sase", "sase-backtrack")


@dataclass(frozen=True, repr=False)
class Trace:
    """The steps of all runs on a stream, see :func:`trace`.

    With OR, tables have a column ``branch``, and the moves of a branch come together.

    Attributes
    ----------
    automata : tuple of Automaton
        One per branch.
    runs : DataFrame
        A row for each step of a run, in the order in which they are made: ``event`` (position),
        ``move``, and the computation state after it: ``version``, ``state``, ``last`` (position of
        the last event selected), ``start`` (timestamp of the first), and a column for each of V.
        Moves are ``begin``, ``take``, ``ignore``, ``proceed``; ``fail`` where no formula holds;
        ``end`` where a match that OUTPUT reports ends the runs of its partition; of merged runs
        ``merge``, where one with the versions of both goes on, with the youngest start; of
        backtracking ``backtrack``, where a postponed run reads an event again.
    matches : DataFrame
        The events of each accepting run, read from the buffer along compatible pointers:
        ``version``, ``event`` (the last one), and the positions of each variable. Those that NOT or
        OUTPUT leave out are missing.
    """

    automata: tuple[Automaton, ...]
    runs: pd.DataFrame
    matches: pd.DataFrame
    _pointers: tuple[tuple[Pointer, ...], ...]

    def pointers(self, position: int) -> pd.DataFrame:
        """The shared buffer after an event: a row for each pointer.

        ``stack`` and ``event`` that it is of, ``previous_stack`` and ``previous`` that it points
        to (``""`` and -1 for the first event of a run), and its ``version``.
        """
        return _of_branches(
            [self._stored(number, position) for number in range(len(self.automata))]
        )

    def _stored(self, branch: int, position: int) -> pd.DataFrame:
        states = self.automata[branch].states
        rows = [
            {
                "stack": states[pointer.stack].name,
                "event": pointer.position,
                "previous_stack": ""
                if pointer.previous is None
                else states[pointer.previous[0]].name,
                "previous": -1 if pointer.previous is None else pointer.previous[1],
                "version": dewey(pointer.version),
            }
            for pointer in self._pointers[branch]
            if pointer.position <= position
        ]
        columns = ["stack", "event", "previous_stack", "previous", "version"]
        return pd.DataFrame(rows, columns=columns)

    def draw(self, position: int, branch: int = 0) -> str:
        """The shared buffer after an event as SVG, in the style of [agrawal2008]_, Figure 4d."""
        stacks = [state.name for state in self.automata[branch].states[:-1]]
        return buffer_svg(stacks, self._stored(branch, position).to_dict("records"))

    def __repr__(self) -> str:
        return f"Trace({len(self.runs)} steps, {len(self.matches)} matches)"


def trace(
    pattern: Pattern | str,
    stream: EventStream | Frame,
    *,
    type: str | None = None,
    time: str | None = None,
    evaluator: str = "sase-basic",
    missing_types: str = "warn",
) -> Trace:
    """Run an automaton on a short stream and record every step of every run.

    Parameters
    ----------
    pattern : Pattern or str
    stream, type, time
        See :func:`cepbench.evaluate`.
    evaluator : {"sase-basic", "sase", "sase-backtrack"}
        The engine whose moves are shown: all runs read an event before the next one; the same with
        equivalent runs merged; or one run at a time, with events read again.
    missing_types : {"warn", "error"}
        As in :func:`cepbench.evaluate`.

    Returns
    -------
    Trace

    Raises
    ------
    PatternError, StreamError
        If pattern or stream is invalid, or they do not fit each other.
    UnsupportedPatternError
        If it cannot be compiled, see :func:`cepbench.automaton`.
    EvaluationError
        If the evaluator is none of these, or there are more than
        :data:`cepbench.presentation.explainer.tracer.MOST_STEPS` steps.

    Notes
    -----
    Source: [agrawal2008]_, sections 5.1 and 5.2. The steps are those of an interpreter, which tests
    each formula for each run; engines look at no run that an event cannot concern, and remove
    expired ones later. Which matches NOT and OUTPUT leave out is that of :func:`cepbench.evaluate`.

    Differs from [agrawal2008]_: where a run may both take and ignore an event, the run that takes it
    gets a digit more, and the other one the next number. With the next number for both, as for
    take and proceed, two pointers of one event could be compatible with one run. Nothing is pruned.
    """
    pattern, stream = under_one_hierarchy(pattern_from(pattern), events_from(stream, type, time))
    name = evaluator_for(evaluator).name
    evaluator = choice(name, "the evaluator of a trace", TRACED, EvaluationError)
    with reporting_missing_types(missing_types):
        check_types(pattern, stream)
        check_fit(pattern, stream)
        automata = tuple(part for part in automaton(pattern).parts if isinstance(part, Automaton))
        tracers = [Tracer(one, stream) for one in automata]
        ends = pattern.output != "all" and prunes(pattern)
        traced = [one.run(evaluator, prunes=ends) for one in tracers]
        matches = [its for _, its in traced]
        if len(automata) > 1 or pattern.negated or pattern.output != "all":
            matches = _reported(matches, evaluate(pattern, stream, evaluator=evaluator).positions)
    pointers = tuple(tuple(one.pointers) for one in tracers)
    return Trace(
        automata, _of_branches([runs for runs, _ in traced]), _of_branches(matches), pointers
    )


def _reported(matches: Sequence[pd.DataFrame], positions: pd.DataFrame) -> list[pd.DataFrame]:
    """Of each branch those matches that are among the positions found."""
    found = []
    for number, its in enumerate(matches):
        names = list(its.columns[2:])
        own = positions[positions["branch"] == number] if len(matches) > 1 else positions
        kept = set(own[names].astype(object).itertuples(index=False, name=None))
        rows = its[names].itertuples(index=False, name=None)
        chosen = its[np.array([row in kept for row in rows], bool)].reset_index(drop=True)
        found.append(chosen.astype(object) if len(matches) > 1 else chosen)
    return found


def _of_branches(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The tables of all branches as one; with OR with their numbers."""
    if len(tables) == 1:
        return tables[0]
    return pd.concat(
        [table.assign(branch=number) for number, table in enumerate(tables)], ignore_index=True
    )
