"""Entry point of the app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepbench.arguments import comes_from
from cepbench.arguments import seed as seed_from
from cepbench.errors import StatisticsError
from cepbench.patterns.given import pattern_from
from cepbench.streams.given import stream_from

if TYPE_CHECKING:
    from cepbench.app.app import Explorer
    from cepbench.datasets.dataset import Dataset
    from cepbench.patterns.model import Pattern
    from cepbench.streams.event_stream import EventStream


def explore(
    dataset: str | Dataset | EventStream | None = None,
    pattern: str | Pattern | None = None,
    *,
    seed: int = 0,
) -> Explorer:
    """Explore a pattern on a data set in JupyterLab: rates, plans, sliders, a run, its matches.

    Parameters
    ----------
    dataset : str, Dataset or EventStream, optional
        A name that ``cep.open_dataset`` takes, such as ``"nasdaq-style/sample"``, an open data
        set, or a stream; by default the first data set that is at hand.
    pattern : str or Pattern, optional
        A pattern, its text, or the name of one of the data set's patterns; by default the first of
        those.
    seed : int
        Of the sample that statistics are measured on, and of generators that draw at random.

    Returns
    -------
    Explorer
        Shown in JupyterLab it is the app. What it shows is there in code too: ``app.stream``,
        ``app.pattern``, ``app.statistics``, ``app.plans``, ``app.results``.

    Raises
    ------
    DatasetError
        If there is no such data set, or it cannot be read. What is wrong with a pattern's text is
        shown in the app.
    StreamError, PatternError, StatisticsError
        If ``dataset``, ``pattern`` or ``seed`` is something else altogether.
    """
    from cepbench.app.app import Explorer

    if not (isinstance(dataset, str | None) or comes_from(dataset, "cepbench", "Dataset")):
        dataset = stream_from(dataset, "dataset")
    if not isinstance(pattern, str | None):
        pattern = pattern_from(pattern)
    seed = seed_from(seed, StatisticsError)
    return Explorer(dataset, pattern, seed=seed)
