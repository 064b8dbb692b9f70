"""Matches drawn from those that were only counted: each match has a number, and is found by it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import comb, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import EvaluationError, UnsupportedPatternError
from tests.budgets import examples, only_compiled
from tests.contract.cases import ContractCase, contract_cases
from tests.contract.declared import ALL
from tests.contract.ways import picked
from tests.engines.detection.test_compressed import stream_of

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.filterwarnings("ignore::cepbench.errors.MissingTypeWarning"),
]


@pytest.mark.parametrize("family", ALL)
@given(data=st.data())
@examples(4)
def test_every_match_has_its_number(family: str, data: st.DataObject) -> None:
    case = data.draw(contract_cases(st.just(ALL[family])))
    try:
        result = cep.evaluate(case.pattern, case.stream, output="count")
    except UnsupportedPatternError:  # under next, of conditions on all events of a set
        reject()
    assert result.metrics.matches == len(case.expected)
    picked(case, result, data.draw(st.integers(0, 3)))


@only_compiled
@pytest.mark.parametrize(
    "text",
    [
        "SEQ(NOT(B n), A a, C c) WITHIN 3 units",
        "SEQ(A a, C c, NOT(B n)) WITHIN 3 units",
        "AND(A a, A b, C c) WHERE a.x < b.x AND b.x >= c.x WITHIN < 4 units",
        "SEQ(A a, A b, KL(B c)) ORDER BY arrival WITHIN 3 units",
    ],
)
@given(data=st.data())
@examples(20)
def test_windows_end_exactly(text: str, data: st.DataObject) -> None:
    """Of short streams, in which all that a match depends on is just inside its window, or just outside."""
    types = data.draw(st.lists(st.sampled_from("ABC"), min_size=3, max_size=12))
    gaps = data.draw(st.lists(st.integers(0, 2), min_size=len(types), max_size=len(types)))
    values = data.draw(st.lists(st.integers(0, 3), min_size=len(types), max_size=len(types)))
    frame = pd.DataFrame({"type": types, "time": np.cumsum(gaps), "x": values})
    case = ContractCase(cep.parse(f"PATTERN {text}"), frame)
    picked(case, cep.evaluate(case.pattern, case.stream, output="count"), 0)


def test_counts_graphs_and_lists_are_sampled_alike() -> None:
    """Uniformly, in the columns of matches, with positions of the whole stream if they are asked for."""
    stream = stream_of(list("ABABCBC"), list(range(1, 8)))
    pattern = "PATTERN SEQ(A a, KL(B b), C c) WITHIN 6 units RETURN c.x AS last, a.x AS first, b"
    expected = cep.evaluate(pattern, stream).matches
    for output in ("count", "compressed", "matches"):
        result = cep.evaluate(pattern, stream, output=output)
        if output == "count":
            result = replace(result, counted=replace(result.counted, listed=2))
        drawn = result.sample(2_000, seed=7)
        assert drawn.equals(result.sample(2_000, seed=7)) and list(drawn) == list(expected)
        times = Counter(drawn.itertuples(index=False, name=None))
        assert set(times) == set(expected.itertuples(index=False, name=None))
        each = 2_000 / len(times)
        squares = sum((its - each) ** 2 / each for its in times.values())
        assert squares < len(times) - 1 + 4 * sqrt(2 * (len(times) - 1))
        shown = result.in_whole_stream(stream).sample(1, seed=1)["b"].item()
        assert shown == tuple(3 + place for place in result.sample(1, seed=1)["b"].item())
    values = cep.evaluate(pattern.removesuffix(", b"), stream, output="arrow")
    assert set(values.sample(50)["last"]) == set(expected["last"])
    assert not len(result.sample(0))
    with pytest.raises(EvaluationError, match="n must be"):
        result.sample(-1)
    none = cep.evaluate("PATTERN SEQ(C c, A a) WITHIN 1 units", stream, output="count")
    with pytest.raises(EvaluationError, match="no matches"):
        none.sample(1)


@only_compiled
def test_of_a_number_that_could_not_be_listed() -> None:
    """Three uniform events in order: the middle one is in the middle of them on average."""
    frame = pd.DataFrame({"type": "A", "time": np.arange(1_500), "x": np.arange(1_500.0)})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    result = cep.evaluate("PATTERN SEQ(A a, A b, A c) WITHIN 9000 units", stream, output="count")
    assert result.metrics.matches == comb(1_500, 3)
    drawn = result.sample(100, seed=5)
    assert (drawn["a"] < drawn["b"]).all() and (drawn["b"] < drawn["c"]).all()
    # Of uniform order statistics: means of quarters, deviations of at most 0.23.
    for place, name in enumerate("abc", 1):
        assert abs(drawn[name].mean() / 1_500 - place / 4) < 4 * 0.23 / 10
