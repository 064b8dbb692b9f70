"""Random cases of the fragment that engines share, and the smallest ones on which an engine differs.

Expected is what the evaluator of cepbench finds. A difference is shrunk while it stays one: an event, a
condition or an item less at a time, those of all differences in one call of the engine, as starting one takes
seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from cepbench.errors import CepbenchError
from cepbench.experiments.conformance.adapters import kinds_of
from cepbench.experiments.conformance.cases import Case, alike, written
from cepbench.experiments.conformance.outside import OUTSIDE_ENGINES, OutsideEngine
from cepbench.experiments.conformance.translation import texts_of

_NAMES = "abcd"


@dataclass(frozen=True)
class _Draft:
    """A case in parts that can be left out."""

    #: Variable, type, and NOT, KL or nothing.
    items: tuple[tuple[str, str, str], ...]
    #: Each with its variables.
    conditions: tuple[tuple[str, str], ...]
    clauses: str
    window: int
    rows: tuple[tuple[Any, ...], ...] = field(repr=False)

    @property
    def text(self) -> str:
        """The pattern."""
        listed = ", ".join(f"{op}({t} {n})" if op else f"{t} {n}" for n, t, op in self.items)
        where = " AND ".join(text for _, text in self.conditions)
        return (
            f"PATTERN SEQ({listed}){f' WHERE {where}' if where else ''}{self.clauses} "
            f"WITHIN {self.window} units"
        )

    def case(self, name: str) -> Case | None:
        """The case with what cepbench finds; None if the pattern is none."""
        events = pd.DataFrame(self.rows, columns=["type", "ts", "x"]).astype(
            {"ts": "int64", "x": "float64"}
        )
        events.insert(0, "id", np.arange(len(events)))
        bare = Case(name, "drawn", events, self.text, ())
        try:
            texts = texts_of(bare.pattern, kinds_of(events))
            (found,) = OUTSIDE_ENGINES["cepbench"].answers([bare])
        except CepbenchError:
            return None
        return None if isinstance(found, str) else replace(bare, texts=texts, expected=tuple(found))

    def smaller(self) -> Iterator[_Draft]:
        """Drafts with one part less."""
        for at in range(len(self.rows)):
            yield replace(self, rows=self.rows[:at] + self.rows[at + 1 :])
        for at in range(len(self.conditions)):
            yield replace(self, conditions=self.conditions[:at] + self.conditions[at + 1 :])
        for at, (name, _, _) in enumerate(self.items):
            kept = tuple(its for its in self.conditions if name not in its[0])
            yield replace(self, items=self.items[:at] + self.items[at + 1 :], conditions=kept)
        if self.clauses:
            yield replace(self, clauses="")


def _draw(rng: np.random.Generator) -> _Draft:
    count = int(rng.integers(2, 5))
    items = []
    for place, name in enumerate(_NAMES[:count]):
        inner = 0 < place < count - 1
        operator = rng.choice(["", "", "", "KL", "NOT" if inner else ""])
        items.append((name, str(rng.choice(list("ABC"))), str(operator)))
    conditions = []
    for _ in range(int(rng.integers(0, 3))):
        first, second = rng.choice(count, 2, replace=False)
        one, other = _NAMES[min(first, second)], _NAMES[max(first, second)]
        sign = rng.choice(["<", ">", "<=", "=", "!="])
        text = f"{other}.x {sign} {one}.x" if rng.random() < 0.6 else f"{other}.x {sign} 1"
        conditions.append((one + other if ".x" in text[4:] else other, text))
    clauses = rng.choice(["", "", " ORDER BY arrival", " STRATEGY strict_contiguity"])
    times = np.cumsum(rng.integers(0, 3, int(rng.integers(4, 9))))
    rows = tuple(
        (
            str(rng.choice(list("ABC"))),
            int(ts),
            None if rng.random() < 0.1 else int(rng.integers(4)),
        )
        for ts in times
    )
    window = int(rng.integers(2, 9))
    return _Draft(tuple(items), tuple(dict.fromkeys(conditions)), str(clauses), window, rows)


def differences(engine: OutsideEngine, number: int, seed: int, most: int = 5) -> list[Case]:
    """The smallest cases found on which an engine differs from cepbench.

    Parameters
    ----------
    number : int
        How many random cases to try.
    seed : int
    most : int
        How many differences to shrink.

    Returns
    -------
    list of Case
        Sorted by size, without repetition of a pattern.
    """
    rng = np.random.default_rng(seed)
    drafts = [_draw(rng) for _ in range(number)]
    found = _differing(engine, drafts)[:most]
    shrinking = True
    while shrinking:
        shrinking = False
        tried = [(at, smaller) for at, draft in enumerate(found) for smaller in draft.smaller()]
        still = set(map(id, _differing(engine, [draft for _, draft in tried])))
        for at in range(len(found)):
            better = next((d for which, d in tried if which == at and id(d) in still), None)
            if better is not None:
                found[at], shrinking = better, True
    by_text = {
        draft.text: draft for draft in sorted(found, key=lambda d: (len(d.items), len(d.rows)))
    }
    cases = (draft.case(f"drawn/{seed}-{at}") for at, draft in enumerate(by_text.values()))
    return [case for case in cases if case is not None]


def _differing(engine: OutsideEngine, drafts: Sequence[_Draft]) -> list[_Draft]:
    known = [(d, case) for d in drafts if len(d.items) > 0 and (case := d.case("drawn/case"))]
    if not known:
        return []
    answers = engine.answers([case for _, case in known])
    return [
        draft
        for (draft, case), answer in zip(known, answers, strict=True)
        if not isinstance(answer, str) and alike(answer) != alike(case.expected)
    ]


def as_text(engine: OutsideEngine, case: Case) -> str:
    """A case, what is expected, and what an engine finds."""
    (answer,) = engine.answers([case])
    said = answer if isinstance(answer, str) else ", ".join(f"({written(m)})" for m in answer)
    events = " ".join(
        f"{kind}@{ts}" + ("" if pd.isna(x) else f"/{x:g}")
        for kind, ts, x in case.events[["type", "ts", "x"]].to_numpy()
    )
    expected = ", ".join(f"({written(match)})" for match in case.expected)
    return (
        f"{case.text}\n  on {events}\n  expected  {expected or 'none'}\n"
        f"  {engine.name:<9} {said or 'none'}"
    )
