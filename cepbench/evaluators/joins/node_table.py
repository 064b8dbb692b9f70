"""What happened at each node of a plan, as a table that is made when somebody looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from cepbench.evaluators.joins.layout import JoinLayout
from cepbench.kernels.joins import tables


@dataclass(frozen=True)
class Work:
    """What an engine took so far.

    Attributes
    ----------
    created : int
        Partial matches; matches are not among them.
    lifetime : int
        Sum over them of the time for which they could be extended.
    comparisons : int
    peak_partial_matches, peak_events, peak_bytes : int
    """

    created: int
    lifetime: int
    comparisons: int
    peak_partial_matches: int
    peak_events: int
    peak_bytes: int


class BranchCounts(Protocol):
    """What was counted at the nodes of one branch's plan."""

    def frame(self, span: int, *, timed: bool) -> pd.DataFrame:
        """One row a node, see :meth:`NodeCounts.frame`."""
        ...


@dataclass(frozen=True)
class NodeCounts:
    """What was counted at the nodes of one branch's plan.

    Attributes
    ----------
    layout : JoinLayout
    counts : ndarray of int64, shape (nodes, COUNT_COLUMNS)
    """

    layout: JoinLayout
    counts: np.ndarray

    def frame(self, span: int, *, timed: bool) -> pd.DataFrame:
        """One row a node, leaves first; see :meth:`cepbench.evaluators.detector.Detector.node_metrics`.

        Parameters
        ----------
        span : int
            The time from the first event to the last, in the unit of the timestamps.
        timed : bool
            Whether the time that went into each node was measured.
        """
        counts, leaves, inner = self.counts, len(self.layout.leaves), self.layout.plan.inner
        compared = counts[:, tables.COMPARED].copy()
        # What checks compare is counted where their rows come into being.
        np.add.at(
            compared, self.layout.plan.nodes[leaves:inner, tables.LEFT], compared[leaves:inner]
        )
        lifetime = counts[:, tables.LIFETIME].astype(float)
        lifetime[:leaves] = counts[:leaves, tables.CREATED] * float(self.layout.plan.window)
        lifetime[-1] = np.nan
        shown = np.r_[:leaves, inner : len(counts)]
        return pd.DataFrame(
            {
                "variables": [", ".join(self.layout.nodes[node]) for node in shown],
                "created": counts[shown, tables.CREATED],
                "comparisons": compared[shown],
                "peak_stored": counts[shown, tables.PEAK],
                "mean_stored": lifetime[shown] / span if span else np.nan,
                "seconds": counts[shown, tables.NANOSECONDS] / 1e9 if timed else np.nan,
            }
        )


@dataclass(frozen=True)
class JoinNodeTable:
    """What was counted at the nodes of all branches' plans.

    Attributes
    ----------
    branches : sequence of BranchCounts
    span : int
        The time from the first event to the last, in the unit of the timestamps.
    timed : bool
        Whether the time that went into each node was measured.
    """

    branches: Sequence[BranchCounts]
    span: int
    timed: bool

    def frame(self) -> pd.DataFrame:
        """All of them; with several branches the first column tells which."""
        frames = [branch.frame(self.span, timed=self.timed) for branch in self.branches]
        if len(frames) == 1:
            return frames[0]
        for number, frame in enumerate(frames):
            frame.insert(0, "branch", number)
        return pd.concat(frames, ignore_index=True)
