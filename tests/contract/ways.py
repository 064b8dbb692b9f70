"""The ways to come to matches, each of which has to come to those of the naive twin."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.detection.slices import SliceDetection
from cepbench.engines.runs.compressed import CompressedMatches
from cepbench.engines.runs.protocol import Evaluator
from cepbench.engines.runs.slices import Batch, Budget, Slice, cut
from cepbench.errors import UnsupportedTaskError
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.model import AnyPlan
from tests.contract.cases import ContractCase
from tests.engines.detection.checks import Labelled, check, check_in_batches, found_in
from tests.engines.detection.constructs import plans_of_kind
from tests.engines.detection.strategies import batches_of


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
        shown = frame_of(shown.to_pylist(), shown.column_names)
    return found_in(pattern, shown)


def frame_of(rows: list[dict[str, Any]], names: Iterable[str]) -> pd.DataFrame:
    """Rows of Arrow as a table of matches, with tuples for lists."""
    columns = {
        name: [tuple(its) if isinstance(its := row[name], list) else its for row in rows]
        for name in names
    }
    return pd.DataFrame({name: pd.Series(its, dtype=object) for name, its in columns.items()})


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


def whole(case: ContractCase, how: Choice, data: st.DataObject) -> None:
    """In one pass."""
    if how.output == "matches":
        check(case, case.expected, how.plan, how.engine.name, dict(how.options))
        return
    result = cep.evaluate(case.pattern, case.stream, how.plan, output=how.output, **how.arguments)
    shown = {"count": result.metrics.matches, "arrow": None, "compressed": None}[how.output]
    if shown is None:
        shown = result.arrow if how.output == "arrow" else result.compressed
    agrees(case.expected, [found(case.pattern, shown)])
    if result.counted is not None:
        picked(case, result, data.draw(st.integers(1, 9)))


def picked(case: ContractCase, result: cep.Result, listed: int) -> None:
    """Of matches that were only counted each one by its number, where they do not depend on each other."""
    numbers = range(result.metrics.matches)
    if case.pattern.selects or case.pattern.strategy.name == "next":
        with pytest.raises(UnsupportedTaskError, match="only counted"):
            result.counted.picked(numbers)
        return
    its = replace(result.counted, listed=listed).picked(numbers)
    shown = replace(result, found=its, counted=None).positions
    agrees(case.expected, [found(case.pattern, shown)])


def live(case: ContractCase, how: Choice, data: st.DataObject) -> None:
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


def sliced(case: ContractCase, how: Choice, data: st.DataObject) -> None:
    """In slices, by the functions of Spark's tasks."""
    tables, counted = in_slices(
        SliceDetection(case.pattern, how.engine.name), case.stream, case.events, how.plan, data
    )
    agrees(case.expected, [found(case.pattern, table) for table in tables])
    assert sum(counted) == len(case.expected)


def in_slices(
    detection: SliceDetection,
    stream: cep.EventStream,
    events: pd.DataFrame,
    plan: Any,
    data: st.DataObject,
) -> tuple[list[pa.Table], list[Any]]:
    """Tables and numbers of the matches, cut by time or a key; a slice may be cut after every batch."""
    key = None
    if detection.keys and (not detection.by_time or data.draw(st.booleans())):
        key = data.draw(st.sampled_from(detection.keys))
        detection = replace(detection, key=key)
    parts = 1 if key is None else data.draw(st.integers(1, 3))
    of_event = np.zeros(len(stream), int) if key is None else pd.factorize(events[key])[0]
    starts = data.draw(starts_in(events)) if detection.by_time else []
    cuts = detection.by_time and data.draw(st.booleans())
    tables, counted = [], []
    for number, (start, end) in enumerate(cut(starts)):
        part = Slice(number, start, end, plan)
        for its in range(parts):
            needed = detection.events_of(part, stream.timestamps) & (of_event % parts == its)
            rows = np.flatnonzero(needed)
            pieces = data.draw(batches_of(stream.with_rows(rows, rows)))
            tables += matches_of(detection, part, pieces, cuts=cuts)
            (counts,) = detection.count(part, ((piece, None) for piece in pieces)).to_pylist()
            assert counts["events"] + counts["copied"] == len(rows)
            counted.append(counts["matches"])
    return tables, counted


def starts_in(events: pd.DataFrame) -> st.SearchStrategy[list[int]]:
    """Times to cut at: of events, between them, and outside; some slices without any event."""
    times = sorted({0, *events["time"].tolist()})
    near = st.sampled_from(times).flatmap(lambda time: st.integers(time - 1, time + 1))
    return st.sets(near, min_size=1, max_size=5).map(sorted)


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


def adaptive(case: ContractCase, how: Choice, data: st.DataObject) -> None:
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


Way = Callable[[ContractCase, Choice, st.DataObject], None]

WAYS: dict[str, Way] = {
    "whole": whole, "live": live, "sliced": sliced, "adaptive": adaptive,
}  # fmt: skip
