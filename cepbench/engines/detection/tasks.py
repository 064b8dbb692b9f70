"""Validation of a user's arguments: a task, and an evaluator that supports it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from cepbench.arguments import choice, flag, kind_of, whole
from cepbench.engines.automata.model import check_compiled
from cepbench.engines.detection.registry import EVALUATORS, default_evaluator, evaluator_for
from cepbench.engines.runs.protocol import Arguments, Evaluator, Task
from cepbench.engines.runs.returned import values_suffice
from cepbench.errors import (
    EvaluationError,
    PlanError,
    UnsupportedPatternError,
    UnsupportedTaskError,
    did_you_mean,
)
from cepbench.patterns.model import Kind, Operator, Pattern, Structure
from cepbench.patterns.negations import check_placements
from cepbench.planning.plans.given import plan_for, plan_from
from cepbench.planning.plans.kinds import plan_from_json
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.workloads.model import queries_from_json

#: Constructs over a variable.
_CONSTRUCT = {Kind.NEGATED: "NOT", Kind.KLEENE: "KL", Kind.GROUP: "GROUP"}

#: Outputs: a DataFrame of the matches, an Arrow table, their number, or a graph of them.
OUTPUTS = ("matches", "arrow", "count", "compressed")

#: Who needs no plan on a live stream, of which there are no statistics yet.
_PLANS_ITSELF = "cep.AdaptiveDetector(pattern) chooses its own by the events that it gets"

#: Default limit of stored partial matches, which take at most a few gigabytes.
PARTIAL_MATCH_LIMIT = 20_000_000


def task_for(
    pattern: Pattern, plan: AnyPlan | None, asked: Arguments, *, whole_stream: bool = False
) -> Task:
    """The task of checked arguments; of a ``whole_stream`` there is a single batch.

    A PatternError, PlanError or EvaluationError if one is invalid, or plan and pattern do not fit;
    otherwise the errors of :func:`refuse_undeclared`.
    """
    task = _task(pattern, plan, asked, whole_stream=whole_stream)
    refuse_undeclared(task)
    return task


def _task(pattern: Pattern, plan: AnyPlan | None, asked: Arguments, *, whole_stream: bool) -> Task:
    branches = pattern.branches()
    if plan is not None:
        plan = plan_for(plan_from(plan), [branch.planned_names for branch in branches])
        for branch, part in zip(branches, plan.parts, strict=True):
            check_placements(branch, part.placements)
        check_compiled(pattern, plan)
    output = choice(asked.output, "output", OUTPUTS, EvaluationError)
    chosen = chosen_evaluator(plan, asked.evaluator, pattern.strategy.name)
    task = Task(
        pattern=pattern,
        plan=plan,
        evaluator=chosen,
        output=output,
        options=options_of(chosen, asked.options),
        partial_match_limit=whole(
            asked.partial_match_limit, "partial_match_limit", EvaluationError, least=1
        ),
        latency=flag(asked.latency, "latency", EvaluationError),
        node_times=flag(asked.node_times, "node_times", EvaluationError),
        position=whole(asked.position, "position", EvaluationError, least=0, most=2**62),
        whole=whole_stream,
        values=pattern.returns if _needs_values(pattern, output, whole_stream) else (),
    )
    if len(branches) > 1 and "branch" in pattern.positive_names:
        raise EvaluationError(
            "under OR, the table of matches has a column 'branch' of its own; rename the "
            "variable 'branch'"
        )
    return task


def unpacked(packed: Mapping[str, Any]) -> Task:
    """The inverse of ``Task.packed``, checked by :func:`task_for`; further entries are ignored."""
    plan = None if packed["plan"] is None else plan_from_json(packed["plan"])
    return task_for(queries_from_json(packed), plan, Arguments.unpacked(packed))


def _needs_values(pattern: Pattern, output: str, whole_stream: bool) -> bool:
    """Whether matches need not be known; a whole stream's are sorted by positions unless in Arrow."""
    return (
        (output == "arrow" or (output == "matches" and not whole_stream))
        and pattern.output == "all"
        and values_suffice(pattern)
    )


def chosen_evaluator(
    plan: AnyPlan | None, evaluator: str | Evaluator | None, strategy: str
) -> Evaluator:
    """The named evaluator, or the default one for a plan, or for a strategy without plans.

    A PlanError if there is neither a name nor a plan, and some evaluators of the strategy run plans.
    """
    if evaluator is not None:
        return evaluator_for(evaluator)
    if plan is not None:
        return default_evaluator(plan.kind)
    alone = evaluator_without_plan(strategy)
    if alone is not None:
        return alone
    able = [e.name for e in EVALUATORS.values() if e.without_plan and strategy in e.strategies]
    raise PlanError(
        "there is neither a plan nor an evaluator; cep.plan(pattern, statistics) makes a plan, "
        + _PLANS_ITSELF
        + (f", and evaluator= one of {', '.join(able)} needs none" if able else "")
    )


def evaluator_without_plan(strategy: str) -> Evaluator | None:
    """The default evaluator of a strategy that none evaluates by orders or trees; else None."""
    able = [entry for entry in EVALUATORS.values() if strategy in entry.strategies]
    return able[0] if able and all(entry.without_plan for entry in able) else None


def options_of(evaluator: Evaluator, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """A value for each option of an evaluator: the given one, checked, or its default.

    An EvaluationError if an option is unknown, or its check rejects the value.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise EvaluationError(
            f'options must be a mapping such as {{"name": value}}, not {kind_of(given)}'
        )
    for name in given:
        if name not in evaluator.options:
            known = ", ".join(evaluator.options)
            raise EvaluationError(
                f"the evaluator {evaluator.name} has no option {name!r}; it has {known or 'none'}"
                f"{did_you_mean(name, evaluator.options, cutoff=0.0)}"
            )
    return {
        name: option.check(given[name], f"{evaluator.name}: {name}", EvaluationError)
        if name in given
        else option.default
        for name, option in evaluator.options.items()
    }


def refuse_undeclared(task: Task) -> None:
    """Check that the evaluator of a task declares all capabilities that it needs.

    An UnsupportedPatternError for constructs and strategy, an EvaluationError for an unsupported plan of
    a kind of which it runs some, else an UnsupportedTaskError.
    """
    evaluator, pattern = task.evaluator, task.pattern
    if task.plan is None:
        advice = "; cep.plan(pattern, statistics) makes one"
        if not task.whole:
            advice += f", {_PLANS_ITSELF}"
        _need(evaluator, "run without a plan", lambda e: e.without_plan, advice)
    else:
        kind = task.plan.kind
        advice = "; leave out the plan" if evaluator.without_plan else ""
        _need(evaluator, f"run {kind} plans", lambda e: runs_some(e, kind), advice)
        if evaluator.check_plan is not None:
            for part in task.plan.parts:
                evaluator.check_plan(part)
    error = UnsupportedPatternError
    counts = task.output == "count" and pattern.output == "all" and not task.node_times
    for construct in constructs_of(pattern).difference(evaluator.counted if counts else ()):
        what, advice = construct, ""
        if construct == "concept":
            what = f"items of a concept ({', '.join(pattern.concepts)})"
            if not evaluator.is_builtin:
                advice = (
                    "; if it binds the events of all types below one, as stream.rows_of(type) gives "
                    'them, declare "concept" among its constructs'
                )
        _need(evaluator, f"run {what}", lambda e, it=construct: it in e.constructs, advice, error)
    strategy = pattern.strategy.name
    _need(evaluator, f"run STRATEGY {strategy}", lambda e: strategy in e.strategies, error=error)
    output = "matches" if task.output == "arrow" else task.output
    if pattern.output != "all" and not evaluator.selects_output and output != "compressed":
        # To select matches, the front end has to know them.
        output = "matches"
    _need(evaluator, f'give output="{output}"', lambda e: output in e.outputs)
    if not task.whole:
        advice = "; it takes whole streams, by cep.evaluate"
        _need(evaluator, "take a stream in batches", lambda e: e.batches, advice)
    if task.latency:
        _need(evaluator, "measure latency", lambda e: e.latency)
    if task.node_times:
        _need(evaluator, "measure times of nodes", lambda e: e.node_times)


def able(
    pattern: Pattern, plan: AnyPlan | None, asked: Arguments, *, whole_stream: bool
) -> Callable[[Evaluator], bool]:
    """Whether an evaluator, with the plan if it runs its kind, declares all that is asked for."""
    try:
        of_all = _task(pattern, plan, replace(asked, options=None), whole_stream=whole_stream)
    except (EvaluationError, PlanError, UnsupportedPatternError):
        return lambda evaluator: False

    def is_able(evaluator: Evaluator) -> bool:
        its = plan is not None and runs_some(evaluator, plan.kind)
        try:
            options = options_of(evaluator, asked.options)
            task = replace(
                of_all, evaluator=evaluator, options=options, plan=of_all.plan if its else None
            )
            refuse_undeclared(task)
        except (EvaluationError, PlanError, UnsupportedPatternError, UnsupportedTaskError):
            return False
        return True

    return is_able


def runs_some(evaluator: Evaluator, kind: str) -> bool:
    """Whether an evaluator supports all or some plans of this kind."""
    return kind in evaluator.kinds or kind in evaluator.some_kinds


def runs_without(evaluator: Evaluator, kinds: Iterable[str]) -> bool:
    """Whether an evaluator runs without a plan, and plans of none of these kinds."""
    return evaluator.without_plan and not any(runs_some(evaluator, kind) for kind in kinds)


def refuse(
    evaluator: Evaluator,
    what: str,
    can: Callable[[Evaluator], bool],
    advice: str = "",
    error: type[UnsupportedTaskError] | type[UnsupportedPatternError] = UnsupportedTaskError,
) -> NoReturn:
    """Raise the error that an evaluator cannot do something, naming those that can."""
    able = ", ".join(entry.name for entry in EVALUATORS.values() if can(entry))
    raise error(
        f"the evaluator {evaluator.name} cannot {what}; {able or 'no other one'} can{advice}"
    )


def _need(
    evaluator: Evaluator,
    what: str,
    can: Callable[..., bool],
    advice: str = "",
    error: Any = UnsupportedTaskError,
) -> None:
    """As :func:`refuse`, if the evaluator cannot do it."""
    if not can(evaluator):
        refuse(evaluator, what, can, advice, error)


def constructs_of(pattern: Pattern) -> set[str]:
    """The constructs of a pattern, of :data:`cepbench.engines.runs.protocol.CONSTRUCTS`."""
    found = set(_constructs(pattern.structure, nested=False))
    return found | {"concept"} if pattern.concepts else found


def _constructs(structure: Structure, *, nested: bool) -> Iterator[str]:
    yield str(structure.operator)
    is_or = structure.operator is Operator.OR
    if nested and not is_or:
        yield "nesting"
    for item in structure.items:
        if isinstance(item, Structure):
            yield from _constructs(item, nested=nested or not is_or)
        elif item.kind is not Kind.PLAIN:
            yield _CONSTRUCT[item.kind]
