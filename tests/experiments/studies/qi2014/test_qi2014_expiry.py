"""Methods in windows that are full, on a few events."""

from __future__ import annotations

import pytest

from cepbench.engines.aggregation.protocol import Row
from cepbench.engines.aggregation.registry import aggregator
from cepbench.engines.aggregation.two_step import TwoStepRun
from cepbench.errors import EvaluationError
from cepbench.experiments.studies.qi2014.expiry import EVENTS, expected_seconds, expiry_runs, growth
from cepbench.experiments.studies.runs import figure_runs
from cepbench.streams.event_stream import EventStream


def test_methods_take_turns_on_full_windows() -> None:
    runs = expiry_runs("quick", lengths=(3,), active=(10, 100), repetitions=2)
    assert set(runs["series"]) == {"two-step", "a-seq", "window-product"}
    cells = runs.groupby(["active", "repetition"])
    assert (cells["digits"].nunique() == 1).all()
    counted = runs[runs["series"] == "a-seq"].groupby("active")["updates"].mean()
    # An event of each of three tickers adds to the counters of about as many STARTs.
    assert counted[10] == pytest.approx(2 / 3 * 10, rel=0.3)
    assert counted[100] == pytest.approx(2 / 3 * 100, rel=0.3)
    assert (runs["seconds"] > 0).all()
    assert runs["seconds_per_slide"].to_numpy() == pytest.approx(runs["seconds"] / EVENTS)
    text = growth(figure_runs(runs, "active", "series"))
    assert "a-seq takes at most" in text and "(length 3)" in text
    assert "two-step" not in text  # it ran with ten active events only


def test_methods_that_would_take_too_long_are_left_out() -> None:
    assert expected_seconds("two-step", 3, 100, 10_000) > 100 * expected_seconds(
        "window-product", 3, 100, 10_000
    )
    assert expected_seconds("a-seq", 3, 10_000, 10) > expected_seconds("a-seq", 3, 10, 10)
    assert expiry_runs("quick", lengths=(3,), active=(10,), repetitions=1, longest=0.0).empty


class OneMore(TwoStepRun):
    """A method that counts one match too many."""

    def push(self, batch: EventStream) -> list[Row]:
        return [row._replace(values=(row.values[0] + 1,)) for row in super().push(batch)]


def test_methods_that_differ_are_an_error() -> None:
    aggregator("one-more")(OneMore)
    with pytest.raises(EvaluationError, match="differ at length 3 with 10 active events"):
        expiry_runs(
            "quick", lengths=(3,), active=(10,), repetitions=1, methods=("a-seq", "one-more")
        )
