"""The page of algorithms has everything that is registered, and what is known of each."""

from __future__ import annotations

from pathlib import Path

import pytest

import cepbench as cep
from cepbench.papers import ALGORITHMS, REFERENCES
from cepbench.presentation.reporting.algorithms import KINDS, Described, described
from cepbench.presentation.reporting.story import JudgedClaim


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], Described]:
    claims = [
        JudgedClaim("DP-LD is ahead of DP-LD-X and dp-ld again.", (), "holds", ""),
        JudgedClaim("GREEDY and II-GREEDY are close to DP-LD.", (), "holds", ""),
        JudgedClaim("II-GREEDY needs less memory.", (), "holds", ""),
    ]
    return {(its.kind, its.name): its for its in described(claims, Path("nowhere"))}


def test_everything_registered_has_a_row_with_a_sentence(
    rows: dict[tuple[str, str], Described],
) -> None:
    assert list(rows) == [(kind, name) for kind, (its, _) in KINDS.items() for name in its]
    assert {kind for kind, _ in rows} == set(KINDS)
    for its in rows.values():
        assert len(its.sentence) > 10 and its.sentence.endswith("."), its
        assert "]_" not in its.sentence + its.paper and "`" not in its.sentence
        assert its.link == ""  # there is no documentation


def test_what_a_paper_has_says_so(rows: dict[tuple[str, str], Described]) -> None:
    named = {each.name: each for each in ALGORITHMS if each.name in cep.PLAN_GENERATORS}
    for name, source in named.items():
        its = rows["plan generator", name]
        assert (its.paper, its.place) == (REFERENCES[source.paper].label, source.place)
    assert rows["cost model", "zstream"].place == "section 5.1"
    assert rows["evaluator", "zstream"].place == "sections 4 and 5.2.2"


def test_plans_are_those_of_the_generators(rows: dict[tuple[str, str], Described]) -> None:
    costs = {
        name: its.times_least
        for (kind, name), its in rows.items()
        if kind == "plan generator" and its.times_least is not None
    }
    assert costs["DP-LD"] == costs["DP-B"] == min(costs.values()) == 1.0
    assert costs["TRIVIAL"] is not None and costs["TRIVIAL"] > 100
    assert rows["plan generator", "TRIVIAL"].plan == "CSCO, MSFT, QCOM, INTC"
    assert rows["plan generator", "ZSTREAM"].plan == "(CSCO, (MSFT, (QCOM, INTC)))"
    # Its conditions are no tree.
    assert "IKKBZ" not in costs and rows["plan generator", "IKKBZ"].plan == ""


def test_claims_count_that_name_it(rows: dict[tuple[str, str], Described]) -> None:
    assert rows["plan generator", "DP-LD"].claims == 2
    assert rows["plan generator", "GREEDY"].claims == 1
    assert rows["plan generator", "II-GREEDY"].claims == 2
    assert rows["plan generator", "DP-B"].claims == 0


def test_links_lead_into_the_reference_where_it_is_there(tmp_path: Path) -> None:
    page = tmp_path / "reference" / "_generated" / "planning-planners.html"
    page.parent.mkdir(parents=True)
    page.write_text("")
    rows = described([], tmp_path)
    links = {its.name: its.link for its in rows if its.link}
    assert links["DP-B"] == (
        "docs/reference/_generated/planning-planners.html#module-cepbench.planning.planners.dp_b"
    )
    assert {its.kind for its in rows if its.link} == {"plan generator", "workload planner"}


def test_a_generator_of_ones_own_is_among_them(own_generator: str) -> None:
    (its,) = [each for each in described([], Path("nowhere")) if each.name == own_generator]
    assert its.sentence == "The written order, backwards." and its.link == ""
    assert its.plan == "INTC, QCOM, MSFT, CSCO" and its.paper == "[mine2026]_"


def test_one_that_fails_has_no_plan_and_spoils_no_page() -> None:
    @cep.plan_generator("FAILING-HERE", kind="order", default=False)
    def failing(problem: object, rng: object) -> list[int]:
        raise ValueError("not today")

    (its,) = [each for each in described([], Path("nowhere")) if each.name == "FAILING-HERE"]
    assert its.plan == "" and its.times_least is None and its.sentence == ""


@pytest.fixture
def own_generator() -> str:
    name = "BACKWARDS-HERE"

    @cep.plan_generator(name, kind="order", default=False, source="[mine2026]_")
    def backwards(problem: object, rng: object) -> list[int]:
        """The written order, backwards.

        For a test.
        """
        return list(range(problem.n))[::-1]  # type: ignore[attr-defined]

    return name
