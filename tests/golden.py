"""Writes ``golden.json``: the metrics of every engine and aggregation method on fixed patterns.

``test_golden.py`` holds them to it. After a change of work that was wanted, such as fewer comparisons,
``python -m tests.golden`` shows what has changed and writes the file anew; ``--dry`` only shows it. Matches
and values are known from the naive twin, so a change of ``matches`` or ``rows`` alone is a bug.

No metric is a time. Of floats nine digits count, since sums in another order differ.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import cepbench as cep
from cepbench.errors import PatternError, UnsupportedTaskError

PATH = Path(__file__).with_name("golden.json")

#: Metrics by name.
Metrics = dict[str, float | str]

#: Name of a stream → a text for each pattern: all constructs, strategies, outputs and windows.
PATTERNS: dict[str, tuple[str, ...]] = {
    # 120 events of four types, of which two in three share their time with another one.
    "ties": (
        "SEQ(A a, B b) WITHIN 6 units",
        "SEQ(A a, B b) WITHIN < 6 units",
        "SEQ(A a, B b) ORDER BY arrival WITHIN 6 units",
        "AND(A a, B b) WITHIN 0 units",
        "SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 9 units",
        "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN < 9 units",
        "SEQ(A a, B b, C c) WHERE [s] WITHIN 12 units",
        "SEQ(A a, A b, A c) WHERE a.y = c.y WITHIN 8 units",
        "SEQ(A a, ANY b, D d) WHERE a.x + 1 > 2 * d.x WITHIN 6 units",
        "SEQ(A a, B b, C c) WHERE a.x < b.x OR a.y = b.y ORDER BY arrival WITHIN 7 units",
        "AND(A a, B b) WHERE a.s = b.s WITHIN 5 units",
        "AND(A a, B b, C c) WHERE a.x < b.x AND b.y <= c.y WITHIN 4 units",
        "AND(A a, A b, D d) WHERE a.x < b.x WITHIN 5 units",
        "SEQ(A a, AND(B b, C c), D d) WHERE b.x < c.x WITHIN 9 units",
        "AND(SEQ(A a, B b), SEQ(C c, D d)) WHERE a.x < d.x WITHIN 7 units",
        "SEQ(A a, NOT(B n), C c) WHERE n.x > a.x WITHIN 9 units",
        "SEQ(NOT(B n), A a, C c) WHERE a.x < c.x WITHIN 7 units",
        "SEQ(A a, C c, NOT(B n)) WHERE n.x < c.x WITHIN 7 units",
        "AND(A a, C c, NOT(B n)) WHERE n.y = a.y WITHIN 5 units",
        "SEQ(A a, NOT(B n), NOT(D m), C c) WHERE n.y < a.y AND m.x > c.x WITHIN 9 units",
        "SEQ(A a, KL(B b), C c) WITHIN 6 units",
        "SEQ(A a, KL(B b), C c) WHERE b[i].x > b[i-1].x WITHIN 9 units",
        "SEQ(KL(A a), C c) WHERE sum(a.y) > c.y WITHIN 5 units",
        "AND(KL(A a), C c) WHERE a.x < c.x WITHIN 3 units",
        "SEQ(A a, KL(B b), NOT(D n), C c) WHERE b.x >= a.x WITHIN 7 units",
        "SEQ(A a, GROUP(B b, +), C c) WHERE b.x > a.x WITHIN 8 units",
        "SEQ(A a, GROUP(B b, *), C c) WHERE count(b.x) < 3 WITHIN 8 units",
        "SEQ(A a, GROUP(B b, 2), C c) WHERE b[1].x < b[last].x WITHIN 9 units",
        "SEQ(A a, NOT(D n), GROUP(B b, +), C c) WITHIN 8 units",
        "OR(SEQ(A a, B b), SEQ(C c, D d)) WITHIN 5 units",
        "OR(SEQ(A a, B b, C c), AND(A a, D d)) WHERE a.x < 1 WITHIN 6 units",
        "SEQ(A a, OR(B b, C c), D d) WHERE a.y < d.y WITHIN 6 units",
        "OR(SEQ(A a, KL(B b)), SEQ(C c, NOT(B n), D d)) WITHIN 5 units",
        "SEQ(A a, B b, C c) STRATEGY consuming WITHIN 9 units",
        "SEQ(A a, KL(B b), C c) STRATEGY consuming WITHIN 5 units",
        "OR(SEQ(A a, B b), AND(B c, D d)) STRATEGY consuming WITHIN 6 units",
        "SEQ(A a, B b, NOT(C n)) STRATEGY consuming WITHIN 4 units",
        "SEQ(ANY a, B b) STRATEGY strict_contiguity WITHIN 3 units",
        "SEQ(A a, KL(B b)) STRATEGY partition_contiguity(s) WITHIN 9 units",
        "SEQ(A a, B b, C c) STRATEGY next WITHIN 9 units",
        "SEQ(A a, KL(B b), C c) WHERE b[i].x > b[i-1].x STRATEGY next WITHIN 12 units",
        "SEQ(A a, KL(B b), NOT(D n), C c) WHERE [s] STRATEGY next WITHIN 12 units",
        "OR(SEQ(A a, B b), SEQ(C c, KL(D d))) STRATEGY next WITHIN 5 units",
        "SEQ(A a, B b, C c) WHERE a.x < b.x OUTPUT non_overlap WITHIN 9 units",
        "SEQ(A a, KL(B b), C c) WHERE [s] STRATEGY next OUTPUT non_overlap WITHIN 9 units",
    ),
    # The same types under a concept hierarchy: E over A and B.
    "concepts": (
        "SEQ(E e, C c) WHERE e.x < c.x WITHIN 4 units",
        "AND(E e, A a) WITHIN 3 units",
        "SEQ(C c, NOT(E n), D d) WITHIN 8 units",
    ),
    # 400 events whose times all differ, few of them of type A.
    "rare": (
        "SEQ(C c, B b, A a) WHERE c.x < a.x WITHIN 12 units",
        "AND(A a, C c, D d) WHERE c.y = d.y AND [s] WITHIN 9 units",
    ),
}

#: For the aggregation methods; one window is longer than the stream, for ``dpc``.
AGGREGATES: dict[str, tuple[str, ...]] = {
    "ties": (
        "SEQ(A a, B b) AGG COUNT WITHIN 6 units",
        "SEQ(A a, B b, C c) AGG COUNT, SUM(b.y), AVG(a.x), MIN(c.x), MAX(c.y) WITHIN < 9 units",
        "SEQ(A a, B b, C c) WHERE [s] GROUP BY s AGG COUNT WITHIN 12 units",
        "SEQ(A a, B b, C c) WHERE a.x < b.x AGG COUNT, SUM(c.x) WITHIN 9 units",
        "SEQ(A a, NOT(D n), C c) AGG COUNT WITHIN 9 units",
        "SEQ(A a, KL(B b), C c) AGG COUNT, SUM(b.y) WITHIN 9 units",
        "SEQ(A a, KL(B b)) WHERE b[i].x > b[i-1].x ORDER BY arrival AGG COUNT WITHIN 9 units",
        "OR(SEQ(A a, B b), SEQ(C c, D d)) AGG COUNT WITHIN 5 units",
    ),
    "rare": (
        "SEQ(B b, C c, A a) AGG COUNT, MAX(b.x) WITHIN 999 units",
        "SEQ(C c, KL(B b), A a) AGG COUNT WITHIN 50 units",
    ),
}

#: Events of a push.
PUSHED = 7

#: What times are named by, and the numbers that are known before anything runs.
_TIMES = ("second", "latency")
_GIVEN = ("events",)


@cache
def stream(name: str) -> cep.EventStream:
    """One of the fixed streams; ``x`` and ``s`` have missing values."""
    is_rare = name == "rare"
    count = 400 if is_rare else 120
    rng = np.random.default_rng(32 if is_rare else 23)
    kinds = rng.choice(4, count, p=[0.04, 0.32, 0.32, 0.32] if is_rare else None)
    steps = np.ones(count, np.int64) if is_rare else rng.choice([0, 0, 1, 1, 2], count)
    table = pd.DataFrame(
        {
            "type": pd.Categorical.from_codes(kinds, list("ABCD")),
            "time": np.cumsum(steps),
            "x": rng.choice([0.0, 0.5, 1.0, 1.5, 2.0, np.nan], count),
            "y": rng.integers(-1, 4, count),
            "s": pd.Categorical.from_codes(rng.integers(-1, 3, count), list("pqr")),
        }
    )
    made = cep.EventStream.from_pandas(table, type="type", time="time")
    return (
        made.with_hierarchy(cep.ConceptHierarchy({"E": ["A", "B"]})) if name == "concepts" else made
    )


def plan_of(pattern: cep.Pattern, evaluator: str) -> Any:
    """A plan that no planner chose, so that only the engine can change the metrics.

    An order, the last item first; of engines of trees a tree that is balanced.
    """
    entry = cep.EVALUATORS[evaluator]
    if entry.without_plan:
        return None
    plans = [
        cep.TreePlan(_balanced(branch.planned_names))
        if "tree" in entry.kinds
        else cep.OrderPlan([branch.planned_names[-1], *branch.planned_names[:-1]])
        for branch in pattern.branches()
    ]
    return plans[0] if len(plans) == 1 else cep.UnionPlan(tuple(plans))


def _balanced(names: tuple[str, ...]) -> Any:
    middle = len(names) // 2
    return names[0] if len(names) == 1 else (_balanced(names[:middle]), _balanced(names[middle:]))


def metrics_of(where: str, text: str) -> Iterator[tuple[str, Metrics]]:
    """Metrics of each engine that runs the pattern, of the whole stream and live.

    Live ones are those that differ: what is stored, looked at or evicted may depend on the pushes. An engine
    that does not run the pattern has none.
    """
    events = stream(where)
    pattern = cep.parse(f"PATTERN {text}").with_hierarchy(events.hierarchy)
    for entry in [*cep.EVALUATORS.values()]:
        if not entry.is_builtin:
            continue
        name = entry.name
        plan = plan_of(pattern, name)
        try:
            result = cep.evaluate(pattern, events, plan, evaluator=name)
        except (PatternError, UnsupportedTaskError):
            continue
        whole = _counted(result.metrics.to_dict()) | {"matches": len(result.matches)}
        yield name, whole
        detector = cep.Detector(pattern, plan, evaluator=name)
        found = sum(len(detector.push(batch)) for batch in events.batches(PUSHED))
        found += len(detector.flush())
        live = _counted(detector.metrics().to_dict()) | {"matches": found}
        yield f"{name}, live", _differing(live, whole)


def counters_of(where: str, text: str) -> Iterator[tuple[str, Metrics]]:
    """The same of each aggregation method, with the number of its rows."""
    pattern, events = cep.parse(f"PATTERN {text}"), stream(where)
    for entry in [*cep.AGGREGATORS.values()]:
        if not entry.is_builtin:
            continue
        name = entry.name
        try:
            result = cep.aggregate(pattern, events, name)
        except (PatternError, cep.errors.EvaluationError):
            continue
        whole = {"rows": len(result.rows), **_counted(result.metrics.to_dict())}
        yield name, whole
        aggregator = cep.Aggregator(pattern, name)
        rows = sum(len(aggregator.push(batch)) for batch in events.batches(PUSHED))
        live = {"rows": rows, **_counted(aggregator.metrics.to_dict())}
        yield f"{name}, live", _differing(live, whole)


def _counted(metrics: Mapping[str, float]) -> Metrics:
    """The metrics that an engine has, without times."""
    return {
        name: value if isinstance(value, int) else float(f"{value:.9g}")
        for name, value in metrics.items()
        if not (any(t in name for t in _TIMES) or name in _GIVEN or math.isnan(value))
    }


def _differing(live: Metrics, whole: Metrics) -> Metrics:
    return {name: value for name, value in live.items() if value != whole.get(name)}


#: Section of the file → its patterns, and who measures them.
SECTIONS = {"engines": (PATTERNS, metrics_of), "methods": (AGGREGATES, counters_of)}


def measured(section: str, where: str, text: str) -> dict[str, Metrics]:
    """Metrics of a pattern on a stream by engine or method."""
    return {name: metrics for name, metrics in SECTIONS[section][1](where, text) if metrics}


def cases() -> list[tuple[str, str, str]]:
    """Section, stream and text of each pattern."""
    return [
        (section, where, text)
        for section, (patterns, _) in SECTIONS.items()
        for where, texts in patterns.items()
        for text in texts
    ]


def key_of(where: str, text: str) -> str:
    """Under which name a pattern stands in the file."""
    return f"{where}: {text}"


def recorded(path: Path = PATH) -> dict[str, dict[str, dict[str, Metrics]]]:
    """Section → pattern → engine or method → metrics; empty without a file."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {section: found.get(section, {}) for section in SECTIONS}


def differences(before: Mapping[str, Metrics], now: Mapping[str, Metrics]) -> list[str]:
    """A line for each metric of a pattern that is another one, there no more, or new."""
    lines = []
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name, {}), now.get(name, {})
        lines += [
            f"  {name}: {metric} {_shown(old.get(metric))} -> {_shown(new.get(metric))}"
            for metric in dict.fromkeys([*old, *new])
            if old.get(metric) != new.get(metric)
        ]
    return lines


def _shown(value: float | str | None) -> str:
    return "–" if value is None else f"{value:,}"


def text_of(table: Mapping[str, Mapping[str, Mapping[str, Metrics]]]) -> str:
    """The file: sorted by pattern and engine, one line for each, so that a diff shows what changed."""
    sections = []
    for section, patterns in table.items():
        blocks = []
        for key, engines in sorted(patterns.items()):
            lines = [
                f"   {json.dumps(name)}: {json.dumps(its)}" for name, its in sorted(engines.items())
            ]
            blocks.append(f"  {json.dumps(key)}: {{\n" + ",\n".join(lines) + "\n  }")
        sections.append(f" {json.dumps(section)}: {{\n" + ",\n".join(blocks) + "\n }")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def main() -> None:
    """Show what has changed, and write it."""
    parser = argparse.ArgumentParser(description="Golden metrics: show what changed, and write it.")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    is_dry = parser.parse_args().dry
    before = recorded()
    now: dict[str, dict[str, dict[str, Metrics]]] = {section: {} for section in SECTIONS}
    for section, where, text in cases():
        key = key_of(where, text)
        now[section][key] = measured(section, where, text)
        if lines := differences(before[section].get(key, {}), now[section][key]):
            print("\n".join([f"{section}, {key}", *lines]))
    for section, patterns in before.items():
        for key in patterns.keys() - now[section].keys():
            print(f"{section}, {key}\n  no longer measured")
    if not is_dry:
        PATH.write_text(text_of(now), encoding="utf-8")


if __name__ == "__main__":
    main()
