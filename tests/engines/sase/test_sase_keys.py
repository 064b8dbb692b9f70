"""Runs are in partitions by attributes that written equalities tie, as by ``[attribute]``."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.reach import with_shared_keys
from tests.budgets import examples
from tests.engines.detection.checks import check, check_in_batches
from tests.engines.detection.strategies import Case, batches_of
from tests.engines.detection.test_implied_equalities import OTHERS
from tests.naive.automaton import automaton_matches

ENGINES = ("sase", "sase-basic", "sase-backtrack")


@st.composite
def keyed_frames(draw: st.DrawFn) -> pd.DataFrame:
    """Events of two keys, few of which are missing, and of few types."""
    number, text = st.sampled_from([0.0, 0.0, 1.0, 1.0, np.nan]), st.sampled_from("ppqq")
    row = st.tuples(st.sampled_from("AABBC"), st.sampled_from([0, 1, 1, 1]), number, number, text)
    size = draw(st.sampled_from([5, 9, 9, 12]))
    events = draw(st.lists(row, min_size=size, max_size=size))
    found = pd.DataFrame(events, columns=["type", "time", "x", "y", "s"])
    found["type"] = pd.Categorical(found["type"], categories=list("ABCD"))
    return found.assign(time=found["time"].astype(np.int64).cumsum())


@st.composite
def tied_cases(draw: st.DrawFn) -> Case:
    """Items that equalities of one attribute tie, or nearly so; NOT tied to a positive item, or to none."""
    names = "abcd"[: draw(st.sampled_from([2, 3, 3, 4]))]
    items = [
        f"KL({kind} {name})" if draw(st.integers(0, 3)) == 0 else f"{kind} {name}"
        for name in names
        for kind in draw(st.sampled_from("AABB"))
    ]
    key = draw(st.sampled_from("xs"))
    tied = [
        (name, draw(st.sampled_from(names[:place]))) for place, name in enumerate(names) if place
    ]
    if draw(st.booleans()):  # in another order, which may leave one out
        tied = draw(st.lists(st.sampled_from([*itertools.combinations(names, 2)]), min_size=1))
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), f"NOT({draw(st.sampled_from('BC'))} n)")
        tied += [("n", draw(st.sampled_from(names)))] * draw(st.sampled_from([0, 1, 1]))
    written = [
        f"{one}.{key} = {other}.{key}" for one, other in map(draw, map(st.permutations, tied))
    ]
    if draw(st.integers(0, 3)) == 0:
        pair = draw(st.sampled_from([*itertools.permutations(names, 2)]))
        written.append(draw(st.sampled_from(OTHERS)).format(*pair))
    text = (
        f"PATTERN SEQ({', '.join(items)}) WHERE {' AND '.join(written)}"
        f" {draw(st.sampled_from(['', 'STRATEGY next']))}"
        f" {draw(st.sampled_from(['', '', '', 'OUTPUT non_overlap']))} WITHIN 12 units"
    )
    try:
        return Case(cep.parse(text), draw(keyed_frames()))
    except cep.CepbenchError:  # such as a number compared with a text
        assume(False)
        raise


@pytest.mark.kernel
@given(data=st.data())
@examples(20)
def test_written_equalities_change_no_match(data: st.DataObject) -> None:
    case = data.draw(tied_cases())
    try:
        cep.automaton(case.pattern)
    except UnsupportedPatternError:
        assume(False)
    expected = automaton_matches(case.pattern, case.events)
    batches = data.draw(batches_of(case.stream))
    restored = [data.draw(st.booleans()) for _ in batches]
    for name in ENGINES:
        check(case, expected, None, name)
        check_in_batches(case, expected, None, name, batches, restored)


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
    rng = np.random.default_rng(1)
    events = pd.DataFrame(
        {
            "type": rng.choice(list("ABC"), 900),
            "time": np.arange(900),
            "k": rng.integers(0, 90, 900),
        }
    )
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    visits = []
    for where in ("[k]", written, f"{written} AND a.k = a.k"):
        text = f"PATTERN SEQ({items}) WHERE {where} {end} WITHIN 300 units"
        # Counted without runs otherwise.
        result = cep.evaluate(text, stream, evaluator=evaluator, output="matches")
        visits.append((result.metrics.matches, result.metrics.work["run_visits"]))
    assert visits == visits[:1] * 3
    assert 0 < visits[0][1] < 10 * len(events)
