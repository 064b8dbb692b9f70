"""Events in batches: whatever the cuts, the same matches; state that can be put away."""

from __future__ import annotations

import inspect
import io
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.adaptation.detector import AdaptiveDetector
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.errors import (
    EvaluationError,
    PartialMatchLimitError,
    PlanError,
    SnapshotError,
    StreamError,
)
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan
from cepbench.streams.event_stream import EventStream
from tests.contract.snapshots import header_of, with_digest, with_header
from tests.engines.detection.constructs import able
from tests.engines.detection.strategies import (
    PLANNED,
    batches_of,
    cases,
    events_of,
    plan_for,
    plans_for,
    stream_of,
)
from tests.naive.matcher import naive_matches

PATTERN = parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x AND b.s = c.s WITHIN 30 units")
PLAN = OrderPlan(["c", "a", "b"])


def random_events(count: int, *, seed: int = 0, types: str = "ABC") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "type": pd.Categorical(rng.choice(list(types), count), categories=list("ABCD")),
            "time": np.sort(rng.integers(0, 2 * count, count)),
            "x": rng.normal(size=count),
            "s": rng.choice(["p", "q", "r"], count),
        }
    )


def rows(matches: pd.DataFrame | int) -> list[tuple[int, ...]]:
    assert isinstance(matches, pd.DataFrame)
    return [tuple(row) for row in matches.to_numpy().tolist()]


def through_a_file(snapshot: dict[str, np.ndarray]) -> Any:
    """As ``numpy.savez`` and ``numpy.load`` give it back."""
    file = io.BytesIO()
    np.savez(file, **snapshot)
    file.seek(0)
    return np.load(file)


@pytest.mark.kernel
@pytest.mark.parametrize("evaluator", PLANNED)
@given(data=st.data())
def test_any_batches_any_restorations(evaluator: str, data: st.DataObject) -> None:
    case = data.draw(cases(nested=data.draw(st.booleans())))
    plan = data.draw(plans_for(evaluator, case.pattern.names))
    whole = evaluate(case.pattern, case.stream, plan, evaluator=evaluator)
    detector = Detector(case.pattern, plan, evaluator=evaluator)
    counter = Detector(case.pattern, plan, evaluator=evaluator, output="count")
    found: list[tuple[int, ...]] = []
    counted = pushed = 0
    for batch in data.draw(batches_of(case.stream)):
        complete = rows(detector.push(batch))
        pushed += len(batch)
        assert all(max(match) >= pushed - len(batch) for match in complete)
        found += complete
        counted += counter.push(batch)
        assert detector.position == pushed
        if data.draw(st.booleans()):
            detector = Detector.restore(through_a_file(detector.snapshot()))
            counter = Detector.restore(counter.snapshot())
            assert detector.pattern == case.pattern
            assert detector.plan.tree == plan.tree
            assert (detector.evaluator, detector.output) == (evaluator, "matches")
            assert counter.output == "count"
    assert rows(detector.flush()) == []
    assert counter.flush() == 0
    assert sorted(found) == sorted(naive_matches(case.pattern, case.events))
    assert counted == len(found)
    # What came into being is the same, not only what was reported.
    for key in ("events", "matches"):
        assert getattr(detector.metrics(), key) == getattr(whole.metrics, key), key
    if evaluator == "zstream":
        return  # a push ends a round, and a round discards before it joins
    assert detector.metrics().partial_matches_created == whole.metrics.partial_matches_created
    assert detector.metrics().mean_partial_matches == pytest.approx(
        whole.metrics.mean_partial_matches
    )


def test_matches_come_as_soon_as_complete_and_positions_are_global() -> None:
    pattern = parse("PATTERN SEQ(A a, B b) WITHIN 4 units")
    stream = stream_of(events_of("C@1 A@2 B@3 C@3 B@4"))
    detector = Detector(pattern, OrderPlan(["b", "a"]))
    found = [rows(detector.push(batch)) for batch in stream.batches(1)]
    assert found == [[], [], [(1, 2)], [], [(1, 4)]]
    assert detector.position == 5


def test_batches_with_tables_of_their_own() -> None:
    """Each batch may number its types and texts as it likes, and lack some."""
    events = random_events(120).astype({"type": str})
    whole = evaluate(PATTERN, stream_of(events), PLAN)
    assert len(whole.matches) > 20
    detector = Detector(PATTERN, PLAN)
    found: list[tuple[int, ...]] = []
    for start in range(0, len(events), 3):
        found += rows(detector.push(stream_of(events[start : start + 3])))
        detector = Detector.restore(detector.snapshot())
    assert sorted(found) == sorted(rows(whole.matches))


CONTINUE = """
import json, pickle, sys
import numpy as np
from cepbench.engines.detection.detector import Detector
detector = Detector.restore(np.load(sys.argv[1]))
with open(sys.argv[2], "rb") as file:
    batches = pickle.load(file)
found = []
for batch in batches:
    found += detector.push(batch).to_numpy().tolist()
print(json.dumps([found, detector.position, detector.metrics().comparisons]))
"""


@pytest.mark.parametrize(
    ("evaluator", "plan"),
    [("lazy-nfa", PLAN), ("tree", TreePlan(("b", ("a", "c"))))],
    ids=["lazy-nfa", "tree"],
)
def test_goes_on_in_another_process(
    evaluator: str, plan: OrderPlan | TreePlan, tmp_path: Path
) -> None:
    stream = stream_of(random_events(150))
    whole = evaluate(PATTERN, stream, plan, evaluator=evaluator)
    detector = Detector(PATTERN, plan, evaluator=evaluator)
    before = rows(detector.push(stream[:70]))
    rest = [stream[70:90], stream[90:]]
    np.savez(tmp_path / "state.npz", **detector.snapshot())
    (tmp_path / "rest.pickle").write_bytes(pickle.dumps(rest))
    run = subprocess.run(
        [sys.executable, "-c", CONTINUE, "state.npz", "rest.pickle"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    after, position, comparisons = json.loads(run.stdout)
    assert before
    assert after
    assert sorted([*before, *map(tuple, after)]) == sorted(rows(whole.matches))
    assert position == len(stream)
    for batch in rest:
        detector.push(batch)
    assert comparisons == detector.metrics().comparisons > 0


def sealed_text(header: str) -> dict[str, np.ndarray]:
    """What says so of itself, with the digest that belongs to it."""
    return with_digest({"header": np.frombuffer(header.encode(), np.uint8)})


def some_snapshot() -> dict[str, np.ndarray]:
    detector = Detector(PATTERN, PLAN)
    detector.push(stream_of(random_events(60)))
    return detector.snapshot()


def test_snapshot_is_plain_arrays_without_objects() -> None:
    snapshot = some_snapshot()
    for name, array in snapshot.items():
        assert isinstance(array, np.ndarray), name
        assert not array.dtype.hasobject, name
    assert len(snapshot["run/engines/0/packed/2"])
    # And a copy: what the detector does later leaves it alone.
    detector = Detector(PATTERN, PLAN)
    stream = stream_of(random_events(60))
    detector.push(stream[:30])
    taken = detector.snapshot()
    kept = {name: array.copy() for name, array in taken.items()}
    detector.push(stream[30:])
    for name, array in taken.items():
        np.testing.assert_array_equal(array, kept[name])


@pytest.mark.parametrize(
    "garbage",
    [
        {},
        {"header": np.array("no JSON")},
        {"header": np.array(3.5), "digest": np.array(1)},
        {"numbers": np.arange(3)},
        sealed_text("no JSON"),
        sealed_text("[1, 2]"),
        sealed_text("{}"),
    ],
    ids=["empty", "no digest", "a number", "other arrays", "no JSON", "a list", "no version"],
)
def test_restoring_garbage(garbage: dict[str, np.ndarray]) -> None:
    with pytest.raises(SnapshotError, match=r"no snapshot|no digest|is damaged"):
        Detector.restore(garbage)


def test_restoring_another_version() -> None:
    snapshot = some_snapshot()
    header = {**header_of(snapshot), "version": 999, "cepbench": "9.9"}
    with pytest.raises(SnapshotError, match=r"version 999.*with the version .*, cepbench 9\.9"):
        Detector.restore(with_header(snapshot, header))


@pytest.mark.parametrize(
    "part",
    [*(f"packed/{number}" for number in range(5)), "state/counts", "state/peaks", "latencies"],
)
@pytest.mark.parametrize("damage", ["missing", "cut", "longer", "wrong kind"])
@pytest.mark.parametrize("seal", [dict, with_digest], ids=["old digest", "new digest"])
def test_restoring_something_damaged(part: str, damage: str, seal: Any) -> None:
    """No array gets to a kernel that does not fit it, be its digest right or wrong."""
    snapshot = some_snapshot()
    name = f"run/engines/0/{part}"
    if damage == "missing":
        del snapshot[name]
    elif damage == "cut":
        snapshot[name] = snapshot[name][..., :-1] if snapshot[name].size else np.empty((1, 1, 1))
    elif damage == "longer":
        snapshot[name] = np.zeros((9, *snapshot[name].shape), snapshot[name].dtype)
    else:
        snapshot[name] = np.full(snapshot[name].shape, "x")
    with pytest.raises(SnapshotError, match="damaged"):
        Detector.restore(seal(snapshot))


@pytest.mark.parametrize(
    "key", ["kind", "pattern", "plan", "evaluator", "options", "position", "latency"]
)
def test_restoring_a_damaged_header(key: str) -> None:
    snapshot = some_snapshot()
    header = header_of(snapshot)
    del header[key]
    with pytest.raises(SnapshotError, match=f"no usable '{key}'"):
        Detector.restore(with_header(snapshot, header))


@pytest.mark.parametrize("key", ["first", "last", "reader", "union", "engines"])
def test_restoring_a_run_that_does_not_say_all(key: str) -> None:
    snapshot = some_snapshot()
    known = json.loads(snapshot["known"].tobytes())
    del known["run"]["state"][key]
    damaged = snapshot | {"known": np.frombuffer(json.dumps(known).encode(), np.uint8)}
    with pytest.raises(SnapshotError, match=f"no usable 'run/{key}'"):
        Detector.restore(with_digest(damaged))


@pytest.mark.kernel
@pytest.mark.parametrize("evaluator", PLANNED)
def test_partial_match_limit(evaluator: str) -> None:
    """It stops before more is stored than allowed, says why, and what can be done."""
    pattern = parse("PATTERN AND(A a, B b, C c) WITHIN 1000 units")
    stream = stream_of(events_of(" ".join(f"{'AB'[i % 2]}@{i}" for i in range(60)) + " C@60"))
    plan = OrderPlan(["a", "b", "c"])
    needed = evaluate(pattern, stream, plan, evaluator=evaluator).metrics.peak_partial_matches
    assert needed == 900
    enough = Detector(pattern, plan, evaluator=evaluator, partial_match_limit=needed)
    assert len(rows(enough.push(stream))) == 900
    detector = Detector(pattern, plan, evaluator=evaluator, partial_match_limit=100)
    pushes = (detector.push(batch) for batch in stream.batches(5))
    with pytest.raises(PartialMatchLimitError) as caught:
        list(pushes)
    message = str(caught.value)
    for part in ("100 partial matches", "(a, b)", "plan generator", "partial_match_limit"):
        assert part in message
    assert detector.metrics().peak_partial_matches <= 100
    with pytest.raises(EvaluationError, match="too many partial matches"):
        detector.push(stream)
    with pytest.raises(EvaluationError, match="too many partial matches"):
        detector.snapshot()


def test_partial_match_limit_bounds_memory() -> None:
    """A burst that would make millions of partial matches ends early and small."""
    events = pd.DataFrame({"type": ["A", "B", "C"] * 3000, "time": np.zeros(9000, np.int64)})
    pattern = parse("PATTERN AND(A a, B b, C c) WITHIN 1 units")
    detector = Detector(pattern, OrderPlan(["a", "b", "c"]), partial_match_limit=1000)
    with pytest.raises(PartialMatchLimitError):
        detector.push(stream_of(events))
    assert detector.node_metrics()["peak_stored"].max() <= 9000
    # Leaves of 3 x 3000 events, and rows of at most 1000 partial matches in doubled arrays.
    state = detector._run._engines[0].state
    assert state.ints.nbytes + state.floats.nbytes < 2_000_000


def test_partial_matches_may_be_many_over_time_under_the_limit() -> None:
    """What has expired counts no more."""
    count = 2_000
    events = pd.DataFrame({"type": ["A", "B"] * count, "time": np.arange(2 * count)})
    pattern = parse("PATTERN AND(A a, B b, C c) WITHIN 4 units")
    result = evaluate(
        pattern, stream_of(events.assign(type=pd.Categorical(events["type"], list("ABC")))),
        OrderPlan(["a", "b", "c"]), partial_match_limit=40,
    )  # fmt: skip
    assert result.metrics.partial_matches_created > 1000
    assert result.metrics.peak_partial_matches <= 40


def test_batches_out_of_order_name_the_row() -> None:
    stream = stream_of(random_events(60))
    detector = Detector(PATTERN, PLAN)
    detector.push(stream[:30])
    with pytest.raises(StreamError, match=r"row 30: .*order of time") as caught:
        detector.push(stream[:5])
    assert caught.value.row == 30
    # Nothing was taken in: the right batch still fits.
    expected = [row for row in rows(evaluate(PATTERN, stream, PLAN).matches) if max(row) >= 30]
    assert expected
    assert sorted(rows(detector.push(stream[30:]))) == sorted(expected)


def test_batches_may_share_a_timestamp() -> None:
    stream = stream_of(events_of("A@1 B@1 A@1 B@2"))
    detector = Detector(parse("PATTERN AND(A a, B b) WITHIN 0 units"), OrderPlan(["a", "b"]))
    assert [rows(detector.push(batch)) for batch in stream.batches(1)] == [
        [],
        [(0, 1)],
        [(2, 1)],
        [],
    ]


def test_nothing_after_the_end() -> None:
    stream = stream_of(random_events(10))
    detector = Detector(PATTERN, PLAN)
    detector.push(stream)
    detector.flush()
    for action in (lambda: detector.push(stream), detector.flush, detector.snapshot):
        with pytest.raises(EvaluationError, match="flushed; make a new one"):
            action()


def test_a_batch_of_another_kind() -> None:
    detector = Detector(PATTERN, PLAN)
    with pytest.raises(StreamError, match=r"EventStream, not a DataFrame; .*from_pandas"):
        detector.push(random_events(5))  # type: ignore[arg-type]
    with pytest.raises(StreamError, match="WITHIN"):
        detector.push(stream_of(random_events(5), is_datetime=True))
    with pytest.raises(StreamError, match="no attribute 'x'"):
        detector.push(stream_of(events_of("A@1")))
    assert detector.position == 0


@pytest.mark.parametrize(
    "plan", [OrderPlan(["a", "b"]), TreePlan(("a", "b"))], ids=["order", "tree"]
)
def test_plan_of_another_pattern(plan: OrderPlan | TreePlan) -> None:
    with pytest.raises(PlanError, match="lacks variable 'c'"):
        Detector(PATTERN, plan)
    with pytest.raises(PlanError, match="'b' that the pattern has not"):
        Detector(parse("PATTERN SEQ(A a) WITHIN 1 units"), plan)


def test_settings_that_mean_nothing() -> None:
    with pytest.raises(EvaluationError, match=r"no evaluator 'lazy-nfs'.*did you mean 'lazy-nfa'"):
        Detector(PATTERN, PLAN, evaluator="lazy-nfs")
    with pytest.raises(
        EvaluationError, match="one of matches, arrow, count, compressed, not 'both'"
    ):
        Detector(PATTERN, PLAN, output="both")
    with pytest.raises(EvaluationError, match="partial_match_limit must be at least 1"):
        Detector(PATTERN, PLAN, partial_match_limit=0)
    with pytest.raises(EvaluationError, match=r"one event at a time.*\(a, b\).*\(c, d\)"):
        Detector(
            parse("PATTERN AND(A a, B b, C c, D d) WITHIN 1 units"),
            TreePlan((("a", "b"), ("c", "d"))),
            evaluator="lazy-nfa",
        )


def test_unknown_type_suggests_the_nearest() -> None:
    frame = pd.DataFrame({"type": ["MSFT", "GOOG"], "time": [1, 2]})
    pattern = parse("PATTERN SEQ(MSFT a, GOOGL b) WITHIN 1 units")
    with pytest.raises(StreamError, match=r"'GOOGL'.*'b'.*did you mean 'GOOG'"):
        evaluate(pattern, stream_of(frame), OrderPlan(["a", "b"]), missing_types="error")
    # A batch need not hold every type: the others may come later.
    assert rows(Detector(pattern, OrderPlan(["a", "b"])).push(stream_of(frame))) == []


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("is_datetime", [False, True], ids=["integer", "datetime"])
def test_empty_stream(evaluator: str, is_datetime: bool) -> None:
    unit = "seconds" if is_datetime else "units"
    pattern = parse(f"PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 {unit}")
    empty: EventStream = stream_of(random_events(0), is_datetime=is_datetime)
    plan = plan_for(evaluator, OrderPlan(["a", "b"]))
    result = evaluate(pattern, empty, plan, evaluator=evaluator)
    assert list(result.matches.columns) == ["a", "b"]
    assert len(result.matches) == result.metrics.matches == result.metrics.events == 0


@pytest.mark.kernel
@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize(
    ("text", "last_of_all", "expected"),
    [
        # The window is closed: at its very end a negated event may still come, in another batch.
        ("SEQ(A a, NOT(B n)) WITHIN 4 units", "B@5", [[], [], [], []]),
        ("SEQ(A a, NOT(B n)) WITHIN 4 units", "B@6", [[], [], [(0,)], []]),
        ("AND(A a, NOT(B n)) WITHIN 4 units", "B@5", [[], [], [], []]),
        ("SEQ(A a, NOT(B n)) STRATEGY consuming WITHIN 4 units", "B@5", [[], [], [], []]),
        ("SEQ(A a, NOT(B n)) WITHIN 4 units", "C@5", [[], [], [], [(0,)]]),
    ],
)
def test_a_match_waits_up_to_its_deadline(
    evaluator: str, text: str, last_of_all: str, expected: list[list[tuple[int, ...]]]
) -> None:
    """Any event that is later ends the waiting, else the end of the stream does."""
    if evaluator not in able(parse(f"PATTERN {text}")):
        pytest.skip("it does not run this strategy")
    stream = stream_of(events_of(f"A@1 C@5 {last_of_all}"))
    plan = plan_for(evaluator, OrderPlan(["a"]))
    detector = Detector(parse(f"PATTERN {text}"), plan, evaluator=evaluator)
    found = [rows(detector.push(batch)) for batch in stream.batches(1)]
    assert [*found, rows(detector.flush())] == expected


@pytest.mark.parametrize("kind", [Detector, AdaptiveDetector])
def test_help_shows_the_arguments_of_a_detector(kind: type) -> None:
    shown = inspect.signature(kind).parameters
    assert ["self", *shown] == [*inspect.signature(kind.__init__).parameters]
