"""Matches of a query from those of a more general or more specific one are the query's own."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.reuse import growth
from cepbench.engines.reuse.queries import query_of
from cepbench.patterns.model import Kind, Pattern
from cepbench.planning.plans.reuse import Reuse, reuses, union_of
from tests.naive.matcher import naive_matches

HIERARCHY = cep.ConceptHierarchy({"X": ["A", "B"], "C": []})
#: What may stand above a type.
ABOVE = {"A": "AX", "B": "BX", "C": "C", "X": "X"}

CONDITIONS = (
    "{0}.x <= {1}.x", "{0}.x = {1}.x", "{0}.x + 1 != {1}.x * 2", "{0}.x < 2", "{0}.x + {1}.x < 3",
    "({0}.x > {1}.x OR {1}.x = 1)", "{0}.x + {1}.x >= {2}.x",
)  # fmt: skip
#: Conditions on a set.
OF_SETS = (
    "{0}.x >= 0", "{0}[i].x >= {0}[i-1].x", "{0}[2..].x > 0", "{0}[1].x <= {0}[last].x",
    "sum({0}[].x) < 4", "count({0}[].x) < 3", "{0}[i].x >= avg({0}[..i-1].x)",
)  # fmt: skip


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Up to ten events, with ties in time and missing values; the first tried are of types in turn."""
    size = 10 - draw(st.sampled_from([0, 0, 1, 3, 7, 10]))
    events = [
        (
            "ABCAABX"[(place + draw(st.integers(0, 6))) % 7],
            draw(st.sampled_from([1, 0, 2])),
            draw(st.sampled_from([0.0, 1.0, 2.0, float("nan")])),
        )
        for place in range(size)
    ]
    columns = pd.DataFrame(events, columns=["type", "time", "x"])
    return columns.assign(time=columns["time"].astype(int).cumsum(), x=columns["x"].astype(float))


@st.composite
def chains(draw: st.DrawFn) -> list[Pattern]:
    """Queries of which each is above the next."""
    operator = draw(st.sampled_from(["SEQ", "SEQ", "SEQ", "AND"]))
    size = draw(st.integers(1, 4))
    items = [f"{draw(st.sampled_from('AABCX'))} v{k}" for k in range(size)]
    sets = draw(st.lists(st.integers(0, size - 1), max_size=2)) if draw(st.booleans()) else []
    for k in {*sets}:
        items[k] = f"KL({items[k]})"
    if operator == "SEQ":
        places = draw(st.lists(st.integers(0, size), max_size=2))
        for number, place in enumerate(sorted(places, reverse=True)):
            items.insert(place, f"NOT({draw(st.sampled_from('ABCX'))} n{number})")
        if size > 2 and not places and draw(st.booleans()):
            items[1:3] = [f"AND({items[1]}, {items[2]})"]
    names = [f"v{k}" for k in range(size)] + [f"n{k}" for k in range(len(items) - size)]
    conditions = []
    for _ in range(draw(st.integers(0, 3))):
        one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        if "n" in one and "n" in other and one != other:
            continue
        comparison = draw(st.sampled_from(CONDITIONS))
        conditions.append(comparison.format(one, other, f"v{draw(st.integers(0, size - 1))}"))
    for k in sets:
        conditions.append(draw(st.sampled_from(OF_SETS)).format(f"v{k}"))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    window = draw(st.integers(1, 6))
    order = draw(st.sampled_from(["", "", " ORDER BY arrival"]))
    text = f"PATTERN {operator}({', '.join(items)}){where}{order} WITHIN {window} units"
    try:
        found = [cep.parse(text)]
    except cep.CepbenchError:  # a contradiction
        return draw(chains())
    while len(found) < 4 and draw(st.integers(0, 3)):
        found.insert(0, draw(_above(found[0])))
    if draw(st.booleans()):
        found.append(_with_a_and_b_exchanged(draw(st.sampled_from(found))))
    return found


def _with_a_and_b_exchanged(pattern: Pattern) -> Pattern:
    """Often another refinement of the query above, by another type."""
    return cep.parse(re.sub(r"\b[AB] ", lambda it: {"A ": "B ", "B ": "A "}[it[0]], str(pattern)))


@st.composite
def _above(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    """A query that may be above another one: whether it is, is for the refinement to say."""
    dropped = [v for v in pattern.variables if draw(st.integers(0, 2)) == 0]
    if {*pattern.positive} <= {*dropped}:
        dropped = [v for v in dropped if v.kind is Kind.NEGATED]
    found = pattern.without(dropped) if dropped else pattern
    kept = tuple(clause for clause in found.conditions if draw(st.integers(0, 3)))
    found = replace(found, conditions=kept)
    text = str(found)
    for variable in found.positive:
        item = f"{draw(st.sampled_from(ABOVE[variable.type]))} {variable.name}"
        if variable.is_set or draw(st.integers(0, 9)) == 0:
            item = f"KL({item})"
        text = text.replace(str(variable), item)
    text = text.replace(" v", " u").replace("(v", "(u").replace("-v", "-u")
    if draw(st.integers(0, 3)) == 0:
        text = text.replace(f"WITHIN {found.window}", "WITHIN 7 units")
    return cep.parse(text)


@st.composite
def plans(draw: st.DrawFn) -> cep.WorkloadPlan:
    """Some queries, for each sources that it can be computed from, or none; some are virtual."""
    whole = draw(workloads())
    chosen = draw(ways_of(whole))
    used = sorted({source for way in chosen.values() for source in way.sources})
    virtual = {*draw(st.lists(st.sampled_from(used), unique=True))} if used else {}
    return plan_of(whole, chosen, virtual)


@st.composite
def workloads(draw: st.DrawFn) -> cep.Workload:
    """Some queries, of which some refine others."""
    queries = [(f"q{k}", its) for k, its in enumerate(draw(chains()))]
    return cep.Workload(dict(draw(st.permutations(queries))), hierarchy=HIERARCHY)


@st.composite
def ways_of(draw: st.DrawFn, whole: cep.Workload, *, delays: bool = True) -> dict[str, Reuse]:
    """For each query a way to compute it."""
    chosen: dict[str, Reuse] = {}
    for query in draw(st.permutations([*whole.patterns])):
        fitting = [
            way
            for other in chosen
            for way in reuses(whole, other, query)
            if delays or not way.waits
        ]
        upwards = {way.source: way for way in fitting if way.method == "up"}
        way = Reuse(query)
        if len(upwards) > 1 and draw(st.booleans()):
            way = union_of(
                draw(st.lists(st.sampled_from([*upwards.values()]), min_size=2, unique=True))
            )
        elif fitting and draw(st.integers(0, 5)):
            way = draw(st.sampled_from(fitting))
        if way.source is not None and draw(st.booleans()):
            names = whole.patterns[query].positive_names
            if way.method == "down":
                names = [name for place, name in enumerate(names) if place not in way.embedding]
            way = replace(way, order=tuple(draw(st.permutations(names))))
        chosen[query] = way
    return chosen


def plan_of(
    whole: cep.Workload, chosen: Mapping[str, Reuse], virtual: Collection[str]
) -> cep.WorkloadPlan:
    """The plan of these ways, of queries of a workload; some are virtual."""
    reused = {query: way for query, way in chosen.items() if way.source is not None}
    patterns = whole.patterns
    reported = {q: its for q, its in patterns.items() if q in chosen and q not in virtual}
    return cep.WorkloadPlan(
        cep.Workload(reported, hierarchy=HIERARCHY),
        sources={query: way.source for query, way in chosen.items()},
        embeddings={query: way.embeddings or way.embedding for query, way in reused.items()},
        orders={query: way.order for query, way in reused.items() if way.order},
        virtual={query: patterns[query] for query in virtual},
        delays=any(way.waits for way in chosen.values()),
    )


@given(plans(), frames(), st.booleans(), st.booleans())
def test_each_query_has_its_own_matches_whatever_it_is_computed_from(
    plan, frame, by_key, by_runs
) -> None:
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=HIERARCHY)
    with pytest.MonkeyPatch.context() as patch:
        if by_key:  # as with many pairs of a match and an event
            patch.setattr(growth, "_TESTS", -1)
        if by_runs:  # as with few combinations of events of a run
            patch.setattr(growth, "PAIRS_OF_RUN", 1e9)
            patch.setattr(growth, "KEPT_OF_RUN", 1e9)
        found = cep.evaluate(plan.workload, stream, plan)
    alone = cep.evaluate(plan.workload, stream)
    steps = found.steps.set_index("query")
    for query, pattern in plan.workload.patterns.items():
        pd.testing.assert_frame_equal(found[query].matches, alone[query].matches)
        rows = set(found[query].matches.itertuples(index=False, name=None))
        assert rows == naive_matches(pattern.with_hierarchy(HIERARCHY), frame)
        step = steps.loc[query]
        assert step["results"] == len(rows) == step["reused"] + step["delta"]
        assert (step["source"] or None) == plan.sources[query]
        if plan.reuse(query).method == "down":
            assert step["delta"] == 0


SEQUENCES = cep.Workload(
    {
        "q1": "PATTERN SEQ(A a, C c) WITHIN 4 units RETURN a.x AS x, c",
        "q2": "PATTERN SEQ(A a, B b, C c) WITHIN 4 units",
        "q3": "PATTERN SEQ(A a, KL(B b), C c) WITHIN 4 units",
    }
)
TEN = cep.EventStream.from_pandas(
    pd.DataFrame({"type": list("ABACBCBCAC"), "time": range(10), "x": range(10)}),
    type="type",
    time="time",
)


@pytest.mark.parametrize("sources", [("q1", None), (None, "q2")])
def test_every_output_is_that_of_the_query_alone(sources) -> None:
    workload = cep.Workload({query: SEQUENCES.patterns[query] for query in ("q1", "q2")})
    plan = cep.WorkloadPlan(workload, sources={"q2": sources[0], "q1": sources[1]})
    for output in ("matches", "arrow", "count"):
        found = cep.evaluate(workload, TEN, plan, output=output)
        alone = cep.evaluate(workload, TEN, output=output)
        for query in workload.patterns:
            assert found[query].metrics.matches == alone[query].metrics.matches > 0
            if output == "count":
                with pytest.raises(cep.CepbenchError, match="were only counted"):
                    _ = found[query].matches
            else:
                pd.testing.assert_frame_equal(found[query].matches, alone[query].matches)


def test_a_run_of_missing_items_is_joined_first() -> None:
    """Of a hundred matches, none has to be extended by a B that has no C."""
    types = ["A"] * 10 + ["B"] * 6 + ["C"] * 3 + ["D"] * 10
    keys = [0] * 10 + [1, 2, 3, 4, 5, 6] + [6, 7, 8] + [0] * 10
    stream = cep.EventStream.from_pandas(
        pd.DataFrame({"type": types, "time": range(29), "k": keys}), type="type", time="time"
    )
    workload = cep.Workload(
        {
            "q1": "PATTERN SEQ(A z, D d) WITHIN 99 units",
            "q2": "PATTERN SEQ(A z, B b, C c, D d) WHERE b.k = c.k WITHIN 99 units",
        }
    )
    plan = cep.WorkloadPlan(workload, sources={"q1": None, "q2": "q1"})
    for output in ("matches", "count"):
        found = cep.evaluate(workload, stream, plan, partial_match_limit=100, output=output)
        assert found["q2"].metrics.matches == 100
    ordered = cep.WorkloadPlan(workload, sources=plan.sources, orders={"q2": ("b", "c")})
    with pytest.raises(cep.CepbenchError, match=r"more than 100 partial matches over \(z, d, b\)"):
        cep.evaluate(workload, stream, ordered, partial_match_limit=100)


def test_plans_that_do_not_fit() -> None:
    workload = cep.Workload({query: SEQUENCES.patterns[query] for query in ("q1", "q2")})
    plan = cep.WorkloadPlan(workload, sources={"q2": "q1", "q1": None})
    with pytest.raises(cep.CepbenchError, match="the plan is of another workload"):
        cep.evaluate(SEQUENCES, TEN, plan)
    with pytest.raises(cep.CepbenchError, match="the plan has cuts"):
        cep.evaluate(workload, TEN, cep.WorkloadPlan(workload))
    with pytest.raises(cep.CepbenchError, match="matches that are reused are listed"):
        cep.evaluate(workload, TEN, plan, output="compressed")
    three = cep.Workload(
        {
            "q1": "PATTERN SEQ(A a, C c) WITHIN 9 units",
            "q2": "PATTERN SEQ(A a, B b, B d, C c) WITHIN 9 units",
        }
    )
    plan = cep.WorkloadPlan(three, sources={"q2": "q1", "q1": None})
    with pytest.raises(cep.CepbenchError, match="query 'q2': more than 10 partial matches over"):
        cep.evaluate(three, TEN, plan, partial_match_limit=10)


def test_queries_with_the_least_of_a_set_are_not_reused() -> None:
    texts = [
        f"PATTERN SEQ(A a, {item}KL(B b)) WHERE min(b[].x) > 2 WITHIN 4 units"
        for item in ("", "C c, ")
    ]
    workload = cep.Workload(dict(zip(("q1", "q2"), texts, strict=True)))
    plan = cep.WorkloadPlan(workload, sources={"q2": "q1", "q1": None})
    with pytest.raises(cep.CepbenchError, match=r"query 'q1' has min or max over a set.*scratch"):
        cep.evaluate(workload, TEN, plan)


@pytest.mark.parametrize(
    ("general", "specific"),
    [
        ("SEQ(A a, B b) WITHIN 5 units", "SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 units"),
        ("SEQ(A a, B b) WITHIN 5 units", "SEQ(A a, B b) WITHIN 2 units"),
        ("SEQ(Any a, B b) WITHIN 5 units", "SEQ(A a, B b) WITHIN 5 units"),
        ("AND(A a, B b) WITHIN 5 units", "SEQ(A a, B b) WITHIN 5 units"),
        ("SEQ(A a, B b) WITHIN 5 units", "SEQ(A a, C c, B b) WITHIN 5 units"),
        ("SEQ(A a, B b) WITHIN 5 units", "SEQ(A a, NOT(C n), B b) WITHIN 5 units"),
        ("SEQ(KL(Any a), B b) WITHIN 5 units", "SEQ(KL(A a), B b) WITHIN 5 units"),
        ("SEQ(KL(A a), B b) WITHIN 5 units", "SEQ(A a, B b) WITHIN 5 units"),
        ("SEQ(A a, B b) WITHIN 5 units", "SEQ(A a, KL(C c), B b) WITHIN 5 units"),
        (
            "SEQ(KL(A a), B b) WITHIN 7 units",
            "SEQ(KL(A a), B b) WHERE sum(a[].x) < 2 WITHIN 7 units",
        ),
    ],
    ids=[
        "condition",
        "window",
        "concept",
        "order",
        "item",
        "negation",
        "concept of a set",
        "one event",
        "set",
        "sum",
    ],
)
def test_what_only_the_specific_query_asks_is_tested(general: str, specific: str) -> None:
    frame = pd.DataFrame(
        {"type": list("ABCABBCA"), "time": range(8), "x": [1, 2, 3, 1, 0, 9, 4, 5]}
    )
    hierarchy = cep.ConceptHierarchy({"Any": ["A", "B", "C"]})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=hierarchy)
    texts = {"g": f"PATTERN {general}", "s": f"PATTERN {specific}"}
    workload = cep.Workload(texts, hierarchy=hierarchy)
    expected = {
        query: naive_matches(pattern.with_hierarchy(hierarchy), frame)
        for query, pattern in workload.patterns.items()
    }
    assert expected["g"] != expected["s"] and all(expected.values())
    for sources in ({"g": None, "s": "g"}, {"s": None, "g": "s"}):
        found = cep.evaluate(workload, stream, cep.WorkloadPlan(workload, sources=sources))
        for query, rows in expected.items():
            assert set(found[query].matches.itertuples(index=False, name=None)) == rows


def any_sources(problem, rng):
    """Of each query any, virtual ones and unions first."""
    found = {}
    for query in rng.permutation([*problem.scratch]).tolist():
        ways = [its for its in problem.edges if its.query == query and its.source in found]
        ways += [its for its in problem.unions if its.query == query and {*its.source} <= {*found}]
        preferred = [
            its for its in ways if not {*its.sources} <= problem.scratch.keys() - problem.virtual
        ]
        ways = preferred or ways
        found[query] = ways[rng.integers(len(ways))].source if ways else None
    return found


@given(chains(), chains(), frames(), st.integers(0, 99), st.data())
def test_queries_that_share_virtual_ones_have_their_own_matches(
    queries, more, frame, seed, data
) -> None:
    drawn = [*queries[-2:], *more[-1:], _with_a_and_b_exchanged(queries[-1])]
    drawn = [replace(its, order=queries[0].order) for its in drawn]
    patterns = {f"q{k}": its for k, its in enumerate(drawn)}
    workload = cep.Workload(patterns, hierarchy=HIERARCHY)
    rates = {v.name: 1.0 for its in drawn for v in its.variables}
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=HIERARCHY)
    with cep.WORKLOAD_PLANNERS.restored():
        cep.workload_planner("ANY", virtual=True)(any_sources)
        plan = cep.plan_workload(
            workload,
            dict.fromkeys(patterns, cep.Statistics(rates=rates)),
            data.draw(st.sampled_from(["ANY", "ANY", "STEINER", "FORESTS"])),
            delays=data.draw(st.booleans()),
            seed=seed,
        )
    found = cep.evaluate(workload, stream, plan)
    for query, pattern in workload.patterns.items():
        rows = [*found[query].matches.itertuples(index=False, name=None)]
        assert len(rows) == len({*rows})
        assert {*rows} == naive_matches(pattern.with_hierarchy(HIERARCHY), frame)


def test_equalities_hold_between_any_two_variables() -> None:
    """One that conditions imply is tested as soon as both are bound, not through a negated variable."""
    query = query_of(
        cep.parse(
            "PATTERN SEQ(A a, B b, NOT(D d), C c, E e) WHERE [id] AND d.x = b.x AND d.x = e.x "
            "WITHIN 9 units"
        )
    )
    texts = {
        bound: [str(its) for its in query.relations("e", bound).conditions]
        for bound in [("a",), ("a", "b"), ("a", "b", "c")]
    }
    assert texts == {
        ("a",): ["a.id = e.id"],
        ("a", "b"): ["a.id = e.id"],
        ("a", "b", "c"): ["c.id = e.id"],
    }


@pytest.mark.kernel
def test_events_are_looked_up_by_the_value_of_an_equality(monkeypatch) -> None:
    """Many pairs of a match and an event, few of which are equal; some events have no value."""
    count = 600
    frame = pd.DataFrame(
        {
            "type": ["A", "B", "C"] * (count // 3),
            "time": range(count),
            "x": [float(k * k % 97) if k % 11 else float("nan") for k in range(count)],
        }
    )
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    workload = cep.Workload(
        {
            "q1": "PATTERN SEQ(A a, C c) WHERE [x] WITHIN 300 units",
            "q2": "PATTERN SEQ(A a, B b, C c) WHERE [x] WITHIN 300 units",
            "q3": "PATTERN SEQ(A a, NOT(B b), C c) WHERE [x] WITHIN 300 units",
        }
    )
    looked_up = []
    real = growth.Candidates.by_key

    def by_key(self, number, values):
        looked_up.append(number)
        return real(self, number, values)

    monkeypatch.setattr(growth.Candidates, "by_key", by_key)
    alone = cep.evaluate(workload, stream)
    for sources in (
        {"q1": None, "q2": "q1", "q3": "q1"},
        {"q2": None, "q1": "q2", "q3": "q1"},
    ):
        looked_up.clear()
        found = cep.evaluate(workload, stream, cep.WorkloadPlan(workload, sources=sources))
        assert looked_up
        for query, its in alone.items():
            assert len(its.matches) > 20
            pd.testing.assert_frame_equal(found[query].matches, its.matches)
