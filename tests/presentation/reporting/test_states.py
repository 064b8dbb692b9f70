"""States of claims: what an interval says, and how tests and settings are put together."""

from __future__ import annotations

import itertools
import math

import pytest

from cepbench.experiments.analysis.checks import NO_CASE, NO_DATA, TOO_FEW, Measured
from cepbench.presentation.reporting.states import (
    EXCEEDS,
    FAILS,
    HOLDS,
    IN_WORK,
    OPEN,
    PARTLY,
    PLURAL,
    STATES,
    UNDECIDED,
    judge,
    state_of,
    states_in_setting,
)


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [((1.5, 2.0), HOLDS), ((1.3, 2.7), HOLDS), ((0.9, 1.1), FAILS), ((3.0, 4.0), FAILS),
     ((1.0, 1.5), UNDECIDED), ((2.0, 3.0), UNDECIDED), ((0.5, 9.0), UNDECIDED),
     ((math.nan, math.nan), UNDECIDED)],
)  # fmt: skip
def test_the_whole_interval_decides(interval: tuple[float, float], verdict: str) -> None:
    found, lack, why = judge(Measured(1.0, *interval, 9), 1.3, 2.7)
    assert found == verdict
    assert bool(why) == (verdict == UNDECIDED) and lack == (TOO_FEW if why else "")


@pytest.mark.parametrize(
    ("interval", "ends", "verdict"),
    [
        ((3.0, 4.0), (1.3, 2.7), EXCEEDS), ((2.0, 3.0), (1.3, 2.7), HOLDS),
        ((1.0, 3.0), (1.3, 2.7), UNDECIDED), ((1.0, 1.2), (1.3, 2.7), FAILS),
        ((0.2, 0.3), (0.4, 0.6), EXCEEDS), ((0.3, 0.5), (0.4, 0.6), HOLDS),
        ((0.7, 0.9), (0.4, 0.6), FAILS), ((0.5, 0.7), (0.4, 0.6), UNDECIDED),
        # "Comparable" and "slightly" are contradicted by a larger factor.
        ((2.0, 3.0), (0.8, 1.25), FAILS), ((2.0, 3.0), (1.0, 1.25), FAILS),
        ((2.0, 3.0), (1.01, 1.25), FAILS), ((0.2, 0.3), (0.8, 0.9999), FAILS),
        # A range without an end on that side cannot be exceeded, one around 1 neither.
        ((2.0, 3.0), (1.3, math.inf), HOLDS), ((2.0, 3.0), (0.5, 1.5), FAILS),
    ],
)  # fmt: skip
def test_a_printed_factor_is_exceeded_by_one_further_from_1(
    interval: tuple[float, float], ends: tuple[float, float], verdict: str
) -> None:
    assert judge(Measured(1.0, *interval, 9), *ends, is_factor=True)[0] == verdict
    as_number = judge(Measured(1.0, *interval, 9), *ends)[0]
    assert as_number in (verdict, FAILS if verdict == EXCEEDS else UNDECIDED)


def test_what_was_not_measured_is_open() -> None:
    for lack in (NO_DATA, NO_CASE, TOO_FEW):
        assert judge(Measured(lack=lack, problem="so"), 1.0, 2.0) == (OPEN, lack, "so")
    few = Measured(patterns=4, lack=TOO_FEW, problem="so")
    assert judge(few, 1.0, 2.0) == (UNDECIDED, TOO_FEW, "so")


def test_a_maximum_without_bound_decides_one_side() -> None:
    measured = Measured(3.0, 3.0, math.inf, 3, left_out=1)
    assert judge(measured, -math.inf, 2.5)[0] == FAILS
    assert judge(measured, -math.inf, 3.5) == (OPEN, NO_DATA, "1 runs did not end")
    assert judge(measured, 2.5, math.inf)[0] == HOLDS


@pytest.mark.parametrize(
    ("work", "time", "state"),
    [
        (HOLDS, HOLDS, HOLDS), (HOLDS, EXCEEDS, EXCEEDS), (EXCEEDS, HOLDS, HOLDS),
        (HOLDS, FAILS, IN_WORK), (EXCEEDS, FAILS, IN_WORK), (FAILS, HOLDS, PARTLY),
        (FAILS, FAILS, FAILS), (HOLDS, UNDECIDED, UNDECIDED), (FAILS, UNDECIDED, UNDECIDED),
        (UNDECIDED, FAILS, UNDECIDED), (UNDECIDED, HOLDS, UNDECIDED), (HOLDS, OPEN, HOLDS),
        (OPEN, FAILS, FAILS), (OPEN, OPEN, OPEN),
    ],
)  # fmt: skip
def test_work_comes_before_time(work: str, time: str, state: str) -> None:
    assert state_of([states_in_setting([(work, False), (time, True)])]) == state


def test_tests_on_time_alone_have_no_work_to_hold_in() -> None:
    assert states_in_setting([(HOLDS, True), (FAILS, True)]) == {PARTLY}
    assert states_in_setting([(HOLDS, False), (FAILS, True), (HOLDS, True)]) == {IN_WORK}
    assert states_in_setting([(HOLDS, False), (FAILS, False), (FAILS, True)]) == {PARTLY}


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        ([], OPEN), ([OPEN], OPEN), ([HOLDS, OPEN], HOLDS), ([FAILS, OPEN], FAILS),
        ([HOLDS, EXCEEDS], HOLDS), ([EXCEEDS, EXCEEDS], EXCEEDS), ([HOLDS, IN_WORK], IN_WORK),
        ([HOLDS, FAILS], PARTLY), ([IN_WORK, FAILS], PARTLY), ([HOLDS, PARTLY], PARTLY),
        ([HOLDS, UNDECIDED], UNDECIDED), ([FAILS, UNDECIDED], UNDECIDED),
    ],
)  # fmt: skip
def test_settings_that_differ_make_a_part(settings: list[str], state: str) -> None:
    possible = [
        states_in_setting([(state, True)]) if state == UNDECIDED else {state} for state in settings
    ]
    assert {state_of(order) for order in itertools.permutations(possible)} == {state}


def test_what_is_undecided_decides_nothing() -> None:
    """A claim is undecided unless its verdict is the same whichever way undecided tests come out."""
    tests = [(state, timed) for state in (HOLDS, FAILS, UNDECIDED, OPEN) for timed in (False, True)]
    for first in itertools.product(tests, repeat=2):
        for second in itertools.product(tests, repeat=2):
            ways = {
                state_of([states_in_setting(part) for part in (its[:2], its[2:])])
                for its in itertools.product(
                    *([(HOLDS, timed), (FAILS, timed)] if state == UNDECIDED else [(state, timed)]
                      for state, timed in (*first, *second))
                )
            }  # fmt: skip
            found = state_of([states_in_setting(first), states_in_setting(second)])
            assert found == (ways.pop() if len(ways) == 1 else UNDECIDED)
    # The clock fails in one setting, and work holds in both.
    clock = [(HOLDS, False), (UNDECIDED, True)], [(HOLDS, False), (FAILS, True)]
    assert state_of(map(states_in_setting, clock)) == IN_WORK
    assert set(PLURAL) == set(STATES)
