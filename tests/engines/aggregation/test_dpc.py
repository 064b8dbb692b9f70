"""DPC: the values as long as nothing expires, and an error that names the row after that."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.aggregation.protocol import AggregationTask
from cepbench.errors import EvaluationError, UnsupportedPatternError
from tests.budgets import examples
from tests.engines.aggregation.cases import SEQUENCES, aggregate_cases
from tests.engines.detection.strategies import Case
from tests.naive.aggregates import naive_rows

pytestmark = pytest.mark.kernel


@st.composite
def counted(draw: st.DrawFn) -> Case:
    """Patterns that dpc runs."""
    case = draw(aggregate_cases(SEQUENCES))
    try:
        cep.AGGREGATORS["dpc"].open(AggregationTask(case.pattern, "trigger", "window"))
    except UnsupportedPatternError:
        assume(False)
    return case


@given(data=st.data())
@examples(4)
def test_an_event_that_expires_is_refused(data: st.DataObject) -> None:
    case = data.draw(counted())
    times = case.events["time"].tolist()
    assume(not case.pattern.conditions)
    # What a match may begin with, or what may prevent one from beginning.
    end = case.pattern.variables.index(case.pattern.positive[0]) + 1
    types = [each.type for each in case.pattern.variables[:end]]
    begins = case.events["type"].isin(types) | (None in types)
    keys = case.events[[*case.pattern.equivalences]]
    began = next(iter(np.flatnonzero(begins & keys.notna().all(axis=1))), None)
    length = case.pattern.window.length
    late = [t for t in times if began is not None and t > times[began] + length]
    if not late:
        assert set(cep.aggregate(case.pattern, case.stream, "dpc").rows) == naive_rows(
            case.pattern, case.events
        )
        return
    with pytest.raises(EvaluationError) as refused:
        cep.aggregate(case.pattern, case.stream, "dpc")
    message = str(refused.value)
    assert message.startswith(f"row {times.index(late[0])}: the event of row {began} expires")


def test_the_error_comes_when_an_event_expires() -> None:
    frame = pd.DataFrame({"type": list("BABB"), "time": [0, 1, 4, 5]})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    live = cep.Aggregator("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 3 units", "dpc")
    assert live.push(stream[:3])["COUNT"].tolist() == [0, 1]
    assert live.value(4)["COUNT"].tolist() == [1]
    with pytest.raises(EvaluationError, match="the time asked for: the event of row 1 expires"):
        live.value(5)
    with pytest.raises(EvaluationError, match="row 3: the event of row 1 expires"):
        live.push(stream[3:])


def test_one_counter_a_prefix() -> None:
    """Lemma 2: as many counters as items, however many events there are."""
    frame = pd.DataFrame({"type": list("ABC") * 40, "time": range(120)})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    pattern = "PATTERN SEQ(A a, B b, C c) AGG COUNT WITHIN 200 units"
    result = cep.aggregate(pattern, stream, "dpc")
    assert result.metrics.peak_counters == 3
    assert result.metrics.updates == 120
