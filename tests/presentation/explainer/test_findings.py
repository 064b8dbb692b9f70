"""The sentences about a run, on rows made by hand: which node they name, and with what numbers."""

from __future__ import annotations

from typing import Any

from cepbench.presentation.explainer.explanation import findings


def node(number: int, parent: int, variables: str, estimated: float, measured: float) -> Any:
    error = max(estimated / measured, measured / estimated)
    return {
        "branch": 0, "node": number, "parent": parent, "variables": variables, "q_error": error,
        "estimated": estimated, "measured": measured, "created": 1000, "estimated_created": 1000,
        "seconds": 0.0,
    }  # fmt: skip


def test_the_bound_that_is_named_holds() -> None:
    rows = [node(0, 1, "a", 100.0, 141.0), node(1, -1, "a, b", 100.0, 111.0)]
    (told,) = findings(rows)
    assert told.startswith("No estimate is off by more than a factor of 1.5; the worst is at (a)")


def test_an_estimate_is_off_from_the_lowest_node_of_the_same_direction() -> None:
    rows = [
        node(0, 2, "a", 10.0, 15.0),  # too low, but by little
        node(1, 2, "b", 10.0, 10.0),
        node(2, 4, "a, b", 100.0, 250.0),  # too low
        node(3, 4, "c", 100.0, 20.0),  # further off, but too high
        node(4, -1, "a, b, c", 100.0, 900.0),
    ]
    (told,) = findings(rows)
    assert "worst estimate is at the root (a, b, c), 9 times too low" in told
    assert "The error originates at (a, b) (partial matches: 100 expected, 250 measured)" in told
