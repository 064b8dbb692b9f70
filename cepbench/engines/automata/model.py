"""The automaton NFA^b: a kind of plan, frozen data that compares by value.

Source: [agrawal2008]_, section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from cepbench.engines.automata.drawing import automaton_diagram
from cepbench.engines.automata.nondeterminism import Nondeterminism, nondeterminism
from cepbench.engines.automata.states import Edge, Formula, State
from cepbench.engines.automata.vector import Column, columns_of, masks_of, vector_of
from cepbench.errors import PlanError
from cepbench.markup import Html
from cepbench.patterns.model import Aggregate, Attribute, Pattern, Variable
from cepbench.planning.plans.model import AnyPlan, Plan
from cepbench.planning.plans.tree import Tree, left_deep


@dataclass(frozen=True, repr=False)
class Automaton(Plan):
    """A compiled pattern without OR, see :func:`cepbench.automaton`.

    Attributes
    ----------
    pattern : Pattern
        With its negated variables, which the automaton leaves out.
    states : tuple of State
        In a line, the final one last.
    edges : tuple of Edge
        By state: begin, or take and proceed; then ignore.
    push_window, peek : bool
        Steps 5 and 6 of compilation.
    """

    pattern: Pattern
    states: tuple[State, ...]
    edges: tuple[Edge, ...]
    push_window: bool = True
    peek: bool = True
    kind: ClassVar[str] = "automaton"

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The positive variables, in the order in which a run binds them."""
        return tuple(dict.fromkeys(s.variable for s in self.states if s.variable is not None))

    @property
    def tree(self) -> Tree[str]:  # type: ignore[override]
        """The variables, bound from left to right."""
        return left_deep(self.names)

    @property
    def forbidden(self) -> tuple[Variable, ...]:
        """The negated variables with forbid edges; matches are to be filtered by the others."""
        names = [
            e.formula.event.variable for e in self.edges if e.kind == "forbid" and e.formula.event
        ]
        return tuple(variable for variable in self.pattern.negated if variable.name in names)

    @property
    def shape(self) -> dict[str, Any]:
        """What it is compiled from."""
        return {
            "pattern": str(self.pattern), "push_window": self.push_window, "peek": self.peek
        }  # fmt: skip

    @property
    def text(self) -> str:
        """``a[1], a[i], b, F``, and the steps that were left out."""
        left_out = {"without step 5": self.push_window, "without step 6": self.peek}
        states = ", ".join(state.name for state in self.states)
        return "; ".join([states, *(step for step, is_done in left_out.items() if not is_done)])

    def nodes(self) -> list[tuple[str, ...]]:
        """The variables of which a run has events after each one."""
        return [self.names[: k + 1] for k in range(len(self.names))]

    def edge(self, state: int, kind: str) -> Edge:
        """The edge of a kind at a state.

        Raises
        ------
        PlanError
            If the state has none.
        """
        for edge in self.edges:
            if (edge.state, edge.kind) == (state, kind):
                return edge
        raise PlanError(f"state {self.states[state].name} has no {kind} edge")

    def with_formulas(self, formula: Callable[[Edge], Formula]) -> Automaton:
        """The automaton with another formula on each edge."""
        edges = tuple(replace(edge, formula=formula(edge)) for edge in self.edges)
        return replace(self, edges=edges)

    @cached_property
    def vector(self) -> tuple[Column, ...]:
        """The columns of the vector V of a run [agrawal2008]_, Figure 5a."""
        return vector_of(self.states, self.edges)

    @cached_property
    def masks(self) -> np.ndarray:
        """The columns that formulas at each state read [agrawal2008]_, Figure 6b.

        Bool, shape (states, columns). Runs in a state are equivalent if they agree on the columns
        of this state and those after it, ``np.logical_or.accumulate(masks[::-1])[::-1]``.
        """
        return masks_of(self.states, self.edges, self.vector)

    def columns_of(self, formula: Formula, term: Attribute | Aggregate) -> tuple[int, ...]:
        """The columns of V from which a formula takes a term; none for the current event's.

        An average is taken from sum and count.
        """
        return tuple(map(self.vector.index, columns_of(self.states, formula, term)))

    def table(self) -> pd.DataFrame:
        """A row for each edge: state, edge, target, formula, consumes, writes."""
        return pd.DataFrame(
            [
                {
                    "state": self.states[edge.state].name,
                    "edge": edge.kind,
                    "target": self.states[edge.target].name,
                    "formula": str(edge.formula),
                    "consumes": edge.consumes,
                    "writes": edge.writes,
                }
                for edge in self.edges
            ]
        )

    def columns(self) -> pd.DataFrame:
        """A row for each column of V: state, attribute, operation, and the masks by state."""
        rows = [
            {
                "state": self.states[column.state].name,
                "attribute": column.attribute,
                "operation": column.operation,
            }
            for column in self.vector
        ]
        found = pd.DataFrame(rows, columns=["state", "attribute", "operation"])
        for state, mask in zip(self.states[:-1], self.masks, strict=False):
            found[f"read at {state.name}"] = mask
        return found

    def __repr__(self) -> str:
        options = "".join(
            f", {name}=False" for name in ("push_window", "peek") if not getattr(self, name)
        )
        return f"automaton({str(self.pattern)!r}{options})"

    def describe(self) -> str:
        """The edges with their formulas, one a line."""
        rows = [
            (self.states[e.state].name, e.kind, f"to {self.states[e.target].name}", str(e.formula))
            for e in self.edges
        ]
        widths = [max(map(len, cells)) for cells in list(zip(*rows, strict=True))[:-1]]
        lines = [
            "  ".join(
                [*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]
            )
            for row in rows
        ]
        return "\n".join([f"automaton {self.text}", *(f"  {line}" for line in lines)])

    def to_dict(self) -> dict[str, Any]:
        """States, edges, columns of V and masks, JSON-serializable."""
        return {
            **self.shape,
            "states": [state.name for state in self.states],
            "edges": self.table().to_dict("records"),
            "vector": self.columns().iloc[:, :3].to_dict("records"),
            "masks": self.masks.astype(int).tolist(),
        }

    def nondeterminism(self) -> Nondeterminism:
        """Where runs may split, and the bound on their number."""
        return nondeterminism(self.states, self.edges, self.pattern.hierarchy)

    def svg(self) -> str:
        """A drawing in the style of [agrawal2008]_, Figure 2, with formulas as tooltips."""
        return str(automaton_diagram(self.states, self.edges))

    def _repr_html_(self) -> str:
        rows = self.table().to_dict("records")
        drawing = automaton_diagram(self.states, self.edges)
        return str(_PAGE(pattern=self.pattern, drawing=drawing, rows=rows))

    def labels(self) -> list[str]:
        """No estimates."""
        return [""] * (2 * len(self.names) - 1)


def check_compiled(pattern: Pattern, plan: AnyPlan) -> None:
    """Check that automata are those of a pattern.

    A PlanError if one was compiled from another pattern.
    """
    for branch, part in zip(pattern.iter_branches(), plan.parts, strict=True):
        if not isinstance(part, Automaton):
            continue
        # Of RETURN and of the hierarchy, which is the stream's, the automaton says nothing.
        its, due = (replace(p, returns=(), hierarchy=None) for p in (part.pattern, branch))
        if its != due:
            raise PlanError(
                f"the automaton was compiled from {part.pattern}, not from {branch}; "
                "cep.automaton(pattern) compiles the one to evaluate"
            )


_PAGE = Html(
    """<figure class="cep-plan"><figcaption>automaton of {{ pattern }}</figcaption>{{ drawing }}
<table class="cep-automaton"><tr><th>state</th><th>edge</th><th>to</th>
<th style="text-align:left">formula</th></tr>
{% for row in rows %}
<tr><td>{{ row.state }}</td><td>{{ row.edge }}</td><td>{{ row.target }}</td>
<td style="text-align:left">{{ row.formula }}</td></tr>
{% endfor %}</table></figure>"""
)
