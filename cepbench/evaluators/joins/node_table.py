"""Counts at the nodes of a plan, as a table that is made on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cepbench.evaluators.joins.layout import JoinLayout
from cepbench.kernels.joins import tables


@dataclass(frozen=True)
class JoinNodeTable:
    """Counts at the nodes of all branches' plans.

    Attributes
    ----------
    branches : sequence of (JoinLayout, ndarray of int64, shape (nodes, COUNT_COLUMNS))
    span : int
        The time from the first event to the last, in the unit of the timestamps.
    timed : bool
        Whether the time spent in each node was measured.
    """

    branches: Sequence[tuple[JoinLayout, np.ndarray]]
    span: int
    timed: bool

    def frame(self) -> pd.DataFrame:
        """One row a node; see :meth:`cepbench.evaluators.detector.Detector.node_metrics`."""
        frames = [self._branch_frame(layout, counts) for layout, counts in self.branches]
        if len(frames) == 1:
            return frames[0]
        for number, frame in enumerate(frames):
            frame.insert(0, "branch", number)
        return pd.concat(frames, ignore_index=True)

    def _branch_frame(self, layout: JoinLayout, counts: np.ndarray) -> pd.DataFrame:
        leaves, inner = len(layout.leaves), layout.plan.inner
        compared = counts[:, tables.COMPARED].copy()
        # Comparisons of a check count at the node whose rows it tests.
        np.add.at(compared, layout.plan.nodes[leaves:inner, tables.LEFT], compared[leaves:inner])
        lifetime = counts[:, tables.LIFETIME].astype(float)
        lifetime[:leaves] = counts[:leaves, tables.CREATED] * float(layout.plan.window)
        lifetime[-1] = np.nan
        shown = np.r_[:leaves, inner : len(counts)]
        return pd.DataFrame(
            {
                "variables": [", ".join(layout.nodes[node]) for node in shown],
                "created": counts[shown, tables.CREATED],
                "comparisons": compared[shown],
                "peak_stored": counts[shown, tables.PEAK],
                "mean_stored": lifetime[shown] / self.span if self.span else np.nan,
                "seconds": counts[shown, tables.NANOSECONDS] / 1e9 if self.timed else np.nan,
            }
        )
