"""Patterns and streams that all entries are tried on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

import cepbench as cep
from cepbench.patterns.model import Kind, Operator, Pattern
from tests.engines.detection.checks import Labelled
from tests.engines.detection.constructs import Family, affordable, construct_cases
from tests.engines.detection.strategies import Case, statistics_for
from tests.engines.detection.test_concepts import HIERARCHIES
from tests.naive.automaton import automaton_matches
from tests.naive.matcher import labelled_matches

#: Types of the columns of numbers and texts as streams come in; None leaves what pandas has.
FORMS: Mapping[str, Mapping[str, pa.DataType] | None] = {
    "pandas": None,
    "decimals": {"x": pa.decimal128(5, 1), "y": pa.decimal128(19, 0), "s": pa.string()},
    "narrow": {"x": pa.float32(), "y": pa.int8(), "s": pa.large_string()},
    "wide": {"x": pa.float64(), "y": pa.float64(), "s": pa.dictionary(pa.int8(), pa.string())},
}


@dataclass(frozen=True, eq=False)
class ContractCase(Case):
    """A pattern and events, in a form."""

    form: str = "pandas"

    @cached_property
    def stream(self) -> cep.EventStream:
        return stream_in(self.form, self.events, is_datetime=self.pattern.window.is_datetime)

    @cached_property
    def expected(self) -> set[Labelled]:
        return twin(self.pattern, self.events)

    def __repr__(self) -> str:
        return super().__repr__().replace("Case(", f"ContractCase({self.form}, ")


def twin(pattern: Pattern, events: pd.DataFrame) -> set[Labelled]:
    """The matches by the naive twin of the pattern's strategy."""
    its = automaton_matches if pattern.strategy.name == "next" else labelled_matches
    return its(pattern, events)


def stream_in(form: str, events: pd.DataFrame, *, is_datetime: bool) -> cep.EventStream:
    """The events as a stream whose columns have the types of a form."""
    if is_datetime:
        events = events.assign(time=pd.to_datetime(events["time"], unit="ns"))
    types = FORMS[form]
    if types is None:
        return cep.EventStream.from_pandas(events, type="type", time="time")
    table = pa.Table.from_pandas(events.assign(s=events["s"].astype(object)), preserve_index=False)
    for name, its in types.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, table.column(name).cast(its))
    return cep.EventStream.from_arrow(table, type="type", time="time")


@st.composite
def contract_cases(draw: st.DrawFn, families: st.SearchStrategy[Family]) -> ContractCase:
    """A case of a family, maybe under a hierarchy, with either output, in any form."""
    family = draw(families)
    hierarchy = draw(st.sampled_from([None, None, None, *HIERARCHIES]))
    case = draw(construct_cases(family, hierarchy=hierarchy, sizes=(1, 4)))
    pattern, events = case.pattern, case.events
    if pattern.strategy.name != "consuming" and draw(st.integers(0, 4)) == 0:
        pattern = replace(pattern, output="non_overlap")
    if draw(st.integers(0, 9)) == 0:
        events = events.assign(x=np.nan)
    return ContractCase(pattern, events, draw(st.sampled_from([*FORMS])))


@dataclass(frozen=True, eq=False)
class WorkloadCase:
    """Queries of one hierarchy and order of events, and events."""

    workload: cep.Workload
    events: pd.DataFrame
    form: str

    @cached_property
    def stream(self) -> cep.EventStream:
        first = next(iter(self.workload.patterns.values()))
        return stream_in(self.form, self.events, is_datetime=first.window.is_datetime)

    @cached_property
    def expected(self) -> dict[str, set[Labelled]]:
        return {query: twin(its, self.events) for query, its in self.patterns.items()}

    @cached_property
    def patterns(self) -> dict[str, Pattern]:
        """The queries under the hierarchy of all."""
        hierarchy = self.workload.hierarchy
        return {q: its.with_hierarchy(hierarchy) for q, its in self.workload.patterns.items()}

    def __repr__(self) -> str:
        rows = self.events.to_csv(index=False, na_rep="?", lineterminator="; ")
        queries = {query: str(its) for query, its in self.workload.patterns.items()}
        return f"WorkloadCase({queries}, {self.workload.hierarchy}, {self.form}, {rows})"


@st.composite
def workload_cases(draw: st.DrawFn, families: st.SearchStrategy[Family]) -> WorkloadCase:
    """A case among others: itself once more, queries above it, and others over the same events."""
    case = draw(contract_cases(families))
    pattern, events = case.pattern, case.events
    queries = {"q": pattern}
    for number in range(draw(st.integers(1, 3))):
        match draw(st.sampled_from(["same", "above", "above", "below", "other"])):
            case "same":
                its = pattern
            case "above":
                its = draw(_above(draw(st.sampled_from([*queries.values()]))))
            case "below":
                window = replace(pattern.window, amount=max(1, pattern.window.amount // 2))
                its = replace(draw(st.sampled_from([*queries.values()])), window=window)
            case _:
                other = draw(construct_cases(draw(families))).pattern
                its = replace(other, window=pattern.window, order=pattern.order)
                its = its.with_hierarchy(pattern.hierarchy)
        queries[f"r{number}"] = its
        events = affordable(its, events)
    names = draw(st.permutations([*queries]))
    workload = cep.Workload({name: queries[name] for name in names}, hierarchy=pattern.hierarchy)
    return WorkloadCase(workload, events, case.form)


@st.composite
def _above(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    """Without some of the conditions and, of a plain SEQ or AND, without some of the items."""
    kept = tuple(its for its in pattern.conditions if draw(st.booleans()))
    above = replace(pattern, conditions=kept)
    plain = all(not hasattr(item, "items") for item in pattern.structure.items)
    if plain and pattern.structure.operator is not Operator.OR and len(pattern.positive) > 1:
        dropped = [v for v in pattern.variables if draw(st.integers(0, 2)) == 0]
        left = [v for v in pattern.positive if v not in dropped]
        if dropped and left and not any(v.kind is Kind.GROUP for v in pattern.variables):
            above = above.without(dropped)
    return above


@st.composite
def statistics_of(draw: st.DrawFn, case: WorkloadCase) -> dict[str, cep.Statistics]:
    """Of each query: measured, or any numbers."""
    return {
        query: draw(statistics_for(ContractCase(its, case.events, case.form)))
        for query, its in case.patterns.items()
    }
