"""``two-step``: rounds of a batch, expiry, values that become floats, and integers of any size."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.aggregation import two_step
from cepbench.engines.runs.pieces import pieces_of
from cepbench.errors import EvaluationError
from tests.budgets import examples
from tests.engines.aggregation.cases import aggregate_cases
from tests.engines.detection.strategies import Case
from tests.naive.aggregates import naive_rows

pytestmark = pytest.mark.kernel


def stream_of(types: str, **columns: list) -> cep.EventStream:
    """Events written as their types, one at each time."""
    frame = pd.DataFrame({"type": [*types], "time": range(len(types))})
    return cep.EventStream.from_pandas(frame.assign(**columns), type="type", time="time")


def check_rounds(case: Case, scope: str, most: int) -> None:
    """A batch in rounds gives the values of the naive twin, by as many updates as in one."""
    whole = cep.aggregate(case.pattern, case.stream, "two-step", scope=scope)
    with pieces_of(events=1, matches=most):
        by_rounds = cep.aggregate(case.pattern, case.stream, "two-step", scope=scope)
    assert {*by_rounds.rows} == naive_rows(case.pattern, case.events, scope=scope)
    assert by_rounds.metrics.updates == whole.metrics.updates


@given(case=aggregate_cases(), scope=st.sampled_from(["window", "trigger", "stream"]))
@examples(6)
def test_a_batch_is_processed_in_rounds(case: Case, scope: str) -> None:
    check_rounds(case, scope, 3)


def test_every_event_is_in_one_round() -> None:
    query = cep.parse("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 4 units")
    for events in range(2, 17):
        for most in (1, 2, 1000):
            case = Case(query, pd.DataFrame({"type": [*"AB" * 8], "time": range(16)})[:events])
            check_rounds(case, "window", most)


@pytest.mark.parametrize("batch", [1, 7, 60])
def test_the_matches_and_first_events_that_count(batch: int) -> None:
    """Against the matches, with a GROUP BY that does not follow from the first event."""
    rng = np.random.default_rng(4)
    types, keys = "".join(rng.choice([*"ABC"], 60)), rng.integers(0, 3, 60)
    stream = stream_of(types, k=keys.tolist())
    plain = "PATTERN SEQ(A a, B b) {} WITHIN 9 units"
    found = cep.evaluate(plain.format(""), stream, evaluator="stack-nfa").matches
    active = [
        [(a, keys[b]) for a, b in found[["a", "b"]].to_numpy() if b <= now and a >= now - 9]
        for now in range(60)
    ]
    live = cep.Aggregator(plain.format("GROUP BY b.k AGG COUNT"), "two-step")
    rows = [row for part in stream.batches(batch) for row in live.take(part)]
    assert rows
    for row in rows:
        assert row.values == (sum(key == row.key[0] for _, key in active[row.position]),)
    assert live.metrics.updates == len(found)
    assert live.metrics.peak_counters == max(len({*its}) for its in active)
    assert live.metrics.peak_objects >= max(map(len, active))
    by_start = max(max(Counter(its).values(), default=0) for its in active)
    assert by_start > 1  # several matches of a first event and group


@pytest.mark.parametrize("scope", ["window", "stream"])
def test_values_may_become_floats(scope: str) -> None:
    query = (
        "PATTERN SEQ(A a, KL(B b)) AGG SUM(b.w), AVG(b.w), MIN(b.w), MAX(b.w), MAX(a.w) "
        "WITHIN 6 units"
    )
    types, values = "ABABBABAABBB", [3, -1, 0, 5, -4, 2, 0.5, 1.5, -7.25, 4, 2, 1]
    expected = cep.aggregate(query, stream_of(types, w=values), scope=scope).rows
    live = cep.Aggregator(query, "two-step", scope=scope)
    rows = []
    for part in (slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12)):
        columns = {"time": [*range(12)[part]], "w": values[part]}
        rows += live.take(stream_of(types[part], **columns))
        live = cep.Aggregator.restore(live.snapshot())
    assert [row.values for row in rows] == [row.values for row in expected]
    assert min(row.values[2] for row in rows) == -4  # from before the first float


@pytest.mark.parametrize("extreme", [2**63 - 1, -(2**63), -(2**63) + 1])
def test_all_integers_of_64_bits(extreme: int) -> None:
    query = "PATTERN SEQ(A a, B b) AGG MIN(a.w), MAX(a.w), SUM(a.w), AVG(b.w) WITHIN 5 units"
    stream = stream_of("ABBBBBBAB", w=[extreme] * 9)
    found = [row.values for row in cep.aggregate(query, stream, "two-step").rows]
    once = (extreme, extreme, extreme, extreme / 1)
    assert found[0] == once
    assert found[1] == (extreme, extreme, 2 * extreme, extreme / 1)
    assert found[5] == (None, None, None, None)
    assert found[-1] == once


def test_an_evaluator_that_reports_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        two_step.BranchMatches, "last_positions", lambda its: np.array([-1] * len(its))
    )
    live = cep.Aggregator("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 5 units", "two-step")
    with pytest.raises(EvaluationError, match="the evaluator stack-nfa reported a match after"):
        live.push(stream_of("AB"))
