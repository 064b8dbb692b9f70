"""Plans that stay and plans that follow a stream whose rates and selectivities change.

Source: [mei2009]_, section 6.3, Figure 14.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cepbench.adaptation.detector import AdaptiveDetector
from cepbench.errors import ExperimentError
from cepbench.evaluators.detector import Detector
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.plans.model import TreePlan
from cepbench.streams.event_stream import EventStream
from cepbench.streams.stock_rates import NAMES, StockRates
from cepbench.studies.mei2009.runs import setting_of
from cepbench.sweeps.cells import OK
from cepbench.sweeps.sweep_file import read_sweep

#: The plan that follows by the paper's policy.
ADAPTIVE = "adaptive"

#: The streams of the sweep ``plans`` that are the segments.
STREAMS = ("rates-1-100-100-100", "sel1-1-50", "sel2-1-50")

#: The setting that is all segments together.
WHOLE = "all"


def run_segments(
    pattern: Pattern,
    segments: Mapping[str, EventStream],
    plans: Mapping[str, TreePlan],
    policies: Mapping[str, str],
    *,
    evaluators: Sequence[str],
    batch_size: int,
    repetitions: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Push segments one after the other, each detector in turn, a round at a time.

    Parameters
    ----------
    pattern : Pattern
    segments : mapping of str to EventStream
        Parts of one stream, in its order.
    plans : mapping of str to TreePlan
        Those that stay.
    policies : mapping of str to str
        Names of adaptive runs, of ZSTREAM's plans by their cost, and the policy of each.
    evaluators : sequence of str
    batch_size : int
        Events of a round, and of a push to any detector.
    repetitions : int
        One more is run first, which loads the kernels.

    Returns
    -------
    rounds : DataFrame
        One row a repetition, evaluator, round and plan: ``repetition``, ``evaluator``, ``segment``,
        ``round``, ``generator`` (name of the plan or of the adaptive run), ``events``, ``seconds``.
    switches : DataFrame
        As :attr:`cepbench.AdaptiveDetector.switches`, with ``repetition``, ``evaluator`` and
        ``generator``.

    Raises
    ------
    ExperimentError
        If two of them find different numbers of matches.
    """
    rows, switches = [], []
    for repetition in range(-1, repetitions):
        for evaluator in evaluators:
            detectors: dict[str, Detector] = {
                name: Detector(pattern, plan, evaluator=evaluator, output="count")
                for name, plan in plans.items()
            }
            adaptive = {
                name: AdaptiveDetector(
                    pattern, evaluator=evaluator, output="count", cost="zstream", policy=policy,
                    batch_size=batch_size,
                )
                for name, policy in policies.items()
            }  # fmt: skip
            detectors |= adaptive
            number = 0
            for segment, events in segments.items():
                for batch in events.batches(batch_size):
                    number += 1
                    found = {}
                    for name, detector in detectors.items():
                        began = time.perf_counter()
                        found[name] = detector.push(batch)
                        seconds = time.perf_counter() - began
                        rows.append(
                            (repetition, evaluator, segment, number, name, len(batch), seconds)
                        )
                    if len(set(found.values())) > 1:
                        raise ExperimentError(f"matches differ in round {number}: {found}")
            switches += [
                detector.switches.assign(repetition=repetition, evaluator=evaluator, generator=name)
                for name, detector in adaptive.items()
            ]
    columns = ["repetition", "evaluator", "segment", "round", "generator", "events", "seconds"]
    rounds = pd.DataFrame(rows, columns=columns)
    # pandas takes no types from tables without rows.
    changed = pd.concat([its for its in switches if len(its)] or switches[:1], ignore_index=True)
    return tuple(  # type: ignore[return-value]
        table[table["repetition"] >= 0].reset_index(drop=True) for table in (rounds, changed)
    )


def runs_by(rounds: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Throughput of each repetition, for summaries and ledgers.

    Parameters
    ----------
    rounds : DataFrame
        As :func:`run_segments` returns it.
    setting : str
        ``segment``, with :data:`WHOLE` behind the segments, or ``round``.

    Returns
    -------
    DataFrame
        As :func:`cepbench.analysis.summary.summarize` takes it; ``pattern_set`` is the setting,
        ``pattern_id`` the repetition.
    """
    parts = [rounds.assign(pattern_set=rounds[setting].astype(str))]
    if setting == "segment":
        parts.append(rounds.assign(pattern_set=WHOLE))
    named = ["pattern_set", "repetition", "evaluator", "generator"]
    sums = pd.concat(parts).groupby(named, sort=False)[["events", "seconds"]].sum().reset_index()
    return sums.assign(
        size=4,
        pattern_id=sums["pattern_set"] + ", run " + sums["repetition"].astype(str),
        plan_kind="tree",
        regime="",
        strategy="any",
        alpha=0.0,
        status=OK,
        events_per_second=sums["events"] / sums["seconds"],
    )


def query_6() -> Pattern:
    """Query 6, as the library of ``stock-rates`` has it."""
    sweep = read_sweep("mei2009/plans")
    ((_, text),) = sweep.config("").user_patterns
    return parse(text)


def changing_stream(events: int, seed: int) -> dict[str, EventStream]:
    """The three segments of Figure 14, cut from one stream.

    Parameters
    ----------
    events : int
        Of each segment.
    seed : int

    Returns
    -------
    dict of str to EventStream
        The setting of :func:`cepbench.studies.mei2009.runs.setting_of` → its segment; time and
        positions continue.
    """
    streams = read_sweep("mei2009/plans").data
    settings: list[Any] = [streams[name] for name in STREAMS]
    made = StockRates(
        len(STREAMS) * events,
        seed,
        segments=[
            {
                "rates": its.get("rates", dict.fromkeys(NAMES, 1.0)),
                "selectivities": its["selectivities"],
            }
            for its in settings
        ],
    )
    whole = EventStream.from_arrow(made.table(0, made.events), type="name", time="ts")
    return dict(zip(map(setting_of, STREAMS), whole.batches(events), strict=True))
