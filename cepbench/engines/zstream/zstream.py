"""ZStream: batches of events joined round by round along a tree plan [mei2009]_, section 4.

Events gather in leaf buffers during idle rounds. Once an event has come that may be the last of a
match, an assembly round joins the buffers from the leaves to the root, and discards what begins
before the earliest allowed timestamp (EAT). SEQ and AND are joins (Algorithms 1 and 3); a negation
that is tied to one neighbour is a range of rows of the other one (NSEQ, Algorithm 2), any other one
a filter (NEG); to count, a disjunction of single leaves is one buffer, merged in the order of time, and
other branches of an OR run side by side; equalities are evaluated by hashing (section 5.2.2).

Differs from the paper: the window is checked in every join, not only once a round. The EAT is that of
the final events not yet assembled, and every class that may come last is final. An NSEQ record has
the times of its positive event, of which there is one record, and the negating event is only a
bound on rows of the other neighbour. KSEQ drops the records of its node that have no group with all
conditions on it (section 4.4.5, whose Algorithm 4 our text has lost); no record carries groups, which are
formed again for each match. A disjunction inside a tree (section 4.4.4) is a plan for each branch where
its sides are sub-trees or have other conditions, and where matches are listed. Records are row
numbers; conditions are tested once for each pair of events; the root's records and those below it are
counted without being made, and matches are then listed at once, as positions; if they are only
counted and all conditions mention one variable, no record is made at all. A round that would make
many records is cut in two.

With ``as_given`` a plan is evaluated operator by operator, as in the paper: no star is counted, a filter
is asked for every record of its join, each condition is tested on every combination of records that is in
order and within the window, all records are made, the matches' too, and what Formula 1 (section 5.1) adds
up is counted for each operator. An NSEQ record still is a bound of rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd

from cepbench.arguments import flag, whole
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.plan_runs.node_table import WORK
from cepbench.engines.plan_runs.run import PlanRun
from cepbench.engines.runs.protocol import Evaluator, Option, Run, Task
from cepbench.engines.runs.result import Metrics
from cepbench.engines.runs.work import Work
from cepbench.engines.zstream.disjunctions import groups_of
from cepbench.engines.zstream.engine import ZStreamEngine
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream

#: Patterns, plans and whether matches are listed: together they run all kernels.
_WARM_UP = (
    ("SEQ(A a, B b, C c) WHERE a.x > b.x AND b.x < c.x", ("a", ("b", "c")), False),
    ("SEQ(A a, B b, C c) WHERE a.x < b.x AND c.x > 1", (("a", "b"), "c"), True),
    ("SEQ(A a, B b, C c, D d) WHERE a.x < c.x AND a.x < d.x", (("a", "b"), ("c", "d")), True),
    ("SEQ(A a, B b, C c, D d) WHERE b.x < c.x", (("a", "b"), ("c", "d")), False),
    ("SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND c.x < d.x", (("a", "b"), ("c", "d")), False),
    ("SEQ(A a, NOT(B b), C c) WHERE b.x > c.x", ("a", "c"), True),
    ("SEQ(A a, NOT(B b), C c) WHERE b.x < c.x AND a.x < b.x", ("a", "c"), False),
)


@cache
def warm_up() -> None:
    """Compile the kernels, or load them from the disk cache, so that no timed run does."""
    events = pd.DataFrame({"type": list("ABCD"), "time": range(4), "x": range(4)})
    for text, tree, reports in _WARM_UP:
        # Each its own, since the rows of a stream that is read again are known by type.
        stream = EventStream.from_pandas(events, type="type", time="time")
        pattern = parse(f"PATTERN {text} WITHIN 9 units")
        task = BranchTask.of_one(pattern, tree, reports=reports)
        ZStreamEngine(task, batch_size=9, hashing=False, as_given=False).run(stream, 0, ended=True)


class ZStreamRun(PlanRun):
    """A run that counts its rounds, and the work of its operators if the plan runs as given."""

    def __init__(self, task: Task) -> None:
        assert task.plan is not None
        warm_up()
        engines: list[ZStreamEngine] = []

        def opened(branch: BranchTask) -> ZStreamEngine:
            engines.append(ZStreamEngine(branch, **task.options))
            return engines[-1]

        branches, parts = task.pattern.branches(), task.plan.parts
        if task.options["as_given"] and any(branch.groups for branch in branches):
            raise UnsupportedPatternError(
                "as_given=True evaluates SEQ, AND, OR and NOT, but not the groups of a pattern; leave out "
                "the option, whose plan then makes fewer records"
            )
        # Times are those of the nodes of each branch's plan; to tell the listed matches of branches apart
        # would take longer than it saves.
        counts = task.output == "count" and not task.node_times
        groups = groups_of(branches, parts) if counts else None
        super().__init__(task, [part.tree for part in parts], opened, groups)
        self._opened = engines

    def adopt(self, old: Run) -> bool:
        """See :class:`cepbench.engines.runs.protocol.Run`."""
        assert isinstance(old, ZStreamRun)
        self._first, self._last, self._union = old._first, old._last, old._union
        # An engine of groups has a state of its own.
        return (
            not any(branch.groups for branch in self._task.pattern.branches())
            and self._reader.adopt(old._reader)
            and self._groups == old._groups
            and all(map(ZStreamEngine.adopt, self._opened, old._opened))
        )

    def metrics(self) -> Metrics:
        """Metrics of the run so far, with rounds and work of all branches."""
        idle, assembly = np.sum([engine.rounds for engine in self._opened], axis=0).tolist()
        details = {"idle_rounds": idle, "assembly_rounds": assembly}
        work = Work()
        if self._task.options["as_given"]:
            did = np.sum([engine.work.sum(axis=0) for engine in self._opened], axis=0)
            work = Work(dict(zip(WORK, did.tolist(), strict=True)))
        return replace(super().metrics(), details=details, work=work)


ZSTREAM = Evaluator(
    "zstream",
    ZStreamRun,
    kinds=("tree", "order"),
    constructs=("SEQ", "AND", "OR", "NOT", "GROUP", "nesting", "concept"),
    strategies=("any",),
    options={
        "batch_size": Option(65_536, partial(whole, least=1), "events in a round"),
        "hashing": Option(True, flag, "whether equalities are evaluated by hashing"),
        "as_given": Option(False, flag, "whether all operators of the plan make their records"),
    },
    latency=True,
    node_times=True,
    snapshots=True,
    adopts=True,
    source="[mei2009]_, section 4",
)
