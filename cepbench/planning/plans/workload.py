"""Plans of workloads: which parts of their queries are computed once, which matches are reused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cepbench.arguments import elements, flag, kind_of, whole
from cepbench.errors import PlanError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import reread
from cepbench.planning.plans.drawing import FIGURE
from cepbench.planning.plans.given import plan_for, plan_from
from cepbench.planning.plans.kinds import plan_from_json, plan_to_json
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.reuse import Reuse, Source, check_queries, reused_by
from cepbench.planning.plans.reuse_drawing import reuse_diagram
from cepbench.planning.plans.segments import Segment, SegmentTable, SequenceItems, tables_of
from cepbench.planning.plans.workload_drawing import workload_diagram
from cepbench.planning.workloads.model import Workload

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class WorkloadPlan:
    """What the queries of a workload share: counts of their sequences, or matches.

    With ``cuts`` and ``shares_prefixes`` it is a plan for :func:`cepbench.aggregate`, whose counts of
    sequences are shared [qi2014]_, section 4. With ``sources`` each query is computed by itself or from
    the matches of a more general or more specific query [liu2011]_, section 4.

    Parameters
    ----------
    cuts : mapping of str to sequence of int, optional
        Query → after how many of its positive items it is chopped into segments, in ascending order:
        ``{"Q1": (3, 5)}`` after the 3rd and after the 5th. Segments after the first cut that are equal,
        but for the names of variables, are counted once for all queries, and connected with what comes
        before them (Chop-Connect, section 4.2). A NOT at a cut belongs to the segment before it. As
        an attribute of every query, empty for one that is not cut.
    shares_prefixes : bool
        Whether segments that begin with the same items, those of uncut queries among them, share the
        counts of these items (PreTree, section 4.1).
    sources : mapping of str to (str, tuple of str or None), optional
        Every query → the query whose matches it reuses, or None to compute it from scratch. One of the
        two refines the other. Several are more specific queries, whose matches are united. Excludes
        cuts. As an attribute virtual queries are last.
    delays : bool
        Whether a query may reuse one that goes on after the last item of the query, or waits for a
        negated event, so that a match is reported after the event that completes it.
    embeddings : mapping of str to sequence of int, optional
        Query → the place, among the positive items of the more specific one of query and source, of
        each positive item of the more general one; by default the first possible embedding. Of several
        sources one such sequence for each.
    plans : mapping of str to plan, optional
        Query of ``sources`` → the plan along which an engine that has plans computes it from scratch.
    virtual : mapping of str to (Pattern or str), optional
        Name → a query that nobody asked for: it is computed as the others are, for those that reuse
        its matches, and not reported. ``sources``, ``embeddings``, ``plans`` and ``orders`` name virtual
        queries as others.
    orders : mapping of str to sequence of str, optional
        Query → the order in which items are joined. Computed from a more general query, the items that
        this one has not; from more specific ones, all items, for the matches that no source contains.
    cost : float, optional
        The estimate of its planner; of cuts a number of updates per second, see
        :mod:`cepbench.planning.costs.sharing`.
    candidates : sequence of Reuse
        The ways to compute the queries among which the planner chose, with their costs.

    Raises
    ------
    PlanError
        If a query is unknown, a cut is outside its pattern, or a query that is cut is not a SEQ of
        plain, Kleene and negated items with conditions on single events; if a query is left out of
        ``sources``, neither it nor its source refines the other, one of several sources is not more
        specific, queries are computed from each other, a match would have to wait without ``delays``, an
        order is not one of the items joined, or a virtual query has the name of another one or is the
        source of none.

    Notes
    -----
    Differs from the paper: the trees of PreTree may be of segments behind a cut too, so that in its
    Example 6, the end of Q5 shares the counts of Q1 to Q4.

    Examples
    --------
    >>> workload = Workload({
    ...     "Q1": "PATTERN SEQ(A a, B b, C c) AGG COUNT WITHIN 5 minutes",
    ...     "Q2": "PATTERN SEQ(D d, B b, C c) AGG COUNT WITHIN 5 minutes",
    ... })
    >>> print(WorkloadPlan(workload, {"Q1": (1,), "Q2": (1,)}).describe())
    workload plan by hand
      Q1: A | B, C
      Q2: D | B, C
      shared: B, C by Q1, Q2
    >>> workload = Workload({
    ...     "q3": "PATTERN SEQ(G g, A a, T t) WITHIN 48 hours",
    ...     "q6": "PATTERN SEQ(G g, A a, D d, T t) WITHIN 48 hours",
    ... })
    >>> print(WorkloadPlan(workload, sources={"q6": "q3", "q3": None}).describe())
    workload plan by hand
      q3: from scratch
      q6: down from q3 (pattern)
    """

    workload: Workload
    cuts: Mapping[str, Sequence[int]] = field(default_factory=dict, hash=False)
    shares_prefixes: bool = False
    sources: Mapping[str, Source] | None = field(default=None, kw_only=True, hash=False)
    delays: bool = field(default=False, kw_only=True)
    embeddings: Mapping[str, Sequence[Any]] = field(default_factory=dict, kw_only=True, hash=False)
    plans: Mapping[str, AnyPlan] = field(default_factory=dict, kw_only=True, hash=False)
    virtual: Mapping[str, Pattern] = field(default_factory=dict, kw_only=True, hash=False)
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict, kw_only=True, hash=False)
    planner: str | None = field(default=None, kw_only=True, compare=False)
    cost: float | None = field(default=None, kw_only=True, compare=False)
    candidates: Sequence[Reuse] = field(default=(), kw_only=True, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.workload, Workload):
            raise PlanError(
                f"a workload plan is of a cep.Workload, not {kind_of(self.workload)}; write "
                "cep.WorkloadPlan(workload, sources={...})"
            )
        flag(self.shares_prefixes, "shares_prefixes", PlanError)
        flag(self.delays, "delays", PlanError)
        for_sources = (self.delays, self.embeddings, self.plans, self.virtual, self.orders)
        if self.sources is None and any(for_sources):
            raise PlanError(
                "delays, embeddings, plans, virtual and orders go with sources; give sources, or leave "
                "them out"
            )
        check_queries("cuts", self.cuts, self.workload)
        patterns = self.workload.patterns
        cuts = {query: self._checked(query, self.cuts.get(query, ())) for query in patterns}
        object.__setattr__(self, "cuts", MappingProxyType(cuts))
        if self.sources is None:
            _ = self._segments  # raises for cuts that the patterns do not allow
            return
        if any(cuts.values()) or self.shares_prefixes:
            raise PlanError(
                "a plan has cuts, for shared counts, or sources, for reused matches; leave one out"
            )
        computed = self.computed.patterns
        virtual = {name: its for name, its in computed.items() if name not in patterns}
        # By all queries in their order, so that equal plans are equal.
        ways = {query: self._reused[query] for query in computed}
        for name in virtual.keys() - {source for way in ways.values() for source in way.sources}:
            raise PlanError(f"the virtual query {name!r} is the source of none; leave it out")
        reused = {query: way for query, way in ways.items() if way.source is not None}
        completed: dict[str, dict[str, Any]] = {
            "sources": {query: way.source for query, way in ways.items()},
            "embeddings": {q: way.embeddings or way.embedding for q, way in reused.items()},
            "orders": {query: way.order for query, way in reused.items() if way.order},
            "virtual": virtual,
            "plans": self._checked_plans(),
        }
        for name, its in completed.items():
            object.__setattr__(self, name, MappingProxyType(its))

    def __reduce__(self) -> tuple[Any, ...]:
        # As the fields are read-only views of mappings, which cannot be pickled.
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, its in given.items():
            given[name] = dict(its) if isinstance(its, MappingProxyType) else its
        return partial(WorkloadPlan, **given), ()

    @cached_property
    def computed(self) -> Workload:
        """All queries whose matches are computed: the workload's, without AGG, and the virtual ones."""
        if not isinstance(self.virtual, Mapping):
            raise PlanError(
                'virtual is a mapping of names to patterns such as {"v1": "PATTERN …"}, not '
                f"{kind_of(self.virtual)}"
            )
        workload = self.workload.without_aggregates()
        if not self.virtual:
            return workload
        patterns = workload.patterns
        for name in self.virtual.keys() & patterns.keys():
            raise PlanError(
                f"the virtual query {name!r} has the name of a query of the workload; choose another"
            )
        return Workload({**patterns, **self.virtual}, hierarchy=self.workload.hierarchy)

    def _checked_plans(self) -> dict[str, AnyPlan]:
        check_queries("plans", self.plans, self.computed)
        found = {}
        for query, given in self.plans.items():
            branches = [its.planned_names for its in self.computed.patterns[query].branches()]
            try:
                found[query] = plan_for(plan_from(given), branches)
            except PlanError as error:
                raise PlanError(f"the plan of query {query!r}: {error}") from None
        return found

    def _checked(self, query: str, given: Any) -> tuple[int, ...]:
        """The cuts of a query."""
        where = f"the cuts of query {query!r}"
        items = len(self.workload.patterns[query].positive)
        cuts = [
            whole(c, f"each of {where}", PlanError)
            for c in elements(given, where, "(3, 5)", PlanError)
        ]
        for cut in cuts:
            if not 0 < cut < items:
                raise PlanError(
                    f"{where} are numbers of positive items, from 1 to {items - 1}, not {cut}: it has "
                    f"{items}"
                )
        if any(one >= other for one, other in pairwise(cuts)):
            raise PlanError(f"{where} are in ascending order, without repetition, not {cuts}")
        return tuple(cuts)

    @cached_property
    def _segments(self) -> dict[str, tuple[Segment, ...]]:
        if self.sources is not None:
            raise PlanError(
                "the plan reuses matches, for cep.evaluate; one of shared counts has cuts"
            )
        found = {}
        for query, pattern in self.workload.patterns.items():
            cuts = tuple(self.cuts[query])
            try:
                found[query] = SequenceItems(query, pattern).segments(cuts)
            except PlanError:
                if cuts:
                    raise
                found[query] = ()
        return found

    def segments(self, query: str) -> tuple[Segment, ...]:
        """The segments of a query; none if it is not counted by segments and runs alone."""
        return self._segments[query]

    @cached_property
    def _reused(self) -> dict[str, Reuse]:
        if self.sources is None:
            raise PlanError(
                "the plan shares counts, for cep.aggregate; one of reused matches is made with sources"
            )
        given = (self.sources, self.embeddings, self.orders, self.candidates)
        return reused_by(self.computed, *given, delays=self.delays)

    @property
    def order(self) -> tuple[str, ...]:
        """All queries that are computed, each after its sources."""
        return tuple(self._reused)

    def reuse(self, query: str) -> Reuse:
        """How a query is computed."""
        return self._reused[query]

    @property
    def steps(self) -> pd.DataFrame:
        """How the queries are computed, in :attr:`order`.

        ``query``; ``source``, None from scratch; ``method``: scratch, down from a more general query, up
        from a more specific one, or the union of several; ``change``, in what they differ: pattern,
        concept, both or condition; ``cost``, an estimate.
        """
        return _table(self._reused.values())

    @property
    def graph(self) -> pd.DataFrame:
        """The ways to compute the queries among which the planner chose; columns as in :attr:`steps`."""
        return _table(self.candidates or self._reused.values())

    @cached_property
    def tables(self) -> tuple[SegmentTable, ...]:
        """The segments of all queries, those that are counted together as one table."""
        listed = (each for its in self._segments.values() for each in its)
        return tables_of(listed, shares_prefixes=self.shares_prefixes)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serializable dict, without planner and costs."""
        hierarchy = self.workload.hierarchy
        described = {
            "workload": {query: str(its) for query, its in self.workload.patterns.items()},
            "hierarchy": hierarchy and hierarchy.mapping,
        }
        if self.sources is not None:
            return {
                **described,
                "sources": dict(self.sources),
                "embeddings": {query: list(its) for query, its in self.embeddings.items()},
                "delays": self.delays,
                "plans": {query: plan_to_json(its) for query, its in self.plans.items()},
                "virtual": {name: str(its) for name, its in self.virtual.items()},
                "orders": {query: list(its) for query, its in self.orders.items()},
            }
        return {
            **described,
            "cuts": {query: list(cuts) for query, cuts in self.cuts.items()},
            "shares_prefixes": self.shares_prefixes,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorkloadPlan:
        """The inverse of :meth:`to_dict`.

        Raises PlanError, PatternError if ``data`` is not of this form.
        """
        try:
            hierarchy = data["hierarchy"] and ConceptHierarchy(data["hierarchy"])
            workload = Workload(_reread(data["workload"]), hierarchy=hierarchy)
            if "sources" in data:
                options = {key: data[key] for key in ("sources", "embeddings", "delays", "orders")}
                options["virtual"] = _reread(data["virtual"])
                plans = {query: plan_from_json(its) for query, its in data["plans"].items()}
                return cls(workload, **options, plans=plans)
            return cls(workload, data["cuts"], data["shares_prefixes"])
        except (LookupError, TypeError) as error:
            raise PlanError(f"not a result of WorkloadPlan.to_dict(): {error!r}") from error

    def __repr__(self) -> str:
        if self.sources is not None:
            return f"WorkloadPlan({self.workload!r}, sources={self.sources!r})"
        cuts = {query: cuts for query, cuts in self.cuts.items() if cuts}
        return f"WorkloadPlan({self.workload!r}, {cuts!r}, {self.shares_prefixes})"

    def describe(self) -> str:
        """The segments of each query and the parts that several share, or the source of each query."""
        lines = [self._headline()]
        if self.sources is not None:
            for query, way in self._reused.items():
                virtual = f", virtual: {self.virtual[query]}" if query in self.virtual else ""
                lines.append(f"  {query}: {way}{virtual}")
            return "\n".join(lines)
        for query, segments in self._segments.items():
            lines.append(f"  {query}: {' | '.join(map(str, segments)) or 'runs alone'}")
        lines += [f"  shared: {part} by {', '.join(queries)}" for part, queries in self._shared()]
        return "\n".join(lines)

    def _shared(self) -> list[tuple[str, list[str]]]:
        """Each longest part that the same segments share, and their queries."""
        found = []
        for table in self.tables:
            longest = {table.users(column): column for column in table.columns}
            for users, column in longest.items():
                if len(users) > 1:
                    found.append(
                        (", ".join(map(str, column)), [*dict.fromkeys(u.query for u in users)])
                    )
        return found

    def _headline(self) -> str:
        by = "by hand" if self.planner is None else f"by {self.planner}"
        if self.cost is None:
            return f"workload plan {by}"
        unit = " updates per second" if self.sources is None else ""
        return f"workload plan {by}, estimated cost {self.cost:.4g}{unit}"

    def _repr_html_(self) -> str:
        if self.sources is not None:
            texts = {query: str(its) for query, its in self.computed.patterns.items()}
            drawing = reuse_diagram([*self._reused.values()], texts, self.virtual)
            return str(FIGURE(caption=self._headline(), drawing=drawing))
        alone = [query for query, segments in self._segments.items() if not segments]
        caption = self._headline() + (f"; {', '.join(alone)} alone" if alone else "")
        tables = workload_diagram(self.tables) if self.tables else ""
        return str(FIGURE(caption=caption, drawing=tables))


def _table(ways: Iterable[Reuse]) -> pd.DataFrame:
    import pandas as pd  # loaded on first use

    columns = ("query", "source", "method", "change", "cost")
    rows = [[getattr(way, column) for column in columns] for way in ways]
    return pd.DataFrame(rows, columns=[*columns])


def _reread(given: Any) -> Any:
    """Queries from their texts, which may be unsatisfiable; whatever else is left to its checks."""
    if not isinstance(given, Mapping):
        return given
    return {query: reread(its) if isinstance(its, str) else its for query, its in given.items()}
