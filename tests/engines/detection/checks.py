"""What every evaluation must come to, whatever the plan and however the stream is cut."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.model import OrderPlan, TreePlan, UnionPlan
from cepbench.streams.event_stream import EventStream
from tests.engines.detection.constructs import waits
from tests.engines.detection.strategies import Case

Plan = OrderPlan | TreePlan | UnionPlan

#: The number of a match's branch, and what each variable is bound to: None if it has none.
Labelled = tuple[int, tuple[Any, ...]]


def found_in(pattern: Pattern, matches: pd.DataFrame | int) -> list[Labelled]:
    """The rows of a table of matches; no match may be there twice."""
    assert isinstance(matches, pd.DataFrame)
    names = list(pattern.positive_names)
    several = len(pattern.branches()) > 1
    assert sorted(matches.columns) == sorted([*names, "branch"] if several else names)
    columns = [[None if _is_missing(v) else v for v in matches[name]] for name in names]
    labels = matches["branch"].tolist() if several else [0] * len(matches)
    rows = [
        (int(label), tuple(_plain(value) for value in row))
        for label, row in zip(labels, zip(*columns, strict=True), strict=True)
    ]
    assert len({row for _, row in rows}) == len(rows), "the same match twice"
    return rows


def check(
    case: Case,
    expected: set[Labelled],
    plan: Plan | None,
    evaluator: str,
    options: dict[str, Any] | None = None,
) -> None:
    """Matches as the twin's, each once; as many when counted; the same when latency is measured."""
    result = evaluate(case.pattern, case.stream, plan, evaluator=evaluator, options=options)
    found = found_in(case.pattern, result.matches)
    assert set(found) == expected
    # By their last events, then by branch; plain ones by all their positions.
    lasts = [(_last(match), label) for label, match in found]
    assert lasts == sorted(lasts)
    if all(isinstance(position, int) for _, match in found for position in match):
        assert found == sorted(found, key=lambda its: (max(its[1]), its))
    assert result.metrics.matches == len(expected)
    assert result.metrics.events == len(case.events)
    assert result.latency is None
    counted = evaluate(
        case.pattern, case.stream, plan, evaluator=evaluator, options=options, output="count"
    )
    assert counted.metrics.matches == len(expected)
    if not EVALUATORS[evaluator].latency or any(b.groups for b in case.pattern.branches()):
        return
    timed = evaluate(case.pattern, case.stream, plan, evaluator=evaluator, latency=True)
    pd.testing.assert_frame_equal(timed.matches, result.matches)
    assert timed.latency is not None
    # What two branches find is timed in both, where both may have it.
    names = [frozenset(branch.positive_names) for branch in case.pattern.branches()]
    shared = len(set(names)) < len(names) and case.pattern.strategy.name != "consuming"
    assert timed.latency.count >= len(expected)
    assert timed.latency.count == len(expected) or shared or case.pattern.output != "all"


def check_in_batches(
    case: Case,
    expected: set[Labelled],
    plan: Plan | None,
    evaluator: str,
    batches: list[EventStream],
    restored: list[bool],
    options: dict[str, Any] | None = None,
) -> None:
    """The same in batches; a match comes with its last event or when its deadline has passed."""
    pattern = case.pattern
    due = {match: _due(case, match) for match in expected}
    detector = Detector(pattern, plan, evaluator=evaluator, options=options)
    counter = Detector(pattern, plan, evaluator=evaluator, options=options, output="count")
    found: list[Labelled] = []
    counted = 0
    for batch, anew in zip(batches, restored, strict=True):
        new = found_in(pattern, detector.push(batch))
        found += new
        counted += counter.push(batch)
        pushed = detector.position
        assert counted == len(found)
        if pattern.strategy.name != "consuming":
            last = case.events["time"].iloc[pushed - 1] if pushed else None
            assert set(found) >= {
                match
                for match, (position, deadline) in due.items()
                if position < pushed and (deadline is None or last > deadline)
            }
        if anew:
            detector = Detector.restore(detector.snapshot())
            counter = Detector.restore(counter.snapshot())
    late = found_in(pattern, detector.flush())
    assert pattern.strategy.name == "consuming" or all(due[match][1] is not None for match in late)
    found += late
    counted += counter.flush()
    assert len(found) == len(set(found)), "the same match twice"
    assert set(found) == expected
    assert counted == len(expected)
    assert detector.metrics().matches == len(expected)


def _due(case: Case, match: Labelled) -> tuple[int, int | None]:
    """Position of the last event, and the time up to which an event may still prevent the match."""
    label, row = match
    positions = _positions(row)
    # A twin that waits and comes first may still claim it.
    branches = case.pattern.branches()[: label + 1]
    twins = [b for b in branches if set(b.positive_names) == set(branches[-1].positive_names)]
    since = min(positions)
    if case.pattern.output != "all":
        # Any match that ends before it comes first.
        twins, since = case.pattern.branches(), max(positions)
    deadline = int(case.events["time"].iloc[since]) + case.pattern.window.length
    return max(positions), deadline if any(map(waits, twins)) else None


def _positions(row: tuple[Any, ...]) -> list[int]:
    bound = (its if isinstance(its, tuple) else (its,) for its in row if its is not None)
    return [position for its in bound for position in its]


def _last(row: tuple[Any, ...]) -> int:
    return max(_positions(row))


def _is_missing(value: Any) -> bool:
    return not isinstance(value, tuple) and bool(pd.isna(value))


def _plain(value: Any) -> Any:
    if value is None:
        return None
    return tuple(map(int, value)) if isinstance(value, tuple) else int(value)
