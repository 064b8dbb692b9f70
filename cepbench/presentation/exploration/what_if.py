"""What-if analysis: the plans, and their costs, under changed statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from cepbench.arguments import kind_of, number, shown
from cepbench.errors import StatisticsError, did_you_mean
from cepbench.patterns.durations import window_of
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern, Window
from cepbench.planning.costs.branches import branch_problems, log_plan_cost
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.registry import PlanGenerator
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.notes import from_log
from cepbench.planning.statistics.given import statistics_from
from cepbench.planning.statistics.model import Pair, Statistics
from cepbench.presentation.exploration.side_by_side import SideBySide, plans_side_by_side

_ADDED = ("changed", "plan_before", "cost_kept", "log_cost_kept", "regret")


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The result of :func:`what_if`.

    ``table`` is that of ``after``, and ``changed``: whether the plan differs from the previous one;
    ``plan_before``; ``log_cost_kept`` and ``cost_kept``: the cost of the previous plan under the changed
    statistics; ``regret``: the ratio of that cost to the new plan's.
    """

    #: With the changes applied, as the statistics.
    pattern: Pattern
    statistics: Statistics
    before: SideBySide
    after: SideBySide
    table: pd.DataFrame

    @property
    def plans(self) -> Mapping[str, AnyPlan]:
        """Generator → plan under the changed statistics."""
        return self.after.plans

    def __repr__(self) -> str:
        return f"WhatIf({int(self.table['changed'].sum())} of {len(self.table)} plans change)"

    def describe(self) -> str:
        """The changed statistics, and one line per generator."""
        columns = ["generator", "plan", "cost", "relative_cost", "changed", "regret"]
        return f"{self.statistics.describe()}\n{self.table[columns].to_string(index=False)}"

    def _repr_html_(self) -> str:
        notes = {
            row["generator"]: f"changed; the old plan would cost {_times(row['regret'])} as much"
            for row in self.table.to_dict("records")
            if row["changed"]
        }
        return replace(self.after, notes=notes)._repr_html_()


def what_if(
    pattern: Pattern | str,
    statistics: Statistics,
    *,
    window: float | str | Window | None = None,
    rates: Mapping[str, float] | None = None,
    selectivities: Mapping[Pair, float] | None = None,
    alpha: float = 0.0,
    generators: Sequence[str | PlanGenerator] | None = None,
    seed: int = 0,
    time_selectivity: str = "adjacent",
    last: str | Sequence[str | None] | None = None,
    before: SideBySide | None = None,
) -> WhatIf:
    """Plan under changed statistics.

    Parameters
    ----------
    window : float, str or Window, optional
        New window: a number in the unit of the pattern's window, or a text such as
        ``"5 minutes"``. Rates are unchanged, so cardinalities are proportional to it.
    rates : mapping of str to float, optional
        Variable → events per second (or tick).
    selectivities : mapping of (str, str) to float, optional
        Pair of variables → selectivity; ``("a", "a")`` is the filter on ``a``.
    alpha : float
        Weight of latency in the cost.
    generators, seed, time_selectivity, last
        As :func:`~cepbench.presentation.exploration.side_by_side.plans_side_by_side` takes them.
    before : SideBySide, optional
        The plans under the original statistics, if already made with the same arguments.

    Raises
    ------
    StatisticsError
        If a number or a name is invalid.
    PlanGeneratorError
        If a generator is unknown.
    """
    pattern, statistics = pattern_from(pattern), statistics_from(statistics)
    alpha = number(alpha, "alpha", StatisticsError, least=0.0)
    changed_pattern = pattern
    if window is not None:
        its = window_of(window, pattern.window.unit, "window", StatisticsError)
        if not isinstance(window, str | Window):
            its = replace(its, exclusive=pattern.window.exclusive)
        if its.is_datetime is not pattern.window.is_datetime:
            raise StatisticsError(
                f"window = {its}, but the pattern's is {pattern.window}: one counts ticks"
            )
        changed_pattern = replace(pattern, window=its)
    for key, given in (("rates", rates), ("selectivities", selectivities)):
        if not isinstance(given, Mapping | None):
            raise StatisticsError(f"{key} is a mapping such as a dict, not {kind_of(given)}")
    if not isinstance(before, SideBySide | None):
        raise StatisticsError(
            f"before is what plans_side_by_side(...) returned, not {kind_of(before)}"
        )
    changed = _changed(pattern, statistics, rates or {}, selectivities or {})
    options: dict[str, Any] = {
        "generators": generators, "seed": seed, "time_selectivity": time_selectivity,
    }  # fmt: skip
    first = before or plans_side_by_side(pattern, statistics, **options)
    if changed_pattern == pattern and changed == statistics and not alpha and last is None:
        after = first
    else:
        after = plans_side_by_side(changed_pattern, changed, alpha=alpha, last=last, **options)
    problems = branch_problems(changed_pattern, changed, time_selectivity, alpha, last)
    table = after.table.join(_against(first, after, problems))
    return WhatIf(changed_pattern, changed, first, after, table)


def _changed(
    pattern: Pattern,
    statistics: Statistics,
    rates: Mapping[str, float],
    selectivities: Mapping[Pair, float],
) -> Statistics:
    """The statistics with rates per second, and with the changes applied."""
    for name in rates:
        _check_known("rates", name, statistics.names)
    for pair in selectivities:
        for name in pair if isinstance(pair, tuple) else (pair,):
            _check_known("selectivities", name, statistics.names)
    if statistics.rates is not None:
        plain = dict(statistics.rates)
    else:
        seconds = pattern.window.seconds
        if not seconds:
            raise StatisticsError(
                "a window of length 0 makes no rates of cardinalities; give Statistics(rates=...)"
            )
        plain = {name: statistics.cardinality(name, seconds) / seconds for name in statistics.names}
    others = {_ordered(pair): value for pair, value in selectivities.items()}
    errors = {
        key: value
        for key, value in statistics.standard_errors.items()
        if key not in rates and key not in others and statistics.rates is not None
    }
    return Statistics(
        rates={**plain, **rates},
        selectivities={**statistics.selectivities, **others},
        standard_errors=errors,
        stream_rate=statistics.stream_rate,
        partitions=statistics.partitions,
    )


def _ordered(pair: Pair) -> Pair:
    # Statistics raises the error for anything else than a pair.
    return (min(pair), max(pair)) if isinstance(pair, tuple) and len(pair) == 2 else pair


def _check_known(where: str, name: Any, names: Iterable[str]) -> None:
    known = list(names)
    if name not in known:
        raise StatisticsError(
            f"{where}: the statistics have no variable {shown(name)}; they have {', '.join(known)}"
            f"{did_you_mean(name, known)}"
        )


def _against(
    before: SideBySide, after: SideBySide, problems: Sequence[CostedProblem]
) -> pd.DataFrame:
    """The columns :data:`_ADDED`, which compare the previous plans with the new ones."""
    texts = before.table.set_index("generator")["plan"]
    rows = []
    for row in after.table.to_dict("records"):
        name = row["generator"]
        both = name in before.plans and name in after.plans
        log_kept = log_plan_cost(before.plans[name], problems) if both else math.nan
        old = texts.get(name, "")
        regret = from_log(log_kept - row["log_cost"])
        rows.append((both and old != row["plan"], old, from_log(log_kept), log_kept, regret))
    return pd.DataFrame(rows, columns=list(_ADDED), index=after.table.index)


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times" if ratio < 1e6 else "over 10⁶ times"
