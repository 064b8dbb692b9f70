"""OR on a live stream: what waits, what is put away in between, what another branch consumes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, UnionPlan
from tests.engines.detection.checks import Labelled, found_in
from tests.engines.detection.constructs import able
from tests.engines.detection.strategies import Case, events_of, plan_for
from tests.naive.matcher import labelled_matches

pytestmark = pytest.mark.parametrize("evaluator", EVALUATORS)

#: The second branch's matches wait until the first has decided whether they are its own.
TWINS = "OR(SEQ(A a, B b, NOT(C n)), SEQ(A a, B b)) WITHIN 4 units"
#: The first branch's are reported at once, and must not be again when the second has waited.
REVERSED = "OR(SEQ(A a, B b), SEQ(A a, B b, NOT(C n))) WITHIN 4 units"
#: Both directions: the later branch waits, and so does the earlier one, for different events.
BOTH_WAIT = "OR(AND(A a, B b, NOT(C n)), AND(A a, B b, NOT(D m))) WITHIN 3 units"
ACROSS = "OR(SEQ(A a, B b, C c), SEQ(B b, A a, C c)) STRATEGY consuming WITHIN 9 units"
OTHER_NAMES = "OR(SEQ(A a, B b), SEQ(B c, A d), SEQ(A a, D e)) STRATEGY consuming WITHIN 6 units"


def check_live(case: Case, evaluator: str, cuts: Sequence[int], *, restored: bool) -> None:
    """The naive matcher's matches, cut in any way, and put away after each batch or never."""
    if evaluator not in able(case.pattern):
        pytest.skip("it does not run this strategy")
    expected = labelled_matches(case.pattern, case.events)
    branches = case.pattern.branches()
    plan = plan_for(evaluator, UnionPlan([OrderPlan(b.positive_names) for b in branches]))
    detector = Detector(case.pattern, plan, evaluator=evaluator)
    counter = Detector(case.pattern, plan, evaluator=evaluator, output="count")
    found: list[Labelled] = []
    counted = 0
    for begin, end in itertools.pairwise([0, *cuts, len(case.stream)]):
        found += found_in(case.pattern, detector.push(case.stream[begin:end]))
        counted += counter.push(case.stream[begin:end])
        # Nothing too early, which another branch may still claim, and nothing too late.
        assert set(found) <= expected and counted == len(found)
        last = case.events["time"][end - 1] if end else -1
        assert set(found) >= {match for match in expected if _decided(case, match) < last}
        if restored:
            detector = Detector.restore(detector.snapshot())
            counter = Detector.restore(counter.snapshot())
    found += found_in(case.pattern, detector.flush())
    counted += counter.flush()
    assert len(found) == counted == len(expected) and set(found) == expected


def _decided(case: Case, match: Labelled) -> int:
    """The latest timestamp at which an event may still change that it is this branch's match."""
    positions = [position for position in match[1] if position is not None]
    times = [case.events["time"][position] for position in positions]
    waits = bool(case.pattern.negated)
    return min(times) + case.pattern.window.length if waits else max(times)


@pytest.mark.parametrize(
    ("text", "events", "expected"),
    [
        # Held back when the snapshot is taken; the first branch loses it, or reports it.
        (TWINS, "A@1 B@2 C@3 D@6", {(1, (0, 1))}),
        (TWINS, "A@1 B@2 D@3 D@6", {(0, (0, 1))}),
        # The window is closed: at its very end it is not decided, whatever the batch ends with.
        (TWINS, "A@1 B@2 D@5 D@5 D@6", {(0, (0, 1))}),
        (TWINS, "A@1 B@2 D@5 C@5 D@6", {(1, (0, 1))}),
        # Or the stream ends there.
        (TWINS, "A@1 B@2 D@5", {(0, (0, 1))}),
        (TWINS, "A@1 B@2 C@5", {(1, (0, 1))}),
        (REVERSED, "A@1 B@2 D@6 D@7", {(0, (0, 1))}),
        (BOTH_WAIT, "A@1 B@2 D@4 C@4 D@5", set()),
        (BOTH_WAIT, "C@0 A@2 B@2 A@5 A@6", {(1, (1, 2)), (0, (3, 2))}),
        # Of matches with one last event the one of the smallest positions, in whatever branch.
        (ACROSS, "B@1 A@2 B@3 C@4", {(1, (1, 0, 3))}),
        (ACROSS, "A@1 B@2 A@3 C@4", {(0, (0, 1, 3))}),
        (ACROSS, "B@1 A@2 B@3 C@4 C@5 A@6 C@7", {(1, (1, 0, 3)), (1, (5, 2, 6))}),
    ],
)
def test_wherever_it_is_cut(evaluator: str, text: str, events: str, expected: set) -> None:
    case = Case(parse(f"PATTERN {text}"), events_of(events))
    assert labelled_matches(case.pattern, case.events) == expected
    inner = range(1, len(case.events))
    check_live(case, evaluator, inner, restored=True)
    for cuts in ([], inner, [len(inner)]):
        check_live(case, evaluator, cuts, restored=False)


@pytest.mark.parametrize("text", [TWINS, BOTH_WAIT, ACROSS, OTHER_NAMES])
def test_streams_with_many_ties(evaluator: str, text: str, seeds) -> None:
    found = 0
    for seed in seeds(3):
        rng = np.random.default_rng([seed, len(text)])
        times = np.cumsum(rng.integers(0, 3, 12))
        kinds = rng.choice(list("AABBBCCD"), 12)
        words = [f"{kind}@{time}" for kind, time in zip(kinds, times, strict=True)]
        case = Case(parse(f"PATTERN {text}"), events_of(" ".join(words)))
        found += len(labelled_matches(case.pattern, case.events))
        # After each timestamp, and anywhere.
        check_live(case, evaluator, np.flatnonzero(np.diff(times)) + 1, restored=False)
        check_live(case, evaluator, np.sort(rng.choice(13, 3)), restored=True)
    assert found > 2
