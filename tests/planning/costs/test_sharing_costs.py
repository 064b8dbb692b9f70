"""Costs of plans of workloads, by hand and from the tables of the plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PlanError, StatisticsError
from cepbench.kernels.counts import LANES
from cepbench.planning.costs.sharing import SharingCost, SharingProblem, counters_of
from tests.planned_workloads import Planned, planned, planned_workloads, sharing_cost

#: Rates per second, in a window of one second.
RATES = {"A": 10.0, "B": 20.0, "C": 30.0, "D": 40.0, "E": 50.0}


def cost(plan: cep.WorkloadPlan, its: Planned) -> SharingCost:
    return sharing_cost(plan, its[1])


def test_queries_by_themselves() -> None:
    its = planned({"P": "ABC", "Q": "ABD"}, RATES)
    assert cost(cep.WorkloadPlan(its[0]), its) == SharingCost(
        updates=20 * 10 + 30 * 10 + 20 * 10 + 40 * 10,
        sums=30 * 10 + 40 * 10,
        alone=10 + 20 + 30 + 10 + 20 + 40,
    )


def test_a_shared_prefix_is_counted_once() -> None:
    its = planned({"P": "ABC", "Q": "ABD", "R": "DC"}, RATES)
    assert cost(cep.WorkloadPlan(its[0], {}, True), its) == SharingCost(
        updates=20 * 10 + 30 * 10 + 40 * 10 + 30 * 40,
        sums=30 * 10 + 40 * 10 + 30 * 40,
        events=10 + 20 + 30 + 40,
        alone=40 + 30,
    )
    # Where R may run by the window's product, in a stream of ten seconds.
    beside = SharingProblem(*its, windowed=True, length=10.0).cost({}, shares_prefixes=True)
    assert (beside.windowed, beside.alone) == (40 + 30, 0.0)
    assert (beside.opened, beside.joined) == (1 / 10, 2 / 10)


def test_a_shared_end_takes_lanes_and_products() -> None:
    its = planned({"P": "ACD", "Q": "BCD"}, RATES)
    assert cost(cep.WorkloadPlan(its[0], {"P": (1,), "Q": (1,)}), its) == SharingCost(
        updates=40 * 30,
        # A log has the STARTs of the query, and of the end.
        followed=(1 + 10 / LANES) * (10 + 30) + (1 + 20 / LANES) * (20 + 30),
        products=2 * 40 * 30,
        events=30 + 40,
        connections=2 * 40,
    )


def test_what_comes_before_the_last_segment_is_counted_at_once() -> None:
    its = planned({"P": "ABCDE"}, RATES)
    assert cost(cep.WorkloadPlan(its[0], {"P": (1, 3)}), its) == SharingCost(
        updates=50 * 40,
        followed=(1 + 10 / LANES) * (10 + 20 + 30 + 40),
        products=50 * 40,
        events=40 + 50,
        connections=50,
    )


def test_rare_triggers_let_lanes_follow_the_events_of_their_windows_only() -> None:
    its = planned({"P": "ABC"}, RATES | {"C": 0.1})
    assert cost(cep.WorkloadPlan(its[0], {"P": (1,)}), its).followed == 0.1 * (10 + 20)


def test_the_matches_of_a_query_are_counted_apart_from_longer_ones() -> None:
    its = planned({"P": "AB", "Q": "ABC"}, RATES)
    assert cost(cep.WorkloadPlan(its[0], {}, True), its).updates == 20 * 10 * 2 + 30 * 10


def test_equal_connections_are_made_once() -> None:
    its = planned({"P": "ABC", "Q": "ABD"}, RATES)
    passes = 1 + 10 / LANES
    plan = cep.WorkloadPlan(its[0], {"P": (1,), "Q": (1,)}, True)
    assert cost(plan, its).followed == passes * (10 + 20)
    apart = cep.WorkloadPlan(its[0], {"P": (1,), "Q": (1,)})
    assert cost(apart, its).followed == 2 * passes * (10 + 20)


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
    assert cost(plan, both).followed == pytest.approx((1 + 10 / LANES) * (2 * 10 + 4 * 20 + 4 * 30))
    assert cost(plan, both).events == 2 * 30


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
    assert found.alone == pytest.approx(10 + 20 + 15)


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
    """From the segments of the plan, for queries of plain items without conditions."""
    updates = products = sums = events = alone = connections = followed = 0.0
    patterns = plan.workload.patterns
    tables = {s.query: n for n, t in enumerate(plan.tables) for s in t.segments if s.number == 0}
    lasts, users, windows = {}, {}, {}
    for number, table in enumerate(plan.tables):
        for its in table.segments:
            window = patterns[its.query].window.seconds
            is_last = its.number == len(plan.segments(its.query)) - 1
            if is_last or its.number == 0:
                windows[number] = max(windows.get(number, 0), window)
            if is_last:
                lasts[its.query] = number, its
                users.setdefault((number, its.steps[0], len(its.steps) > 1), []).append(its.query)
    counted: set[object] = set()
    entries: dict[object, dict[object, float]] = {}
    triggers: dict[object, float] = {}
    starts: dict[object, float] = {}
    for query, pattern in patterns.items():
        number, its = lasts[query]
        own, window = statistics[query].rates, pattern.window.seconds
        counters = counters_of(pattern)
        is_alone = its.number == 0 and users[number, its.steps[0], len(its.steps) > 1] == [query]
        rows = own[its.names[0]] * (window if is_alone else windows[number])
        for depth, column in enumerate(its.prefixes()):
            rate = own[its.names[depth]]
            is_total = its.names[depth] == pattern.positive_names[-1]
            for counter in counters:
                if is_alone:
                    alone += rate
                    updates += rate * rows * (depth > 0)
                    continue
                counter = (number, column, is_total, total_within(counter, its.names[: depth + 1]))
                if counter not in counted:
                    counted.add(counter)
                    events += rate
                    updates += rate * rows * (depth > 0)
        asked = own[its.names[-1]] * len(counters)
        if its.number == 0:
            sums += asked * own[its.names[0]] * window
            continue
        products += asked * own[its.names[0]] * window
        connections += asked
        left = tables[query], window
        before = pattern.positive_names[: -len(its.names)]
        steps = tuple(step for s in plan.segments(query)[:-1] for step in s.steps)
        triggers[left] = triggers.get(left, 0) + own[its.names[-1]] * window
        starts[left] = own[before[0]] * window
        of_left = entries.setdefault(left, {})
        for counter in counters:
            for depth, name in enumerate(before):
                local = total_within(counter, before[: depth + 1])
                of_left[steps[: depth + 1], local] = own[name]
            of_left[number, steps, total_within(counter, before)] = own[its.names[0]]
    for left, its_entries in entries.items():
        followed += min(1 + starts[left] / LANES, triggers[left]) * sum(its_entries.values())
    return SharingCost(updates, followed, products, sums, events, alone, connections)


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
