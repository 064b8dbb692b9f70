"""Plans that stay and plans that follow rates that change, on the workload of Figure 19.

[liu2011]_, section VI, says that adapting the plan can outperform the static plan dramatically, "as shown
in Section VII", which shows nothing of it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from cepbench.engines.adaptation.detector import AdaptiveDetector
from cepbench.engines.detection.workload_detector import Detector, WorkloadDetector
from cepbench.experiments.studies.liu2011.turns import PLANNERS, company_stream, study_workload
from cepbench.experiments.studies.runs import sized
from cepbench.experiments.sweeps.measure import timed_pushes
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.streams.company_trades import HIERARCHY
from cepbench.streams.event_stream import EventStream

#: Rates in a row, as multiples of those of the other companies.
SEGMENTS = {
    "much Education": {"DELL": 0.05, "MSFT": 0.05, "EFC": 8, "ANAT": 8, "OREL": 8},
    "little Education": {"DELL": 8, "INTC": 8, "MSFT": 8, "EFC": 0.05, "ANAT": 0.05, "OREL": 0.05},
    "little Finance": {"DELL": 8, "INTC": 8, "MSFT": 8, "QQQ": 0.05, "FCF": 0.05, "ROM": 0.05},
}

#: The setting that is all segments together.
WHOLE = "all"

#: Runs that follow the stream, by policy; CHASE plans them.
ADAPTIVE = {"adaptive": "threshold", "clairvoyant": "clairvoyant"}

WINDOW = "40 milliseconds"

#: Trades in a round.
ROUND = 20_000

#: Profile → rounds of a segment, and runs.
PROFILES = {"quick": {"rounds": 3, "repetitions": 5}, "full": {"rounds": 15, "repetitions": 15}}


def drifting_stream(each: int, seed: int) -> EventStream:
    """The segments in a row, each of so many events."""
    return company_stream(each * len(SEGMENTS), seed, segments=[*SEGMENTS.values()])


def drift_runs(
    profile: str, *, seed: int = 0, evaluator: str, repetitions: int = 0, round_events: int = ROUND
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run the planners' plans for the first segment, and plans that follow the stream, in turns.

    All list their matches as Arrow tables, round by round. Without ``repetitions`` there are as
    many as the profile has.

    Returns the runs, a row a run and segment, and all segments together, for
    :func:`cepbench.experiments.studies.runs.figure_runs`: ``setting`` (the segment), ``size``
    (queries), ``generator`` (the planner, or one of :data:`ADAPTIVE`), ``regime`` (the evaluator),
    ``seconds``, ``matches``; and the switches of those that follow the stream, as
    :attr:`cepbench.AdaptiveDetector.switches`, with ``generator`` and ``repetition``.
    """
    sizes = sized(PROFILES, profile, {"repetitions": repetitions})
    workload = study_workload("both", HIERARCHY, WINDOW)
    each = sizes["rounds"] * round_events
    stream = drifting_stream(each, seed)
    segments = dict(zip(SEGMENTS, stream.batches(each), strict=True))
    statistics = measure_statistics(workload, stream[:each], seed=seed)
    plans = {
        name: plan_workload(workload, statistics, name, seed=seed, evaluator=evaluator)
        for name in PLANNERS
    }
    rows: list[dict[str, Any]] = []
    switches: list[dict[Hashable, Any]] = []
    columns: list[str] = []
    for run in range(-1, sizes["repetitions"]):  # the first one loads compiled code
        how: dict[str, Any] = {"evaluator": evaluator, "output": "arrow"}
        detectors: dict[str, Detector] = {
            name: WorkloadDetector(workload, plan, **how) for name, plan in plans.items()
        }
        for name, policy in ADAPTIVE.items():
            detectors[name] = AdaptiveDetector(
                workload, policy=policy, batch_size=round_events, seed=seed, **how
            )
        seen = dict.fromkeys(detectors, 0)
        for setting, events in segments.items():
            for name, detector in detectors.items():
                pushes = timed_pushes(detector, events.batches(round_events))
                seconds = sum(spent for spent, _ in pushes)
                before, seen[name] = seen[name], detector.metrics().matches
                rows.append(
                    {
                        "setting": setting,
                        "size": len(workload.patterns),
                        "generator": name,
                        "regime": evaluator,
                        "repetition": run,
                        "seconds": seconds,
                        "matches": seen[name] - before,
                    }
                )
        for name, detector in detectors.items():
            if isinstance(detector, AdaptiveDetector) and run >= 0:
                its = detector.switches.assign(generator=name, repetition=run)
                columns = [*its]
                switches += its.to_dict("records")
    parts = pd.DataFrame([row for row in rows if row["repetition"] >= 0])
    keys = ["size", "generator", "regime", "repetition"]
    whole = parts.groupby(keys, sort=False)[["seconds", "matches"]].sum().reset_index()
    both = [parts, whole.assign(setting=WHOLE)]
    return pd.concat(both, ignore_index=True), pd.DataFrame(switches, columns=columns)
