"""`cep.sweep`: many patterns on one stream, planned by every generator; the runs, and their averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from cepbench.arguments import MOST, callback, elements, number, text, texts, whole
from cepbench.arguments import seed as seed_from
from cepbench.engines.detection.slices import types_of_matches
from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.summary import summarize
from cepbench.experiments.sweeps.cells import OK, check_agreement, results_frame
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import measure_pattern
from cepbench.experiments.sweeps.workload import PatternSpec, draw_workload, user_specs
from cepbench.markup import Html
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.planners.registry import PlanGenerator, generators_from
from cepbench.planning.statistics.arrivals import arrival_table, arrivals_in
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.streams.event_stream import EventStream
from cepbench.streams.given import Frame, events_from
from cepbench.text_table import table_text, terminal_width

if TYPE_CHECKING:
    from altair import TopLevelMixin


#: Heading → column of the averages.
_SHOWN = {
    "patterns": "pattern_set", "plan generator": "generator", "evaluator": "evaluator",
    "events/s": "value", "from": "low", "to": "high", "number": "patterns",
}  # fmt: skip


_LINES = Html("{% for line in lines %}<p>{{ line }}</p>{% endfor %}")


class Sweep(pd.DataFrame):
    """The result of :func:`sweep`: a DataFrame with a row a run, that prints as averages and plots."""

    _metadata: ClassVar = ["seed"]
    #: Of the bootstrap intervals.
    seed: int = 0

    def averages(self, metric: str = "events_per_second") -> pd.DataFrame:
        """Averages over patterns with their intervals; see :func:`cepbench.summarize`."""
        return summarize(pd.DataFrame(self), [metric], seed=self.seed)

    def plot(self, metric: str = "events_per_second") -> TopLevelMixin:  # type: ignore[override]  # pandas has an accessor there
        """Averages over the patterns of each set by generator, as an Altair chart that needs no network."""
        from cepbench.presentation.figures import interactive  # imports altair

        return interactive.bars_by_group(self.averages(metric), metric)

    def _means(self) -> pd.DataFrame:
        """The means over all sizes as texts, one row a set, generator and evaluator; empty without one."""
        found = self.averages()
        found = found[found["size"].isna() & (found["statistic"] == "mean")]
        texts = {
            name: ["" if pd.isna(its) else f"{its:,.0f}" for its in found[name]]
            for name in ("value", "low", "high", "patterns")
        }
        return found.assign(**texts)[[*_SHOWN.values()]]

    def _about(self) -> list[str]:
        """What was run, and what did not end well."""
        failed = self[self["status"] != OK]
        return [
            f"{len(self):,} runs of {self['pattern_id'].nunique():,} patterns, "
            f"{self['generator'].nunique()} plan generators; means over patterns with 95 % intervals:",
            *(
                f"{generator}: {len(its):,} runs {status}, such as {its['reason'].iloc[0]}"
                for (generator, status), its in failed.groupby(["generator", "status"], sort=False)
            ),
        ]

    def __repr__(self) -> str:
        first, *failed = self._about()
        rows = self._means().to_dict("records")
        numbers = ("events/s", "from", "to", "number")
        table = table_text(rows, _SHOWN, right=numbers, width=terminal_width())
        return "\n".join([first, "", table, *failed])

    def _repr_html_(self) -> str:
        first, *failed = self._about()
        table = self._means().set_axis([*_SHOWN], axis="columns").to_html(index=False)
        return f"{_LINES(lines=[first])}{table}{_LINES(lines=failed)}"


def sweep(
    patterns: int | Mapping[str, Pattern | str],
    stream: EventStream | Frame,
    *,
    type: str | None = None,
    time: str | None = None,
    pattern_sets: Sequence[str] = ("sequence",),
    sizes: Sequence[int] = (3, 4, 5),
    window: str = "20 minutes",
    attribute: str = "difference",
    max_partial_matches: float = 1e5,
    generators: Sequence[str | PlanGenerator] | None = None,
    evaluators: Sequence[str] | None = None,
    repetitions: int = 3,
    seconds: float = 0.3,
    seed: int = 0,
    on_progress: Callable[[int, int], object] | None = None,
) -> Sweep:
    """Plan many patterns with every plan generator and run every plan, in this process.

    Equal plans of several generators run once. Sweeps that take long are files, which Spark measures and
    which are resumed: see ``cepbench sweep run``.

    Parameters
    ----------
    patterns : int or mapping
        How many to draw of each size in each set, as [kolchinsky2018]_, section 6.2, does; or patterns by
        name, whose sets, sizes and window are their own.
    stream, type, time
        See :func:`cepbench.evaluate`.
    pattern_sets, sizes, window, attribute, max_partial_matches
        Of drawn patterns; see :func:`~cepbench.experiments.sweeps.workload.draw_workload`. Their conditions
        compare ``attribute``.
    generators, evaluators, repetitions, seconds
        See :func:`cepbench.compare`; ``seconds`` are of each different plan of each pattern.
    seed : int
        Of drawn patterns, sampled statistics, randomized plan generators and intervals.
    on_progress : callable, optional
        Called with the numbers of measured and of all patterns.

    Returns
    -------
    Sweep
        A DataFrame with the columns of :data:`~cepbench.experiments.sweeps.cells.RESULT_SCHEMA`, a row a run.

    Raises
    ------
    ExperimentError
        If an argument is invalid, no such patterns can be drawn, or two plans found different matches.
    PlanGeneratorError, EvaluationError, StreamError
        As :func:`cepbench.compare`.
    """
    seed = seed_from(seed, ExperimentError, most=MOST)
    told = callback(on_progress, "on_progress", ExperimentError)
    grid = Grid(
        generators=generators_from(generators),
        evaluators=None if evaluators is None else texts(evaluators, "evaluators", ExperimentError),
        repetitions=whole(repetitions, "repetitions", ExperimentError, least=1),
        seconds=number(seconds, "seconds", ExperimentError, least=0.0, most=3_600.0),
        share_equal_plans=True,
        seed=seed,
    )
    stream = events_from(stream, type, time)
    if isinstance(patterns, Mapping) and patterns:
        named = [(name, str(its)) for name, its in patterns.items()]
        specs: list[PatternSpec] = user_specs(named, set(stream.counts_by_type()), seed)
    elif isinstance(patterns, Integral):
        rates = arrival_table([arrivals_in(stream)])["rate"]
        window = text(window, "window", ExperimentError)
        if not (isinstance(max_partial_matches, float) and max_partial_matches == math.inf):
            max_partial_matches = number(
                max_partial_matches, "max_partial_matches", ExperimentError, least=0.0
            )
        length = parse(f"PATTERN SEQ(A a, B b) WITHIN {window}").window.seconds
        specs = draw_workload(
            {str(name): float(rate) * length for name, rate in rates.items() if rate > 0},
            pattern_sets=texts(pattern_sets, "pattern_sets", ExperimentError),
            sizes=[
                whole(size, "each of sizes", ExperimentError, least=2)
                for size in elements(sizes, "sizes", "[3, 4]", ExperimentError)
            ],
            patterns=int(patterns),
            seed=seed,
            window=window,
            attribute=text(attribute, "attribute", ExperimentError),
            max_partial_matches=max_partial_matches,
        )
    else:
        raise ExperimentError("patterns must be a number of patterns to draw, or patterns by name")
    rows: list[Mapping[str, Any]] = []
    for done, spec in enumerate(specs, 1):
        types = types_of_matches(spec.pattern)
        part = stream if types is None else stream.of_types(types)
        statistics = measure_statistics(spec.pattern, part, seed=seed)
        columns = {"strategy": str(spec.pattern.strategy)}
        rows += measure_pattern(spec, part, statistics, grid, columns=columns)
        if told:
            told(done, len(specs))
    results = results_frame(rows)
    check_agreement(results)
    found = Sweep(results)
    found.seed = seed
    return found
