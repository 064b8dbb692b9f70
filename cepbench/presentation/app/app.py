"""``cep.explore``: a thin layer of widgets over the functions of :mod:`cepbench.presentation.exploration`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import ipywidgets as widgets
from markupsafe import Markup

from cepbench.arguments import seed as seed_from
from cepbench.engines.runs.result import Result
from cepbench.errors import CepbenchError, StatisticsError
from cepbench.markup import Html
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.planners.registry import PLAN_GENERATORS, default_generators
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.given import queries_from
from cepbench.planning.workloads.model import Workload
from cepbench.presentation.app.coalesced import Coalesced
from cepbench.presentation.app.controls import Controls
from cepbench.presentation.app.cube import CubeExplorer
from cepbench.presentation.app.run_panel import RunPanel
from cepbench.presentation.app.shown import App, error_html, guarded, show_chart
from cepbench.presentation.app.sources import DAYS, DEFAULT, OWN, library_of, offered, read
from cepbench.presentation.comparison.table import Comparison
from cepbench.presentation.exploration.predicate_graph import predicate_graph
from cepbench.presentation.exploration.rates import rates_over_time
from cepbench.presentation.exploration.side_by_side import SideBySide
from cepbench.presentation.exploration.what_if import WhatIf, what_if
from cepbench.streams.datasets.dataset import Dataset
from cepbench.streams.event_stream import EventStream
from cepbench.streams.given import stream_from

_TABS = ("Data", "Pattern", "Plans", "Run")
_INTERVALS = ("1 minute", "5 minutes", "20 minutes", "1 hour")

#: Label → interval; a widget reads the value None as no choice.
_EVERY = {"automatic": "", **{length: length for length in _INTERVALS}}

#: Maximum number of variables for exact generators: their time grows as a power of three.
_MOST_EXACT = 14

#: Seconds for which changes are collected: of sliders, and of the pattern's text.
_MOVING, _TYPING = 0.03, 0.4


@overload
def explore(
    dataset: Workload, pattern: str | Dataset | EventStream, *, seed: int = 0
) -> CubeExplorer: ...


@overload
def explore(
    dataset: str | Dataset | EventStream, pattern: Workload, *, seed: int = 0
) -> CubeExplorer: ...


@overload
def explore(
    dataset: str | Dataset | EventStream | None = None,
    pattern: str | Pattern | None = None,
    *,
    seed: int = 0,
) -> Explorer: ...


def explore(dataset: Any = None, pattern: Any = None, *, seed: int = 0) -> Explorer | CubeExplorer:
    """Explore a pattern on a data set in JupyterLab: rates, plans, sliders, a run, its matches.

    Or a workload: its cube, in which a click rolls up from a query or drills down, and the matches of
    the chosen query. The content of the app is also available in code: ``app.stream``, ``app.pattern``,
    ``app.statistics``, ``app.plans``, ``app.results``; of a workload ``app.cube``, ``app.chosen``,
    ``app.choose("q2")``.

    Parameters
    ----------
    dataset : str, Dataset or EventStream, optional
        A name for ``cep.open_dataset``, such as ``"nasdaq-style/sample"``, an open data set, or a
        stream; by default the first data set that is available.
    pattern : str, Pattern or Workload, optional
        A pattern, its text, or the name of a pattern in the data set's library; by default the
        first of the library. A workload may also be given before its data:
        ``cep.explore(workload, stream)``.
    seed : int
        Seed of the statistics' samples and of randomized generators.

    Raises
    ------
    DatasetError
        If there is no such data set, or it cannot be read. Errors in a pattern's text are shown in
        the app.
    StreamError, PatternError, StatisticsError
        If ``dataset``, ``pattern`` or ``seed`` is of another type, or queries of a workload do not fit
        the stream.
    """
    if getattr(dataset, "by_query", False):  # a workload comes first
        dataset, pattern = pattern, dataset
    if not isinstance(dataset, str | Dataset | None):
        dataset = stream_from(dataset, "dataset")
    if not isinstance(pattern, str | None):
        pattern = queries_from(pattern)
    seed = seed_from(seed, StatisticsError)
    if isinstance(pattern, str | None) or not pattern.by_query:
        return Explorer(dataset, pattern, seed=seed)
    if isinstance(dataset, str):
        _, dataset, _ = read(dataset)
    stream = dataset.stream() if isinstance(dataset, Dataset) else stream_from(dataset, "dataset")
    return CubeExplorer(pattern, stream, seed=seed)


class Explorer(App):
    """The app of :func:`explore`.

    ``text``, ``chooser``, ``library``, ``generators`` and ``tabs`` are its widgets: the pattern, the data set,
    its patterns, the generators compared, the tabs. ``dataset`` is None for a user's stream.
    """

    def __init__(
        self,
        source: str | Dataset | EventStream | None,
        pattern: str | Pattern | None,
        *,
        seed: int,
    ) -> None:
        self._seed = seed
        self._pattern: Pattern | None = None
        self._statistics: Statistics | None = None
        self._what_if: WhatIf | None = None
        self._controls: Controls | None = None
        self._stale: set[str] = set()
        self._library: Mapping[str, tuple[str, str]] = {}
        self._make_widgets()
        self._typed = Coalesced(self._read_pattern, _TYPING)
        self._moved = Coalesced(self._plan_again, _MOVING)
        self.dataset: Dataset | None = None
        self.stream: EventStream
        self._own: EventStream | None = None
        self._open(source)
        self._fill_library()
        text = self._text_of(pattern)
        same = (name for name, (known, _) in self._library.items() if known == text)
        self.library.value = next(same, None)
        self.text.value = text
        self._observe()
        self._read_pattern()

    @property
    def pattern(self) -> Pattern | None:
        """None if the text is not a valid pattern for the stream."""
        self._settle()
        return self._pattern

    @property
    def statistics(self) -> Statistics | None:
        """As measured."""
        self._settle()
        return self._statistics

    @property
    def what_if(self) -> WhatIf | None:
        """The statistics as changed by the sliders, and their effect."""
        self._settle()
        return self._what_if

    @property
    def plans(self) -> SideBySide | None:
        """The plans under the changed statistics."""
        changed = self.what_if
        return None if changed is None else changed.after

    @property
    def results(self) -> Comparison | None:
        """The table of the last run."""
        return self._runs.comparison

    @property
    def matches(self) -> Result | None:
        """The matches of the last run, by the engine that is expected to take the least time."""
        return self._runs.result

    @property
    def sliders(self) -> Mapping[Any, Any]:
        """``"window"``, ``"alpha"``, a variable's name, a pair of names → widget."""
        self._settle()
        return {} if self._controls is None else self._controls.sliders

    @property
    def error(self) -> str:
        """The error shown below the pattern, as HTML; empty if there is none."""
        self._settle()
        return self._message.value if self._has_error else ""

    @property
    def code(self) -> str:
        """Lines of Python that make the statistics and plans of this state, and run them."""
        self._settle()
        if self._pattern is None or self._controls is None:
            raise CepbenchError("there is no pattern to share; correct the text first")
        changes = {name: its for name, its in self._controls.changes().items() if its}
        given = [f"{name}={its!r}" for name, its in changes.items()]
        generators = [*self._chosen()]
        given += [f"generators={generators!r}", f"seed={self._seed!r}"]
        opened = "...  # the stream that was given to cep.explore"
        if self.dataset is not None:
            part = f"days={DAYS}" if len(self.stream) < self.dataset.events else ""
            opened = f"cep.open_dataset({self.dataset.name!r}).stream({part})"
        concepts = ".with_hierarchy(stream.hierarchy)" if self.stream.hierarchy else ""
        lines = [
            "import cepbench as cep",
            "",
            f"stream = {opened}",
            f"pattern = cep.parse({self.text.value!r}){concepts}",
            f"statistics = cep.measure_statistics(pattern, stream, seed={self._seed!r})",
            "plans = cep.what_if(",
            "    pattern,",
            "    statistics,",
            *(f"    {argument}," for argument in given),
            ")",
            "plans  # side by side",
            "cep.compare(",
            f"    plans.pattern, stream, statistics=plans.statistics, generators={generators!r}",
            ")",
        ]
        return "\n".join(lines)

    def run(self) -> Comparison | None:
        """Run every plan, as the button does, and return the table."""
        self._settle()
        self._runs.run()
        return self.results

    def __repr__(self) -> str:
        name = self.dataset.name if self.dataset is not None else OWN
        return f"Explorer({name!r}, {len(self.stream):,} events, {self._pattern})"

    # -- widgets --------------------------------------------------------------------------------

    def _make_widgets(self) -> None:
        wide = {"width": "24rem"}
        self.chooser = widgets.Dropdown(description="data set", layout=wide)
        self.library = widgets.Dropdown(description="patterns", layout=wide)
        self.text = widgets.Textarea(
            description="pattern", continuous_update=True, layout={"width": "98%", "height": "6rem"}
        )
        self._about, self._message = widgets.HTML(), widgets.HTML()
        self._has_error = False
        self.every = widgets.Dropdown(options=list(_EVERY.items()), description="every")
        self.types = widgets.ToggleButtons(
            options=["types of the pattern", "most frequent types"], style={"button_width": "12rem"}
        )
        self._data_note, self._rates = widgets.HTML(), widgets.Output()
        self._graph, self._side_by_side = widgets.HTML(), widgets.HTML()
        self.generators = widgets.SelectMultiple(
            options=list(PLAN_GENERATORS), value=default_generators(), rows=6,
            description="generators", layout={"width": "20rem"},
        )  # fmt: skip
        chosen = widgets.Accordion([self.generators], titles=("plan generators",))
        self._sliders = widgets.Box()
        self._runs = RunPanel(self._to_run, self._units, self._seed)
        tabs = [
            widgets.VBox([widgets.HBox([self.types, self.every]), self._rates, self._data_note]),
            self._graph,
            widgets.VBox([self._sliders, self._side_by_side, chosen]),
            self._runs.box,
        ]
        self.tabs = widgets.Tab(tabs, titles=_TABS, selected_index=2)
        self.share = widgets.Button(description="share as code", icon="share-alt")
        self._shared = widgets.HTML()
        choosers = widgets.HBox(
            [self.chooser, self.library, self.share], layout={"flex_flow": "row wrap"}
        )
        self.widget = widgets.VBox(
            [choosers, self._shared, self._about, self.text, self._message, self.tabs]
        )

    def _observe(self) -> None:
        self.chooser.observe(lambda _: self._guarded(self._choose), "value")
        self.library.observe(lambda _: self._guarded(self._take_from_library), "value")
        self.text.observe(self._typed, "value")
        self.generators.observe(lambda _: self._guarded(self._plan_first), "value")
        for widget in (self.every, self.types):
            widget.observe(lambda _: self._redraw("Data"), "value")
        self.tabs.observe(lambda _: self._guarded(self._draw), "selected_index")
        self.share.on_click(lambda _: self._guarded(self._show_code))

    def _show_code(self) -> None:
        self._shared.value = _SHARED(code=self.code)

    def _settle(self) -> None:
        """Apply pending changes of the text and of sliders."""
        self._typed.settle()
        self._moved.settle()

    def _guarded(self, action: Callable[[], None]) -> None:
        guarded(action, self._show_status)

    def _show_status(self, error: Exception | None) -> None:
        self._has_error = error is not None
        if error is not None:
            self._message.value = error_html(error)
        elif self._pattern is not None:
            count = len(self._pattern.branches())
            branches = f" in {count} branches" if count > 1 else ""
            left_out = "; too many for exact generators" if self._is_large() else ""
            changes = [] if self._controls is None else self._controls.described()
            self._message.value = _STATUS(
                found=f"{len(self._pattern.variables)} variables{branches}{left_out}",
                changes=changes,
            )
            self._runs.show_changes(changes)

    # -- from data set to pattern to plans --------------------------------------------------------

    def _open(self, source: str | Dataset | EventStream | None) -> None:
        names = offered()
        if isinstance(source, EventStream):
            self._own = self.stream = source
            names, value = [OWN, *names], OWN
        elif isinstance(source, Dataset):
            self.dataset, self.stream, value = source, source.stream(), source.name
        else:
            value = self._read(source or (DEFAULT if DEFAULT in names else names[0]))
        self.chooser.options = list(dict.fromkeys([*names, value]))
        self.chooser.value = value

    def _read(self, name: str) -> str:
        self.dataset, self.stream, part = read(name)
        self._data_note.value = _READ(read=part) if part else ""
        return self.dataset.name

    def _choose(self) -> None:
        name = self.chooser.value
        if name == OWN:
            assert self._own is not None  # otherwise it is not in the list
            self.dataset, self.stream, self._data_note.value = None, self._own, ""
        else:
            self._about.value = _OPENING(name=name)
            try:
                self._read(name)
            finally:
                self._about.value = ""
        self._fill_library()
        self.library.value = None
        self.library.value = next(iter(self._library), None)

    def _fill_library(self) -> None:
        self._library = library_of(self.stream if self.dataset is None else self.dataset)
        self.library.options = list(self._library)

    def _take_from_library(self) -> None:
        name = self.library.value
        if name is None:
            self._about.value = ""
            return
        text, shows = self._library[name]
        self._about.value = _SHOWS(shows=shows)
        self.text.value = text
        self._read_pattern()

    def _text_of(self, given: str | Pattern | None) -> str:
        if isinstance(given, Pattern):
            return given.describe()
        if given is None:
            return next((text for text, _ in self._library.values()), "")
        return self._library[given][0] if given in self._library else given

    def _read_pattern(self) -> None:
        """Parse the changed text, measure and plan; or show the error."""
        self._pattern = self._statistics = self._what_if = self._controls = None
        self._sliders.children = ()
        self._runs.forget()
        name = self.library.value
        if name is not None and self._library[name][0] != self.text.value:
            self.library.value = None  # allows choosing it again
        try:
            pattern = parse(self.text.value).with_hierarchy(self.stream.hierarchy)
            self._statistics = measure_statistics(
                pattern, self.stream, seed=self._seed, missing_types="error"
            )
            self._pattern = pattern
            self._controls = Controls(pattern, self._statistics, self._moved)
            self._sliders.children = (self._controls.box,)
            self._show_status(None)
            self._plan_first()
        except Exception as error:
            self._statistics = self._pattern = None
            self._show_status(error)
            self._stale |= {*_TABS}
            self._draw()

    def _plan_first(self) -> None:
        """Plan with the measured statistics, after the pattern or the generators changed."""
        if self._pattern is not None:
            self._plan(None)
            self._stale |= {*_TABS}
            self._draw()

    def _plan_again(self) -> None:
        """Plan with the changed statistics, after a slider moved."""
        if self._what_if is None:
            return
        try:
            self._plan(self._what_if.before)
            self._show_status(None)
        except Exception as error:
            self._show_status(error)
            return
        self._redraw("Plans")

    def _plan(self, before: SideBySide | None) -> None:
        assert self._pattern is not None and self._statistics is not None
        assert self._controls is not None
        self._shared.value = ""  # it was of another state
        self._what_if = what_if(
            self._pattern, self._statistics, generators=self._chosen(), seed=self._seed,
            before=before, **self._controls.changes(),
        )  # fmt: skip

    def _chosen(self) -> Sequence[str]:
        names = self.generators.value or default_generators()
        if self._is_large():
            return [name for name in names if not PLAN_GENERATORS[name].exact]
        return names

    def _is_large(self) -> bool:
        branches = () if self._pattern is None else self._pattern.branches()
        return any(len(branch.positive) > _MOST_EXACT for branch in branches)

    def _to_run(self) -> tuple[EventStream, SideBySide]:
        self._settle()
        if self._what_if is None:
            raise CepbenchError("there is no pattern to run; correct the text above first")
        return self.stream, self._what_if.after

    def _units(self) -> Mapping[str, str]:
        return {} if self.dataset is None else dict(self.dataset.schema["unit"])

    # -- tabs -----------------------------------------------------------------------------------

    def _redraw(self, tab: str) -> None:
        self._stale.add(tab)
        self._guarded(self._draw)

    def _draw(self) -> None:
        """Draw the selected tab if it is out of date."""
        tab = _TABS[self.tabs.selected_index or 0]
        if tab not in self._stale:
            return
        self._stale.discard(tab)
        if tab == "Data":
            # Imports altair, which takes seconds; the app opens with another tab.
            from cepbench.presentation.exploration.rates_chart import rates_chart

            chart = rates_chart(
                rates_over_time(self.stream, self._shown_types(), self.every.value or None)
            )
            show_chart(self._rates, chart)
        elif tab == "Pattern":
            self._graph.value = self._drawn_graph()
        elif tab == "Plans":
            self._side_by_side.value = "" if self._what_if is None else self._what_if._repr_html_()

    def _shown_types(self) -> list[str] | None:
        if self._pattern is None or self.types.index:
            return None
        types = self._pattern.types
        return None if types is None else [*filter(self.stream.type_names.__contains__, types)]

    def _drawn_graph(self) -> str:
        if self._pattern is None:
            return ""
        return predicate_graph(self._pattern, self._statistics)._repr_html_()

    def _snapshot(self) -> str:
        self._settle()
        return str(
            _SNAPSHOT(
                name=self.dataset.name if self.dataset is not None else OWN,
                events=len(self.stream),
                text=self.text.value,
                graph=Markup(self.error or self._drawn_graph()),
                plans="" if self._what_if is None else Markup(self._what_if._repr_html_()),
            )
        )


_SHARED = Html("""<pre class="cep-code">{{ code }}</pre>""")
_STATUS = Html(
    """<p>✓ {{ found }}{% if changes %}; plans are for changed numbers: {{ changes | join("; ") }}\
{% endif %}</p>"""
)
_OPENING = Html("<p>⏳ opening {{ name }} …</p>")
_READ = Html("<p>Only {{ read }} of this data set are read.</p>")
_SHOWS = Html("<p><small>{{ shows }}</small></p>")
_SNAPSHOT = Html(
    """<p><b>{{ name }}</b>: {{ "{:,}".format(events) }} events. In JupyterLab this is an app with \
sliders and tabs.</p>
<pre class="cep-pattern">{{ text }}</pre>{{ graph }}{{ plans }}"""
)
