"""Loops that wait until the plain items of a match are there: the same matches, by fewer runs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.runs.pieces import pieces_of
from cepbench.errors import PartialMatchLimitError, UnsupportedPatternError
from cepbench.patterns.parse import parse
from tests.budgets import INTERPRETED
from tests.engines.detection.checks import check, check_in_batches, found_in
from tests.engines.detection.strategies import Case, events_of, few_values, stream_of
from tests.naive.automaton import automaton_matches

STRUCTURES = (
    "SEQ(A a, KL(B b), C c)",
    "SEQ(A a, KL(B b), NOT(A n), C c)",
    "SEQ(A a, KL(B b), KL(B d), C c)",
    "SEQ(A a, KL(B b), A d, C c)",
    "SEQ(NOT(C n), A a, KL(B b), C c, NOT(B m))",
    "OR(SEQ(A a, KL(B b), C c), SEQ(C d, KL(ANY e), A f))",
    "SEQ(A a, C c)",
)
CONDITIONS = (
    "[s]", "a.x = c.x", "b[i].x >= b[i-1].x", "b[i].x >= avg(b[..i-1].x)", "b.x >= a.x", "sum(b.x) > c.x"
)  # fmt: skip
POSTPONE = {"postpone": True}


def case_of(rng: np.random.Generator) -> Case:
    structure = rng.choice(STRUCTURES)
    chosen = [
        condition
        for condition in rng.choice(CONDITIONS, rng.integers(3), replace=False)
        if "(B b)" in structure or "b" not in condition
    ]
    where = f"WHERE {' AND '.join(chosen)} " if chosen else ""
    end = rng.choice(["", "", "OUTPUT non_overlap "])
    size = rng.integers(8, 14)
    times = np.cumsum(rng.integers(3, size=size))
    window = rng.choice([9, 5, 3])
    pattern = parse(f"PATTERN {structure} {where}{end}WITHIN {window} units")
    return Case(pattern, few_values(rng, times, "ABBC"))


@pytest.mark.kernel
def test_the_matches_of_the_naive_automaton(seeds) -> None:
    """Counted, listed or compressed, in batches, restored after any of them."""
    matched = 0
    for seed in seeds(25):
        rng = np.random.default_rng(seed)
        case = case_of(rng)
        expected = automaton_matches(case.pattern, case.events)
        if not expected and seed % 4:
            continue
        matched += bool(expected)
        events = int(rng.choice([3, 1000]))
        cuts = sorted(rng.integers(len(case.stream) + 1, size=rng.integers(6)).tolist())
        batches = [case.stream[i:j] for i, j in pairwise([0, *cuts, len(case.stream)])]
        restored = rng.choice([True, False], len(batches)).tolist()
        with pieces_of(events=events):
            check(case, expected, None, "sase", POSTPONE)
            check_in_batches(case, expected, None, "sase", batches, restored, POSTPONE)
            result = evaluate(
                case.pattern, case.stream, evaluator="sase", output="compressed", options=POSTPONE
            )
        assert result.compressed.count() == len(expected)
        assert set(found_in(case.pattern, result.matches)) == expected
    assert matched > 6 or INTERPRETED  # by so few seeds


def test_loops_wait_for_the_last_item() -> None:
    """Without C, there are as many runs as sets of B."""
    many = "A@0 " + " ".join(f"B@{k}" for k in range(1, 30))
    events = events_of(f"{many} A@100 B@101 B@102 C@103").assign(x=lambda f: 2.0 ** f["time"])
    pattern = "PATTERN SEQ(A a, KL(B b), C c) WHERE b[i].x > sum(b[..i-1].x) WITHIN 50 units"
    stream = stream_of(events)
    postponed = evaluate(
        pattern, stream, evaluator="sase", options=POSTPONE, partial_match_limit=1000
    )
    assert len(postponed.matches) == 3
    with pytest.raises(PartialMatchLimitError, match="runs of the automaton"):
        evaluate(pattern, stream, evaluator="sase", partial_match_limit=1000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SEQ(A a, KL(B b), C c) STRATEGY next", "STRATEGY next a run takes what comes next"),
        ("SEQ(A a, KL(B b))", "no item after KL"),
        ("SEQ(KL(A a), B b)", "no item before KL"),
    ],
)
def test_what_cannot_wait(text: str, message: str) -> None:
    events = stream_of(events_of("A@1 B@2 C@3"))
    with pytest.raises(UnsupportedPatternError, match=message):
        evaluate(f"PATTERN {text} WITHIN 9 units", events, evaluator="sase", options=POSTPONE)
