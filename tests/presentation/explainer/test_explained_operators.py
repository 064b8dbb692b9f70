"""Explanations under ZStream's costs: operators by node, and patterns with groups."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import pytest

import cepbench as cep
from cepbench.errors import PlanGeneratorError
from cepbench.patterns.model import Kind
from cepbench.planning.costs.models import UserCost
from tests.drawn_events import drawn_events
from tests.planning.costs.test_zstream_costs import MODELS, cases

TEXT = "PATTERN SEQ(A a, GROUP(G g, +), C c, NOT(N n), D d) WITHIN 10 units"
STATISTICS = cep.Statistics(cardinalities={"a": 10, "g": 20, "c": 30, "n": 4, "d": 5})
PLAN = cep.TreePlan(("a", ("c", "d")), {"n": ("d",)})


@pytest.mark.kernel
@pytest.mark.parametrize("cost", MODELS)
def test_costs_are_those_of_the_operators(cost: str) -> None:
    for text, statistics in itertools.islice(cases(), 0, None, 5):
        plan = cep.plan(text, statistics, "ZSTREAM", cost=cost)
        found = cep.explain(text, plan, statistics, cost=cost)
        operators = cep.plan_cost(text, plan, statistics, cost=cost)
        costs = found.nodes["cost"]
        assert costs.sum() == pytest.approx(operators["cost"].sum()) == pytest.approx(plan.cost)
        names = [name for name in found.nodes["operator"] if name]
        assert sorted(names) == sorted(operators["operator"])
        assert not found.remarks


def test_the_operators_are_shown() -> None:
    found = cep.explain(TEXT, PLAN, STATISTICS, cost="zstream")
    labels = [re.split(r" {2,}(?=[\d–])", line)[0] for line in found.describe().splitlines()[3:10]]
    assert labels == [
        "KSEQ a, c, d",
        "├ a: A",
        "├ SEQ c, d",
        "│ ├ c: C",
        "│ └ d: D",
        "│   └ NSEQ n: no N",
        "└ g: group of G",
    ]
    nodes = found.nodes.set_index("variables")
    assert nodes["cost"]["c, d"] == pytest.approx(30 * 5 * 0.5 * 1.75)
    assert nodes["estimated"]["c, d"] == pytest.approx(30 * 5 * 0.5 * 0.75)
    assert nodes["cost"]["n"] == pytest.approx(10)
    picture = found._repr_html_().split("</svg>")[0].split("<svg")[1]
    texts = [each.text for each in ET.fromstring(f"<svg{picture}</svg>").iter()]
    assert {"KSEQ", "SEQ", "NSEQ n", "group g"} <= set(texts)


def test_costs_of_other_models() -> None:
    for cost in ("throughput", "comparisons"):
        plan = cep.plan(TEXT, STATISTICS, "ZSTREAM", cost=cost)
        nodes = cep.explain(TEXT, plan, STATISTICS, cost=cost).nodes
        assert nodes["cost"].sum() == pytest.approx(plan.cost)
        assert {*nodes["operator"]} == {""}
        # Engines of joins form groups at the root, and check there what depends on them.
        assert nodes.set_index("kind")["parent"][["group", "negated"]].tolist() == [4, 3]
    text = TEXT.replace("C c, NOT(N n)", "NOT(N n), C c")
    found = cep.explain(text, cep.TreePlan(PLAN.tree), STATISTICS, cost="throughput")
    parents = found.nodes.set_index("kind")["parent"]
    assert parents[["group", "negated"]].tolist() == [4, 4]
    pair = "PATTERN AND(A a, C c) WITHIN 10 units"
    plan = cep.plan(pair, STATISTICS, "DP-LD", cost="latency", last="a")
    latency = cep.explain(pair, plan, STATISTICS, cost="latency", last="a")
    assert "estimated cost 0 (latency)" in latency.describe()
    whole = UserCost("MINE", lambda problem, tree: 1.0, "tree", in_logs=False, form="plans")
    for ask in (cep.explain, cep.plan_cost):
        with pytest.raises(PlanGeneratorError, match="MINE is not a sum over the nodes of a plan"):
            ask(TEXT, PLAN, STATISTICS, cost=whole)


def test_a_run_with_groups() -> None:
    events = drawn_events(300, "AGCND", seed=3)
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    statistics = cep.measure_statistics(TEXT, stream)
    found = cep.explain(TEXT, PLAN, statistics, stream, cost="zstream-repaired")
    assert found.metrics.matches == cep.evaluate(TEXT, stream, PLAN).metrics.matches > 40
    nodes = found.nodes.set_index("variables")
    # The engine joins the plain variables, and checks the negated one, without the group.
    plain = cep.parse(TEXT.replace("GROUP(G g, +), ", ""))
    joined = cep.evaluate(plain, stream, cep.TreePlan(PLAN.tree)).metrics.matches
    assert nodes["created"]["a, c, d"] == joined
    assert nodes["created"]["a"] == (events["type"] == "A").sum()
    assert nodes["created"]["n"] == (events["type"] == "N").sum()
    assert nodes[["created", "measured"]].loc["g"].isna().all()
    assert "g: group of G" in found.describe() and "<svg" in found._repr_html_()


def test_what_if_with_groups() -> None:
    found = cep.what_if(TEXT, STATISTICS, rates={"c": 0.01}, generators=["ZSTREAM", "DP-LD"])
    assert found.table["cost"].notna().all()
    kinds = found.after.explanations["ZSTREAM"].nodes["kind"]
    assert list(kinds)[-2:] == [Kind.GROUP, Kind.NEGATED]
