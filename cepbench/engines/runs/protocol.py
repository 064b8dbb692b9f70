"""The protocol of engines: an engine opens a task as a run, which turns events into matches.

To add one, write a module with a class of runs and an :class:`Evaluator` that declares its
capabilities, and add it to the tuple in :mod:`cepbench.engines.detection.registry`. User-defined ones are
registered by :func:`cepbench.plan_evaluator` instead. A complete example::

    class CountingRun:
        def __init__(self, task):
            self._type = task.pattern.positive[0].type
            self._count = 0

        def push(self, batch):
            codes = [code for code, name in enumerate(batch.type_names) if name == self._type]
            found = int(np.isin(batch.type_codes, codes).sum())
            self._count += found
            return found

        def finish(self):
            return 0

        def metrics(self):
            return Metrics(details={"counted": self._count})

    COUNTING = Evaluator(
        "counting", CountingRun, without_plan=True, outputs=("count",), constructs={"SEQ"}
    )

The front end, :func:`cepbench.evaluate` and :class:`cepbench.Detector`, rejects tasks that need
undeclared capabilities, checks plans, options and batches, measures time, and converts matches to
the requested output. A run sees only its task and the events.

Model: PostBOUND's stages, each replaceable and declaring what it supports.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Protocol

import pandas as pd

from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.result import Metrics
from cepbench.patterns.model import STRATEGIES, Pattern, Returned
from cepbench.planning.plans.kinds import plan_to_json
from cepbench.planning.plans.model import AnyPlan, Plan
from cepbench.planning.workloads.model import queries_to_json
from cepbench.streams.arrival import ArrivalClock
from cepbench.streams.event_stream import EventStream

#: Selection strategies by which a match is known from its events and those between them.
JOIN_STRATEGIES = tuple(name for name in STRATEGIES if name != "next")

#: Constructs of patterns: the operators, nesting of SEQ and AND, and items of a concept, which bind
#: events of the types below it.
CONSTRUCTS = ("SEQ", "AND", "OR", "NOT", "KL", "GROUP", "nesting", "concept")

#: Those that a user-defined evaluator supports if it declares none: all that do not depend on the
#: stream's concept hierarchy.
WITHOUT_CONCEPTS = CONSTRUCTS[:-1]


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """What is asked of a run besides pattern and plan, as given; see :class:`cepbench.Detector`.

    Each public function makes one of its arguments, which is handed down to
    :func:`cepbench.engines.detection.tasks.task_for`.
    """

    evaluator: str | Evaluator | None
    options: Mapping[str, Any] | None
    output: str
    #: How many partial matches may be stored; a run that exceeds it raises
    #: :class:`~cepbench.errors.PartialMatchLimitError`.
    partial_match_limit: int
    latency: bool = False  #: whether ``metrics().latency`` is requested
    node_times: bool = False  #: whether to measure the time spent in each node
    position: int = 0  #: of the first event to be pushed; positions of matches count from there

    def packed(self) -> dict[str, Any]:
        """The arguments, JSON-serializable."""
        chosen = self.evaluator
        return {
            **{its.name: getattr(self, its.name) for its in fields(Arguments)},
            "evaluator": chosen.name if isinstance(chosen, Evaluator) else chosen,
            "options": dict(self.options or {}),
        }

    @staticmethod
    def unpacked(packed: Mapping[str, Any]) -> Arguments:
        """The inverse of :meth:`packed`; further entries are ignored."""
        return Arguments(**{its.name: packed[its.name] for its in fields(Arguments)})


@dataclass(frozen=True, kw_only=True)
class Task(Arguments):
    """The input of a run: checked, and declared as supported by its evaluator.

    The output is ``matches``, ``count`` or ``compressed``; ``arrow``, too, before it is that of a run.
    If latencies are requested, the events of each timestamp must be processed before the next ones,
    as on a live stream.
    """

    evaluator: Evaluator
    options: Mapping[str, Any]  #: a value for each option that the evaluator declares
    pattern: Pattern
    #: Over the pattern's variables, with a part for each branch of an OR; None for an evaluator that
    #: runs without a plan.
    plan: AnyPlan | None
    whole: bool = False  #: whether the first batch is the whole stream: no later one needs state
    #: The columns of RETURN, if nothing else is wanted and the order of matches does not matter. A
    #: run may then return them as values, or those of a whole stream as a graph.
    values: tuple[Returned, ...] = ()
    clock: ArrivalClock | None = None  #: under ORDER BY arrival that of the whole stream, if known

    def packed(self) -> dict[str, Any]:
        """The task on a live stream, JSON-serializable; see :func:`cepbench.engines.detection.tasks.unpacked`."""
        return {
            **queries_to_json(self.pattern),
            "plan": self.plan and plan_to_json(self.plan),
            **super().packed(),
        }


#: Result of a run for a batch: ``Found``; a DataFrame as returned by user-defined functions, see
#: :func:`cepbench.plan_evaluator`; or the number of matches, if they are only counted.
Given = Found | pd.DataFrame | int


class Run(Protocol):
    """The evaluation of one task.

    Besides these methods a run has those of what its evaluator declares:

    - ``snapshots``: ``snapshot()`` gives the state as arrays of numbers or text (no objects), and
      ``restore(arrays)``, of a run of the same task at the same ``position``, resumes from it, or raises
      :class:`~cepbench.errors.SnapshotError`.
    - ``adopts``: ``adopt(old)`` takes over the state of a run of the same evaluator, for the same task but
      for the plan. It is called before the first event, of which ``position`` is that of the next event;
      ``old`` is not used again. If it returns False, the run is not used, and its successor is pushed the
      events of the last windows.
    - ``together``: ``leave()`` drops what only this run needs of the shared state; it is not used again.
    - ``node_times``: ``node_table()`` gives the current metrics by node of the plan.
    """

    def push(self, batch: EventStream) -> Given:
        """Process the next events, at least one, and return the matches that they complete."""
        ...

    def finish(self) -> Given:
        """End the stream and return the matches that waited for its end; the last call."""
        ...

    def metrics(self) -> Metrics:
        """Metrics of the run so far; the front end adds seconds, events and matches."""
        ...


@dataclass(frozen=True)
class Option:
    """An option of an evaluator."""

    default: Any  #: a number, a text, True, False or None, as tables of results store it in JSON
    #: (value, name, error) → the value to use, or raises ``error``, like the functions of
    #: :mod:`cepbench.arguments`; for example ``partial(whole, least=1)``.
    check: Callable[..., Any]
    description: str = ""


@dataclass(frozen=True)
class Evaluator:
    """An engine: its name, the constructor of its runs, and its declared capabilities."""

    name: str
    #: May raise :class:`~cepbench.errors.UnsupportedPatternError` or
    #: :class:`~cepbench.errors.EvaluationError` for tasks that the declarations do not exclude.
    open: Callable[[Task], Run]
    #: Kinds of plans of which it supports all; the default evaluator of a kind is the first one
    #: registered for it.
    kinds: Collection[str] = ()
    some_kinds: Collection[str] = ()  #: kinds of plans of which it supports some
    #: Raises :class:`~cepbench.errors.EvaluationError` for an unsupported plan of a single branch.
    check_plan: Callable[[Plan], object] | None = None
    without_plan: bool = False  #: whether it runs without a plan
    constructs: Collection[str] = CONSTRUCTS
    #: Further constructs of patterns of which it only counts the matches, and not of all.
    counted: Collection[str] = ()
    strategies: Collection[str] = JOIN_STRATEGIES  #: those of patterns that it supports
    #: ``matches``, ``count`` or ``compressed``: matches as a graph, ``Found.graphs``; a run may list
    #: those of a SEQ instead, of which the front end makes a graph.
    outputs: Collection[str] = ("matches", "count")
    options: Mapping[str, Option] = field(default_factory=dict)
    batches: bool = True  #: whether a stream may be pushed in several batches
    latency: bool = False  #: whether it measures latencies
    #: Whether it measures rows and times by node of its plan, or passes of the edges of its automaton.
    node_times: bool = False
    snapshots: bool = False  #: whether its state can be saved
    #: Whether its runs give the matches of the pattern's OUTPUT; of other runs, which find all
    #: matches, the front end selects them.
    selects_output: bool = False
    #: Whether its runs read the pattern's OUTPUT to leave out some of the other matches; the front
    #: end selects among the rest.
    prunes_output: bool = False
    adopts: bool = False  #: whether a run can take over the state of a run with another plan
    #: Whether its runs read the pattern's ORDER BY; others are given a pattern in the order of time,
    #: with a window in ``units``, and events with times by which it has the same matches.
    arrival: bool = False
    #: () → a function that opens tasks as ``open`` does, whose runs share state. All are opened
    #: before the first batch; each batch is pushed to all of them, in one order, before the next.
    together: Callable[[], Callable[[Task], Run]] | None = None
    source: str = ""  #: in the literature
    implementation: Callable[..., Any] | None = (
        None  #: the function or class that a user registered
    )

    @property
    def function(self) -> Callable[..., Any]:
        """The function or class that a user registered, or ``open``."""
        return self.implementation or self.open

    @property
    def qualified_name(self) -> str:
        """Module and name of :attr:`function`."""
        function = self.function
        while isinstance(function, partial):
            function = function.func
        named = function if hasattr(function, "__qualname__") else type(function)
        return f"{named.__module__}.{named.__qualname__}"

    @property
    def is_builtin(self) -> bool:
        """Whether it belongs to cepbench."""
        return self.qualified_name.startswith("cepbench.engines.")
