"""Metrics by node of a plan, converted to a table on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cepbench.kernels.counts import (
    COMPARED,
    CREATED,
    LIFETIME,
    MADE,
    NANOSECONDS,
    PEAK,
    TESTED,
    TRIED,
    WORK_COLUMNS,
    lifetime_shift,
)

#: Column of a table → that of the counts of a plan that is evaluated as given.
WORK = {"inputs_tried": TRIED, "conditions_tested": TESTED, "records_made": MADE}


@dataclass(frozen=True)
class NodeCounts:
    """Metrics by node of one branch's plan."""

    variables: Sequence[tuple[str, ...]]  #: variables of each node; leaves first, the root last
    leaves: int  #: number of leaves
    window: int  #: in the unit of the timestamps
    #: int64 (nodes, COUNT_COLUMNS), or WORK_COLUMNS of a plan that is evaluated as given; see
    #: :mod:`cepbench.kernels.counts`.
    counts: np.ndarray

    @property
    def lifetimes(self) -> np.ndarray:
        """The times for which each node's rows were stored, summed; float64 (nodes,), NaN if not known."""
        found = self.counts[:, LIFETIME] * float(1 << lifetime_shift(self.window))
        return np.where(found < 0, np.nan, found)

    @property
    def partial_matches(self) -> np.ndarray:
        """The metrics of the nodes whose rows are partial matches."""
        return self.counts[self.leaves : -1]

    def frame(self, span: int, *, timed: bool) -> pd.DataFrame:
        """One row a node, for a time ``span`` from the first event to the last; ``timed`` with its
        time, and with what its operators did if the plan was evaluated as given.
        """
        counts = self.counts
        work = WORK if counts.shape[1] == WORK_COLUMNS else {}
        lifetime = self.lifetimes
        lifetime[: self.leaves] = counts[: self.leaves, CREATED] * float(self.window)
        lifetime[-1] = np.nan
        return pd.DataFrame(
            {
                "variables": [", ".join(names) for names in self.variables],
                "created": counts[:, CREATED],
                "comparisons": counts[:, COMPARED],
                "peak_stored": counts[:, PEAK],
                "mean_stored": lifetime / span if span else np.nan,
                "seconds": counts[:, NANOSECONDS] / 1e9 if timed else np.nan,
                **{name: counts[:, column] for name, column in work.items()},
            }
        )


@dataclass(frozen=True)
class PlanNodeTable:
    """Metrics by node of all branches' plans."""

    branches: Sequence[NodeCounts]
    #: Of the branches, the first one of those that have one plan together; empty without OR.
    numbers: Sequence[int]
    span: int  #: the time from the first event to the last, in the unit of the timestamps
    timed: bool  #: whether the time spent in each node was measured

    def frame(self) -> pd.DataFrame:
        """One row per node; see :meth:`cepbench.engines.detection.detector.Detector.node_metrics`."""
        frames = [branch.frame(self.span, timed=self.timed) for branch in self.branches]
        for number, frame in zip(self.numbers, frames, strict=False):
            frame.insert(0, "branch", number)
        return pd.concat(frames, ignore_index=True)
