"""The matches of a query by the concepts of their events, rolled up to every level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import pandas as pd

from cepbench.arguments import elements, whole
from cepbench.errors import EvaluationError, did_you_mean
from cepbench.patterns.model import Kind, Pattern, Variable
from cepbench.streams.event_stream import EventStream


def match_cube(
    pattern: Pattern, positions: pd.DataFrame, stream: EventStream, levels: Any
) -> pd.DataFrame:
    """Matches, given by positions in a stream, by concept; see
    :meth:`cepbench.engines.runs.workload_result.WorkloadMatches.cube`.
    """
    wanted = _wanted(pattern, stream, levels)
    own = pd.DataFrame({name: stream.type_codes[positions[name].to_numpy(int)] for name in wanted})
    # The matches of each combination of own types are counted once, and these counts added up.
    finest = own.groupby([*wanted], as_index=False).size()
    tables = []
    for chosen in product(*wanted.values()):
        labels = {
            name: _labels(stream, level, finest[name])
            for name, level in zip(wanted, chosen, strict=True)
        }
        table = finest.assign(**labels).groupby([*wanted], as_index=False)["size"].sum()
        for name, level in zip(wanted, chosen, strict=True):
            table[f"{name} level"] = level
        tables.append(table)
    columns = [column for name in wanted for column in (f"{name} level", name)]
    found = pd.concat(tables, ignore_index=True)
    return found.rename(columns={"size": "matches"})[[*columns, "matches"]]


def _labels(stream: EventStream, level: int, codes: pd.Series) -> list[str]:
    """What types are of at a level, by their codes."""
    names = stream.type_names
    known = stream.hierarchy
    return [names[c] if known is None else known.at_level(names[c], level) for c in codes]


def _wanted(pattern: Pattern, stream: EventStream, levels: Any) -> dict[str, list[int]]:
    """The levels of each variable, ascending; others are errors."""
    branches = pattern.structure.alternatives()
    single = {
        variable.name: variable
        for variable in pattern.variables
        if variable.kind is Kind.PLAIN and all(variable in its.variables() for its in branches)
    }
    if not single:
        raise EvaluationError("no variable of the query is bound to one event by every match")
    if not isinstance(levels, Mapping):
        levels = dict.fromkeys(single, levels)
    if not levels:
        raise EvaluationError("levels name no variable; leave them out for all levels of all")
    found = {}
    for name, given in levels.items():
        if name not in single:
            raise EvaluationError(
                f"levels of {name!r}: every match binds {', '.join(single)} to one event"
                f"{did_you_mean(str(name), single)}"
            )
        found[name] = _levels(single[name], pattern, stream, given)
    return found


def _levels(variable: Variable, pattern: Pattern, stream: EventStream, given: Any) -> list[int]:
    what = f"levels of {variable.name!r}"
    if given is not None:
        listed: Iterable[Any] = [given]
        if not isinstance(given, int):
            listed = elements(given, what, "[0, 1]", EvaluationError)
        chosen = {whole(its, f"each of the {what}", EvaluationError, least=0) for its in listed}
        if not chosen:
            raise EvaluationError(f"the {what} are none; leave them out for all levels")
        return sorted(chosen)
    known = stream.hierarchy
    types = pattern.types_of(variable) or stream.type_names
    depths = [0 if known is None or its not in known else known.level(its) for its in types]
    # From that of the item's type on; of an item of any type, from the roots on.
    return [*range(0 if variable.type is None else depths[0], max(depths, default=0) + 1)]
