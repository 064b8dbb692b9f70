"""Compilation of sequences to stacks, the pointers between them, and tables for the construction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np

from cepbench.engines.hierarchical_stacks.kernels import sequences
from cepbench.engines.hierarchical_stacks.kernels.stacks import Graph
from cepbench.engines.plan_runs.compiled import CompiledBranch
from cepbench.engines.plan_runs.kernels.sequences import RULE_KINDS
from cepbench.engines.plan_runs.programs import Codes, ProgramWriter, Rule, rule_tables
from cepbench.engines.plan_runs.sequences import candidate_rules
from cepbench.patterns.concepts import ConceptHierarchy, types_above
from cepbench.patterns.equivalences import equal_values
from cepbench.patterns.expressions import of_any_variable, with_terms
from cepbench.patterns.model import Clause, Expression, Pattern

_Key = TypeVar("_Key")
_Place = TypeVar("_Place")

_Numbered = dict[_Key, tuple[int, set[_Place]]]

#: A key pointer: column of the event that points, column of the event that it leads to.
Label = tuple[int, int]


@dataclass(frozen=True)
class StackLayout:
    """Compiled sequences over stacks that they share."""

    #: The types of the stacks; None for the events of all other types.
    stacks: tuple[str | None, ...]
    hierarchy: ConceptHierarchy | None  #: the concepts above the types
    #: Expressions, and sets of clauses, over a variable without name, each with the stacks whose
    #: events have its value.
    columns: tuple[tuple[Expression, tuple[int, ...]], ...]
    filters: tuple[tuple[tuple[Clause, ...], tuple[int, ...]], ...]
    graph: Graph
    #: By stack: an event is stored if it passes one of these; empty, if all events are.
    keeps: tuple[tuple[int, ...], ...]
    queries: tuple[sequences.Query, ...]

    def stack_of(self, type_name: str | None) -> int:
        """The stack of the events of a type, that of their finest type; -1 for none.

        None is a type that is not in the hierarchy.
        """
        types = (type_name, *types_above(type_name, self.hierarchy), None)
        return next((self.stacks.index(each) for each in types if each in self.stacks), -1)


def stack_layout(branches: Sequence[Pattern], code: Codes) -> StackLayout:
    """Compile SEQs of plain and negated items, none of which comes last."""
    return _Writer(branches, code).layout()


class _Writer:
    """Numbers stacks, columns, filters and labels over all sequences."""

    def __init__(self, branches: Sequence[Pattern], code: Codes) -> None:
        self._branches = branches
        self._code = code
        variables = [leaf for branch in branches for leaf in CompiledBranch.of(branch).leaves]
        self._stacks = tuple(dict.fromkeys(variable.type for variable in variables))
        # A pattern all of whose types have none below them has no hierarchy.
        self._hierarchy = next((b.hierarchy for b in branches if b.hierarchy is not None), None)
        #: Each with its number, and the stacks, or pairs of stacks, whose events have it.
        self._columns: _Numbered[Expression, int] = {}
        self._filters: _Numbered[tuple[Clause, ...], int] = {}
        self._labels: _Numbered[Label | None, tuple[int, int]] = {None: (0, set())}
        self._read_by = cache(self._stacks_below)

    def layout(self) -> StackLayout:
        read = [
            (self._read_by(leaf.type), self._filter(branch, leaf.name))
            for branch in map(CompiledBranch.of, self._branches)
            for leaf in branch.leaves
        ]
        # All events of a stack with one filter pass it.
        keeps = [
            {number for its, number in read if stack in its} for stack in range(len(self._stacks))
        ]
        queries = tuple(
            self._query(branch, keeps) for branch in map(CompiledBranch.of, self._branches)
        )
        return StackLayout(
            stacks=self._stacks,
            hierarchy=self._hierarchy,
            columns=_listed(self._columns),
            filters=_listed(self._filters),
            graph=self._graph(),
            keeps=tuple(() if -1 in its else tuple(sorted(its)) for its in keeps),
            queries=queries,
        )

    def _stacks_below(self, kind: str | None) -> list[int]:
        """The stacks whose events are of a type; of None, all."""
        if kind is None:
            return list(range(len(self._stacks)))
        names: tuple[str, ...] = (kind,)
        if self._hierarchy is not None and kind in self._hierarchy:
            names = self._hierarchy.below(kind)
        return [number for number, name in enumerate(self._stacks) if name in names]

    def _filter(self, branch: CompiledBranch, name: str) -> int:
        """The number of the conditions on a variable alone; -1 for none."""
        alone = branch.filters[name]
        clauses = tuple(sorted({c.with_terms(of_any_variable) for c in alone}, key=str))
        if not clauses:
            return -1
        return _number(self._filters, clauses, self._read_by(branch.variables[name].type))

    def _column(self, expression: Expression, stacks: Iterable[int]) -> int:
        """The number of a value, that of the same expression over any variable."""
        nameless = with_terms(expression, of_any_variable)
        return _number(self._columns, nameless, stacks)

    def _label(self, own: str, other: str, label: Label | None) -> int:
        """The number of a label; the events of one variable's stacks now have its pointers."""
        edges = ((x, y) for x in self._reads[own] for y in self._reads[other])
        return _number(self._labels, label, edges)

    def _query(self, branch: CompiledBranch, keeps: Sequence[set[int]]) -> sequences.Query:
        names, place = branch.pattern.positive_names, branch.leaf_of
        positive = branch.between_positive
        equal = equal_values(positive)
        checks = sorted(
            (
                (min(place[x] for x in (*c.after, *c.before, *c.mentioned)), c)
                for c in branch.checks
            ),
            key=lambda pair: pair[0],
        )
        owners = [*names, *(check.name for _, check in checks)]
        self._reads = {name: self._read_by(branch.variables[name].type) for name in owners}
        self._owner = {name: number for number, name in enumerate(owners)}
        self._programs = ProgramWriter(self._code)
        vias: list[tuple[int, int, int]] = []
        owned: list[dict[int, list[Rule]]] = []
        for item, name in enumerate(names[:-1]):
            joins = [
                clause
                for clause in positive
                if len(clause.variables) > 1 and min(place[x] for x in clause.variables) == item
            ]
            owned.append(self._reached(name, names[item + 1 :], equal, joins, vias))
        vias.append((0, 0, 0))
        owned.append({})
        for _, check in checks:
            after = names[place[check.before[0]] :]
            values = equal_values([*positive, *check.clauses])
            owned.append(self._reached(check.name, after, values, check.clauses, vias))
        filters = [self._filter(branch, name) for name in owners]
        spans, rules = rule_tables(owned, RULE_KINDS)
        reads = [self._reads[name] for name in owners]
        tested = [item for item, _ in checks]
        return sequences.Query(
            items=len(names),
            window=branch.pattern.window.length,
            spans=np.cumsum([0, *map(len, reads)]),
            stacks=np.array([stack for its in reads for stack in its], np.int64),
            vias=np.array(vias, np.int64),
            filters=np.array(
                [
                    -1 if all(keeps[stack] == {number} for stack in its) else number
                    for its, number in zip(reads, filters, strict=True)
                ],
                np.int64,
            ),
            rule_spans=spans,
            rules=rules,
            constants=np.array(self._programs.constants, np.float64),
            afters=np.array(
                [place[check.after[0]] if check.after else -1 for _, check in checks], np.int64
            ),
            tested=np.searchsorted(tested, np.arange(len(names) + 1)),
            used=np.unique(np.concatenate([np.array(its, np.int64) for its in reads])),
        )

    def _reached(
        self,
        name: str,
        later: Sequence[str],
        equal: Sequence[Sequence[tuple[str, Expression]]],
        clauses: Iterable[Clause],
        vias: list[tuple[int, int, int]],
    ) -> dict[int, list[Rule]]:
        """How the events of a variable are reached from those of later ones, and its conditions.

        A keyed pointer is preferred; it may come from an item that is not the next one.
        """
        own, source, label = None, later[0], None
        for other in reversed(later):
            for values in equal:
                mine = [value for variable, value in values if variable == name]
                theirs = [value for variable, value in values if variable == other]
                if mine and theirs:
                    own, source = (mine[0], theirs[0]), other
        if own is not None:
            label = (
                self._column(own[1], self._reads[source]),
                self._column(own[0], self._reads[name]),
            )
        vias.append((self._owner[source], self._label(source, name, label), self._owner[later[0]]))

        return candidate_rules(
            self._programs,
            name,
            clauses,
            lambda value: self._column(value[1], self._reads[value[0]]),
            lambda value: self._owner[value[0]],
            lambda left, right: right[0] == source and own == (left[1], right[1]),
        )

    def _graph(self) -> Graph:
        """The edges of all queries: one from a stack to another for each label."""
        count = len(self._stacks)
        columns = dict.fromkeys(label[1] for label in self._labels if label is not None)
        keys = {column: key for key, column in enumerate(columns)}
        keyed = np.zeros((len(keys), count), bool)
        places = np.full((len(self._labels), count, count), -1, np.int64)
        edges: list[list[tuple[int, int, int, int]]] = [[] for _ in range(count)]
        for label, (number, pairs) in self._labels.items():
            for x, y in sorted(pairs):
                key, column = (-1, -1) if label is None else (keys[label[1]], label[0])
                places[number, x, y] = len(edges[x])
                edges[x].append((len(edges[x]), y, key, column))
                if key >= 0:
                    keyed[key, y] = True
        return Graph(
            edge_spans=np.cumsum([0, *map(len, edges)]),
            edges=np.array([edge for its in edges for edge in its], np.int64).reshape(-1, 4),
            keys=np.array(list(keys), np.int64),
            keyed=keyed,
            places=places,
            key_of=np.array([-1 if k is None else keys[k[1]] for k in self._labels], np.int64),
        )


def _number(known: _Numbered[_Key, _Place], key: _Key, places: Iterable[_Place]) -> int:
    """The number of a key, which now has these places too."""
    number, its = known.setdefault(key, (len(known), set()))
    its.update(places)
    return number


def _listed(known: _Numbered[_Key, _Place]) -> tuple[tuple[_Key, tuple[_Place, ...]], ...]:
    return tuple((key, tuple(its)) for key, (_, its) in known.items())
