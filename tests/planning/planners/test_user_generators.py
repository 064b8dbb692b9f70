"""Plan generators of users: registration, names, and every way in which one can be wrong."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import PlanGeneratorError, PlanningRefusedError
from cepbench.planning.planners import registry
from cepbench.planning.planners.generate import plan, plan_problem
from cepbench.planning.planners.registry import (
    PLAN_GENERATORS,
    find_generator,
    plan_generator,
    user_defined_generators,
)
from cepbench.planning.plans.model import OrderPlan, TreePlan
from tests.planning_cases import random_case

CASE = random_case(1, 3)


def made_by(function, kind: str = "order", **options):
    """The plan of a generator registered for this test."""
    plan_generator("MINE", kind=kind, **options)(function)
    return plan(CASE.pattern, CASE.statistics, "MINE", seed=5)


def returning(value, plans: str = "order"):
    return made_by(lambda problem, rng: value, plans)


def test_a_users_generator_in_three_lines() -> None:
    @plan_generator("MY-IDEA", kind="order")
    def my_idea(problem, rng):
        """Rarest first.

        And more text.
        """
        return sorted(range(problem.n), key=problem.rate)

    found = plan(CASE.pattern, CASE.statistics, "my-idea")
    assert found.order == plan(CASE.pattern, CASE.statistics, "EFREQ").order
    assert (found.generator, found.cost_model) == ("MY-IDEA", "order-throughput")
    assert list(PLAN_GENERATORS)[-1] == "MY-IDEA"
    entry = PLAN_GENERATORS["MY-IDEA"]
    assert (
        not entry.is_builtin and entry.description == "Rarest first." and entry.function is my_idea
    )
    assert plan(CASE.pattern, CASE.statistics, entry) == found


@pytest.mark.parametrize(
    "value",
    [
        [2, 0, 1],
        (2, 0, 1),
        np.array([2, 0, 1]),
        np.array([2, 0, 1], dtype=np.int8),
        pd.Series([2, 0, 1]),
        map(int, "201"),
        [np.int64(2), 0, np.uint8(1)],
    ],
    ids=lambda value: type(value).__name__,
)
def test_orders_of_every_kind_are_taken(value) -> None:
    found = returning(value)
    assert isinstance(found, OrderPlan)
    assert found.order == ["v2", "v0", "v1"]


@pytest.mark.parametrize("value", [((2, 0), 1), [[2, 0], 1], ((np.int64(2), 0), 1)])
def test_trees_of_every_kind_are_taken(value) -> None:
    found = returning(value, "tree")
    assert isinstance(found, TreePlan)
    assert found.tree == (("v2", "v0"), "v1")


def test_the_seed_reaches_the_generator() -> None:
    draws = []

    def drawing(problem, rng):
        draws.append(rng.integers(10**9))
        return rng.permutation(problem.n)

    assert made_by(drawing) == made_by(drawing)
    assert draws[0] == draws[1] == np.random.default_rng(5).integers(10**9)


def test_running_a_cell_again_replaces_the_function() -> None:
    def cell(order):
        @plan_generator("MINE", kind="order")
        def mine(problem, rng):
            return order

    cell([0, 1, 2])
    plan_generator("OTHER", kind="order")(lambda problem, rng: [0, 1, 2])
    cell([2, 1, 0])
    assert list(PLAN_GENERATORS)[-2:] == ["MINE", "OTHER"]
    assert plan(CASE.pattern, CASE.statistics, "MINE").order == ["v2", "v1", "v0"]


def test_the_same_function_may_change_the_case_of_its_name() -> None:
    def mine(problem, rng):
        return [0, 1, 2]

    plan_generator("MINE", kind="order")(mine)
    plan_generator("Mine", kind="order")(mine)
    assert "MINE" not in PLAN_GENERATORS and find_generator("mINE").name == "Mine"


def test_a_name_of_cepbench_is_refused() -> None:
    with pytest.raises(PlanGeneratorError, match="GREEDY is the name of a built-in plan generator"):
        plan_generator("greedy", kind="order")(lambda problem, rng: [])
    assert PLAN_GENERATORS["GREEDY"].is_builtin


def test_another_function_of_the_same_name_replaces_a_faulty_one() -> None:
    def one(problem, rng):
        return [0, 1, 2]

    def two(problem, rng):
        return [2, 1, 0]

    plan_generator("MINE", kind="order")(one)
    plan_generator("Mine", kind="order")(two)
    assert PLAN_GENERATORS["Mine"].function is two
    assert user_defined_generators().count("Mine") == 1 and "MINE" not in user_defined_generators()


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_generator_needs_a_name(name) -> None:
    with pytest.raises(PlanGeneratorError, match="needs a name"):
        plan_generator(name, kind="order")


def test_a_generator_says_what_it_plans() -> None:
    with pytest.raises(
        PlanGeneratorError,
        match="MINE: kind is one of order, tree, automaton, not 'orders'; did you mean 'order'",
    ):
        plan_generator("MINE", kind="orders")


def test_a_generator_can_be_called() -> None:
    with pytest.raises(PlanGeneratorError, match=r"MINE: .* is a function, not \[1\]"):
        plan_generator("MINE", kind="order")([1])

    class Reversed:
        def __call__(self, problem, rng):
            return range(problem.n)[::-1]

    assert made_by(Reversed()).order == ["v2", "v1", "v0"]
    registry.PLAN_GENERATORS.remove("MINE")
    assert made_by(partial(lambda order, problem, rng: order, [1, 0, 2])).order == [
        "v1",
        "v0",
        "v2",
    ]


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(PlanGeneratorError, match=r"did you mean 'DP-LD'\?") as caught:
        plan(CASE.pattern, CASE.statistics, "dpld")
    assert "ZSTREAM-ORD" in str(caught.value)
    with pytest.raises(PlanGeneratorError, match=r"did you mean 'GREEDY'\?"):
        find_generator("gredy")
    with pytest.raises(
        PlanGeneratorError, match=r"no plan generator 'qqqq'; there are TRIVIAL.*FLIPS$"
    ):
        find_generator("qqqq")
    with pytest.raises(PlanGeneratorError, match="no plan generator None"):
        find_generator(None)  # type: ignore[arg-type]
    with pytest.raises(PlanGeneratorError, match="no plan generator 3"):
        plan(CASE.pattern, CASE.statistics, 3)  # type: ignore[arg-type]
    assert plan(CASE.pattern, CASE.statistics, None).generator == "DP-B"


def test_the_registry_cannot_be_written_past_the_decorator() -> None:
    with pytest.raises(TypeError):
        PLAN_GENERATORS["MINE"] = PLAN_GENERATORS["GREEDY"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "None; an order is a list"),
        (7, "7; an order is a list"),
        ("abc", "'abc'; an order is a list"),
        (b"\x00\x01\x02", "an order is a list"),
        ({0, 1, 2}, r"\{0, 1, 2\}; an order is a list"),
        ({0: 1, 1: 2, 2: 0}, "an order is a list"),
        ([], r"0 \('v0'\), 1 \('v1'\) and 2 \('v2'\) are missing"),
        ([0, 1], r"returned \[0, 1\] for 3 events: 2 \('v2'\) is missing; return each of range"),
        ([0, 1, 1], r"1 \('v1'\) appears twice, 2 \('v2'\) is missing"),
        (np.array([0, 1, 1]), r"returned \[0, 1, 1\] for"),
        ([0, 1, 2, 2], r"2 \('v2'\) appears twice; return each of range\(problem.n\) once"),
        ([0, 1, 3], "not 3; they begin at 0"),
        ([0, 1, 4], r"not 4\n"),
        ([0, 1, -1], "not -1"),
        ([0.0, 1.0, 2.0], "0.0 is no index"),
        ([0, 1, None], "None is no index"),
        ([True, False, 2], "True is no index"),
        (["v0", "v1", "v2"], r"'v0' is no index \(an index, not a name\)"),
        ([[0, 1], 2], r"\[0, 1\] is no index"),
        (((0, 1), 2), r'\(0, 1\) is no index \(nested pairs are a tree, for kind="tree"\)'),
        (np.zeros((3, 1)), "is no index"),
        (np.array(0), "MINE failed: TypeError"),
        (pd.DataFrame({"a": [0]}), "'a' is no index"),
        (OrderPlan(["v0", "v1", "v2"]), "an order is a list"),
        (itertools.repeat(0), r"0 \('v0'\) appears 4 times, 1 \('v1'\) and 2 \('v2'\) are missing"),
        ("x" * 1000, "x{199} …; an order is a list"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else None,
)
def test_wrong_orders_name_the_generator_and_the_fault(value, message) -> None:
    with pytest.raises(PlanGeneratorError, match=message) as caught:
        returning(value)
    assert "MINE" in str(caught.value)


HOLDS_ITSELF: list = [0]
HOLDS_ITSELF.append(HOLDS_ITSELF)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "None is no index"),
        (0, r"returned 0 for 3 events: 1 \('v1'\) and 2 \('v2'\) are missing"),
        ("v0", r"'v0' is no index \(an index, not a name\)"),
        ((), "is no pair"),
        ((0,), "is no pair"),
        (
            (0, 1, 2),
            r'\(0, 1, 2\) is no pair; .*, and a list of indices an order, for kind="order"',
        ),
        (((0, 1), (2,)), r"\(2,\) is no pair"),
        ((0, 1), r"returned \(0, 1\) for 3 events: 2 \('v2'\) is missing; return each of range"),
        (((0, 1), 1), r"1 \('v1'\) appears twice, 2 \('v2'\) is missing"),
        (((0, 1), 3), "not 3"),
        (((0, -1), 2), "not -1"),
        (((0, 1.0), 2), "1.0 is no index"),
        (((0, True), 2), "True is no index"),
        (((0, "v1"), 2), "not a name"),
        ((np.array([0, 1]), 2), "is no index"),
        (TreePlan((("v0", "v1"), "v2")), "is no index"),
        (HOLDS_ITSELF, "too deep, or holds itself"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else None,
)
def test_wrong_trees_name_the_generator_and_the_fault(value, message) -> None:
    with pytest.raises(PlanGeneratorError, match=message) as caught:
        returning(value, "tree")
    assert "MINE" in str(caught.value)


@pytest.mark.parametrize("error", [ZeroDivisionError("oh"), KeyError("k"), RecursionError()])
def test_an_exception_in_the_generator_is_named_and_chained(error) -> None:
    def failing(problem, rng):
        raise error

    with pytest.raises(PlanGeneratorError, match="plan generator MINE failed") as caught:
        made_by(failing)
    assert caught.value.__cause__ is error
    assert type(error).__name__ in str(caught.value)


def test_an_error_says_in_which_line_of_the_generator_it_came_up() -> None:
    def failing(problem, rng):
        order = list(range(problem.n))
        order.sort(key=lambda i: {}[i])
        return order

    line = failing.__code__.co_firstlineno + 2
    with pytest.raises(PlanGeneratorError) as caught:
        made_by(failing)
    assert str(caught.value).endswith(f"failed: KeyError(0) (in line {line} of failing)")


def test_whoever_wrote_the_generator_is_told_of_the_check() -> None:
    for wrong in (lambda problem, rng: [0], lambda problem, rng: 1 / 0):
        with pytest.raises(PlanGeneratorError) as caught:
            made_by(wrong)
        assert caught.value.__notes__ == [
            "cep.check_generator('MINE') tries it on planning problems of every kind and reports "
            "what is wrong"
        ]
        registry.PLAN_GENERATORS.remove("MINE")


def test_an_exception_between_two_yielded_indices_is_named_too() -> None:
    def failing(problem, rng) -> Iterator[int]:
        yield 0
        raise ValueError("halfway")

    with pytest.raises(PlanGeneratorError, match=r"MINE failed: ValueError\('halfway'\)"):
        made_by(failing)


def test_a_wrong_signature_is_an_error_of_the_generator() -> None:
    with pytest.raises(PlanGeneratorError, match="MINE failed: TypeError"):
        made_by(lambda problem: [0, 1, 2])


def test_a_number_that_fits_no_float_is_explained_to_the_generator() -> None:
    problem = random_case(0, 3).problem
    big = type(problem)(problem.names, problem.log_cardinality + 800, problem.log_selectivity)
    plan_generator("MINE", kind="order")(lambda p, rng: sorted(range(p.n), key=p.rate))
    with pytest.raises(PlanGeneratorError, match=r"MINE failed: .*compare problem\.log_rate"):
        plan_problem(big, "MINE")


def test_an_interrupt_is_nobodys_fault() -> None:
    def interrupted(problem, rng):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_by(interrupted)


def test_a_generator_cannot_change_its_problem() -> None:
    def meddling(problem, rng):
        problem.log_cardinality[0] = 0

    with pytest.raises(PlanGeneratorError, match="read-only"):
        made_by(meddling)


def test_a_generator_may_refuse() -> None:
    def refusing(problem, rng):
        raise PlanningRefusedError("MINE wants four variables")

    with pytest.raises(PlanningRefusedError, match="MINE wants four"):
        made_by(refusing)
    registry.PLAN_GENERATORS.remove("MINE")
    with pytest.raises(PlanningRefusedError, match=r"MINE takes at most 2 .* the pattern has 3"):
        made_by(lambda problem, rng: [0, 1, 2], max_size=2)


def test_running_out_of_memory_is_a_refusal() -> None:
    def greedy_for_memory(problem, rng):
        return np.empty(2**55)

    with pytest.raises(PlanningRefusedError, match="MINE ran out of memory over 3 variables"):
        made_by(greedy_for_memory)


@pytest.mark.parametrize(
    "name",
    [name for name, entry in PLAN_GENERATORS.items() if entry.max_size and name != "DPCCP"],
)
def test_sizes_beyond_memory_are_refused_at_once(name) -> None:
    most = PLAN_GENERATORS[name].max_size
    # 16 bytes for each set of variables.
    assert most >= 16 and 16 * 2**most <= 2**28
    for n in (most + 1, 70):
        with pytest.raises(PlanningRefusedError, match=f"{name} takes at most {most}.*has {n}"):
            plan_problem(random_case(0, n).problem, name)


def test_those_that_list_sets_have_a_limit_and_the_others_none() -> None:
    limited = {
        name
        for name, entry in PLAN_GENERATORS.items()
        if entry.is_builtin and entry.max_size is not None
    }
    assert limited == {"DP-LD", "DP-B", "DPCCP"}


@pytest.mark.parametrize("seed", [None, -1, 1.5, "7", [1, 2]])
def test_a_seed_that_could_not_be_noted_is_refused(seed) -> None:
    with pytest.raises(PlanGeneratorError, match="seed must "):
        plan(CASE.pattern, CASE.statistics, "GREEDY", seed=seed)
    assert plan(CASE.pattern, CASE.statistics, "GREEDY", seed=np.int64(3)).seed == 3


def test_a_wrong_plan_is_a_row_of_the_results_that_says_why() -> None:
    from cepbench.presentation.comparison.compare import compare
    from cepbench.streams.event_stream import EventStream

    frame = pd.DataFrame({"type": ["V0", "V1", "V2"], "ts": range(3)})
    stream = EventStream.from_pandas(frame, type="type", time="ts")
    plan_generator("MINE", kind="order")(lambda problem, rng: [2, 0, 2])
    table = compare(
        CASE.pattern,
        stream,
        statistics=CASE.statistics,
        generators=["MINE", "GREEDY"],
        repetitions=1,
        seconds=0,
    )
    assert list(table["status"]) == ["error", "ok"]
    told = (
        "MINE returned [2, 0, 2] for 3 events: 2 ('v2') appears twice, 1 ('v1') is missing; "
        "return each of range(problem.n) once"
    )
    assert table["reason"].iloc[0] == f"PlanGeneratorError: {told}"
    assert "MINE returned [2, 0, 2]" in table._repr_html_()


def test_a_refusal_is_a_row_of_the_results() -> None:
    # Imported here: the other tests of this file need no stream and no evaluator.
    from cepbench.presentation.comparison.compare import compare
    from cepbench.streams.event_stream import EventStream

    case = dataclasses.replace(random_case(0, 25, "SEQ"), window=30)
    frame = pd.DataFrame({"type": [f"V{i}" for i in range(25)], "ts": range(25)})
    stream = EventStream.from_pandas(frame, type="type", time="ts")
    table = compare(
        case.pattern,
        stream,
        statistics=case.statistics,
        generators=["DP-LD", "GREEDY", "DP-B"],
        repetitions=1,
        seconds=0,
    )
    assert list(table["status"]) == ["refused", "ok", "refused"]
    assert "DP-B takes at most 24 variables" in table["reason"].iloc[2]
