"""Random small streams, patterns, plans and statistics for hypothesis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from cepbench.engines.detection.registry import EVALUATORS
from cepbench.errors import StatisticsError
from cepbench.patterns.model import (
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Expression,
    Negative,
    Operator,
    Pattern,
    Structure,
    Variable,
    Window,
)
from cepbench.planning.plans.model import AnyPlan, OrderPlan, TreePlan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream

TYPES = ("A", "B", "C", "D")
TEXTS = ("p", "q")
OPERATORS = ("<", "<=", ">", ">=", "=", "!=")

#: The evaluators that run plans for which there is a choice.
PLANNED = [entry.name for entry in EVALUATORS.values() if "order" in entry.kinds]

#: Combinations of events that the brute-force twin is asked to go through.
AFFORDABLE = 4_000

#: What a datetime stream starts at: 2026-01-05 09:30 UTC, in nanoseconds.
MORNING = pd.Timestamp("2026-01-05 09:30").value


@dataclass(frozen=True, eq=False)
class Case:
    """A pattern and events to look for it in; times are integers in the unit of its window."""

    pattern: Pattern
    events: pd.DataFrame

    @cached_property
    def stream(self) -> EventStream:
        return stream_of(self.events, is_datetime=self.pattern.window.is_datetime)

    def __repr__(self) -> str:
        rows = self.events.to_csv(index=False, na_rep="?", lineterminator="; ")
        return f"Case({str(self.pattern)!r}, {rows})"


def stream_of(events: pd.DataFrame, *, is_datetime: bool = False) -> EventStream:
    """A stream of the events' columns ``type``, ``time`` and all others."""
    if is_datetime:
        events = events.assign(time=pd.to_datetime(events["time"], unit="ns"))
    return EventStream.from_pandas(events, type="type", time="time")


def events_of(text: str) -> pd.DataFrame:
    """Events written as ``A@1 B@2``, without attributes."""
    pairs = [word.split("@") for word in text.split()]
    return pd.DataFrame(
        {
            "type": pd.Categorical([pair[0] for pair in pairs], categories=TYPES),
            "time": np.array([pair[1] for pair in pairs], np.int64),
        }
    )


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    sizes: tuple[int, int] = (1, 5),
    nested: bool = False,
    division: bool = True,
    operators: Sequence[Operator] = (Operator.SEQ, Operator.AND),
) -> Case:
    """Patterns of all kinds with streams of up to 25 events."""
    kinds = TYPES[: draw(st.sampled_from([2, 3, 1, 4]))]
    size = draw(st.integers(*sizes))
    variables = tuple(Variable(name, draw(types_of_items(kinds))) for name in "abcdefg"[:size])
    is_datetime = draw(st.booleans())
    pattern = Pattern(
        draw(structures(variables, nested=nested, operators=operators)),
        tuple(draw(st.lists(clauses([v.name for v in variables], division=division), max_size=2))),
        draw(windows("seconds" if is_datetime else "units", (8, 20, 5, 3, 12, 2, 1, 0))),
    )
    events = draw(event_frames(kinds))
    if is_datetime:
        events["time"] = MORNING + events["time"] * 10**9
    return Case(pattern, affordable_events(pattern, events))


@st.composite
def windows(draw: st.DrawFn, unit: str, amounts: Sequence[int]) -> Window:
    """One of these windows, closed or half-open."""
    amount = draw(st.sampled_from(amounts))
    return Window(amount, unit, draw(st.integers(0, 2)) == 2 and amount > 0)


def types_of_items(kinds: Sequence[str]) -> st.SearchStrategy[str | None]:
    """One of the types, or now and then any."""
    return st.sampled_from((*kinds, *kinds, None))


@st.composite
def event_frames(draw: st.DrawFn, kinds: Sequence[str] = TYPES, most: int = 25) -> pd.DataFrame:
    """Events with ties in time, missing numbers ``x``, integers ``y``, missing texts ``s``."""
    # One draw an event, its digits being the columns: five draws would take five times as long.
    # All zeros, which a property tries first, are events of one type after the other in time.
    choices = (
        kinds,
        (1, 0, 0, 1, 2, 3),
        (0.0, 1.0, 2.0, -1.5, 0.5, 3.0, 1.0, np.nan),
        (0, 1, 2, -1),
        (*TEXTS, *TEXTS, None),
    )
    # Left to itself, a list is short; and short streams match little.
    missing = [n for n in (0, 0, 1, 3, 8, 13, 20, most) if n <= most]
    size = most - draw(st.sampled_from(missing))
    digits = st.integers(0, math.prod(map(len, choices)) - 1)
    codes = draw(st.lists(digits, min_size=size, max_size=size))
    rows = []
    for place, code in enumerate(codes):
        code, row = code + place % len(kinds), []
        for choice in choices:
            code, digit = divmod(code, len(choice))
            row.append(choice[digit])
        rows.append(row)
    # Tables of types and texts without gaps, as for a piece of a longer stream.
    return pd.DataFrame(
        {
            "type": pd.Categorical([row[0] for row in rows], categories=TYPES),
            "time": np.cumsum(np.array([row[1] for row in rows], np.int64)),
            "x": np.array([row[2] for row in rows], np.float64),
            "y": np.array([row[3] for row in rows], np.int64),
            "s": pd.Categorical([row[4] for row in rows], categories=TEXTS),
        }
    )


@st.composite
def structures(
    draw: st.DrawFn,
    variables: tuple[Variable, ...],
    *,
    nested: bool,
    operators: Sequence[Operator],
) -> Structure:
    """An operator over the variables in the given order, maybe with operators inside."""
    operator = draw(st.sampled_from(operators))
    if not nested or len(variables) < 3:
        return Structure(operator, variables)
    cuts = sorted(draw(st.sets(st.integers(1, len(variables) - 1), min_size=1)))
    parts = [variables[i:j] for i, j in itertools.pairwise([0, *cuts, len(variables)])]
    items = tuple(
        part[0] if len(part) == 1 else draw(structures(part, nested=True, operators=operators))
        for part in parts
    )
    return Structure(operator, items)


@st.composite
def clauses(draw: st.DrawFn, names: list[str], *, division: bool = True) -> Clause:
    """One or two comparisons over at most two of the variables."""
    chosen = draw(st.permutations(names))[: draw(st.integers(1, 2))]
    count = draw(st.sampled_from([1, 1, 1, 2]))
    return Clause(tuple(draw(comparisons(chosen, division=division)) for _ in range(count)))


@st.composite
def comparisons(draw: st.DrawFn, names: list[str], *, division: bool) -> Comparison:
    """Plain ones of two attributes as often as calculated ones and those of texts together."""
    kind = draw(st.sampled_from(["plain", "plain", "calculated", "text"]))
    attributes = st.builds(Attribute, st.sampled_from(names), st.sampled_from(["x", "y"]))
    if kind == "plain":
        return Comparison(
            draw(st.sampled_from(OPERATORS)),
            Attribute(names[0], draw(st.sampled_from("xy"))),
            Attribute(names[-1], draw(st.sampled_from("xy"))),
        )
    if kind == "text":
        other = st.just(Attribute(names[-1], "s")) | st.builds(
            Constant, st.sampled_from([*TEXTS, "of no event"])
        )
        return Comparison(draw(st.sampled_from(["=", "!="])), Attribute(names[0], "s"), draw(other))
    constants = st.integers(-2, 3).map(lambda value: Constant(float(value)))
    signs = st.sampled_from("+-*/%" if division else "+-*")
    expressions: st.SearchStrategy[Expression] = st.recursive(
        attributes | constants,
        lambda part: st.builds(Negative, part) | st.builds(Arithmetic, signs, part, part),
        max_leaves=4,
    )
    # One side with an attribute at least: a comparison of constants is no condition on events.
    left = st.builds(Arithmetic, signs, attributes, expressions) | st.builds(Negative, attributes)
    return Comparison(draw(st.sampled_from(OPERATORS)), draw(left), draw(expressions))


def order_plans(names: Sequence[str]) -> st.SearchStrategy[OrderPlan]:
    """Any order of the variables."""
    return st.permutations(list(names)).map(OrderPlan)


@st.composite
def tree_plans(draw: st.DrawFn, names: Sequence[str]) -> TreePlan:
    """Any tree over the variables."""

    def tree(part: list[str]) -> Any:
        if len(part) == 1:
            return part[0]
        cut = draw(st.integers(1, len(part) - 1))
        return (tree(part[:cut]), tree(part[cut:]))

    return TreePlan(tree(draw(st.permutations(list(names)))))


def plan_for(evaluator: str, plan: AnyPlan) -> AnyPlan | None:
    """The plan, or None for an evaluator that takes none."""
    return plan if evaluator in PLANNED else None


def plans_for(
    evaluator: str, names: Sequence[str]
) -> st.SearchStrategy[OrderPlan | TreePlan | None]:
    """Plans that the evaluator runs: order plans by most, all trees by some."""
    if evaluator not in PLANNED:
        return st.none()
    if "tree" in EVALUATORS[evaluator].kinds:
        return order_plans(names) | tree_plans(names)
    return order_plans(names)


@st.composite
def statistics_for(draw: st.DrawFn, case: Case) -> Statistics:
    """What a planner is told: measured on the events, or any numbers at all."""
    if draw(st.booleans()):
        try:
            return measure_statistics(case.pattern, case.stream)
        except StatisticsError:  # no events, or no time that passes
            pass
    names = case.pattern.names
    numbers = st.sampled_from([0.0, 0.1, 1.0, 3.0, 50.0])
    shares = st.sampled_from([0.0, 0.1, 0.5, 1.0])
    pairs = itertools.combinations_with_replacement(names, 2)
    return Statistics(
        cardinalities={name: draw(numbers) for name in names},
        selectivities={pair: draw(shares) for pair in pairs},
        stream_rate=draw(st.sampled_from([0.5, 20.0])),
        partitions=draw(st.sampled_from([1.0, 4.0])),
    )


def with_all_records(text: str, tree: Any, events: pd.DataFrame) -> tuple[str, Any, pd.DataFrame]:
    """A pattern with conditions below the root that always hold, the tree, and events to hold them.

    An alternative is neither a range nor a comparison of columns, so that ZStream makes the records
    below the root instead of only counting those that it can count.
    """

    def names(tree: Any) -> list[str]:
        return [tree] if isinstance(tree, str) else [*names(tree[0]), *names(tree[1])]

    always = [
        f"({x}.one = 1 OR {y}.one = 2)"
        for side in tree
        for x, y in itertools.combinations(names(side), 2)
    ]
    head, window = text.split("WITHIN")
    joined = f"{head}{'AND' if 'WHERE' in head else 'WHERE'} {' AND '.join(always)} WITHIN{window}"
    return joined, tree, events.assign(one=1)


@st.composite
def batches_of(draw: st.DrawFn, stream: EventStream) -> list[EventStream]:
    """The stream in pieces, empty ones among them."""
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    return [stream[i:j] for i, j in itertools.pairwise([0, *cuts, len(stream)])]


def affordable_events(pattern: Pattern, events: pd.DataFrame) -> pd.DataFrame:
    """The events up to where trying all combinations would take too long."""
    seen = dict.fromkeys((*TYPES, None), 0)
    for position, kind in enumerate(events["type"]):
        seen[kind] += 1
        seen[None] += 1
        if np.prod([seen[v.type] for v in pattern.variables], dtype=float) > AFFORDABLE:
            return events.iloc[:position]
    return events


def few_values(rng: np.random.Generator, times: np.ndarray, kinds: str) -> pd.DataFrame:
    """Events at some times, of types drawn from ``kinds``, with few values of ``x`` and ``s``."""
    number = len(times)
    return pd.DataFrame(
        {
            "time": times,
            "type": pd.Categorical(rng.choice(list(kinds), number), list("ABC")),
            "x": rng.choice([1, 1, 2, 2, np.nan], number),
            "s": rng.choice([1, 1, 1, 2, np.nan], number),
        }
    )
