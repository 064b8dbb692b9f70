"""Loops that wait until the plain items of a match are there: the same matches, by fewer runs."""

from __future__ import annotations

import pytest

from cepbench.engines.detection.evaluate import evaluate
from cepbench.errors import PartialMatchLimitError, UnsupportedPatternError
from tests.engines.detection.strategies import events_of, stream_of

POSTPONE = {"postpone": True}


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
