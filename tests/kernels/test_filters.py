"""Conditions on blocks of candidates, against one candidate at a time in plain Python."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.joins.kernels import filters
from cepbench.kernels import instructions
from tests.kernels.plans import a_plan

pytestmark = pytest.mark.kernel

COMPARISONS = {
    instructions.LESS: operator.lt,
    instructions.LESS_EQUAL: operator.le,
    instructions.GREATER: operator.gt,
    instructions.GREATER_EQUAL: operator.ge,
    instructions.EQUAL: operator.eq,
    instructions.UNEQUAL: operator.ne,
}
ARITHMETIC = {
    instructions.ADD: np.add,
    instructions.SUBTRACT: np.subtract,
    instructions.MULTIPLY: np.multiply,
    instructions.DIVIDE: np.divide,
}

INTEGERS = st.sampled_from([-(2**62), -3, 0, 1, 2, 7, 2**62]) | st.integers(-5, 5)
FLOATS = st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.5, np.nan, np.inf, -np.inf, 1e-300, 1e300])


def masks(size: int) -> st.SearchStrategy[np.ndarray]:
    return st.lists(st.integers(0, 1), min_size=size, max_size=size).map(
        lambda bits: np.array(bits, np.uint8)
    )


def columns(values: st.SearchStrategy, kind: type, size: int) -> st.SearchStrategy[np.ndarray]:
    return st.lists(values, min_size=size, max_size=size).map(lambda row: np.array(row, kind))


def holds(code: int, left: float, right: float) -> bool:
    """A comparison; false where either side is missing, ``!=`` too."""
    if np.isnan(left) or np.isnan(right):
        return False
    return bool(COMPARISONS[code](left, right))


@given(st.data(), st.integers(0, 9))
def test_keep_between(data: st.DataObject, size: int) -> None:
    mask = data.draw(masks(size))
    column = data.draw(columns(INTEGERS, np.int64, size))
    low, high = data.draw(INTEGERS), data.draw(INTEGERS)
    expected = [m and low <= v < high for m, v in zip(mask, column, strict=True)]
    filters.keep_between(mask, column, low, high)
    assert mask.tolist() == expected


@given(st.data(), st.integers(0, 9))
def test_keep_other(data: st.DataObject, size: int) -> None:
    mask = data.draw(masks(size))
    column = data.draw(columns(INTEGERS, np.int64, size))
    value = data.draw(INTEGERS)
    expected = [m and v != value for m, v in zip(mask, column, strict=True)]
    filters.keep_other(mask, column, value)
    assert mask.tolist() == expected


@pytest.mark.parametrize("code", COMPARISONS)
@given(data=st.data())
def test_keep_compared(code: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 9))
    mask = data.draw(masks(size))
    column = data.draw(columns(FLOATS, np.float64, size))
    value = data.draw(FLOATS)
    expected = [m and holds(code, value, v) for m, v in zip(mask, column, strict=True)]
    filters.keep_compared(mask, code, value, column)
    assert mask.tolist() == expected


@given(st.data(), st.integers(0, 9))
def test_counts_between(data: st.DataObject, size: int) -> None:
    first, second = (data.draw(columns(INTEGERS, np.int64, size)) for _ in range(2))
    bounds = INTEGERS | st.sampled_from([filters.LOWEST, filters.HIGHEST])
    low, high, second_low, second_high = (data.draw(bounds) for _ in range(4))
    one = [low <= v < high for v in first]
    other = [second_low <= v < second_high for v in second]
    assert filters.count_between(first, low, high) == sum(one)
    for bound in (second_low, filters.LOWEST):
        for top in (high, filters.HIGHEST):
            found = filters.count_between_both(first, low, top, second, bound, second_high)
            assert found == sum(
                low <= v < top and bound <= w < second_high
                for v, w in zip(first, second, strict=True)
            )
    both = filters.count_between_both(first, low, high, second, second_low, second_high)
    assert both == sum(x and y for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize("code", COMPARISONS)
@given(data=st.data())
def test_counts_compared(code: int, data: st.DataObject) -> None:
    column = data.draw(columns(FLOATS, np.float64, data.draw(st.integers(0, 9))))
    value = data.draw(FLOATS)
    assert filters.count_compared(code, value, column) == sum(holds(code, value, v) for v in column)


@pytest.mark.parametrize("code", COMPARISONS)
def test_flipped_sides_mean_the_same(code: int) -> None:
    values = [0.0, 1.0, -2.0, float("nan"), float("inf")]
    for left in values:
        for right in values:
            flipped = int(filters.FLIPPED[code])
            assert holds(code, left, right) == holds(flipped, right, left)


def expressions() -> st.SearchStrategy[Any]:
    """("left", column), ("right", column), ("constant", value), ("negate", …), (opcode, …, …)."""
    leaf = (
        st.tuples(st.sampled_from(["left", "right"]), st.integers(0, 2))
        | st.tuples(st.just("constant"), FLOATS)
    )  # fmt: skip
    return st.recursive(
        leaf,
        lambda part: (
            st.tuples(st.just("negate"), part)
            | st.tuples(st.sampled_from(list(ARITHMETIC)), part, part)
        ),
        max_leaves=5,
    )


CLAUSES = st.lists(
    st.tuples(st.sampled_from(list(COMPARISONS)), expressions(), expressions()),
    min_size=1,
    max_size=3,
)


def compiled(clauses: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Rules and constants of a program, written down in post-order."""
    rules: list[tuple[int, int, int]] = []
    constants: list[float] = []

    def visit(expression: Any) -> None:
        kind = expression[0]
        if kind == "left":
            rules.append((instructions.LOAD_LEFT, expression[1], 0))
        elif kind == "right":
            rules.append((instructions.LOAD_RIGHT, expression[1], 0))
        elif kind == "constant":
            constants.append(expression[1])
            rules.append((instructions.LOAD_CONSTANT, len(constants) - 1, 0))
        elif kind == "negate":
            visit(expression[1])
            rules.append((instructions.NEGATE, 0, 0))
        else:
            visit(expression[1])
            visit(expression[2])
            rules.append((kind, 0, 0))

    for clause in clauses:
        for number, comparison in enumerate(clause):
            visit(comparison)
            if number:
                rules.append((instructions.EITHER, 0, 0))
        rules.append((instructions.KEEP_IF_TRUE, 0, 0))
    return np.array(rules, np.int64).reshape(-1, 3), np.array(constants, np.float64)


def value_of(expression: Any, left: np.ndarray, right: np.ndarray) -> Any:
    kind = expression[0]
    if kind in ("left", "right"):
        return (left if kind == "left" else right)[expression[1]]
    if kind == "constant":
        return np.float64(expression[1])
    if kind == "negate":
        return -value_of(expression[1], left, right)
    return ARITHMETIC[kind](*(value_of(part, left, right) for part in expression[1:]))


@given(
    data=st.data(),
    clauses=st.lists(CLAUSES, max_size=2),
    size=st.integers(0, 6),
    driver_is_left=st.booleans(),
    skipped=st.integers(0, 3),
)
def test_programs(
    data: st.DataObject, clauses: list[Any], size: int, driver_is_left: bool, skipped: int
) -> None:
    """Any arithmetic, OR and several clauses, whichever side the driver is on."""
    driver = data.draw(columns(FLOATS, np.float64, 3))
    siblings = np.array(data.draw(columns(FLOATS, np.float64, 3 * size))).reshape(3, size)
    rules, constants = compiled(clauses)
    before = np.full((skipped, rules.shape[1]), -9, np.int64)
    plan = a_plan(rules=np.concatenate([before, rules, before]), constants=constants)
    # Both nodes have room for more rows than they hold, and other rows before those asked for.
    wide = size + 2
    arena = np.full(skipped + 3 * 4 + 3 * wide, 77.0)
    driver_start, sibling_start = skipped + 1, skipped + 3 * 4 + 1
    for column in range(3):
        arena[driver_start + column * 4] = driver[column]
        begin = sibling_start + column * wide
        arena[begin : begin + size] = siblings[column]
    mask = data.draw(masks(size))
    with np.errstate(all="ignore"):
        expected = [
            bool(kept)
            and all(
                any(
                    holds(
                        code,
                        *(
                            value_of(side, driver, siblings[:, row])
                            if driver_is_left
                            else value_of(side, siblings[:, row], driver)
                            for side in sides
                        ),
                    )
                    for code, *sides in clause
                )
                for clause in clauses
            )
            for row, kept in enumerate(mask)
        ]
        filters.run_program(
            mask, plan, skipped, skipped + len(rules),
            np.empty((instructions.STACK, filters.BLOCK)), driver_is_left,
            arena, (driver_start, 4), (sibling_start, wide),
        )  # fmt: skip
    assert mask.astype(bool).tolist() == expected
