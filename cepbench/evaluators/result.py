"""What an evaluation gives: matches and metrics."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from cepbench.errors import EvaluationError
from cepbench.patterns.model import Pattern
from cepbench.plans.model import OrderPlan, TreePlan


@dataclass(frozen=True)
class Metrics:
    """What an evaluation took [kolchinsky2018]_, section 6.2.

    Attributes
    ----------
    seconds : float
        Wall-clock time of the evaluation, compilation and set-up left out.
    events : int
        Events pushed, of whatever type.
    matches : int
    partial_matches_created : int
        Partial matches of two events or more; matches not among them.
    mean_partial_matches : float
        Partial matches that coexist within the window, averaged over time: what the cost models
        estimate as the sum of PM over the inner nodes below the root.
    peak_partial_matches : int
        Most partial matches stored because an event still to come could extend them.
    peak_buffered_events : int
        Most single events stored for the same reason.
    peak_bytes : int
        Most bytes that stored events and partial matches took, expired ones not yet removed
        included.
    comparisons : int
        Pairs whose conditions were tested one by one, those skipped by a search in time left out.
        Batches of another size may change it a little: expired rows are removed at other times.
    """

    seconds: float
    events: int
    matches: int
    partial_matches_created: int
    mean_partial_matches: float
    peak_partial_matches: int
    peak_buffered_events: int
    peak_bytes: int
    comparisons: int

    @property
    def events_per_second(self) -> float:
        """Throughput; NaN if no time passed that could be measured."""
        return self.events / self.seconds if self.seconds > 0 else float("nan")

    def to_dict(self) -> dict[str, float]:
        """All metrics by name."""
        return {"events_per_second": self.events_per_second, **asdict(self)}

    def describe(self) -> str:
        """A line for each metric."""
        return "\n".join(
            f"{name.replace('_', ' '):<26}{value:>18,.6g}"
            if isinstance(value, float)
            else f"{name.replace('_', ' '):<26}{value:>18,}"
            for name, value in self.to_dict().items()
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.describe())}</pre>"


@dataclass(frozen=True)
class Result:
    """Matches and metrics of one evaluation.

    Attributes
    ----------
    pattern : Pattern
    plan : OrderPlan or TreePlan
    evaluator : str
    metrics : Metrics
    nodes : DataFrame
        One row a node of the plan: its variables, and what happened there.
    positions : ndarray of int64, shape (variables, matches), or None
        In the order in which matches were found; None if they were only counted.
    """

    pattern: Pattern
    plan: OrderPlan | TreePlan
    evaluator: str
    metrics: Metrics
    nodes: pd.DataFrame
    positions: np.ndarray | None = field(repr=False)

    @cached_property
    def matches(self) -> pd.DataFrame:
        """One row a match, one column a variable with its event's position.

        Ordered by the position of a match's last event, then by its positions in the order of the
        pattern: the same table whatever the plan.

        Raises
        ------
        EvaluationError
            If matches were only counted.
        """
        if self.positions is None:
            raise EvaluationError(
                f"the {self.metrics.matches:,} matches were only counted; "
                'evaluate with output="matches" to have them'
            )
        order = np.lexsort((*self.positions[::-1], self.positions.max(axis=0)))
        return matches_frame(self.pattern, self.positions[:, order])

    def describe(self) -> str:
        """The evaluator, the plan and the metrics."""
        return f"{self.evaluator}: {self.plan.describe()}\n{self.metrics.describe()}"

    def _repr_html_(self) -> str:
        found = ""
        if self.positions is not None:
            found = self.matches.head().to_html(escape=True, index=False)
        heading = f"{self.metrics.matches:,} matches by the {self.evaluator} evaluator"
        return f"<p>{html.escape(heading)}</p>{found}{self.metrics._repr_html_()}"


def matches_frame(pattern: Pattern, positions: np.ndarray) -> pd.DataFrame:
    """Positions, shape (variables, matches), as a DataFrame with a column a variable."""
    columns: dict[str, Any] = dict(zip(pattern.names, positions, strict=True))
    return pd.DataFrame(columns, columns=list(pattern.names))
