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
from tqdm import tqdm

from cepbench.engines.aggregation import counting, greta, shared, two_step
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.hierarchical_stacks import engine as hierarchical_stacks
from cepbench.engines.instances import engine as instances
from cepbench.engines.joins import engine as joins
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
        with tqdm(total=len(running), desc="compiling kernels", unit=" parts") as bar:
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
    plan(many_sets, Statistics(cardinalities={"a": 1.0, "b": 2e3, "c": 3e3}), "DP-B")


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
        pattern = parse(f"PATTERN SEQ(KL(A a), KL(B b), C c) WHERE sum(a.x) >= c.x {end}")
        for evaluator in ("sase", "sase-basic", "sase-backtrack"):
            with suppress(UnsupportedPatternError, UnsupportedTaskError):
                result = evaluate(pattern, stream, evaluator=evaluator, output=output)
                if output == "compressed":
                    result.compressed.last_events()


def _with_digits(task: BranchTask) -> CountingEngine:
    """An engine that counts as if the numbers had become large."""
    engine = CountingEngine(task)
    engine.widen()
    return engine


#: What is compiled together, the longest first.
_PARTS: dict[str, Callable[[], None]] = {
    "joins": joins.warm_up,
    "plan generators": _plan_generators,
    "sase": partial(automata.warm_up, SaseEngine),
    "zstream": zstream.warm_up,
    "shared counts": shared.warm_up,
    "sase-basic": partial(automata.warm_up, BasicEngine),
    "sase-backtrack": partial(automata.warm_up, BacktrackEngine),
    "counting": partial(automata.warm_up, CountingEngine),
    "counting of large numbers": partial(automata.warm_up, _with_digits),
    "hierarchical-stacks": partial(warm_up_sequence, hierarchical_stacks.StackEngine),
    "instances": instances.warm_up,
    "greta": greta.warm_up,
    "order-statistics": order_statistics.warm_up,
    "stack-nfa": partial(warm_up_sequence, stack_nfa.StackEngine),
    "reuse": reuse.warm_up,
    "sequence counts": counting.warm_up,
    "two-step": two_step.warm_up,
    "graphs of matches": _match_graphs,
}


if __name__ == "__main__":
    compile_side_by_side()
