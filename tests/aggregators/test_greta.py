"""GRETA: conditions between neighbouring events, without matches."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.aggregators.protocol import EMITS, SCOPES
from tests.aggregators.cases import methods_for, neighbour_cases
from tests.budgets import examples
from tests.evaluators.strategies import batches_of
from tests.naive.aggregates import naive_rows

pytestmark = pytest.mark.kernel


@given(data=st.data())
@examples(60)
def test_values_after_events(data: st.DataObject) -> None:
    case = data.draw(neighbour_cases())
    emit, scope = data.draw(st.sampled_from(EMITS)), data.draw(st.sampled_from(SCOPES))
    assume("greta" in methods_for(case.pattern, scope))
    found = cep.aggregate(case.pattern, case.stream, "greta", emit=emit, scope=scope).rows
    assert len(found) == len(set(found))
    assert set(found) == naive_rows(case.pattern, case.events, emit=emit, scope=scope)


@given(data=st.data())
@examples(30)
def test_values_in_batches_with_restorations(data: st.DataObject) -> None:
    case = data.draw(neighbour_cases())
    scope = data.draw(st.sampled_from(SCOPES))
    assume("greta" in methods_for(case.pattern, scope))
    options = {"emit": data.draw(st.sampled_from(EMITS)), "scope": scope}
    live = cep.Aggregator(case.pattern, "greta", **options)
    rows = []
    for batch in data.draw(batches_of(case.stream)):
        if data.draw(st.booleans()):
            live = cep.Aggregator.restore(live.snapshot())
        rows += live.take(batch)
    assert set(rows) == naive_rows(case.pattern, case.events, **options)
