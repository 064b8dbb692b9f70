"""How the choice of the plan grows with the graph of queries: Lemma 2 of [liu2011]_, section V.

The lemma is about the algorithm of Chu, Liu and Edmonds on the finished graph, not about the refinements
and costs that the edges stand for. Graphs are drawn, since workloads of the paper have six queries.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from cepbench.experiments.studies.runs import figure_runs, sized
from cepbench.planning.kernels.arborescence import least_arborescence
from cepbench.seeds import rng_for

#: Edges that enter each vertex of a sparse graph, besides the one from the root.
ENTERING = 10

#: Profile → vertices of sparse and of dense graphs, and the graphs of each size.
PROFILES: Mapping[str, Mapping[str, Any]] = {
    "quick": {
        "sparse": (100, 300, 1_000, 3_000),
        "dense": (20, 40, 80, 160),
        "seeds": 5,
    },
    "full": {
        "sparse": (100, 300, 1_000, 3_000, 10_000, 30_000),
        "dense": (20, 40, 80, 160, 320, 640),
        "seeds": 10,
    },
}

#: Seconds that the runs on one graph take together at least; of each the mean counts.
_AT_LEAST = 0.1


def graph_runs(profile: str, *, seed: int = 0, **changes: Any) -> pd.DataFrame:
    """Choose one edge into each vertex of drawn graphs, as Chase does.

    Changes are ``sparse``, ``dense`` and ``seeds`` in the place of the profile's, unless 0 or empty.
    Runs are of :func:`cepbench.experiments.studies.runs.figure_runs` with the number of vertices as
    setting and ``sparse`` or ``dense`` as series: ``edges``, ``steps`` (of heaps, see
    :func:`cepbench.planning.kernels.arborescence.least_arborescence`), ``search_seconds``, and
    ``bound``, what the lemma says: E·log V of a sparse graph, V² of a dense one. No run has a cost:
    ``plan_log_cost`` is the logarithm of the bound.
    """
    sizes = sized(PROFILES, profile, changes)
    rows = []
    for run in range(sizes["seeds"]):
        for kind in ("sparse", "dense"):
            for vertices in sizes[kind]:
                graph = _graph(vertices, kind, seed, run)
                steps, seconds = _timed(vertices + 1, graph)
                edges = len(graph[2])
                bound = edges * np.log2(vertices) if kind == "sparse" else vertices**2
                rows.append(
                    {
                        "setting": f"{vertices:,}",
                        "size": vertices,
                        "generator": kind,
                        "repetition": run,
                        "edges": edges,
                        "bound": bound,
                        "steps": steps,
                        "search_seconds": seconds,
                        "plan_log_cost": np.log(bound),
                    }
                )
    return figure_runs(pd.DataFrame(rows), "setting", "generator")


def _graph(
    vertices: int, kind: str, seed: int, run: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sources, targets and weights of the edges, the first ones from the root."""
    rng = rng_for(seed, kind, vertices, run)
    every = np.arange(1, vertices + 1)
    if kind == "sparse":
        targets = np.repeat(every, ENTERING)
        sources = rng.integers(1, vertices + 1, len(targets))
    else:
        sources, targets = (its.ravel() for its in np.meshgrid(every, every))
    apart = sources != targets
    sources = np.concatenate([np.zeros(vertices, np.int64), sources[apart]])
    targets = np.concatenate([every, targets[apart]])
    # From the root at most as cheap as other ways, as an edge that saves nothing is left out.
    weights = rng.random(len(sources))
    weights[:vertices] += 1
    return sources, targets, weights


def _timed(size: int, graph: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[int, float]:
    """Steps of heaps and seconds of one choice."""
    _, steps = least_arborescence(size, *graph)  # loads compiled code
    runs, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < _AT_LEAST or not runs:
        least_arborescence(size, *graph)
        runs += 1
    return int(steps), spent / runs
