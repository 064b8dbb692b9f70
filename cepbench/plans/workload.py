"""Plans of workloads: which parts of their queries are computed once for several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from cepbench.arguments import elements, flag, kind_of, whole
from cepbench.errors import PlanError, did_you_mean
from cepbench.markup import Html
from cepbench.plans.segments import Segment, SegmentTable, SequenceItems, tables_of
from cepbench.plans.workload_drawing import workload_svg
from cepbench.workloads.model import Workload

_FIGURE = Html(
    '<figure class="cep-plan"><figcaption>{{ caption }}</figcaption>{{ drawing }}</figure>'
)


@dataclass(frozen=True, repr=False)
class WorkloadPlan:
    """How the queries of a workload share the counts of their sequences [qi2014]_, section 4.

    Parameters
    ----------
    workload : Workload
    cuts : mapping of str to sequence of int, optional
        Query → after how many of its positive items it is chopped into segments, in ascending order:
        ``{"Q1": (3, 5)}`` after the 3rd and after the 5th. Segments after the first cut that are equal,
        but for the names of variables, are counted once for all queries, and connected with what comes
        before them (Chop-Connect, section 4.2). A NOT at a cut belongs to the segment before it.
    shares_prefixes : bool
        Whether segments that begin with the same items, those of uncut queries among them, share the
        counts of these items (PreTree, section 4.1).
    planner : str, optional
        The planner that found it.
    cost : float, optional
        Its estimated cost, as a number of updates per second; see :mod:`cepbench.costs.sharing`.

    Attributes
    ----------
    cuts : mapping of str to tuple of int
        Of every query; empty for one that is not cut.

    Raises
    ------
    PlanError
        If a query is unknown, a cut is outside its pattern, or a query that is cut is not a SEQ of
        plain, Kleene and negated items with conditions on single events.

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
    """

    workload: Workload
    cuts: Mapping[str, Sequence[int]] = field(default_factory=dict, hash=False)
    shares_prefixes: bool = False
    planner: str | None = field(default=None, kw_only=True, compare=False)
    cost: float | None = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.workload, Workload):
            raise PlanError(
                f"a workload plan is of a cep.Workload, not {kind_of(self.workload)}; write "
                "cep.WorkloadPlan(workload, cuts={...})"
            )
        if not isinstance(self.cuts, Mapping):
            raise PlanError(
                'cuts is a mapping of queries to positions such as {"Q1": (3, 5)}, not '
                f"{kind_of(self.cuts)}"
            )
        flag(self.shares_prefixes, "shares_prefixes", PlanError)
        patterns = self.workload.patterns
        for query in self.cuts:
            if query not in patterns:
                raise PlanError(
                    f"cuts has a query {query!r} that the workload has not; it has "
                    f"{', '.join(patterns)}{did_you_mean(query, patterns)}"
                )
        cuts = {query: self._checked(query, self.cuts.get(query, ())) for query in patterns}
        object.__setattr__(self, "cuts", MappingProxyType(cuts))
        _ = self._segments  # raises for cuts that the patterns do not allow

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
    def tables(self) -> tuple[SegmentTable, ...]:
        """The segments of all queries, those that are counted together as one table."""
        listed = (each for its in self._segments.values() for each in its)
        return tables_of(listed, shares_prefixes=self.shares_prefixes)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serializable dict, without planner and cost."""
        return {
            "workload": {query: str(its) for query, its in self.workload.patterns.items()},
            "cuts": {query: list(cuts) for query, cuts in self.cuts.items()},
            "shares_prefixes": self.shares_prefixes,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorkloadPlan:
        """The inverse of :meth:`to_dict`.

        Raises
        ------
        PlanError, PatternError
            If ``data`` is not of this form.
        """
        try:
            return cls(Workload(data["workload"]), data["cuts"], data["shares_prefixes"])
        except (LookupError, TypeError) as error:
            raise PlanError(f"not a result of WorkloadPlan.to_dict(): {error!r}") from error

    def __repr__(self) -> str:
        cuts = {query: cuts for query, cuts in self.cuts.items() if cuts}
        return f"WorkloadPlan({self.workload!r}, {cuts!r}, {self.shares_prefixes})"

    def describe(self) -> str:
        """The segments of each query, and the parts that several of them share."""
        lines = [self._headline()]
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
        return f"workload plan {by}, estimated cost {self.cost:.4g} updates per second"

    def _repr_html_(self) -> str:
        alone = [query for query, segments in self._segments.items() if not segments]
        caption = self._headline() + (f"; {', '.join(alone)} alone" if alone else "")
        drawing = workload_svg(self.tables) if self.tables else ""
        return str(_FIGURE(caption=caption, drawing=drawing))
