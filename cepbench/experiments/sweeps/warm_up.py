"""All kernels compiled beforehand: nothing that is run later has to wait for one."""

from __future__ import annotations

import io
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stderr, suppress
from functools import partial

import numpy as np
import pandas as pd

from cepbench.engines.adaptation.averages import Averages
from cepbench.engines.aggregation import counting, greta, shared, two_step
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.hierarchical_stacks import engine as hierarchical_stacks
from cepbench.engines.instances import engine as instances
from cepbench.engines.joins import engine as joins
from cepbench.engines.joins import neighbours
from cepbench.engines.plan_runs.engine import BranchTask, warm_up_sequence
from cepbench.engines.reuse import reuse
from cepbench.engines.sase import run as automata
from cepbench.engines.sase.counting import CountingEngine
from cepbench.engines.sase.engine import SaseEngine
from cepbench.engines.sase.sase_backtrack import BacktrackEngine
from cepbench.engines.sase.sase_basic import BasicEngine
from cepbench.engines.sequence_counts import order_statistics
from cepbench.engines.stack_nfa import engine as stack_nfa
from cepbench.engines.zstream import zstream
from cepbench.errors import UnsupportedPatternError, UnsupportedTaskError
from cepbench.experiments.sweeps.measure import load_kernels
from cepbench.patterns.parse import parse
from cepbench.planning.costs.reuse import ReuseProblem
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.planners.sharing.chase import chase
from cepbench.planning.statistics.model import Statistics
from cepbench.progress import progress_bar
from cepbench.streams.event_stream import EventStream

#: Processes that compile at once: each has the compiler in memory, and the longest part takes a quarter of all.
_MOST = 4


def compile_kernels() -> None:
    """Compile what evaluators, aggregation methods and plan generators need, or load it from the disk cache.

    A sweep does so before it starts its workers; ``make env`` in several processes.
    """
    for part in _PARTS.values():
        part()


def compile_side_by_side() -> None:
    """Compile the same in a few processes, at most one a core, with a line of progress."""
    # Each part is compiled in a process of its own, since LLVM does not give memory back: forked from one that has
    # imported what all need, which takes longer than most parts.
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if forks else "spawn")
    if forks:
        context.set_forkserver_preload(
            [name for name in sys.modules if name.startswith("cepbench.")]
        )
    with ProcessPoolExecutor(
        min(_MOST, os.cpu_count() or 1), context, max_tasks_per_child=1
    ) as pool:
        running = [pool.submit(_compile_part, name) for name in _PARTS]
        with progress_bar(total=len(running), desc="compiling kernels", unit=" parts") as bar:
            for ended in as_completed(running):
                bar.set_postfix_str(ended.result())
                bar.update()


def _compile_part(name: str) -> str:
    with redirect_stderr(io.StringIO()):  # the line of progress says what is compiled
        _PARTS[name]()
    return name


def _plan_generators() -> None:
    for generator in PLAN_GENERATORS.values():
        if generator.is_builtin:
            load_kernels(generator)
    chase(ReuseProblem({"q": 1.0}, ()), np.random.default_rng(0))
    # Numbers that lie too far apart for floats are added up by a kernel of their own.
    many_sets = parse("PATTERN AND(A a, KL(B b), KL(C c)) WITHIN 1 units")
    numbers = Statistics(cardinalities={"a": 1.0, "b": 2e3, "c": 3e3})
    plan(many_sets, numbers, "DP-B")
    negated = parse("PATTERN SEQ(A a, NOT(B b), C c) WITHIN 1 units")
    plan(negated, numbers, "ZSTREAM", cost="zstream")


def _match_graphs() -> None:
    """Graphs of matches and what is read of them, by each engine that makes some."""
    # Enough runs at once that sase looks for those that have expired.
    events = pd.DataFrame({"type": list("AAAAABC") * 6, "time": range(42), "x": 1.0})
    stream = EventStream.from_pandas(events, type="type", time="time")
    for end, output in (
        ("WITHIN 9 units", "compressed"),
        ("OUTPUT non_overlap WITHIN 9 units", "matches"),
        ("WITHIN 9 units", "matches"),
    ):
        pattern = parse(
            f"PATTERN SEQ(KL(A a), KL(B b), C c) WHERE sum(a.x) >= c.x {end} RETURN sum(a.x) AS s"
        )
        for evaluator in ("sase", "sase-basic", "sase-backtrack"):
            with suppress(UnsupportedPatternError, UnsupportedTaskError):
                result = evaluate(pattern, stream, evaluator=evaluator, output=output)
                if output == "compressed":
                    result.compressed.last_events()
                    result.compressed.first_events()
                    result.compressed.lengths()
                    result.compressed.sample(1)
                    result.compressed.returned(stream)


def _sase() -> None:
    """Merged runs; and counts of so many matches that there has to be room for more and larger ones."""
    automata.warm_up(SaseEngine)
    events = pd.DataFrame({"type": "A", "time": range(400), "x": 1.0})
    stream = EventStream.from_pandas(events, type="type", time="time")
    pattern = parse("PATTERN SEQ(KL(A a), A b) WHERE sum(a.x) >= b.x WITHIN 90 units")
    evaluate(pattern, stream, evaluator="sase", output="count")


def _counts() -> None:
    """Counts without runs, of numbers of each kind, which share much of their code."""
    automata.warm_up(CountingEngine)
    automata.warm_up(_with_digits)
    counting.warm_up()


def _row_patterns() -> None:
    """Row patterns, and what their measures read of the rows."""
    events = pd.DataFrame({"type": "A", "time": range(3), "x": [1.0, 2.0, 3.0]})
    pattern = parse(
        "SELECT * FROM events MATCH_RECOGNIZE (ORDER BY time MEASURES LAST(B.x) AS x, SUM(B.x) AS total "
        "PATTERN (A B+) DEFINE B AS B.x > PREV(B.x))",
        dialect="match_recognize",
    )
    evaluate(pattern, events, type="type", time="time")


def _averages() -> None:
    """The statistics that adaptive runs follow."""
    events = pd.DataFrame({"type": list("AB"), "time": range(2), "x": 1.0})
    stream = EventStream.from_pandas(events, type="type", time="time")
    pattern = parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9 units")
    Averages(pattern, 0, len(stream)).of(stream).statistics  # noqa: B018


def _with_digits(task: BranchTask) -> CountingEngine:
    """An engine that counts as if the numbers had become large."""
    engine = CountingEngine(task)
    engine.widen()
    return engine


#: What is compiled together, the longest first; graphs of matches after the engines that make them.
_PARTS: dict[str, Callable[[], None]] = {
    "joins": joins.warm_up,
    "joins of neighbours": neighbours.warm_up,
    "sase": _sase,
    "counts": _counts,
    "plan generators": _plan_generators,
    "order-statistics": order_statistics.warm_up,
    "order-statistics, extremes": partial(order_statistics.warm_up, is_maximum=True),
    "shared counts": shared.warm_up,
    "instances": instances.warm_up,
    "zstream": zstream.warm_up,
    "greta": greta.warm_up,
    "reuse": reuse.warm_up,
    "sase-basic": partial(automata.warm_up, BasicEngine),
    "sase-backtrack": partial(automata.warm_up, BacktrackEngine),
    "hierarchical-stacks": partial(warm_up_sequence, hierarchical_stacks.StackEngine),
    "graphs of matches": _match_graphs,
    "stack-nfa": partial(warm_up_sequence, stack_nfa.StackEngine),
    "row patterns": _row_patterns,
    "averages": _averages,
    "two-step": two_step.warm_up,
}


if __name__ == "__main__":
    compile_side_by_side()
