"""Conditions over arrays: what numbers say, and that a missing value never holds."""

import numpy as np
import pytest

from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.model import Attribute
from cepbench.patterns.parse import parse

COLUMNS = {
    "a": np.array([1.0, 2.0, 3.0, np.nan, np.inf]),
    "b": np.array([2.0, 2.0, 2.0, 2.0, np.nan]),
}


def holds(where: str) -> list[bool]:
    def values(attribute: Attribute) -> np.ndarray:
        return COLUMNS[attribute.variable]

    def code(text: str) -> float:
        return {"two": 2.0}.get(text, -1.0)

    (clause,) = parse(f"PATTERN AND(A a, B b) WHERE {where} WITHIN 1 s").conditions
    return list(clause_holds(clause, values, code))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a.x < b.x", [1, 0, 0, 0, 0]),
        ("a.x <= b.x", [1, 1, 0, 0, 0]),
        ("a.x > b.x", [0, 0, 1, 0, 0]),
        ("a.x >= b.x", [0, 1, 1, 0, 0]),
        ("a.x = b.x", [0, 1, 0, 0, 0]),
        ("a.x != b.x", [1, 0, 1, 0, 0]),
        ("NOT a.x < b.x", [0, 1, 1, 0, 0]),
        ("NOT a.x = b.x", [1, 0, 1, 0, 0]),
        ("a.x = 1 OR b.x = 'two'", [1, 1, 1, 1, 0]),
        ("(a.x - 1) * 2 = b.x", [0, 1, 0, 0, 0]),
        ("-a.x / 2 < -1", [0, 0, 1, 0, 1]),
        ("1 / (a.x - b.x) > 0", [0, 1, 1, 0, 0]),
        ("0 / (a.x - b.x) = 0", [1, 0, 1, 0, 0]),
    ],
)
def test_truth_for_each_candidate(where: str, expected: list[int]) -> None:
    assert holds(where) == [bool(value) for value in expected]
