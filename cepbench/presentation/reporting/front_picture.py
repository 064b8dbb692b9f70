"""The picture of the front page: a pattern detected live along two plans."""

from __future__ import annotations

from functools import cache
from io import StringIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from cepbench.engines.detection.detector import Detector
from cepbench.planning.planners.generate import plan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.presentation.figures.styles import style_of
from cepbench.streams.datasets.opening import open_dataset

#: The data set, its pattern, and the generators of the two plans.
DATASET, PATTERN, GENERATORS = "nasdaq-style/sample", "rare-last", ("TRIVIAL", "DP-LD")

#: Events of a push.
BATCH = 100

_POINTS = 660, 190
_LOOK: Any = {
    "font.size": 9.5,
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "svg.hashsalt": "cepbench",
}


@cache
def front_picture() -> tuple[str, str]:
    """An SVG of the partial matches that each plan has created by each push, and its text in words."""
    dataset = open_dataset(DATASET)
    stream, pattern = dataset.stream(), dataset.patterns[PATTERN]
    statistics = measure_statistics(pattern, stream)
    types = {variable.name: str(variable.type) for variable in pattern.variables}
    found = set()
    with rc_context(_LOOK):
        figure = Figure(figsize=(_POINTS[0] / 72, _POINTS[1] / 72), layout="constrained")
        axes = figure.subplots()
        for generator in GENERATORS:
            order = plan(pattern, statistics, generator)
            detector = Detector(pattern, order, output="count")
            created = [0]
            for batch in stream.batches(BATCH):
                detector.push(batch)
                created.append(int(detector.metrics().partial_matches_created))
            detector.flush()
            found.add(detector.metrics().matches)
            events = np.minimum(BATCH * np.arange(len(created)), len(stream))
            path = " → ".join(types[name] for name in order.parts[0].names)
            colour = style_of(generator, "order").colour
            axes.plot(events, created, color=colour, linewidth=2.2)
            axes.fill_between(events, created, color=colour, alpha=0.15, linewidth=0)
            middle = len(created) // 2
            axes.annotate(
                f"{path}\n{created[-1]:,} partial matches ({generator})",
                (events[middle], created[middle]),
                (-8, 8),
                textcoords="offset points",
                ha="right",
                color=colour,
                weight="bold",
            )
        axes.set(xlim=(0, len(stream)), xlabel="events", ylabel="partial matches created")
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.spines[["top", "right"]].set_visible(False)
        drawn = StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    (matches,) = found  # of every plan the same
    return drawn.getvalue(), (
        f"One pattern on {len(stream):,} events, detected along two plans: both find the same {matches:,} matches."
    )
