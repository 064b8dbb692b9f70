"""Matches that two-step would have to keep, on short streams."""

from __future__ import annotations

import pytest

from cepbench.experiments.studies.qi2014.memory import kept_matches, memory_says, out_of_memory
from cepbench.experiments.studies.qi2014.printed import MEMORY
from cepbench.experiments.studies.runs import figure_runs
from cepbench.presentation.reporting.verdicts import ledger


def test_a_seq_counts_the_matches_that_two_step_keeps() -> None:
    found = kept_matches("quick", lengths=(2, 3), rates=(10, 100), windows=(1000,))
    assert len(found) == 2 * 2 * 5 and set(found["series"]) == {"two-step, 1000 ms"}
    assert (found["kept_bytes"] == 4 * found["size"] * found["kept_matches"]).all()
    # The most at a time are more than their mean, of k^L / L! matches, and few times as many.
    for (size, active), part in found.groupby(["size", "active"]):
        mean = active**size / (2 if size == 2 else 6)
        assert mean < part["kept_matches"].median() < 5 * mean


def test_memory_is_filled_at_a_rate() -> None:
    kept = kept_matches("quick", lengths=(5, 6), rates=(40, 100, 300))
    full = out_of_memory(kept)
    medians = full.groupby("size")["active"].median()
    # Of the mean of matches; the most at a time reach it earlier.
    exact = {n: (MEMORY / (4 * n) * factorial) ** (1 / n) for n, factorial in ((5, 120), (6, 720))}
    for length, expected in exact.items():
        assert 0.7 * expected < medians[length] < expected
    assert f"from {medians[6]:.3g} active" in memory_says(full)
    results = {"figure_14": figure_runs(kept, "size", "series")}
    judged = ledger("qi2014", results).set_index(["id", "regime"]).sort_index()["verdict"]
    assert judged["out-of-memory", "40 per second"].item() == "does not hold"
    assert judged["out-of-memory", "100 per second"].item() == "holds"
    reached = ledger("qi2014", {"figure_14": full}).set_index(["id", "regime"]).sort_index()
    one = reached.loc[("out-of-memory-from", "all rates")].iloc[0]
    assert one["value"] == pytest.approx(medians[6]) and one["verdict"] == "holds"
