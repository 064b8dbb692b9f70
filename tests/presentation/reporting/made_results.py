"""Results in which the check of a claim measures a given value."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from cepbench.experiments.analysis.checks import DERIVED, ClaimCheck, Selection
from cepbench.experiments.sweeps.cells import OK
from cepbench.experiments.sweeps.workload import PATTERN_SETS
from cepbench.presentation.reporting.claims import ClaimTest

PATTERNS = 6  # of each size in each set

#: Metrics that fall where the column they are made of rises.
_FALLING = ("fewer_partial_matches", "fewer_records", "normalized_cost")


def sides(check: ClaimCheck) -> list[Selection]:
    return [side for side in (check.over, check.under, *(check.than or ())) if side]


def table_measuring(
    test: ClaimTest, value: float, jitter: float = 0.0, patterns: int = PATTERNS
) -> pd.DataFrame:
    """Results in which the test's check measures ``value``, exactly without ``jitter``."""
    check = test.check
    sets = check.pattern_sets or tuple(PATTERN_SETS)
    sizes = tuple(dict.fromkeys([*(check.sizes or (3, 7)), *check.needed_sizes]))
    rng = np.random.default_rng(1)
    rows = []
    for pattern_set in sets:
        of_set = value if check.apart in ("", pattern_set) else 1.0
        for size in sizes:
            for number in range(patterns):
                noise = jitter * (-1) ** number
                # The cost of one pattern's plans, which the checks of Figure 6 follow.
                level = float(rng.normal())
                for generator, alpha, strategy, log in _runs(check, of_set, size, level, noise):
                    rows.append(
                        {
                            "pattern_set": pattern_set,
                            "size": size,
                            "pattern_id": f"{pattern_set}-{size}-{number}",
                            "generator": generator,
                            "alpha": alpha,
                            "strategy": strategy,
                            "status": OK,
                            "matches": 1,
                            **_columns(check, log, level),
                        }
                    )
    return pd.DataFrame(rows)


def inside(test: ClaimTest) -> float:
    """A value within the range of a test."""
    if test.check.kind == "rank_correlation":
        return 1.0 if test.low > 0 else -1.0
    if test.check.kind == "share_equal":
        return 1.0
    if test.low > -math.inf and test.high < math.inf:
        return (test.low + test.high) / 2
    return test.low + abs(test.low) if test.low > -math.inf else test.high - abs(test.high) / 2


def outside(test: ClaimTest) -> list[float]:
    """One value beyond every end of the range."""
    if test.check.kind == "rank_correlation":
        return [-inside(test)]
    if test.check.kind == "share_equal":
        return [0.0]
    values = []
    if test.low > -math.inf:
        values.append(test.low * 0.9)
    if test.high < math.inf:
        values.append(test.high + abs(test.high) * 0.1)
    return values


def _runs(
    check: ClaimCheck, value: float, size: int, level: float, noise: float
) -> list[tuple[str, float, str, float]]:
    """Generator, alpha, strategy and the metric's logarithm, once for each run that is needed."""
    found: dict[tuple[str, float, str], float] = {}
    if check.metric == "normalized_cost":
        found["EFREQ", 0.0, "any"] = 0.0
    for rank, side in enumerate(sides(check)):
        for generator in side.generators:
            key = (generator, side.alpha or 0.0, side.strategy or "any")
            found[key] = _log_of(check, value, size, level, noise) if rank == 0 else 0.0
    return [(*key, log) for key, log in found.items()]


def _log_of(check: ClaimCheck, value: float, size: int, level: float, noise: float) -> float:
    """What the first side's runs have; the others have 0."""
    match check.kind:
        case "trend":
            return (math.log(value) + noise) * size
        case "exponent":
            return (value + noise) * level
        case "rank_correlation":
            return math.copysign(1, value) * level
        case "share_equal":
            return 0.0 if value > 0.5 else 1.0
        case _:
            return math.log(value) + noise


def _columns(check: ClaimCheck, log: float, level: float) -> Mapping[str, float]:
    if check.metric not in DERIVED:
        return {check.metric: math.exp(log), "plan_log_cost": level}
    needed = DERIVED[check.metric][0]
    signed = -log if check.metric in _FALLING else log
    if check.metric.startswith("fewer_"):
        first = math.exp(30.0 + signed) - 1.0
    else:
        first = signed if needed[0].endswith("log_cost") else math.exp(signed)
    return {needed[0]: first, **dict.fromkeys(needed[1:], 1.0)}
