"""``cep.explore`` of a workload: the cube as a graph whose boxes are buttons, and the chosen query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import ipywidgets as widgets
from markupsafe import Markup

from cepbench.errors import PatternError
from cepbench.markup import Html
from cepbench.planning.workloads.model import Workload
from cepbench.presentation.app.shown import App, error_html, guarded
from cepbench.presentation.exploration.cube import Cube, Move
from cepbench.presentation.exploration.cube_picture import LEGEND
from cepbench.streams.event_stream import EventStream

_WAYS = ("roll up", "drill down")
_AREA = "1 / 1 / 2 / 2"  # buttons and lines share one cell of a grid


class CubeExplorer(App):
    """The app of :func:`cepbench.explore` for a workload.

    ``cube`` has the queries so far, with ``workload``, ``results`` and ``steps``; ``item``, ``place`` and
    ``insert`` are the widgets to drill down by an item that is written.
    """

    def __init__(self, workload: Workload, stream: EventStream, *, seed: int) -> None:
        self.cube = Cube(workload, stream, seed)
        #: The name of the chosen query.
        self.chosen = next(iter(self.cube.results))
        #: Query → its box in the graph.
        self.buttons: dict[str, widgets.Button] = {}
        #: Direction and label of each roll-up and drill-down of the chosen query → its button.
        self.moves: dict[tuple[str, str], widgets.Button] = {}
        self._graph, self._details, self._message = widgets.Box(), widgets.HTML(), widgets.HTML()
        row = {"flex_flow": "row wrap"}
        self._rows = {way: widgets.HBox(layout=row) for way in _WAYS}
        self.item = widgets.Text(
            placeholder="D d, or NOT(D d)", description="insert", layout={"width": "16rem"}
        )
        self.place = widgets.BoundedIntText(
            value=1, min=1, max=1, description="as item", layout={"width": "10rem"}
        )
        self.insert = widgets.Button(description="drill down")
        self.insert.on_click(lambda _: self._guarded(self._insert))
        legend = widgets.HTML(f"<small>{LEGEND} Click a query to choose it.</small>")
        self.widget = widgets.VBox(
            [
                self._graph,
                legend,
                *(widgets.VBox([widgets.HTML(f"<b>{way}</b>"), self._rows[way]]) for way in _WAYS),
                widgets.HBox([self.item, self.place, self.insert]),
                self._message,
                self._details,
            ]
        )
        self._draw()

    @property
    def error(self) -> str:
        """The error of the last click, as HTML; empty if there is none."""
        return str(self._message.value)

    @property
    def matches(self) -> Any:
        """The result of the chosen query."""
        return self.cube.results[self.chosen]

    def choose(self, query: str) -> None:
        """Choose a query, as a click on its box does; EvaluationError if the cube has no such query."""
        self.chosen = self.cube.check(query)
        self._draw()

    def __repr__(self) -> str:
        return f"CubeExplorer({len(self.cube.results)} queries, chosen {self.chosen!r})"

    def _snapshot(self) -> str:
        moves: dict[str, list[str]] = {way: [] for way in _WAYS}
        for (way, _), button in self.moves.items():
            moves[way].append(button.description)
        return str(
            _SNAPSHOT(
                picture=self.cube.picture(self.chosen),
                legend=LEGEND,
                moves=moves,
                details=Markup(self.cube.details(self.chosen)),
            )
        )

    def _guarded(self, action: Callable[[], None]) -> None:
        self._message.value = ""
        guarded(action, lambda error: setattr(self._message, "value", error_html(error)))

    def _take(self, move: Move) -> None:
        self.choose(self.cube.take(self.chosen, move))

    def _insert(self) -> None:
        if not self.item.value.strip():
            raise PatternError("write an item first, its type and a name, such as D d or NOT(D d)")
        self.choose(self.cube.insert(self.chosen, self.place.value, self.item.value))
        self.item.value = ""

    def _draw(self) -> None:
        self._draw_graph()
        self.moves = {}
        for move in self.cube.moves(self.chosen):
            text = move.label if move.matches is None else f"{move.label} ({move.matches:,})"
            button = widgets.Button(
                description=text, tooltip=str(move.pattern), layout={"width": "auto"},
                button_style="info" if move.query else "",
            )  # fmt: skip
            button.on_click(lambda _, move=move: self._guarded(partial(self._take, move)))
            self.moves[move.direction, move.label] = button
        for way, row in self._rows.items():
            row.children = [its for (of, _), its in self.moves.items() if of == way]
        self.place.max = len(self.cube.workload.patterns[self.chosen].variables) + 1
        self._details.value = self.cube.details(self.chosen)

    def _draw_graph(self) -> None:
        """Lines, and buttons in the place of the boxes."""
        labels, picture = self.cube.labels(self.chosen), self.cube.picture(self.chosen)
        left, top, width, _ = picture.extent
        hidden = [replace(box, shape="", texts=()) for box in picture.boxes]
        lines = widgets.HTML(
            str(replace(picture, boxes=hidden)),
            layout={"grid_area": _AREA, "margin": "0", "width": f"{width:.0f}px"},
        )
        self.buttons = {}
        for query, box in zip(labels, picture.boxes, strict=True):
            x, y = box.at(-1, -1)
            button = widgets.Button(
                description=labels[query],
                tooltip=str(self.cube.workload.patterns[query]),
                button_style="primary" if query == self.chosen else "",
                layout={
                    "grid_area": _AREA,
                    "margin": f"{y - top:.0f}px 0 0 {x - left:.0f}px",
                    "width": f"{box.width:.0f}px",
                    "height": f"{box.height:.0f}px",
                },
            )
            button.on_click(lambda _, query=query: self._guarded(partial(self.choose, query)))
            self.buttons[query] = button
        self._graph.children = [
            widgets.GridBox([lines, *self.buttons.values()], layout={"width": f"{width:.0f}px"})
        ]


_SNAPSHOT = Html(
    """<div class="cep-cube"><p>In JupyterLab this is an app: a click chooses a query, rolls up or \
drills down.</p>
<figure style="margin:0.5em 0">{{ picture }}</figure><p><small>{{ legend }}</small></p>
{% for way, labels in moves.items() %}
{% if labels %}<p><b>{{ way }}</b>: {{ labels | join(", ") }}</p>{% endif %}
{% endfor %}
{{ details }}</div>"""
)
