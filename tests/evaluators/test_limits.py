"""The partial-match limit is one for all nodes together, and exact."""

from __future__ import annotations

import pytest

from cepbench.errors import PartialMatchLimitError
from cepbench.evaluators.evaluate import evaluate
from cepbench.evaluators.registry import EVALUATORS
from cepbench.patterns.parse import parse
from cepbench.plans.model import OrderPlan, TreePlan
from tests.evaluators.strategies import events_of, stream_of

pytestmark = pytest.mark.kernel

#: Everything is within one window, so whatever is made is kept: 4 events of each type.
STREAM = stream_of(events_of(" ".join(f"{'ABCD'[i % 4]}@{i}" for i in range(16))))
PATTERN = parse("PATTERN AND(A a, B b, C c, D d) WITHIN 1000 units")

#: Plans and what they store: pairs and triples of 4 events of each type.
PLANS = {
    "chain": (OrderPlan(["a", "b", "c", "d"]), 4**2 + 4**3, EVALUATORS),
    "bushy": (TreePlan((("a", "b"), ("c", "d"))), 4**2 + 4**2, ["tree"]),
}


@pytest.mark.parametrize(
    ("shape", "evaluator"), [(shape, name) for shape in PLANS for name in PLANS[shape][2]]
)
@pytest.mark.parametrize("output", ["matches", "count"])
def test_partial_matches_of_all_nodes_count_together(
    shape: str, evaluator: str, output: str
) -> None:
    plan, needed, _ = PLANS[shape]
    limits = {"evaluator": evaluator, "output": output}
    metrics = evaluate(PATTERN, STREAM, plan, partial_match_limit=needed, **limits).metrics
    assert metrics.peak_partial_matches == needed
    assert metrics.matches == 4**4  # which are not stored, and need not be few
    with pytest.raises(PartialMatchLimitError, match=f"more than {needed - 1} partial matches"):
        evaluate(PATTERN, STREAM, plan, partial_match_limit=needed - 1, **limits)
