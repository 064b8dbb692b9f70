"""Partial matches at the nodes of a plan against finding them one by one."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import ExperimentError
from cepbench.experiments.studies.kolchinsky2018.node_counts import count_node, restricted
from cepbench.patterns.parse import parse
from cepbench.planning.statistics.measure import sample_statistics
from cepbench.streams.event_stream import EventStream
from tests.drawn_events import drawn_events
from tests.engines.detection.strategies import Case, cases
from tests.naive.matcher import naive_matches


def test_a_pattern_restricted_to_some_variables() -> None:
    pattern = parse(
        "PATTERN SEQ(A a, AND(B b, C c), NOT(D n), E e) "
        "WHERE a.x < c.x AND a.x < b.x AND b.x > 2 AND n.x > e.x STRATEGY consuming WITHIN 5 units"
    )
    for names, expected in {
        "ace": "PATTERN SEQ(A a, AND(C c), E e) WHERE a.x < c.x WITHIN 5 units",
        "b": "PATTERN SEQ(AND(B b)) WHERE b.x > 2 WITHIN 5 units",
        "bc": "PATTERN SEQ(AND(B b, C c)) WHERE b.x > 2 WITHIN 5 units",
    }.items():
        assert restricted(pattern, names) == parse(expected)
    tied = parse("PATTERN SEQ(A a, B b, C c) WHERE [x] WITHIN 5 units")
    assert restricted(tied, "ac") == parse("PATTERN SEQ(A a, C c) WHERE a.x = c.x WITHIN 5 units")
    assert len(restricted(tied, "abc").conditions) == 2
    for wrong in (["a", "z"], []):
        with pytest.raises(ExperimentError, match="none of the pattern's"):
            restricted(pattern, wrong)


@pytest.mark.kernel
@given(case=cases(sizes=(2, 4)), data=st.data())
def test_counts_against_the_definition(case: Case, data: st.DataObject) -> None:
    names = data.draw(st.sets(st.sampled_from(case.pattern.names), min_size=1))
    if case.pattern.window.length < 1 or len(case.events) < 2:
        return
    sample = sample_statistics(case.pattern, case.stream)
    active = max(sample.active, sample.shortest)
    found = count_node(
        case.pattern, case.stream, names, statistics=sample.to_statistics(), active=active
    )
    part = restricted(case.pattern, names)
    matches = naive_matches(part, case.events)
    times = case.events["time"].to_numpy()
    window, tick = part.window.seconds, part.window.seconds / part.window.length
    lives = [window - tick * (times[list(m)].max() - times[list(m)].min()) for m in matches]
    assert found.matches == len(matches)
    assert found.alive == pytest.approx(sum(lives) / active)
    assert found.created == pytest.approx(len(matches) * window / active)
    assert found.least == pytest.approx(window / len(names) / active)
    if matches:
        uses = pd.Series([position for match in matches for position in match]).value_counts()
        assert found.heaviest == pytest.approx(uses.max() / len(matches))
    else:
        assert math.isnan(found.heaviest)


@pytest.mark.kernel
def test_long_streams_are_taken_in_batches_and_seconds_are_seconds() -> None:
    events = drawn_events(9_000, "ABC", seed=2)
    ticks = EventStream.from_pandas(events, type="type", time="time")
    seconds = EventStream.from_pandas(
        events.assign(time=pd.to_datetime(events["time"], unit="s")), type="type", time="time"
    )
    found = []
    for stream, unit in ((ticks, "units"), (seconds, "seconds")):
        pattern = parse(f"PATTERN SEQ(A a, B b, C c) WITHIN 6 {unit}")
        sample = sample_statistics(pattern, stream)
        found.append(
            count_node(
                pattern, stream, "ac", statistics=sample.to_statistics(), active=sample.active
            )
        )
    assert found[0] == found[1]
    kinds = events["type"].to_numpy()
    by_gap = [((kinds[:-gap] == "A") & (kinds[gap:] == "C")).sum() for gap in range(1, 7)]
    assert found[0].matches == sum(by_gap)
    lives = sum((6 - gap) * number for gap, number in enumerate(by_gap, 1))
    assert found[0].alive == pytest.approx(lives / 8_999)
