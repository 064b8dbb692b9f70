"""A match whose ends are exactly a window apart, and a nanosecond more."""

import numpy as np
import pandas as pd
import pytest

import cepbench as cep

WINDOWS = [("8.2 s", 8_200_000_000), ("4.1 minutes", 246 * 10**9), ("2.3 hours", 8280 * 10**9),
           ("0.57 days", 49_248 * 10**9), ("50 us", 50_000), ("800 ns", 800)]  # fmt: skip


def stream(gap: int) -> cep.EventStream:
    times = np.array([0, gap]).astype("datetime64[ns]")
    frame = pd.DataFrame({"type": ["A", "B"], "ts": times})
    return cep.EventStream.from_pandas(frame, type="type", time="ts")


@pytest.mark.parametrize(("within", "gap"), WINDOWS)
@pytest.mark.parametrize("evaluator", ["lazy-nfa", "sase", "stack-nfa"])
def test_boundaries(within: str, gap: int, evaluator: str) -> None:
    def found(item: str, window: str, apart: int) -> int:
        plan = None
        if evaluator == "lazy-nfa":
            plan = cep.OrderPlan(["a", "b"] if item == "B b" else ["a"])
        pattern = f"PATTERN SEQ(A a, {item}) WITHIN {window}"
        return cep.evaluate(pattern, stream(apart), plan, evaluator=evaluator).metrics.matches

    assert [found("B b", within, gap + more) for more in (-1, 0, 1)] == [1, 1, 0]
    assert [found("B b", f"< {within}", gap + more) for more in (-1, 0)] == [1, 0]
    assert [found("NOT(B b)", within, gap + more) for more in (-1, 0, 1)] == [0, 0, 1]
    assert [found("NOT(B b)", f"< {within}", gap + more) for more in (-1, 0)] == [0, 1]


@pytest.mark.parametrize(("within", "gap"), WINDOWS)
def test_boundaries_of_aggregates(within: str, gap: int) -> None:
    for more, due in ((0, 1), (1, 0)):
        pattern = f"PATTERN SEQ(A a, B b) AGG COUNT WITHIN {within}"
        for method in ("two-step", "a-seq"):
            assert cep.aggregate(pattern, stream(gap + more), method).values["COUNT"].tolist() == [
                due
            ]


@pytest.mark.parametrize(("within", "gap"), WINDOWS)
def test_boundaries_in_sql(within: str, gap: int) -> None:
    duckdb = pytest.importorskip("duckdb")
    query = cep.to_sql(f"PATTERN SEQ(A a, B b) WITHIN {within}", output="count")
    for more, due in ((0, 1), (1, 0)):
        events = stream(gap + more).to_pandas().reset_index()
        with duckdb.connect() as connection:
            connection.register("events", events)
            assert connection.execute(query).fetchall() == [(due,)]
