"""The tables of branches that run as one plan: their nodes numbered through, and rules of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from cepbench.engines.plan_runs.nodes import PlannedNodes, Tree
from cepbench.engines.plan_runs.programs import Codes, ProgramWriter, Rule
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.tree import Placements


class PlanTables:
    """Numbers the nodes of all branches: leaves, checks of negated variables, inner nodes.

    Several branches have equal windows, and consume each other's events: an event is in at most one
    match of the whole pattern, and positions of matches are compared in the order of ``written``, all
    variables of the pattern. Trees are over exactly the positive variables of their branches.
    """

    columns: ClassVar[int]  #: of the table of nodes
    #: Whether checks have rows in it; else only rules, behind those of the nodes.
    has_checks: ClassVar[bool] = False

    def __init__(
        self,
        branches: Sequence[Pattern],
        trees: Sequence[Tree],
        placements: Sequence[Placements],
        written: Sequence[str],
        code: Codes,
        *,
        positions: bool,
    ) -> None:
        self.planned = [
            PlannedNodes(branch, tree, positions=positions, placements=its)
            for branch, tree, its in zip(branches, trees, placements, strict=True)
        ]
        self.written = list(written)
        self.programs = ProgramWriter(code)
        sizes = np.array(
            [
                (part.inner, self.has_checks * part.checks, len(part.nodes) - part.inner)
                for part in self.planned
            ]
        ).T
        #: The first leaf, check and inner node of each branch, shape (3, branches).
        self.firsts = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
        total = int(sizes.sum())
        self.leaves = int(sizes[0].sum())
        self.table = np.full((total, self.columns), -1, np.int64)
        self.owned: list[dict[int, list[Rule]]] = [{} for _ in range(total)]
        self.names: list[tuple[str, ...]] = [()] * total

    @property
    def consuming(self) -> bool:
        """Whether an event may be in one match only."""
        return self.planned[0].pattern.strategy.name == "consuming"

    def place(self, branch: int, number: int) -> int:
        """The number in the tables of one of a branch's nodes."""
        part, (leaf, _, inner) = self.planned[branch], self.firsts[:, branch].tolist()
        return leaf + number if number < part.inner else inner + number - part.inner

    def shared(self) -> dict[str, Any]:
        """The fields of a layout that do not depend on the engine."""
        branches = [part.branch for part in self.planned]
        return {
            "leaves": tuple(leaf for branch in branches for leaf in branch.leaves),
            "filters": tuple(its for branch in branches for its in branch.filters.values()),
            "nodes": tuple(self.names),
            "branches": tuple(
                tuple(self.place(branch, number) for number in range(len(part.nodes)))
                for branch, part in enumerate(self.planned)
            ),
        }
