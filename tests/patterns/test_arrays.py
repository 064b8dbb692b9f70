"""Conditions over arrays: what numbers say, and that a missing value never holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.patterns.arrays import clause_holds, expression_values, over_ranges
from cepbench.patterns.model import Arithmetic, Attribute, Constant
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


@given(data=st.data())
def test_aggregates_of_ranges(data: st.DataObject) -> None:
    """Running sums, repeated ranges and ranges up to the last value are what each range gives."""
    numbers = data.draw(
        st.sampled_from(
            [st.integers(-9, 9).map(float), st.sampled_from([0.1, 0.7, np.inf, 2.0**53])]
        )
    )
    values = np.array(data.draw(st.lists(numbers | st.just(np.nan), max_size=8)), np.float64)
    begin = st.integers(0, len(values))
    sizes = [data.draw(begin)] * 9 if data.draw(st.booleans()) else range(9)
    pairs = [(data.draw(begin), size) for size in sizes]
    pairs = [(low, size) for low, size in pairs if low + size <= len(values)]
    begin, sizes = np.array(pairs, np.int64).reshape(-1, 2).T
    alone = {"sum": sum, "min": min, "max": max, "avg": lambda its: sum(its) / len(its)}
    with np.errstate(invalid="ignore"):
        for function, one in alone.items():
            found = over_ranges(function, values, begin, sizes)
            for (low, size), value in zip(pairs, found, strict=True):
                its = values[low : low + size].tolist()
                expected = np.nan if not its or np.isnan(its).any() else one(its)
                np.testing.assert_allclose(value, expected, rtol=1e-15)
        assert over_ranges("count", values, begin, sizes).tolist() == sizes.tolist()


@given(
    dividends=st.lists(
        st.one_of(st.integers(-(2**53), 2**53).map(float), st.floats()), min_size=1, max_size=4
    ),
    divisor=st.one_of(st.integers(-9, 9).map(float), st.integers(1, 2**53).map(float), st.floats()),
)
def test_modulo_has_the_sign_of_the_dividend_and_is_exact(
    dividends: list[float], divisor: float
) -> None:
    modulo = Arithmetic("%", Attribute("a", "x"), Constant(divisor))
    found = expression_values(modulo, lambda _: np.array(dividends), lambda _: 0.0)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, np.fmod(dividends, divisor))
