"""Random pattern sets in the shape of [kolchinsky2018]_, section 6.2.

Every pattern is drawn by a generator of its own, seeded by (seed, pattern set, size, number), so
pattern 7 of a set is the same whether ten or a hundred are drawn.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from cepbench.errors import ExperimentError, UnsatisfiablePatternError
from cepbench.patterns.model import Pattern, quoted_unless_plain
from cepbench.patterns.parse import parse
from cepbench.seeds import rng_for

#: Most expected events per window of an identifier under KL, unless a workload says otherwise. Of N
#: events in a window there are 2^N sets to list; with N from a Poisson law of mean m that is e^m on
#: average, and now and then very much more.
MAX_KLEENE_EVENTS = 5.0

#: How many sequences a disjunction has.
BRANCHES = 3

#: Identifier tuples drawn at a time, and in all, before a bound on the work is called hopeless.
_DRAWS_AT_ONCE = 256
_MOST_DRAWS = 200_000


@lru_cache(maxsize=256)
def _parsed(text: str) -> Pattern:
    """A pattern of hundreds of events takes a tenth of a second to read."""
    return parse(text)


@dataclass(frozen=True, slots=True)
class PatternSpec:
    """One pattern of a workload.

    Attributes
    ----------
    pattern_id : str
        ``<set>-<size>-<number>``; unique within a workload and usable as a file name.
    pattern_set : str
        A key of :data:`PATTERN_SETS`.
    size : int
        Number of participating events; under OR, of each branch.
    text : str
        The pattern in the pattern language.
    seed : int
        Seed of the workload that it was drawn for.
    """

    pattern_id: str
    pattern_set: str
    size: int
    text: str
    seed: int

    @property
    def pattern(self) -> Pattern:
        """The parsed pattern."""
        return _parsed(self.text)

    def under(self, strategy: str = "any", window: str = "") -> PatternSpec:
        """The same pattern under a selection strategy and a window, both as the language has them.

        Without a window, under its own.
        """
        before, _, own = self.text.rpartition(" WITHIN ")
        if strategy != "any":
            before += f" STRATEGY {strategy}"
        return replace(self, text=f"{before} WITHIN {window or own}")

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Draw:
    """What a pattern set draws one pattern from.

    Attributes
    ----------
    identifiers : tuple of str
    cardinalities : ndarray of float, shape (identifiers,)
        Expected events of each identifier in one window.
    size : int
    rng : numpy.random.Generator
        Of this one pattern.
    attribute, window : str
        What predicates compare, and the text after WITHIN.
    max_partial_matches : float or None
    max_kleene_events : float
        See :func:`draw_workload`.
    """

    identifiers: tuple[str, ...]
    cardinalities: np.ndarray
    size: int
    rng: np.random.Generator
    attribute: str
    window: str
    max_partial_matches: float | None
    max_kleene_events: float


def _sequence(draw: Draw) -> str:
    return _flat_pattern(draw, "SEQ")


def _negation(draw: Draw) -> str:
    return _flat_pattern(draw, "SEQ", negated=int(draw.rng.integers(draw.size)))


def _conjunction(draw: Draw) -> str:
    return _flat_pattern(draw, "AND")


def _kleene(draw: Draw) -> str:
    return _flat_pattern(draw, "SEQ", kleene=int(draw.rng.integers(draw.size)))


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
    "sequence": _sequence,
    "negation": _negation,
    "conjunction": _conjunction,
    "kleene": _kleene,
    "disjunction": _disjunction,
}


def draw_workload(
    cardinalities: Mapping[str, float],
    *,
    pattern_sets: Sequence[str] = tuple(PATTERN_SETS),
    sizes: Sequence[int] = (3, 4, 5, 6, 7),
    patterns: int = 100,
    seed: int = 0,
    window: str = "20 minutes",
    attribute: str = "difference",
    max_partial_matches: float | None = None,
    max_kleene_events: float = MAX_KLEENE_EVENTS,
) -> list[PatternSpec]:
    """Draw ``patterns`` patterns of each size for each pattern set.

    A pattern takes ``size`` identifiers, all different, and ``size // 2`` predicates, each over a
    pair of variables of its own, comparing ``attribute`` by ``<`` or ``>``. "Roughly equal to
    half the size" [kolchinsky2018]_ is rounded down because the example printed there has three
    events and one predicate.

    The sets: ``sequence`` and ``conjunction`` are flat. ``negation`` is a sequence with NOT on one
    of its items, ``kleene`` one with KL on one, at any place with equal probability; the item is
    one of the ``size`` participating events and may be in a predicate. ``disjunction`` is an OR of
    three sequences over variables of their own, each with ``size`` events and ``size // 2``
    predicates: the paper does not say whether its sizes count one sequence or all three, and
    sequences of one or two events would leave nothing to plan.

    Differs from the paper: the identifier under KL has no more than ``max_kleene_events`` expected
    events per window, since every set of its events is a match of its own; the paper does not say
    how it kept the number of sets down. If ``max_partial_matches`` is given, identifiers are drawn
    again until :func:`most_partial_matches` of every branch is no more than that, so patterns over
    many frequent identifiers are missing. Results must state both. And a pattern whose predicates
    contradict each other, as ``a < b``, ``b < c`` and ``a > c`` do, is drawn again.

    Parameters
    ----------
    cardinalities : mapping of str to float
        Expected events of each identifier in one window. Drawing does not depend on its order.
    pattern_sets : sequence of str
        Keys of :data:`PATTERN_SETS`.
    sizes : sequence of int
    patterns : int
        How many of each size in each set (the paper: 100).
    seed : int
    window : str
        The text after WITHIN.
    attribute : str
        What predicates compare.
    max_partial_matches : float, optional
        Bound on the expected partial matches in any state of any plan, per window. A negated
        item is in none of them, one under KL counts with 2^(rW) sets.
    max_kleene_events : float
        Bound on the expected events per window of the identifier under KL.

    Returns
    -------
    list of PatternSpec

    Raises
    ------
    ExperimentError
        If a set is unknown, there are fewer identifiers than a size, or the bounds leave none.

    Notes
    -----
    Source: [kolchinsky2018]_, section 6.2.
    """
    for name in pattern_sets:
        if name not in PATTERN_SETS:
            raise ExperimentError(
                f"unknown pattern set {name!r}; there are {', '.join(PATTERN_SETS)}"
            )
    if patterns < 1:
        raise ExperimentError(f"{patterns} patterns per size: a workload needs at least one")
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
    specs = []
    for name in pattern_sets:
        for size in sizes:
            for number in range(patterns):
                rng = rng_for(seed, name, size, number)
                draw = Draw(
                    identifiers,
                    expected,
                    size,
                    rng,
                    attribute,
                    window,
                    max_partial_matches,
                    max_kleene_events,
                )
                text = _satisfiable(draw, PATTERN_SETS[name])
                specs.append(PatternSpec(f"{name}-{size}-{number:04d}", name, size, text, seed))
    return specs


def most_partial_matches(cardinalities: np.ndarray, *, ordered: bool) -> np.ndarray:
    """The most partial matches that one state of any plan is expected to hold, per window.

    A state binds some subset of the variables: the product of their cardinalities, divided by the
    factorial of their number if their events must come in one order. Predicates are left out, so
    this bounds every plan from above. The worst subset of k variables is the k most frequent.

    Parameters
    ----------
    cardinalities : ndarray of float, shape (..., variables)
        Expected events in one window.
    ordered : bool
        Whether the variables form a sequence.

    Returns
    -------
    ndarray of float, shape (...)

    Notes
    -----
    Source: the intermediate results of [kolchinsky2018]_, section 3.1, with all selectivities 1
    (the exact 1/k! for time).
    """
    falling = -np.sort(-cardinalities, axis=-1)
    if ordered:
        falling = falling / np.arange(1, falling.shape[-1] + 1)
    return np.asarray(np.cumprod(falling, axis=-1).max(axis=-1))


def _satisfiable(draw: Draw, draw_text: Callable[[Draw], str]) -> str:
    """The first drawn pattern that can have a match, as text in normal form."""
    while True:
        try:
            return str(parse(draw_text(draw)))
        except UnsatisfiablePatternError:
            pass  # a few of a hundred patterns of seven events; almost none twice


def _flat_pattern(
    draw: Draw, operator: str, *, negated: int | None = None, kleene: int | None = None
) -> str:
    """An operator over variables a, b, c, …; the items of these numbers are under NOT or KL."""
    names = _variable_names(draw.size)
    items, conditions = _branch(draw, operator, names, negated=negated, kleene=kleene)
    return _text(draw, f"{operator}({items})", conditions)


def _text(draw: Draw, structure: str, conditions: Sequence[str]) -> str:
    return f"PATTERN {structure} WHERE {' AND '.join(conditions)} WITHIN {draw.window}"


def _branch(
    draw: Draw,
    operator: str,
    names: Sequence[str],
    *,
    negated: int | None = None,
    kleene: int | None = None,
) -> tuple[str, list[str]]:
    """Items for these variables, as text, and predicates over random pairs of them."""
    chosen = _identifiers_within_bounds(
        draw, ordered=operator == "SEQ", negated=negated, kleene=kleene
    )
    items = []
    for place, (which, name) in enumerate(zip(chosen, names, strict=True)):
        item = f"{quoted_unless_plain(draw.identifiers[which])} {name}"
        wrapper = "NOT" if place == negated else "KL" if place == kleene else ""
        items.append(f"{wrapper}({item})" if wrapper else item)
    pairs = [(first, second) for second in range(draw.size) for first in range(second)]
    picked = sorted(draw.rng.choice(len(pairs), size=draw.size // 2, replace=False).tolist())
    conditions = []
    for which in picked:
        first, second = pairs[which]
        comparison = "<" if draw.rng.integers(2) else ">"
        conditions.append(
            f"{names[first]}.{draw.attribute} {comparison} {names[second]}.{draw.attribute}"
        )
    return ", ".join(items), conditions


def _identifiers_within_bounds(
    draw: Draw, *, ordered: bool, negated: int | None, kleene: int | None
) -> np.ndarray:
    """Indices of different identifiers in random order; drawn again until within the bounds."""
    if draw.max_partial_matches is None and kleene is None:
        return draw.rng.choice(len(draw.identifiers), size=draw.size, replace=False)
    bound = np.inf if draw.max_partial_matches is None else draw.max_partial_matches
    for _ in range(_MOST_DRAWS // _DRAWS_AT_ONCE):
        # Keeping only tuples without a repetition makes this a draw without replacement.
        shape = (_DRAWS_AT_ONCE, draw.size)
        tuples = draw.rng.integers(len(draw.identifiers), size=shape)
        fits = (np.diff(np.sort(tuples, axis=1), axis=1) > 0).all(axis=1)
        events = draw.cardinalities[tuples]
        if kleene is not None:
            fits &= events[:, kleene] <= draw.max_kleene_events
            with np.errstate(over="ignore"):  # infinitely many sets are above any bound
                events[:, kleene] = np.exp2(events[:, kleene])
        if negated is not None:
            events = np.delete(events, negated, axis=1)
        fitting = np.flatnonzero(fits & (most_partial_matches(events, ordered=ordered) <= bound))
        if len(fitting):
            return tuples[fitting[0]]
    limits = [f"max_partial_matches={bound:g}"] if np.isfinite(bound) else []
    if kleene is not None:
        limits.append(f"max_kleene_events={draw.max_kleene_events:g}")
    raise ExperimentError(
        f"none of {_MOST_DRAWS:,} draws of {draw.size} identifiers stays below "
        f"{' and '.join(limits)}; raise it, use smaller patterns, or "
        "use a data set with rarer identifiers"
    )


def _variable_names(size: int) -> list[str]:
    letters = string.ascii_lowercase
    return [letters[k] if size <= len(letters) else f"v{k + 1}" for k in range(size)]
