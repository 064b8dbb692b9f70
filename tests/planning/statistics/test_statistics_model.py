"""Statistics given by hand: what they accept, what they answer, how they are shown and stored."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import StatisticsError
from cepbench.planning.statistics.model import Statistics


def test_rates_are_per_second_and_cardinalities_per_window() -> None:
    assert Statistics(rates={"a": 0.5}).cardinality("a", 1200) == 600
    assert Statistics(cardinalities={"a": 12}).cardinality("a", 1200) == 12
    assert Statistics(rates={"a": 0, "b": 2}).names == ("a", "b")


def test_a_pair_has_one_selectivity_whatever_its_order() -> None:
    stats = Statistics(rates={"b": 1, "a": 2}, selectivities={("b", "a"): 0.25, ("a", "a"): 0.5})
    assert stats.selectivity("a", "b") == stats.selectivity("b", "a") == 0.25
    assert stats.selectivity("a", "a") == 0.5
    assert stats.selectivity("b", "b") == 1.0
    assert stats.selectivities == {("a", "b"): 0.25, ("a", "a"): 0.5}
    same = Statistics(
        rates={"b": 1, "a": 2},
        selectivities={("a", "b"): 0.25, ("b", "a"): 0.25, ("a", "a"): 0.5},
    )
    assert same == stats


def test_what_is_given_is_copied() -> None:
    rates = {"a": 1.0}
    stats = Statistics(rates=rates)
    rates["a"] = 5.0
    assert stats.cardinality("a", 1) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one of cardinalities= .* rates="),
        ({"rates": {"a": 1}, "cardinalities": {"a": 1}}, "exactly one"),
        ({"rates": [("a", 1)]}, "rates is a mapping"),
        ({"cardinalities": "a"}, "cardinalities is a mapping"),
        ({"rates": {1: 1.0}}, "rates has a key 1"),
        ({"rates": {"a": -1}}, r"rates\['a'\] must be at least 0, not -1"),
        ({"rates": {"a": math.nan}}, "must be finite"),
        ({"rates": {"a": math.inf}}, "must be finite"),
        ({"rates": {"a": None}}, r"rates\['a'\] must be a number, not None"),
        ({"rates": {"a": "many"}}, "must be a number, not 'many'"),
        ({"rates": {"a": 10**400}}, r"must be finite and fit a float, not a number of 1329 bits"),
        ({"rates": {"a": True}}, "must be a number, not True"),
        ({"rates": {"a": "3"}}, "must be a number, not '3'"),
        ({"rates": {"a": np.bool_(True)}}, "must be a number"),
        ({"rates": {"a": 3 + 0j}}, "must be a number"),
        (
            {"rates": {"price": 1}, "selectivities": {("prise", "price"): 1}},
            "did you mean 'price'",
        ),
        ({"rates": {"a": 1}, "selectivities": None}, "selectivities is a mapping"),
        ({"rates": {"a": 1}, "selectivities": {"a": 0.1}}, r'pairs of names such as \("a", "b"\)'),
        ({"rates": {"a": 1}, "selectivities": {("a",): 0.1}}, "pairs of names"),
        ({"rates": {"a": 1}, "selectivities": {("a", 1): 0.1}}, "pairs of names"),
        ({"rates": {"a": 1}, "selectivities": {("a", "z"): 0.1}}, "mentions 'z', .* is one for a"),
        ({"rates": {}, "selectivities": {("a", "z"): 0.1}}, "there is one for no variable"),
        ({"rates": {"a": 1}, "selectivities": {("a", "a"): 1.5}}, "a probability is at most 1"),
        ({"rates": {"a": 1}, "selectivities": {("a", "a"): -0.5}}, "at least 0"),
        (
            {"rates": {"a": 1, "b": 1}, "selectivities": {("a", "b"): 0.1, ("b", "a"): 0.2}},
            r"gives 0\.1 and 0\.2 for the pair \('a', 'b'\)",
        ),
        ({"rates": {"a": 1}, "standard_errors": {"z": 0.1}}, "standard_errors mentions 'z'"),
        ({"rates": {"a": 1}, "standard_errors": {("a", "z"): 0.1}}, "standard_errors mentions 'z'"),
        ({"rates": {"a": 1}, "standard_errors": {"a": -1}}, "at least 0"),
        ({"rates": {"a": 1}, "standard_errors": {5: 1}}, "pairs of names"),
    ],
)
def test_statistics_that_make_no_sense(arguments, message) -> None:
    with pytest.raises(StatisticsError, match=message):
        Statistics(**arguments)


def test_a_question_without_an_answer() -> None:
    with pytest.raises(StatisticsError, match=r"for variable 'z', only for a, b"):
        Statistics(rates={"a": 1, "b": 1}).cardinality("z", 1)
    with pytest.raises(StatisticsError, match="only for no variable"):
        Statistics(rates={}).cardinality("z", 1)
    with pytest.raises(StatisticsError, match=r"rates\['a'\] = 1e\+308 in a window of 60"):
        Statistics(rates={"a": 1e308}).cardinality("a", 60)


SHOWN = Statistics(
    cardinalities={"a": 12, "b": 0.5},
    selectivities={("b", "a"): 0.25, ("a", "a"): 0.5},
    standard_errors={"a": 0.123, ("b", "a"): 0.01},
)


def test_describe() -> None:
    assert SHOWN.describe().splitlines() == [
        "events per window  a: 12 ± 0.12",
        "events per window  b: 0.5",
        "selectivity        a, b: 0.25 ± 0.01",
        "selectivity        a: 0.5",
    ]
    assert Statistics(rates={"a": 2}).describe() == "events per second  a: 2"


def test_a_notebook_shows_a_table_and_hostile_names_as_text() -> None:
    rows = ET.fromstring(SHOWN._repr_html_()).findall("tr")
    assert [[cell.text for cell in row] for row in rows[1:]] == [
        ["events per window", "a", "12", "± 0.12"],
        ["events per window", "b", "0.5", None],
        ["selectivity", "a, b", "0.25", "± 0.01"],
        ["selectivity", "a", "0.5", None],
    ]
    name = "<script>alert(1)</script>"
    shown = Statistics(rates={name: 1}, selectivities={(name, name): 0.5})._repr_html_()
    assert "<script" not in shown and name in "".join(ET.fromstring(shown).itertext())


numbers = st.floats(0, 1e300)
names = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=5, unique=True)


@given(st.data(), names, st.sampled_from(["rates", "cardinalities"]))
def test_json_keeps_everything(data, variables, kind) -> None:
    pairs = data.draw(st.sets(st.tuples(*[st.sampled_from(variables)] * 2).map(sorted).map(tuple)))
    stats = Statistics(
        **{kind: {name: data.draw(numbers) for name in variables}},
        selectivities={pair: data.draw(st.floats(0, 1)) for pair in pairs},
        standard_errors={
            key: data.draw(numbers) for key in [*variables, *pairs] if data.draw(st.booleans())
        },
    )
    assert Statistics.from_dict(json.loads(json.dumps(stats.to_dict()))) == stats


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"rates": {"a": 1}, "selectivities": [["a", "a"]]},
        {"rates": {"a": 1}, "selectivities": 3},
        {"rates": {"a": 1}, "standard_errors": [[]]},
        {"rates": [1]},
    ],
)
def test_what_is_no_stored_statistics(data) -> None:
    with pytest.raises(StatisticsError):
        Statistics.from_dict(data)


def test_the_whole_stream_is_known_or_asked_for() -> None:
    stats = Statistics(rates={"a": 1}, stream_rate=12, partitions=4)
    assert stats.stream_cardinality(10) == 120
    assert stats.stream_cardinality(10, partition=True) == 30
    assert stats.partition_count() == 4
    assert Statistics.from_dict(json.loads(json.dumps(stats.to_dict()))) == stats
    assert "whole stream: 12" in stats.describe() and "whole stream: 4" in stats.describe()
    bare = Statistics(rates={"a": 1})
    assert "stream_rate" not in bare.to_dict() and "partitions" not in bare.to_dict()
    with pytest.raises(StatisticsError, match=r"Statistics\(stream_rate=...\)"):
        bare.stream_cardinality(10)
    with pytest.raises(StatisticsError, match=r"Statistics\(partitions=...\)"):
        Statistics(rates={"a": 1}, stream_rate=2).stream_cardinality(10, partition=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stream_rate": -1}, "stream_rate must be at least 0, not -1"),
        ({"stream_rate": math.inf}, "stream_rate must be finite .* not inf"),
        ({"stream_rate": "much"}, "stream_rate must be a number, not 'much'"),
        ({"partitions": 0.5}, "partitions must be at least 1, not 0.5"),
        ({"partitions": -3}, "partitions must be at least 1, not -3"),
    ],
)
def test_numbers_of_the_whole_stream_that_make_no_sense(arguments, message) -> None:
    with pytest.raises(StatisticsError, match=message):
        Statistics(rates={"a": 1}, **arguments)
