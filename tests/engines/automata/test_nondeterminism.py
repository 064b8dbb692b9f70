"""Where runs may split: the four kinds of section 4.1, and the bounds of section 4.2."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

import cepbench as cep
from cepbench.engines.automata.model import Automaton
from tests.engines.automata.test_automaton import QUERY_1, QUERY_2, QUERY_3


def kinds(text: str, **options: bool) -> dict[str, tuple[str, ...]]:
    automaton = cep.automaton(text, **options)
    assert isinstance(automaton, Automaton)
    found = automaton.nondeterminism()
    return {state: its for state, its in zip(found.states, found.kinds, strict=True) if its}


LOOP = ("take-proceed", "ignore-proceed")


def test_the_kinds_by_strategy() -> None:
    assert kinds(QUERY_3) == {"a[i]": LOOP}
    assert kinds(QUERY_3.replace("next", "any")) == {
        "a[i]": (*LOOP, "take-ignore"), "b": ("begin-ignore",)
    }  # fmt: skip
    for contiguity in ("strict_contiguity", "partition_contiguity(symbol)"):
        assert kinds(QUERY_3.replace("next", contiguity)) == {"a[i]": ("take-proceed",)}
    assert kinds(QUERY_1) == {}
    assert kinds(QUERY_2) == {"b[1]": ("begin-ignore",), "b[i]": ("take-proceed", "take-ignore")}


@pytest.mark.parametrize(
    ("take", "begin", "left"),
    [
        ("a[i].x > 5", "b.x < 4", ("ignore-proceed",)),
        ("a[i].x > 5", "b.x < 6", LOOP),
        # A missing value is neither taken nor begins.
        ("a[i].x > 5", "b.x > 6", ("take-proceed",)),
        ("a[i].x > 5", "b.y > 6", LOOP),
        ("a[i].x > a[i-1].x", "b.x <= a[last].x", ("ignore-proceed",)),
        ("a[i].x > max(a[..i-1].x)", "b.x < max(a.x)", ("ignore-proceed",)),
        ("a[i].x > a[i-1].x", "b.x <= a[1].x", LOOP),
        ("a[i].x = 1", "b.x = 2", ("ignore-proceed",)),
        ("a[i].x = 1", "(b.x = 2 OR b.x = 3)", ("ignore-proceed",)),
        ("(a[i].x = 1 OR a[i].y = 1)", "b.y = 1", ("take-proceed",)),
    ],
)
def test_formulas_that_exclude_each_other(take: str, begin: str, left: tuple[str, ...]) -> None:
    text = f"PATTERN SEQ(KL(A a), A b) WHERE {take} AND {begin} STRATEGY next WITHIN 9 units"
    assert kinds(text) == {"a[i]": left}


def test_an_event_is_of_one_type() -> None:
    text = "PATTERN SEQ(KL(A a), {} b) STRATEGY next WITHIN 9 units"
    assert kinds(text.format("B")) == {"a[i]": ("ignore-proceed",)}
    assert kinds(text.format("ANY")) == {"a[i]": LOOP}
    assert kinds(text.format("A")) == {"a[i]": ("take-proceed",)}


@pytest.mark.parametrize(
    ("text", "exponent", "bound"),
    [
        (QUERY_1, 1, "at most W runs"),
        (QUERY_3, 2, r"at most W\^2 runs"),
        (QUERY_3.replace("next", "any"), math.inf, "at most exponentially many runs"),
        ("PATTERN SEQ(A a, B b, C c) WITHIN 9 units", 3, r"at most W\^3 runs"),
    ],
)
def test_the_bound_on_runs(text: str, exponent: float, bound: str) -> None:
    automaton = cep.automaton(text)
    assert isinstance(automaton, Automaton)
    found = automaton.nondeterminism()
    assert found.exponent == exponent
    assert exponent <= len(automaton.states) or math.isinf(exponent)
    assert bound.replace("\\", "") in found.describe() and "window of W events" in found.bound
    assert list(found.table().columns) == [
        "state", "take-proceed", "ignore-proceed", "take-ignore", "begin-ignore", "splits"
    ]  # fmt: skip
    assert ET.fromstring(found._repr_html_()).tag == "table"
