"""Values of AGG from matches that queries reuse, by plans with sources, are those of each query alone."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.aggregation.protocol import EMITS, SCOPES
from cepbench.errors import EvaluationError, PlanError, UnsupportedPatternError
from cepbench.patterns.model import EventType, Grouping, Kind, MatchAggregate, Pattern
from tests.budgets import examples
from tests.engines.detection.strategies import batches_of
from tests.engines.reuse.test_reuse import HIERARCHY, chains, frames
from tests.naive.aggregates import naive_rows

pytestmark = pytest.mark.kernel


@st.composite
def plans(draw: st.DrawFn) -> cep.WorkloadPlan:
    """Queries with AGG, most of them computed from others."""
    queries = {}
    shared = draw(st.sampled_from([(), (), (Grouping("x"),)]))
    for number, pattern in enumerate(draw(chains())):
        its = _asked(draw, pattern, shared)
        if its is not None:
            queries[f"q{number}"] = its
    assume(queries)
    workload = cep.Workload(queries, hierarchy=HIERARCHY)
    sources: dict[str, str | None] = dict.fromkeys(queries)
    for query in draw(st.permutations([*queries])):
        for source in draw(st.permutations([*queries])):
            try:
                cep.WorkloadPlan(workload, sources={**sources, query: source})
            except PlanError:
                continue
            sources[query] = source
            break
    return cep.WorkloadPlan(workload, sources=sources)


def _asked(draw: st.DrawFn, pattern: Pattern, shared: tuple[Grouping, ...]) -> Pattern | None:
    """A pattern with AGG, maybe with GROUP BY; None if its matches are decided too late."""
    plain = [v.name for v in pattern.positive if v.kind is Kind.PLAIN]
    values = [MatchAggregate("COUNT")]
    keys = []
    if plain:  # a set of KL has no one value
        names = st.sampled_from(plain)
        values += [MatchAggregate(name, draw(names), "x") for name in ("SUM", "MAX")]
        level = draw(st.sampled_from([None, 0]))
        keys = [Grouping("x", draw(names)), Grouping(EventType(level), draw(names))]
    return_by = shared + tuple(draw(st.lists(st.sampled_from(keys), max_size=1)) if keys else ())
    try:
        return replace(
            pattern,
            aggregates=tuple(draw(st.lists(st.sampled_from(values), min_size=1, unique=True))),
            group_by=return_by,
        )
    except UnsupportedPatternError:
        return None


@given(plan=plans(), frame=frames(), data=st.data())
@examples(5)
def test_values_are_those_of_each_query_alone(plan, frame, data) -> None:
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=HIERARCHY)
    emit, scope = data.draw(st.sampled_from(EMITS)), data.draw(st.sampled_from(SCOPES))
    given = {"sharing": plan, "emit": emit, "scope": scope}
    found = cep.aggregate(plan.workload, stream, "e-cube", **given)
    assert found.method == "e-cube"
    for query, pattern in plan.workload.patterns.items():
        assert set(found.rows[query].rows) == naive_rows(pattern, frame, emit=emit, scope=scope)
    live = cep.Aggregator(plan.workload, **given)
    tables = []
    for batch in data.draw(batches_of(stream)):
        if data.draw(st.booleans()):
            live = cep.Aggregator.restore(live.snapshot())
        tables.append(live.push(batch))
    if any(len(table) for table in tables):
        # Columns are filled by rows, since pandas warns of those with missing values alone.
        rows = [row for table in tables for row in table.to_dict("records")]
        in_batches = pd.DataFrame(rows, columns=found.values.columns)
        whole = found.values.reset_index(drop=True)
        pd.testing.assert_frame_equal(in_batches, whole, check_dtype=False)


TRADES = cep.ConceptHierarchy({"Computer": ["INTC", "DELL"]})
WORKLOAD = cep.Workload(
    {
        "q1": "PATTERN SEQ(Computer a, QQQ b) AGG COUNT WITHIN 20 units",
        "q2": "PATTERN SEQ(Computer a, QQQ b) GROUP BY type(a) AGG COUNT WITHIN 20 units",
        "q3": "PATTERN SEQ(DELL a, QQQ b, AMAT c) WHERE a.x < c.x AGG COUNT, SUM(b.x) WITHIN 20 units",
    },
    hierarchy=TRADES,
)


def trades(size: int = 400) -> cep.EventStream:
    frame = pd.DataFrame({"n": range(size)})
    frame = frame.assign(
        type=[["INTC", "QQQ", "DELL", "AMAT", "QQQ"][(n * n + n // 3) % 5] for n in range(size)],
        time=frame["n"] // 2,
        x=frame["n"] * 7 % 11,
    )
    return cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=TRADES)


@pytest.mark.parametrize("sharing", [None, "CHASE", "TOP-DOWN", "naive"])
def test_planners(sharing: str | None) -> None:
    found = cep.aggregate(WORKLOAD, trades(), "e-cube", sharing=sharing)
    assert found.sharing.planner == (sharing or "CHASE").upper()
    for query, pattern in WORKLOAD.patterns.items():
        alone = cep.aggregate(pattern, trades(), "two-step")
        assert found.rows[query].rows == alone.rows
    at = cep.aggregate(WORKLOAD, trades(), sharing=found.sharing, at=[30, 90]).values
    assert at.loc[at["query"] == "q1", "COUNT"].tolist() == (
        cep.aggregate(WORKLOAD.patterns["q1"], trades(), at=[30, 90]).values["COUNT"].tolist()
    )


@pytest.mark.parametrize("evaluator", ["hierarchical-stacks", "lazy-nfa", "tree", None])
def test_a_virtual_query(evaluator: str | None) -> None:
    """Queries of which none refines another one, with a part in common."""
    queries = {
        "q1": "PATTERN SEQ(INTC a, QQQ b, AMAT c) AGG COUNT, MIN(a.x) WITHIN 20 units",
        "q2": "PATTERN SEQ(DELL a, QQQ b, AMAT c) AGG COUNT WITHIN 15 units",
    }
    workload = cep.Workload(queries)
    plan = cep.WorkloadPlan(
        workload,
        sources={"q1": "v", "q2": "v", "v": None},
        virtual={"v": "PATTERN SEQ(QQQ b, AMAT c) WITHIN 20 units"},
    )
    found = cep.aggregate(workload, trades(), sharing=plan, evaluator=evaluator)
    assert set(found.rows) == {"q1", "q2"} and found.metrics.updates > 0
    for query, text in queries.items():
        assert found.rows[query].rows == cep.aggregate(text, trades(), "two-step").rows


def test_group_by_restricts_the_matches() -> None:
    """GROUP BY x compares all events: a query without it is no source of one that has it."""
    text = "PATTERN SEQ(DELL a, QQQ b{}) {} AGG COUNT WITHIN 9 units"
    plain, grouped = text.format("", ""), text.format(", AMAT c", "GROUP BY x")
    workload = cep.Workload({"g": text.format("", "GROUP BY x"), "s": text.format(", AMAT c", "")})
    for source, query in (("g", "s"), ("s", "g")):
        with pytest.raises(PlanError, match="refine"):
            cep.WorkloadPlan(workload, sources={query: source, source: None})
    below = cep.Workload({"g": plain, "s": grouped})
    plan = cep.WorkloadPlan(below, sources={"g": None, "s": "g"})
    found = cep.aggregate(below, trades(), sharing=plan)
    assert found.rows["s"].rows == cep.aggregate(grouped, trades()).rows


def test_errors() -> None:
    plan = cep.WorkloadPlan(WORKLOAD, sources={"q1": "q3", "q2": None, "q3": None}, delays=True)
    alone = cep.WorkloadPlan(WORKLOAD, sources=dict.fromkeys(WORKLOAD.patterns))
    for options, words in (
        ({"method": "e-cube"}, "give sharing=cep.plan_workload"),
        ({"sharing": plan}, "plan with delays=False"),
        ({"sharing": alone, "method": "a-seq"}, "method e-cube, not a-seq"),
        ({"sharing": cep.WorkloadPlan(WORKLOAD), "method": "e-cube"}, "method a-seq, not e-cube"),
    ):  # fmt: skip
        with pytest.raises(EvaluationError, match=words):
            cep.Aggregator(WORKLOAD, **options)
    with pytest.raises(EvaluationError, match="e-cube is for workloads"):
        cep.aggregate(WORKLOAD.patterns["q1"], trades(), "e-cube")
    with pytest.raises(EvaluationError, match="query 'q1': evaluate finds matches"):
        cep.evaluate(WORKLOAD, trades(), plan)
    with pytest.raises(EvaluationError, match="query 'q1': evaluate finds matches"):
        cep.Detector(WORKLOAD)
