"""The runs of an automaton step by step, one by one, in a shared versioned buffer.

The algorithm of [agrawal2008]_, sections 5.1 and 5.2.1, without pruning. Merged runs (5.2.2) are runs
that are shown as one, for they move alike; backtracking (5.2.3) makes the same moves in another order.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from cepbench.engines.automata.model import Automaton
from cepbench.engines.automata.states import Formula
from cepbench.engines.automata.vector import Column
from cepbench.errors import EvaluationError
from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.model import Aggregate, Attribute
from cepbench.streams.columns import declared_kind
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

#: Limit of the steps of runs, which are rows of a table.
MOST_STEPS = 100_000

Version = tuple[int, ...]


@dataclass(frozen=True)
class Pointer:
    """An event at a position, in the stack of the state that selected it, and the event before it.

    The version is the Dewey number of the run; ``previous`` is the stack and position of the event selected
    before, None for the first event.
    """

    stack: int
    position: int
    version: Version
    previous: tuple[int, int] | None


@dataclass(frozen=True)
class _Run:
    """The computation state of a run: its five fields, the time of the last event, the first one."""

    version: Version
    state: int
    #: The events selected, each with the state that did.
    chosen: tuple[tuple[int, int], ...]
    start: int
    vector: tuple[float, ...]
    time: int
    origin: int


#: Runs that are one, the youngest last.
_Group = tuple[_Run, ...]


class Tracer:
    """The state of the algorithm."""

    def __init__(self, compiled: Automaton, stream: EventStream) -> None:
        self.automaton = compiled
        self.stream = stream
        self.reader = NumericReader()
        names = compiled.pattern.attributes
        self.values = {name: self.reader.read(stream, name, slice(None)) for name in names}
        self.kinds = {name: declared_kind(stream.column(name)) for name in names}
        types = {variable.type for variable in compiled.pattern.variables}
        self.codes = {type: {*stream.codes_of(type).tolist()} for type in types}
        self.starts = 0
        #: State and events of each run, where a loop may be left on any event (``peek=False``).
        self.waiting: set[tuple[object, ...]] = set()
        self.pointers: list[Pointer] = []
        self.accepted: list[_Run] = []
        self.steps: list[tuple[str, _Run, int]] = []
        self.rows: list[dict[str, object]] = []
        strategy = compiled.pattern.strategy
        self.keys = compiled.pattern.equivalences
        if "contiguity" in strategy.name:
            self.keys = () if strategy.attribute is None else (strategy.attribute,)

    def run(self, evaluator: str, *, prunes: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Process all events as an engine does, ``sase-basic``, ``sase`` or ``sase-backtrack``.

        With ``prunes`` a match ends the other runs of its partition, as OUTPUT non_overlap does. Returns the
        runs and the matches of :class:`cepbench.presentation.explainer.trace.Trace`.
        """
        if evaluator == "sase-backtrack":
            self._backtrack(prunes=prunes)
        else:
            self._go(merges=evaluator == "sase", prunes=prunes and evaluator == "sase-basic")
        columns = ["event", "move", "version", "state", "last", "start", *self._labels()]
        matches = pd.DataFrame(
            map(self._match, self.accepted), columns=["version", "event", *self.automaton.names]
        )
        return pd.DataFrame(self.rows, columns=columns), matches

    def _go(self, *, merges: bool, prunes: bool) -> None:
        """Let all runs read an event before the next one; merged ones are a group."""
        groups: list[_Group] = []
        for position in range(len(self.stream)):
            before = len(self.accepted)
            if not self.automaton.peek:
                self.waiting = {(run.state, run.chosen) for group in groups for run in group}
            found = [after for group in groups for after in self._moved(group, position)]
            found += [(run,) for run in self._begin(None, position)]
            self._flush()
            groups = self._merged(found, position) if merges else found
            if prunes and len(self.accepted) > before:
                ended = {self._partition(one.origin) for one in self.accepted[before:]}
                for group in groups:
                    if self._partition(group[0].origin) in ended:
                        self._row("end", group, position)
                groups = [g for g in groups if self._partition(g[0].origin) not in ended]

    def _moved(self, group: _Group, position: int) -> list[_Group]:
        """The groups that a group becomes with an event: its runs move alike until they expire."""
        steps: dict[tuple[int, str], list[_Run]] = {}
        found: dict[tuple[int, int], list[_Run]] = {}
        for run in group:
            for after in self._step(run, position):
                found.setdefault((len(self.steps), after.state), []).append(after)
            for number, (move, its, _) in enumerate(self.steps):
                steps.setdefault((number, move), []).append(its)
            self.steps = []
        for (_, move), runs in steps.items():
            self._row(move, tuple(runs), position)
        return [tuple(runs) for runs in found.values()]

    def _merged(self, groups: list[_Group], position: int) -> list[_Group]:
        """The groups with equivalent ones as one; those of a timestamp not past with equal ones."""
        times = self.stream.timestamps
        tied = position + 1 < len(times) and times[position + 1] == times[position]
        tied = tied and self.automaton.pattern.order == "time"
        masks = np.logical_or.accumulate(self.automaton.masks[::-1])[::-1]
        found: dict[tuple[object, ...], _Group] = {}
        for group in groups:
            run = group[-1]
            masked = [
                float(v).hex() for v, m in zip(run.vector, masks[run.state], strict=True) if m
            ]
            last = run.time if tied else 0
            key = (self._partition(run.origin), run.state, last, *masked)
            if key in found:
                group = tuple(sorted((*found[key], *group), key=lambda its: its.origin))
                self._row("merge", group, position)
            found[key] = group
        return list(found.values())

    def _backtrack(self, *, prunes: bool) -> None:
        """Let one run of a partition read events until it ends; then the postponed ones, last first."""
        positions = range(len(self.stream))
        partitions = dict.fromkeys(map(self._partition, positions))
        for partition in partitions:
            its = [position for position in positions if self._partition(position) == partition]
            begin = 0
            while begin < len(its):
                bound = self._explored(its[begin:], prunes=prunes)
                begin = bisect_left(its, bound)

    def _explored(self, events: Sequence[int], *, prunes: bool) -> int:
        """Run from each event until the match to report is certain; returns where to go on."""
        bound = len(self.stream)
        for start in events:
            if start >= bound:
                break
            # The alternatives of the postponed runs, each with the event to be read again.
            waiting = [(self._begin(None, start), start)]
            while waiting:
                before = len(self.accepted)
                alternatives, position = waiting[-1]
                run = next(alternatives, None) if position < bound else None
                self._flush()
                if prunes and len(self.accepted) > before:
                    bound = position + 1
                if run is None:
                    waiting.pop()
                elif position + 1 < bound:
                    waiting.append((self._step(run, position + 1, again=True), position + 1))
        return bound

    def _partition(self, position: int) -> tuple[object, ...]:
        """The values that all events of a run share; an event that lacks one is alone."""
        values = [self.values[name][position] for name in self.keys]
        return (position,) if any(map(math.isnan, values)) else tuple(values)

    def _step(self, run: _Run, position: int, *, again: bool = False) -> Iterator[_Run]:
        """The runs that a run becomes with an event, which is perhaps read again for each."""
        edges = {edge.kind: edge for edge in self.automaton.edges if edge.state == run.state}
        holds = {kind: self._holds(edge.formula, run, position) for kind, edge in edges.items()}
        leaves = "proceed" in edges and edges["proceed"].target < len(self.automaton.states) - 1
        # A run is defined by its events and its state: there is none twice.
        if leaves and holds["proceed"] and (run.state + 1, run.chosen) not in self.waiting:
            arrived = replace(run, state=run.state + 1, version=(*run.version, 0))
            self._record("proceed", arrived, position)
            yield from (self._begin if self.automaton.peek else self._step)(arrived, position)
            # The next instance of splitting at this state.
            run = replace(run, version=_next(run.version))
            if again and (holds["take"] or holds["ignore"]):
                self._record("backtrack", run, position)
        if holds.get("begin"):
            yield from self._begin(run, position)
            run = replace(run, version=_next(run.version))
        if holds.get("take"):
            taken = replace(run, version=(*run.version, 0)) if holds["ignore"] else run
            run = replace(run, version=_next(run.version))
            yield from self._select(taken, position, "take")
        if again and holds["ignore"] and (holds.get("begin") or holds.get("take")):
            self._record("backtrack", run, position)
        if holds["ignore"]:
            self._record("ignore", run, position)
            yield run
        elif not any(holds[kind] for kind in holds if kind != "proceed" or leaves):
            self._record("fail", run, position)

    def _begin(self, run: _Run | None, position: int) -> Iterator[_Run]:
        """The run after its begin edge, or a new one."""
        if run is None:
            attribute = self.automaton.pattern.strategy.attribute
            if attribute is not None and math.isnan(self.values[attribute][position]):
                return  # it is in no partition
            time = int(self.stream.timestamps[position])
            vector = (math.nan,) * len(self.automaton.vector)
            run = _Run((), 0, (), time, vector, time, position)
            if not self._holds(self.automaton.edge(0, "begin").formula, run, position):
                return
            self.starts += 1
            run = replace(run, version=(self.starts,))
        yield from self._select(run, position, "begin")

    def _select(self, run: _Run, position: int, kind: str) -> Iterator[_Run]:
        """The run with the event in the buffer; it accepts if it proceeds to F."""
        previous = run.chosen[-1] if run.chosen else None
        self.pointers.append(Pointer(run.state, position, run.version, previous))
        target = self.automaton.edge(run.state, kind).target
        run = replace(
            run,
            chosen=(*run.chosen, (run.state, position)),
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
            self.accepted.append(run)
            return
        state = self.automaton.states[target]
        if state.kind == "loop":
            proceed = self.automaton.edge(target, "proceed")
            if proceed.target == final and self._holds(proceed.formula, accepting, position):
                self.accepted.append(run)
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
        time, code = int(self.stream.timestamps[position]), self.stream.type_codes[position]
        window = formula.window
        if (
            formula.never
            or (formula.type is not None and code not in self.codes[formula.type])
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
        self.steps.append((move, run, position))

    def _flush(self) -> None:
        """Write the steps recorded, of runs by themselves."""
        for move, run, position in self.steps:
            self._row(move, (run,), position)
        self.steps = []

    def _row(self, move: str, group: _Group, position: int) -> None:
        """Write a step of merged runs, with the computation state of the youngest."""
        run = group[-1]
        self.rows.append(
            {
                "event": position,
                "move": move,
                "version": " + ".join(dewey(its.version) for its in group),
                "state": self.automaton.states[run.state].name,
                "last": run.chosen[-1][1],
                "start": run.start,
                **dict(zip(self._labels(), self._shown(run), strict=True)),
            }
        )
        if len(self.rows) > MOST_STEPS:
            raise EvaluationError(
                f"event {position}: more than {MOST_STEPS:,} steps of runs, too many to look at; "
                "trace a shorter stream, or count them by cep.evaluate"
            )

    def _shown(self, run: _Run) -> Iterator[float | str | bool]:
        """V, with texts and booleans for their codes."""
        texts = self.reader.texts
        for column, value in zip(self.automaton.vector, run.vector, strict=True):
            kind = None if math.isnan(value) else self.kinds.get(column.attribute or "")
            yield (
                texts[int(value)] if kind == "text" else value == 1 if kind == "boolean" else value
            )

    def _match(self, accepted: _Run) -> dict[str, object]:
        """The events of an accepting run, along the pointers that are compatible with its version."""
        version, place = accepted.version, accepted.chosen[-1]
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
        return {"version": dewey(version), "event": place[1], **bound}


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


def dewey(version: Version) -> str:
    return ".".join(map(str, version))
