"""Matches as a graph: counted, sampled and enumerated without a list of them."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from cepbench.arguments import seed as seed_from
from cepbench.arguments import whole
from cepbench.engines.runs.arrow_matches import arrow_table
from cepbench.engines.runs.graph_drawing import graph_diagram
from cepbench.engines.runs.graph_matches import graph_chunks
from cepbench.engines.runs.kernels import graph as graphs
from cepbench.engines.runs.matches import BranchMatches, joined, matches_of_rows, no_matches
from cepbench.engines.runs.returned import frame_of, returned_table, returned_values, values_suffice
from cepbench.engines.runs.rooted_graph import RootedGraph
from cepbench.errors import EvaluationError
from cepbench.kernels.batches import FIRST_CHUNK
from cepbench.patterns.model import Pattern
from cepbench.seeds import rng_for
from cepbench.streams.event_stream import EventStream

#: Matches enumerated at once, so that the first ones are there soon.
_ENUMERATED = 64

#: The most nodes of a drawing.
DRAWN_NODES = 200


class CompressedMatches:
    """Matches as a graph, of one or several batches of a stream.

    Parameters
    ----------
    parts : sequence of (int, RootedGraph)
        The number of a branch in ``pattern.branches()``, and matches of it.
    places : ndarray of int64, optional
        ``places[position]`` is the position to show.

    Notes
    -----
    A node is an event after the histories of its predecessor, or a union of histories; a match is a
    history that ends in a root. Source: the tECS of CORE [bucchi2022]_.
    """

    def __init__(
        self,
        pattern: Pattern,
        parts: Sequence[tuple[int, RootedGraph]],
        *,
        places: np.ndarray | None = None,
    ) -> None:
        self.pattern = pattern
        self.parts = list(parts) or [
            (0, RootedGraph.of(graphs.empty_graph(), *np.empty((3, 0), np.int64)))
        ]
        self._places = places
        self._branches = pattern.branches()

    def moved(self, places: np.ndarray) -> CompressedMatches:
        """The matches with ``places[position]`` for each position."""
        return CompressedMatches(self.pattern, self.parts, places=places)

    def count(self) -> int:
        """The number of matches, exact at any size."""
        return sum(sum(part.counts) for _, part in self.parts)

    def last_events(self) -> pd.DataFrame:
        """The number of matches by their last event: ``position``, ``ts``, ``matches``."""
        matches: Counter[int] = Counter()
        times: dict[int, int] = {}
        for _, part in self.parts:
            positions = self._shown(part.last_positions()).tolist()
            for position, ts, its in zip(positions, part.times.tolist(), part.counts, strict=True):
                matches[position] += its
                times[position] = ts
        positions = sorted(times)
        ts = np.array([times[position] for position in positions], np.int64)
        return pd.DataFrame(
            {
                "position": np.array(positions, np.int64),
                "ts": ts.astype("datetime64[ns]") if self.pattern.window.is_datetime else ts,
                "matches": _column([matches[position] for position in positions]),
            }
        )

    def first_events(self) -> pd.DataFrame:
        """The number of matches by their first event: ``position``, ``matches``."""
        return self._numbers("position", RootedGraph.starts, self._shown)

    def lengths(self) -> pd.DataFrame:
        """The number of matches by their number of events: ``length``, ``matches``."""
        return self._numbers("length", RootedGraph.lengths, lambda lengths: lengths)

    def _numbers(
        self,
        name: str,
        counted: Callable[[RootedGraph], Mapping[int, int]],
        shown: Callable[[np.ndarray], np.ndarray],
    ) -> pd.DataFrame:
        """The numbers of matches by something that some match has, in ascending order."""
        found: Counter[int] = Counter()
        for _, part in self.parts:
            found.update(counted(part))
        present = sorted(key for key, its in found.items() if its)
        matches = _column([found[key] for key in present])
        return pd.DataFrame({name: shown(np.array(present, np.int64)), "matches": matches})

    def enumerate(self) -> Iterator[dict[str, Any]]:
        """The matches one by one, with a delay linear in their length.

        Yields
        ------
        dict
            For each variable the position of its event, or a tuple of positions; with OR also
            ``branch``. Matches of one last event come together, last events in the order of the
            stream, branch by branch within a batch.
        """
        for number, part in self.parts:
            branch = {"branch": number} if len(self._branches) > 1 else {}
            for chunk in self._chunks(number, part, _ENUMERATED):
                for row in chunk.moved(self._shown).rows():
                    yield dict(zip(chunk.names, row, strict=True)) | branch

    def sample(self, n: int, seed: int = 0) -> pd.DataFrame:
        """``n`` matches drawn independently and uniformly, without a list of all.

        Returns
        -------
        DataFrame
            In the columns of :attr:`cepbench.Result.positions`, in the order of enumeration.

        Raises
        ------
        EvaluationError
            If there are no matches, or an argument is invalid.
        """
        parts = self.picked(drawn_numbers(n, self.count(), seed))
        return frame_of(arrow_table(self.pattern, [part.moved(self._shown) for part in parts]))

    def picked(self, numbers: Sequence[int]) -> tuple[BranchMatches, ...]:
        """The matches of these ascending numbers in the order of enumeration, each without the others.

        By branch, with positions in the evaluated stream.
        """
        rows: list[list[list[Any]]] = [[] for _ in self._branches]
        before = 0
        for branch, part in self.parts:
            behind = before + sum(part.counts)
            variables = self._branches[branch].positive
            its = [one - before for one in numbers if before <= one < behind]
            for history in part.picked(its, len(variables)):
                rows[branch].append(
                    [
                        positions if variable.is_set else positions[0]
                        for variable, positions in zip(variables, history, strict=True)
                    ]
                )
            before = behind
        return tuple(
            matches_of_rows(branch.positive, its)
            for branch, its in zip(self._branches, rows, strict=True)
        )

    def expand(self) -> pa.Table:
        """All matches, as ``output="arrow"`` gives them."""
        shown = [part.moved(self._shown) for part in self.branch_matches()]
        return arrow_table(self.pattern, shown)

    def returned(self, events: EventStream) -> pa.Table:
        """The columns of RETURN, as :attr:`cepbench.Result.arrow` has them, from the whole stream.

        Unless a column has all values of a Kleene variable, or the pattern an OR, they are computed along
        the graph, without lists of positions.
        """
        pattern, places = self.pattern, self._places
        if not values_suffice(pattern):
            table = arrow_table(pattern, self.branch_matches())
            return returned_table(table, pattern, events, places=places)
        return pa.concat_tables(
            returned_values(part, pattern, events, places=places) for _, part in self.parts
        )

    def branch_matches(self) -> tuple[BranchMatches, ...]:
        """All matches by branch, with positions in the evaluated stream."""
        found = [[no_matches(branch.positive)] for branch in self._branches]
        for number, part in self.parts:
            found[number] += self._chunks(number, part, FIRST_CHUNK)
        return tuple(joined(its[1:] or its) for its in found)

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """One row per node, in the order of creation, part by part.

        Columns: ``node``; ``kind``, ``event`` or ``union``; ``variable`` and ``position`` of an
        event, missing for a union; ``start``, the position of the first event of the latest
        history; ``matches``, the number of matches that end with it. With OR also ``branch``.
        """
        tables = []
        for offset, number, part in self._numbered():
            nodes = graphs.stored_nodes(part.graph)
            names = np.array([v.name for v in self._branches[number].positive], object)
            is_event = nodes[:, graphs.ITEM] != graphs.UNION
            matches = np.zeros(len(nodes), object)
            np.add.at(matches, part.roots, np.array(part.counts, object))
            positions = np.zeros(len(nodes), np.int64)
            positions[is_event] = self._shown(nodes[is_event, graphs.POSITION])
            table = pd.DataFrame(
                {
                    "node": offset + np.arange(len(nodes)),
                    "kind": np.where(is_event, "event", "union"),
                    "variable": np.where(is_event, names[nodes[:, graphs.ITEM]], None),
                    "position": pd.arrays.IntegerArray(positions, ~is_event),
                    "start": self._shown(nodes[:, graphs.START]),
                    "matches": _column(matches.tolist()),
                }
            )
            tables.append(table if len(self._branches) == 1 else table.assign(branch=number))
        return pd.concat(tables, ignore_index=True)

    @cached_property
    def pointers(self) -> pd.DataFrame:
        """One row per pointer: ``node``, ``kind``, ``target``.

        An event points to its ``predecessor``, a union to the ``event`` with the latest start and
        to its other histories, ``left`` and ``right``.
        """
        tables = []
        for offset, _, part in self._numbered():
            nodes = graphs.stored_nodes(part.graph)
            is_union = nodes[:, graphs.ITEM] == graphs.UNION
            for kind, column, has in (
                ("predecessor", graphs.PREDECESSOR, ~is_union),
                ("event", graphs.HEAD, is_union),
                ("left", graphs.LEFT, is_union),
                ("right", graphs.RIGHT, is_union),
            ):
                its = np.flatnonzero(has)
                its = its[nodes[its, column] != graphs.NONE]
                target = offset + nodes[its, column]
                tables.append(pd.DataFrame({"node": offset + its, "kind": kind, "target": target}))
        return pd.concat(tables).sort_values("node", kind="stable", ignore_index=True)

    def _chunks(self, number: int, part: RootedGraph, first: int) -> Iterator[BranchMatches]:
        """The matches of a part, lazily; ``first`` of them in the first chunk."""
        variables = self._branches[number].positive
        names = [variable.name for variable in variables]
        for chunk in graph_chunks(part.graph, part.roots, part.earliest, variables, first):
            yield BranchMatches(names, [chunk])

    def _numbered(self) -> Iterator[tuple[int, int, RootedGraph]]:
        """The parts, with the number of the first node of each and that of its branch."""
        offset = 0
        for number, part in self.parts:
            yield offset, number, part
            offset += int(part.graph.totals[graphs.NEXT])

    def _repr_svg_(self) -> str:
        if len(self.nodes) > DRAWN_NODES:
            raise EvaluationError(
                f"the graph has {len(self.nodes):,} nodes, too many to draw (at most "
                f"{DRAWN_NODES}); see the tables nodes and pointers"
            )
        return str(graph_diagram(self.nodes, self.pointers))

    def describe(self) -> str:
        """The sizes of the graph and of what it stands for."""
        return (
            f"{self.count():,} matches in a graph of {len(self.nodes):,} nodes and "
            f"{len(self.pointers):,} pointers"
        )

    def __repr__(self) -> str:
        return f"<CompressedMatches: {self.describe()}>"

    def _repr_html_(self) -> str:
        drawing = self._repr_svg_() if len(self.nodes) <= DRAWN_NODES else ""
        return f"<p>{html.escape(self.describe())}</p>{drawing}"

    def _shown(self, positions: np.ndarray) -> np.ndarray:
        return positions if self._places is None else self._places[positions]


def _column(counts: Sequence[int]) -> np.ndarray:
    """Counts as integers of 64 bits, or as objects if some are larger."""
    fits = max(counts, default=0) <= np.iinfo(np.int64).max
    return np.array(counts, np.int64 if fits else object)


def drawn_numbers(n: int, total: int, seed: int) -> list[int]:
    """``n`` numbers of matches, of which there are ``total``, independent and uniform; ascending.

    An EvaluationError if there are no matches, or an argument is invalid.
    """
    n = whole(n, "n", EvaluationError, least=0)
    rng = rng_for(seed_from(seed, EvaluationError), "sample of matches")
    if n and not total:
        raise EvaluationError("there are no matches to sample from")
    return sorted(_below(total, rng) for _ in range(n))


def _below(total: int, rng: np.random.Generator) -> int:
    """A uniform number from 0 to ``total`` − 1."""
    bits = (total - 1).bit_length()
    while True:
        drawn = int.from_bytes(rng.bytes(bits // 8 + 1), "little") & ((1 << bits) - 1)
        if drawn < total:
            return drawn
