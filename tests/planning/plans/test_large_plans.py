"""Plans over thousands of variables are drawn and described, or refused with the limit."""

from __future__ import annotations

import pytest

from cepbench.errors import PlanError
from cepbench.planning.plans.model import OrderPlan, TreePlan
from cepbench.planning.plans.tree import MAXIMUM_LEVELS, leaves, post_order

NAMES = [f"a{number}" for number in range(2_000)]


def chain(names):
    tree = names[0]
    for name in names[1:]:
        tree = (tree, name)
    return tree


def test_a_long_order_is_drawn_and_described() -> None:
    plan = OrderPlan(NAMES)
    assert leaves(plan.tree) == NAMES
    assert len(list(post_order(plan.tree))) == 2 * len(NAMES) - 1
    assert plan._repr_html_().count("<circle") + plan._repr_html_().count("<text") >= len(NAMES)
    assert "a1999" in plan.describe()


def test_a_deep_tree_is_refused_with_the_limit() -> None:
    plan = TreePlan(chain(NAMES[: MAXIMUM_LEVELS + 1]))
    assert plan == TreePlan(chain(NAMES[: MAXIMUM_LEVELS + 1]))
    assert plan.describe() and repr(plan) and hash(plan) and plan._repr_html_()
    for names in (NAMES[: MAXIMUM_LEVELS + 2], NAMES):
        with pytest.raises(PlanError, match=r"more than 400 levels .* OrderPlan\(names\)"):
            TreePlan(chain(names))
