"""Every plan generator of the registry against exhaustive search of its plan space."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.planning.costs.logarithms import SMALLEST
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.plans.model import OrderPlan, Plan
from cepbench.planning.statistics.model import Statistics
from tests.budgets import crossed, examples
from tests.generators import BUILT_IN, SELECTIVE, UNIVERSAL, affordable
from tests.naive import plans as naive
from tests.naive.costs import partial_matches
from tests.planning_cases import READINGS, Case, ln, random_case


def greedy_order(case: Case) -> list[int]:
    return naive.greedy_order(case.n, case.order_cost)


def joining_adds(case: Case) -> Callable[[list[int], list[int]], Fraction]:
    """What the join of two trees with these leaves adds to the cost."""
    problem = case.problem

    def added(left: list[int], right: list[int]) -> Fraction:
        cost = case.partial_matches(left + right)
        if problem.terms.last in left:
            cost += case.alpha * case.partial_matches(right)
        if problem.terms.last in right:
            cost += case.alpha * case.partial_matches(left)
        return cost

    return added


def linear_order(case: Case) -> list[int]:
    """The parts of the predicate graph, the smallest first, each by the cheapest order along it."""
    selectivity = case.conditions

    def adjacent(i: int, j: int) -> bool:
        return selectivity[i][j] != 1

    def cost(order: list[int], edges: set[tuple[int, int]]) -> Fraction:
        alone = [
            [selectivity[i][j] if i == j or (i, j) in edges else 1 for j in range(case.n)]
            for i in range(case.n)
        ]
        return sum(
            partial_matches(
                case.cardinalities, alone, order[:k], used_up=False, exact_sequence=False
            )
            for k in range(1, len(order) + 1)
        )

    parts: list[list[int]] = []
    for i in range(case.n):
        beside = [part for part in parts if any(adjacent(i, j) for j in part)]
        joined = sorted([i, *(j for part in beside for j in part)])
        parts = [part for part in parts if part not in beside] + [joined]
    parts = sorted(sorted(parts), key=case.partial_matches)
    orders = [
        naive.order_along_conditions(part, adjacent, lambda i, j: selectivity[i][j], cost)
        for part in parts
    ]
    return [i for order in orders for i in order]


#: The plans from which each generator takes the cheapest; those with a single one are rules.
SPACES: dict[str, Callable[[Case], list]] = {
    "TRIVIAL": lambda case: [list(range(case.n))],
    "EFREQ": lambda case: [naive.frequency_order(case.rates)],
    "EFREQ-SETS": lambda case: [naive.frequency_order(case.cardinalities)],
    "GREEDY": lambda case: [greedy_order(case)],
    "DP-LD": lambda case: naive.all_orders(case.n),
    "ZSTREAM": lambda case: naive.trees_over(list(range(case.n))),
    "ZSTREAM-ORD": lambda case: naive.trees_over(greedy_order(case)),
    "DP-B": lambda case: naive.all_trees(list(range(case.n))),
    # All that is planned here is planned in one block.
    "IDP": lambda case: naive.all_orders(case.n),
    "LINDP": lambda case: naive.trees_over(linear_order(case)),
    "GOO": lambda case: [naive.smallest_joins(case.n, joining_adds(case))],
}

#: These end in a local minimum instead.
LOCAL_SEARCHES = ["II-RANDOM", "II-GREEDY", "SA", "2PO"]

#: This one ends in the best tree over its own leaves, and is not worse than ZSTREAM-ORD.
FLIPS = "FLIPS"

#: These take plans from here by chance; the best of few, so many do they take.
SAMPLED: dict[str, Callable[[Case], list]] = {
    "QUICKPICK": lambda case: naive.trees_with_few_cross_products(
        list(range(case.n)), lambda i, j: case.conditions[i][j] != 1
    ),
}

readings = pytest.mark.parametrize(
    ("operator", "time_selectivity"), READINGS, ids=["AND", "SEQ-adjacent", "SEQ-exact"]
)
every_generator = pytest.mark.parametrize("name", UNIVERSAL)
every_search = pytest.mark.parametrize("name", SPACES)


def found(case: Case, name: str, seed: int = 0) -> Plan:
    return plan(
        case.pattern, case.statistics, name, seed=seed, time_selectivity=case.time_selectivity
    )


def content(made: Plan):
    return made.order if isinstance(made, OrderPlan) else made.tree


def naive_cost(case: Case, made):
    """Of a plan object, of an order (a list) or of a tree (pairs or a leaf)."""
    if not isinstance(made, list | tuple | int | str):
        made = content(made)
    return case.order_cost(made) if isinstance(made, list) else case.tree_cost(made)


def assert_cheapest(case: Case, name: str, space: list | None = None) -> None:
    least = min(naive_cost(case, one) for one in space or SPACES[name](case))
    made = found(case, name)
    assert ln(naive_cost(case, made)) == pytest.approx(ln(least), abs=1e-9)
    assert made.log_cost == pytest.approx(ln(least), abs=1e-9)


def test_every_generator_of_the_registry_is_tested_here() -> None:
    # Those that do not take every problem have modules of their own.
    assert set(UNIVERSAL) == {*SPACES, *LOCAL_SEARCHES, *SAMPLED, FLIPS}
    assert set(BUILT_IN) == {*UNIVERSAL, *SELECTIVE}
    assert BUILT_IN == [
        "TRIVIAL", "EFREQ", "GREEDY", "II-RANDOM", "II-GREEDY", "DP-LD",
        "ZSTREAM", "ZSTREAM-ORD", "DP-B",
        "EFREQ-SETS", "IKKBZ", "SA", "2PO", "IDP",
        "GOO", "DPCCP", "QUICKPICK", "LINDP", FLIPS,
    ]  # fmt: skip
    exact = [name for name in BUILT_IN if PLAN_GENERATORS[name].exact]
    assert exact == ["DP-LD", "ZSTREAM", "DP-B", "IKKBZ", "DPCCP"]
    for name in BUILT_IN:
        generator = PLAN_GENERATORS[name]
        assert generator.description and generator.source and generator.space
        assert generator.name == name


@pytest.mark.kernel
@pytest.mark.parametrize(("name", "reading", "n"), crossed(SPACES, READINGS, range(1, 7)))
def test_the_plan_is_the_cheapest_of_its_space(name, reading, n, seeds) -> None:
    for seed in seeds(4 if n < 6 else 1):
        assert_cheapest(random_case(seed, n, *reading).in_floats(), name)


@pytest.mark.parametrize(("name", "n"), [("DP-LD", 8), ("DP-B", 7), ("ZSTREAM", 9)])
def test_the_plan_is_the_cheapest_of_a_larger_space(name, n) -> None:
    assert_cheapest(random_case(17, n, "SEQ").in_floats(), name)


@readings
@pytest.mark.parametrize("name", ["TRIVIAL", "EFREQ", "EFREQ-SETS", "GREEDY"])
@given(seed=st.integers(0, 10_000), n=st.integers(1, 9))
@examples(5)
def test_a_rule_gives_its_one_order(name, operator, time_selectivity, seed, n) -> None:
    case = random_case(seed, n, operator, time_selectivity)
    (order,) = SPACES[name](case)
    assert found(case, name).order == [case.names[i] for i in order]


@readings
@given(seed=st.integers(0, 10_000), n=st.integers(1, 7))
@examples(8)
def test_zstream_ord_keeps_the_leaf_order_of_greedy(operator, time_selectivity, seed, n) -> None:
    case = random_case(seed, n, operator, time_selectivity)
    assert naive.leaves_of(found(case, "ZSTREAM-ORD").tree) == found(case, "GREEDY").order
    assert naive.leaves_of(found(case, "ZSTREAM").tree) == list(case.names)


@pytest.mark.parametrize("name", affordable(LOCAL_SEARCHES))
def test_a_long_order_is_a_local_minimum_under_all_swaps(name) -> None:
    # Beyond 32 variables the 3-cycles are a sample, the swaps are not.
    case = random_case(1, 36).in_floats()
    problem = case.problem
    order = [case.names.index(v) for v in found(case, name).order]
    cost = problem.log_order_cost(order)
    for i in range(case.n):
        for j in range(i):
            swapped = list(order)
            swapped[i], swapped[j] = order[j], order[i]
            assert problem.log_order_cost(swapped) >= cost - 1.1e-9


@given(seed=st.integers(0, 10_000), n=st.integers(2, 12))
@examples(13)
def test_generators_never_lose_to_those_they_contain(seed, n) -> None:
    case = random_case(seed, n, "SEQ" if seed % 2 else "AND")
    cost = {name: found(case, name, seed).log_cost for name in UNIVERSAL}
    for better, worse in (
        *(("DP-LD", name) for name in ("TRIVIAL", "EFREQ", "GREEDY", "II-RANDOM", "II-GREEDY")),
        ("II-GREEDY", "GREEDY"),
        ("SA", "GREEDY"),
        ("2PO", "II-GREEDY"),
        ("IDP", "DP-LD"),
        ("DP-LD", "2PO"),
        ("DP-LD", "SA"),
        ("DP-B", "ZSTREAM"),
        ("DP-B", "ZSTREAM-ORD"),
        ("DP-B", "GOO"),
        ("DP-B", FLIPS),
        (FLIPS, "ZSTREAM-ORD"),
        ("DP-B", "LINDP"),
        ("DP-B", "QUICKPICK"),
    ):
        assert cost[better] <= cost[worse] + 1e-9, (better, worse)


def test_ii_random_starts_where_its_seed_says() -> None:
    # Where no neighbour is better than any start, the start is the plan.
    alike = Case("AND", 1, (Fraction(4),) * 9, ((Fraction(1),) * 9,) * 9)
    starts = {tuple(found(alike, "II-RANDOM", seed).order) for seed in range(10)}
    assert len(starts) == 10


@every_generator
@readings
def test_a_plan_fits_its_pattern_and_carries_its_estimates(name, operator, time_selectivity):
    case = random_case(8, 6, operator, time_selectivity)
    made = found(case, name, seed=3)
    made.check(case.names)
    assert made.kind == PLAN_GENERATORS[name].kind
    assert (made.generator, made.seed) == (name, 3)
    assert made.cost_model == f"{made.kind}-throughput"
    assert made.cost == pytest.approx(float(naive_cost(case, made)))
    assert len(made.estimates) == len(made.nodes())
    assert sum(np.exp(made.estimates)) == pytest.approx(made.cost)
    for members, estimate in zip(made.nodes(), made.estimates, strict=True):
        subset = [case.names.index(member) for member in members]
        assert estimate == pytest.approx(case.problem.log_partial_matches(subset))


@every_generator
@pytest.mark.parametrize("n", [5, 34])
def test_the_same_seed_gives_the_same_plan(name, n) -> None:
    limit = PLAN_GENERATORS[name].max_size
    case = random_case(4, n if limit is None else min(n, 10), "SEQ")
    assert found(case, name, seed=11) == found(case, name, seed=11)


@every_generator
def test_a_plan_does_not_depend_on_names_or_on_the_order_of_the_statistics(name) -> None:
    case = random_case(6, 6, "SEQ")
    statistics = case.statistics
    shuffled = Statistics(
        rates=dict(reversed(statistics.rates.items())),
        selectivities={(b, a): s for (a, b), s in reversed(statistics.selectivities.items())},
    )
    assert plan(case.pattern, shuffled, name) == found(case, name)


# LINDP compares whole orders, in which so plentiful a variable drowns what differs.
@pytest.mark.parametrize("name", [name for name in SPACES if name != "LINDP"])
@readings
def test_a_plentiful_variable_without_conditions_comes_last(
    name, operator, time_selectivity, seeds
):
    # Written last; everything else stays as it was.
    for seed in seeds(5):
        case = random_case(seed, 5, operator, time_selectivity)
        rows = [[*row, Fraction(1)] for row in case.selectivities] + [[Fraction(1)] * 6]
        more = dataclasses.replace(
            case,
            rates=(*case.rates, Fraction(10) ** 30),
            selectivities=tuple(map(tuple, rows)),
        )
        before, after = content(found(case, name)), content(found(more, name))
        assert after == ([*before, "v5"] if isinstance(before, list) else (before, "v5"))


@every_generator
@given(seed=st.integers(0, 10_000), factor=st.integers(2, 1000))
@examples(3)
def test_with_cardinalities_the_length_of_the_window_changes_nothing(name, seed, factor) -> None:
    case = random_case(seed, 5, "SEQ")
    wider = dataclasses.replace(case, window=case.window * factor)
    counted = Statistics(
        cardinalities={name: case.statistics.cardinality(name, case.window) for name in case.names},
        selectivities=case.statistics.selectivities,
    )
    assert plan(case.pattern, counted, name) == plan(wider.pattern, counted, name)
    assert content(plan(case.pattern, counted, name)) == content(found(case, name))


@pytest.mark.kernel
@every_search
@pytest.mark.parametrize("operator", ["AND", "SEQ"])
@pytest.mark.parametrize("scale", [Fraction(10) ** 200, Fraction(1, 10**200)], ids=["huge", "tiny"])
def test_costs_beyond_any_float_are_still_compared(name, operator, scale, seeds) -> None:
    for seed in seeds(3):
        case = random_case(seed, 5, operator)
        rates = tuple(Fraction(float(rate * scale)) for rate in case.rates)
        assert_cheapest(dataclasses.replace(case, rates=rates), name)


def test_a_plan_of_unspeakable_cost_still_has_its_logarithm() -> None:
    case = dataclasses.replace(random_case(0, 4), rates=(Fraction(10) ** 200,) * 4)
    made = found(case, "DP-B")
    assert made.cost == np.inf
    assert 1000 < made.log_cost < 4000
    assert "10^" in made.describe()


@pytest.mark.kernel
@every_search
@pytest.mark.parametrize("what", ["no events", "never together", "filtered out", "nothing at all"])
def test_zeros_count_as_the_smallest_float(name, what, seeds) -> None:
    least = Fraction(SMALLEST)
    for seed in seeds(3):
        case = random_case(seed, 5)
        rates = list(case.rates)
        rows = [list(row) for row in case.selectivities]
        if what in ("no events", "nothing at all"):
            rates[2] = Fraction(0)
        if what in ("never together", "nothing at all"):
            rows[1][3] = rows[3][1] = Fraction(0)
        if what in ("filtered out", "nothing at all"):
            rows[4][4] = Fraction(0)
        given_zeros = dataclasses.replace(
            case, rates=tuple(rates), selectivities=tuple(map(tuple, rows))
        )
        counted = dataclasses.replace(
            case,
            rates=tuple(rate or least / case.window for rate in rates),
            selectivities=tuple(tuple(cell or least for cell in row) for row in rows),
        )
        made = found(given_zeros, name)
        least_cost = min(naive_cost(counted, one) for one in SPACES[name](counted))
        assert np.isfinite(made.log_cost)
        assert made.log_cost == pytest.approx(ln(least_cost), abs=1e-9)


@every_generator
def test_where_all_is_equal_the_written_order_decides(name) -> None:
    n = 6
    alike = Case("AND", 1, (Fraction(4),) * n, ((Fraction(1),) * n,) * n)
    made = found(alike, name)
    assert made == found(alike, name)
    if name == "II-RANDOM":
        # No neighbour is better than any start.
        assert sorted(made.order) == list(alike.names)
    elif name in SAMPLED:
        # Nor is any plan better than the first.
        assert sorted(naive.leaves_of(made.tree)) == list(alike.names)
    elif made.kind == "order":
        assert made.order == list(alike.names)
    else:
        assert naive.leaves_of(made.tree) == list(alike.names)


def test_equally_rare_types_come_in_written_order() -> None:
    rates = tuple(map(Fraction, (3, 1, 3, 1, 2)))
    case = Case("AND", 1, rates, ((Fraction(1),) * 5,) * 5)
    assert found(case, "EFREQ").order == ["v1", "v3", "v4", "v0", "v2"]


def test_efreq_does_not_look_at_filters() -> None:
    rows = [[Fraction(1)] * 2 for _ in range(2)]
    rows[0][0] = Fraction(1, 1000)
    case = Case("AND", 1, (Fraction(5), Fraction(4)), tuple(map(tuple, rows)))
    assert found(case, "EFREQ").order == ["v1", "v0"]
    assert found(case, "GREEDY").order == ["v0", "v1"]


def test_efreq_counts_events_under_kleene_closure_and_efreq_sets_their_sets() -> None:
    # 4 and 10 events a window; 2^4 sets are more than 10 events, 4 events fewer.
    case = Case(
        "SEQ", 1, (Fraction(4), Fraction(10)), ((Fraction(1),) * 2,) * 2, kleene=frozenset({0})
    )
    assert found(case, "EFREQ").order == ["v0", "v1"]
    assert found(case, "EFREQ-SETS").order == ["v1", "v0"]
    assert case.problem.rate(0) == pytest.approx(2.0**4)
    np.testing.assert_allclose(np.exp(case.problem.log_arrivals), [4, 10])


def test_the_papers_example_of_a_tree_that_zstream_cannot_reach() -> None:
    # Section 2.3, Figure 2: equal rates, a very restrictive condition between the first and last.
    rows = [[Fraction(1)] * 3 for _ in range(3)]
    rows[0][2] = rows[2][0] = Fraction(1, 1000)
    case = Case("SEQ", 1, (Fraction(10),) * 3, tuple(map(tuple, rows)))
    assert found(case, "DP-B").tree == (("v0", "v2"), "v1")
    assert found(case, "ZSTREAM-ORD").tree == (("v0", "v2"), "v1")
    assert found(case, "ZSTREAM").tree in ((("v0", "v1"), "v2"), ("v0", ("v1", "v2")))
    assert found(case, "ZSTREAM").cost > 1.5 * found(case, "DP-B").cost
