"""The ways to come to matches, each of which has to come to those of the naive twin."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

import cepbench as cep
from cepbench.evaluators.compressed import CompressedMatches
from cepbench.evaluators.protocol import Evaluator
from cepbench.evaluators.slices import Batch, Budget, Slice, SliceDetection, cut
from cepbench.patterns.model import Pattern
from cepbench.patterns.reach import shared_keys
from cepbench.plans.model import AnyPlan
from tests.evaluators.checks import Labelled, check, check_in_batches, found_in
from tests.evaluators.constructs import plans_of_kind
from tests.evaluators.strategies import batches_of
from tests.net.cases import NetCase


@dataclass(frozen=True)
class Choice:
    """What finds the matches.

    Attributes
    ----------
    engine : Evaluator
    plan : plan or None
    options : mapping
    output : str
    generator : str or None
        By which an adaptive run plans.
    policy : str
    """

    engine: Evaluator
    plan: AnyPlan | None
    output: str
    options: Mapping[str, Any] = field(default_factory=dict)
    generator: str | None = None
    policy: str = "static"

    @property
    def arguments(self) -> dict[str, Any]:
        return {"evaluator": self.engine.name, "options": self.options}


def found(pattern: Pattern, shown: Any) -> list[Labelled] | int:
    """What an evaluation or a push gave, in any output: matches or their number."""
    if isinstance(shown, int):
        return shown
    if isinstance(shown, CompressedMatches):
        shown = shown.expand()
    if isinstance(shown, pa.Table):
        rows = shown.to_pydict()
        columns = {
            name: pd.Series(
                [tuple(its) if isinstance(its, list) else its for its in values], dtype=object
            )
            for name, values in rows.items()
        }
        shown = pd.DataFrame(columns)
    return found_in(pattern, shown)


def agrees(expected: set[Labelled], parts: Iterable[list[Labelled] | int]) -> None:
    """Of several parts together: every match once, or their number."""
    listed: list[Labelled] = []
    number = 0
    for part in parts:
        if isinstance(part, int):
            number += part
        else:
            listed += part
            number += len(part)
    assert number == len(expected)
    if listed:
        assert Counter(listed) == Counter(expected)


def whole(case: NetCase, how: Choice, data: st.DataObject) -> None:
    """In one pass."""
    if how.output == "matches":
        check(case, case.expected, how.plan, how.engine.name, dict(how.options))
        return
    result = cep.evaluate(case.pattern, case.stream, how.plan, output=how.output, **how.arguments)
    shown = {"count": result.metrics.matches, "arrow": None, "compressed": None}[how.output]
    if shown is None:
        shown = result.arrow if how.output == "arrow" else result.compressed
    agrees(case.expected, [found(case.pattern, shown)])


def live(case: NetCase, how: Choice, data: st.DataObject) -> None:
    """In pieces, restored from a snapshot between some of them."""
    batches = data.draw(batches_of(case.stream))
    restored = data.draw(st.lists(st.booleans(), min_size=len(batches), max_size=len(batches)))
    if how.output == "matches":
        options = dict(how.options)
        check_in_batches(case, case.expected, how.plan, how.engine.name, batches, restored, options)
        return
    detector = cep.Detector(case.pattern, how.plan, output=how.output, **how.arguments)
    parts = []
    for batch, anew in zip(batches, restored, strict=True):
        parts.append(found(case.pattern, detector.push(batch)))
        if anew:
            detector = cep.Detector.restore(detector.snapshot())
    parts.append(found(case.pattern, detector.flush()))
    agrees(case.expected, parts)


def sliced(case: NetCase, how: Choice, data: st.DataObject) -> None:
    """In slices, by the functions of Spark's tasks; a slice may be cut after every batch."""
    pattern, stream = case.pattern, case.stream
    keys = shared_keys(pattern)
    lasting = pattern.selects
    key = None
    if keys and (lasting or data.draw(st.booleans())):
        key = data.draw(st.sampled_from(keys))
    detection = SliceDetection(pattern, how.engine.name, key=key)
    parts = 1 if key is None else data.draw(st.integers(1, 3))
    of_event = np.zeros(len(stream), int) if key is None else pd.factorize(case.events[key])[0]
    starts = [] if lasting else data.draw(starts_in(case.events))
    cuts = not lasting and data.draw(st.booleans())
    listed: list[list[Labelled] | int] = []
    counted = 0
    for number, (start, end) in enumerate(cut(starts)):
        part = Slice(number, start, end, how.plan)
        for its in range(parts):
            needed = detection.events_of(part, stream.timestamps) & (of_event % parts == its)
            rows = np.flatnonzero(needed)
            pieces = data.draw(batches_of(stream.with_rows(rows, rows)))
            for table in matches_of(detection, part, pieces, cuts=cuts):
                listed.append(found(pattern, table))
            (counts,) = detection.count(part, ((piece, None) for piece in pieces)).to_pylist()
            counted += counts["matches"]
            assert counts["events"] + counts["copied"] == len(rows)
    agrees(case.expected, listed)
    assert counted == len(case.expected)


def starts_in(events: pd.DataFrame) -> st.SearchStrategy[list[int]]:
    """Times to cut at: of events, between them, and outside; some slices without any event."""
    times = sorted({0, *events["time"].tolist()})
    near = st.sampled_from(times).flatmap(lambda time: st.integers(time - 1, time + 1))
    return st.sets(near, max_size=5).map(sorted)


def matches_of(
    detection: SliceDetection, part: Slice, pieces: list[cep.EventStream], *, cuts: bool
) -> Iterator[pa.Table]:
    """The matches of a slice, and if it is cut those of its rest, which is cut again."""
    while True:
        budget = Budget(0.0 if cuts else math.inf)
        events = []
        for piece in pieces:
            rows = np.flatnonzero(detection.events_of(part, piece.timestamps))
            events.append(piece.with_rows(rows, piece.whole_positions()[rows]))
        yield from detection.matches(part, batches_with_positions(events), budget)
        if budget.cut is None:
            return
        part = replace(part, start=budget.cut)


def batches_with_positions(pieces: list[cep.EventStream]) -> Iterator[Batch]:
    for piece in pieces:
        yield replace(piece, positions=None), pa.array(piece.whole_positions())


def adaptive(case: NetCase, how: Choice, data: st.DataObject) -> None:
    """In pieces, by plans that follow a policy and are changed on request, restored at times."""
    kind = None if how.generator is None else cep.PLAN_GENERATORS[how.generator].kind
    plans = None if kind is None else plans_of_kind(kind, case.pattern)
    detector = cep.AdaptiveDetector(
        case.pattern,
        generator=how.generator,
        policy=how.policy,
        initial=None if plans is None or data.draw(st.booleans()) else data.draw(plans),
        batch_size=data.draw(st.integers(1, 9)),
        threshold=data.draw(st.sampled_from([0.0, 0.5])),
        gain=0.0,
        output=how.output,
        **how.arguments,
    )
    parts = []
    for batch in data.draw(batches_of(case.stream)):
        parts.append(found(case.pattern, detector.push(batch)))
        match data.draw(st.sampled_from(["switch", "restore", ""])):
            case "restore":
                detector = cep.AdaptiveDetector.restore(detector.snapshot())
            case "switch" if plans is not None:
                detector.switch(data.draw(plans))
    parts.append(found(case.pattern, detector.flush()))
    agrees(case.expected, parts)


Way = Callable[[NetCase, Choice, st.DataObject], None]

WAYS: dict[str, Way] = {
    "whole": whole, "live": live, "sliced": sliced, "adaptive": adaptive,
}  # fmt: skip


def cuts_of(stream: cep.EventStream, data: st.DataObject) -> list[cep.EventStream]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    return [stream[i:j] for i, j in itertools.pairwise([0, *cuts, len(stream)])]
