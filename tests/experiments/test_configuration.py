"""The configuration of a sweep: round trip, presets, and mistakes that are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.configuration import SweepConfig


def test_round_trip_through_json() -> None:
    for config in (
        SweepConfig.quick("data", seed=3, algorithms=["DP-B"]),
        SweepConfig.full(Path("data"), evaluators=("tree",)),
    ):
        assert SweepConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_full_is_the_setup_of_the_paper() -> None:
    full = SweepConfig.full("data")
    assert (full.sizes, full.patterns, full.window) == ((3, 4, 5, 6, 7), 100, "20 minutes")
    assert full.max_partial_matches is None
    assert SweepConfig.quick("data").max_partial_matches is not None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"data": "x", "repetition": 3}, "unknown key 'repetition'.*did you mean 'repetitions'"),
        ({"data": "x", "generators": []}, "unknown key 'generators'"),
        ({"seed": 1}, "needs 'data'"),
        ({"data": "x", "sizes": "3"}, "must be a list"),
        ({"data": "x", "sizes": [3, 3]}, "names something twice"),
        ({"data": "x", "patterns": 0}, "at least 1"),
        ({"data": "x", "repetitions": 0}, "at least 1"),
    ],
)
def test_mistakes_are_told(values: dict[str, object], message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        SweepConfig.from_dict(values)
