"""A second opinion on Kleene closure, which ``to_sql`` does not write: recursive SQL in DuckDB.

Of all other patterns the second opinion is in ``tests/planning/sql``.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan
from tests.engines.detection.checks import found_in
from tests.engines.detection.constructs import able
from tests.engines.detection.strategies import stream_of


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def load(connection: duckdb.DuckDBPyConnection, events: pd.DataFrame) -> None:
    frame = events.astype({"type": str, "s": object}).reset_index(drop=True)
    connection.register("frame", frame.rename_axis("position").reset_index())
    # What is missing in pandas is a number to SQL.
    connection.execute(
        "CREATE OR REPLACE TABLE events AS SELECT "
        "position, type, time, nullif(x, 'nan') AS x, y, s::TEXT AS s FROM frame"
    )


@pytest.fixture(scope="module")
def events() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    count = 700
    return pd.DataFrame(
        {
            "type": pd.Categorical(rng.choice(list("ABCD"), count), categories=list("ABCD")),
            "time": np.cumsum(rng.integers(0, 4, count)),
            "x": np.where(rng.random(count) < 0.05, np.nan, rng.normal(size=count)),
            "y": rng.integers(0, 6, count),
            "s": pd.Categorical(rng.choice(["p", "q", None], count), categories=["p", "q"]),
        }
    )


#: Sets grow by later events; what is said of neighbours is tested as they grow, the rest at last.
SETS = """
WITH RECURSIVE grown(a, last, members) AS (
    SELECT a.position, b.position, [b.position] FROM events a JOIN events b
    ON a.type = 'A' AND b.type = 'B' AND a.time < b.time AND b.time <= a.time + 40 AND b.x > a.x
    UNION ALL
    SELECT g.a, b.position, list_append(g.members, b.position)
    FROM grown g JOIN events a ON a.position = g.a JOIN events before ON before.position = g.last
    JOIN events b ON b.type = 'B' AND b.position > g.last AND b.time <= a.time + 40
    WHERE b.x > a.x {neighbours}
)
SELECT g.a, g.members, c.position
FROM grown g JOIN events a ON a.position = g.a JOIN events l ON l.position = g.last
JOIN events f ON f.position = g.members[1] JOIN events c
ON c.type = 'C' AND c.time > l.time AND c.time <= a.time + 40
WHERE {whole}
"""
_SUM = "(SELECT {} FROM events e WHERE list_contains(g.members, e.position))"

KLEENE = {
    "plain": ("", "", "TRUE"),
    "rising": ("AND b[i].x > b[i-1].x", "AND b.x > before.x", "TRUE"),
    "first and last": ("AND b[1].y = b[last].y", "", "f.y = l.y"),
    "sum": ("AND sum(b.y) < c.y", "", f"{_SUM.format('sum(e.y)')} < c.y"),
    "average": ("AND avg(b.y) = 2", "", f"{_SUM.format('avg(e.y)')} = 2"),
    "count": ("AND count(b.y) >= 3", "", "len(g.members) >= 3"),
}


@pytest.mark.parametrize("example", KLEENE)
def test_sets_are_enumerated_by_a_recursive_query(
    example: str, connection: duckdb.DuckDBPyConnection, events: pd.DataFrame
) -> None:
    condition, neighbours, whole = KLEENE[example]
    pattern = parse(f"PATTERN SEQ(A a, KL(B b), C c) WHERE b.x > a.x {condition} WITHIN 40 units")
    load(connection, events)
    rows = connection.execute(SETS.format(neighbours=neighbours, whole=whole)).fetchall()
    expected = {(a, tuple(members), c) for a, members, c in rows}
    assert len(expected) == len(rows) > 100
    for evaluator in able(pattern):
        orders = (["a", "b", "c"], ["c", "a", "b"])
        plans = [*map(OrderPlan, orders)] if "order" in EVALUATORS[evaluator].kinds else [None]
        for plan in plans:
            matches = evaluate(pattern, stream_of(events), plan, evaluator=evaluator).matches
            assert {row for _, row in found_in(pattern, matches)} == expected
