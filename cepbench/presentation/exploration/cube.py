"""The cube of a workload: its queries with their matches, and roll-up and drill-down between them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cepbench.diagram import Diagram
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.runs.result import Result
from cepbench.engines.runs.workload_result import Step
from cepbench.errors import EvaluationError, PatternError, did_you_mean
from cepbench.markup import Html
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import Kind, Operator, Pattern
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.workloads.cube_operations import (
    concept_drill_down,
    concept_roll_up,
    pattern_drill_down,
    pattern_roll_up,
)
from cepbench.planning.workloads.model import Workload
from cepbench.planning.workloads.refinement import embeddings
from cepbench.presentation.exploration.cube_picture import LEGEND, cube_diagram
from cepbench.streams.event_stream import EventStream

#: Queries of a picture; of a larger workload those that the chosen one is related to.
_MOST_SHOWN = 60

#: Matches of the chosen query that are shown.
_MOST_ROWS = 8


@dataclass(frozen=True)
class Move:
    """A step from a query to a more general or a more specific one."""

    #: {"roll up", "drill down"}
    direction: str
    #: What changes.
    label: str
    #: The other query.
    pattern: Pattern
    #: Its name; None if the cube does not have it yet.
    query: str | None = None
    #: The number of its matches, if known without a run.
    matches: int | None = None


class Cube:
    """The queries of a workload with their matches on a stream; grows by :meth:`take`.

    Queries with AGG are computed without it, under the workload's concept hierarchy, or else the stream's;
    ``seed`` is that of sampled statistics.
    """

    def __init__(self, workload: Workload, stream: EventStream, seed: int = 0) -> None:
        hierarchy = workload.hierarchy or stream.hierarchy
        self.workload = workload.without_aggregates().with_hierarchy(hierarchy)
        self.stream = stream if stream.hierarchy else stream.with_hierarchy(hierarchy)
        self.results: dict[str, Result] = {}
        #: How each query was computed.
        self.steps: dict[str, Step] = {}
        #: Query that was added → the query and the step from which.
        self.origins: dict[str, str] = {}
        self._seed = seed
        self._compute(self.workload, self.workload.patterns)

    def _compute(self, workload: Workload, queries: Iterable[str]) -> None:
        """Keep the matches of some queries of a workload, computed by a plan of CHASE."""
        statistics = measure_statistics(
            workload, self.stream, seed=self._seed, missing_types="error"
        )
        plan = plan_workload(workload, statistics, "CHASE", delays=True, seed=self._seed)
        found = evaluate(workload, self.stream, plan)
        steps = {row[0]: Step(*row) for row in found.steps.itertuples(index=False, name=None)}
        self.results |= {query: found[query] for query in queries}
        self.steps |= {query: steps[query] for query in queries}

    def check(self, query: str) -> str:
        """The name of a query; EvaluationError, which suggests the nearest, if the cube has no such query."""
        if query not in self.results:
            raise EvaluationError(
                f"the cube has no query {query!r}; it has {', '.join(self.results)}"
                f"{did_you_mean(query, self.results)}"
            )
        return query

    def moves(self, query: str) -> list[Move]:
        """The steps from a query: to the next ones that the cube has, and by its operations to new ones.

        The operations are those of [liu2011]_, section II-A; an item is added by :meth:`insert`.
        """
        patterns = self.workload.patterns
        found = []
        for row in self.workload.refinements.to_dict("records"):
            if row["direct"] and query in (row["general"], row["specific"]):
                is_below = query == row["general"]
                other = row["specific" if is_below else "general"]
                way = "drill down" if is_below else "roll up"
                matches = self.results[other].metrics.matches
                found.append(Move(way, other, patterns[other], other, matches))
        known = [move.pattern for move in found] + [patterns[query]]
        hierarchy = self.workload.hierarchy
        for move in self._operations(query, patterns[query], hierarchy):
            if not any(_equal(move.pattern, other, hierarchy) for other in known):
                found.append(move)
        return found

    def _operations(
        self, query: str, pattern: Pattern, hierarchy: ConceptHierarchy | None
    ) -> Iterator[Move]:
        if pattern.operator is Operator.OR:
            return
        for place, variable in enumerate(pattern.variables, 1):
            if variable.kind is not Kind.NEGATED and len(pattern.positive) == 1:
                continue
            with suppress(PatternError):  # where the result is no generalization
                yield Move("roll up", f"without {variable}", pattern_roll_up(pattern, place))
        if hierarchy is None:
            return
        with suppress(PatternError):
            yield Move("roll up", "one level up", concept_roll_up(pattern, hierarchy))
        for variable in pattern.variables:
            if variable.type is None or variable.type not in hierarchy:
                continue
            is_negated = variable.kind is Kind.NEGATED
            parent = hierarchy.parent(variable.type)
            types = hierarchy.children(variable.type)
            if is_negated:
                types = () if parent is None else (parent,)
            for type_ in types:
                with suppress(PatternError):
                    lower = concept_drill_down(pattern, hierarchy, {variable.name: type_})
                    matches = None if is_negated else self._of_type(query, variable.name, type_)
                    yield Move("drill down", f"{variable.name}: {type_}", lower, matches=matches)

    def _of_type(self, query: str, name: str, type_: str) -> int | None:
        """How many matches of a query bind an event of a type; None for sets and RETURN."""
        result = self.results[query]
        sets = {variable.name for variable in result.pattern.positive if variable.is_set}
        if result.pattern.returns or name in sets:
            return None
        bound = self.stream.type_codes[np.asarray(result.arrow[name])]
        return int(np.isin(bound, self.stream.codes_of(type_)).sum())

    def insert(self, query: str, place: int, item: str) -> str:
        """Drill down from a query by another item, see :func:`cepbench.pattern_drill_down`.

        Returns the name of the query with the item. Raises EvaluationError, PatternError if there is no such
        query, or the result does not refine it.
        """
        lower = pattern_drill_down(self.workload.patterns[self.check(query)], place, item)
        return self.take(query, Move("drill down", f"with {item}", lower))

    def take(self, query: str, move: Move) -> str:
        """Take a step from a query; one that the cube does not have is computed and added.

        Returns the name of the other query; those added from q2 are q2.1, q2.2 and so on.
        """
        patterns = self.workload.patterns
        own, hierarchy = patterns[self.check(query)], self.workload.hierarchy
        if move.query is not None:
            return self.check(move.query)
        for name, other in patterns.items():
            if _equal(move.pattern, other, hierarchy):
                return name
        name = next(its for n in itertools.count(1) if (its := f"{query}.{n}") not in patterns)
        pair = Workload({query: own, name: move.pattern}, hierarchy=hierarchy)
        self._compute(pair, [name])
        self.origins[name] = f"{query}, {move.label}"
        self.workload = Workload({**patterns, name: move.pattern}, hierarchy=hierarchy)
        return name

    def labels(self, chosen: str) -> dict[str, str]:
        """The queries of a picture, with their numbers of matches."""
        queries = [*self.results]
        if len(queries) > _MOST_SHOWN:
            near = {chosen}
            for pair in self.workload.embeddings:
                if chosen in pair and len(near) < _MOST_SHOWN:
                    near |= {*pair}
            queries = [query for query in queries if query in near]
        return {q: f"{q}: {self.results[q].metrics.matches:,}" for q in queries}

    def picture(self, chosen: str) -> Diagram:
        """The graph of the queries, with one of them marked."""
        sources = {query: step.source for query, step in self.steps.items()}
        labels = self.labels(chosen)
        return cube_diagram(self.workload, labels, sources=sources, chosen=chosen)

    def details(self, query: str) -> str:
        """A query, how it was computed, and its first matches, as HTML."""
        result, step = self.results[self.check(query)], self.steps[query]
        how = "from scratch"
        if step.source is not None:
            how = f"from the matches of {step.source}: {step.reused:,} reused, {step.delta:,} new"
        return str(
            _DETAILS(
                query=query,
                origin=self.origins.get(query, ""),
                text=result.pattern.describe(),
                matches=f"{step.results:,} matches",
                how=f"computed {how}, in {1e3 * step.seconds:.3g} ms",
                heads=list(result.arrow.column_names),
                rows=self._first_matches(result),
                more=step.results > _MOST_ROWS,
            )
        )

    def _first_matches(self, result: Result) -> list[list[str]]:
        rows = result.arrow.slice(0, _MOST_ROWS).to_pylist()
        if result.pattern.returns:
            return [[str(value) for value in row.values()] for row in rows]
        names = {variable.name for variable in result.pattern.positive}
        return [
            [self._events(value) if name in names else str(value) for name, value in row.items()]
            for row in rows
        ]

    def _events(self, positions: Any) -> str:
        """Types and times of the events at a position, several or none."""
        if positions is None:
            return ""
        if isinstance(positions, list):
            return ", ".join(map(self._events, positions))
        name = self.stream.type_names[self.stream.type_codes[positions]]
        time = int(self.stream.timestamps[positions])
        if not self.stream.is_datetime:
            return f"{name} {time:,}"
        return f"{name} {pd.Timestamp(time).isoformat(' ', 'milliseconds').removesuffix('.000')}"

    def _repr_html_(self) -> str:
        first = next(iter(self.results))
        return str(_PICTURE(picture=self.picture(first), legend=LEGEND))


def _equal(one: Pattern, other: Pattern, hierarchy: ConceptHierarchy | None) -> bool:
    """Whether two queries have the same matches, whatever their variables are called."""
    return bool(embeddings(one, other, hierarchy) and embeddings(other, one, hierarchy))


_PICTURE = Html("<figure>{{ picture }}</figure><p><small>{{ legend }}</small></p>")

_DETAILS = Html(
    """<h4 style="margin:0.5em 0">{{ query }}{% if origin %} ({{ origin }}){% endif %}</h4><pre class="cep-pattern">{{ text }}</pre>
<p><b>{{ matches }}</b>, {{ how }}.</p>
{% if rows %}
<table class="dataframe"><thead><tr>{% for head in heads %}<th>{{ head }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody></table>
{% if more %}<p><small>The first {{ rows | length }}.</small></p>{% endif %}
{% endif %}"""
)
