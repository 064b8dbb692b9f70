"""Cost models in log space against the paper's formulas in exact fractions."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import PlanGeneratorError, StatisticsError, UnsupportedPatternError
from cepbench.patterns.model import (
    ANY,
    Kind,
    Operator,
    Pattern,
    Strategy,
    Structure,
    Variable,
    Window,
)
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.latency import Latency
from cepbench.planning.costs.logarithms import SMALLEST
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.statistics.model import Statistics
from tests.budgets import examples
from tests.planning_cases import READINGS, Case, ln, random_case

readings = pytest.mark.parametrize(
    ("operator", "time_selectivity"), READINGS, ids=["AND", "SEQ-adjacent", "SEQ-exact"]
)


def random_tree(rng: np.random.Generator, members: list[int]):
    if len(members) == 1:
        return members[0]
    cut = int(rng.integers(1, len(members)))
    return (random_tree(rng, members[:cut]), random_tree(rng, members[cut:]))


@readings
@given(seed=st.integers(0, 10_000), n=st.integers(1, 9))
@examples(20)
def test_costs_equal_the_papers_formulas(operator, time_selectivity, seed, n) -> None:
    case = random_case(seed, n, operator, time_selectivity)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n).tolist()
    tree = random_tree(rng, rng.permutation(n).tolist())
    problem = case.problem
    assert problem.log_order_cost(order) == pytest.approx(ln(case.order_cost(order)), abs=1e-10)
    assert problem.order_cost(order) == pytest.approx(float(case.order_cost(order)), rel=1e-10)
    assert problem.log_tree_cost(tree) == pytest.approx(ln(case.tree_cost(tree)), abs=1e-10)
    assert problem.tree_cost(tree) == pytest.approx(float(case.tree_cost(tree)), rel=1e-10)


@readings
@given(seed=st.integers(0, 10_000), n=st.integers(1, 7))
@examples(13)
def test_node_sizes_are_those_of_prefixes_and_of_nodes_in_post_order(
    operator, time_selectivity, seed, n
) -> None:
    case = random_case(seed, n, operator, time_selectivity)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n).tolist()
    tree = random_tree(rng, order)
    sums = [case.order_cost(order[:k]) for k in range(n + 1)]
    prefixes = [ln(after - before) for before, after in itertools.pairwise(sums)]
    found = case.problem.log_node_sizes("order", order)
    assert found == pytest.approx(prefixes, abs=1e-10)
    # Any set has one size, whatever the plan that reaches it.
    assert [case.problem.log_partial_matches(order[:k]) for k in range(1, n + 1)] == pytest.approx(
        prefixes, abs=1e-10
    )
    nodes = case.problem.log_node_sizes("tree", tree)
    assert nodes == pytest.approx([ln(size) for size in case.tree_sizes(tree)], abs=1e-10)


def test_a_small_example_by_hand() -> None:
    # W = 10; a: 2, b: 1, c: 4 events per window; sel(a,c) = 1/4, filter on b = 1/2.
    pattern = Pattern(
        Structure(Operator.SEQ, tuple(Variable(name, name.upper()) for name in "abc")),
        (),
        Window(10, "seconds"),
    )
    statistics = Statistics(
        cardinalities={"a": 2, "b": 1, "c": 4}, selectivities={("c", "a"): 0.25, ("b", "b"): 0.5}
    )
    problem = CostedProblem.from_pattern(pattern, statistics)
    # c: 4; c, a: 4·2/4 = 2 (not neighbours); c, a, b: 2 · 1/2 · 1/2 · 1/2 = 1/4.
    assert problem.order_cost([2, 0, 1]) == pytest.approx(4 + 2 + 0.25)
    # leaves 2 + 1/2 + 4, (a, b): 2 · 1/2 · 1/2 = 1/2, root: 1/4.
    assert problem.tree_cost(((0, 1), 2)) == pytest.approx(6.5 + 0.5 + 0.25)
    assert problem.rate(0) == pytest.approx(0.2)
    assert problem.cardinality(0) == pytest.approx(2)
    assert problem.selectivity(0, 1) == pytest.approx(0.5)
    assert problem.selectivity(0, 2) == pytest.approx(0.25)
    assert problem.selectivity(1, 1) == pytest.approx(0.5)
    assert problem.partial_matches([0, 2]) == pytest.approx(2)
    assert np.exp(problem.log_filtered) == pytest.approx([2, 0.5, 4])
    exact = CostedProblem.from_pattern(pattern, statistics, "exact")
    # c: 4; c, a: 2 / 2!; all: 4 · 2 · 1 · 1/4 · 1/2 / 3!.
    assert exact.order_cost([2, 0, 1]) == pytest.approx(4 + 1 + 1 / 6)
    assert exact.selectivity(0, 1) == pytest.approx(1)


def test_trees_may_be_nested_lists() -> None:
    problem = random_case(1, 3).problem
    assert problem.log_tree_cost([[0, 2], 1]) == problem.log_tree_cost(((0, 2), 1))


def test_adjacent_and_exact_order_in_time() -> None:
    for n in (1, 2, 3, 4):
        case = random_case(3, n, "SEQ")
        exact = dataclasses.replace(case, time_selectivity="exact")
        order = list(range(n))
        # 1/2 for each of n - 1 neighbours against 1/n!.
        assert case.problem.log_partial_matches(order) - exact.problem.log_partial_matches(
            order
        ) == pytest.approx(math.lgamma(n + 1) - (n - 1) * math.log(2), abs=1e-10)
        conjunction = dataclasses.replace(case, operator="AND")
        both = dataclasses.replace(conjunction, time_selectivity="exact")
        assert both.problem.log_order_cost(order) == conjunction.problem.log_order_cost(order)


@given(rates=st.lists(st.floats(0, 1e200), min_size=1, max_size=12), seed=st.integers(0, 99))
def test_costs_are_finite_in_log_space_at_any_rate(rates, seed) -> None:
    n = len(rates)
    base = random_case(seed, n)
    case = dataclasses.replace(base, rates=tuple(Fraction(rate) for rate in rates))
    problem = case.problem
    order = list(range(n))
    assert math.isfinite(problem.log_order_cost(order))
    if all(rate * case.window >= SMALLEST for rate in rates):
        assert problem.log_order_cost(order) == pytest.approx(ln(case.order_cost(order)), abs=1e-8)


def test_zero_rates_and_selectivities_count_as_the_smallest_float() -> None:
    zero = Case("AND", 1, (Fraction(0), Fraction(3)), ((Fraction(1),) * 2,) * 2)
    assert zero.problem.log_cardinality[0] == math.log(SMALLEST)
    never = Case(
        "AND",
        1,
        (Fraction(2), Fraction(3)),
        ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))),
    )
    assert never.problem.log_selectivity[0, 1] == math.log(SMALLEST)
    assert never.problem.order_cost([0, 1]) == pytest.approx(2)
    still = Case("AND", 0, (Fraction(2),), ((Fraction(1),),))
    assert still.problem.log_cardinality[0] == math.log(SMALLEST)
    assert math.isfinite(still.problem.log_rate(0))


def test_a_number_too_large_for_a_float_is_an_error_never_infinity() -> None:
    problem = CostedProblem(("a", "b"), np.array([600.0, 900.0]), np.zeros((2, 2)))
    assert problem.cardinality(0) == pytest.approx(math.exp(600))
    for method, argument in (
        ("rate", 1),
        ("cardinality", 1),
        ("partial_matches", [0, 1]),
        ("order_cost", [0, 1]),
        ("tree_cost", (0, 1)),
    ):
        with pytest.raises(PlanGeneratorError, match=f"problem.log_{method}"):
            getattr(problem, method)(argument)
    assert problem.log_order_cost([0, 1]) == pytest.approx(1500)


@given(seed=st.integers(0, 999), n=st.integers(2, 6), factor=st.integers(2, 50))
@examples(13)
def test_scaling_the_window_scales_every_prefix(seed, n, factor) -> None:
    case = random_case(seed, n, "SEQ")
    wider = dataclasses.replace(case, window=case.window * factor)
    order = list(range(n))
    grown = wider.problem.log_node_sizes("order", order)
    grown -= case.problem.log_node_sizes("order", order)
    assert grown == pytest.approx(np.arange(1, n + 1) * math.log(factor), abs=1e-10)
    # With cardinalities given, the length of the window says nothing any more.
    fixed = Statistics(cardinalities=dict.fromkeys(case.names, 3.0))
    assert CostedProblem.from_pattern(case.pattern, fixed).log_order_cost(
        order
    ) == CostedProblem.from_pattern(wider.pattern, fixed).log_order_cost(order)


def test_an_unconditioned_variable_of_one_event_leaves_the_other_prefixes_alone() -> None:
    case = random_case(5, 4)
    rows = [[*row, Fraction(1)] for row in case.selectivities] + [[Fraction(1)] * 5]
    extra = dataclasses.replace(
        case, rates=(*case.rates, Fraction(1, 20)), selectivities=tuple(map(tuple, rows))
    )
    before = case.problem.log_node_sizes("order", [0, 1, 2, 3])
    after = extra.problem.log_node_sizes("order", [0, 1, 2, 3, 4])
    assert after[:4] == pytest.approx(before)
    assert after[4] == pytest.approx(before[3])


def test_problems_that_make_no_sense_are_refused() -> None:
    one = np.zeros(1)
    with pytest.raises(StatisticsError, match="at least one"):
        CostedProblem((), np.zeros(0), np.zeros((0, 0)))
    with pytest.raises(StatisticsError, match="log_cardinality has shape"):
        CostedProblem(("a", "b"), one, np.zeros((2, 2)))
    with pytest.raises(StatisticsError, match="log_selectivity has shape"):
        CostedProblem(("a",), one, np.zeros((2, 2)))
    with pytest.raises(StatisticsError, match="log_order_factor has shape"):
        CostedProblem(("a",), one, np.zeros((1, 1)), np.zeros(5))
    for wrong in (math.inf, -math.inf, math.nan):
        with pytest.raises(StatisticsError, match="not finite"):
            CostedProblem(("a",), np.array([wrong]), np.zeros((1, 1)))
    with pytest.raises(StatisticsError, match="not symmetric"):
        CostedProblem(("a", "b"), np.zeros(2), np.array([[0.0, 1.0], [0.0, 0.0]]))
    case = random_case(0, 2)
    with pytest.raises(
        StatisticsError, match=r"time_selectivity is one of adjacent, exact, not 'typo'"
    ):
        CostedProblem.from_pattern(case.pattern, case.statistics, "typo")
    with pytest.raises(StatisticsError, match=r"no rate .*'v1'"):
        CostedProblem.from_pattern(case.pattern, Statistics(rates={"v0": 1.0}))
    with pytest.raises(StatisticsError, match="too large for a float"):
        CostedProblem.from_pattern(case.pattern, Statistics(rates={"v0": 1e308, "v1": 1}))
    three = random_case(0, 3)
    nested = Pattern(
        Structure(
            Operator.SEQ,
            (Variable("v0", "A"), Structure(Operator.AND, three.pattern.variables[1:])),
        ),
        (),
        Window(1, "units"),
    )
    with pytest.raises(UnsupportedPatternError, match="nests"):
        CostedProblem.from_pattern(nested, three.statistics, "exact")


def test_a_problem_is_a_read_only_copy() -> None:
    cardinality = np.zeros(2)
    problem = CostedProblem(("a", "b"), cardinality, np.zeros((2, 2)))
    cardinality[0] = 5
    assert problem.log_cardinality[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        problem.log_cardinality[0] = 1


def nested_pattern(strategy: Strategy = ANY) -> Pattern:
    """SEQ(a, AND(b, c), NOT(n), d): c and b have no order, and d comes last."""
    a, b, c, d = (Variable(name, name.upper()) for name in "abcd")
    items = (a, Structure(Operator.AND, (b, c)), Variable("n", "N", Kind.NEGATED), d)
    return Pattern(Structure(Operator.SEQ, items), (), Window(10, "seconds"), strategy)


def test_nested_patterns_have_a_condition_for_each_covering_pair() -> None:
    statistics = Statistics(cardinalities=dict.fromkeys("abcdn", 2.0))
    problem = CostedProblem.from_pattern(nested_pattern(), statistics)
    assert problem.names == tuple("abcd") and problem.last == 3
    halves = np.ones((4, 4))
    for i, j in ((0, 1), (0, 2), (1, 3), (2, 3)):
        halves[i, j] = halves[j, i] = 0.5
    assert np.exp(problem.log_selectivity) == pytest.approx(halves)
    assert problem.partial_matches([0, 3]) == pytest.approx(4)


def test_contiguity_by_hand() -> None:
    # 30 events of any type in the window of 10 s, in 5 partitions.
    statistics = Statistics(
        cardinalities=dict.fromkeys("abcd", 2.0),
        selectivities={("a", "b"): 0.2, ("a", "d"): 0.3},
        stream_rate=3,
        partitions=5,
    )
    strict = CostedProblem.from_pattern(nested_pattern(Strategy("strict_contiguity")), statistics)
    # Two that have an order, and two that have none but may be neighbours.
    assert strict.selectivity(0, 1) == pytest.approx(0.2 * 0.5 / 30)
    assert strict.selectivity(1, 2) == pytest.approx(1 / 30)
    assert strict.selectivity(0, 3) == pytest.approx(0.3)
    assert strict.partial_matches([1, 2]) == pytest.approx(2 / 30)
    inner = CostedProblem.from_pattern(
        nested_pattern(Strategy("partition_contiguity", "x")), statistics
    )
    # What is given has equal partitions in it; 6 events of a partition arrive in a window.
    assert inner.selectivity(0, 1) == pytest.approx(0.2 * 0.5 / 6)
    assert inner.selectivity(1, 2) == pytest.approx(1 / 5 / 6)
    assert inner.selectivity(0, 3) == pytest.approx(0.3)
    rare = Statistics(cardinalities=dict.fromkeys("abcd", 2.0), stream_rate=0.01, partitions=1)
    assert CostedProblem.from_pattern(
        nested_pattern(Strategy("strict_contiguity")), rare
    ).selectivity(1, 2) == pytest.approx(1)


def test_a_kleene_variable_has_the_rate_of_the_paper() -> None:
    # Section 4: 5 events per second, 10 seconds: r' = 2^50 / 10.
    items = (Variable("a", "A"), Variable("b", "B", Kind.KLEENE), Variable("c", "C"))
    pattern = Pattern(Structure(Operator.AND, items), (), Window(10, "seconds"))
    problem = CostedProblem.from_pattern(pattern, Statistics(rates=dict.fromkeys("abc", 5.0)))
    assert problem.rate(1) == pytest.approx(2.0**50 / 10)
    assert problem.cardinality(1) == pytest.approx(2.0**50)
    assert problem.rate(0) == pytest.approx(5)
    many = CostedProblem.from_pattern(pattern, Statistics(rates=dict.fromkeys("abc", 2000.0)))
    assert many.log_cardinality[1] == pytest.approx(20_000 * math.log(2))
    with pytest.raises(PlanGeneratorError, match="log_cardinality"):
        many.cardinality(1)
    sets = tuple(Variable(name, "B", Kind.KLEENE) for name in "ab")
    both = Pattern(Structure(Operator.AND, sets), (), Window(1, "units"))
    with pytest.raises(StatisticsError, match="not finite"):
        CostedProblem.from_pattern(both, Statistics(cardinalities=dict.fromkeys("ab", 1.7e308)))


def test_strategies_that_lack_a_number_say_which() -> None:
    bare = Statistics(cardinalities=dict.fromkeys("abcd", 2.0))
    for strategy in (Strategy("strict_contiguity"), Strategy("partition_contiguity", "x")):
        with pytest.raises(StatisticsError, match=r"Statistics\((stream_rate|partitions)=...\)"):
            CostedProblem.from_pattern(nested_pattern(strategy), bare)
    with_rate = Statistics(cardinalities=dict.fromkeys("abcd", 2.0), stream_rate=3)
    with pytest.raises(StatisticsError, match=r"Statistics\(partitions=...\)"):
        CostedProblem.from_pattern(nested_pattern(Strategy("partition_contiguity", "x")), with_rate)


def test_latency_by_hand() -> None:
    # a: 2, b: 1, c: 4 per window; filter on b = 1/2; b comes last.
    items = tuple(Variable(name, name.upper()) for name in "acb")
    pattern = Pattern(Structure(Operator.SEQ, items), (), Window(10, "seconds"))
    statistics = Statistics(cardinalities={"a": 2, "b": 1, "c": 4}, selectivities={("b", "b"): 0.5})
    problem = CostedProblem.from_pattern(pattern, statistics, cost=Throughput(10))
    assert problem.last == 2 and problem.terms.last == 2
    # Indices: a 0, c 1, b 2. b: 1/2, b a: 1, b a c: 1; a (2) and c (4) come after b.
    assert problem.order_cost([2, 0, 1]) == pytest.approx(0.5 + 1 + 1 + 10 * (2 + 4))
    assert problem.order_cost([0, 1, 2]) == pytest.approx(2 + 4 + 1)
    # Leaves 2 + 4 + 1/2; (c, b): 1; root: 1. Beside the way from b: c (4) and a (2).
    assert problem.tree_cost((0, (1, 2))) == pytest.approx(6.5 + 1 + 1 + 10 * (4 + 2))
    # (a, c): 4 beside b alone.
    assert problem.tree_cost(((0, 1), 2)) == pytest.approx(6.5 + 4 + 1 + 10 * 4)
    without = CostedProblem.from_pattern(pattern, statistics)
    assert without.terms.last == -1 and without.terms.log_weight == -math.inf
    for kind, plan in (("order", [2, 0, 1]), ("tree", (0, (1, 2)))):
        assert Latency().log_cost(problem, kind, plan) == pytest.approx(math.log(6))
    alone = CostedProblem(("a",), np.zeros(1), np.zeros((1, 1)), cost=Throughput(1), last=0)
    assert alone.log_order_cost([0]) == alone.log_tree_cost(0) == 0


def test_latency_that_makes_no_sense() -> None:
    case = random_case(1, 3)
    for alpha in (-1, math.nan, math.inf, "much"):
        with pytest.raises(StatisticsError, match="alpha must be"):
            CostedProblem.from_pattern(case.pattern, case.statistics, cost=Throughput(alpha))
    with pytest.raises(StatisticsError, match="OutputProfiler"):
        CostedProblem.from_pattern(case.pattern, case.statistics, cost=Throughput(1))
    with pytest.raises(
        StatisticsError, match=r"last = 'z', but there is no such variable; .*v0, v1, v2"
    ):
        CostedProblem.from_pattern(case.pattern, case.statistics, last="z")
    sequence = dataclasses.replace(case, operator="SEQ")
    with pytest.raises(StatisticsError, match=r"another event always follows it; .* that of v2"):
        CostedProblem.from_pattern(sequence.pattern, case.statistics, last="v0")
    with pytest.raises(StatisticsError, match="none of the indices"):
        CostedProblem(("a",), np.zeros(1), np.zeros((1, 1)), last=1)


def test_a_pattern_with_or_is_several_problems() -> None:
    case = random_case(1, 3)
    either = Structure(Operator.OR, case.pattern.variables)
    with pytest.raises(UnsupportedPatternError, match=r"pattern.branches\(\)"):
        CostedProblem.from_pattern(Pattern(either, (), Window(1, "units")), case.statistics)


def test_an_automaton_has_no_plan_to_choose() -> None:
    case = random_case(1, 3)
    sequence = Structure(Operator.SEQ, case.pattern.variables)
    pattern = Pattern(sequence, (), Window(9, "units"), Strategy("next"))
    with pytest.raises(UnsupportedPatternError, match="no choice of a plan; evaluate the pattern"):
        CostedProblem.from_pattern(pattern, case.statistics)
