"""Checks of a plan generator against its contract, with a line that reproduces each finding."""

from __future__ import annotations

import dataclasses
import pickle
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import number
from cepbench.arguments import seed as seed_from
from cepbench.errors import ExperimentError, PlanGeneratorError, PlanningRefusedError
from cepbench.experiments.conformance.checker import entry_of
from cepbench.experiments.conformance.generator_problems import SIZES, check_problem, check_problems
from cepbench.experiments.conformance.generator_report import (
    Finding,
    GeneratorReport,
    shown_ratio,
)
from cepbench.experiments.sweeps.cells import ERROR, OK, REFUSED
from cepbench.experiments.sweeps.measure import load_kernels
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.registry import (
    OPTIMAL,
    PLAN_GENERATORS,
    TOLERANCE,
    PlanGenerator,
    default_generators,
    find_generator,
)
from cepbench.planning.plans.model import Plan
from cepbench.planning.plans.notes import from_log

#: Check -> what a generator does to pass it, in the order of the report.
CHECKS: Mapping[str, str] = {
    "error": "raises no error",
    "plan": "returns a plan: each event once",
    "time": "ends in time",
    "seed": "gives the same plan for the same seed",
    "problem": "leaves the problem as it was",
    "exact": "finds the least cost, as exact=True says",
    "refusal": "plans at least one problem",
}

#: Factor of the time limit for a problem's first plan: some generators compile then.
_FIRST = 5.0

#: Declared spaces of generators that choose from all plans.
_ALL = tuple(find_generator(name).space for name in OPTIMAL.values())


class _TimeUpError(BaseException):
    """Not an Exception, which a generator might catch and run forever."""


def check_generator(
    generator: str | PlanGenerator | Callable[..., Any],
    *,
    problems: Sequence[str] | None = None,
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
    time_limit: float = 2.0,
) -> GeneratorReport:
    """Run a plan generator on planning problems of every kind and report violated rules.

    The report has ``passed``, ``findings``, ``table``, ``costs`` and ``describe()``.
    Each problem is planned twice. The checks: no error; a plan with each event once; in time; the
    same plan for the same seed, with random numbers from ``rng`` only; the problem unchanged; the
    least cost if the generator claims it by ``exact=True`` and declares no ``space``. Refusing a
    problem with :class:`~cepbench.errors.PlanningRefusedError` is allowed unless all are refused.
    Costs are compared with the least cost of any plan of the kind, beside those of the default
    generators; it is that of DP-LD for orders and of DP-B for trees [kolchinsky2018]_, sections 4.1
    and 4.2.

    Raises PlanGeneratorError if there is no such generator, or the function is not registered;
    ExperimentError if there is no such kind of problem, or a size, the seed or the time limit is
    invalid.

    Parameters
    ----------
    generator : str, PlanGenerator or callable
        A name in ``cep.PLAN_GENERATORS``, or the function that was registered.
    problems : sequence of str, optional
        Kinds of problems, keys of
        :data:`~cepbench.experiments.conformance.generator_problems.PROBLEM_KINDS`; all by default.
    sizes : sequence of int
        Numbers of events, small ones first; beyond 24 the least cost is unknown.
    seed : int
        Of the problems and of the plans.
    time_limit : float
        Seconds of planning a problem for the second time; five times as many for the first, since
        some generators compile then. Longer planning is interrupted where possible, and no further
        problem is tried.

    Examples
    --------
    >>> import cepbench as cep
    >>> cep.check_generator("GREEDY", sizes=[1, 2, 3]).passed
    True
    """
    decorated = '@cep.plan_generator("{name}", kind="order") above it (kind="tree" if it returns nested pairs)'
    if isinstance(generator, PlanGenerator):
        entry = generator
    else:
        entry = entry_of(PLAN_GENERATORS, generator, "function", "a plan generator", decorated)
    time_limit = number(time_limit, "time_limit", ExperimentError, above=0.0, most=1e6)
    seed = seed_from(seed, ExperimentError)
    drawn = check_problems(problems, sizes, seed=seed)
    if entry.is_builtin:
        load_kernels(entry)  # compiling is no part of the time limit
    trial = _Trial(entry, seed, time_limit)
    tried = []
    for name in drawn:
        tried.append(name)
        if not trial.run(name):
            break
    costs = _costs(trial, tried, seed)
    if _claims_all(entry):
        trial.check_exactness(costs)
    findings = trial.findings
    if trial.rows and all(row["status"] == REFUSED for row in trial.rows):
        findings.append(
            Finding("refusal", tried[0], f"refused all problems: {trial.rows[0]['reason']}", "")
        )
    findings.sort(key=lambda finding: list(CHECKS).index(finding.check))
    checks = {check: CHECKS[check] for check in CHECKS if check != "exact" or _claims_all(entry)}
    return GeneratorReport(
        generator=entry.name,
        plan_kind=entry.kind,
        seed=seed,
        checks=checks,
        findings=tuple(findings),
        tried=tuple(tried),
        left_out=tuple(name for name in drawn if name not in tried),
        costs=costs,
    )


class _Trial:
    """A generator under test, with its findings and a row for each problem."""

    def __init__(self, entry: PlanGenerator, seed: int, time_limit: float) -> None:
        self.entry = entry
        self.seed = seed
        self.limit = time_limit
        self.findings: list[Finding] = []
        self.rows: list[dict[str, Any]] = []

    def run(self, name: str) -> bool:
        """Plan one problem twice; False to stop before larger ones."""
        problem = check_problem(name, seed=self.seed)
        row: dict[str, Any] = {"problem": name, "status": ERROR, "reason": None}
        self.rows.append(row)
        before, drawn_before = _copied(problem), _global_random()
        try:
            first, _ = self._planned(problem, self.limit * _FIRST)
            source = _source_of_randomness(drawn_before)
            # A new problem, to detect state kept from the first one.
            second, seconds = self._planned(check_problem(name, seed=self.seed), self.limit)
        except _TimeUpError:
            row["reason"] = self._late(name, problem)
            return False
        except PlanningRefusedError as error:
            row |= {"status": REFUSED, "reason": str(error)}
            return True
        except PlanGeneratorError as error:
            row["reason"] = self._failed(name, error)
            return True
        except Exception as error:
            if not _changes(problem, before):
                raise
            row["reason"] = str(error)  # a consequence of the changes
            return True
        finally:
            self._check_problem(name, problem, before)
        row |= {"status": OK, "seconds": seconds, "plan_log_cost": first.log_cost}
        self._check_same(name, first.text, second.text, source)
        return True

    def _planned(self, problem: CostedProblem, limit: float) -> tuple[Plan, float]:
        with _at_most(limit):
            found, seconds = _timed_plan(problem, self.entry, self.seed)
        if seconds > limit:  # where nothing could interrupt it
            raise _TimeUpError
        return found, seconds

    def _check_same(self, name: str, first: str, second: str, source: str) -> None:
        if first != second:
            message = (
                f"made {first} and then {second} from the same problem and the same seed; draw "
                f"every random number from rng{source and f' instead of {source}'}, and keep "
                "nothing from one call to the next"
            )
        elif source:
            message = (
                f"draws random numbers from {source}, which no seed of a plan reaches: another "
                "session gets other plans; draw them from rng"
            )
        else:
            return
        self._found("seed", name, message)

    def _late(self, name: str, problem: CostedProblem) -> str:
        hint = (
            "without a budget a search has to come to an end by itself"
            if self.entry.anytime
            else "is there a loop without an end, or one over all plans? For problems that are "
            "too large raise PlanningRefusedError, or give max_size= to plan_generator"
        )
        events = f"{problem.n} event{'s' if problem.n > 1 else ''}"
        message = f"had no plan of {events} after {self.limit:g} s; {hint}"
        self._found("time", name, message)
        return message

    def _failed(self, name: str, error: PlanGeneratorError) -> str:
        """Record an error; it was raised by the generator itself if it has a cause."""
        text = str(error)
        own = f"{self.entry.name} "
        if error.__cause__ is None:
            self._found("plan", name, text.removeprefix(own))
        else:
            message = text.removeprefix(f"plan generator {own}")
            if "read-only" in text:
                message += (
                    "; the numbers of a problem belong to everyone who plans it: work on a copy, "
                    "such as problem.log_cardinality.copy()"
                )
            self._found("error", name, message)
        return text

    def _check_problem(self, name: str, problem: CostedProblem, before: Mapping[str, Any]) -> None:
        for key in _changes(problem, before):
            self._found(
                "problem",
                name,
                f"changed problem.{key}, from which the generators after it plan; work on a copy, "
                f"such as np.array(problem.{key})",
            )

    def check_exactness(self, costs: pd.DataFrame) -> None:
        own = costs[costs["generator"] == self.entry.name].set_index("problem")["log_distance"]
        for name, distance in own[own > TOLERANCE].items():
            message = (
                f"has a plan of {shown_ratio(from_log(distance))} times the least cost, that of "
                f"{OPTIMAL[self.entry.kind]}; repair it, or leave out exact=True"
            )
            self._found("exact", str(name), message)

    def _found(self, check: str, name: str, message: str) -> None:
        line = (
            f'plan_problem(check_problem("{name}", seed={self.seed}), "{self.entry.name}", '
            f"seed={self.seed})"
        )
        self.findings.append(Finding(check, name, message, line))


def _timed_plan(problem: CostedProblem, entry: PlanGenerator, seed: int) -> tuple[Plan, float]:
    began = time.perf_counter()
    found = plan_problem(problem, entry, seed=seed)
    return found, time.perf_counter() - began


def _costs(trial: _Trial, tried: Sequence[str], seed: int) -> pd.DataFrame:
    """One row a problem and generator: the checked one, then the default ones of its kind."""
    plans = trial.entry.kind
    problems = {name: check_problem(name, seed=seed) for name in tried}
    rows = [{"generator": trial.entry.name, **row} for row in trial.rows]
    for entry in map(find_generator, default_generators(user_defined=False)):
        if entry.kind != plans or entry.name == trial.entry.name:
            continue
        for name, problem in problems.items():
            row: dict[str, Any] = {"generator": entry.name, "problem": name}
            try:
                found, seconds = _timed_plan(problem, entry, seed)
                row |= {"status": OK, "seconds": seconds, "plan_log_cost": found.log_cost}
            except PlanningRefusedError as error:
                row |= {"status": REFUSED, "reason": str(error)}
            rows.append(row)
    columns = ["problem", "generator", "status", "reason", "seconds", "plan_log_cost"]
    table = pd.DataFrame(rows, columns=columns)
    table = table.astype({"seconds": float, "plan_log_cost": float})
    table.insert(1, "size", [problems[name].n for name in table["problem"]])
    best = table[table["generator"] == OPTIMAL[plans]].set_index("problem")["plan_log_cost"]
    table["log_distance"] = table["plan_log_cost"] - table["problem"].map(best)
    return table


def _claims_all(entry: PlanGenerator) -> bool:
    """Whether it claims to be exact over all plans; the least cost of other spaces is unknown."""
    return entry.exact and entry.space in ("", *_ALL)


def _copied(problem: CostedProblem) -> dict[str, Any]:
    values = {field.name: getattr(problem, field.name) for field in dataclasses.fields(problem)}
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in values.items()}


def _changes(problem: CostedProblem, before: Mapping[str, Any]) -> list[str]:
    """Names of the fields that have changed."""
    return [k for k, value in before.items() if not np.array_equal(getattr(problem, k), value)]


def _global_random() -> dict[str, Any]:
    """States of the process-wide random number generators."""
    return {
        "Python's module random": random.getstate(),
        "numpy.random's shared generator": pickle.dumps(
            np.random.get_state()  # noqa: NPY002  (its use is to be detected)
        ),
    }


def _source_of_randomness(before: Mapping[str, Any]) -> str:
    now = _global_random()
    return " and ".join(name for name, state in before.items() if state != now[name])


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Interrupt the block after so many seconds; only possible in the main thread."""
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise _TimeUpError

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
