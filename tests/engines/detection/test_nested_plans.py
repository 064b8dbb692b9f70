"""Operators inside operators along every tree there is: rows of any node may come last."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cepbench.engines.detection.evaluate import evaluate
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import TreePlan
from tests.engines.detection.strategies import stream_of
from tests.engines.detection.test_semantics_examples import every_tree
from tests.naive.matcher import naive_matches


@pytest.mark.parametrize(
    "structure",
    [
        "AND(SEQ(A a, B b, C c), D d)",
        "AND(SEQ(A a, B b), SEQ(C c, A d))",
        "AND(D d, SEQ(A a, AND(B b, C c)))",
    ],
)
def test_every_tree(structure: str) -> None:
    rng = np.random.default_rng(4)
    count = 26
    events = pd.DataFrame(
        {
            "type": pd.Categorical(rng.choice(list("ABCD"), count), categories=list("ABCD")),
            "time": np.cumsum(rng.integers(0, 2, count)),
            "x": rng.normal(size=count),
        }
    )
    pattern = parse(f"PATTERN {structure} WHERE a.x < d.x + 1 WITHIN 16 units")
    expected = naive_matches(pattern, events)
    assert len(expected) > 10
    stream = stream_of(events)
    for tree in every_tree(pattern.names):
        found = evaluate(pattern, stream, TreePlan(tree)).matches.to_numpy().tolist()
        assert sorted(map(tuple, found)) == sorted(expected), tree
