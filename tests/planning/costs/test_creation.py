"""Expected partial matches created per event: by hand, and against runs on Poisson arrivals."""

from __future__ import annotations

import pytest

from cepbench.engines.detection.evaluate import evaluate
from cepbench.errors import PlanError
from cepbench.patterns.parse import parse
from cepbench.planning.costs.creation import created_per_event
from cepbench.planning.plans.model import OrderPlan, TreePlan, UnionPlan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.statistics.model import Statistics
from tests.drawn_events import drawn_stream, normal

PATTERN = parse("PATTERN AND(A a, B b, C c) WHERE a.x < b.x WITHIN 10 units")
STATISTICS = Statistics(
    cardinalities={"a": 4.0, "b": 6.0, "c": 10.0}, selectivities={("a", "b"): 0.25}
)


def test_an_order_and_a_tree_by_hand() -> None:
    # In a window's time 20 events arrive. a, b: 2 · 4 · 6 / 4; with c: 3 · 60.
    found = created_per_event(PATTERN, OrderPlan(["a", "b", "c"]), STATISTICS)
    assert found.partial_matches == pytest.approx(12 / 20)
    assert found.matches == pytest.approx(180 / 20)
    found = created_per_event(PATTERN, TreePlan((("b", "c"), "a")), STATISTICS)
    assert found.partial_matches == pytest.approx(2 * 60 / 20)
    assert found.matches == pytest.approx(180 / 20)


def test_branches_add_up_and_a_shared_type_arrives_once() -> None:
    pattern = parse("PATTERN OR(AND(A a, B b, C c), AND(A d, C e)) WHERE a.x < b.x WITHIN 10 units")
    statistics = Statistics(
        cardinalities={"a": 4.0, "b": 6.0, "c": 10.0, "d": 4.0, "e": 10.0},
        selectivities={("a", "b"): 0.25},
    )
    plan = UnionPlan([OrderPlan(["a", "b", "c"]), OrderPlan(["d", "e"])])
    found = created_per_event(pattern, plan, statistics)
    assert found.partial_matches == pytest.approx(12 / 20)
    assert found.matches == pytest.approx((180 + 2 * 40) / 20)


def test_a_pattern_of_one_variable_has_matches_alone() -> None:
    found = created_per_event(
        "PATTERN SEQ(A a) WITHIN 10 units", OrderPlan(["a"]), Statistics(cardinalities={"a": 4.0})
    )
    assert (found.partial_matches, found.matches) == (0.0, pytest.approx(1.0))


def test_a_plan_of_another_pattern_is_an_error() -> None:
    with pytest.raises(PlanError):
        created_per_event(PATTERN, OrderPlan(["a", "b"]), STATISTICS)


@pytest.mark.parametrize("plan", [OrderPlan(["c", "a", "b"]), TreePlan(("a", ("b", "c")))])
def test_runs_on_poisson_arrivals_create_as_many(plan: OrderPlan | TreePlan) -> None:
    count = 30_000
    pattern = parse("PATTERN AND(A a, B b, C c) WHERE a.x < b.x WITHIN 1000 units")
    events = drawn_stream(count, "ABC", seed=3, p=[0.2, 0.3, 0.5], within=50 * count, x=normal)
    statistics = measure_statistics(pattern, events, seed=0)
    expected = created_per_event(pattern, plan, statistics)
    found = evaluate(pattern, events, plan, output="count").metrics
    # The engine does not create what no later event can extend.
    assert 0.8 < found.partial_matches_created / count / expected.partial_matches < 1.05
    assert found.matches / count == pytest.approx(expected.matches, rel=0.1)
