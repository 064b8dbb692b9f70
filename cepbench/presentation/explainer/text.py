"""An explanation as text: wrapped sentences, tables, and the tree with aligned columns beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from cepbench.markup import shortened
from cepbench.presentation.explainer.columns import NodeColumn, Row, listed

#: Characters of a line by default.
WIDTH = 100

_LEAST_LABEL = 16


def wrapped(texts: Iterable[str], width: int) -> list[str]:
    """Sentences as lines of up to ``width`` characters."""
    return [line for text in texts for line in wrap(text, width)]


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table with aligned columns: the first two to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            f"{cell:<{wide}}" if number < 2 else f"{cell:>{wide}}"
            for number, (cell, wide) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def tree_lines(
    branches: Sequence[Sequence[Row]], columns: Sequence[NodeColumn], width: int = WIDTH
) -> Iterator[str]:
    """The headings, then each branch's tree from its root down, of the rows of each branch.

    Lines have up to ``width`` characters; only very deep trees have more.
    """
    rows = [list(labelled(table)) for table in branches]
    cells = [
        [[column.shown(table[number]) for column in columns] for number, _, _ in its]
        for table, its in zip(branches, rows, strict=True)
    ]
    widths = [
        max(len(column.name), *(len(line[k]) for its in cells for line in its)) + 2
        for k, column in enumerate(columns)
    ]
    for first, last in groups_of(columns):
        # A group's heading may be longer than its columns.
        short_of = len(columns[first].group) + 2 - sum(widths[first:last])
        widths[first] += max(0, short_of)
    longest = max(len(rail) + len(label) for its in rows for _, rail, label in its)
    room = max(min(longest, width - sum(widths)), _LEAST_LABEL)
    yield (
        " " * room
        + "".join(
            f"{columns[first].group:>{sum(widths[first:last])}}"
            for first, last in groups_of(columns)
        ).rstrip()
    )
    yield " " * room + "".join(
        f"{column.name:>{width}}" for column, width in zip(columns, widths, strict=True)
    )
    for number, (its, lines) in enumerate(zip(rows, cells, strict=True)):
        if len(branches) > 1:
            yield f"branch {number}"
        for (_, rail, label), line in zip(its, lines, strict=True):
            shown = rail + shortened(label, max(room - len(rail), _LEAST_LABEL))
            texts = "".join(f"{text:>{width}}" for text, width in zip(line, widths, strict=True))
            yield f"{shown:<{room}}{texts}"


def labelled(table: Sequence[Row]) -> Iterator[tuple[int, str, str]]:
    """Number, indentation (as tree lines) and label of each node of a branch, from the root down."""
    children: dict[int, list[int]] = {}
    for number, row in enumerate(table):
        children.setdefault(row["parent"], []).append(number)
    # A stack, since the tree of an order over hundreds of variables is too deep for recursion.
    waiting = [(root, "", "") for root in children[-1]]
    while waiting:
        number, rail, below = waiting.pop()
        yield number, rail, _label(table[number])
        its = children.get(number, [])
        for place, child in reversed(list(enumerate(its))):
            is_last = place == len(its) - 1
            waiting.append(
                (child, below + ("└ " if is_last else "├ "), below + ("  " if is_last else "│ "))
            )


def _label(row: Row) -> str:
    text = {
        "event": f"{row['variables']}: {row['types']}",
        "set": f"{row['variables']}: sets of {row['types']}",
        "negated": f"{row['variables']}: no {row['types']}",
        "group": f"{row['variables']}: group of {row['types']}",
        "join": listed(row["variables"]),
    }[row["kind"]]
    text = f"{row['operator']} {text}" if row["operator"] else text
    return f"{row['step']}. {text}" if row["step"] else text


def groups_of(columns: Sequence[NodeColumn]) -> Iterator[tuple[int, int]]:
    """The range of columns of each group."""
    first = 0
    for k in range(1, len(columns) + 1):
        if k == len(columns) or columns[k].group != columns[first].group:
            yield first, k
            first = k
