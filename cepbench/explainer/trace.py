"""The runs of an automaton step by step, one by one, in a shared versioned buffer.

The algorithm of [agrawal2008]_, sections 5.1 and 5.2.1, without merging and without pruning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from cepbench.automata.compilation import automaton
from cepbench.automata.model import Automaton
from cepbench.automata.states import Formula
from cepbench.automata.vector import Column
from cepbench.errors import EvaluationError, UnsupportedPatternError
from cepbench.explainer.buffer_drawing import buffer_svg
from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Aggregate, Attribute, Pattern
from cepbench.streams.columns import CodedStrings
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_types
from cepbench.streams.given import stream_from
from cepbench.streams.numeric import NumericReader

#: Limit of the steps of runs, which are rows of a table.
MOST_STEPS = 100_000

Version = tuple[int, ...]


@dataclass(frozen=True)
class Pointer:
    """An event in a stack, and the event selected before it.

    Attributes
    ----------
    stack, position : int
        The state that selected the event, and the event.
    version : tuple of int
        The Dewey number of the run.
    previous : tuple of (int, int) or None
        Stack and position of the event before; None for the first event.
    """

    stack: int
    position: int
    version: Version
    previous: tuple[int, int] | None


@dataclass(frozen=True)
class _Run:
    """The computation state of a run: its five fields, and the time of the last event."""

    version: Version
    state: int
    last: tuple[int, int]
    start: int
    vector: tuple[float, ...]
    time: int


@dataclass(frozen=True, repr=False)
class Trace:
    """The steps of all runs on a stream, see :func:`trace`.

    Attributes
    ----------
    automaton : Automaton
    runs : DataFrame
        A row for each step of a run, event by event: ``event`` (position), ``move`` (``begin``,
        ``take``, ``ignore``, ``proceed``, or ``fail`` where no formula holds), and the computation
        state after it: ``version``, ``state``, ``last`` (position of the last event selected),
        ``start`` (timestamp of the first), and a column for each of V.
    matches : DataFrame
        The events of each accepting run, read from the buffer along compatible pointers:
        ``version``, ``event`` (the last one), and the positions of each variable.
    """

    automaton: Automaton
    runs: pd.DataFrame
    matches: pd.DataFrame
    _pointers: tuple[Pointer, ...]

    def pointers(self, position: int) -> pd.DataFrame:
        """The shared buffer after an event: a row for each pointer.

        ``stack`` and ``event`` that it is of, ``previous_stack`` and ``previous`` that it points
        to (``""`` and -1 for the first event of a run), and its ``version``.
        """
        states = self.automaton.states
        rows = [
            {
                "stack": states[pointer.stack].name,
                "event": pointer.position,
                "previous_stack": ""
                if pointer.previous is None
                else states[pointer.previous[0]].name,
                "previous": -1 if pointer.previous is None else pointer.previous[1],
                "version": _dewey(pointer.version),
            }
            for pointer in self._pointers
            if pointer.position <= position
        ]
        columns = ["stack", "event", "previous_stack", "previous", "version"]
        return pd.DataFrame(rows, columns=columns)

    def draw(self, position: int) -> str:
        """The shared buffer after an event as SVG, in the style of [agrawal2008]_, Figure 4d."""
        stacks = [state.name for state in self.automaton.states[:-1]]
        return buffer_svg(stacks, self.pointers(position).to_dict("records"))

    def __repr__(self) -> str:
        return f"Trace({len(self.runs)} steps, {len(self.matches)} matches)"


def trace(pattern: Pattern | str, stream: EventStream) -> Trace:
    """Run an automaton on a short stream and record every step of every run.

    Parameters
    ----------
    pattern : Pattern or str
        Without OR and NOT, and with all matches as output.
    stream : EventStream

    Returns
    -------
    Trace

    Raises
    ------
    PatternError, StreamError
        If pattern or stream is invalid, or they do not fit each other.
    UnsupportedPatternError
        If it cannot be compiled, see :func:`cepbench.automaton`, or has OR, NOT or OUTPUT.
    EvaluationError
        If there are more than :data:`MOST_STEPS` steps.

    Notes
    -----
    Source: [agrawal2008]_, sections 5.1 and 5.2.1.

    Differs from [agrawal2008]_: where a run may both take and ignore an event, the run that takes it
    gets a digit more, and the other one the next number. With the next number for both, as for
    take and proceed, two pointers of one event could be compatible with one run. Nothing is pruned.
    """
    pattern, stream = pattern_from(pattern), stream_from(stream)
    check_types(pattern, stream)
    compiled = automaton(pattern)
    if not isinstance(compiled, Automaton) or pattern.negated or pattern.output != "all":
        raise UnsupportedPatternError(
            "a trace is of one automaton and all its runs; leave out OUTPUT and negated items, and "
            "trace the branches of OR one by one"
        )
    return _Tracer(compiled, stream).trace()


class _Tracer:
    """The state of the algorithm."""

    def __init__(self, compiled: Automaton, stream: EventStream) -> None:
        self.automaton = compiled
        self.stream = stream
        self.reader = NumericReader()
        names = compiled.pattern.attributes
        self.values = {name: self.reader.read(stream, name, slice(None)) for name in names}
        self.texts = {name for name in names if isinstance(stream.column(name), CodedStrings)}
        self.types = np.array(stream.type_names)[stream.type_codes]
        self.starts = 0
        self.pointers: list[Pointer] = []
        self.accepted: list[tuple[Version, tuple[int, int]]] = []
        self.rows: list[dict[str, object]] = []

    def trace(self) -> Trace:
        """Process all events."""
        runs: list[_Run] = []
        for position in range(len(self.stream)):
            runs = [after for run in runs for after in self._step(run, position)]
            runs += self._begin(None, position)
            if len(self.rows) > MOST_STEPS:
                raise EvaluationError(
                    f"event {position}: more than {MOST_STEPS:,} steps of runs, too many to look at; "
                    "trace a shorter stream, or count them by cep.evaluate"
                )
        columns = ["event", "move", "version", "state", "last", "start", *self._labels()]
        matches = pd.DataFrame(
            map(self._match, self.accepted), columns=["version", "event", *self.automaton.names]
        )
        return Trace(
            self.automaton, pd.DataFrame(self.rows, columns=columns), matches, tuple(self.pointers)
        )

    def _step(self, run: _Run, position: int) -> Iterator[_Run]:
        """The runs that a run becomes with an event."""
        edges = {edge.kind: edge for edge in self.automaton.edges if edge.state == run.state}
        holds = {kind: self._holds(edge.formula, run, position) for kind, edge in edges.items()}
        leaves = "proceed" in edges and edges["proceed"].target < len(self.automaton.states) - 1
        if leaves and holds["proceed"]:
            arrived = replace(run, state=edges["proceed"].target, version=(*run.version, 0))
            self._record("proceed", arrived, position)
            yield from self._begin(arrived, position)
            # The next instance of splitting at this state.
            run = replace(run, version=_next(run.version))
        if holds.get("begin"):
            yield from self._begin(run, position)
            run = replace(run, version=_next(run.version))
        if holds.get("take"):
            taken = replace(run, version=(*run.version, 0)) if holds["ignore"] else run
            run = replace(run, version=_next(run.version))
            yield from self._select(taken, position, "take")
        if holds["ignore"]:
            self._record("ignore", run, position)
            yield run
        elif not any(holds[kind] for kind in holds if kind != "proceed" or leaves):
            self._record("fail", run, position)

    def _begin(self, run: _Run | None, position: int) -> Iterator[_Run]:
        """The run after its begin edge, or a new one."""
        if run is None:
            time = int(self.stream.timestamps[position])
            run = _Run((), 0, (-1, -1), time, (math.nan,) * len(self.automaton.vector), time)
            if not self._holds(self.automaton.edge(0, "begin").formula, run, position):
                return
            self.starts += 1
            run = replace(run, version=(self.starts,))
        yield from self._select(run, position, "begin")

    def _select(self, run: _Run, position: int, kind: str) -> Iterator[_Run]:
        """The run with the event in the buffer; it accepts if it proceeds to F."""
        previous = None if run.last[0] < 0 else run.last
        self.pointers.append(Pointer(run.state, position, run.version, previous))
        target = self.automaton.edge(run.state, kind).target
        run = replace(
            run,
            last=(run.state, position),
            vector=self._updated(run, position),
            time=int(self.stream.timestamps[position]),
        )
        final = len(self.automaton.states) - 1
        accepting = replace(run, state=target)
        if target != run.state:
            # Digits are those of the states up to the current one.
            accepting = replace(accepting, version=(*run.version, *([0] * (target != final))))
        self._record(kind, accepting, position)
        if target == final:
            self.accepted.append((run.version, run.last))
            return
        state = self.automaton.states[target]
        if state.kind == "loop":
            proceed = self.automaton.edge(target, "proceed")
            if proceed.target == final and self._holds(proceed.formula, accepting, position):
                self.accepted.append((run.version, run.last))
                self._record("proceed", replace(accepting, state=final), position)
        yield accepting

    def _updated(self, run: _Run, position: int) -> tuple[float, ...]:
        """V after the selection of an event by the state of a run."""
        states = self.automaton.states
        vector = list(run.vector)
        for number, column in enumerate(self.automaton.vector):
            here, there = states[run.state], states[column.state]
            if here.variable != there.variable or (here.kind, there.kind) == ("loop", "begin"):
                continue
            value = (
                1.0 if column.attribute is None else float(self.values[column.attribute][position])
            )
            if here.kind == "loop":
                value = _AGGREGATED[column.operation](vector[number], value)
            vector[number] = value
        return tuple(vector)

    def _holds(self, formula: Formula, run: _Run, position: int) -> bool:
        """Whether an event satisfies a formula."""
        time = int(self.stream.timestamps[position])
        window = formula.window
        if (
            formula.never
            or (formula.type is not None and self.types[position] != formula.type)
            or (formula.ordered is not None and time <= run.time)
            or (window is not None and time - run.start > window.length)
            or (formula.negated is not None and self._holds(formula.negated, run, position))
            or (formula.peek is not None and not self._holds(formula.peek, run, position))
        ):
            return False
        columns = self.automaton.vector
        for name in formula.equivalences:
            # A missing value differs from itself.
            first = run.vector[columns.index(Column(0, name, "value"))]
            if self.values[name][position] != first:
                return False

        def value(term: Attribute | Aggregate) -> np.ndarray:
            if formula.reads_event(term):
                assert isinstance(term, Attribute)
                return np.asarray(self.values[term.name][position])
            found = [run.vector[k] for k in self.automaton.columns_of(formula, term)]
            return np.asarray(found[0] / found[1] if len(found) > 1 else found[0])

        return all(
            bool(clause_holds(clause, value, self.reader.code, value)) for clause in formula.clauses
        )

    def _labels(self) -> list[str]:
        """Names of the columns of V."""
        states = self.automaton.states
        return [
            f"{column.operation} {states[column.state].name}{'.' * bool(column.attribute)}"
            f"{column.attribute or ''}"
            for column in self.automaton.vector
        ]

    def _record(self, move: str, run: _Run, position: int) -> None:
        self.rows.append(
            {
                "event": position,
                "move": move,
                "version": _dewey(run.version),
                "state": self.automaton.states[run.state].name,
                "last": run.last[1],
                "start": run.start,
                **dict(zip(self._labels(), self._shown(run), strict=True)),
            }
        )

    def _shown(self, run: _Run) -> Iterator[float | str]:
        """V, with texts for their codes."""
        texts = self.reader.texts
        for column, value in zip(self.automaton.vector, run.vector, strict=True):
            is_text = column.attribute in self.texts and not math.isnan(value)
            yield texts[int(value)] if is_text else value

    def _match(self, accepted: tuple[Version, tuple[int, int]]) -> dict[str, object]:
        """The events of an accepting run, along the pointers that are compatible with its version."""
        version, place = accepted
        states = self.automaton.states
        found: dict[str, list[int]] = {name: [] for name in self.automaton.names}
        event: tuple[int, int] | None = place
        while event is not None:
            found[states[event[0]].variable or ""].insert(0, event[1])
            (event,) = (
                pointer.previous
                for pointer in self.pointers
                if (pointer.stack, pointer.position) == event
                and is_compatible(version, pointer.version)
            )
        sets = {state.variable for state in states if state.kind == "loop"}
        bound = {name: tuple(its) if name in sets else its[0] for name, its in found.items()}
        return {"version": _dewey(version), "event": place[1], **bound}


_AGGREGATED: Mapping[str, Callable[[float, float], float]] = {
    "value": lambda before, value: value,
    "sum": lambda before, value: before + value,
    "count": lambda before, value: before + value,
    "min": np.minimum,
    "max": np.maximum,
}


def is_compatible(version: Sequence[int], other: Sequence[int]) -> bool:
    """Whether a run may follow a pointer: the pointer's version is that of an ancestor or earlier.

    A prefix of ``version`` equals ``other``, or differs from it in its last digit, which is greater.
    """
    length = len(other)
    return (
        length <= len(version)
        and tuple(version[: length - 1]) == tuple(other[:-1])
        and version[length - 1] >= other[-1]
    )


def _next(version: Version) -> Version:
    return (*version[:-1], version[-1] + 1)


def _dewey(version: Version) -> str:
    return ".".join(map(str, version))
