"""Every engine, plan generator and policy, whatever the pattern and the way, finds what the twin does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.runs.pieces import pieces_of
from cepbench.errors import PlanningRefusedError, UnsupportedPatternError
from cepbench.patterns.reach import shared_keys
from tests.budgets import SOAK, examples, only_compiled
from tests.contract.cases import ContractCase, contract_cases
from tests.contract.declared import (
    ALL,
    AXES,
    engines_of,
    families_of,
    kinds_planned,
    may_refuse,
    options_of,
    outputs_of,
    refused,
)
from tests.contract.structures import STRUCTURES, structure_cases
from tests.contract.tally import Tally, explored
from tests.contract.ways import WAYS, Choice
from tests.engines.detection.checks import check, check_in_batches
from tests.engines.detection.constructs import able, branch_plans, plans_of_kind
from tests.engines.detection.strategies import batches_of, statistics_for

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.filterwarnings("ignore::cepbench.errors.MissingTypeWarning"),
]


#: Seeds of so many cases; see ``tests/conftest.py``.
Seeds = Callable[[int], Sequence[int]]


@pytest.mark.parametrize("family", ALL)
@given(data=st.data())
@examples(4)
def test_family(family: str, data: st.DataObject) -> None:
    _by_all(data.draw(contract_cases(st.just(ALL[family]))), data)


@pytest.mark.parametrize("structure", STRUCTURES)
@given(data=st.data())
@examples(2)
def test_structure(structure: str, data: st.DataObject) -> None:
    _by_all(data.draw(structure_cases(structure)), data)


def _by_all(case: ContractCase, data: st.DataObject) -> None:
    """By all evaluators that run the pattern, in small pieces: in one pass or in batches with restores.

    In turn, since what differs between two examples shows more than one of them in both ways; in a
    soak, all run both.
    """
    batches = data.draw(batches_of(case.stream))
    restored = data.draw(st.lists(st.booleans(), min_size=len(batches), max_size=len(batches)))
    pieces = data.draw(st.sampled_from([{}, {}, {"events": 1}, {"events": 3, "room": 2}]))
    if pieces:
        pieces = {**pieces, "matches": data.draw(st.integers(1, 9))}
    for turn, name in enumerate(able(case.pattern), data.draw(st.integers(0, 1))):
        plan = data.draw(branch_plans(name, case.pattern))
        options = data.draw(options_of(cep.EVALUATORS[name]))
        try:
            with pieces_of(**pieces):
                if SOAK is not None or turn % 2:
                    check(case, case.expected, plan, name, options)
                if SOAK is not None or not turn % 2:
                    check_in_batches(case, case.expected, plan, name, batches, restored, options)
        except UnsupportedPatternError as error:
            if not any(f"{option}=" in str(error) for option in options):
                raise


def _pinned(*axes: str) -> Any:
    return pytest.mark.parametrize("name", [name for axis in axes for name in AXES[axis]])


@_pinned("evaluator")
def test_engine(name: str, tally: Tally, seeds: Seeds) -> None:
    # Each refusal is checked against the declarations; this is for a test that hardly runs anything.
    tally.pinned, tally.most = name, 0.75
    given = {"evaluator": cep.EVALUATORS[name]}
    explored(name, seeds(1), lambda data: _check(data, tally, given, name, [*WAYS]), each=8)


@only_compiled
@_pinned("generator")
def test_generator(name: str, tally: Tally, seeds: Seeds) -> None:
    generator = cep.PLAN_GENERATORS[name]
    tally.pinned, tally.most = name, 0.95 if may_refuse(generator) else 0.5

    def check(data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(engines_of(generator)))
        way = data.draw(st.sampled_from([*WAYS]))
        _check(data, tally, {"evaluator": entry, "generator": name}, name, [way])

    explored(name, seeds(1), check, each=4)


@_pinned("policy")
def test_policy(name: str, tally: Tally, seeds: Seeds) -> None:
    tally.pinned = name

    def check(data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from([e for e in cep.EVALUATORS.values() if kinds_planned(e)]))
        _check(data, tally, {"evaluator": entry, "policy": name}, name, ["adaptive"])

    explored(name, seeds(1), check, each=4)


def _check(
    data: st.DataObject, tally: Tally, given: dict[str, Any], name: str, ways: list[str]
) -> None:
    """One pattern by one engine in all of the ways, whatever is not given being drawn for each."""
    case = data.draw(contract_cases(families_of(given["evaluator"])))
    if ways == ["adaptive"] and not case.pattern.window.length:
        window = replace(case.pattern.window, amount=5)
        case = ContractCase(replace(case.pattern, window=window), case.events, case.form)
    for way in ways:
        _check_way(data, tally, given, name, case, way)


def _check_way(
    data: st.DataObject,
    tally: Tally,
    given: dict[str, Any],
    name: str,
    case: ContractCase,
    way: str,
) -> None:
    entry = given["evaluator"]
    how = _choice(data, case, given, way, tally, name)
    if how is None:
        return
    reason = refused(entry, case.pattern, how.plan if way != "adaptive" else None)
    if reason is None:
        reason = _refused_way(case, how, way)
    if reason is not None:
        tally.must_refuse(name, reason, lambda: WAYS[way](case, how, data))
        return
    limits = {f"{option}=": f"option {option}" for option in how.options}
    if how.generator is not None and may_refuse(cep.PLAN_GENERATORS[how.generator]):
        limits[f"{how.generator} "] = "not this problem"
    with tally.allowing(name, way, limits):
        WAYS[way](case, how, data)


def _refused_way(case: ContractCase, how: Choice, way: str) -> str | None:
    """Why a way has no place for a pattern."""
    if way == "sliced" and case.pattern.selects and not shared_keys(case.pattern):
        return "one pass"
    if way == "adaptive":
        if not case.pattern.window.length:
            return "adaptive, window 0"
        generator = cep.PLAN_GENERATORS[how.generator or "DP-B"]
        if generator.kind not in how.engine.kinds:
            return f"adaptive, no {generator.kind} plans"
    return None


def _choice(
    data: st.DataObject,
    case: ContractCase,
    given: dict[str, Any],
    way: str,
    tally: Tally,
    name: str,
) -> Choice | None:
    """Plan, options and output; None if a generator refuses to plan."""
    entry = given["evaluator"]
    kinds = kinds_planned(entry)
    generator = given.get("generator")
    fitting = [its.name for its in cep.PLAN_GENERATORS.values() if its.kind in entry.kinds]
    if generator is None and fitting and (way == "adaptive" or data.draw(st.booleans())):
        generator = data.draw(st.sampled_from(fitting))
    plan = None
    if kinds and way != "adaptive":
        if generator is not None and refused(entry, case.pattern) is None:
            try:
                plan = cep.plan(
                    case.pattern,
                    data.draw(statistics_for(case)),
                    generator,
                    seed=data.draw(st.integers(0, 9)),
                )
            except PlanningRefusedError:
                if not may_refuse(cep.PLAN_GENERATORS[generator]):
                    raise
                tally.refused(name, "not this problem")
                return None
        else:
            plan = data.draw(plans_of_kind(data.draw(st.sampled_from(kinds)), case.pattern))
    outputs = outputs_of(entry, [case.pattern])
    if way == "adaptive":
        outputs = [its for its in outputs if its != "compressed"]
    return Choice(
        engine=entry,
        plan=plan,
        output=data.draw(st.sampled_from(outputs)),
        options=data.draw(options_of(entry)),
        generator=generator,
        policy=given.get("policy") or data.draw(st.sampled_from([*cep.ADAPTATION_POLICIES])),
    )
