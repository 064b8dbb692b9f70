"""Checks of an evaluator: it finds the matches that others find, and runs what it declares."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import seed as seed_from
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.tasks import constructs_of
from cepbench.engines.runs.protocol import Evaluator, Option
from cepbench.engines.runs.result import Result
from cepbench.errors import EvaluationError, ExperimentError, UnsupportedPatternError
from cepbench.experiments.conformance.checker import (
    Check,
    CheckReport,
    batches,
    checked,
    chosen_patterns,
)
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.planners.generate import plan as make_plan
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.streams.event_stream import EventStream

#: Patterns over the stream of :func:`check_stream`, one for each construct.
PATTERNS = {
    "sequence": "SEQ(A a, B b, C c) WHERE a.x < b.x",
    "conjunction": "AND(A a, B b, C c) WHERE a.x < c.x AND b.x > 0",
    "equal values": "SEQ(A a, B b, A c) WHERE a.k = b.k AND b.k = c.k",
    "four events": "SEQ(A a, B b, C c, D d) WHERE a.x < d.x AND b.k = c.k",
    "nested": "SEQ(A a, AND(B b, C c), D d) WHERE b.x < c.x",
    "negation": "SEQ(A a, NOT(B n), C c) WHERE n.x > a.x",
    "kleene": "SEQ(A a, KL(B b), C c) WHERE b.x > 0",
    "disjunction": "OR(SEQ(A a, B b), SEQ(C c, D d)) WHERE a.x < b.x",
    "one event": "SEQ(A a) WHERE a.x > 0",
    "consuming": "SEQ(A a, B b, C c) STRATEGY consuming",
    "strict contiguity": "SEQ(A a, B b) STRATEGY strict_contiguity",
    "no match": "SEQ(A a, B b) WHERE a.x > 100 AND b.x < a.x",
    "concept": "SEQ(X a, NOT(B n), C c) WHERE a.x < c.x",
    "overlapping types": "AND(X a, B b)",
}

#: The stream's, which only patterns with X read.
_HIERARCHY = ConceptHierarchy({"X": ["A", "B"]})

#: Kind of plan -> generators whose plans are run: as written, the cheapest, and a random one.
GENERATORS = {"order": ("TRIVIAL", "DP-LD"), "tree": ("DP-B", "QUICKPICK")}

#: Columns of a table of nodes.
NODE_COLUMNS = ("variables", "created", "comparisons", "peak_stored", "mean_stored", "seconds")

#: Columns of the table of an automaton's edges.
EDGE_COLUMNS = ("state", "edge", "tested", "passed", "time_share", "mean_runs", "peak_runs")

_COLUMNS = (
    "pattern", "text", "check", "generator", "plan", "status", "reason", "matches", "seconds",
)  # fmt: skip

_EVENTS = 160


def check_evaluator(
    evaluator: str, *, patterns: Sequence[str] | None = None, seed: int = 0
) -> CheckReport:
    """Run an evaluator along plans of every kind it declares and compare its matches.

    Plans change the cost of finding matches, never the matches. Each construct of the pattern
    language is tried on a small stream with ties in time, as is every capability that the evaluator
    declares, see :data:`CHECKS`: a stream in batches gives the same matches, also if the run is
    saved and restored between them or starts within a stream; defaults of options pass their own
    checks. Undeclared constructs and strategies are refused, not failed.

    Raises EvaluationError if there is no such evaluator; ExperimentError if there is no such
    pattern.

    Parameters
    ----------
    evaluator : str
        A name in ``cep.EVALUATORS``.
    patterns : sequence of str, optional
        Keys of :data:`PATTERNS`; all by default.
    seed : int
        Of the stream and of plans that are drawn.

    Returns
    -------
    CheckReport
        With ``passed``, ``describe()`` and ``table``, a row for each run: ``pattern`` (a key of
        :data:`PATTERNS`, or ``options``), its ``text``, ``check`` (a key of :data:`CHECKS`),
        ``generator`` and ``plan`` (empty without one), ``status``, ``reason``, ``matches`` (the
        correct number) and ``seconds``.

    Examples
    --------
    >>> import cepbench as cep
    >>> cep.check_evaluator("lazy-nfa", patterns=["sequence"]).passed
    True
    """
    chosen = evaluator_for(evaluator)
    wanted = chosen_patterns(patterns, PATTERNS)
    seed = seed_from(seed, ExperimentError)
    stream = check_stream(seed)
    checks = [check for name in wanted for check in _checks(chosen, name, stream, seed)]
    checks += [_option(name, option) for name, option in chosen.options.items()]
    heading = (
        "{name} {verdict} found what all evaluators find, {refused} are not declared, seed {seed}"
    )
    return CheckReport(chosen.name, seed, checked(checks, _COLUMNS), "matches", heading)


def check_stream(seed: int = 0) -> EventStream:
    """Events of types A to D with attributes ``x`` and ``k``, some with equal timestamps.

    A and B are below the concept X.
    """
    rng = np.random.default_rng([seed, _EVENTS])
    return EventStream.from_pandas(
        pd.DataFrame(
            {
                "type": rng.choice(list("ABCD"), _EVENTS, p=[0.4, 0.3, 0.2, 0.1]),
                "ts": np.sort(rng.integers(0, 3 * _EVENTS, _EVENTS)),
                "x": rng.normal(size=_EVENTS).round(2),
                "k": rng.integers(0, 4, _EVENTS),
            }
        ),
        type="type",
        time="ts",
        hierarchy=_HIERARCHY,
    )


def _checks(chosen: Evaluator, name: str, stream: EventStream, seed: int) -> Iterator[Check]:
    """All checks along the first plan of a pattern, and its matches along the other plans."""
    pattern = parse(f"PATTERN {PATTERNS[name]} WITHIN 30 units").with_hierarchy(stream.hierarchy)
    statistics = measure_statistics(pattern, stream, seed=seed)
    # The reference: the trivial plan in another evaluator.
    other = "lazy-nfa" if chosen.name != "lazy-nfa" else "tree"
    written = make_plan(pattern, statistics, "TRIVIAL")
    expected = evaluate(pattern, stream, written, evaluator=other).matches
    plans: list[tuple[str, AnyPlan | None]] = [("", None)] if chosen.without_plan else []
    for kind in chosen.kinds:
        of_kind = [g.name for g in PLAN_GENERATORS.values() if g.kind == kind]
        for generator in GENERATORS.get(kind, of_kind):
            plans.append((generator, make_plan(pattern, statistics, generator, seed=seed)))
    checks = [check for check, (applies, _) in CHECKS.items() if applies(chosen)]
    for number, (generator, plan) in enumerate(plans):
        trial = _Trial(chosen, pattern, stream, plan, expected, seed)
        # For further plans matches suffice: the other checks run the same code.
        for check in checks if number == 0 else checks[:1]:
            row: dict[str, object] = {
                "pattern": name, "text": str(pattern), "check": check, "generator": generator,
                "plan": "" if plan is None else plan.text, "matches": len(expected),
            }  # fmt: skip
            yield row, partial(trial.wrong, check)


@dataclass(frozen=True)
class _Trial:
    """An evaluator, a pattern, a plan, and the expected matches; methods return what is wrong."""

    evaluator: Evaluator
    pattern: Pattern
    stream: EventStream
    plan: AnyPlan | None
    expected: pd.DataFrame
    seed: int

    def wrong(self, check: str) -> str | None:
        """What a check of :data:`CHECKS` finds; refusing what is declared is wrong, too."""
        its, pattern = self.evaluator, self.pattern
        try:
            return CHECKS[check][1](self)
        except UnsupportedPatternError as error:
            if (
                constructs_of(pattern) <= {*its.constructs}
                and pattern.strategy.name in its.strategies
            ):
                return f"{error} (it is declared: leave it out of constructs or strategies)"
            raise

    def whole(self, **asked: Any) -> Result:
        return evaluate(self.pattern, self.stream, self.plan, evaluator=self.evaluator, **asked)

    def matches(self) -> str | None:
        if "matches" not in self.evaluator.outputs:
            return self.count()
        return _difference(self.whole().matches, self.expected)

    def count(self) -> str | None:
        found = self.whole(output="count").metrics.matches
        return _difference_in_number(found, self.expected)

    def latency(self) -> str | None:
        measured = self.whole(output="count", latency=True).latency
        if measured is None:
            return "metrics() has no latency"
        # A match that two branches find is counted for both.
        if measured.count < len(self.expected):
            return f"latencies of {measured.count:,} matches, and there are {len(self.expected):,}"
        return None

    def nodes(self) -> str | None:
        wanted = EDGE_COLUMNS if "automaton" in self.evaluator.kinds else NODE_COLUMNS
        missing = set(wanted) - set(self.whole(node_times=True).nodes)
        return f"the table of nodes lacks {', '.join(sorted(missing))}" if missing else None

    def batches(self, *, restored: bool = False, position: int = 0) -> str | None:
        detector = Detector(
            self.pattern,
            self.plan,
            evaluator=self.evaluator,
            output=next(iter(self.evaluator.outputs)),
            position=position,
        )
        found = []
        for live, its in batches(detector, self.stream, self.seed, restored=restored):
            detector = live
            found.append(its)
        found.append(detector.flush())
        if detector.output == "count":
            return _difference_in_number(sum(found), self.expected)
        return _difference(pd.concat(found), self.expected, position)


#: Check -> whether an evaluator declares it, and the check, which returns what is wrong or None.
CHECKS: dict[str, tuple[Callable[[Evaluator], bool], Callable[[_Trial], str | None]]] = {
    "matches": (lambda evaluator: True, _Trial.matches),
    "count": (lambda evaluator: set(evaluator.outputs) >= {"matches", "count"}, _Trial.count),
    "batches": (lambda evaluator: evaluator.batches, _Trial.batches),
    "start within a stream": (
        lambda evaluator: evaluator.batches,
        lambda trial: trial.batches(position=1_000),
    ),
    "snapshots": (
        lambda evaluator: evaluator.batches and evaluator.snapshots,
        lambda trial: trial.batches(restored=True),
    ),
    "latency": (
        lambda evaluator: evaluator.latency and "count" in evaluator.outputs,
        _Trial.latency,
    ),
    "nodes": (lambda evaluator: evaluator.node_times, _Trial.nodes),
}


def _option(name: str, option: Option) -> Check:
    """Whether the default passes the option's own check, and can be written as JSON."""

    def run() -> None:
        option.check(option.default, name, EvaluationError)
        json.dumps(option.default)

    text = f"{name}={option.default!r}"
    return {"pattern": "options", "text": text, "check": "default", "plan": "", "matches": 0}, run


def _difference_in_number(found: int, expected: pd.DataFrame) -> str | None:
    due = len(expected)
    return None if found == due else f"{found:,} matches are counted, and there are {due:,}"


def _difference(found: pd.DataFrame, expected: pd.DataFrame, position: int = 0) -> str | None:
    """The difference between matches of a stream from ``position`` on and the expected ones."""
    names = list(expected.columns)
    have, want = (
        Counter(_match(names, row, first) for row in frame[names].to_numpy())
        for frame, first in ((found, position), (expected, 0))
    )
    if have == want:
        return None
    lacking, surplus = want - have, have - want
    differences = [
        f"{count.total():,} {what}, such as {_shown(names, next(iter(count)))}"
        for what, count in (
            ("matches are not found", lacking),
            ("are none, or found twice", surplus),
        )
        if count
    ]
    return f"{'; '.join(differences)} (positions in check_stream)"


def _match(names: Sequence[str], row: np.ndarray, first: int) -> tuple[object, ...]:
    """A match with positions counted from ``first``."""
    return tuple(
        None if value is pd.NA
        else value if name == "branch"
        else tuple(position - first for position in value) if isinstance(value, tuple)
        else value - first
        for name, value in zip(names, row, strict=True)
    )  # fmt: skip


def _shown(names: Sequence[str], match: tuple[object, ...]) -> str:
    return ", ".join(
        f"{name} = {value}" for name, value in zip(names, match, strict=True) if value is not None
    )
