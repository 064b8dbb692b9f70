"""The check of a plan generator finds every way to be wrong, and nothing wrong where nothing is."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import cepbench as cep
from cepbench.errors import ExperimentError, PlanGeneratorError, PlanningRefusedError
from cepbench.experiments.conformance.generator_problems import (
    PROBLEM_KINDS,
    SIZES,
    check_problem,
    check_problems,
)
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners import registry
from cepbench.planning.planners.generate import plan_problem
from tests.generators import UNIVERSAL, affordable

check_generator = cep.check_generator


def report_on(function, kind="order", *, sizes=(1, 2, 3, 4), options=None, **others):
    registry.PLAN_GENERATORS.remove("MINE")
    cep.plan_generator("MINE", kind=kind, **options or {})(function)
    return check_generator(function, sizes=sizes, **others)


def by_log_rate(problem, rng):
    return sorted(range(problem.n), key=problem.log_rate)


def left_deep(order):
    tree = order[0]
    for index in order[1:]:
        tree = (tree, index)
    return tree


# --- the problems ---------------------------------------------------------------------------------


def test_the_problems_are_what_their_kinds_say() -> None:
    problems = check_problems()
    assert len(problems) == 1 + (len(SIZES) - 1) * len(PROBLEM_KINDS)
    assert [p.n for p in problems.values()] == sorted(p.n for p in problems.values())
    assert next(iter(problems)) == "sequence-1"
    fives = {name.removesuffix("-5"): p for name, p in problems.items() if p.n == 5}
    assert {p.operator for p in fives.values()} == {"SEQ", "AND"}
    between = {kind: np.tril(problem.log_selectivity, -1) != 0 for kind, problem in fives.items()}
    assert not between["unconnected"].any()
    assert between["acyclic"].sum() == 4
    assert np.ptp(fives["equal"].log_cardinality) == 0
    assert np.ptp(fives["sequence"].log_cardinality) > np.log(10)
    assert "absent" not in fives["negation"].names
    # Sets of the events under KL: as many as 2 to the power of the events.
    assert fives["kleene"].cardinality(1) < 2**8
    with pytest.raises(PlanGeneratorError, match=r"compare problem\.log_cardinality"):
        fives["extreme"].cardinality(1)
    assert fives["extreme"].log_cardinality[0] < -700
    assert fives["latency"].alpha == 0.5 and fives["latency"].last == 4
    assert {kind for kind, p in fives.items() if p.consuming} == {"consuming"}
    assert {kind for kind, p in fives.items() if p.log_order_factor.any()} == {"exact"}


def test_a_problem_can_be_had_again_by_its_name_and_seed() -> None:
    for name, problem in check_problems(sizes=[3], seed=7).items():
        again, other = check_problem(name, seed=7), check_problem(name, seed=8)
        assert again is not problem
        for key in ("log_cardinality", "log_selectivity"):
            assert np.array_equal(getattr(problem, key), getattr(again, key)), name
        if not name.startswith("equal"):
            assert not np.array_equal(problem.log_cardinality, other.log_cardinality), name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: check_problem("sequenc-4"), "did you mean 'sequence-4'"),
        (lambda: check_problem("sequence-0"), "no problem 'sequence-0'"),
        (lambda: check_problem("sequence"), "a kind and a number"),
        (lambda: check_problem("xyz-3"), "kinds are sequence, conj"),
        (lambda: check_problems("sequence"), "problems must be a list such as"),
        (lambda: check_problems([]), "nothing would be tried"),
        (lambda: check_problems(sizes=[]), "nothing would be tried"),
        (lambda: check_problems(sizes=[0]), "no problem 'sequence-0'"),
    ],
)
def test_a_problem_that_does_not_exist(make, message) -> None:
    with pytest.raises(ExperimentError, match=message):
        make()


# --- generators with nothing wrong ----------------------------------------------------------------


@pytest.mark.parametrize("name", affordable(UNIVERSAL))
def test_the_projects_own_generators_pass(name: str) -> None:
    report = check_generator(name, sizes=[1, 2, 4], time_limit=20)
    assert report.passed, report.describe()
    assert f"{name} " in report.describe() and "passed all" in report.describe()
    assert repr(report) == f"<{report.describe().splitlines()[0]}>"


@pytest.mark.parametrize("name", ["IKKBZ", "DPCCP"])
def test_to_refuse_some_problems_is_no_fault(name: str) -> None:
    report = check_generator(name, sizes=[1, 3], time_limit=20)
    assert report.passed, report.describe()
    own = report.table.set_index("generator").loc[name]
    assert own["refused"] >= 1 and own["plans_made"] >= 2
    assert f"Refused {own['refused']} of 12 problems, such as" in report.describe()
    # Generators are compared on the problems that this one plans.
    assert set(report.table["plans_made"]) == {own["plans_made"]}
    assert check_generator(name, problems=["acyclic"], sizes=[3]).tried == ("acyclic-3",)


def test_a_generator_is_named_in_three_ways() -> None:
    cep.plan_generator("MINE", kind="order")(by_log_rate)
    entry = cep.PLAN_GENERATORS["MINE"]
    for given in (by_log_rate, "mine", entry):
        assert check_generator(given, sizes=[2]).generator == "MINE"
    with pytest.raises(PlanGeneratorError, match=r'@cep.plan_generator\("LEFT-DEEP", kind=') as e:
        check_generator(left_deep)
    assert "left_deep is not registered" in str(e.value)
    with pytest.raises(PlanGeneratorError, match=r"did you mean 'GREEDY'\?"):
        check_generator("gredy")
    for limit, wanted in ((0, "more than 0"), (-1.0, "more than 0"), (float("nan"), "finite")):
        with pytest.raises(ExperimentError, match=f"time_limit must be {wanted}"):
            check_generator("GREEDY", time_limit=limit)
    with pytest.raises(ExperimentError, match="seed must be at least 0, not -1"):
        check_generator("GREEDY", sizes=[2], seed=-1)


def test_an_anytime_generator_comes_to_an_end_without_a_budget() -> None:
    def shuffled(problem, rng, budget):
        assert not budget.is_limited
        plans = (rng.permutation(problem.n) for _ in range(20))
        return min(plans, key=problem.log_order_cost)

    report = report_on(shuffled, options={"anytime": True})
    assert report.passed, report.describe()


# --- costs against the least cost -----------------------------------------------------------------


def worst_order(problem: CostedProblem, rng) -> list[int]:
    return list(max(itertools.permutations(range(problem.n)), key=problem.log_order_cost))


def best_order(problem: CostedProblem, rng) -> list[int]:
    return list(min(itertools.permutations(range(problem.n)), key=problem.log_order_cost))


def test_costs_are_held_against_those_of_all_orders() -> None:
    report = report_on(worst_order)
    assert report.passed
    costs = report.costs[report.costs["generator"] == "MINE"].set_index("problem")
    distances = []
    for name, problem in check_problems(sizes=(1, 2, 3, 4)).items():
        every = [problem.log_order_cost(p) for p in itertools.permutations(range(problem.n))]
        distances.append(max(every) - min(every))
        assert costs["log_distance"][name] == pytest.approx(distances[-1], abs=1e-9), name
    table = report.table
    own = table.set_index("generator").loc["MINE"]
    assert table["generator"].iloc[-1] == "MINE"
    assert own["optimal"] == np.mean(np.array(distances) < 1e-9) < 0.5
    ranked = sorted(distances)
    assert np.log(own["median"]) == pytest.approx(ranked[len(ranked) // 2])
    assert own["worst"] == np.inf and own["worst_problem"] in costs.index
    assert "> 10^308" in report.describe()
    assert set(table["generator"]) == {
        "MINE", "TRIVIAL", "EFREQ", "GREEDY", "II-RANDOM", "II-GREEDY", "DP-LD",
    }  # fmt: skip
    best = table.set_index("generator").loc["DP-LD"]
    assert best["optimal"] == best["worst"] == 1


def test_a_claim_to_the_least_cost_is_held_to() -> None:
    report = report_on(best_order, options={"exact": True})
    assert report.passed and "exact" in report.checks
    report = report_on(by_log_rate, options={"exact": True})
    assert {finding.check for finding in report.findings} == {"exact"}
    assert "times the least cost, that of DP-LD; repair it, or leave out exact=True" in (
        report.describe()
    )
    # Of a smaller space the least cost is not known here.
    options = {"exact": True, "space": "the order of rates"}
    report = report_on(by_log_rate, options=options)
    assert report.passed and "exact" not in report.checks


def test_beyond_dynamic_programming_there_is_no_least_cost() -> None:
    report = report_on(by_log_rate, sizes=[26], problems=["sequence"])
    assert report.passed
    assert np.isnan(report.table.set_index("generator")["median"]["MINE"])
    assert "MINE" in report.describe()


# --- what is wrong --------------------------------------------------------------------------------


def once_too_often(problem, rng):
    order = by_log_rate(problem, rng)
    order[-1] = order[0]
    return order


def by_rate(problem, rng):
    return sorted(range(problem.n), key=problem.rate)


def by_name(problem, rng):
    return sorted(problem.names)


def drawn_elsewhere(problem, rng):
    order = list(range(problem.n))
    random.shuffle(order)
    return order


def drawn_by_numpy(problem, rng):
    return np.random.permutation(problem.n)  # noqa: NPY002


def drawn_without_seed(problem, rng):
    return np.random.default_rng().permutation(problem.n)


def drawn_and_not_used(problem, rng):
    random.random()
    return by_log_rate(problem, rng)


class _Remembering:
    calls = 0

    def __call__(self, problem, rng):
        self.calls += 1
        return np.roll(np.arange(problem.n), self.calls)


def writing(problem, rng):
    problem.log_cardinality[0] = 0.0
    return by_log_rate(problem, rng)


def meddling(problem, rng):
    problem.log_cardinality.flags.writeable = True
    problem.log_cardinality *= 2
    return by_log_rate(problem, rng)


def renaming(problem, rng):
    object.__setattr__(problem, "window", 3.0)
    return by_log_rate(problem, rng)


def refusing(problem, rng):
    raise PlanningRefusedError("MINE is not in the mood")


def tree_of_all(problem, rng):
    return left_deep(range(problem.n)) if problem.operator == "AND" else range(problem.n)


def wrong_on_three(problem, rng):
    return range(problem.n - (problem.n == 3))


#: Generator -> check that it fails, words of the message, and the smallest problem for it.
BROKEN = {
    once_too_often: ("plan", "returned [0, 0] for 2 events: 0 ('v0') appears twice, 1 ('v1') is "
                     "missing; return each of range(problem.n) once", "sequence-2"),
    by_rate: ("error", "failed: problem.rate would be e^", "extreme-2"),
    by_name: ("plan", "'v0' is no index (an index, not a name)", "sequence-1"),
    drawn_elsewhere: ("seed", "Python's module random", "sequence-2"),
    drawn_by_numpy: ("seed", "numpy.random's shared generator", "sequence-2"),
    drawn_without_seed: ("seed", "from the same problem and the same seed; draw every random "
                         "number from rng, and keep nothing", ""),
    drawn_and_not_used: ("seed", "another session gets other plans; draw them from rng",
                         "sequence-1"),
    _Remembering(): ("seed", "made v1, v0 and then v0, v1 from the same", "sequence-2"),
    writing: ("error", "work on a copy, such as problem.log_cardinality.copy()", "sequence-1"),
    meddling: ("problem", "changed problem.log_cardinality, from which the generators after it "
               "plan; work on a copy, such as np.array(problem.log_cardinality)", "sequence-1"),
    renaming: ("problem", "changed problem.window", "sequence-1"),
    refusing: ("refusal", "refused all problems: MINE is not in the mood", "sequence-1"),
    tree_of_all: ("plan", 'nested pairs are a tree, for kind="tree"', "conjunction-3"),
    wrong_on_three: ("plan", "2 ('v2') is missing", "sequence-3"),
}  # fmt: skip


@pytest.mark.parametrize("function", BROKEN, ids=lambda f: getattr(f, "__name__", "remembering"))
def test_what_is_wrong_is_told(function) -> None:
    check, message, problem = BROKEN[function]
    report = report_on(function)
    assert not report.passed
    first = next(finding for finding in report.findings if finding.check == check)
    assert message in first.message
    assert not problem or first.problem == problem
    text = report.describe()
    assert f"FAILED  {report.checks[check]}" in text
    assert f"{first.problem}: MINE {first.message}" in text
    shown = ET.fromstring(report._repr_html_())
    assert first.message in "".join(shown.itertext())
    # Only this check fails, but for what follows from it.
    follows = {"drawn_by_numpy": {"seed"}, "meddling": {"problem", "seed", "error"}}
    expected = follows.get(getattr(function, "__name__", ""), {check})
    assert {finding.check for finding in report.findings} <= expected
    for other in report.checks:
        if other not in expected:
            assert f"ok      {report.checks[other]}" in text


def test_the_line_that_is_told_shows_the_fault_again() -> None:
    report = report_on(wrong_on_three, sizes=[3], seed=4)
    assert report.findings[0].line == (
        'plan_problem(check_problem("sequence-3", seed=4), "MINE", seed=4)'
    )
    assert f">>> {report.findings[0].line}" in report.describe()
    with pytest.raises(PlanGeneratorError, match=r"MINE returned \[0, 1\] for 3 events"):
        exec("\n".join([report_imports(report), report.findings[0].line]))


def report_imports(report) -> str:
    return report.describe().partition("need these before them:\n")[2].partition("\n\n")[0]


def test_a_flat_list_is_no_tree() -> None:
    report = report_on(by_log_rate, "tree", sizes=[3], problems=["equal"])
    message = report.findings[0].message
    assert "[0, 1, 2] is no pair" in message and 'an order, for kind="order"' in message
    assert report_on(lambda problem, rng: left_deep(by_log_rate(problem, rng)), "tree").passed


def test_the_costs_of_a_generator_without_a_plan_are_not_shown() -> None:
    report = report_on(lambda problem, rng: None, sizes=[2, 3])
    assert "on any problem" in report.describe()
    assert "least cost" not in report.describe() and "cep-distances" not in report._repr_html_()
    assert report.table.set_index("generator")["plans_made"]["MINE"] == 0


# --- time -----------------------------------------------------------------------------------------


def going_on(problem, rng):
    while problem.n > 2:
        with contextlib.suppress(Exception):
            time.sleep(0.001)
    return list(range(problem.n))


def test_what_does_not_end_is_interrupted_and_nothing_larger_is_tried() -> None:
    began = time.perf_counter()
    report = report_on(going_on, problems=["sequence", "equal"], time_limit=0.05)
    assert time.perf_counter() - began < 5
    assert [(f.check, f.problem) for f in report.findings] == [("time", "sequence-3")]
    assert "had no plan of 3 events after 0.05 s; is there a loop without an end" in (
        report.describe()
    )
    assert report.left_out == ("equal-3", "sequence-4", "equal-4")
    assert "3 larger problems were not tried after that." in report.describe()


def test_a_search_that_only_its_budget_would_end_is_told_so() -> None:
    def endless(problem, rng, budget):
        while True:
            time.sleep(0.001)

    report = report_on(endless, sizes=[2], time_limit=0.05, options={"anytime": True})
    assert "without a budget a search has to come to an end by itself" in report.describe()


def test_the_first_plan_of_a_problem_may_take_longer() -> None:
    seen = set()

    def compiling(problem, rng):
        time.sleep(0 if problem.n in seen else 0.3)
        seen.add(problem.n)
        return range(problem.n)

    assert report_on(compiling, sizes=[2], problems=["equal"], time_limit=0.15).passed
    seen.clear()
    report = report_on(compiling, sizes=[2], problems=["equal"], time_limit=0.02)
    assert [f.check for f in report.findings] == ["time"]


def test_where_nothing_can_be_interrupted_it_is_told_afterwards() -> None:
    reports = []

    def slow(problem, rng):
        time.sleep(0.1)
        return range(problem.n)

    thread = threading.Thread(
        target=lambda: reports.append(report_on(slow, sizes=[2, 3], time_limit=0.01))
    )
    thread.start()
    thread.join()
    assert [f.check for f in reports[0].findings] == ["time"]
    assert len(reports[0].tried) == 1


def test_an_interrupt_of_the_user_passes_through() -> None:
    def interrupted(problem, rng):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report_on(interrupted)


def test_the_check_of_the_seed_has_plans_to_differ() -> None:
    """A single plan of one event says nothing; of four there are 24."""
    problem = check_problem("sequence-4")
    cep.plan_generator("MINE", kind="order")(lambda problem, rng: rng.permutation(problem.n))
    made = {tuple(plan_problem(problem, "MINE", seed=seed).order) for seed in range(20)}
    assert len(made) > 5
    assert check_generator("MINE", sizes=[4]).passed
