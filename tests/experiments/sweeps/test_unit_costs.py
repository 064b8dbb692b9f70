"""The costs of units of work are measured, fitted, stored and read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.experiments.sweeps.unit_costs import errors, fitted, measured, measured_alone
from cepbench.planning.costs import unit_costs
from cepbench.planning.costs.engine_work import FORMS, expected_work, priced_in
from cepbench.planning.costs.reuse_calibrated import Work
from cepbench.planning.statistics.measure import active_time


def test_kinds_of_work_have_costs() -> None:
    tree, stacks = (unit_costs.FIXED["reuse"][name] for name in ("tree", "hierarchical-stacks"))
    assert [*vars(Work())] == [*tree] and stacks.keys() < tree.keys()
    its = Work(scanned=2.0, joined=3.0)
    assert its.nanoseconds() == pytest.approx(2 * tree["scanned"] + 3 * tree["joined"])
    # Events are stored once for all queries.
    assert its.nanoseconds("hierarchical-stacks") == pytest.approx(3 * stacks["joined"])


def test_every_evaluator_whose_queries_share_state_has_costs() -> None:
    sharing = {name for name, its in cep.EVALUATORS.items() if its.together is not None}
    assert {*unit_costs.FIXED["reuse"]} == {*sharing, "tree"}


def test_every_engine_has_costs() -> None:
    # The joins of lazy-nfa are those of tree.
    assert {*FORMS} == {*cep.EVALUATORS} - {"lazy-nfa"}
    assert {*unit_costs.FIXED["alone"]} == {*FORMS, unit_costs.COUNTING}


def test_evaluators_are_found_as_in_the_registry() -> None:
    names = (None, "sase", "Hierarchical_Stacks", "hierarchical-stacks", "TREE")
    priced = ["tree", "tree", "hierarchical-stacks", "hierarchical-stacks", "tree"]
    assert [*map(unit_costs.priced_as, names)] == priced


def test_costs_of_made_up_times_are_found_again() -> None:
    rng = np.random.default_rng(1)
    every, parts = {}, []
    for evaluator, kinds in unit_costs.FIXED["reuse"].items():
        part = pd.DataFrame({kind: rng.exponential(1e6, 30_000) / kinds[kind] for kind in kinds})
        every[evaluator] = {
            kind: cost * (0.5 + place / 8) for place, (kind, cost) in enumerate(kinds.items())
        }
        part["nanoseconds"] = 5e4 + sum(part[kind] * its for kind, its in every[evaluator].items())
        parts.append(part.assign(evaluator=evaluator))
    steps = pd.concat(parts)
    found = fitted(steps)
    for evaluator, costs in every.items():
        # The fixed ones are as much as a few runs more.
        assert found[evaluator] == pytest.approx(costs, rel=0.02)
    # A kind that seems to make a step cheaper costs a quarter of what is fixed, at the speed of the others.
    steps["nanoseconds"] -= 3.0 * steps["scanned"].fillna(0)
    found, fixed = fitted(steps)["tree"], unit_costs.FIXED["reuse"]["tree"]
    ratios = sorted(found[kind] / cost for kind, cost in fixed.items())
    assert ratios[0] == found["scanned"] / fixed["scanned"] > 0.1
    assert ratios[1] > ratios[0]


def test_kinds_of_work_that_no_run_tells_apart_keep_their_proportion() -> None:
    rng, fixed = np.random.default_rng(2), unit_costs.FIXED["alone"]["tree"]
    runs = pd.DataFrame({kind: rng.exponential(1e5, 200) for kind in fixed})
    runs["paired_rows"], runs["opened"] = 7.0 * runs["made"], 1.0
    runs["nanoseconds"] = 3.0 * sum(runs[kind] * cost for kind, cost in fixed.items())
    found = fitted(runs.assign(evaluator="tree"), "alone")["tree"]
    assert found == pytest.approx({kind: 3.0 * cost for kind, cost in fixed.items()}, rel=0.01)


def test_every_kind_of_work_is_measured() -> None:
    steps = measured(workloads=6, events=300, repetitions=1)
    assert (steps["nanoseconds"] > 0).all()
    for evaluator, kinds in unit_costs.FIXED["reuse"].items():
        its = steps[steps["evaluator"] == evaluator]
        assert set(its["method"]) == (
            {"scratch", "down", "up"} if evaluator == "tree" else {"scratch"}
        )
        assert (its[[*kinds]].sum() > 0).all()


def test_every_kind_of_work_of_engines_is_measured() -> None:
    runs = measured_alone(patterns=40, events=300, repetitions=1)
    assert (runs["nanoseconds"] > 0).all()
    for evaluator, kinds in unit_costs.FIXED["alone"].items():
        its = runs[runs["evaluator"] == evaluator]
        assert (its[[*kinds]].sum() >= 0).all() and its["events"].all(), evaluator
    made = runs[[*unit_costs.JOINS, *unit_costs.RUNS, *unit_costs.COUNTS]].sum()
    assert (made > 0).all(), made


def test_errors_of_costs_that_fit_are_none() -> None:
    kinds = unit_costs.COUNTS
    runs = pd.DataFrame({kind: np.arange(1.0, 5.0) for kind in kinds})
    runs = runs.assign(evaluator=unit_costs.COUNTING, nanoseconds=2.0 * runs.sum(axis=1))
    found = errors(runs, {unit_costs.COUNTING: dict.fromkeys(kinds, 2.0)})
    assert found[["runs", "median", "p90", "largest"]].values.tolist() == [[4, 1.0, 1.0, 1.0]]
    found = errors(runs, {unit_costs.COUNTING: dict.fromkeys(kinds, 1.0)})
    assert found["median"].tolist() == [2.0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CEPBENCH_UNIT_COSTS", str(tmp_path / "cache"))
    unit_costs.unit_costs.cache_clear()
    yield tmp_path / "cache"
    unit_costs.unit_costs.cache_clear()


def test_stored_costs_are_read(folder) -> None:
    assert unit_costs.unit_costs() == unit_costs.FIXED
    costs = {
        section: {name: dict.fromkeys(kinds, 2.5) for name, kinds in its.items()}
        for section, its in unit_costs.FIXED.items()
    }
    unit_costs.store(costs)
    unit_costs.unit_costs.cache_clear()
    assert unit_costs.unit_costs() == costs
    assert Work(joined=4.0).nanoseconds() == 10.0


@pytest.mark.parametrize(
    "text", ["", "[]", '{"scanned": 1.0}', '{"reuse": {}, "alone": 1.0}', "NaN"]
)
def test_a_damaged_file_is_not_read(folder, text: str) -> None:
    unit_costs.store(unit_costs.FIXED)
    (file,) = folder.iterdir()
    file.write_text(text, encoding="utf-8")
    unit_costs.unit_costs.cache_clear()
    assert unit_costs.unit_costs() == unit_costs.FIXED


_V = "b[i].price < b[i-1].price AND b[1].price < a.price AND c.price > a.price"
_V_SHAPE = f"SEQ(A a, KL(B b), C c) WHERE {_V}"
_FALLS = "SEQ(ANY a, KL(ANY b), ANY c) WHERE b[i].price < b[i-1].price AND c.price > b[last].price"
_BY_ID = "STRATEGY partition_contiguity(id)"

#: Patterns over a stream → milliseconds of tree, sase and sase-backtrack to count, measured once on one machine.
_RECORDED = {
    f"{_V_SHAPE} STRATEGY strict_contiguity WITHIN 50 units": (5.9, 4.4, 2.1),
    f"{_V_SHAPE} STRATEGY strict_contiguity WITHIN 500 units": (6.6, 4.1, 2.2),
    f"{_V_SHAPE} {_BY_ID} WITHIN 50 units": (7.5, 4.8, 2.7),
    f"{_V_SHAPE} {_BY_ID} WITHIN 500 units": (8.8, 4.8, 2.3),
    f"{_FALLS} STRATEGY strict_contiguity WITHIN 50 units": (22, 11, 2.3),
    f"{_FALLS} {_BY_ID} WITHIN 50 units": (13, 11, 2.3),
    f"{_FALLS} {_BY_ID} WITHIN 500 units": (48, 11, 2.3),
    "SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 20 units": (3.3, 2.1, 2.1),
    "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 60 units": (4.7, 2.8, 5.5),
    "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 200 units": (4.8, 2.3, 27),
    "SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 60 units": (3.3, 1.8, 8.4),
    "SEQ(A a, B b, C c) WHERE [id] AND a.x < b.x WITHIN 200 units": (7, 2.6, 3.9),
    "SEQ(A a, B b, C c) WHERE [id] WITHIN 100 units": (5.9, 2.6, 3.4),
    "SEQ(A a, B b, C c) WHERE a.id = b.id WITHIN 100 units": (3.6, 1.9, 6.2),
    "SEQ(A a, B b, C c) WITHIN 40 units": (2.1, 1.6, 4.7),
    "SEQ(A a, B b) WHERE a.x < b.x WITHIN 400 units": (2.9, 2.5, 5.5),
    "SEQ(A a, B b) WITHIN 100 units": (1.4, 1.8, 2.6),
    "SEQ(D a, B b) WITHIN 10 units": (2.2, 1.6, 1.2),
}

#: The same of patterns for which an engine is chosen by the costs that are fitted to those above.
_CHOSEN_FOR = {
    f"{_V_SHAPE} WITHIN 10 units": (6.6, 7.3, 2.5),
    f"{_V_SHAPE} WITHIN 20 units": (7.6, 14, 4.3),
    f"{_V_SHAPE} WITHIN 40 units": (29, 33, 35),
    f"{_V_SHAPE} WITHIN 60 units": (169, 63, 575),
    f"{_V_SHAPE} WITHIN 70 units": (419, 84, 2295),
}


def test_engines_chosen_by_costs_of_recorded_times_are_fast() -> None:
    """Expected work that is wrong for some patterns makes prices wrong, and the choice for others."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "type": rng.choice(list("ABCD"), 4000, p=[0.3, 0.3, 0.3, 0.1]),
            "time": np.arange(4000),
            "id": rng.integers(0, 5, 4000),
            "x": rng.random(4000),
            "price": 100 + np.cumsum(rng.normal(0, 0.3, 4000)),
        }
    )
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    rows = []
    for body, times in (_RECORDED | _CHOSEN_FOR).items():
        pattern = cep.parse(f"PATTERN {body}")
        statistics = cep.measure_statistics(pattern, stream)
        plan, active = cep.plan(pattern, statistics), active_time(pattern, stream)
        work = expected_work(pattern, statistics, plan, counts=True)
        for engine, milliseconds in zip(("tree", "sase", "sase-backtrack"), times, strict=True):
            name, form = priced_in(engine, work)
            amounts = {kind: active * amount for kind, amount in work[form].items()}
            known = {"body": body, "evaluator": name, "nanoseconds": 1e6 * milliseconds}
            rows.append(known | amounts | {"opened": 1.0})
    runs = pd.DataFrame(rows).fillna(0.0)
    costs = fitted(runs[runs["body"].isin(_RECORDED)], "alone")
    for body, times in _CHOSEN_FOR.items():
        expected = [
            sum(row[kind] * cost for kind, cost in costs[row["evaluator"]].items())
            for _, row in runs[runs["body"] == body].iterrows()
        ]
        assert times[int(np.argmin(expected))] <= 1.5 * min(times), (body, expected)
