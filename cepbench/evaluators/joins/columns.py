"""Which column of a node's rows holds what."""

from __future__ import annotations

from cepbench.evaluators.joins.nodes import Key, Node, PlannedNodes
from cepbench.evaluators.joins.programs import Derived


def integer_columns(
    node: Node, planned: PlannedNodes, *, ranks: bool
) -> tuple[dict[Key, int], int]:
    """The integer columns of a node, and how many there are.

    Columns 0 and 1 hold the earliest and the latest timestamp of a row, and so the timestamp of a
    variable that comes before or after all others; of an event 0 holds its timestamp and 1 its
    position.

    Parameters
    ----------
    node : Node
    planned : PlannedNodes
    ranks : bool
        Whether events have ranks of their own; else their positions are their ranks.

    Returns
    -------
    columns : dict of Key to int
        By ``earliest``, ``latest``, ``position``, ``rank`` or ``start`` (of a set, followed by its
        size) and a variable's name.
    count : int
    """
    columns: dict[Key, int] = {}
    if node.is_leaf:
        (name,) = node.variables
        columns = {("earliest", name): 0, ("latest", name): 0, ("position", name): 1}
        columns["rank", name] = 2 if ranks else 1
        return columns, 3 if ranks else 2
    count = 2
    before = planned.before
    for name in node.variables:
        others = [other for other in node.variables if other != name]
        is_first = all((name, other) in before for other in others)
        is_last = all((other, name) in before for other in others)
        ends = {key for key in node.times if key[1] == name}
        if name not in planned.kleene and (is_first or is_last or ends):
            # One event is both ends.
            column = 0 if is_first else (1 if is_last else count)
            columns["earliest", name] = columns["latest", name] = column
            count = max(count, column + 1)
            continue
        if is_first:
            columns["earliest", name] = 0
        if is_last:
            columns["latest", name] = 1
        for key in sorted(ends - columns.keys()):
            columns[key] = count
            count += 1
    for name in node.variables:
        if name in node.positions or (name in node.ranks and not ranks):
            columns["position", name] = count
            if not ranks:
                columns["rank", name] = count
            count += 1
        if name in node.ranks and ranks:
            columns["rank", name] = count
            count += 1
        if name in node.sets:
            columns["start", name] = count
            count += 2
    return columns, count


def float_columns(node: Node) -> dict[Derived, int]:
    """The float columns of a node."""
    ordered = sorted(node.values, key=lambda value: (value[0], str(value[1])))
    return {value: column for column, value in enumerate(ordered)}
