"""Whether choosing a plan matters: expected partial matches of the best and the written order.

Gains were measured by classes of expected partial matches per event, see
:mod:`cepbench.experiments.studies.kolchinsky2018.gain_map`; ``stakes.toml`` has the numbers and the command
that computes them.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from cepbench.markup import Html
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.creation import Created, created_per_event
from cepbench.planning.planners.generate import plan
from cepbench.planning.statistics.given import statistics_from
from cepbench.planning.statistics.model import Statistics

#: The generator of the best order, and the one for patterns of more than :data:`MOST_EXACT`
#: variables, for which an exact search takes too long.
EXACT, LARGE = "DP-LD", "GREEDY"
MOST_EXACT = 12

#: Orders whose partial matches differ by less than this factor count as equally good.
ALIKE = 1.25


@dataclass(frozen=True, slots=True)
class GainClass:
    """The measured gain of the best order over the written one in one class of patterns."""

    #: Bounds of the class, ``least <= x < below``, in expected partial matches per event of the
    #: written order.
    least: float
    below: float
    #: Geometric mean of the ratio of throughput.
    gain: float
    #: Ends of the middle 80 % of the patterns.
    low: float
    high: float
    patterns: int

    @property
    def label(self) -> str:
        """``below 1``, ``1 to 10`` or ``100 and more``."""
        if not self.least:
            return f"below {self.below:g}"
        if math.isinf(self.below):
            return f"{self.least:g} and more"
        return f"{self.least:g} to {self.below:g}"


@dataclass(frozen=True, slots=True)
class Stakes:
    """The expected effect of choosing a plan, from statistics alone."""

    #: Expected partial matches and matches per event in the order of ``generator`` and in the order
    #: as written.
    best: Created
    written: Created
    generator: str
    #: The class of the written order.
    measured: GainClass

    @property
    def ratio(self) -> float:
        """Partial matches of the written order over those of the best one; 1 if both have none."""
        if self.written.partial_matches == self.best.partial_matches:
            return 1.0
        if not self.best.partial_matches:
            return math.inf
        return self.written.partial_matches / self.best.partial_matches

    @property
    def is_worthwhile(self) -> bool:
        """Whether it saves a factor of :data:`ALIKE` and one partial match per event."""
        saved = self.written.partial_matches - self.best.partial_matches
        return self.ratio >= ALIKE and saved >= 1.0

    def describe(self) -> str:
        """The verdict and the numbers as text."""
        return " ".join(self.sentences())

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serializable dict."""
        return {
            "written": self.written.partial_matches,
            "best": self.best.partial_matches,
            "matches": self.written.matches,
            "generator": self.generator,
            "is_worthwhile": self.is_worthwhile,
            "class": self.measured.label,
            "gain": self.measured.gain,
        }

    def sentences(self) -> list[str]:
        """The verdict with its numbers, and the gains measured in this class."""
        written, best = self.written.partial_matches, self.best.partial_matches
        numbers = (
            f"{_number(written)} expected partial matches per event in the written order, "
            f"{_number(best)} in that of {self.generator}"
        )
        if self.is_worthwhile:
            verdict = "Choosing a plan matters here:"
        elif self.ratio >= ALIKE:
            verdict = "Choosing a plan hardly matters here, as there are few partial matches:"
        else:
            verdict = "The written order is about as good as the best one:"
        its = self.measured
        found = (
            f"Where there are {its.label} per event, best orders had {_number(its.gain)} times the throughput of "
            f"written ones (80 % of {its.patterns} patterns: {_number(its.low)} to {_number(its.high)})."
        )
        return [f"{verdict} {numbers}.", found]

    def _repr_html_(self) -> str:
        return str(_PARAGRAPH(sentences=self.sentences()))


_PARAGRAPH = Html("<p>{% for each in sentences %}{{ each }} {% endfor %}</p>")


def plan_stakes(
    pattern: Pattern | str,
    statistics: Statistics,
    generator: str = "",
    *,
    time_selectivity: str = "adjacent",
) -> Stakes:
    """Whether choosing a plan matters for a pattern, estimated without running it.

    The result has ``describe()``, and is a paragraph in notebooks. The generator of the best order
    is by default DP-LD, for more than 12 variables GREEDY. Other parameters and errors are those of
    :func:`cepbench.planning.planners.generate.plan`.

    Examples
    --------
    >>> import cepbench as cep
    >>> statistics = cep.Statistics(
    ...     cardinalities={"a": 40.0, "b": 20.0, "c": 0.5}, selectivities={("a", "b"): 0.5}
    ... )
    >>> stakes = cep.plan_stakes(
    ...     "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 10 minutes", statistics
    ... )
    >>> round(stakes.written.partial_matches, 2), round(stakes.best.partial_matches, 2)
    (6.61, 0.17)
    >>> stakes.is_worthwhile
    True
    """
    pattern, statistics = pattern_from(pattern), statistics_from(statistics)
    largest = max(len(branch.positive_names) for branch in pattern.branches())
    chosen = generator or (EXACT if largest <= MOST_EXACT else LARGE)
    written, best = (
        created_per_event(
            pattern,
            plan(pattern, statistics, name, time_selectivity=time_selectivity),
            statistics,
            time_selectivity=time_selectivity,
        )
        for name in ("TRIVIAL", chosen)
    )
    return Stakes(best, written, chosen, class_of(written.partial_matches))


def class_of(partial_matches: float) -> GainClass:
    """The class of an expected number of partial matches per event of the written order."""
    return next(
        each for each in gain_classes() if partial_matches < each.below or math.isinf(each.below)
    )


@cache
def gain_classes() -> Sequence[GainClass]:
    """The classes of ``stakes.toml``, by ascending partial matches per event."""
    text = files("cepbench.planning.planners").joinpath("stakes.toml").read_text(encoding="utf-8")
    return [GainClass(**each) for each in tomllib.loads(text)["classes"]]


def _number(value: float) -> str:
    return f"{value:,.0f}" if 9.95 <= value < 1e6 else f"{value:.2g}"
