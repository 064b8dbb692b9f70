"""An explanation as text and in a notebook: headlines, pictures, findings, and a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from textwrap import wrap
from typing import ClassVar, NamedTuple

from cepbench.diagram import Diagram
from cepbench.engines.runs.result import Metrics
from cepbench.engines.runs.work import Work
from cepbench.markup import Html, shortened
from cepbench.presentation.explainer.columns import Column, Row

#: Characters of a line by default.
WIDTH = 100

_LEAST_LABEL = 16


class Content(NamedTuple):
    """What a report shows besides its sentences."""

    headlines: list[str]
    columns: Sequence[Column]
    #: Of each branch.
    rows: Sequence[Sequence[Row]]
    #: Pictures with their captions.
    figures: Iterator[tuple[str, Diagram]]


class Report:
    """Base class of explanations: their table as text and as HTML."""

    metrics: Metrics | None
    #: Key to the pictures of a run.
    legend: ClassVar[str] = ""

    def sentences(self) -> list[str]:
        """What was found, and how to read the table."""
        raise NotImplementedError

    def _content(self) -> Content:
        raise NotImplementedError

    def _work(self) -> list[str]:
        """What the run did, in the papers' words, if the engine says."""
        work = self.metrics.work if self.metrics else Work()
        return [f"Work: {work.text()}."] if work else []

    def describe(self, width: int = WIDTH) -> str:
        """Headlines, the table and the sentences, in lines of up to ``width`` characters.

        Only labels are cut: very deep trees and wide tables have longer lines.
        """
        sentences, content = wrapped(self.sentences(), width), self._content()
        return "\n".join(
            [
                *wrapped(content.headlines, width),
                *table_lines(content.columns, content.rows, width),
                *([""] if sentences else []),
                *sentences,
            ]
        )

    def _repr_html_(self) -> str:
        headlines, columns, branches, figures = self._content()
        legend = [self.legend] if self.legend and self.metrics is not None else []
        return str(
            _PAGE(
                headlines=headlines,
                figures=list(figures),
                sentences=[*legend, *self.sentences()],
                columns=columns,
                groups=[(columns[first].group, last - first) for first, last in _groups(columns)],
                branches=[
                    [[(c.is_left, c.style(row), c.shown(row)) for c in columns] for row in rows]
                    for rows in branches
                ],
            )
        )


_PAGE = Html(
    """{% macro paragraph(lines) %}
{% if lines %}<p>{% for line in lines %}{{ line }}{% if not loop.last %}<br/>{% endif %}{% endfor %}</p>{% endif %}
{% endmacro %}
{% macro align(is_left) %}text-align:{{ "left" if is_left else "right;padding-left:1em;white-space:nowrap" }}{% endmacro %}
<div class="cep-explanation">{{ paragraph(headlines) }}
{% for caption, drawing in figures %}
<figure style="margin:0.5em 0">
{% if caption %}<figcaption>{{ caption }}</figcaption>{% endif %}
{{ drawing }}</figure>{% endfor %}
{{ paragraph(sentences) }}
<table class="dataframe"><thead>
{% if groups | length > 1 %}
<tr>{% for group, size in groups %}
<th colspan="{{ size }}" style="text-align:right">{{ group }}</th>{% endfor %}</tr>
{% endif %}
<tr>{% for column in columns %}
<th style="{{ align(column.is_left) }}">{{ column.name or "node" }}</th>{% endfor %}</tr>
</thead><tbody>
{% for rows in branches %}
{% if branches | length > 1 %}
<tr><th colspan="{{ columns | length }}" style="text-align:left">branch {{ loop.index0 }}</th></tr>
{% endif %}
{% for cells in rows %}
<tr>{% for is_left, style, text in cells %}
<td style="{{ align(is_left) }}{{ style }}">{{ text }}</td>{% endfor %}</tr>
{% endfor %}
{% endfor %}
</tbody></table></div>"""
)


def wrapped(texts: Iterable[str], width: int) -> list[str]:
    """Sentences as lines of up to ``width`` characters."""
    return [line for text in texts for line in wrap(text, width, break_on_hyphens=False)]


def table_lines(
    columns: Sequence[Column], branches: Sequence[Sequence[Row]], width: int
) -> Iterator[str]:
    """The headings, then the rows of each branch; labels are cut to a ``width`` of the lines."""
    cells = [[[column.shown(row) for column in columns] for row in rows] for rows in branches]
    widths = [
        max(len(column.name), *(len(line[k]) for lines in cells for line in lines)) + 2 * (k > 0)
        for k, column in enumerate(columns)
    ]
    several = len(branches) > 1
    if several:
        widths[0] = max(widths[0], len(f"branch {len(branches) - 1}"))
    groups = list(_groups(columns))
    for first, last in groups:
        # A group's heading may be longer than its columns.
        widths[first] += max(0, len(columns[first].group) + 2 - sum(widths[first:last]))
    if columns[0].is_label:
        widths[0] = max(min(widths[0], width - sum(widths[1:])), _LEAST_LABEL)

    def line(texts: Sequence[str]) -> str:
        first, *others = texts
        if columns[0].is_label:
            # Below many levels a label may stand out.
            rail = len(first) - len(first.lstrip("│├└ "))
            first = shortened(first, max(widths[0], rail + _LEAST_LABEL))
        aligned = (
            f"  {text:<{wide - 2}}" if column.is_left else f"{text:>{wide}}"
            for text, column, wide in zip(others, columns[1:], widths[1:], strict=True)
        )
        return f"{first:<{widths[0]}}{''.join(aligned)}".rstrip()

    if len(groups) > 1:
        yield "".join(
            f"{columns[first].group:>{sum(widths[first:last])}}" for first, last in groups
        ).rstrip()
    yield line([column.name for column in columns])
    for number, lines in enumerate(cells):
        if several:
            yield f"branch {number}"
        yield from map(line, lines)


def _groups(columns: Sequence[Column]) -> Iterator[tuple[int, int]]:
    """The range of columns of each group."""
    last = 0
    for _, its in groupby(columns, key=lambda column: column.group):
        first, last = last, last + len([*its])
        yield first, last
