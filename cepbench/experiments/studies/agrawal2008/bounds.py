"""Runs of a window by the number of its events: Corollary 4.3 of [agrawal2008]_.

The bounds are on the worst case, so every event of the streams may take every edge. Nothing is measured
by a clock, and nothing is drawn.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.automata.model import Automaton
from cepbench.engines.detection.evaluate import evaluate
from cepbench.experiments.studies.agrawal2008.runs import ENGINES
from cepbench.experiments.studies.runs import figure_runs
from cepbench.streams.event_stream import EventStream

#: Items of a pattern, in words and in the language.
ITEMS = {
    "one loop": "KL(A a), A b, A c",
    "two loops": "KL(A a), KL(A b), A c",
}

#: Events of a window, by strategy.
WINDOWS = {
    "partition_contiguity(x)": (8, 12, 16, 24, 32, 48, 64),
    "next": (8, 12, 16, 24, 32, 48, 64),
    "any": (4, 5, 6, 7, 8, 10, 12),
}


def bound_runs() -> pd.DataFrame:
    """The runs that the events of one window begin, with merging and without.

    A row a pattern, strategy, engine and window of ``size`` events, as
    :func:`cepbench.experiments.studies.runs.figure_runs` has them, the series in words (``one loop, next,
    basic``): ``window_runs``, runs begun by an event or by the split of a run; ``log_runs``, the natural
    logarithm; ``bound``, the power of the window that the automaton allows
    (:meth:`cepbench.engines.automata.model.Automaton.nondeterminism`); ``states``, without F.
    No run has a cost: ``plan_log_cost`` is the logarithm of the window.
    """
    rows = [
        _row(name, strategy, size, evaluator)
        for name in ITEMS
        for strategy, sizes in WINDOWS.items()
        for evaluator in ("sase-basic", "sase")
        for size in sizes
    ]
    return figure_runs(pd.DataFrame(rows), "setting", "series")


def _row(name: str, strategy: str, size: int, evaluator: str) -> dict[str, object]:
    text = f"PATTERN SEQ({ITEMS[name]}) STRATEGY {strategy} WITHIN {size} units"
    compiled = automaton(text)
    assert isinstance(compiled, Automaton)
    events = pd.DataFrame({"type": "A", "time": np.arange(size), "x": 1})
    stream = EventStream.from_pandas(events, type="type", time="time")
    counted = evaluate(text, stream, evaluator=evaluator, output="count").metrics.runs
    assert counted is not None
    runs = counted.runs_started + counted.runs_split
    return {
        "setting": f"{size}",
        "series": f"{name}, {strategy.partition('(')[0].replace('_', ' ')}, {ENGINES[evaluator]}",
        "size": size,
        "repetition": 0,
        "window_runs": runs,
        "log_runs": np.log(runs),
        "bound": compiled.nondeterminism().exponent,
        "states": len(compiled.states) - 1,
        "plan_log_cost": np.log(size),
    }
