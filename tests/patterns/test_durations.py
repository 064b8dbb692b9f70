"""Durations are exact decimals, wherever they are read."""

import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import EvaluationError, PatternError, StreamError
from cepbench.patterns.durations import slack_of, window_of
from cepbench.patterns.model import NANOSECONDS, Window
from cepbench.patterns.parse import parse

#: The units that have amounts of three decimal places.
FINE = [unit for unit, size in NANOSECONDS.items() if size >= 1000]

amounts = st.builds(
    lambda n, places: Decimal(n).scaleb(-places), st.integers(0, 3_800), st.integers(0, 3)
)


def window(text: str, **parameters: Any) -> Window:
    return parse(f"PATTERN SEQ(A a) WITHIN {text}", **parameters).window


@given(amounts, st.sampled_from(FINE))
def test_all_decimals_of_three_places_are_exact_in_every_spelling(
    amount: Decimal, unit: str
) -> None:
    due = Fraction(amount) * NANOSECONDS[unit]
    seconds = Window(0, "seconds")
    lengths = {
        window(f"{amount:f} {unit}").length,
        window("W", W=f"{amount:f} {unit}").length,
        window(f"W {unit}", W=float(amount)).length,
        window(f"W {unit}", W=amount).length,
        Window(float(amount), unit).length,
        window_of(float(amount), unit, "every", StreamError).length,
        slack_of(f"{amount:f} {unit}", seconds),
    }
    assert lengths == {due}
    if amount:
        assert window(f"< {amount:f} {unit}").length == due - 1


@given(amounts, st.sampled_from(FINE))
def test_the_text_of_a_window_is_that_of_the_float(amount: Decimal, unit: str) -> None:
    made = Window(amount, unit)
    assert made == Window(float(amount), unit) and hash(made) == hash(Window(float(amount), unit))
    written = int(amount) if amount == int(amount) else repr(float(amount))
    assert str(made) == f"{written} {unit}"
    assert window(str(made)) == pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("8.2 s", 8_200_000_000),
        ("4.1 minutes", 246_000_000_000),
        ("0.57 days", 49_248_000_000_000),
        ("50 microseconds", 50_000),
        ("1 microsecond", 1_000),
        ("1.5us", 1_500),
        ("50 µs", 50_000),
        ("800 nanoseconds", 800),
        ("1 nanosecond", 1),
        ("800 ns", 800),
        ("2 weeks", 14 * 86_400 * 10**9),
        ("1 week", 7 * 86_400 * 10**9),
        ("0.5 w", 302_400 * 10**9),
        # More digits than a float has.
        ("2305843009.213693951 s", 2**61 - 1),
        ("9007199254740993 units", 2**53 + 1),
        ("1e-9 s", 1),
    ],
)
def test_windows(text: str, length: int) -> None:
    found = window(text)
    assert found.length == length == window("W", W=text).length
    assert window(str(found)) == found


def test_numbers_of_every_type() -> None:
    for given_number in (8.2, np.float32(8.2), np.float64(8.2), Decimal("8.2"), Fraction(41, 5)):
        assert Window(given_number, "seconds").length == 8_200_000_000, given_number  # type: ignore[arg-type]
    assert window("W units", W=2**53 + 1).length == 2**53 + 1


@pytest.mark.parametrize(
    ("text", "parameters", "words"),
    [
        ("0.5 units", {}, "is not a whole number of units, in which time is counted; write 0 units or 1"),
        ("0.5 ns", {}, "is not a whole number of nanoseconds"),
        ("1.0000000001 s", {}, "write 1000000000 nanoseconds or 1000000001 nanoseconds"),
        ("W minutes", {"W": 1 / 3}, "0.3333333333333333 minutes is not a whole number of nanoseconds"),
        ("W", {"W": "0.0001 us"}, "is not a whole number"),
        ("1e-999999999 s", {}, "is not a whole number"),
        ("1e-99999999999999999999 s", {}, "is not a whole number"),
    ],
)  # fmt: skip
def test_no_duration_is_rounded(text: str, parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(PatternError, match=words) as refused:
        window(text, **parameters)
    assert refused.value.line == 1


def test_slack_that_is_no_number_of_ticks_says_why() -> None:
    with pytest.raises(EvaluationError, match=r"slack = 0.5 .* not a whole number of units"):
        cep.Aggregator("PATTERN SEQ(A a) AGG COUNT WITHIN 5 units", slack=0.5)
    assert slack_of(8.2, Window(1, "seconds")) == 8_200_000_000


def test_exponents_that_no_decimal_has() -> None:
    assert window("0e99999999999999999999 s").length == 0
    assert window("5e-00000000000000000001 s").length == 500_000_000
    for text, parameters in (
        ("1e99999999999999999999 s", {}),
        ("W", {"W": "1e+99999999999999999999 s"}),
    ):
        with pytest.raises(PatternError, match="the largest window is 2305843009 seconds"):
            window(text, **parameters)
    with pytest.raises(PatternError, match="longer than"):
        parse("PATTERN SEQ(A a, B b) WHERE b.ts - a.ts < 1e99999999999999999999 s WITHIN 1 s")
    with pytest.raises(EvaluationError, match="is not a length of time"):
        slack_of("1e99999999999999999999 s", Window(1, "seconds"))


@pytest.mark.parametrize("unit", ["ns", "s"])
def test_a_length_of_time_of_numpy_is_no_number(unit: str) -> None:
    """Of nanoseconds int() takes it for one: two of them as slack were seconds."""
    length = np.timedelta64(2, unit)
    with pytest.raises(EvaluationError, match="is not a length of time"):
        slack_of(length, Window(1, "seconds"))  # type: ignore[arg-type]
    for text in ("W", "W seconds"):
        with pytest.raises(PatternError, match="parameter W is a timedelta64"):
            window(text, W=length)
    with pytest.raises(PatternError, match="parameter :low is a timedelta64"):
        parse("PATTERN SEQ(A a) WHERE a.x > :low WITHIN 1 s", low=length)
