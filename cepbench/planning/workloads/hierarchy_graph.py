"""The hierarchical pattern graph of a workload, and its instance stacks [liu2011]_, section III.

These are the definitions, made visible; the evaluator ``hierarchical-stacks`` has them as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cepbench.errors import HierarchyError, UnsupportedPatternError
from cepbench.patterns.concepts import ConceptHierarchy, types_above
from cepbench.patterns.model import Kind, Operator, Pattern
from cepbench.patterns.structure import ANY_TYPE
from cepbench.planning.workloads.refinement import is_at_or_above
from cepbench.streams.event_stream import EventStream
from cepbench.streams.given import stream_from

if TYPE_CHECKING:
    import pandas as pd


class Label(NamedTuple):
    """What an edge is for in a query."""

    query: str
    #: The places of two items of the query, from 0, negated ones included.
    later: int
    earlier: int
    #: {"+", "-"}. ``-`` if one of the items is negated: the edge is to find forbidden events.
    sign: str


class HierarchyGraph:
    """The hierarchical pattern graph of queries: how their event types follow each other.

    Source: [liu2011]_, section III-A.

    Differs from [liu2011]_: a label names items besides the query. With queries alone, T → A → D → G
    is a path of q7 = SEQ(G, ¬D, A, T) in Figure 4, and a type that a query has twice makes others.

    Raises UnsupportedPatternError if a query is no SEQ.
    """

    def __init__(
        self, patterns: Mapping[str, Pattern], hierarchy: ConceptHierarchy | None = None
    ) -> None:
        self._hierarchy = hierarchy
        self._window = max(pattern.window.length for pattern in patterns.values())
        self._order = next(iter(patterns.values())).order
        #: The event types of the queries (Rule 1); None for any type.
        self.nodes = tuple(dict.fromkeys(v.type for p in patterns.values() for v in p.variables))
        below = {
            concept: [node for node in self.nodes if is_at_or_above(concept, node, hierarchy)]
            for concept in self.nodes
        }
        #: The edges (Rules 2 and 3), each from a node to that of a type that is before it.
        self.labels: dict[tuple[str | None, str | None], list[Label]] = {}
        for name, pattern in patterns.items():
            types = [variable.type for variable in pattern.variables]
            for label in _neighbours(name, pattern):
                for later in below[types[label.later]]:
                    for earlier in below[types[label.earlier]]:
                        self.labels.setdefault((later, earlier), []).append(label)

    def table(self) -> pd.DataFrame:
        """A row an edge: ``later``, ``earlier``, ``queries``, and ``labels``, a tuple of Label."""
        import pandas as pd

        rows = [
            (
                *map(_text, edge),
                tuple(dict.fromkeys(label.query for label in labels)),
                tuple(labels),
            )
            for edge, labels in self.labels.items()
        ]
        return pd.DataFrame(rows, columns=["later", "earlier", "queries", "labels"])

    def stacks(self, stream: EventStream) -> pd.DataFrame:
        """The instance stacks at the end of a stream [liu2011]_, sections III-B and III-C.

        Events are purged that are more than the longest window of the queries before the last event of
        the stream, of whatever type that is. A row an event of a type of the queries that is stored:
        ``position``; ``stack``, the most specific such type, in whose stack it is stored, and in no other;
        ``pointers``, a dict with the stack of each outgoing edge of the graph → the position of its last
        event with a smaller timestamp (under ORDER BY arrival, before it), or None if there is none or it
        is purged.

        Raises StreamError if it is no stream; HierarchyError if it has another hierarchy than the
        queries.
        """
        import pandas as pd

        stream = stream_from(stream)
        if stream.hierarchy not in (None, self._hierarchy):
            raise HierarchyError(
                "the stream has another concept hierarchy than the workload; make both with the "
                "same one, or leave out that of the stream: stream.with_hierarchy(None)"
            )
        stack_of = [self._stack_of(own) for own in stream.type_names]
        codes = np.array([-1 if s is None else s for s in stack_of], np.int64)[stream.type_codes]
        if len(stream):
            oldest = stream.timestamps[-1] - self._window
            codes[: np.searchsorted(stream.timestamps, oldest)] = -1
        positions = stream.whole_positions()
        places = stream.timestamps if self._order == "time" else np.arange(len(stream))
        rows_of = {node: np.flatnonzero(codes == code) for code, node in enumerate(self.nodes)}
        columns: dict[int, dict[str, int | None]] = {}
        for node, rows in rows_of.items():
            columns |= {row: {} for row in rows.tolist()}
            for earlier in (e for later, e in self.labels if later == node):
                below = rows_of[earlier]
                ends = np.searchsorted(places[below], places[rows], side="left")
                for row, end in zip(rows.tolist(), ends.tolist(), strict=True):
                    last = int(positions[below[end - 1]]) if end else None
                    columns[row][_text(earlier)] = last
        stored = [
            (int(positions[row]), _text(self.nodes[codes[row]]), columns[row])
            for row in np.flatnonzero(codes >= 0).tolist()
        ]
        return pd.DataFrame(stored, columns=["position", "stack", "pointers"])

    def _stack_of(self, own: str) -> int | None:
        """The number of the most specific node that events of a type are of."""
        types = (own, *types_above(own, self._hierarchy), None)
        return next((self.nodes.index(type) for type in types if type in self.nodes), None)


def _text(node: str | None) -> str:
    return ANY_TYPE if node is None else node


def _neighbours(name: str, pattern: Pattern) -> Iterator[Label]:
    """Rule 2: neighbouring positive items, and each negated item with those beside it."""
    if pattern.structure.has(Operator.AND) or len(pattern.structure.alternatives()) > 1:
        raise UnsupportedPatternError(
            f"query {name!r}: the hierarchical pattern graph is of sequences; write it as SEQ, or "
            "leave it out of the workload"
        )
    before: int | None = None
    between: list[int] = []
    for place, variable in enumerate(pattern.variables):
        if variable.kind is Kind.NEGATED:
            between.append(place)
            if before is not None:
                yield Label(name, place, before, "-")
            continue
        for negated in between:
            yield Label(name, place, negated, "-")
        if before is not None:
            yield Label(name, place, before, "+")
        before, between = place, []
