"""The runs of an automaton step by step, as the engines of [agrawal2008]_ make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import choice
from cepbench.diagram import Box, Diagram, Line, Text, framed
from cepbench.engines.automata.compilation import automaton
from cepbench.engines.automata.model import Automaton
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.sase.run import prunes
from cepbench.errors import EvaluationError
from cepbench.markup import shortened
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.presentation.explainer.tracer import Pointer, Tracer, dewey
from cepbench.streams import fit
from cepbench.streams.event_stream import EventStream
from cepbench.streams.given import Frame, events_from

#: The engines of automata whose runs can be traced.
TRACED = ("sase-basic", "sase", "sase-backtrack")

_COLUMN, _ROW, _WIDE = 170.0, 46.0, 54.0
_LONGEST = 12  # letters of a stack's name that are shown


@dataclass(frozen=True, repr=False)
class Trace:
    """The steps of all runs on a stream, see :func:`trace`.

    With OR, tables have a column ``branch``, and the moves of a branch come together.
    """

    #: One per branch.
    automata: tuple[Automaton, ...]
    #: A row for each step of a run, in the order in which they are made: ``event`` (position), ``move``,
    #: and the computation state after it: ``version``, ``state``, ``last`` (position of the last event
    #: selected), ``start`` (timestamp of the first), and a column for each of V. Moves are ``begin``,
    #: ``take``, ``ignore``, ``proceed``; ``fail`` where no formula holds; ``end`` where a match that OUTPUT
    #: reports ends the runs of its partition; of merged runs ``merge``, where one with the versions of both
    #: goes on, with the youngest start; of backtracking ``backtrack``, where a postponed run reads an event
    #: again.
    runs: pd.DataFrame
    #: The events of each accepting run, read from the buffer along compatible pointers: ``version``,
    #: ``event`` (the last one), and the positions of each variable, without those that NOT or OUTPUT leave
    #: out.
    matches: pd.DataFrame
    _pointers: tuple[tuple[Pointer, ...], ...]

    def pointers(self, position: int) -> pd.DataFrame:
        """The shared buffer after an event: a row for each pointer.

        ``stack`` and ``event`` that it is of, ``previous_stack`` and ``previous`` that it points to (``""`` and
        -1 for the first event of a run), and its ``version``.
        """
        return _of_branches(
            [self._stored(number, position) for number in range(len(self.automata))]
        )

    def _stored(self, branch: int, position: int) -> pd.DataFrame:
        names = [state.name for state in self.automata[branch].states]
        rows = []
        for pointer in self._pointers[branch]:
            if pointer.position <= position:
                stack, before = pointer.previous or (None, -1)
                previous = "" if stack is None else names[stack]
                version = dewey(pointer.version)
                rows.append((names[pointer.stack], pointer.position, previous, before, version))
        columns = ["stack", "event", "previous_stack", "previous", "version"]
        return pd.DataFrame(rows, columns=columns)

    def draw(self, position: int, branch: int = 0) -> str:
        """The shared buffer after an event as SVG, in the style of [agrawal2008]_, Figure 4d."""
        stacks = [state.name for state in self.automata[branch].states[:-1]]
        return str(_buffer_diagram(stacks, self._stored(branch, position).to_dict("records")))

    def __repr__(self) -> str:
        return f"Trace({len(self.runs)} steps, {len(self.matches)} matches)"


def trace(
    pattern: Pattern | Automaton | str,
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
    pattern : Pattern, Automaton or str
        An automaton may be compiled without steps of :func:`cepbench.automaton`.
    stream, type, time, missing_types
        As in :func:`cepbench.evaluate`.
    evaluator : {"sase-basic", "sase", "sase-backtrack"}
        The engine whose moves are shown: all runs read an event before the next one; the same with
        equivalent runs merged; or one run at a time, with events read again.

    Raises
    ------
    PatternError, StreamError
        If pattern or stream is invalid, or they do not fit each other.
    UnsupportedPatternError
        If it cannot be compiled, see :func:`cepbench.automaton`.
    EvaluationError
        If the evaluator is none of these, or ``sase-backtrack`` for an automaton compiled with
        ``peek=False``, or there are more than
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
    compiled = pattern if isinstance(pattern, Automaton) else None
    pattern = pattern_from(pattern if compiled is None else compiled.pattern)
    pattern, stream = fit.under_one_hierarchy(pattern, events_from(stream, type, time))
    name = evaluator_for(evaluator).name
    evaluator = choice(name, "the evaluator of a trace", TRACED, EvaluationError)
    options = (
        {} if compiled is None else {"push_window": compiled.push_window, "peek": compiled.peek}
    )
    if evaluator == "sase-backtrack" and not options.get("peek", True):
        raise EvaluationError(
            "sase-backtrack leaves a loop only on an event that begins the next item; trace the "
            "automaton compiled with peek=False with sase-basic or sase"
        )
    with fit.reporting_missing_types(missing_types):
        fit.check_types(pattern, stream)
        fit.check_fit(pattern, stream)
        parts = automaton(pattern, **options).parts
        automata = tuple(part for part in parts if isinstance(part, Automaton))
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


def _buffer_diagram(stacks: Sequence[str], pointers: Sequence[dict[Any, Any]]) -> Diagram:
    """Stacks side by side in the order of states, their events by position, and pointers with versions."""
    rows = {event: k for k, event in enumerate(sorted({p["event"] for p in pointers}))}
    heads = [
        Box(
            _COLUMN * number, -_ROW, 0.0, 0.0, "",
            (Text(_COLUMN * number, -_ROW, shortened(name, _LONGEST), is_bold=True),), name,
        )
        for number, name in enumerate(stacks)
    ]  # fmt: skip
    boxes = {
        (p["stack"], p["event"]): framed(
            _COLUMN * stacks.index(p["stack"]), _ROW * rows[p["event"]], str(p["event"]), _WIDE
        )
        for p in pointers
    }
    lines = []
    for p in pointers:
        before = boxes.get((p["previous_stack"], p["previous"]))
        lines.append(_pointer(boxes[p["stack"], p["event"]], before, p["version"]))
    return Diagram("shared versioned buffer", [*heads, *boxes.values()], lines)


def _pointer(here: Box, there: Box | None, version: str) -> Line:
    """The line of a pointer, of no length if it points to no event, and its version."""
    bend = "L"
    if there is None:
        ends = [here.at(-1, 0)] * 2
        label = Text(ends[0][0] - 6, here.y + 4, version, "end")
    elif here.x != there.x:
        (x, y), (to_x, to_y) = ends = [here.at(-1, 0), there.at(1, 0)]
        # Nearer to the earlier event: several pointers may leave the later one.
        label = Text((2 * to_x + x) / 3, (2 * to_y + y) / 3 - 4, version)
    elif here.y - there.y <= _ROW:
        ends = [here.at(0, -1), there.at(0, 1)]
        label = Text(here.x + 6, (here.y + there.y) / 2 + 4, version, "start")
    else:
        # Around the events between.
        (x, y), (_, to_y) = here.at(-1, 0), there.at(-1, 0)
        beside, middle = x - 18 - 6 * (y - to_y) / _ROW, (y + to_y) / 2
        ends, bend = [(x, y), (beside, middle), (x, to_y)], "Q"
        label = Text((x + beside) / 2 - 4, middle + 4, version, "end")
    return Line(ends, bend, texts=(label,), look={"stroke_opacity": 0.5})
