"""What happened at the edges of automata, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cepbench.engines.automata.model import Automaton
from cepbench.engines.sase.kernels import profile, tables

#: Columns behind those that name the edge.
MEASURED = ("tested", "passed", "time_share", "mean_runs", "peak_runs")


@dataclass(frozen=True)
class EdgeTable:
    """The edges of each branch, see :func:`edge_counts`."""

    branches: Sequence[list[dict[str, Any]]]

    def frame(self) -> pd.DataFrame:
        """One row an edge; with OR also ``branch``."""
        table = pd.concat(
            [
                pd.DataFrame(rows, columns=["state", "edge", *MEASURED]).assign(branch=number)
                for number, rows in enumerate(self.branches)
            ],
            ignore_index=True,
        )
        total = table["time_share"].sum()
        table["time_share"] = table["time_share"] / total if total else np.nan
        return table if len(self.branches) > 1 else table.drop(columns="branch")


def edge_counts(
    automaton: Automaton, tallies: np.ndarray, counts: np.ndarray, events: int
) -> list[dict[str, Any]]:
    """A row an edge: ``state``, ``edge``, and the columns :data:`MEASURED`, shares as numbers of tests.

    ``tested`` and ``passed`` are events and runs for which an edge was tested, and held. What it asks
    of an event alone is tested for all runs at once, and a run for which that rules out all edges
    but ignore is not looked at. ``time_share`` is the share of the tests, since a test takes too
    short to be timed; the first event of a run is found for all events at once, and has none.
    ``mean_runs`` and ``peak_runs`` are the runs stored in the state, averaged over the events, and at
    most; those that expired stay until they are looked at. An automaton that an engine has extended
    for NOT has rows for its states of kind ``blocked``, and none for forbid edges; runs that these
    end are counted as if they had ignored the event. ``tallies`` and ``counts`` are those of
    :mod:`cepbench.engines.sase.kernels.tables` and :mod:`cepbench.engines.sase.kernels.profile`.
    """
    rows = []
    states = automaton.states
    strategy = automaton.pattern.strategy.name
    for edge in automaton.edges:
        if edge.kind == "forbid":
            continue
        its = counts[edge.state] if len(counts) else np.full(profile.PROFILE_COLUMNS, np.nan)
        tested, passed = its[profile.READS], its[profile.SELECTED]
        if edge.kind == "begin" and edge.state == 0:
            tested, passed = events, tallies[tables.STARTED]
        elif edge.kind == "begin" and states[edge.state - 1].kind == "loop" and len(counts):
            # A run that leaves the loop begins with the same event.
            left = counts[edge.state - 1, profile.LEFT]
            tested, passed = tested + left, passed + left
        elif edge.kind == "proceed":
            passed = its[profile.LEFT]
            if states[edge.target].kind == "final":
                tested = its[profile.ASKED]
        elif edge.kind == "ignore":
            ignored = {"any": tested, "next": tested - passed}
            passed = ignored.get(strategy, 0.0 * tested)
        rows.append(
            {
                "state": states[edge.state].name,
                "edge": edge.kind,
                "tested": tested,
                "passed": passed,
                "time_share": np.nan if edge.state == 0 else tested,
                "mean_runs": its[profile.SUM] / events if events and edge.state else np.nan,
                "peak_runs": its[profile.MOST] if edge.state else np.nan,
            }
        )
    return rows
