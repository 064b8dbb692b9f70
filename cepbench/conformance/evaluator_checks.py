"""Whether an evaluator of one's own finds what all others find, along every kind of plan."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from cepbench.arguments import seed as seed_from
from cepbench.arguments import shown, texts
from cepbench.errors import ExperimentError, UnsupportedPatternError, did_you_mean
from cepbench.evaluators.evaluate import evaluate
from cepbench.evaluators.protocol import Evaluator
from cepbench.evaluators.registry import evaluator_for
from cepbench.patterns.parse import parse
from cepbench.planners.generate import plan as make_plan
from cepbench.statistics.measure import measure_statistics
from cepbench.streams.event_stream import EventStream
from cepbench.sweeps.cells import ERROR, OK, REFUSED
from cepbench.sweeps.measure import plan_text

#: What is tried, in the pattern language; a construct each, over the stream of :func:`check_stream`.
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
}

#: Whose plans are run, by the kind of plan: as written, the cheapest, and any one.
GENERATORS = {"order": ("TRIVIAL", "DP-LD"), "tree": ("TRIVIAL", "DP-LD", "DP-B", "QUICKPICK")}

_EVENTS = 160


@dataclass(frozen=True)
class EvaluatorReport:
    """What :func:`cepbench.check_evaluator` found.

    Attributes
    ----------
    evaluator : str
    seed : int
    table : DataFrame
        One row a pattern and plan: ``pattern`` (a key of :data:`PATTERNS`), ``text``,
        ``generator``, ``plan``, ``status`` (``ok``, ``refused``, ``error``), ``reason``,
        ``matches`` (that there are) and ``seconds``.
    """

    evaluator: str
    seed: int
    table: pd.DataFrame = field(repr=False)

    def __repr__(self) -> str:
        return f"<{self._heading()}>"

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong, and at least one pattern was run."""
        return bool((self.table["status"] != ERROR).all() and (self.table["status"] == OK).any())

    def describe(self) -> str:
        """All of it as text, a line a pattern."""
        return "\n".join([self._heading(), "", *self._lines()])

    def _repr_html_(self) -> str:
        lines = "".join(f"{html.escape(line)}\n" for line in self._lines())
        return f"<div><p><b>{html.escape(self._heading())}</b></p><pre>{lines}</pre></div>"

    def _heading(self) -> str:
        runs = self.table["status"].value_counts()
        verdict = "passed" if self.passed else "FAILED"
        return (
            f"{self.evaluator} {verdict}: {runs.get(OK, 0)} of {len(self.table)} runs found what "
            f"all evaluators find, {runs.get(REFUSED, 0)} were refused, seed {self.seed}"
        )

    def _lines(self) -> list[str]:
        lines = []
        width = max(map(len, PATTERNS))
        for name, runs in self.table.groupby("pattern", sort=False):
            wrong = runs[runs["status"] == ERROR]
            refused = runs[runs["status"] == REFUSED]
            if len(wrong):
                one = wrong.iloc[0]
                lines.append(f"  FAILED   {name:<{width}}  {one['reason']}")
                lines.append(f"           {'':<{width}}  {one['text']}, along {one['plan']}")
            elif len(refused) == len(runs):
                lines.append(f"  refused  {name:<{width}}  {refused['reason'].iloc[0]}")
            else:
                lines.append(f"  ok       {name:<{width}}  {runs['matches'].iloc[0]} matches")
        return lines


def check_evaluator(
    evaluator: str, *, patterns: Sequence[str] | None = None, seed: int = 0
) -> EvaluatorReport:
    """Run an evaluator along plans of every kind and hold its matches against another one's.

    Plans change what it costs to find the matches, never the matches. Each construct of the
    pattern language is tried on a small stream with ties in time. Patterns that the evaluator
    refuses with :class:`~cepbench.errors.UnsupportedPatternError` are no fault, unless it refuses
    all.

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
    EvaluatorReport
        With ``passed``, ``table`` and ``describe()``.

    Raises
    ------
    EvaluationError
        If there is no such evaluator.
    ExperimentError
        If there is no such pattern.

    Examples
    --------
    >>> import cepbench as cep
    >>> cep.check_evaluator("lazy-nfa", patterns=["sequence"]).passed
    True
    """
    chosen = evaluator_for(evaluator)
    wanted = texts(PATTERNS if patterns is None else patterns, "patterns", ExperimentError)
    seed = seed_from(seed, ExperimentError)
    for name in wanted:
        if name not in PATTERNS:
            raise ExperimentError(
                f"no pattern {shown(name)}; there are {', '.join(PATTERNS)}"
                f"{did_you_mean(name, PATTERNS)}"
            )
    stream = check_stream(seed)
    rows = [row for name in wanted for row in _runs(chosen, name, stream, seed)]
    columns = ["pattern", "text", "generator", "plan", "status", "reason", "matches", "seconds"]
    return EvaluatorReport(chosen.name, seed, pd.DataFrame(rows, columns=columns))


def check_stream(seed: int = 0) -> EventStream:
    """Events of the types A to D with a number ``x`` and a key ``k``, some at the same moment."""
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
    )


def _runs(chosen: Evaluator, name: str, stream: EventStream, seed: int) -> list[dict[str, object]]:
    pattern = parse(f"PATTERN {PATTERNS[name]} WITHIN 30 units")
    statistics = measure_statistics(pattern, stream, seed=seed)
    # Along the plan as written, by one that is not on trial itself.
    other = "lazy-nfa" if chosen.name != "lazy-nfa" else "tree"
    expected = evaluate(
        pattern, stream, make_plan(pattern, statistics, "TRIVIAL"), evaluator=other
    ).matches
    rows = []
    for generator in GENERATORS[next(iter(chosen.kinds))]:
        plan = make_plan(pattern, statistics, generator, seed=seed)
        row: dict[str, object] = {
            "pattern": name,
            "text": str(pattern),
            "generator": generator,
            "plan": plan_text(plan),
            "matches": len(expected),
        }
        rows.append(row)
        try:
            result = evaluate(pattern, stream, plan, evaluator=chosen.name)
            reason = _difference(result.matches, expected)
        except UnsupportedPatternError as error:
            row |= {"status": REFUSED, "reason": str(error)}
        except Exception as error:  # whatever it is, it is what is looked for
            row |= {"status": ERROR, "reason": f"{type(error).__name__}: {error}"}
        else:
            row |= {"status": ERROR if reason else OK, "seconds": result.metrics.seconds}
            row["reason"] = reason
    return rows


def _difference(found: pd.DataFrame, expected: pd.DataFrame) -> str | None:
    """What is wrong with the matches, the first that lacks or is too many; None if nothing is."""
    names = list(expected.columns)
    have, want = (Counter(map(_match, frame[names].to_numpy())) for frame in (found, expected))
    if have == want:
        return None
    lacking, surplus = want - have, have - want
    told = [
        f"{count.total():,} {what}, such as {_shown(names, next(iter(count)))}"
        for what, count in (
            ("matches are not found", lacking),
            ("are none, or found twice", surplus),
        )
        if count
    ]
    return f"{'; '.join(told)} (positions in check_stream)"


def _match(row: np.ndarray) -> tuple[object, ...]:
    return tuple(None if value is pd.NA else value for value in row)


def _shown(names: Sequence[str], match: tuple[object, ...]) -> str:
    return ", ".join(
        f"{name} = {value}" for name, value in zip(names, match, strict=True) if value is not None
    )
