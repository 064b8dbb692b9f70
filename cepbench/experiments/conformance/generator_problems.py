"""Planning problems for checks of plan generators: one of each kind and size, small and seeded.

A problem is identified by its seed and its name, kind and number of variables, as in
``sequence-4``, so that one line reproduces a failed check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from cepbench.arguments import elements, text, texts, whole
from cepbench.arguments import seed as seed_from
from cepbench.errors import ExperimentError, did_you_mean
from cepbench.patterns.parse import parse
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.logarithms import SMALLEST
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.statistics.model import Statistics
from cepbench.seeds import rng_for

#: Numbers of variables, small enough to compare every plan with the best one.
SIZES = (1, 2, 3, 4, 5, 6, 8, 10)

#: Events per window of a KL whose number of sets exceeds a float.
MANY_EVENTS = 1_100.0


#: Expected events per window, of shape (n,), and selectivities, symmetric of shape (n, n) with the
#: filters on the diagonal; both float.
Numbers = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class ProblemKind:
    """One kind of planning problem."""

    name: str
    draw: Callable[[int, np.random.Generator], Numbers]
    operator: str = "SEQ"
    strategy: str = "any"
    time_selectivity: str = "adjacent"
    alpha: float = 0.0
    #: ``KL`` for a second variable under KL, ``NOT`` for an additional negated one.
    special: str = ""


def check_problem(name: str, *, seed: int = 0) -> CostedProblem:
    """The planning problem of a name: a key of :data:`PROBLEM_KINDS`, a hyphen, the number of variables.

    Raises ExperimentError if there is no such kind, the number is not one of at least 1, or
    ``seed`` is no seed.
    """
    kind, _, size = text(name, "name", ExperimentError).rpartition("-")
    if kind not in PROBLEM_KINDS or not size.isdecimal() or int(size) < 1:
        known = [f"{kind}-4" for kind in PROBLEM_KINDS]
        raise ExperimentError(
            f"no problem {name!r}: a name is a kind and a number of events, such as sequence-4; "
            f"kinds are {', '.join(PROBLEM_KINDS)}{did_you_mean(name, known, cutoff=0.5)}"
        )
    return _made(PROBLEM_KINDS[kind], int(size), seed_from(seed, ExperimentError))


def check_problems(
    kinds: Sequence[str] | None = None, sizes: Sequence[int] = SIZES, *, seed: int = 0
) -> dict[str, CostedProblem]:
    """Planning problems by name, small ones first, of kinds in :data:`PROBLEM_KINDS`, by default all.

    Sizes are numbers of variables. Only the first kind has a problem of a single variable.

    Raises ExperimentError if there is no such kind, a size or the seed is invalid, or there is no
    problem to try.
    """
    wanted = texts(PROBLEM_KINDS if kinds is None else kinds, "problems", ExperimentError)
    sizes = [
        whole(size, "each of sizes", ExperimentError)
        for size in elements(sizes, "sizes", "[2, 3, 4]", ExperimentError)
    ]
    if not wanted or not len(sizes):
        raise ExperimentError("no kind of problem or no size is left: nothing would be tried")
    names = [
        f"{kind}-{size}" for size in sorted(sizes) for kind in (wanted if size > 1 else wanted[:1])
    ]
    return {name: check_problem(name, seed=seed) for name in names}


def _skewed(n: int, rng: np.random.Generator) -> Numbers:
    """Rates over four powers of ten; half of the pairs and a third of the variables filtered."""
    return 10.0 ** rng.uniform(-1, 3, n), _filtered(n, rng, pairs=0.5, single=0.33)


def _unconnected(n: int, rng: np.random.Generator) -> Numbers:
    """As :func:`_skewed`, but without any condition."""
    return 10.0 ** rng.uniform(-1, 3, n), np.ones((n, n))


def _equal(n: int, rng: np.random.Generator) -> Numbers:
    """All rates and selectivities the same."""
    return np.full(n, 10.0), np.where(np.eye(n, dtype=bool), 1.0, 0.5)


def _acyclic(n: int, rng: np.random.Generator) -> Numbers:
    """Conditions that connect all variables without a cycle."""
    selectivities = np.ones((n, n))
    place = rng.permutation(n)
    for later in range(1, n):
        i, j = place[rng.integers(later)], place[later]
        selectivities[i, j] = selectivities[j, i] = 10.0 ** rng.uniform(-3, 0)
    return 10.0 ** rng.uniform(-1, 3, n), selectivities


def _extreme(n: int, rng: np.random.Generator) -> Numbers:
    """Rates and selectivities that are next to nothing or beyond measure, zeros among them."""
    cardinalities = 10.0 ** rng.uniform(-12, 12, n)
    cardinalities[0] = 0.0
    cardinalities[1:2] = MANY_EVENTS  # of the KL
    selectivities = _filtered(n, rng, pairs=0.5, single=0.33) ** 6
    selectivities[0, -1] = selectivities[-1, 0] = 0.0
    return cardinalities, selectivities


def _kleene(n: int, rng: np.random.Generator) -> Numbers:
    """As :func:`_skewed`, but few events under KL, as its sets are counted."""
    cardinalities, selectivities = _skewed(n, rng)
    cardinalities[1:2] = rng.uniform(1, 8)
    return cardinalities, selectivities


def _filtered(n: int, rng: np.random.Generator, *, pairs: float, single: float) -> np.ndarray:
    drawn = np.where(rng.random((n, n)) < pairs, 10.0 ** rng.uniform(-3, 0, (n, n)), 1.0)
    upper = np.triu(drawn, 1)
    own = np.where(rng.random(n) < single, 10.0 ** rng.uniform(-3, 0, n), 1.0)
    return np.asarray(upper + upper.T + np.diag(own))


#: Name -> kind of planning problem; they cover all settings of experiments.
PROBLEM_KINDS: Mapping[str, ProblemKind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            ProblemKind("sequence", _skewed),
            ProblemKind("conjunction", _skewed, "AND"),
            ProblemKind("acyclic", _acyclic, "AND"),
            ProblemKind("unconnected", _unconnected, "AND"),
            ProblemKind("equal", _equal),
            ProblemKind("negation", _skewed, special="NOT"),
            ProblemKind("kleene", _kleene, special="KL"),
            ProblemKind("extreme", _extreme, "AND", special="KL"),
            ProblemKind("latency", _skewed, alpha=0.5),
            ProblemKind("consuming", _skewed, strategy="consuming"),
            ProblemKind("exact", _skewed, time_selectivity="exact"),
        )
    }
)


def _made(kind: ProblemKind, n: int, seed: int) -> CostedProblem:
    rng = rng_for(seed, kind.name, n)
    cardinalities, selectivities = kind.draw(n, rng)
    names = [f"v{i}" for i in range(n)]
    items = [f"{name.upper()} {name}" for name in names]
    if kind.special == "NOT":
        items.insert(1, "NOT(ABSENT absent)")
    elif kind.special and n > 1:
        items[1] = f"{kind.special}({items[1]})"
    pattern = parse(
        f"PATTERN {kind.operator}({', '.join(items)}) STRATEGY {kind.strategy} WITHIN 20 minutes"
    )
    statistics = Statistics(
        cardinalities={
            **dict(zip(names, cardinalities.tolist(), strict=True)),
            "absent": SMALLEST,
        },
        selectivities={
            (names[i], names[j]): float(selectivities[i, j]) for i in range(n) for j in range(i, n)
        },
    )
    return CostedProblem.from_pattern(
        pattern, statistics, kind.time_selectivity, cost=Throughput(kind.alpha)
    )
