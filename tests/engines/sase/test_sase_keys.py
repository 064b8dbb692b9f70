"""Runs are in partitions by attributes that written equalities tie, as by ``[attribute]``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.patterns.reach import with_shared_keys
from tests.drawn_events import below, drawn_events
from tests.engines.detection.checks import check, check_in_batches
from tests.engines.detection.strategies import Case
from tests.naive.automaton import automaton_matches

ENGINES = ("sase", "sase-basic", "sase-backtrack")


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("text", "is_keyed"),
    [
        ("SEQ(A a, B b, C c) WHERE a.x = b.x AND b.x = c.x", True),
        ("SEQ(A a, KL(B b), C c) WHERE b[i].x = a.x AND c.x = b[i].x", True),
        ("SEQ(A a, KL(B b), C c) WHERE b[i].x = a.x AND c.x = b[i].x STRATEGY next", True),
        ("SEQ(KL(A a), B b) WHERE a.x = b.x", True),
        ("SEQ(A a, NOT(B n), C c) WHERE a.x = c.x AND n.x = c.x", True),
        ("SEQ(A a, NOT(B n), KL(C c)) WHERE a.x = c.x AND a.x = n.x STRATEGY next", True),
        # b is compared when c is there, and a as a whole; what one event of a set has, the others need not.
        ("SEQ(A a, B b, C c) WHERE a.x = c.x AND b.x = c.x STRATEGY next", False),
        ("SEQ(KL(A a), B b) WHERE a.x = b.x STRATEGY next", False),
        ("SEQ(A a, KL(B b), C c) WHERE b[1].x = a.x AND a.x = c.x", False),
        # Events of all keys are forbidden; matches of other keys are left out.
        ("SEQ(A a, NOT(B n), C c) WHERE a.x = c.x", False),
        ("SEQ(A a, B b) WHERE a.x = b.x OUTPUT non_overlap", False),
        ("SEQ(A a, B b, C c) WHERE a.x = b.x AND b.y = c.y", False),
    ],
)
def test_where_equalities_decide_what_is_next(text: str, is_keyed: bool, seeds: Any) -> None:
    """The same matches as without partitions; where there are some, also in each by itself."""
    pattern = cep.parse(f"PATTERN {text} WITHIN 9 units")
    for seed in seeds(1):
        rng = np.random.default_rng(seed)
        events = pd.DataFrame(
            {
                "type": pd.Categorical(rng.choice(list("ABC"), 30), categories=list("ABC")),
                "time": rng.choice([0, 1, 1], 30).cumsum(),
                "x": rng.choice([0.0, 1.0, np.nan], 30, p=[0.45, 0.45, 0.1]),
                "y": rng.integers(0, 2, 30),
            }
        )
        case = Case(pattern, events)
        expected = automaton_matches(pattern, events)
        assert expected
        for name in ENGINES:
            check(case, expected, None, name)
            check_in_batches(case, expected, None, name, [*case.stream.batches(3)], [True] * 10)
        if is_keyed:
            assert expected == {
                (label, tuple(rows[its] if np.isscalar(its) else (*rows[[*its]],) for its in match))
                for key in (0.0, 1.0)
                for rows in [np.flatnonzero(events["x"] == key)]
                for label, match in automaton_matches(
                    pattern, events.iloc[rows].reset_index(drop=True)
                )
            }
    assert ("x" in with_shared_keys(pattern).equivalences) == is_keyed


@pytest.mark.parametrize("evaluator", ENGINES)
@pytest.mark.parametrize(
    ("items", "written", "end"),
    [
        ("A a, B b, C c", "a.k = b.k AND b.k = c.k", ""),
        ("A a, B b, C c", "b.k = c.k AND a.k = c.k", ""),
        ("A a, KL(B b), C c", "b[i].k = a.k AND a.k = c.k", ""),
        ("A a, KL(B b), C c", "b.k = a.k AND b.k = c.k", "STRATEGY next"),
        ("A a, NOT(B n), C c", "a.k = c.k AND n.k = c.k", ""),
    ],
)
def test_runs_read_events_of_their_key_alone(
    evaluator: str, items: str, written: str, end: str
) -> None:
    events = drawn_events(900, "ABC", seed=1, k=below(90))
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    visits = []
    for where in ("[k]", written, f"{written} AND a.k = a.k"):
        text = f"PATTERN SEQ({items}) WHERE {where} {end} WITHIN 300 units"
        # Counted without runs otherwise.
        result = cep.evaluate(text, stream, evaluator=evaluator, output="matches")
        visits.append((result.metrics.matches, result.metrics.work["run_visits"]))
    assert visits == visits[:1] * 3
    assert 0 < visits[0][1] < 10 * len(events)
