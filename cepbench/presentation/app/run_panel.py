"""The tab that runs plans: bars of throughput and memory, a timeline of matches, nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets as widgets
import pandas as pd

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.runs.result import Result
from cepbench.experiments.sweeps.cells import OK
from cepbench.markup import Html
from cepbench.presentation.app.shown import error_html, guarded, show, show_chart
from cepbench.presentation.comparison.compare import compare
from cepbench.presentation.comparison.table import Comparison
from cepbench.presentation.explainer.explain import explain
from cepbench.presentation.exploration.side_by_side import SideBySide
from cepbench.presentation.exploration.timeline_chart import match_timeline
from cepbench.streams.event_stream import EventStream

#: Limit of partial matches of a run; and of matches, beyond which they are only counted.
PARTIAL_MATCH_LIMIT, _MOST_MATCHES = 2_000_000, 1_000_000

#: Windows shown around a match; 0 is the whole stream, since a widget reads None as no choice.
_ZOOMS = {"one window around it": 1.0, "five windows": 5.0, "the whole stream": 0.0}

_CHANGES = Html(
    """<p>Runs the plans for changed numbers on the events as they are: {{ changes | join("; ") }}. \
“as measured” among the sliders takes them back.</p>"""
)
_PARAGRAPH = Html("<p>{{ sentences | join(' ') }}</p>")


class RunPanel:
    """Runs the plans of the other tabs, with the stream and the plans that ``stream_and_plans`` returns.

    ``units`` returns attribute → unit, as for ``cep.match_timeline``. ``comparison`` is that of the last run,
    ``result`` the matches, by the engine of the least expected time.
    """

    def __init__(
        self,
        stream_and_plans: Callable[[], tuple[EventStream, SideBySide]],
        units: Callable[[], Mapping[str, str]],
        seed: int,
    ) -> None:
        self._current = stream_and_plans
        self._units = units
        self._seed = seed
        self.comparison: Comparison | None = None
        self.result: Result | None = None
        self._ran: tuple[EventStream, SideBySide] | None = None
        self.button = widgets.Button(
            description="Run all plans", button_style="primary", icon="play"
        )
        self.repetitions = widgets.IntSlider(
            value=2, min=1, max=10, description="runs at least", layout={"width": "18rem"},
            style={"description_width": "initial"},
        )  # fmt: skip
        self.highlight = widgets.BoundedIntText(
            value=0, min=0, max=0, description="match no.", layout={"width": "12rem"}
        )
        self.zoom = widgets.Dropdown(
            options=list(_ZOOMS.items()), value=1.0, description="show", layout={"width": "20rem"}
        )
        self.generator = widgets.Dropdown(
            options=[], description="nodes of", layout={"width": "20rem"}
        )
        self.message, self._changes = widgets.HTML(), widgets.HTML()
        self.bars, self.table = widgets.Output(), widgets.HTML()
        self.timeline, self.nodes = widgets.Output(), widgets.Output()
        self._found = widgets.VBox(
            [
                self.bars,
                self.table,
                widgets.HTML("<h4>Matches</h4>"),
                widgets.HBox([self.highlight, self.zoom]),
                self.timeline,
                widgets.HTML("<h4>Estimated against actual, node by node</h4>"),
                self.generator,
                self.nodes,
            ],
            layout={"display": "none"},
        )
        self.box = widgets.VBox(
            [
                widgets.HBox([self.button, self.repetitions]),
                self._changes,
                self.message,
                self._found,
            ]
        )
        self.button.on_click(lambda _: self.run())
        self.highlight.observe(lambda _: self._guarded(self._draw_timeline), "value")
        self.zoom.observe(lambda _: self._guarded(self._draw_timeline), "value")
        self.generator.observe(lambda _: self._guarded(self._draw_nodes), "value")

    def forget(self) -> None:
        """Discard the last run, after the pattern or the stream changed."""
        self.comparison, self.result, self._ran = None, None, None
        self.message.value = ""
        self._found.layout.display = "none"

    def show_changes(self, changes: Sequence[str]) -> None:
        """Say which numbers the plans that would run are for, where sliders were moved."""
        self._changes.value = _CHANGES(changes=changes) if changes else ""

    def run(self) -> None:
        """Run all current plans; errors are shown."""
        self._guarded(self._run)

    def _run(self) -> None:
        self.forget()
        stream, plans = self._current()
        names = list(plans.table["generator"])
        times = self.repetitions.value
        self.button.disabled = True
        self.message.value = (
            f"<p>⏳ {len(names)} plan generators on {len(stream):,} events: after a warm-up, each "
            f"distinct plan at least {times} times …</p>"
        )
        try:
            self.comparison = compare(
                plans.pattern,
                stream,
                statistics=plans.statistics,
                generators=names,
                repetitions=times,
                seed=self._seed,
                partial_match_limit=PARTIAL_MATCH_LIMIT,
            )
            self._ran = stream, plans
            self._show(self.comparison)
        finally:
            self.button.disabled = False

    def _show(self, comparison: Comparison) -> None:
        assert self._ran is not None
        stream, plans = self._ran
        fine = pd.DataFrame(comparison[comparison["status"] == OK])
        self.table.value = comparison._repr_html_()
        self._found.layout.display = None
        if fine.empty:
            self.message.value = "<p>No run finished; the table has the reasons.</p>"
            self.bars.outputs = self.timeline.outputs = self.nodes.outputs = ()
            return
        show_chart(self.bars, comparison.plot())
        best = str(fine.loc[fine["events_per_second"].idxmax(), "generator"])
        count = int(fine["matches"].iloc[0])
        sentences = [f"{count:,} matches; {best} was the fastest."]
        if any(part.alpha for plan in plans.plans.values() for part in plan.parts):
            sentences.append("The runs ignore α: these are the plans of least cost for throughput.")
        if count <= _MOST_MATCHES:
            self.result = evaluate(plans.pattern, stream, partial_match_limit=PARTIAL_MATCH_LIMIT)
            if self.result.choice is not None:
                sentences.append(f"Without a plan: {self.result.choice}.")
            self.highlight.max = max(0, count - 1)
            self.highlight.value = 0
            self._draw_timeline()
        else:
            sentences.append("They are too many to draw.")
            self.timeline.outputs = ()
        self.message.value = _PARAGRAPH(sentences=sentences)
        self.generator.options = list(dict.fromkeys(fine["generator"]))
        if self.generator.value == best:
            self._draw_nodes()
        else:
            self.generator.value = best  # draws

    def _draw_timeline(self) -> None:
        if self._ran is None or self.result is None:
            return
        stream, plans = self._ran
        chart = match_timeline(
            stream, self.result, plans.pattern, self.highlight.value,
            windows=self.zoom.value or None, units=self._units(),
        )  # fmt: skip
        show_chart(self.timeline, chart)

    def _draw_nodes(self) -> None:
        if self._ran is None or self.generator.value is None:
            return
        stream, plans = self._ran
        plan = plans.plans.get(self.generator.value)
        if plan is None:
            self.nodes.outputs = ()
            return
        explained = explain(
            plans.pattern, plan, plans.statistics, stream, alpha=0.0,
            partial_match_limit=PARTIAL_MATCH_LIMIT,
        )  # fmt: skip
        show(self.nodes, {"text/html": explained._repr_html_(), "text/plain": repr(explained)})

    def _guarded(self, action: Callable[[], Any]) -> None:
        guarded(action, lambda error: setattr(self.message, "value", error_html(error)))
