"""The configuration of a sweep: round trip, presets, and mistakes that are told."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepbench.errors import DatasetError, ExperimentError
from cepbench.experiments.sweeps.configuration import SweepConfig, hash_of_code, identity_of
from cepbench.planning.costs.models import cost_from, cost_model
from cepbench.planning.planners.registry import PlanGenerator, find_generator

OWN_PATTERN = """
PATTERN SEQ(A a, B b)
WHERE a.x < b.x
WITHIN 5 minutes
"""


def test_user_patterns_stand_for_the_sets_unless_these_are_named() -> None:
    mine = {"mine": OWN_PATTERN}
    alone = SweepConfig.from_dict({"data": "x", "user_patterns": mine})
    assert alone.pattern_sets == ()
    # However it is written, it is the same sweep.
    (kept,) = alone.user_patterns
    assert kept == ("mine", "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 minutes")
    both = SweepConfig.from_dict({"data": "x", "user_patterns": mine, "pattern_sets": ["kleene"]})
    assert both.pattern_sets == ("kleene",) and both.user_patterns == alone.user_patterns
    assert "user_patterns" not in SweepConfig(data="x").to_dict()


def test_a_bound_can_be_lifted() -> None:
    assert SweepConfig(data="x", max_partial_matches=float("inf")).max_partial_matches is None


def test_round_trip_through_json() -> None:
    for config in (
        SweepConfig.from_dict({"data": "data", "seed": 3, "generators": ["DP-B"]}),
        SweepConfig.from_dict({"data": Path("data"), "evaluators": ("tree",)}),
        SweepConfig(data="data", strategies=("any", "consuming"), alphas=(0, 0.5), latency=True),
        SweepConfig(data="data", user_patterns={"mine": OWN_PATTERN}),  # type: ignore[arg-type]
        SweepConfig.from_dict(
            {
                "data": "data",
                "least_rate": {"sequence": 8, "conjunction": 4.0},
                "selectivities": [0.002, 0.88],
                "regimes": {"sparse": {}, "dense": {"least_rate": 8, "duration": "2 days"}},
            }
        ),
    ):
        assert SweepConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_a_regime_changes_what_it_names() -> None:
    config = SweepConfig.from_dict(
        {
            "data": "x",
            "patterns": 7,
            "most_rate": 30,
            "regimes": {"sparse": {}, "dense": {"least_rate": 8, "patterns": 3}},
        }
    )
    assert list(config.workloads) == ["sparse", "dense"]
    assert config.workloads["sparse"].to_dict() == {
        key: value for key, value in config.to_dict().items() if key != "regimes"
    }
    dense = config.workloads["dense"]
    assert (dense.least_rate, dense.most_rate, dense.patterns) == (8.0, 30.0, 3)
    assert SweepConfig(data="x").workloads == {"": SweepConfig(data="x")}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"repetition": 3}, "unknown key 'repetition'.*did you mean 'repetitions'"),
        ({"generator": []}, "unknown key 'generator'.*did you mean 'generators'"),
        ({"sizes": "3"}, "must be a list"),
        ({"sizes": [3, 3]}, "names something twice"),
        ({"strategies": "any"}, "must be a list"),
        ({"alphas": 0.5}, "must be a list"),
        ({"alphas": [0, 0.0]}, "names something twice"),
        ({"alphas": [-1.0]}, "each of alphas must be at least 0, not -1.0"),
        ({"alphas": [float("inf")]}, "each of alphas must be finite"),
        ({"alphas": ["0"]}, "each of alphas must be a number, not '0'"),
        ({"strategies": []}, "strategies is empty"),
        (
            {"strategies": ["nearest"]},
            "each of strategies is one of any, consuming.*, not 'nearest'",
        ),
        ({"patterns": 0}, "patterns must be at least 1, not 0"),
        ({"repetitions": 0}, "repetitions must be at least 1"),
        ({"seconds": -1}, "seconds must be at least 0"),
        ({"repetitions": "3"}, "repetitions must be a whole number, not '3'"),
        ({"patterns": 2.5}, "patterns must be a whole number, not 2.5"),
        ({"seed": True}, "seed must be a whole number, not True"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"latency": "yes"}, "latency is True or False, not 'yes'"),
        ({"window": 20}, "window must be a time such as .*, not 20"),
        ({"window": "20 parsecs"}, "window must be a time such as .*, not '20 parsecs'"),
        ({"sizes": [3, 1]}, "each of sizes must be at least 2, not 1"),
        ({"sizes": None}, "must be a list"),
        ({"sizes": []}, "no patterns"),
        (
            {"pattern_sets": ["sequences"]},
            "each of pattern_sets is one of .*kleene.*not 'sequences'; did you",
        ),
        ({"pattern_sets": []}, "no patterns"),
        ({"time_selectivity": "half"}, "time_selectivity is one of .*exact.*, not 'half'"),
        ({"least_rate": {"seq": 1}}, "each key of least_rate is one of .*, not 'seq'"),
        ({"least_rate": -1}, "least_rate must be at least 0, not -1"),
        ({"selectivities": [0.5, 0.1]}, "selectivities must be a minimum and a max"),
        ({"selectivities": [0.0, 0.1]}, "selectivities must be more than 0"),
        ({"predicates": 3}, "predicates is one of n/2, n, not 3"),
        ({"duration": "long"}, "duration must be a time such as"),
        ({"regimes": {"dense": {"seed": 1}}}, "unknown key 'seed'; keys are pattern_s"),
        ({"duration": 0}, "duration must be a time such as .*, not 0"),
        ({"options": "ab"}, "options must be a table such as .*, not 'ab'"),
        ({"options": ""}, "options must be a table such as .*, not ''"),
        ({"regimes": ""}, "regimes must be a table such as .*, not ''"),
        ({"regimes": {"dense": "often"}}, "'dense' must be a table such as .*, not 'often'"),
        ({"plans": {"a": "left-deep"}}, "'a' must be a table such as .*, not 'left-deep'"),
        ({"policies": {"a": "bound"}}, "'a' must be a table such as .*, not 'bound'"),
        ({"regimes": {"dense": {"patterns": 0}}}, "patterns must be at least 1"),
        ({"regimes": {"so dense": {}}}, "regime 'so dense': a regime's name has only"),
        ({"user_patterns": {"a b": OWN_PATTERN}}, "'a b': a pattern's name has only"),
        ({"user_patterns": {"a": 3}}, "pattern 'a' must be a text, .*, not 3"),
        ({"user_patterns": "a"}, "user_patterns must be a table such as"),
        (
            {
                "user_patterns": {"a": OWN_PATTERN, "b": "PATTERN SEQ(A a\nWITHIN 1 hour"},
            },
            r"pattern 'b': line 2, column 1: .*\n  WITHIN",
        ),
        (
            {
                "user_patterns": {"a": "PATTERN SEQ(A a) STRATEGY consuming WITHIN 1 hours"},
            },
            "pattern 'a' names a STRATEGY; leave it out",
        ),
    ],
)
def test_mistakes_are_told(values: dict[str, object], message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        SweepConfig.from_dict({"data": "x", **values})


def test_a_sweep_needs_data() -> None:
    with pytest.raises(ExperimentError, match="needs 'data'"):
        SweepConfig.from_dict({"seed": 1})


def test_identity_follows_the_data(tmp_path: Path) -> None:
    config = SweepConfig(data=str(tmp_path / "data"))
    with pytest.raises(DatasetError, match="no data set or Parquet file"):
        identity_of(config, [])
    found = []
    for rows in (10, 10, 11):
        (tmp_path / "data").mkdir(exist_ok=True)
        pq.write_table(pa.table({"x": range(rows)}), tmp_path / "data" / "part.parquet")
        found.append(identity_of(config, []))
    assert found[0] == found[1] != found[2]
    assert found[0]["data_made_from"]["events"] == 10
    # Where the data lies is no part of it: the same data may be moved, or named from elsewhere.
    assert (config.to_dict() | {"data": "data"}).items() <= found[0].items()
    assert json.loads(json.dumps(found[0])) == found[0]


def test_identity_follows_the_code_of_a_user_defined_cost(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "part.parquet")
    config = SweepConfig(data=str(tmp_path), cost="MINE")

    def one(problem: object, order: object) -> float:
        return 1.0

    def two(problem: object, order: object) -> float:
        return 2.0

    hashes = []
    for function in (one, one, two):
        cost_model("MINE", of="order")(function)
        hashes.append(identity_of(config, [])["user_cost"])
    assert hashes[0] == hashes[1] != hashes[2]
    # As it was before there were such costs.
    assert "user_cost" not in identity_of(SweepConfig(data=str(tmp_path)), [])


def test_identity_follows_the_code_of_users_generators(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "part.parquet")
    config = SweepConfig(data=str(tmp_path))

    def idea(problem: object, rng: object) -> object:
        return None

    def other(problem: object, rng: object) -> object:
        return rng

    hashes = [
        identity_of(config, [find_generator("DP-B"), PlanGenerator("IDEA", "order", function)])[
            "user_generators"
        ]
        for function in (idea, idea, other)
    ]
    assert hashes[0] == hashes[1] != hashes[2]
    assert list(hashes[0]) == ["IDEA"]


QUERY = "PATTERN SEQ(A a, B b) WITHIN 5 minutes"
COUNTED = {"user_patterns": {"mine": "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 5 minutes"}}
QUERIES = {"mine": f"Q1 = {QUERY}", "ours": f"Q1 = {QUERY.replace('A a', 'C a')}"}
COUNTED_QUERIES = {"mine": "Q1 = PATTERN SEQ(A a, B b) AGG COUNT WITHIN 5 minutes"}

#: Field → values of which each is another sweep, and what they need beside them.
OF_FIELDS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "data": (["other"], {}),
    "streams": ([{"one": "data", "two": "other"}, {"one": "other", "two": "data"}], {"data": ""}),
    "pattern_sets": ([["sequence"], ["kleene"]], {}),
    "sizes": ([[3], [3, 4]], {}),
    "patterns": ([7], {}),
    "window": (["5 minutes"], {}),
    "windows": ([["5 minutes"], ["5 minutes", "6 minutes"]], {}),
    "stream_windows": ([{"one": "5 minutes"}], {"data": "", "streams": {"one": "data"}}),
    "attribute": (["price"], {}),
    "max_partial_matches": ([9.0], {}),
    "max_kleene_events": ([3.0], {}),
    "strategies": ([["consuming"], ["any", "consuming"]], {}),
    "cost": (["zstream"], {}),
    "alphas": ([[0.5], [0.0, 0.5]], {}),
    "latency": ([True], {}),
    "share_equal_plans": ([True], {}),
    "generators": ([["GREEDY"], ["DP-LD"], ["DP-LD", "GREEDY"]], {}),
    "plans": ([{"mine": {"order": ["a", "b"]}}, {"mine": {"order": ["b", "a"]}}], {}),
    "policies": ([{"mine": {"policy": "static"}}, {"mine": {"policy": "static", "gain": 2.0}}], {}),
    "batch_size": ([64], {}),
    "evaluators": ([["tree"], ["zstream"]], {}),
    "orders_in_trees": ([False], {}),
    "options": ([{"zstream": {"batch_size": 64}}, {"zstream": {"batch_size": [64, 65]}}], {}),
    "repetitions": ([2], {}),
    "seconds": ([0.1], {}),
    "seed": ([1], {}),
    "time_selectivity": (["exact"], {}),
    "partial_match_limit": ([1000], {}),
    "outputs": ([["matches"], ["count", "matches"]], {}),
    "user_patterns": ([{"mine": QUERY}, {"ours": QUERY}], {"pattern_sets": ["sequence"]}),
    "least_rate": ([1.0, {"sequence": 1.0}], {}),
    "most_rate": ([9.0], {}),
    "predicates": (["n"], {}),
    "selectivities": ([[0.1, 0.5], [0.1, 0.6]], {}),
    "duration": (["2 days"], {}),
    "regimes": ([{"dense": {}}, {"dense": {"least_rate": 8.0}}], {}),
    "methods": ([["a-seq"], ["two-step"]], COUNTED),
    "sharing": ([["none"], ["PRETREE"]], {"methods": ["a-seq"], "user_workloads": COUNTED_QUERIES}),
    "user_workloads": ([{name: its} for name, its in QUERIES.items()], {"planners": ["CHASE"]}),
    "planners": ([["CHASE"], ["NAIVE"]], {"user_workloads": QUERIES}),
}  # fmt: skip


def test_every_field_is_part_of_the_identity_and_of_the_folder_s_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or results of one configuration would be taken for those of another."""
    assert {*OF_FIELDS} == {each.name for each in fields(SweepConfig)}
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("data", "other")):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"x": [1] * number}), tmp_path / name / "part.parquet")
    for name, (values, beside) in OF_FIELDS.items():
        given = {"data": "data", **beside}
        tried = [given | {name: value} for value in values]
        if name not in ("streams", "methods", "sharing", "user_workloads", "planners"):
            tried.append(given)
        configs = [SweepConfig(**its) for its in tried]
        assert len(configs) > 1
        of_names = {config.folder_name("mine") for config in configs}
        of_identities = {json.dumps(identity_of(config, []), sort_keys=True) for config in configs}
        assert len(of_names) == len(of_identities) == len(configs), name


@pytest.mark.parametrize("declared", [{"of": "tree"}, {"in_logs": True}], ids=str)
def test_what_a_user_defined_cost_declares_is_part_of_its_code(declared: dict[str, Any]) -> None:
    def cost(problem: object, plan: object) -> float:
        return 1.0

    def registered(**its: Any) -> str:
        cost_model("MINE", **{"of": "order"} | its)(cost)
        return hash_of_code(cost_from("MINE"))

    assert registered() == registered() != registered(**declared)
