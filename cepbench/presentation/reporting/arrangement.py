"""The order in which a page shows the cells of its notebook: the figure first, how it was made last."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nbformat import NotebookNode

#: Tags of cells: the heading of a section on how results were made, up to the next heading of its
#: level; a cell of code that is on the method, too, such as imports; and the chart or drawing that a page
#: begins with, by default the first chart.
METHOD, FOLD, LEAD = "method", "fold", "lead"

_TITLE = re.compile(r"\A\s*#\s[^\n]*\n*")
_SECTION = re.compile(r"^##\s", re.MULTILINE)


def arranged(
    cells: Sequence[NotebookNode], charts: Sequence[int], twins: Sequence[int]
) -> tuple[list[NotebookNode], list[NotebookNode], list[NotebookNode]]:
    """Sort prepared cells by where they stand on a page that shows results; no cell stands twice.

    First are a chart and its twin for print, if there is one, or a drawing; then the sections, without those on the
    method; last what is below the title, and the sections and cells on the method. ``charts`` and
    ``twins`` are the places of the cells that show a chart, and of those that show nothing but charts
    drawn for print.
    """
    tagged = [place for place, cell in enumerate(cells) if LEAD in tags_of(cell)]
    lead = [*(tagged or charts)[:1]]
    while lead and lead[-1] + 1 in twins:
        lead.append(lead[-1] + 1)
    method: list[NotebookNode] = []
    sections: list[NotebookNode] = []
    begins = [cell.cell_type == "markdown" and bool(_SECTION.search(cell.source)) for cell in cells]
    is_method = any(begins)  # up to the first section
    for place, cell in enumerate(cells):
        if begins[place]:
            is_method = METHOD in tags_of(cell)
        if place not in lead:
            (method if is_method or FOLD in tags_of(cell) else sections).append(cell)
    return [cells[place] for place in lead], sections, method


def tags_of(cell: NotebookNode) -> Sequence[str]:
    """The tags of a cell."""
    found: Sequence[str] = cell.metadata.get("tags", [])
    return found


def without_title(cell: NotebookNode) -> None:
    """Take the heading of a page from the beginning of a cell."""
    cell.source = _TITLE.sub("", cell.source, count=1)
