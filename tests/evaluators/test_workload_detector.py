"""Live workloads: each push gives for every query what a detector of it alone gives."""

from __future__ import annotations

import pandas as pd
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from tests.evaluators.test_reuse import HIERARCHY, frames, plans


def _alone(pattern, **given):
    return cep.Detector(pattern.with_hierarchy(HIERARCHY), _written(pattern), **given)


def _written(pattern):
    return cep.OrderPlan(list(pattern.positive_names))


@given(plans(), frames(), st.data())
def test_each_push_gives_what_a_detector_of_the_query_gives(plan, frame, data) -> None:
    frame = frame.reset_index(drop=True)
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=HIERARCHY)
    try:
        detector = cep.Detector(plan.workload, plan)
    except cep.CepbenchError as error:
        assume("on a live stream" not in str(error))
        raise
    alone = {query: _alone(its) for query, its in plan.workload.patterns.items()}
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=3)))
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        batch = stream[start:stop]
        found = detector.push(batch)
        for query, its in alone.items():
            _check_equal(found[query], its.push(batch))
        if data.draw(st.booleans()):
            detector = cep.Detector.restore(detector.snapshot())
    found = detector.flush()
    for query, its in alone.items():
        _check_equal(found[query], its.flush())


def _check_equal(found: pd.DataFrame, due: pd.DataFrame) -> None:
    """Equal up to the order of rows."""
    names = list(due.columns)
    assert list(found.columns) == names
    by_all = [table.sort_values(names, ignore_index=True) for table in (found, due)]
    pd.testing.assert_frame_equal(*by_all, check_dtype=False)
