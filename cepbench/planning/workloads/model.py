"""Workloads: several queries on one stream, by name."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cepbench.arguments import kind_of, text
from cepbench.errors import PatternError, PatternNameError, PatternSyntaxError, errors_naming
from cepbench.patterns.concepts import ConceptHierarchy, hierarchy_from
from cepbench.patterns.expressions import quoted_unless_plain
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse, reread
from cepbench.planning.workloads.hierarchy_graph import HierarchyGraph
from cepbench.planning.workloads.refinement import Embedding, Refinements

if TYPE_CHECKING:
    import pandas as pd

    from cepbench.streams.event_stream import EventStream

_NAME = r'^[ \t]*(?P<name>[^\W\d]\w*|"(?:[^"]|"")+")\s*'
_QUERY = re.compile(rf"{_NAME}=\s*(?=pattern\b)", re.IGNORECASE | re.MULTILINE)
#: In dialects the text of a query may begin with its structure, and its name end with a colon.
_PRINTED = re.compile(
    rf"{_NAME}[=:]\s*(?=(?:pattern|seq|and|or)\b|\()", re.IGNORECASE | re.MULTILINE
)

#: Words, texts and names in quotes, names that end with primes, and comments, as ``grammar.lark`` has them.
WORDS_AND_COMMENTS = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+'*|"""
    r"(?P<comment>#[^\n]*|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|--(?=\s|\Z)[^\n]*)"
)


def _without_comments(text: str) -> str:
    """The text with blanks for its comments, so that all else stays where it is."""
    return WORDS_AND_COMMENTS.sub(
        lambda found: re.sub(r"[^\n]", " ", found[0]) if found["comment"] else found[0], text
    )


class Workload:
    """Several queries on one stream; the result of each is that of the query alone.

    Parameters
    ----------
    queries : mapping of str to Pattern or str
        Name → pattern or its text; patterns may have AGG.
    hierarchy : ConceptHierarchy, optional
        The concepts above their event types.

    Raises
    ------
    PatternError
        If there is no query, or one is invalid; the message names it.

    Examples
    --------
    >>> Workload({"Q1": "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 5 minutes"}).patterns["Q1"].names
    ('a', 'b')
    """

    #: Whether results are by query, also of a workload of one.
    by_query: ClassVar[Literal[True]] = True

    def __init__(
        self, queries: Mapping[str, Pattern | str], *, hierarchy: ConceptHierarchy | None = None
    ) -> None:
        if not isinstance(queries, Mapping):
            raise PatternError(
                'the queries of a workload are a mapping such as {"Q1": "PATTERN …"}, not '
                f"{kind_of(queries)}; cep.Workload.parse reads a text of several"
            )
        if not queries:
            raise PatternError('a workload has at least one query: {"Q1": "PATTERN …"}')
        self.hierarchy = hierarchy_from(hierarchy)
        patterns = {}
        for name, given in queries.items():
            with errors_naming(text(name, "the name of a query", PatternError)):
                pattern = pattern_from(given, aggregates=True)
                if pattern.hierarchy not in (None, hierarchy):
                    raise PatternError(
                        "it has a concept hierarchy that is not the workload's; give the workload "
                        "the hierarchy of all queries"
                    )
                patterns[name] = pattern.with_hierarchy(hierarchy)
        orders = {its.order: name for name, its in patterns.items()}
        if len(orders) > 1:
            raise PatternError(
                f"query {orders['arrival']!r} has ORDER BY arrival and query {orders['time']!r} has not; "
                "write it in all queries of a workload, or make two workloads"
            )
        #: The queries, in the given order.
        self.patterns: Mapping[str, Pattern] = MappingProxyType(patterns)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Workload, hierarchy=self.hierarchy), (dict(self.patterns),)

    @property
    def queries(self) -> Mapping[str, Pattern]:
        """The patterns by name; of a single :class:`cepbench.Pattern` itself."""
        return self.patterns

    def with_hierarchy(self, hierarchy: ConceptHierarchy | None) -> Workload:
        """The queries under a concept hierarchy, see :meth:`cepbench.Pattern.with_hierarchy`."""
        if hierarchy_from(hierarchy) == self.hierarchy:
            return self
        plain = {name: its.with_hierarchy(None) for name, its in self.patterns.items()}
        return Workload(plain, hierarchy=hierarchy)

    def without_aggregates(self) -> Workload:
        """The queries of the matches that AGG is over; itself if none has AGG."""
        if not any(pattern.aggregates for pattern in self.patterns.values()):
            return self
        matches = {name: its.without_aggregate() for name, its in self.patterns.items()}
        return Workload(matches, hierarchy=self.hierarchy)

    @property
    def order(self) -> str:
        """The ORDER BY of all queries."""
        return next(iter(self.patterns.values())).order

    @property
    def types(self) -> tuple[str, ...] | None:
        """The event types of all queries in order of appearance; None if an item is of any type."""
        known = [pattern.types for pattern in self.patterns.values()]
        if None in known:
            return None
        return tuple(dict.fromkeys(name for types in known for name in types or ()))

    @cached_property
    def _refinements(self) -> Refinements:
        return Refinements(self.patterns, self.hierarchy)

    @property
    def embeddings(self) -> Mapping[tuple[str, str], tuple[Embedding, ...]]:
        """The pairs (general, specific) of queries that refine each other, with their embeddings."""
        return self._refinements.embeddings

    @property
    def refinements(self) -> pd.DataFrame:
        """Which queries refine which: ``general``, ``specific``, ``change``, ``direct``.

        The change is ``pattern`` if the specific query has more variables, negated ones included,
        ``concept`` if the type of one differs (by the embedding with fewest such), ``both``,
        ``condition`` if only conditions or the window do, and ``nothing`` for equal queries.
        ``direct`` is whether no query is strictly between them. Definition 4 of [liu2011]_.
        """
        return self._refinements.table()

    @cached_property
    def _graph(self) -> HierarchyGraph:
        return HierarchyGraph(self.patterns, self.hierarchy)

    @property
    def graph(self) -> pd.DataFrame:
        """The hierarchical pattern graph: ``later``, ``earlier``, ``queries``, ``labels``.

        See :class:`cepbench.planning.workloads.hierarchy_graph.HierarchyGraph`, also for errors.
        """
        return self._graph.table()

    def stacks(self, stream: EventStream) -> pd.DataFrame:
        """The hierarchical instance stacks of a stream: ``position``, ``stack``, ``pointers``.

        See :meth:`cepbench.planning.workloads.hierarchy_graph.HierarchyGraph.stacks`, also for errors.
        """
        return self._graph.stacks(stream)

    @staticmethod
    def names_queries(text: str, dialect: str | None = None) -> bool:
        """Whether a text begins with the name of a query, ``Q1 = PATTERN …``."""
        return (_QUERY if dialect is None else _PRINTED).match(
            _without_comments(text.removeprefix("\ufeff")).lstrip()
        ) is not None

    @classmethod
    def parse(
        cls,
        text: str,
        parameters: Mapping[str, float | str] | None = None,
        *,
        aggregate: str | None = None,
        within: str | None = None,
        dialect: str | None = None,
        hierarchy: ConceptHierarchy | None = None,
    ) -> Workload:
        """The workload of a text with a name before each query: ``Q1 = PATTERN …``.

        Each name begins a line. In a dialect the queries may leave out PATTERN, as Example 6 of [qi2014]_,
        ``Q1 = SEQ(VKindle, BKindle)``, and Figure 1 of [liu2011]_, ``q2: SEQ(D, T)``. Parameters other than the
        hierarchy are as :func:`cepbench.parse` takes them, for every query.

        Raises
        ------
        PatternSyntaxError
            If the text does not begin with the name of a query.
        PatternNameError
            If two queries have the same name.
        PatternError
            If a query is invalid; lines count from its name.
        """
        if not isinstance(text, str):
            raise PatternError(f"a workload is parsed from a text, not from {kind_of(text)}")
        text = text.removeprefix("\ufeff")  # a byte-order mark
        plain = _without_comments(text)
        starts = list((_QUERY if dialect is None else _PRINTED).finditer(plain))
        if not starts or plain[: starts[0].start()].strip():
            raise PatternSyntaxError(
                "a workload's text begins with the name of a query: Q1 = PATTERN SEQ(A a, B b) …"
            )
        ends = [*(start.start() for start in starts[1:]), len(text)]
        if not isinstance(parameters, Mapping | None):
            raise PatternError(
                f'parameters are a mapping of names to values, not {kind_of(parameters)}; write {{"low": 3}}'
            )
        given = dict(parameters or {})
        unused = [its for its in map(str, given) if not _names_parameter(text, its)]
        if unused:
            raise PatternNameError(
                f"parameter {unused[0]!r} is given but no query has :{unused[0]}; remove it"
            )
        queries: dict[str, Pattern] = {}
        for start, end in zip(starts, ends, strict=True):
            name = start["name"]
            if name.startswith('"'):
                name = name[1:-1].replace('""', '"')
            if name in queries:
                raise PatternNameError(f"two queries are named {name!r}; rename one of them")
            query = text[start.end() : end].rstrip()
            with errors_naming(name):
                own = {its: value for its, value in given.items() if _names_parameter(query, its)}
                queries[name] = parse(
                    query, own, dialect=dialect, aggregate=aggregate, within=within
                )
        return cls(queries, hierarchy=hierarchy)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        # The order of the queries is that of their results.
        return (
            list(self.patterns.items()) == list(other.patterns.items())
            and self.hierarchy == other.hierarchy
        )

    def __hash__(self) -> int:
        return hash(tuple(self.patterns.items()))

    def __str__(self) -> str:
        return "\n".join(
            f"{quoted_unless_plain(name)} = {pattern}" for name, pattern in self.patterns.items()
        )

    def describe(self) -> str:
        """The queries, each behind its name."""
        return str(self)

    def __repr__(self) -> str:
        return f"Workload({dict(self.patterns)!r})"

    def _repr_html_(self) -> str:
        return f'<pre class="cep-pattern">{html.escape(str(self))}</pre>'


def of_queries(
    queries: Mapping[str, Pattern], hierarchy: ConceptHierarchy | None = None
) -> Pattern | Workload:
    """The pattern or the workload whose ``queries`` these are."""
    return queries[""] if "" in queries else Workload(queries, hierarchy=hierarchy)


def queries_to_json(queries: Pattern | Workload) -> dict[str, Any]:
    """The text of a pattern, or those of a workload by name, and their hierarchy."""
    texts = {name: str(its) for name, its in queries.queries.items()}
    hierarchy = queries.hierarchy
    return {
        "pattern": texts if queries.by_query else texts[""],
        "hierarchy": hierarchy and hierarchy.mapping,
    }


def queries_from_json(described: Mapping[str, Any]) -> Any:
    """The inverse of :func:`queries_to_json`, without the check that queries can match.

    Raises CepbenchError if a text is no query, or there is no such hierarchy.
    """
    texts, mapping = described["pattern"], described["hierarchy"]
    hierarchy = None if mapping is None else ConceptHierarchy(mapping)
    if isinstance(texts, str):
        return reread(texts).with_hierarchy(hierarchy)
    return Workload({name: reread(its) for name, its in texts.items()}, hierarchy=hierarchy)


def _names_parameter(text: str, name: str) -> bool:
    return re.search(rf":{re.escape(name)}\b", text) is not None
