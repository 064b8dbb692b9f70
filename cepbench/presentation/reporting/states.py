"""The states of a claim, and how they follow from its tests.

A test is on *work*, which no clock blurs (partial matches, objects, bytes, costs of plans), or on
*time*. Where a claim has both, work comes first: a method that saves the work which the paper says
it saves, on an engine whose clock does not show it, is told apart from one that does not save it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import product

from cepbench.experiments.analysis.checks import NO_DATA, TOO_FEW, Measured

#: The states, of one test or of a claim; of one test without the third and fourth.
HOLDS = "holds"
EXCEEDS = "exceeds"
IN_WORK = "holds in work, not in time"
PARTLY = "holds in part"
UNDECIDED = "undecided"
FAILS = "does not hold"
OPEN = "not testable"
STATES = (HOLDS, EXCEEDS, IN_WORK, PARTLY, UNDECIDED, FAILS, OPEN)
#: The states of several claims.
PLURAL = {
    HOLDS: "hold",
    EXCEEDS: "exceed the paper",
    IN_WORK: "hold in work, not in time",
    PARTLY: "hold in part",
    UNDECIDED: "are undecided",
    FAILS: "do not hold",
    OPEN: "are not testable",
}

#: Why a time that a paper prints in seconds is not testable.
NOT_COMPARABLE = "not comparable"

#: A range within this factor of 1 says "slightly" or "comparable", which a larger factor contradicts.
_SLIGHTLY = 1.25


def judge(
    measured: Measured, low: float, high: float, *, is_factor: bool = False
) -> tuple[str, str, str]:
    """State of one test, by its measurement and the expected range, and why if it is open.

    It holds if the whole interval is within the range, and does not if all of it is outside. A
    printed factor is exceeded by one further from 1, unless it says "slightly"; it holds too where
    the interval contains that end of its range alone. Otherwise it is undecided, or not testable;
    then the second is :data:`~cepbench.experiments.analysis.checks.NO_DATA`, ``TOO_FEW`` or ``NO_CASE``, and the
    third says so in words.
    """
    if measured.lack:
        some = measured.lack == TOO_FEW and measured.patterns > 0
        return UNDECIDED if some else OPEN, measured.lack, measured.problem
    if math.isnan(measured.low) or math.isnan(measured.high):
        return UNDECIDED, TOO_FEW, "there is no interval"
    if low <= measured.low and measured.high <= high:
        return HOLDS, "", ""
    more = is_factor and low > 1 and high > _SLIGHTLY
    less = is_factor and high < 1 and low < 1 / _SLIGHTLY
    if (more and measured.low > high) or (less and measured.high < low):
        return EXCEEDS, "", ""
    if measured.high < low or measured.low > high:
        return FAILS, "", ""
    if measured.left_out and measured.high == math.inf:
        return OPEN, NO_DATA, f"{measured.left_out} runs did not end"
    if (more and measured.low >= low) or (less and measured.high <= high):
        return HOLDS, "", ""
    ends = [f"{end:g}" for end in (low, high) if measured.low <= end <= measured.high]
    return UNDECIDED, TOO_FEW, f"the interval contains {' and '.join(ends)}"


def states_in_setting(tests: Iterable[tuple[str, bool]]) -> set[str]:
    """The states that are possible in one setting, of tests' states, each with whether it is on time.

    Tests that are not testable do not count beside others. One that is undecided may hold in the end, or fail.
    """
    counted = [(state, timed) for state, timed in tests if state != OPEN]
    ends = [(HOLDS, FAILS) if state == UNDECIDED else (state,) for state, _ in counted]
    times = [timed for _, timed in counted]
    return {_decided([*zip(states, times, strict=True)]) for states in product(*ends)}


def _decided(counted: Sequence[tuple[str, bool]]) -> str:
    states = {state for state, _ in counted}
    if len(states) <= 1:
        return states.pop() if states else OPEN
    if states <= {HOLDS, EXCEEDS}:
        return counted[-1][0]  # the last test is on what the claim is about
    fails = [timed for state, timed in counted if state == FAILS]
    return IN_WORK if all(fails) and not all(timed for _, timed in counted) else PARTLY


def state_of(settings: Iterable[Collection[str]]) -> str:
    """The state of a claim, of those that are possible in each setting: in part where they differ.

    It is undecided unless it is the same however the undecided tests come out.
    """
    reached: set[frozenset[str]] = {frozenset()}
    for possible in settings:
        reached = {states | {state} for states in reached for state in possible}
    found = {_overall(states - {OPEN}) for states in reached}
    return found.pop() if len(found) == 1 else UNDECIDED


def _overall(states: frozenset[str]) -> str:
    if len(states) <= 1:
        return next(iter(states), OPEN)
    if states <= {HOLDS, EXCEEDS}:
        return HOLDS
    return IN_WORK if states <= {HOLDS, EXCEEDS, IN_WORK} else PARTLY
