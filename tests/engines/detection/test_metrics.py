"""What an evaluation says it took: against counting it by hand, and sane in every case."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.runs.result import Metrics, shown_bytes
from cepbench.patterns.model import Operator, Pattern, Structure
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan
from tests.drawn_events import drawn_events, normal
from tests.engines.detection.strategies import PLANNED, Case, cases, plans_for, stream_of
from tests.naive.matcher import naive_matches


def part_of(pattern: Pattern, names: set[str]) -> Pattern:
    """What the pattern says about some of its variables alone."""
    return Pattern(
        Structure(
            pattern.operator,
            tuple(variable for variable in pattern.variables if variable.name in names),
        ),
        tuple(clause for clause in pattern.conditions if set(clause.variables) <= names),
        pattern.window,
    )


def spans(case: Case, plan: OrderPlan | TreePlan, *, single: bool) -> list[tuple[int, int]]:
    """First and last time of every partial match, or every event, that the plan comes across."""
    times = case.events["time"].to_numpy()
    found = []
    for names in plan.nodes():
        inner = 1 < len(names) < len(case.pattern.names)
        leaf = len(names) == 1 and isinstance(plan, TreePlan)
        if (leaf and single) or (inner and not single):
            for match in naive_matches(part_of(case.pattern, set(names)), case.events):
                bound = times[list(match)]
                found.append((int(bound.min()), int(bound.max())))
    return found


def most_at_once(case: Case, found: list[tuple[int, int]]) -> int:
    """How many are complete and not yet too old, at the worst moment."""
    window = case.pattern.window.length
    return max(
        (
            sum(last <= now and first >= now - window for first, last in found)
            for now in case.events["time"].unique().tolist()
        ),
        default=0,
    )


@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize("evaluator", PLANNED)
def test_long_windows_of_nanoseconds_do_not_overflow(evaluator: str, order: str) -> None:
    """Times for which rows are stored add up to more than 64 bits."""
    frame = drawn_events(900, "AB", seed=1, x=normal)
    text = f"PATTERN SEQ(A a, B b, A c) WHERE a.x < b.x AND c.x > 3 ORDER BY {order} WITHIN {{}}"
    plan = OrderPlan(("a", "b", "c"))
    means = []
    for window, unit in (("300 units", 1), ("300 days", 86_400 * 10**9)):
        stream = stream_of(frame.assign(time=frame["time"] * unit), is_datetime=unit > 1)
        result = evaluate(parse(text.format(window)), stream, plan, evaluator=evaluator)
        means.append(result.metrics.mean_partial_matches)
        created = result.metrics.partial_matches_created
        assert created * 300 * unit > 2**63 or unit == 1
    assert means[1] == pytest.approx(means[0], rel=1e-5) or (
        # A round of zstream is all of this stream.
        evaluator == "zstream" and math.isnan(means[1])
    )


@pytest.mark.kernel
@pytest.mark.parametrize("evaluator", PLANNED)
@given(data=st.data())
def test_partial_matches_against_counting_them(evaluator: str, data: st.DataObject) -> None:
    case = data.draw(cases(sizes=(2, 4)))
    plan = data.draw(plans_for(evaluator, case.pattern.names))
    metrics = evaluate(case.pattern, case.stream, plan, evaluator=evaluator).metrics
    found = spans(case, plan, single=False)
    if evaluator == "zstream":
        # What no final event can complete is never made, and what is stored is looked at
        # between rounds only; a row is half the size.
        assert metrics.partial_matches_created <= len(found)
        assert metrics.peak_partial_matches <= most_at_once(case, found)
        leaves = spans(case, TreePlan(plan.tree), single=True)
        assert metrics.peak_buffered_events <= most_at_once(case, leaves)
        assert metrics.peak_bytes >= 8 * metrics.peak_partial_matches
        assert metrics.peak_bytes >= 16 * metrics.peak_buffered_events
        return
    assert metrics.partial_matches_created == len(found)
    leaves = spans(case, TreePlan(plan.tree), single=True)
    assert metrics.peak_partial_matches <= most_at_once(case, found)
    assert metrics.peak_buffered_events <= most_at_once(case, leaves)
    # Under AND everything can be extended; steps of one tick miss no moment.
    if case.pattern.operator is Operator.AND and case.pattern.window.length < 16:
        assert metrics.peak_partial_matches == most_at_once(case, found)
        assert metrics.peak_buffered_events == most_at_once(case, leaves)
    times = case.events["time"]
    if len(times) and times.iloc[-1] > times.iloc[0]:
        lives = sum(case.pattern.window.length - (last - first) for first, last in found)
        expected = lives / float(times.iloc[-1] - times.iloc[0])
        assert metrics.mean_partial_matches == pytest.approx(expected)
    else:
        assert metrics.mean_partial_matches == 0
    assert metrics.peak_bytes >= 16 * max(
        metrics.peak_buffered_events, metrics.peak_partial_matches
    )
    if metrics.matches and len(case.pattern.names) > 1 and case.pattern.conditions:
        assert metrics.seconds > 0


def steady_events(count: int) -> pd.DataFrame:
    """Three types at the same rate throughout."""
    return drawn_events(count, "ABC", seed=5, x=normal)


#: A partial match of a and b waits for c; one that holds c would wait for nothing in a SEQ.
PLANS = {
    "lazy-nfa": OrderPlan(["b", "a", "c"]),
    "tree": TreePlan(("c", ("a", "b"))),
    "lazy-nfa-instances": OrderPlan(["b", "a", "c"]),
    "tree-instances": TreePlan(("c", ("a", "b"))),
    "zstream": TreePlan(("c", ("a", "b"))),
}


def test_there_is_a_plan_for_every_evaluator() -> None:
    assert set(PLANS) == set(PLANNED)


@pytest.mark.parametrize("evaluator", PLANS)
def test_every_metric_is_there_and_makes_sense(evaluator: str) -> None:
    pattern = parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 20 units")
    result = evaluate(pattern, stream_of(steady_events(600)), PLANS[evaluator], evaluator=evaluator)
    metrics = result.metrics
    assert metrics.events == 600
    assert metrics.matches == len(result.matches) > 0
    assert metrics.comparisons > 0
    assert metrics.partial_matches_created >= metrics.peak_partial_matches > 0
    assert metrics.peak_buffered_events > 0
    assert metrics.seconds > 0
    assert metrics.events_per_second == pytest.approx(600 / metrics.seconds)
    described = metrics.describe()
    for name, value in metrics.to_dict().items():
        # Latency is measured on demand; see test_latency.py.
        assert (name.replace("_", " ") in described) != name.startswith("latency")
        assert math.isfinite(value) != name.startswith("latency")
    assert result.nodes["variables"].tolist()[:3] == ["a", "b", "c"]
    assert result.nodes["comparisons"].sum() == metrics.comparisons
    assert result.nodes["created"].iloc[-1] == metrics.matches


@pytest.mark.parametrize("evaluator", PLANS)
@pytest.mark.parametrize(
    "where", ["NOT(A n), B b, C c", "B b, C c, NOT(A n)", "B b, NOT(A n), C c"]
)
def test_nodes_add_up_to_the_metrics(evaluator: str, where: str) -> None:
    pattern = parse(
        f"PATTERN SEQ(A a, {where}) WHERE a.x < b.x AND b.x < c.x AND n.x > a.x WITHIN 20 units"
    )
    events = steady_events(600)
    result = evaluate(pattern, stream_of(events), PLANS[evaluator], evaluator=evaluator)
    nodes, metrics = result.nodes, result.metrics
    # What checks for negated events compare is shown where the rows came into being.
    assert nodes["comparisons"].sum() == metrics.comparisons
    assert nodes["variables"].tolist()[:4] == ["a", "b", "c", "n"]
    assert nodes["comparisons"].iloc[:4].sum() == 0
    span = int(events["time"].iloc[-1] - events["time"].iloc[0])
    for variable, stored in zip("ABCA", nodes["mean_stored"][:4], strict=True):
        assert stored == pytest.approx((events["type"] == variable).sum() * 20 / span)
    assert nodes["mean_stored"][4:-1].sum() == pytest.approx(metrics.mean_partial_matches)
    # Rows of the root are matches.
    assert np.isnan(nodes["mean_stored"].iloc[-1]) and np.isnan(nodes["seconds"]).all()


def test_a_better_plan_takes_less() -> None:
    """Rare events first: the reason for all of this."""
    events = drawn_events(2_000, "ABC", seed=1, p=[0.69, 0.3, 0.01])
    pattern = parse("PATTERN SEQ(A a, B b, C c) WITHIN 30 units")
    written, rare_first = (
        evaluate(pattern, stream_of(events), OrderPlan(order), output="count").metrics
        for order in (["a", "b", "c"], ["c", "b", "a"])
    )
    assert written.matches == rare_first.matches > 0
    assert 10 * rare_first.partial_matches_created < written.partial_matches_created
    assert 10 * rare_first.peak_partial_matches < written.peak_partial_matches


def test_throughput_of_no_time() -> None:
    nothing = Metrics(0.0, 0, 0, 0, 0.0, 0, 0, 0, 0)
    assert math.isnan(nothing.events_per_second)
    assert "nan" in nothing.describe()


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (999, "999 B"), (999.6, "1 kB"), (41_384, "41.4 kB"), (999_499, "999 kB"),
     (999_500, "1 MB"), (5.3e9, "5.3 GB"), (float("nan"), ""), (None, ""), (pd.NA, "")],
)  # fmt: skip
def test_bytes_as_people_read_them(number: float | None, shown: str) -> None:
    assert shown_bytes(number) == shown


@pytest.mark.kernel
@pytest.mark.parametrize(
    "evaluator", [e.name for e in EVALUATORS.values() if "consuming" in e.strategies]
)
def test_rows_of_a_root_are_matches_where_waiting_ones_lose_their_events(evaluator: str) -> None:
    """A match that waits for a negated event never comes about once another has its events."""
    pattern = parse("PATTERN SEQ(A a, SEQ(A b, NOT(B c))) STRATEGY consuming WITHIN 5 units")
    rows = [("A", 0)] * 11 + [("A", 1), ("A", 4), ("A", 7), ("B", 100)]
    stream = stream_of(pd.DataFrame(rows, columns=["type", "time"]))
    result = evaluate(pattern, stream, OrderPlan(["a", "b"]), evaluator=evaluator)
    assert result.metrics.matches == len(result.matches) == 2
    assert result.nodes["created"].iloc[-1] == 2


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_times_add_up(evaluator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equal events each time, by a clock of which every look takes as long, the same is added."""
    looks = itertools.count(1)
    monkeypatch.setattr(time, "perf_counter", lambda: next(looks) / 1024)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(looks) * 10**6)
    pattern = parse("PATTERN SEQ(A a, B b, C c) WITHIN 6 units")
    detector = Detector(pattern, PLANS.get(evaluator), evaluator=evaluator)
    found = []
    for number in range(4):
        events = steady_events(60)
        detector.push(stream_of(events.assign(time=events["time"] + 100 * number)))
        metrics = detector.metrics()
        assert metrics.events == 60 * (number + 1)
        phases = {} if metrics.runs is None else vars(metrics.runs)
        phases = {k: its for k, its in phases.items() if k.startswith("seconds") and its == its}
        assert metrics.seconds >= sum(phases.values())
        # Kernels have a clock of their own.
        inside = {k: its for k, its in metrics.details.items() if k.endswith("_seconds")}
        found.append({"seconds": metrics.seconds, **phases, **inside})
    more = pd.DataFrame(found).diff()[1:]
    assert (more > 0).all(axis=None)
    assert (more.drop(columns=[*inside])[1:].nunique() == 1).all()
    assert len(more.columns) > 1 or evaluator not in ("sase", "hierarchical-stacks")
