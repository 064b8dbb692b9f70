"""Which queries refine which: examples, and what it means for matches."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.planning.workloads.refinement import embeddings
from tests.budgets import examples
from tests.naive.refinement import unrefuted

#: Figure 2 of [liu2011], abbreviated.
PLACES = cep.ConceptHierarchy(
    {"USA": {"TX": {"G": [], "A": [], "D": ["DBus"]}, "Oklahoma": {"OK": {"T": ["TBus", "THosp"]}}}}
)

#: Figure 1, whose q1 is from TX to OK; here OK is the state.
FIGURE_1 = {
    "q1": "SEQ(TX, OK)",
    "q2": "SEQ(D, T)",
    "q3": "SEQ(G, A, T)",
    "q4": "SEQ(G, NOT(DBus), A)",
    "q5": "SEQ(DBus, TBus, THosp)",
    "q6": "SEQ(G, A, D, T)",
    "q7": "SEQ(G, NOT(D), A, T)",
}


def workload_of(**queries: str) -> cep.Workload:
    return cep.Workload(
        {name: f"PATTERN {text} WHERE [id] WITHIN 48 hours" for name, text in queries.items()},
        hierarchy=PLACES,
    )


def test_figure_1() -> None:
    found = workload_of(**FIGURE_1).refinements
    assert [*found.itertuples(index=False, name=None)] == [
        ("q1", "q2", "concept", True),
        ("q1", "q3", "both", True),
        ("q1", "q5", "both", False),
        ("q1", "q6", "both", False),
        ("q1", "q7", "both", False),
        ("q2", "q5", "both", True),
        ("q2", "q6", "pattern", True),
        ("q3", "q6", "pattern", True),
        ("q3", "q7", "pattern", True),
        ("q4", "q7", "both", True),
    ]


def test_several_embeddings() -> None:
    workload = workload_of(**FIGURE_1)
    assert workload.embeddings["q2", "q5"] == ((0, 1), (0, 2))
    assert workload.embeddings["q3", "q6"] == ((0, 1, 3),)


def test_equal_queries_and_other_conditions() -> None:
    workload = cep.Workload(
        {
            "one": "PATTERN SEQ(A a, B b) WHERE a.x > 3 WITHIN 5 units",
            "same": "PATTERN SEQ(A c, B d) WHERE 3 < c.x WITHIN 5 units",
            "strict": "PATTERN SEQ(A a, B b) WHERE a.x > 4 WITHIN 5 units",
            "short": "PATTERN SEQ(A a, B b) WHERE a.x > 4 WITHIN 4 units",
        }
    )
    assert [*workload.refinements.itertuples(index=False, name=None)] == [
        ("one", "same", "nothing", True),
        ("one", "strict", "condition", True),
        ("one", "short", "condition", False),
        ("same", "one", "nothing", True),
        ("same", "strict", "condition", True),
        ("same", "short", "condition", False),
        ("strict", "short", "condition", True),
    ]


def test_no_refinements() -> None:
    workload = cep.Workload({"one": "PATTERN SEQ(A a) WITHIN 5 units"})
    assert workload.refinements.empty
    assert [*workload.refinements] == ["general", "specific", "change", "direct"]


#: General query, specific one, embeddings; windows of 5 units where none is written.
PAIRS = [
    # Section II, and what Definition 3 taken literally would allow.
    ("SEQ(G, !D, T)", "SEQ(G, !D, A, T)", []),
    ("SEQ(G, !D, A)", "SEQ(G, !D, A, T)", [(0, 1)]),
    ("SEQ(G, A, T)", "SEQ(G, !D, A, T)", [(0, 1, 2)]),
    ("SEQ(G, !D, A)", "SEQ(G, !TX, A)", [(0, 1)]),
    ("SEQ(G, !TX, A)", "SEQ(G, !D, A)", []),
    ("SEQ(G, !D, A)", "SEQ(G, A)", []),
    ("SEQ(G, !D, A)", "SEQ(G, !T, !D, A)", [(0, 1)]),
    ("SEQ(G, !D, !T, A)", "SEQ(G, !USA, A)", [(0, 1)]),
    # A negation at an end looks back, or forward, as far as the window.
    ("SEQ(!D, A, T)", "SEQ(!D, A, G, T)", [(0, 2)]),
    ("SEQ(!D, A)", "SEQ(!D, A, T)", []),
    ("SEQ(!D, T)", "SEQ(!D, A, T)", []),
    ("SEQ(!D, A, T)", "SEQ(!D, A, T) WITHIN 4 units", []),
    ("SEQ(A, T, !D)", "SEQ(A, G, T, !TX)", [(0, 2)]),
    ("SEQ(A, !D, T)", "SEQ(A, !D, T) WITHIN 4 units", [(0, 1)]),
    ("SEQ(A, T) WITHIN 4 units", "SEQ(A, T)", []),
    ("SEQ(A, T) WITHIN < 5 units", "SEQ(A, T) WITHIN 4 units", [(0, 1)]),
    # Order, and numbers of items of a type.
    ("SEQ(A, G)", "SEQ(G, A)", []),
    ("SEQ(A, A)", "SEQ(A, T, A, A)", [(0, 2), (0, 3), (2, 3)]),
    ("SEQ(TX, TX, TX)", "SEQ(A, G, T)", []),
    ("SEQ(ANY x, TX y)", "SEQ(T, A)", [(0, 1)]),
    ("SEQ(A)", "SEQ(ANY x)", []),
    ("AND(A, T)", "SEQ(T, A)", [(1, 0)]),
    ("SEQ(T, A)", "AND(T, A)", []),
    ("AND(A, !D, T)", "SEQ(T, !D, A)", []),
    ("AND(A, !D, T)", "AND(T, !TX, A)", [(1, 0)]),  # a bound A is not a forbidden event
    ("SEQ(KL(TX k), T)", "SEQ(KL(A k), T)", [(0, 1)]),
    ("SEQ(KL(TX k), T)", "SEQ(A, T)", [(0, 1)]),
    ("SEQ(A, T)", "SEQ(KL(A k), T)", []),
    ("SEQ(KL(A k), !D, T) WHERE D.x > k.x", "SEQ(A, !D, T) WHERE D.x > A.x", [(0, 1)]),
    # Conditions.
    ("SEQ(G, T) WHERE G.id = T.id", "SEQ(G, A, T) WHERE [id]", [(0, 2)]),
    ("SEQ(G, T) WHERE G.id = T.id", "SEQ(G, !A, T) WHERE G.id = A.id AND A.id = T.id", []),
    ("SEQ(G, T) WHERE G.x < T.x", "SEQ(G, A, T) WHERE G.x < A.x AND A.x <= T.x", [(0, 2)]),
    ("SEQ(G, T) WHERE G.x <= T.x", "SEQ(G, A, T) WHERE G.x < A.x AND A.x <= T.x", [(0, 2)]),
    ("SEQ(G, T) WHERE G.x != T.x", "SEQ(G, T) WHERE T.x = 3 AND G.x < 3", [(0, 1)]),
    ("SEQ(G, T) WHERE G.x != T.x", "SEQ(G, A, T) WHERE A.x != G.x AND A.x = T.x", [(0, 2)]),
    ("SEQ(G, T) WHERE G.x = 1 OR T.x = 1", "SEQ(G, T) WHERE T.x = 1", [(0, 1)]),
    ("SEQ(G) WHERE G.x > 0", "SEQ(G) WHERE G.x = 1 OR G.x > 4", [(0,)]),
    ("SEQ(G) WHERE G.x > 2", "SEQ(G) WHERE G.x = 1 OR G.x > 4", []),
    ("SEQ(G) WHERE G.x = G.x", "SEQ(G)", []),  # a missing value equals nothing
    ("SEQ(G) WHERE G.x = G.x", "SEQ(G) WHERE G.x > 4", [(0,)]),
    ("SEQ(G, T) WHERE [id]", "SEQ(G, T)", []),
    # A negated item's conditions may only be weaker, given those of the others.
    ("SEQ(G, !D, A) WHERE D.x > 5", "SEQ(G, !D, A) WHERE D.x > 3", [(0, 1)]),
    ("SEQ(G, !D, A) WHERE D.x > 3", "SEQ(G, !D, A) WHERE D.x > 5", []),
    ("SEQ(G, !D, A) WHERE D.id = G.id", "SEQ(G, !D, A) WHERE [id]", [(0, 1)]),
    ("SEQ(G, !D, A) WHERE [id]", "SEQ(G, !D, A) WHERE D.id = A.id AND G.id = A.id", [(0, 1)]),
    ("SEQ(G, !D, A) WHERE D.id = G.id", "SEQ(G, !D, A) WHERE D.id = A.id", []),
    # Sets.
    ("SEQ(KL(A k), T) WHERE k.x > 1", "SEQ(KL(A k), T) WHERE k.x > T.x AND T.x > 1", [(0, 1)]),
    ("SEQ(KL(A k), T) WHERE sum(k[].x) > 1", "SEQ(KL(A k), T) WHERE sum(k[].x) > 2", [(0, 1)]),
    ("SEQ(KL(A k), T) WHERE k[i].x > 1", "SEQ(KL(A k), T) WHERE k[i].x > k[i-1].x AND k[i-1].x > 1", []),
    ("SEQ(KL(A k), T) WHERE k[i].x > k[i-1].x", "SEQ(KL(A k), T) WHERE k[i].x > k[i-1].x", [(0, 1)]),
    ("SEQ(KL(A k), T) WHERE k[i].x > k[i-1].x", "SEQ(A, T)", [(0, 1)]),
    ("SEQ(KL(A k), T) WHERE k[last].x > k[1].x", "SEQ(A, T)", []),
    ("SEQ(KL(A k), T) WHERE sum(k[].x) > T.x", "SEQ(A, T) WHERE A.x > T.x", [(0, 1)]),
    ("SEQ(KL(A k), T) WHERE count(k[].x) < 2", "SEQ(A, T)", [(0, 1)]),
    ("SEQ(KL(A k), T) WHERE count(k[].x) > 1", "SEQ(A, T)", []),
    ("SEQ(KL(A k), T) WHERE max(k[].x) > 1 OR T.x = 0", "SEQ(A, T) WHERE A.x = 2", [(0, 1)]),
    # What has no refinements.
    ("OR(A, T)", "SEQ(A)", []),
    ("SEQ(A, T) STRATEGY next", "SEQ(A, G, T) STRATEGY next", []),
    ("SEQ(A, T) OUTPUT non_overlap", "SEQ(A, G, T)", []),
    ("SEQ(A, GROUP(D d, +), T)", "SEQ(A, GROUP(D d, +), T)", []),
]  # fmt: skip


def pattern_of(text: str) -> cep.Pattern:
    within = "" if "WITHIN" in text else " WITHIN 5 units"
    return cep.parse(f"PATTERN {text}{within}").with_hierarchy(PLACES)


@pytest.mark.parametrize(("general", "specific", "expected"), PAIRS)
def test_embeddings(general: str, specific: str, expected: list[tuple[int, ...]]) -> None:
    assert [*embeddings(pattern_of(general), pattern_of(specific), PLACES)] == expected


def test_grouped_queries() -> None:
    general = "PATTERN SEQ(TX, OK) GROUP BY age AGG COUNT WITHIN 5 units"
    specific = "PATTERN SEQ(D, T) WHERE [id] WITHIN 5 units"
    workload = cep.Workload({"general": general, "specific": specific}, hierarchy=PLACES)
    assert [*workload.embeddings] == [("general", "specific")]


# -- what it means for matches ----------------------------------------------------------------------

LETTERS = cep.ConceptHierarchy({"X": {"Y": ["A", "B"], "C": []}})
TYPES = ["A", "B", "C", "Y", "X"]
COMPARED = [
    "{0}.x = {1}.x",
    "{0}.x < {1}.x",
    "({0}.x = {1}.x OR {0}.x = 1)",
    "{0}.x > 0",
    "{0}.x = 1",
]
#: Conditions on a set.
OF_SETS = [
    "{0}[i].x >= {0}[i-1].x",
    "{0}[last].x > {0}[1].x",
    "count({0}[].x) < 2",
    "sum({0}[].x) > 0",
    "max({0}[].x) = 1",
]


@st.composite
def patterns(draw: st.DrawFn, positive: list[str]) -> str:
    """A structure and conditions over items of these types, some negated ones among them."""
    names = [f"v{place}" for place in range(len(positive))]
    kleene = draw(st.sampled_from([None, None, *names]))
    items = [
        f"KL({type_} {name})" if name == kleene else f"{type_} {name}"
        for type_, name in zip(positive, names, strict=True)
    ]
    negated = draw(st.lists(st.sampled_from(TYPES), max_size=2))
    conditions = []
    for number, type_ in enumerate(negated):
        items.insert(draw(st.integers(0, len(items))), f"NOT({type_} n{number})")
        if draw(st.booleans()):
            conditions.append(draw(st.sampled_from(COMPARED)).format(f"n{number}", names[0]))
    for text in draw(st.lists(st.sampled_from(COMPARED), max_size=2)):
        one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        conditions.append(text.format(one, other))
    if kleene is not None and draw(st.booleans()):
        conditions.append(draw(st.sampled_from(OF_SETS)).format(kleene))
    if draw(st.booleans()):
        conditions.append("[x]")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    operator = draw(st.sampled_from(["SEQ", "SEQ", "AND"]))
    return f"{operator}({', '.join(items)}){where} WITHIN {draw(st.integers(3, 4))} units"


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two patterns of which one has items at or below the types of the other."""
    general = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2))
    below = [st.sampled_from(LETTERS.below(type_)) for type_ in general]
    specific = [draw(each) for each in below]
    if draw(st.booleans()):
        specific.insert(draw(st.integers(0, len(specific))), draw(st.sampled_from(TYPES)))
    return draw(patterns(general)), draw(patterns(specific))


streams = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(TYPES), st.sampled_from([0.0, 1.0, float("nan")])),
    min_size=2,
    max_size=6,
).map(
    lambda rows: pd.DataFrame(sorted(rows, key=lambda row: row[0]), columns=["time", "type", "x"])
)


@examples(30)
@given(pair=pairs(), events=st.lists(streams, min_size=3, max_size=3))
def test_projections_are_matches(pair: tuple[str, str], events: list[pd.DataFrame]) -> None:
    try:
        general, specific = (cep.parse(f"PATTERN {text}").with_hierarchy(LETTERS) for text in pair)
    except cep.CepbenchError:
        return  # of patterns that never match
    assert {*embeddings(general, specific, LETTERS)} <= {*unrefuted(general, specific, events)}
