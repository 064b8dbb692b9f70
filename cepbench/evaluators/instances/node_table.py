"""What was counted at the nodes of a plan whose instances are counted one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cepbench.kernels.instances import tables


@dataclass(frozen=True)
class InstanceCounts:
    """What was counted at the nodes of one branch's plan.

    Attributes
    ----------
    names : sequence of tuple of str
        The variables of each node.
    counts : ndarray of int64, shape (nodes, COUNT_COLUMNS)
        Leaves first, the root last.
    leaves : int
        How many leaves there are.
    window : int
    """

    names: Sequence[tuple[str, ...]]
    counts: np.ndarray
    leaves: int
    window: int

    def frame(self, span: int, *, timed: bool) -> pd.DataFrame:
        """One row a node; see :meth:`cepbench.evaluators.detector.Detector.node_metrics`.

        Parameters
        ----------
        span : int
            The time from the first event to the last, in the unit of the timestamps.
        timed : bool
            Whether the time that went into each node was measured.
        """
        counts = self.counts
        lifetime = counts[:, tables.LIFETIME].astype(float)
        lifetime[: self.leaves] = counts[: self.leaves, tables.CREATED] * float(self.window)
        lifetime[-1] = np.nan
        return pd.DataFrame(
            {
                "variables": [", ".join(names) for names in self.names],
                "created": counts[:, tables.CREATED],
                "comparisons": counts[:, tables.COMPARED],
                "peak_stored": counts[:, tables.PEAK],
                "mean_stored": lifetime / span if span else np.nan,
                "seconds": counts[:, tables.NANOSECONDS] / 1e9 if timed else np.nan,
            }
        )
