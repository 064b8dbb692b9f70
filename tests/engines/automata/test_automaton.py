"""Compilation of patterns to automata: the paper's Figures 2, 5 and 6, and Queries 1 to 3."""

from __future__ import annotations

import json
import pickle
import xml.etree.ElementTree as ET

import pytest

import cepbench as cep
from cepbench.engines.automata.compilation import STEPS, push_time_window
from cepbench.engines.automata.model import Automaton
from cepbench.errors import PlanError, UnsupportedPatternError
from cepbench.planning.plans.kinds import PLAN_KINDS, plan_from_json, plan_to_json

QUERY_1 = """PATTERN SEQ(Shelf a, NOT(Register b), Exit c) WHERE [tag_id]
    STRATEGY next WITHIN 12 hours"""
QUERY_2 = """PATTERN SEQ(Alert a, KL(Shipment b)) WHERE a.kind = 'contaminated'
    AND b[1].from = a.site AND b[i].from = b[i-1].to WITHIN 3 hours"""
QUERY_3 = """PATTERN SEQ(KL(Stock a), Stock b) WHERE [symbol] AND a[1].volume > 1000
    AND a[i].price > avg(a[..i-1].price) AND b.volume < 0.8 * a[last].volume
    STRATEGY next WITHIN 1 hours"""


def compiled(text: str, **options: bool) -> Automaton:
    found = cep.automaton(text, **options)
    assert isinstance(found, Automaton)
    return found


def formulas(automaton: Automaton) -> dict[str, str]:
    """State and edge, such as ``b ignore`` → the edge's formula."""
    return {f"{row.state} {row.edge}": row.formula for row in automaton.table().itertuples()}


#: Figure 2b, with the types and the order that its footnote 4 leaves out, steps 1 to 4.
FIGURE_2B = {
    "a[1] begin": "Stock a[1] AND a[1].volume > 1000",
    "a[i] take": ("Stock a[i] AND a[i].symbol = a[1].symbol AND a[i].price > avg(a[..i-1].price)"),
    "a[i] proceed": "TRUE",
    "a[i] ignore": (
        "NOT (Stock a[i] AND a[i].symbol = a[1].symbol AND a[i].price > avg(a[..i-1].price))"
    ),
    "b begin": (
        "Stock b AND a[last].ts < b.ts AND b.symbol = a[1].symbol "
        "AND b.volume < 0.8 * a[last].volume AND WITHIN 1 hours"
    ),
    "b ignore": (
        "NOT (Stock b AND a[last].ts < b.ts AND b.symbol = a[1].symbol "
        "AND b.volume < 0.8 * a[last].volume)"
    ),
}

#: Figure 2c: steps 5 and 6.
FIGURE_2C = {
    **FIGURE_2B,
    "a[i] take": f"{FIGURE_2B['a[i] take']} AND WITHIN 1 hours",
    "a[i] ignore": f"{FIGURE_2B['a[i] ignore']} AND WITHIN 1 hours",
    "a[i] proceed": FIGURE_2B["b begin"],
    "b ignore": f"{FIGURE_2B['b ignore']} AND WITHIN 1 hours",
}


def test_the_steps_are_those_of_the_paper() -> None:
    assert len(STEPS) == 6
    assert all(
        (step.__doc__ or "").startswith(f"Step {k}") for k, step in enumerate(STEPS, start=1)
    )


def test_figure_2() -> None:
    automaton = compiled(QUERY_3)
    assert [state.name for state in automaton.states] == ["a[1]", "a[i]", "b", "F"]
    basic = Automaton(automaton.pattern, (), ())
    for step in STEPS[: STEPS.index(push_time_window)]:
        basic = step(basic)
    assert formulas(basic) == FIGURE_2B
    assert formulas(automaton) == FIGURE_2C
    assert formulas(compiled(QUERY_3, push_window=False)) == {
        **FIGURE_2B, "a[i] proceed": FIGURE_2B["b begin"]
    }  # fmt: skip
    moves = automaton.table().set_index(["state", "edge"])[["target", "consumes", "writes"]]
    assert moves.to_dict("index") == {
        ("a[1]", "begin"): {"target": "a[i]", "consumes": True, "writes": True},
        ("a[i]", "take"): {"target": "a[i]", "consumes": True, "writes": True},
        ("a[i]", "proceed"): {"target": "b", "consumes": False, "writes": False},
        ("a[i]", "ignore"): {"target": "a[i]", "consumes": True, "writes": False},
        ("b", "begin"): {"target": "F", "consumes": True, "writes": True},
        ("b", "ignore"): {"target": "b", "consumes": True, "writes": False},
    }


@pytest.mark.parametrize(
    ("strategy", "at_loop", "at_b"),
    [
        ("any", "WITHIN 1 hours", "WITHIN 1 hours"),
        ("strict_contiguity", "FALSE", "FALSE"),
        (
            "partition_contiguity(symbol)",
            "NOT (a[i].symbol = a[1].symbol) AND WITHIN 1 hours",
            "NOT (b.symbol = a[1].symbol) AND WITHIN 1 hours",
        ),
        ("next", FIGURE_2C["a[i] ignore"], FIGURE_2C["b ignore"]),
    ],
)
def test_only_ignore_edges_depend_on_the_strategy(strategy: str, at_loop: str, at_b: str) -> None:
    automaton = compiled(QUERY_3.replace("next", strategy))
    assert formulas(automaton) == {**FIGURE_2C, "a[i] ignore": at_loop, "b ignore": at_b}
    if strategy != "next":
        without = compiled(QUERY_3.replace("next", strategy), peek=False)
        assert formulas(without) == {**formulas(automaton), "a[i] proceed": "TRUE"}


def test_figure_5a_and_6b() -> None:
    columns = compiled(QUERY_3).columns()
    assert columns.iloc[:, :3].to_numpy().tolist() == [
        ["a[1]", "symbol", "value"],
        ["a[i]", "price", "sum"],
        ["a[i]", None, "count"],
        ["a[i]", "volume", "value"],
    ]
    merged = compiled(QUERY_3.replace("avg", "max"))
    assert merged.columns().iloc[:, :3].to_numpy().tolist() == [
        ["a[1]", "symbol", "value"],
        ["a[i]", "price", "max"],
        ["a[i]", "volume", "value"],
    ]
    assert merged.masks.astype(int).tolist() == [[0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 0, 0]]


def test_query_1_has_its_negation_apart() -> None:
    automaton = compiled(QUERY_1)
    assert [state.name for state in automaton.states] == ["a", "c", "F"]
    assert automaton.names == ("a", "c")
    assert [variable.name for variable in automaton.pattern.negated] == ["b"]
    begin = "Exit c AND a.ts < c.ts AND c.tag_id = a.tag_id"
    assert formulas(automaton) == {
        "a begin": "Shelf a",
        "c begin": f"{begin} AND WITHIN 12 hours",
        "c ignore": f"NOT ({begin}) AND WITHIN 12 hours",
    }


def test_query_2_ends_with_a_loop() -> None:
    automaton = compiled(QUERY_2)
    begin = "Shipment b[1] AND a.ts < b[1].ts AND b[1].from = a.site"
    assert formulas(automaton) == {
        "a begin": "Alert a AND a.kind = 'contaminated'",
        "b[1] begin": f"{begin} AND WITHIN 3 hours",
        "b[1] ignore": "WITHIN 3 hours",
        "b[i] take": "Shipment b[i] AND b[i].from = b[i-1].to AND WITHIN 3 hours",
        "b[i] proceed": "WITHIN 3 hours",
        "b[i] ignore": "WITHIN 3 hours",
    }
    assert formulas(compiled(QUERY_2, push_window=False))["b[1] begin"] == begin


def test_a_conjunct_is_at_its_last_identifier() -> None:
    automaton = compiled(
        """PATTERN SEQ(KL(A a), KL(B b), ANY c) WHERE a.x > 1 AND a[last].x > 2 AND sum(a.x) > 3
        AND b.x > a[1].x AND (b[1].y = 4 OR a[last].y = 5) AND b[i].x > b[i-1].x
        AND (count(b.x) > 2 OR b[1].x = 6) AND c.x > max(b.x) WITHIN 9 units"""
    )
    found = {
        f"{automaton.states[edge.state].name} {edge.kind}": [
            f"{clause}" for clause in edge.formula.clauses
        ]
        for edge in automaton.edges
        if edge.formula.clauses
    }
    assert found == {
        "a[1] begin": ["a[1].x > 1"],
        "a[i] take": ["a.x > 1"],
        "a[i] proceed": ["a[last].x > 2", "sum(a[].x) > 3"],
        "b[1] begin": ["b[1].x > a[1].x", "b[1].y = 4 OR a[last].y = 5"],
        "b[i] take": ["b.x > a[1].x", "b[i].x > b[i-1].x"],
        "b[i] proceed": ["count(b[].x) > 2 OR b[1].x = 6"],
        "c begin": ["c.x > max(b[].x)"],
    }
    assert formulas(automaton)["a[i] take"] == "A a[i] AND a[i].x > 1 AND WITHIN 9 units"
    begin = formulas(automaton)["b[1] begin"]
    assert formulas(automaton)["a[i] proceed"] == f"a[last].x > 2 AND sum(a[].x) > 3 AND {begin}"
    assert automaton.edge(4, "begin").formula.type is None


def test_the_least_or_greatest_value_stands_for_all_of_a_complete_set() -> None:
    automaton = compiled(
        """PATTERN SEQ(KL(A a), B b) WHERE a.x < b.x AND b.y < a.y AND (a.z = b.z OR b.z > 3)
        AND a.x <= a[last].x WITHIN 9 units"""
    )
    assert [f"{c}" for c in automaton.edge(2, "begin").formula.clauses] == [
        "max(a[].x) < b.x",
        "min(a[].y) > b.y",
        "min(a[].z) = b.z OR b.z > 3",
        "max(a[].z) = b.z OR b.z > 3",
    ]
    assert [f"{c}" for c in automaton.edge(1, "proceed").formula.clauses] == [
        "max(a[].x) <= a[last].x"
    ]


@pytest.mark.parametrize(
    "condition",
    [
        "a.x != b.x",
        "a.x + 1 < b.x",
        "b.x > a[i-1].x",
        "(a.x < b.x OR a.y < b.y)",
        "a.x < a.y + b.x",
    ],
)
def test_what_takes_all_values_of_a_set_is_refused(condition: str) -> None:
    with pytest.raises(UnsupportedPatternError, match=r"each event of a .* aggregate"):
        cep.automaton(f"PATTERN SEQ(KL(A a), B b) WHERE {condition} WITHIN 9 units")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN AND(A a, B b) WITHIN 9 units", "AND.*in one order.*OR of SEQs"),
        ("PATTERN SEQ(A a, AND(B b, C c)) WITHIN 9 units", "AND.*in one order"),
        ("PATTERN SEQ(A a, GROUP(B b, +)) WITHIN 9 units", "no groups; write KL"),
        ("PATTERN SEQ(A a, B b) STRATEGY consuming WITHIN 9 units", "consuming.*STRATEGY next"),
    ],
)
def test_unsupported_patterns(text: str, message: str) -> None:
    with pytest.raises(UnsupportedPatternError, match=message):
        cep.automaton(text)


def test_next_cannot_do_without_peeking() -> None:
    with pytest.raises(PlanError, match=r"peek=False: under STRATEGY next a run in a\[i\]"):
        cep.automaton(QUERY_3, peek=False)
    with pytest.raises(PlanError, match="push_window"):
        cep.automaton(QUERY_3, push_window=1)  # type: ignore[arg-type]
    # Nothing proceeds but to F.
    assert not compiled(QUERY_1, peek=False).peek


def test_partition_contiguity_needs_a_value() -> None:
    single = compiled("PATTERN SEQ(A a) STRATEGY partition_contiguity(s) WITHIN 9 units")
    assert formulas(single) == {"a begin": "A a AND a.s = a.s"}


def test_nothing_is_ignored_under_next_where_everything_is_taken() -> None:
    loop = compiled("PATTERN SEQ(KL(ANY a)) STRATEGY next WITHIN 9 units", push_window=False)
    assert formulas(loop) == {
        "a[1] begin": "TRUE",
        "a[i] take": "TRUE",
        "a[i] proceed": "WITHIN 9 units",
        "a[i] ignore": "FALSE",
    }
    assert [edge.formula.always for edge in loop.edges] == [True, True, None, False]


def test_a_disjunction_has_an_automaton_for_each_branch() -> None:
    text = "PATTERN OR(SEQ(A a, KL(B b)), SEQ(A a, NOT(C c), D d)) WHERE [k] WITHIN 9 units"
    union = cep.automaton(text)
    assert isinstance(union, cep.UnionPlan) and union.kind == "automaton"
    assert [part.names for part in union.parts] == [("a", "b"), ("a", "d")]
    assert all(part.pattern.equivalences == ("k",) for part in union.parts)
    assert "branch 1" in union.describe() and union.describe().count("begin") == 4
    assert ET.fromstring(union._repr_html_()).tag == "figure"


def test_it_is_a_plan() -> None:
    automaton = compiled(QUERY_3)
    assert plan_from_json(json.loads(json.dumps(plan_to_json(automaton)))) == automaton
    again = compiled(str(cep.parse(QUERY_3)))
    assert again == automaton == pickle.loads(pickle.dumps(automaton))
    assert len({again, automaton}) == 1
    assert compiled(QUERY_3, push_window=False) != automaton
    assert automaton.text == "a[1], a[i], b, F"
    assert compiled(QUERY_3, push_window=False).text == "a[1], a[i], b, F; without step 5"
    assert repr(automaton) == f"automaton({str(automaton.pattern)!r})"
    assert json.loads(json.dumps(automaton.to_dict()))["masks"] == automaton.masks.tolist()
    assert PLAN_KINDS["automaton"].is_builtin
    with pytest.raises(PlanError, match="describes no automaton"):
        plan_from_json({"kind": "automaton", "shape": ["a", "b"]})
    with pytest.raises(PlanError, match="no take edge"):
        automaton.edge(0, "take")


def test_a_generator_cannot_make_one() -> None:
    with cep.PLAN_GENERATORS.restored():
        cep.plan_generator("COMPILER", kind="automaton")(lambda problem, seed: [0, 1])
        statistics = cep.Statistics(rates={"a": 1.0, "b": 1.0})
        with pytest.raises(cep.CepbenchError, match=r"by cep\.automaton"):
            cep.plan("PATTERN SEQ(A a, B b) WITHIN 9 units", statistics, "COMPILER")
    with pytest.raises(PlanError, match="no cost"):
        cep.plan_cost("PATTERN SEQ(A a, B b) WITHIN 9 units",
                      cep.automaton("PATTERN SEQ(A a, B b) WITHIN 9 units"), statistics)  # fmt: skip


HOSTILE = "<script>alert(\"1\")</script>&'x'"


def test_drawings_escape_names() -> None:
    name = HOSTILE.replace('"', '""')
    automaton = compiled(
        f'PATTERN SEQ(KL(A "{name}"), B b) STRATEGY strict_contiguity WITHIN 9 units'
    )
    svg = ET.fromstring(automaton.svg())
    texts = [element.text for element in svg.iter() if element.tag.endswith("}text")]
    assert {"begin", "take", "proceed", "ignore", "F", "b"} <= set(texts)
    assert any(HOSTILE.replace('"', '""') in (element.text or "") for element in svg.iter())
    assert ET.fromstring(automaton._repr_html_()).tag == "figure"
