"""Algorithm 5 on a pattern of four classes, as in Figure 7 of [mei2009]_."""

from __future__ import annotations

from typing import Any

import pytest

import cepbench as cep

PATTERN = "PATTERN SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND c.x < d.x WITHIN 10 units"
STATISTICS = cep.Statistics(
    cardinalities=dict.fromkeys("abcd", 10.0),
    selectivities={("a", "b"): 0.2, ("c", "d"): 0.2},
)


def test_the_bushy_plan_is_the_best_of_the_last_round() -> None:
    """1 with (2, 3, 4), (1, 2) with (3, 4), (1, 2, 3) with 4, each with its best sub-trees.

    By hand, with Pt = 1/2 and k = 0.25: a pair with a condition tries 50 and has 10 records, which
    costs 72.5. Two pairs try and make 50. A pair and a class try and make 50 too, and all of these
    with the last class try 250, of which 50 pass the condition.
    """
    best_of: dict[Any, float] = {
        ("a", ("b", ("c", "d"))): 72.5 + 100 + (1.25 * 250 + 50),
        (("a", "b"), ("c", "d")): 72.5 + 72.5 + 100,
        ((("a", "b"), "c"), "d"): 72.5 + 100 + (1.25 * 250 + 50),
    }
    for tree, cost in best_of.items():
        table = cep.plan_cost(PATTERN, cep.TreePlan(tree), STATISTICS, cost="zstream")
        assert table["cost"].sum() == pytest.approx(cost)
    chosen = cep.plan(PATTERN, STATISTICS, "ZSTREAM", cost="zstream")
    assert isinstance(chosen, cep.TreePlan)
    assert chosen.tree == (("a", "b"), ("c", "d"))
