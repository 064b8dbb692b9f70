"""Runs of workloads whose queries reuse each other's matches, as cells of a sweep, and by query."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

import pandas as pd

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.workload_detector import WorkloadDetector
from cepbench.experiments.sweeps.cells import OK
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream


def reused(
    workload: Workload, stream: EventStream, plan: WorkloadPlan, batch_size: int, **how: Any
) -> dict[str, Any]:
    """The metrics of a run by a plan, and a digest of the number of matches of each query.

    They have ``steps``, a dict for each query in the order of computation: ``query``, ``source``,
    ``results``, ``reused``, ``delta``, ``seconds`` and ``cost``; in batches instead
    ``batch_seconds`` and ``batch_matches``, a number for each push and the last one for the end of
    the stream.

    ``batch_size``: events of a push; 0 for the stream as a whole. ``**how``: of
    :func:`cepbench.evaluate`.
    """
    if batch_size:
        found, counts = _in_batches(WorkloadDetector(workload, plan, **how), stream, batch_size)
    else:
        result = evaluate(workload, stream, plan, **how)
        steps = [
            {**step, "cost": plan.reuse(step["query"]).cost}
            for step in result.steps.to_dict("records")
        ]
        found = {**result.metrics.to_dict(), "steps": steps}
        counts = {step["query"]: step["results"] for step in steps}
    digest = hashlib.sha256(json.dumps(counts, sort_keys=True).encode())
    return found | {"digest": digest.hexdigest()[:16]}


def _in_batches(
    detector: WorkloadDetector, stream: EventStream, batch_size: int
) -> tuple[dict[str, Any], dict[str, int]]:
    """The metrics of pushes, and the number of matches of each query."""
    counts: dict[str, int] = {}
    seconds, matches = [], []
    for batch in [*stream.batches(batch_size), None]:
        began = time.perf_counter()
        pushed = detector.flush() if batch is None else detector.push(batch)
        seconds.append(time.perf_counter() - began)
        own = {q: its if isinstance(its, int) else len(its) for q, its in pushed.items()}
        matches.append(sum(own.values()))
        counts = {query: counts.get(query, 0) + number for query, number in own.items()}
    times = {"batch_seconds": seconds, "batch_matches": matches}
    return {**detector.metrics().to_dict(), **times}, counts


def query_rows(results: pd.DataFrame) -> pd.DataFrame:
    """The rows of a sweep with planners, one a query of each finished run on the whole stream.

    Its columns are those that say what was run, and ``query``, ``source`` (missing from scratch),
    ``results``, ``reused``, ``delta``, ``seconds``, ``cost``, in the order of computation.

    ``results``: as :func:`cepbench.experiments.sweeps.store.read_results` returns it.
    """
    identity = ["pattern_id", "generator", "evaluator", "options", "output", "stream", "window"]
    rows = [
        {name: row[name] for name in (*identity, "repetition")} | step
        for row in results[results["status"] == OK].to_dict("records")
        for step in json.loads(row["details"] or "{}").get("steps", ())
    ]
    own = ["query", "source", "results", "reused", "delta", "seconds", "cost"]
    return pd.DataFrame(rows, columns=[*identity, "repetition", *own])


def results_over_time(results: pd.DataFrame) -> pd.DataFrame:
    """How many matches each run in batches had found after how many seconds of work.

    A row for each push of each finished run: ``pattern_id``, ``generator``, ``evaluator``,
    ``stream``, ``window``, ``repetition``, ``seconds`` and ``matches``, both from the first push
    on.

    ``results``: as :func:`cepbench.experiments.sweeps.store.read_results` returns it.
    """
    identity = ["pattern_id", "generator", "evaluator", "stream", "window", "repetition"]
    parts = []
    for row in results[results["status"] == OK].to_dict("records"):
        details = json.loads(row["details"] or "{}")
        if "batch_matches" in details:
            part = pd.DataFrame(
                {"seconds": details["batch_seconds"], "matches": details["batch_matches"]}
            ).cumsum()
            parts.append(part.assign(**{name: row[name] for name in identity}))
    columns = [*identity, "seconds", "matches"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)
