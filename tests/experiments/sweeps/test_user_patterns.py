"""Patterns that a sweep names one by one: their rows, and mistakes that are told."""

from __future__ import annotations

import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.workload import USER, user_specs
from cepbench.patterns.parse import parse

TEXTS = {
    "rising": "PATTERN SEQ(A a, NOT(B b), C c)\nWHERE a.x < c.x\nWITHIN 5 minutes",
    "either": "PATTERN OR(SEQ(A a, B b), SEQ(A d, B e, C f)) WITHIN 1 hours",
}


def test_a_specification_each() -> None:
    config = SweepConfig.from_dict({"data": "x", "user_patterns": TEXTS})
    specs = user_specs(config.user_patterns, {"A", "B", "C"}, seed=4)
    assert [spec.pattern_id for spec in specs] == ["user-rising", "user-either"]
    # As in the drawn sets: what is negated takes part, and a disjunction has its branches' size.
    assert [spec.size for spec in specs] == [3, 3]
    assert {spec.pattern_set for spec in specs} == {USER} and {spec.seed for spec in specs} == {4}
    for spec, text in zip(specs, TEXTS.values(), strict=True):
        assert spec.pattern == parse(text)
        under = spec.under("consuming").pattern
        assert under.strategy.name == "consuming" and under.structure == parse(text).structure


def test_a_type_that_the_data_has_not_is_told() -> None:
    with pytest.raises(ExperimentError, match=r"'rising'.*'A' \(variable 'a'\); did you mean 'A1'"):
        user_specs(tuple(TEXTS.items()), {"A1", "B", "C"}, seed=0)
