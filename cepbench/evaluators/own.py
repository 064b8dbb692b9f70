"""A user's evaluator at work: its matches checked, brought into the form of all others, and timed."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import choice
from cepbench.errors import CepbenchError, EvaluationError
from cepbench.evaluators.detector import OUTPUTS
from cepbench.evaluators.matches import BranchMatches, Column, SetColumn
from cepbench.evaluators.registry import Evaluator
from cepbench.evaluators.result import Metrics, Result
from cepbench.patterns.model import Kind, Pattern
from cepbench.plans.given import check_parts
from cepbench.plans.model import Plan, UnionPlan
from cepbench.streams.event_stream import EventStream

#: Of a pattern with OR: the column that says which branch a match is of.
BRANCH = "branch"


def evaluated_by(
    evaluator: Evaluator,
    pattern: Pattern,
    stream: EventStream,
    plan: Plan | UnionPlan,
    output: str,
    watched: bool,
) -> Result:
    """All matches of a pattern by an evaluator that a user registered.

    Parameters
    ----------
    evaluator : Evaluator
        With ``run``.
    pattern, stream, plan, output
        See :func:`cepbench.evaluators.evaluate.evaluate`.
    watched : bool
        Whether latency or times of nodes are asked for, which it cannot tell.

    Raises
    ------
    PlanError, EvaluationError
        If plan and pattern do not fit each other, it fails, or returns no matches.
    """
    branches = pattern.branches()
    check_parts(plan, [branch.positive_names for branch in branches])
    output = choice(output, "output", OUTPUTS, EvaluationError)
    if watched:
        raise EvaluationError(
            f"the evaluator {evaluator.name} measures no latency and no times of nodes; "
            "leave out latency= and node_times="
        )
    for part in plan.parts:
        evaluator.structure(part)
    assert evaluator.run is not None
    began = time.perf_counter()
    try:
        returned = evaluator.run(pattern, stream, plan)
    except CepbenchError:
        raise
    except Exception as error:
        raise EvaluationError(f"the evaluator {evaluator.name} failed: {error!r}") from error
    seconds = time.perf_counter() - began
    found = tuple(_checked(evaluator.name, returned, branches, len(stream)))
    return Result(
        pattern=pattern,
        plan=plan,
        evaluator=evaluator.name,
        metrics=Metrics(
            seconds=seconds,
            events=len(stream),
            matches=sum(map(len, found)),
            partial_matches_created=math.nan,
            mean_partial_matches=math.nan,
            peak_partial_matches=math.nan,
            peak_buffered_events=math.nan,
            peak_bytes=math.nan,
            comparisons=math.nan,
        ),
        node_table=None,
        found=found if output != "count" else None,
    )


def _checked(
    name: str, returned: Any, branches: Sequence[Pattern], events: int
) -> list[BranchMatches]:
    several = len(branches) > 1
    wanted = list(dict.fromkeys(v for branch in branches for v in branch.positive_names))
    wanted += [BRANCH] * several
    if not isinstance(returned, pd.DataFrame):
        raise EvaluationError(
            f"the evaluator {name} returned {type(returned).__name__}; it has to return a "
            f"DataFrame of the columns {', '.join(wanted)}, a row a match"
        )
    missing = [column for column in wanted if column not in returned]
    if missing:
        raise EvaluationError(
            f"the matches of the evaluator {name} lack the column {', '.join(missing)}; there are "
            f"{', '.join(map(str, returned.columns)) or 'none'}. A column holds the positions of a "
            "variable's events in the stream"
            + (", and branch the number of the branch in pattern.branches()" if several else "")
        )
    parts = []
    for number, branch in enumerate(branches):
        own = returned[returned[BRANCH] == number] if several else returned
        columns = [
            _column(name, variable.name, own[variable.name], variable.kind, events)
            for variable in branch.positive
        ]
        parts.append(BranchMatches(branch.positive_names, [columns]))
    return parts


def _column(name: str, variable: str, values: pd.Series, kind: Kind, events: int) -> Column:
    try:
        if kind is Kind.KLEENE:
            sets = [sorted(int(position) for position in one) for one in values]
            positions = np.array([position for one in sets for position in one], dtype=np.int64)
            offsets = np.concatenate(([0], np.cumsum([len(one) for one in sets]))).astype(np.int64)
            column: Column = SetColumn(offsets, positions)
        else:
            column = positions = values.to_numpy(np.int64)
    except (TypeError, ValueError) as error:
        what = "tuples of positions" if kind is Kind.KLEENE else "positions"
        raise EvaluationError(
            f"the evaluator {name} returned a column {variable} of something else than {what}, "
            f"such as {values.iloc[0]!r}"
        ) from error
    if len(positions) and not (positions.min() >= 0 and positions.max() < events):
        raise EvaluationError(
            f"the evaluator {name} returned a position of {variable} that is none of the stream, "
            f"which has {events:,} events; positions count from 0 in the order of the stream"
        )
    return column
