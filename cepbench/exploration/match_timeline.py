"""Matches of a pattern over the curves of an attribute, as a chart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from cepbench.evaluators.result import Result
from cepbench.exploration.timeline import timeline
from cepbench.patterns.model import Pattern
from cepbench.streams.event_stream import EventStream

if TYPE_CHECKING:
    import altair as alt


def match_timeline(
    stream: EventStream,
    matches: pd.DataFrame | Result,
    pattern: Pattern,
    highlight: int = 0,
    *,
    attribute: str | None = None,
    windows: float | None = None,
    units: Mapping[str, str] | None = None,
) -> alt.TopLevelMixin:
    """Curves of an attribute over time, one panel an event type, with the events of matches.

    Parameters
    ----------
    stream : EventStream
    matches : DataFrame or Result
        As ``cep.evaluate`` returns them.
    pattern : Pattern
        The one whose matches they are.
    highlight : int
        Number of the match that is shown large, with its variables' names and its span shaded.
    attribute : str, optional
        What the curves show; by default ``price`` if there is one, else a number of the
        conditions, else any number.
    windows : float, optional
        Show only so many windows before and after the highlighted match; by default the whole
        stream.
    units : mapping of str to str, optional
        Attribute → its unit, for the title; of a data set ``dataset.schema["unit"]``.

    Returns
    -------
    altair chart
        At most 4500 points of the curves are drawn, and 300 matches, and no time in which the
        whole stream is silent; its subtitle names what was left out. The curve of a type that the
        pattern only forbids is dashed.

    Raises
    ------
    EvaluationError
        If these are no matches of the pattern in the stream, or there is none of that number.
    StreamError
        If the stream lacks a type of the pattern, or the attribute, or that is no number.
    """
    from cepbench.exploration.timeline_chart import timeline_chart  # altair takes seconds

    found = timeline(
        stream, matches, pattern, highlight=highlight, attribute=attribute, windows=windows,
        units=units,
    )  # fmt: skip
    return timeline_chart(found, pattern.variables)
