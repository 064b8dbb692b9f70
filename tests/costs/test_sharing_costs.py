"""Costs of plans of workloads, by hand and from the tables of the plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.costs.sharing import SharingCost, SharingProblem, counters_of, sharing_cost
from cepbench.errors import PlanError, StatisticsError
from tests.planned_workloads import Planned, planned, planned_workloads

#: Rates per second, in a window of one second.
RATES = {"A": 10.0, "B": 20.0, "C": 30.0, "D": 40.0, "E": 50.0}


def cost(plan: cep.WorkloadPlan, its: Planned) -> SharingCost:
    return sharing_cost(plan, its[1])


def test_queries_by_themselves() -> None:
    its = planned({"P": "ABC", "Q": "ABD"}, RATES)
    assert cost(cep.WorkloadPlan(its[0]), its) == SharingCost(
        updates=20 * 10 + 30 * 10 + 20 * 10 + 40 * 10,
        sums=30 * 10 + 40 * 10,
        events=10 + 20 + 30 + 10 + 20 + 40,
    )


def test_a_shared_prefix_is_counted_once() -> None:
    its = planned({"P": "ABC", "Q": "ABD"}, RATES)
    assert cost(cep.WorkloadPlan(its[0], {}, True), its) == SharingCost(
        updates=20 * 10 + 30 * 10 + 40 * 10,
        sums=30 * 10 + 40 * 10,
        events=10 + 20 + 30 + 40,
    )


def test_a_shared_end_takes_snapshots_and_products() -> None:
    its = planned({"P": "ACD", "Q": "BCD"}, RATES)
    assert cost(cep.WorkloadPlan(its[0], {"P": (1,), "Q": (1,)}), its) == SharingCost(
        updates=40 * 30,
        snapshots=30 * 10 + 30 * 20,
        products=2 * 40 * 30,
        events=10 + 20 + 30 + 40,
        connections=30 + 30 + 2 * 40,
    )


def test_a_segment_in_the_middle_takes_the_product_of_its_starts() -> None:
    its = planned({"P": "ABCDE"}, RATES)
    assert cost(cep.WorkloadPlan(its[0], {"P": (1, 3)}), its) == SharingCost(
        updates=30 * 20 + 50 * 40,
        snapshots=20 * 10 + 40 * 10,
        products=50 * 40,
        inner_products=40 * 20 * 10 / 2,
        events=sum(RATES.values()),
        connections=20 + 40 + 50,
    )


def test_the_matches_of_a_query_are_counted_apart_from_longer_ones() -> None:
    its = planned({"P": "AB", "Q": "ABC"}, RATES)
    assert cost(cep.WorkloadPlan(its[0], {}, True), its).updates == 20 * 10 * 2 + 30 * 10


def test_equal_connections_are_made_once() -> None:
    its = planned({"P": "ABC", "Q": "ABD"}, RATES)
    plan = cep.WorkloadPlan(its[0], {"P": (1,), "Q": (1,)}, True)
    assert cost(plan, its).snapshots == 20 * 10
    apart = cep.WorkloadPlan(its[0], {"P": (1,), "Q": (1,)})
    assert cost(apart, its).snapshots == 2 * 20 * 10


def test_rows_stay_for_the_longest_window() -> None:
    its = planned({"P": "ABC", "Q": "ABD"}, RATES, windows={"Q": 3})
    shared = cost(cep.WorkloadPlan(its[0], {}, True), its)
    assert shared.updates == (20 + 30 + 40) * 30
    assert shared.sums == 30 * 10 + 40 * 30
    assert cost(cep.WorkloadPlan(its[0]), its).updates == (20 + 30) * 10 + (20 + 40) * 30


def test_each_total_is_counted() -> None:
    both = planned({"P": "ABC"}, RATES, aggregates={"P": "COUNT, SUM(b.x), MAX(b.x)"})
    plan = cep.WorkloadPlan(both[0], {"P": (2,)})
    one = cost(cep.WorkloadPlan(planned({"P": "ABC"}, RATES)[0], {"P": (2,)}), both)
    assert cost(plan, both).products == 4 * one.products  # COUNT, COUNT(b.x), SUM(b.x), MAX(b.x)
    # Without b, there are only how often and whether something is matched.
    assert cost(plan, both).events == 2 * 10 + 4 * 20 + 2 * 30


@pytest.mark.parametrize(
    ("aggregates", "counted"),
    [
        ("COUNT", 1),
        ("COUNT(a)", 1),
        ("COUNT(k)", 2),
        ("COUNT(a.x)", 2),
        ("SUM(a.x), AVG(a.x), COUNT(a.x)", 3),
        ("MIN(a.x)", 2),
        ("MIN(a.x), MAX(a.x)", 3),
    ],
)
def test_what_is_counted(aggregates: str, counted: int) -> None:
    pattern = cep.parse(f"PATTERN SEQ(A a, KL(B k)) AGG {aggregates} WITHIN 1 s")
    assert len(counters_of(pattern)) == counted


def test_sets_filters_and_partitions() -> None:
    workload = cep.Workload(
        {"P": "PATTERN SEQ(A a, KL(B b), C c) WHERE [k] AND c.x > 3 AGG COUNT WITHIN 1 s"}
    )
    statistics = {
        "P": cep.Statistics(
            rates={"a": 10, "b": 20, "c": 30},
            selectivities={("c", "c"): 0.5, ("a", "b"): 0.1, ("a", "c"): 0.1, ("b", "c"): 0.05},
        )
    }
    found = sharing_cost(cep.WorkloadPlan(workload), statistics)
    # An element of a set extends those with a first one and those without; a tenth of the STARTs.
    assert found.updates == pytest.approx(2 * 20 * 10 * 0.1 + 30 * 0.5 * 10 * 0.1)
    assert found.sums == pytest.approx(30 * 0.5 * 10 * 0.1)
    assert found.events == pytest.approx(10 + 20 + 15)


def test_cardinalities_are_rates_of_a_window() -> None:
    workload, statistics = planned({"P": "ABC"}, RATES, windows={"P": 2})
    by_window = {"P": cep.Statistics(cardinalities={"a": 20, "b": 40, "c": 60})}
    plan = cep.WorkloadPlan(workload, {"P": (1,)})
    assert sharing_cost(plan, by_window) == sharing_cost(plan, statistics)


def test_what_is_not_counted_by_segments_costs_the_same_in_all_plans() -> None:
    workload = cep.Workload({"P": "PATTERN AND(A a, B b) AGG COUNT WITHIN 1 s"})
    statistics = {"P": cep.Statistics(rates={"a": 1, "b": 1})}
    assert sharing_cost(cep.WorkloadPlan(workload), statistics) == SharingCost()


def test_a_window_without_length() -> None:
    workload = cep.Workload({"P": "PATTERN SEQ(A a) AGG COUNT WITHIN 0 s"})
    statistics = {"P": cep.Statistics(rates={"a": 1})}
    assert sharing_cost(cep.WorkloadPlan(workload), statistics).total == 0


def test_errors() -> None:
    workload, statistics = planned({"P": "ABC", "Q": "AB"}, RATES)
    plan = cep.WorkloadPlan(workload)
    with pytest.raises(StatisticsError, match="no statistics of query 'Q'"):
        sharing_cost(plan, {"P": statistics["P"]})
    with pytest.raises(StatisticsError, match="variable 'c'"):
        sharing_cost(plan, {"P": statistics["Q"], "Q": statistics["Q"]})
    with pytest.raises(StatisticsError, match="a mapping of its queries"):
        sharing_cost(plan, statistics["P"])
    with pytest.raises(StatisticsError, match="must be Statistics"):
        sharing_cost(plan, {"P": 3, "Q": 4})
    with pytest.raises(PlanError, match=r"cep\.plan plans a pattern"):
        SharingProblem(workload.patterns["P"], statistics)


def naive_cost(plan: cep.WorkloadPlan, statistics: dict[str, cep.Statistics]) -> SharingCost:
    """From the tables of the plan, for queries of plain items without conditions."""
    updates = snapshots = products = inner = sums = events = connections = 0.0
    rates, windows, place = {}, {}, {}
    patterns = plan.workload.patterns
    for number, table in enumerate(plan.tables):
        windows[number] = max(patterns[s.query].window.seconds for s in table.segments)
        first = table.segments[0]
        rates[number] = statistics[first.query].rates[first.names[0]]
        counted: set[object] = set()
        for its in table.segments:
            place[its.query, its.number] = number
            pattern = patterns[its.query]
            for depth, column in enumerate(its.prefixes()):
                rate = statistics[its.query].rates[its.names[depth]]
                is_total = its.names[depth] == pattern.positive_names[-1]
                for counter in counters_of(pattern):
                    counter = (column, is_total, total_within(counter, its.names[: depth + 1]))
                    if counter not in counted:
                        counted.add(counter)
                        events += rate
                        updates += rate * rates[number] * windows[number] * (depth > 0)
    made: set[object] = set()
    for query, pattern in patterns.items():
        segments, names = plan.segments(query), pattern.positive_names
        own = statistics[query].rates
        chain: tuple[object, ...] = ()
        start = place[query, 0]
        for number, its in enumerate(segments[1:], 1):
            left = place[query, number - 1]
            chain = (*chain, left, segments[number - 1].steps, place[query, number])
            before = names[: names.index(its.names[0])]
            # An average over the ages of rows, as by a sum of many.
            ages = (np.arange(10_000) + 0.5) / 10_000 * windows[left]
            active = rates[start] * np.maximum(windows[start] - ages, 0).mean()
            for counter in counters_of(pattern):
                link = (chain, total_within(counter, before))
                if link not in made:
                    made.add(link)
                    connections += own[its.names[0]]
                    snapshots += own[its.names[0]] * rates[start] * windows[start]
                    if number > 1:
                        inner += own[its.names[0]] * rates[left] * windows[left] * active
        last = segments[-1].names
        triggers = own[last[-1]] * len(counters_of(pattern))
        asked = triggers * own[last[0]] * pattern.window.seconds
        connections += triggers if chain else 0.0
        sums, products = (sums, products + asked) if chain else (sums + asked, products)
    return SharingCost(updates, snapshots, products, inner, sums, events, connections)


def total_within(counter: tuple[str, str | None, str | None], names: Sequence[str]) -> object:
    """A total over a part of a query, without the names of variables."""
    kind, variable, attribute = counter
    if variable in names:
        return kind, names.index(variable), attribute
    return kind in ("MIN", "MAX")


@given(planned_workloads(), st.data())
def test_costs_are_those_of_the_tables(its: Planned, data: st.DataObject) -> None:
    workload, statistics = its
    cuts = {
        query: sorted(data.draw(st.sets(st.integers(1, len(pattern.positive) - 1))))
        for query, pattern in workload.patterns.items()
        if len(pattern.positive) > 1
    }
    plan = cep.WorkloadPlan(workload, cuts, data.draw(st.booleans()))
    assert astuple(cost(plan, its)) == pytest.approx(astuple(naive_cost(plan, statistics)), 1e-6)
