"""Values of AGG where events are of concepts above their own types."""

from __future__ import annotations

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import StreamError, UnsupportedPatternError
from tests.evaluators.strategies import stream_of
from tests.naive.aggregates import naive_rows

HIERARCHY = cep.ConceptHierarchy({"Company": {"Computer": ["INTC", "DELL"], "Finance": ["QQQ"]}})

KINDS = ["INTC", "QQQ", "DELL", "Computer", "INTC", "X", "QQQ", "DELL", "Company", "INTC", "X"]

QUERIES = [
    "PATTERN SEQ(Computer a, Company b) AGG COUNT, SUM(b.x) WITHIN 5 units",
    "PATTERN SEQ(Company a, NOT(Computer n), Finance b) AGG COUNT WITHIN 5 units",
    "PATTERN SEQ(INTC a, KL(Company b)) AGG COUNT WITHIN 5 units",
    "PATTERN AND(Company a, INTC b) AGG COUNT WITHIN 5 units",
    "PATTERN SEQ(Computer a, Company b, X c) WHERE a.x < b.x AGG COUNT WITHIN 6 units",
]


@pytest.fixture
def events() -> pd.DataFrame:
    times = [0, 1, 1, 2, 3, 4, 5, 6, 6, 7, 8]
    return pd.DataFrame({"type": KINDS, "time": times, "x": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]})


def able(query: cep.Pattern) -> list[str]:
    """The methods that count over a window that slides."""
    found = []
    for method in cep.AGGREGATORS.keys() - {"dpc"}:
        try:
            cep.Aggregator(query, method)
        except UnsupportedPatternError:
            continue
        found.append(method)
    return found


@pytest.mark.parametrize("text", QUERIES)
def test_each_method(events: pd.DataFrame, text: str) -> None:
    pattern = cep.parse(text).with_hierarchy(HIERARCHY)
    expected = [(its.position, its.values) for its in naive_rows(pattern, events)]
    expected = sorted((at, tuple(map(_number, values))) for at, values in expected)
    plain = stream_of(events)
    stream = plain.with_hierarchy(HIERARCHY)
    assert expected
    for method in able(pattern):
        for query, of in ((text, stream), (pattern, plain)):
            table = cep.aggregate(query, of, method).values
            assert _rows(table, pattern) == expected, method
        live = cep.Aggregator(pattern, method)
        tables = [live.push(plain[:4])]
        live = cep.Aggregator.restore(live.snapshot())
        tables += [live.push(plain[4:]), live.flush()]
        assert _rows(pd.concat(tables), pattern) == expected, method


def _number(value: object) -> float:
    return float("-inf") if value is None else float(value)  # type: ignore[arg-type]


def _rows(table: pd.DataFrame, pattern: cep.Pattern) -> list[tuple[int, tuple[float, ...]]]:
    names = [str(its) for its in pattern.aggregates]
    values = table[names].astype(float).fillna(float("-inf")).itertuples(index=False, name=None)
    return sorted(zip(table["position"].tolist(), values, strict=True))


def test_workloads(events: pd.DataFrame) -> None:
    workload = cep.Workload({f"q{n}": text for n, text in enumerate(QUERIES[:2])})
    stream = stream_of(events).with_hierarchy(HIERARCHY)
    found = cep.aggregate(workload, stream).values
    for number, text in enumerate(QUERIES[:2]):
        alone = cep.aggregate(text, stream).values["COUNT"].tolist()
        assert found.loc[found["query"] == f"q{number}", "COUNT"].tolist() == alone
    live = cep.Aggregator(cep.Workload(workload.patterns, hierarchy=HIERARCHY))
    first = live.push(stream_of(events)[:4])
    live = cep.Aggregator.restore(live.snapshot())
    rest = live.push(stream_of(events)[4:])
    assert len(first) + len(rest) == len(found)


def test_a_batch_with_a_hierarchy_that_the_pattern_lacks(events: pd.DataFrame) -> None:
    live = cep.Aggregator(QUERIES[0])
    with pytest.raises(StreamError, match=r"start with pattern\.with_hierarchy"):
        live.push(stream_of(events).with_hierarchy(HIERARCHY))
