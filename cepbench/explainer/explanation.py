"""What :func:`cepbench.explainer.explain.explain` returns: a plan with its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

import pandas as pd

from cepbench.evaluators.result import Metrics
from cepbench.explainer.columns import MARKED, NodeColumn, Row, columns_of
from cepbench.explainer.findings import findings
from cepbench.explainer.page import LEGEND, as_figure, as_table
from cepbench.explainer.text import WIDTH, tree_lines
from cepbench.markup import Html
from cepbench.patterns.model import Pattern
from cepbench.planners.stakes import Stakes
from cepbench.plans.model import AnyPlan


@dataclass(frozen=True, repr=False)
class Explanation:
    """A plan with the estimates and, if it was run, the measurements of its nodes.

    Attributes
    ----------
    pattern : Pattern
    plan : OrderPlan, TreePlan or UnionPlan
        The plan, with the cost that it has by the given statistics.
    evaluator : str
        Name of the evaluator that runs it.
    nodes : DataFrame
        One row a node of the plan's tree in post-order (left, right, node), branch by branch, and
        after each branch's nodes one row a negated variable. Where a number does not exist it is
        NaN. Columns:

        - ``branch``, ``node`` (its number), ``parent`` (the number of the node above, or of the one
          that checks a negated variable; -1 of the root), ``kind`` (``event``, ``set``, ``join``,
          ``negated``), ``variables`` and ``types`` in the order of the plan, ``step`` (of an order
          plan; 0 where it has none);
        - ``arrival_rate``: events of the variable's type per second (or tick), before any filter;
        - ``estimated``: expected partial matches PM, those that coexist within the window, and
          ``log_estimated``, its natural logarithm, which is finite always;
        - ``estimated_rate``: expected rows created per second (or tick);
        - ``cost``, ``log_cost``, ``cost_share``: what the node adds to the plan's cost. An order
          plan's cost has no place for the events that are taken up after the first;

        and only of a plan that was run:

        - ``measured``: partial matches that coexist within the window, averaged over the time in
          which events could arrive. NaN at the root, whose rows are matches and not kept, and where
          events wait to become members of sets;
        - ``q_error``: factor by which ``estimated`` is off, whichever way; at the root that of
          ``estimated_created``;
        - ``estimated_created``, ``created``: rows created in the whole stream; events for a
          ``set`` or ``negated`` node, unless sets are made of the variable alone;
        - ``peak_stored``: most rows stored because they could still be extended;
        - ``comparisons``: pairs of rows whose conditions were tested one by one;
        - ``seconds``, ``time_share``: time spent in the node.
    metrics : Metrics or None
        Of the run, including the clocks at the nodes; None without one.
    remarks : tuple of str
        Why estimates are missing, or that the plan was made for another cost.
    stakes : Stakes or None
        Whether choosing a plan is worth it for this pattern; None without estimates.
    """

    pattern: Pattern
    plan: AnyPlan
    evaluator: str
    nodes: pd.DataFrame
    metrics: Metrics | None = None
    remarks: tuple[str, ...] = ()
    stakes: Stakes | None = None

    def __repr__(self) -> str:
        ran = "not run" if self.metrics is None else f"{self.metrics.matches:,} matches"
        return f"Explanation({self.plan!r}, {ran})"

    def describe(self, width: int = WIDTH) -> str:
        """The plan's tree with its numbers, then findings, and whether choosing a plan matters.

        Lines have up to ``width`` characters; those of very deep trees have more.
        """
        lines = [line for text in self._headlines() for line in wrap(text, width)]
        lines += tree_lines(self._branches(), self._columns(), width)
        sentences = [line for text in self.sentences() for line in wrap(text, width)]
        return "\n".join([*lines, *([""] if sentences else []), *sentences])

    def sentences(self) -> list[str]:
        """Findings of a run and how to read its table; whether choosing a plan is worth it."""
        at_stake = self.stakes.sentences() if self.stakes else []
        if self.metrics is None:
            return at_stake
        once, twice = (f"{limit:g}" for limit in MARKED)
        return [
            *findings(self.nodes.to_dict("records"), self.metrics, self.evaluator),
            f"Off by: × more or ÷ fewer than expected, ! from {once} and !! from {twice} on; "
            "at the root by rows created.",
            *at_stake,
        ]

    def _headlines(self) -> Iterator[str]:
        yield self.plan.describe().splitlines()[0]
        for part in self.plan.parts:
            if part.kind == "order":
                yield f"order: {' → '.join(part.names)}"
        yield from self.remarks

    def _branches(self) -> list[list[Row]]:
        """The rows of each branch."""
        found: list[list[Row]] = [[] for _ in self.plan.parts]
        for row in self.nodes.to_dict("records"):
            found[row["branch"]].append(row)
        return found

    def _columns(self) -> tuple[NodeColumn, ...]:
        unit = "second" if self.pattern.window.is_datetime else "tick"
        return columns_of(unit, measured=self.metrics is not None)

    def _repr_html_(self) -> str:
        branches = self._branches()
        ran = self.metrics is not None
        figures = [
            as_figure(
                part.tree, table, f"branch {number}" if len(branches) > 1 else "", measured=ran
            )
            for number, (part, table) in enumerate(zip(self.plan.parts, branches, strict=True))
        ]
        return str(
            _PAGE(
                captions=list(self._headlines()),
                figures=figures,
                sentences=[*[LEGEND] * ran, *self.sentences()],
                table=as_table(branches, self._columns()),
            )
        )


_PAGE = Html(
    """{% macro paragraph(lines) %}
{% if lines %}<p>{% for line in lines %}{{ line }}{% if not loop.last %}<br/>{% endif %}{% endfor %}</p>{% endif %}
{% endmacro %}
<div class="cep-explanation">{{ paragraph(captions) }}{{ figures | join }}{{ paragraph(sentences) }}
{{ table }}</div>"""
)
