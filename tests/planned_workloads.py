"""Workloads whose queries have items in common, and statistics of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

import cepbench as cep
from cepbench.planning.costs.sharing import SharingCost, SharingProblem

#: A workload and the statistics of its queries.
Planned = tuple[cep.Workload, dict[str, cep.Statistics]]


def planned(
    queries: Mapping[str, Sequence[str]],
    rates: Mapping[str, float],
    *,
    windows: Mapping[str, int] | None = None,
    aggregates: Mapping[str, str] | None = None,
) -> Planned:
    """Queries by the types of their items, named a, b, …; rates by type."""
    patterns, statistics = {}, {}
    for query, types in queries.items():
        names = [chr(ord("a") + k) for k in range(len(types))]
        items = ", ".join(f"{type} {name}" for type, name in zip(types, names, strict=True))
        patterns[query] = (
            f"PATTERN SEQ({items}) AGG {(aggregates or {}).get(query, 'COUNT')} "
            f"WITHIN {(windows or {}).get(query, 1)} s"
        )
        statistics[query] = cep.Statistics(
            rates={name: rates[type] for type, name in zip(types, names, strict=True)}
        )
    return cep.Workload(patterns), statistics


def sharing_cost(plan: cep.WorkloadPlan, statistics: Mapping[str, cep.Statistics]) -> SharingCost:
    """The cost of a plan of cuts, also under other statistics than those it was made from."""
    cuts = {query: tuple(its) for query, its in plan.cuts.items()}
    problem = SharingProblem(plan.workload, statistics)
    return problem.cost(cuts, shares_prefixes=plan.shares_prefixes)


@st.composite
def planned_workloads(draw: st.DrawFn, queries: int = 3, items: int = 4) -> Planned:
    """Up to so many queries of up to so many items, over types of very different rates."""
    types = st.sampled_from("ABCDE")
    common = draw(st.lists(types, min_size=2, max_size=3))
    drawn = {}
    for k in range(draw(st.integers(2, queries))):
        own = draw(st.lists(types, min_size=1, max_size=items))
        at = draw(st.integers(0, len(own)))
        drawn[f"Q{k}"] = (own[:at] + common + own[at:])[:items] if draw(st.booleans()) else own
    rates = {type: 10.0 ** draw(st.integers(-1, 2)) for type in "ABCDE"}
    windows = {query: draw(st.sampled_from([1, 1, 5])) for query in drawn}
    values = st.sampled_from(["COUNT", "SUM(a.x)", "AVG(a.x), MAX(a.y)"])
    aggregates = {query: draw(values) for query in drawn}
    return planned(drawn, rates, windows=windows, aggregates=aggregates)
