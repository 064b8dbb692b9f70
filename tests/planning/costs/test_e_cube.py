"""E-Cube's costs: each equation by hand, with the paper's misprints as decided."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PlanError, PlanGeneratorError, StatisticsError
from cepbench.planning.costs.reuse import ReuseProblem

HIERARCHY = cep.ConceptHierarchy({"A": ["A1"], "B": ["B1"], "N": ["N1"]})

#: Events in a window of 10 s, by type; each type's variable is its lower-case name.
SIZES = {"A": 10.0, "A1": 4.0, "B": 20.0, "B1": 5.0, "C": 30.0, "D": 40.0, "N": 7.0, "N1": 3.0}


def problem(
    queries: Mapping[str, str],
    *,
    windows: Mapping[str, int] | None = None,
    selectivities: Mapping[tuple[str, str], float] | None = None,
    delays: bool = False,
) -> ReuseProblem:
    """Queries by their types, ``-N`` for a NOT; P of a and b is 1/2 unless selectivities are given."""
    texts, statistics = {}, {}
    for query, types in queries.items():
        listed = types.split()
        names = {type: type.lstrip("-").lower() for type in listed}
        items = [
            f"NOT({type[1:]} {name})" if type[0] == "-" else f"{type} {name}"
            for type, name in names.items()
        ]
        within = (windows or {}).get(query, 10)
        texts[query] = f"PATTERN SEQ({', '.join(items)}) WITHIN {within} s"
        given_ = {("a", "b"): 0.5} if selectivities is None else selectivities
        statistics[query] = cep.Statistics(
            rates={name: SIZES[type.lstrip("-")] / 10 for type, name in names.items()},
            selectivities={p: v for p, v in given_.items() if {*p} <= {*names.values()}},
        )
    workload = cep.Workload(texts, hierarchy=HIERARCHY)
    return ReuseProblem.of(workload, statistics, "e-cube", delays=delays)


def cost(source: str, query: str, **options) -> float:
    """The cost of one query from another one."""
    edge = problem({"source": source, "query": query}, **options).edge("source", "query")
    assert edge is not None
    return edge.cost


def log(size: float) -> float:
    return size * math.log2(size)


def test_from_scratch() -> None:
    """Equations (5) and (6)."""
    its = problem({"q1": "A B C", "q2": "A B C D", "q3": "A -N B", "q4": "A -N B C", "q5": "C"})
    assert its.scratch == pytest.approx(
        {
            "q1": 50 + 750,
            "q2": 50 + 750 + 15_000,
            "q3": 50 * (1 - 0.5 * 0.5),
            "q4": 50 * 0.75 + 50 * 0.75 * 30 * 0.5,
            "q5": 0,
        }
    )
    # As printed, (6) would be 0 without predicates.
    its = problem({"q": "A -N B"}, selectivities={("a", "n"): 0.1, ("b", "n"): 0.5})
    assert its.scratch["q"] == pytest.approx(100 * (1 - 0.05 * 0.25))


DOWN = {
    "(7) the last item": ("A B C", "A B C D", 750 + 40 + 750 * 40 * 0.5),
    "(8) an inner item": ("A C", "A B C", log(150) + 150 + 20 + 150 * 20 * 0.25 * 0.5),
    "(8) the first item": ("B C", "A B C", log(300) + 300 + 10 + 300 * 10 * 0.25),
    "(9) the last items": ("A B", "A B C D", 600 + log(600) + 50 * 600 * 0.5 + 600 + 50),
    "(9) the first items": ("C D", "A B C D", 50 + log(600) + 600 * 50 * 0.5 + 50 + 600),
    "(9) inner items": ("A D", "A B C D", 300 + log(200) + 2 * 200 * 300 * 0.5 + 300 + 200),
    "(7), (8) two items": (
        "B C",
        "A B C D",
        (log(300) + 300 + 10 + 750) + (750 + 40 + 750 * 40 * 0.5),
    ),
    "(10) a NOT": ("A B", "A -N B", 50),
    "(10), (7) a NOT and an item": ("A B", "A -N B C", 50 + (37.5 + 30 + 37.5 * 30 * 0.5)),
    "(7), (10) an item and a NOT beside it": (
        "A B",
        "A B -N C",
        (50 + 30 + 750) + 750,
    ),
    "(11), (12) a wider NOT": ("A -N1 B", "A -N B", 50 * 0.75),
    "(13) concepts": ("A B", "A1 B", 50 * 2),
}  # fmt: skip


@pytest.mark.parametrize("equation", DOWN)
def test_from_a_more_general_query(equation: str) -> None:
    source, query, expected = DOWN[equation]
    pairs = {(a, b): 0.5 for a in ("a", "a1") for b in ("b", "b1")}
    assert cost(source, query, selectivities=pairs) == pytest.approx(expected)


def test_from_a_more_general_query_in_two_steps() -> None:
    """Equation (14): here it is cheaper to read the few results of the source first."""
    by_concept = 50 * 2 + (20 + 30 + 20 * 30 * 0.5)
    by_pattern = (50 + 30 + 50 * 30 * 0.5) + 750 * 3
    assert by_concept < by_pattern
    pairs = {(a, "b"): 0.5 for a in ("a", "a1")}
    assert cost("A B", "A1 B C", selectivities=pairs) == pytest.approx(by_concept)
    # And here to insert an item that is rarely near first.
    pairs = {(a, "b"): 0.5 for a in ("a", "a1")} | {("b", "c"): 0.001}
    by_pattern = (50 + 30 + 50 * 30 * 0.0005) + 50 * 30 * 0.0005 * 3
    assert cost("A B", "A1 B C", selectivities=pairs) == pytest.approx(by_pattern)


UP = {
    "(16) an inner item": ("A D B C", "A B C", 30_000 * 4 + 300 + 750 * (1 - 0.5 * 0.5)),
    "(16) the first item": ("D A B C", "A B C", 15_000 * 4 + 300 + 750 * (1 - 0.5)),
    "(16) two inner items": ("A C D B", "A B", 30_000 * 4 + 50 * (1 - 0.5**3)),
    "(16) a NOT": ("A -N B", "A B", 50 * 0.75 * 2 + 50 * 0.25),
    "(17) concepts": ("A1 B C", "A B C", (50 + 750) - (20 + 300)),
    "(17) a wider NOT": ("A -N B", "A -N1 B", 0),
}  # fmt: skip


@pytest.mark.parametrize("equation", UP)
def test_from_a_more_specific_query(equation: str) -> None:
    source, query, expected = UP[equation]
    pairs = {(a, "b"): 0.5 for a in ("a", "a1")}
    assert cost(source, query, selectivities=pairs) == pytest.approx(expected)


def test_from_a_more_specific_query_in_two_steps() -> None:
    """Equation (18)."""
    pairs = {(a, "b"): 0.5 for a in ("a", "a1")}
    reuse = 4 * 40 * 0.5 * 20 * 0.5 * 3  # R of A1 D B, of three events each
    by_pattern = reuse + 20 * (1 - 0.25) + (50 - 20)
    by_concept = ((200 + 2000) - (80 + 800)) + 2000 * 3 + 50 * 0.75
    assert by_pattern < by_concept
    assert cost("A1 D B", "A B", selectivities=pairs) == pytest.approx(by_pattern)


def test_a_source_with_delays() -> None:
    """What goes on after a query is missing at its last item."""
    assert problem({"source": "A B C", "query": "A B"}).edge("source", "query") is None
    found = cost("A B C", "A B", delays=True)
    assert found == pytest.approx(750 * 3 + 50 * (1 - 0.5))


def test_costs_are_of_the_longest_window() -> None:
    its = problem({"source": "A B", "query": "A B C"}, windows={"source": 20})
    assert its.scratch["source"] == pytest.approx(20 * 40 * 0.25)
    assert its.scratch["query"] == pytest.approx(2 * 800)
    edge = its.edge("source", "query")
    assert edge is not None
    # A window of the query, which is half as long, has half of the source's 200 matches.
    assert edge.cost == pytest.approx(2 * (100 + 30 + 100 * 30 * 0.5))


def test_several_embeddings_cost_the_cheapest() -> None:
    queries = {
        "q2": "PATTERN SEQ(D a, T b) WITHIN 10 s",
        "q5": "PATTERN SEQ(D x, T y, T z) WITHIN 10 s",
    }
    statistics = {
        "q2": cep.Statistics(cardinalities={"a": 10, "b": 20}),
        "q5": cep.Statistics(cardinalities={"x": 10, "y": 20, "z": 20}),
    }
    its = ReuseProblem.of(cep.Workload(queries), statistics, "e-cube")
    edge = its.edge("q2", "q5")
    assert edge is not None and edge.embedding == (0, 1)  # (7), without sorting
    assert edge.cost == pytest.approx(100 + 20 + 100 * 20 * 0.5)


def test_what_the_paper_does_not_have() -> None:
    texts = {
        "and": "PATTERN AND(A a, B b) WITHIN 10 s",
        "or": "PATTERN OR(SEQ(A a, B b), SEQ(B b, A a)) WITHIN 10 s",
        "kl": "PATTERN SEQ(A a, KL(B b)) WITHIN 10 s",
    }
    its = cep.Statistics(cardinalities={"a": 10, "b": 20})
    found = ReuseProblem.of(cep.Workload(texts), dict.fromkeys(texts, its), "e-cube")
    assert found.scratch == pytest.approx({"and": 200, "or": 200, "kl": 100})


@st.composite
def sequences(draw: st.DrawFn) -> dict[str, str]:
    types = st.lists(st.sampled_from([*SIZES, "-N", "-N1"]), unique_by=lambda t: t.lstrip("-"))
    drawn = draw(
        st.lists(types.filter(lambda t: any(x[0] != "-" for x in t)), min_size=1, max_size=4)
    )
    return {f"q{number}": " ".join(its) for number, its in enumerate(drawn)}


@given(sequences(), st.floats(0, 1), st.booleans())
def test_every_cost_is_a_number(queries: dict[str, str], selectivity: float, delays: bool) -> None:
    pairs = {("a", "b"): selectivity, ("n", "c"): selectivity, ("d", "n"): 1 - selectivity}
    its = problem(queries, selectivities=pairs, delays=delays)
    for found in (*its.scratch.values(), *(edge.cost for edge in its.edges)):
        assert 0 <= found < math.inf
    for query, types in queries.items():
        positive = [type for type in types.split() if type[0] != "-"]
        if len(positive) == len(types.split()):
            sums, names = 0.0, [type.lower() for type in positive]
            for i in range(1, len(positive)):  # (5) as printed
                product = 1.0
                for j in range(i):
                    pair = (names[j], names[j + 1])
                    p = pairs.get(pair, pairs.get(pair[::-1], 1.0))
                    product *= SIZES[positive[j]] * 0.5 * p
                sums += SIZES[positive[i]] * product
            assert its.scratch[query] == pytest.approx(sums)


def test_errors() -> None:
    workload = cep.Workload({"q": "PATTERN SEQ(A a, B b) WITHIN 10 s"})
    its = {"q": cep.Statistics(rates={"a": 1, "b": 1})}
    for arguments, error, message in (
        (("SEQ(A a)", its), PlanError, r"a cep\.Workload"),
        ((workload, {}), StatisticsError, "no statistics of query 'q'"),
        ((workload, its["q"]), StatisticsError, "a mapping of its queries"),
        ((workload, {"q": cep.Statistics(rates={"a": 1})}), StatisticsError, "variable 'b'"),
        ((workload, its, "ecube"), PlanGeneratorError, "one of calibrated, e-cube"),
    ):
        with pytest.raises(error, match=message):
            ReuseProblem.of(*arguments)
