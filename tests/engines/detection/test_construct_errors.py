"""What does not fit a pattern of any construct is refused by name; nothing is empty in silence."""

from __future__ import annotations

import itertools
import re

import pytest

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.errors import (
    EvaluationError,
    PartialMatchLimitError,
    PlanError,
    StreamError,
    UnsupportedPatternError,
)
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan, UnionPlan
from tests.budgets import only_compiled
from tests.engines.detection.checks import Plan
from tests.engines.detection.constructs import able
from tests.engines.detection.strategies import events_of, plan_for, stream_of

TWO = parse("PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WITHIN 9 units")
GUARDED = parse("PATTERN SEQ(A a, NOT(B n), C c) WITHIN 9 units")


@pytest.mark.parametrize(
    "plan",
    [
        OrderPlan(["a", "b"]),
        OrderPlan(["a", "b", "c", "d"]),
        TreePlan((("a", "b"), ("c", "d"))),
        UnionPlan([OrderPlan(["a", "b"])]),
        UnionPlan([OrderPlan(["a", "b"])] * 2),
        UnionPlan([OrderPlan(["c", "d"]), OrderPlan(["a", "b"])]),
        UnionPlan([OrderPlan(["a", "b"]), OrderPlan(["c", "d"]), OrderPlan(["a", "b"])]),
    ],
    ids=repr,
)
def test_a_plan_that_is_not_one_for_each_branch(plan: Plan) -> None:
    with pytest.raises(PlanError):
        Detector(TWO, plan)


@pytest.mark.parametrize(
    "plan",
    [
        OrderPlan(["a", "n", "c"]),
        OrderPlan(["a"]),
        TreePlan(("a", ("n", "c"))),
        UnionPlan([OrderPlan(["a", "c"])] * 2),
    ],
    ids=repr,
)
def test_a_plan_of_other_than_the_positive_variables(plan: Plan) -> None:
    with pytest.raises(PlanError):
        Detector(GUARDED, plan)


def test_an_order_evaluator_refuses_a_union_with_a_bushy_tree() -> None:
    pattern = parse("PATTERN OR(A a, AND(A b, B c, C d, D e)) WITHIN 9 units")
    plan = UnionPlan([TreePlan("a"), TreePlan((("b", "c"), ("d", "e")))])
    with pytest.raises(EvaluationError, match="one event at a time"):
        Detector(pattern, plan, evaluator="lazy-nfa")
    assert Detector(pattern, plan).evaluator == "tree"


#: Types, attributes and kinds of values that a stream of types A to D with x and s has not.
MISFITS = {
    "negated type": ("SEQ(A a, NOT(E n), C c)", "no event of type 'E'"),
    "Kleene type": ("SEQ(A a, KL(E b))", "no event of type 'E'"),
    "type of a branch": ("OR(A a, E b)", "no event of type 'E'"),
    "attribute of a negated event": ("SEQ(A a, NOT(B n)) WHERE n.z > 1", "no attribute 'z'"),
    "attribute of a set": ("SEQ(A a, KL(B b)) WHERE sum(b.z) > 1", "no attribute 'z'"),
    "partition": ("SEQ(A a, B b) STRATEGY partition_contiguity(z)", "no attribute 'z'"),
    "sum of texts": ("SEQ(A a, KL(B b)) WHERE sum(b.s) > 1", "text"),
    "smallest text": ("SEQ(A a, KL(B b)) WHERE min(b.s) > 1", "text"),
    "order of texts": ("SEQ(A a, KL(B b)) WHERE b[i].s > b[i-1].s", "text"),
    "text and number": ("SEQ(A a, NOT(B n)) WHERE n.s = 1", "text"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_stream_that_lacks_what_is_asked_for(misfit: str) -> None:
    text, message = MISFITS[misfit]
    pattern = parse(f"PATTERN {text} WITHIN 9 units")
    events = events_of("A@1 B@2 C@3 D@4").assign(x=1.0, s="p")
    events["type"] = events["type"].astype(str)
    plans = [OrderPlan(branch.positive_names) for branch in pattern.branches()]
    plan = plans[0] if len(plans) == 1 else UnionPlan(plans)
    with pytest.raises(StreamError, match=message):
        evaluate(pattern, stream_of(events), plan, missing_types="error")


#: Forty events within a window have a million million sets; of a hundred, few count them.
CROWDS = {
    size: stream_of(
        events_of(" ".join(["A@0", *(f"B@{i}" for i in range(1, size + 1)), f"C@{size + 1}"]))
    )
    for size in (40, 100)
}

CROWDED = {
    "alone": ("KL(B b)", [["b"]]),
    "first, last or between": (
        "SEQ(A a, KL(B b), C c)",
        [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]],
    ),
    "in a branch": ("OR(D d, SEQ(A a, KL(B b)))", [["a", "b"], ["b", "a"]]),
    "of two": ("SEQ(A a, AND(KL(B b), KL(B d)))", [["a", "b", "d"], ["d", "b", "a"]]),
    "waiting": ("SEQ(KL(B b), NOT(C c))", [["b"]]),
}


#: The evaluators that make sets.
OF_SETS = [e.name for e in EVALUATORS.values() if "KL" in e.constructs]


@only_compiled
@pytest.mark.kernel
@pytest.mark.parametrize("evaluator", OF_SETS)
@pytest.mark.parametrize("output", ["matches", "count"])
@pytest.mark.parametrize("place", CROWDED)
def test_more_sets_than_anyone_could_enumerate(place: str, output: str, evaluator: str) -> None:
    text, orders = CROWDED[place]
    pattern = parse(f"PATTERN {text} WITHIN 200 units")
    if evaluator not in able(pattern):
        pytest.skip("it has no AND")
    for order, size in itertools.product(orders, CROWDS):
        plan: Plan = OrderPlan(order)
        if len(pattern.branches()) > 1:
            plan = UnionPlan([OrderPlan(["d"]), OrderPlan(order)])
        options = {"evaluator": evaluator, "output": output, "partial_match_limit": 1_000}
        refused = ""
        try:
            given = plan_for(evaluator, plan)
            matches = evaluate(pattern, CROWDS[size], given, **options).metrics.matches
        except PartialMatchLimitError as error:
            refused = str(error)
        if refused:
            assert re.search(r"\b[bd]\b", refused)
            assert re.search(r"window|condition", refused)
        else:
            # To count them there is no need to have them.
            assert (output, matches) == ("count", 2**size - 1)
            assert size == 40 or evaluator == "sase"


@pytest.mark.kernel
@pytest.mark.parametrize("evaluator", OF_SETS)
def test_conditions_that_leave_few_sets_are_enough(evaluator: str) -> None:
    """Of forty events that are all equal, none may follow another in a rising set."""
    events = events_of("A@0 " + " ".join(f"B@{i}" for i in range(1, 41)) + " C@41").assign(x=1.0)
    pattern = parse("PATTERN SEQ(A a, KL(B b), C c) WHERE b[i].x > b[i-1].x WITHIN 100 units")
    result = evaluate(
        pattern, stream_of(events), plan_for(evaluator, OrderPlan(["a", "b", "c"])),
        evaluator=evaluator, partial_match_limit=10_000,
    )  # fmt: skip
    assert result.metrics.matches == 40


def test_events_are_not_consumed_across_branches_that_wait() -> None:
    pattern = parse("PATTERN OR(SEQ(A a, NOT(B n)), C c) STRATEGY consuming WITHIN 9 units")
    with pytest.raises(UnsupportedPatternError, match="put an item after the NOT"):
        Detector(pattern, UnionPlan([OrderPlan(["a"]), OrderPlan(["c"])]))


def test_a_variable_may_be_called_like_the_column_of_branches() -> None:
    """Either the name is refused, or the number of the branch can be told from it."""
    pattern = parse("PATTERN OR(SEQ(A branch, B b), SEQ(B b, A branch)) WITHIN 9 units")
    plan = UnionPlan([OrderPlan(["branch", "b"]), OrderPlan(["b", "branch"])])
    with pytest.raises(EvaluationError, match=r"'branch'.*rename"):
        evaluate(pattern, stream_of(events_of("A@1 B@2")), plan)
