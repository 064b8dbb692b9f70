"""Random pattern sets in the shape of [kolchinsky2018]_, section 6.2.

Every pattern is drawn by a generator of its own, seeded by (seed, pattern set, size, number), so
pattern 7 of a set is the same whether ten or a hundred are drawn.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from cepbench.arguments import choice, whole
from cepbench.errors import ExperimentError, UnsatisfiablePatternError, did_you_mean
from cepbench.patterns.model import Pattern, quoted_unless_plain
from cepbench.patterns.parse import parse
from cepbench.planning.workloads.model import Workload
from cepbench.seeds import rng_for

#: Default bound on the expected events per window of an identifier under KL. N events in a window
#: have 2^N sets; with N from a Poisson distribution of mean m that is e^m on average, at times far
#: more.
MAX_KLEENE_EVENTS = 5.0

#: The pattern sets of user-defined patterns and workloads in results.
USER, WORKLOAD = "user", "workload"

#: Number of sequences of a disjunction.
BRANCHES = 3

#: How many predicates a pattern of n events has: ``n/2``, rounded down, or ``n``.
PREDICATES = ("n/2", "n")

#: Identifier tuples drawn at a time, and in total before a bound is reported as too low.
_DRAWS_AT_ONCE = 256
_MOST_DRAWS = 200_000


@lru_cache(maxsize=256)
def _parsed(text: str) -> Pattern:
    """A pattern of hundreds of events takes a tenth of a second to read."""
    return parse(text)


@dataclass(frozen=True, slots=True)
class PatternSpec:
    """One pattern of a sweep, or a workload of several that run together."""

    #: ``<set>-<size>-<number>``; unique within a workload and usable as a file name.
    pattern_id: str
    #: A key of :data:`PATTERN_SETS`, :data:`USER` or :data:`WORKLOAD`.
    pattern_set: str
    #: Number of participating events; under OR, of each branch; of a workload, of its largest
    #: query.
    size: int
    #: The pattern in the pattern language; of a workload a line for each query.
    text: str
    #: Seed of the workload that it was drawn for.
    seed: int
    #: Name of the regime of a sweep that it was drawn for; empty if there are none.
    regime: str = ""
    #: ``out_of_bounds``, ``contradictory``: draws rejected before this one: identifiers beyond a
    #: bound, predicates that contradict each other.
    out_of_bounds: int = 0
    contradictory: int = 0

    @property
    def pattern(self) -> Pattern:
        """The parsed pattern."""
        return _parsed(self.text)

    @property
    def query(self) -> Pattern | Workload:
        """The pattern, or the workload."""
        return Workload.parse(self.text) if self.pattern_set == WORKLOAD else self.pattern

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The pattern, or those of the workload."""
        return tuple(self.query.queries.values())

    def under(self, strategy: str = "any", window: str = "") -> PatternSpec:
        """The same under a selection strategy and a window, those of its own by default."""
        if self.pattern_set == WORKLOAD:
            lines = (replace(self, text=line, pattern_set=USER) for line in self.text.splitlines())
            return replace(self, text="\n".join(line.under(window=window).text for line in lines))
        before, _, own = self.text.rpartition(" WITHIN ")
        if strategy != "any":
            before, output, form = before.partition(" OUTPUT ")
            before = f"{before} STRATEGY {strategy}{output}{form}"
        return replace(self, text=f"{before} WITHIN {window or own}")


@dataclass(frozen=True, slots=True)
class GivenSpec(PatternSpec):
    """A pattern or workload that is there, under its own strategy and window."""

    given: Pattern | Workload | None = None

    @classmethod
    def of(cls, given: Pattern | Workload) -> GivenSpec:
        """The specification of a pattern or workload."""
        size = max(len(each.names) for each in given.queries.values())
        return cls("given", WORKLOAD if given.by_query else USER, size, str(given), 0, given=given)

    @property
    def query(self) -> Pattern | Workload:
        assert self.given is not None
        return self.given

    def under(self, strategy: str = "any", window: str = "") -> PatternSpec:
        return self


@dataclass(slots=True)
class Draw:
    """What one pattern is drawn from, and how often it was drawn again."""

    identifiers: tuple[str, ...]
    #: Shape (identifiers,); expected events of each identifier in one window.
    cardinalities: np.ndarray
    size: int
    #: Of this one pattern.
    rng: np.random.Generator
    #: The text after WITHIN.
    window: str = "20 minutes"
    #: What predicates compare.
    attribute: str = "difference"
    #: Bound on the expected partial matches in any state of any plan, per window. A negated item is
    #: in none of them, one under KL counts with 2^(rW) sets.
    max_partial_matches: float | None = None
    #: Bound on the expected events per window of the identifier under KL.
    max_kleene_events: float = MAX_KLEENE_EVENTS
    #: ``least_rate``, ``most_rate``: minimum and maximum expected events per window of an
    #: identifier that is not under KL.
    least_rate: float | None = None
    most_rate: float | None = None
    #: One of :data:`PREDICATES`: how many predicates a pattern has.
    predicates: str = "n/2"
    #: Bounds of the selectivities of predicates, drawn uniformly in their logarithm (the paper:
    #: 0.002 to 0.88). By default predicates compare the attribute as it is.
    selectivities: tuple[float, float] | None = None
    #: Quantiles of ``attribute`` for each identifier, each standing for as many events; needed for
    #: ``selectivities``. See :func:`cepbench.spark.statistics.attribute_quantiles`.
    quantiles: Mapping[str, np.ndarray] = field(default_factory=dict)
    #: Identifiers rejected so far.
    out_of_bounds: int = 0

    @property
    def number(self) -> int:
        """How many predicates the pattern has."""
        pairs = self.size * (self.size - 1) // 2
        return self.size // 2 if self.predicates == "n/2" else min(self.size, pairs)


def _flat(draw: Draw, operator: str, wrapper: str = "") -> str:
    """An operator over variables a, b, c, …; with a wrapper, NOT or KL, on one of the items."""
    place = int(draw.rng.integers(draw.size)) if wrapper else None
    items, conditions = _branch(draw, operator, _variable_names(draw.size), wrapper, place)
    return _text(draw, f"{operator}({items})", conditions)


def _disjunction(draw: Draw) -> str:
    names = _variable_names(BRANCHES * draw.size)
    branches, conditions = [], []
    for first in range(0, len(names), draw.size):
        items, compared = _branch(draw, "SEQ", names[first : first + draw.size])
        branches.append(f"SEQ({items})")
        conditions += compared
    return _text(draw, f"OR({', '.join(branches)})", conditions)


#: Pattern set -> the function that draws one pattern's text, in the order of [kolchinsky2018]_'s figures.
PATTERN_SETS: dict[str, Callable[[Draw], str]] = {
    "sequence": partial(_flat, operator="SEQ"),
    "negation": partial(_flat, operator="SEQ", wrapper="NOT"),
    "conjunction": partial(_flat, operator="AND"),
    "kleene": partial(_flat, operator="SEQ", wrapper="KL"),
    "disjunction": _disjunction,
}


def draw_workload(
    cardinalities: Mapping[str, float],
    *,
    pattern_sets: Sequence[str] = tuple(PATTERN_SETS),
    sizes: Sequence[int] = (3, 4, 5, 6, 7),
    patterns: int = 100,
    seed: int = 0,
    least_rate: float | Mapping[str, float] | None = None,
    regime: str = "",
    **options: Any,
) -> list[PatternSpec]:
    """Draw ``patterns`` patterns of each size for each pattern set.

    A pattern takes ``size`` identifiers, all different, and ``size // 2`` predicates, each over a
    pair of variables of its own, comparing ``attribute`` by ``<`` or ``>``. "Roughly equal to
    half the size" [kolchinsky2018]_ is rounded down because the example printed there has three
    events and one predicate.

    How many partial matches plans create is decided by the rates of the identifiers and the
    selectivities of the predicates, so both can be drawn from chosen ranges. For a selectivity p a
    predicate is ``a.x < b.x + c``, where c is the p-quantile of the difference of the attribute
    over independent pairs of events.

    The sets: ``sequence`` and ``conjunction`` are flat. ``negation`` is a sequence with NOT on one
    of its items, ``kleene`` one with KL on one, at any place with equal probability; the item is
    one of the ``size`` participating events and may be in a predicate. ``disjunction`` is an OR of
    three sequences over variables of their own, each with ``size`` events and ``size // 2``
    predicates: the paper does not say whether its sizes count one sequence or all three, and
    sequences of one or two events would leave nothing to plan.

    Differs from the paper: the identifier under KL has no more than ``max_kleene_events`` expected
    events per window, since every set of its events is a match of its own; the paper does not say
    how it kept the number of sets down. If ``max_partial_matches`` is given, identifiers are drawn
    again until :func:`most_partial_matches` of every branch is within it, so patterns over
    many frequent identifiers are missing. Results must state both. A pattern whose predicates
    contradict each other, as ``a < b``, ``b < c`` and ``a > c`` do, is drawn again. Every pattern
    states how many draws were rejected before it.

    An ExperimentError if a set is unknown, there are fewer identifiers than a size, or the bounds
    leave too few.

    Source: [kolchinsky2018]_, section 6.2.

    Parameters
    ----------
    cardinalities
        Expected events of each identifier in one window. Drawing does not depend on its order.
    pattern_sets
        Keys of :data:`PATTERN_SETS`.
    patterns
        How many of each size in each set (the paper: 100).
    least_rate
        As of :class:`Draw`; or one for each pattern set, by name.
    regime
        Name of the regime, which the patterns' names begin with.
    **options
        Of :class:`Draw`: ``window``, ``attribute``, ``max_partial_matches``, ``max_kleene_events``,
        ``most_rate``, ``predicates``, ``selectivities`` and ``quantiles``.
    """
    for name in pattern_sets:
        choice(name, "each of pattern_sets", PATTERN_SETS, ExperimentError)
    whole(patterns, "patterns", ExperimentError, least=1)
    identifiers = tuple(sorted(cardinalities))
    for size in sizes:
        if not 2 <= size <= len(identifiers):
            raise ExperimentError(
                f"pattern size {size}: sizes run from 2 to the number of identifiers, "
                f"here {len(identifiers)}"
            )
    expected = np.array([cardinalities[name] for name in identifiers], dtype=np.float64)
    if not (expected > 0).all():
        at = int(np.flatnonzero(~(expected > 0))[0])
        raise ExperimentError(
            f"identifier {identifiers[at]!r} has {expected[at]} events per window; "
            "leave out identifiers that have none"
        )
    choice(options.get("predicates", "n/2"), "predicates", PREDICATES, ExperimentError)
    specs = []
    for name in pattern_sets:
        least = least_rate.get(name) if isinstance(least_rate, Mapping) else least_rate
        for size in sizes:
            for number in range(patterns):
                rng = rng_for(seed, name, size, number)
                draw = Draw(identifiers, expected, size, rng, least_rate=least, **options)
                text, again = _satisfiable(draw, PATTERN_SETS[name])
                pattern_id = f"{f'{regime}-' if regime else ''}{name}-{size}-{number:04d}"
                rejected = draw.out_of_bounds, again
                specs.append(PatternSpec(pattern_id, name, size, text, seed, regime, *rejected))
    return specs


def count_draws(specs: Sequence[PatternSpec]) -> dict[str, dict[str, int]]:
    """``patterns`` and rejected draws, ``out_of_bounds`` and ``contradictory``, of each regime."""
    found: dict[str, dict[str, int]] = {}
    for spec in specs:
        counts = found.setdefault(
            spec.regime, {"patterns": 0, "out_of_bounds": 0, "contradictory": 0}
        )
        counts["patterns"] += 1
        counts["out_of_bounds"] += spec.out_of_bounds
        counts["contradictory"] += spec.contradictory
    return found


def user_specs(
    texts: Sequence[tuple[str, str]],
    known_types: Collection[str] | None,
    seed: int,
    pattern_set: str = USER,
) -> list[PatternSpec]:
    """User-defined patterns or workloads by name and text; their size is that of their largest branch.

    ``seed`` is that of the sweep, ``pattern_set`` :data:`USER`, or :data:`WORKLOAD` for workloads. An
    ExperimentError if a pattern asks for a type that the data has no events of; ``known_types`` has
    those with events, or is None if they are not known yet.
    """
    specs = []
    for name, text in texts:
        spec = PatternSpec(f"{pattern_set}-{name}", pattern_set, 0, text, seed)
        for variable in (each for pattern in spec.patterns for each in pattern.variables):
            if known_types is None or variable.type is None:
                continue
            if variable.type not in known_types:
                of = "workload" if pattern_set == WORKLOAD else "pattern"
                raise ExperimentError(
                    f"{of} {name!r}: the data has no event of type {variable.type!r} "
                    f"(variable {variable.name!r}){did_you_mean(variable.type, known_types)}"
                )
        branches = (branch for pattern in spec.patterns for branch in pattern.branches())
        specs.append(replace(spec, size=max(len(branch.variables) for branch in branches)))
    return specs


def most_partial_matches(cardinalities: np.ndarray, *, ordered: bool) -> np.ndarray:
    """Upper bound on the expected partial matches per window in one state of any plan.

    A state binds some subset of the variables: the product of their cardinalities, divided by the
    factorial of their number if their events must come in one order. Predicates are left out, so
    this bounds every plan from above. The worst subset of k variables is the k most frequent.

    ``cardinalities``: shape (..., variables), expected events in one window. ``ordered``: whether
    the variables form a sequence.

    Source: the intermediate results of [kolchinsky2018]_, section 3.1, with all selectivities 1
    (the exact 1/k! for time).
    """
    falling = -np.sort(-cardinalities, axis=-1)
    if ordered:
        falling = falling / np.arange(1, falling.shape[-1] + 1)
    return np.asarray(np.cumprod(falling, axis=-1).max(axis=-1))


def _satisfiable(draw: Draw, draw_text: Callable[[Draw], str]) -> tuple[str, int]:
    """The first drawn pattern that can have a match, in normal form, and how many cannot."""
    for contradictory in range(_MOST_DRAWS):
        with suppress(UnsatisfiablePatternError):
            return str(parse(draw_text(draw))), contradictory
    raise ExperimentError(
        f"none of {_MOST_DRAWS:,} draws of {draw.number} predicates over {draw.size} events "
        "has a match; draw fewer predicates, or larger patterns"
    )


def _text(draw: Draw, structure: str, conditions: Sequence[str]) -> str:
    return f"PATTERN {structure} WHERE {' AND '.join(conditions)} WITHIN {draw.window}"


def _branch(
    draw: Draw, operator: str, names: Sequence[str], wrapper: str = "", place: int | None = None
) -> tuple[str, list[str]]:
    """Items for these variables, as text, and predicates over random pairs of them."""
    chosen = _identifiers_within_bounds(draw, operator == "SEQ", wrapper, place)
    items = [
        f"{quoted_unless_plain(draw.identifiers[which])} {name}"
        for which, name in zip(chosen, names, strict=True)
    ]
    if place is not None:
        items[place] = f"{wrapper}({items[place]})"
    pairs = [(first, second) for second in range(draw.size) for first in range(second)]
    picked = sorted(draw.rng.choice(len(pairs), size=draw.number, replace=False).tolist())
    conditions = []
    for which in picked:
        first, second = pairs[which]
        comparison = "<" if draw.rng.integers(2) else ">"
        offset = _offset(draw, chosen[first], chosen[second], comparison)
        conditions.append(
            f"{names[first]}.{draw.attribute} {comparison} {names[second]}.{draw.attribute}{offset}"
        )
    return ", ".join(items), conditions


def _offset(draw: Draw, first: int, second: int, comparison: str) -> str:
    """What is added to the right side of a predicate, for a selectivity drawn from the bounds."""
    if draw.selectivities is None:
        return ""
    low, high = np.log(draw.selectivities)
    wanted = math.exp(draw.rng.uniform(low, high))
    ours, theirs = (draw.quantiles[draw.identifiers[which]] for which in (first, second))
    difference = np.subtract.outer(ours, theirs)
    shift = np.quantile(difference, wanted if comparison == "<" else 1.0 - wanted)
    return f" {'-' if shift < 0 else '+'} {abs(shift):.6f}"


def _identifiers_within_bounds(
    draw: Draw, ordered: bool, wrapper: str, place: int | None
) -> np.ndarray:
    """Indices of different identifiers in random order; drawn again until within the bounds."""
    is_kleene = wrapper == "KL"
    bound = math.inf if draw.max_partial_matches is None else draw.max_partial_matches
    least = draw.least_rate or 0.0
    most = math.inf if draw.most_rate is None else draw.most_rate
    known = np.arange(len(draw.identifiers))
    frequent = known[(draw.cardinalities >= least) & (draw.cardinalities <= most)]
    if bound == math.inf and not is_kleene and len(frequent) >= draw.size:
        return frequent[draw.rng.choice(len(frequent), size=draw.size, replace=False)]
    for _ in range(_MOST_DRAWS // _DRAWS_AT_ONCE if len(frequent) else 0):
        # Keeping only tuples without a repetition makes this a draw without replacement.
        shape = (_DRAWS_AT_ONCE, draw.size)
        tuples = frequent[draw.rng.integers(len(frequent), size=shape)]
        if is_kleene and len(frequent) < len(known):  # its rate has a bound of its own
            tuples[:, place] = draw.rng.integers(len(known), size=_DRAWS_AT_ONCE)
        different = np.asarray((np.diff(np.sort(tuples, axis=1), axis=1) > 0).all(axis=1))
        fits = different.copy()
        events = draw.cardinalities[tuples]
        if is_kleene:
            fits &= events[:, place] <= draw.max_kleene_events
            with np.errstate(over="ignore"):  # infinitely many sets are above any bound
                events[:, place] = np.exp2(events[:, place])
        elif place is not None:
            events = np.delete(events, place, axis=1)
        fitting = np.flatnonzero(fits & (most_partial_matches(events, ordered=ordered) <= bound))
        first = int(fitting[0]) if len(fitting) else _DRAWS_AT_ONCE
        draw.out_of_bounds += int(different[:first].sum())
        if len(fitting):
            return tuples[first]
    limits = [f"max_partial_matches={bound:g}"] if bound < math.inf else []
    limits += [f"max_kleene_events={draw.max_kleene_events:g}"] if is_kleene else []
    if least > 0.0 or most < math.inf:
        limits.append(f"rates from {least:g} to {most:g} ({len(frequent)} of {len(known)})")
    raise ExperimentError(
        f"none of {_MOST_DRAWS:,} draws of {draw.size} identifiers stays within "
        f"{' and '.join(limits)}; widen a bound, use smaller patterns, or "
        "use a data set with other rates"
    )


def _variable_names(size: int) -> list[str]:
    letters = string.ascii_lowercase
    return [letters[k] if size <= len(letters) else f"v{k + 1}" for k in range(size)]
