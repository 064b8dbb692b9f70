"""Profiles: the paper's setup in full, one folder for notebooks and sweeps, what is told of both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.studies.kolchinsky2018 import STUDY
from cepbench.experiments.studies.kolchinsky2018.profiles import parameters_of
from cepbench.experiments.studies.measured import measured_sweep
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.restrictions import restrictions
from cepbench.experiments.sweeps.sweep_file import data_folder, read_sweep, sweep_folder
from cepbench.experiments.sweeps.workload import PATTERN_SETS
from cepbench.planning.planners.registry import PLAN_GENERATORS, default_generators

SWEEPS = ("types", "latency", "strategies")


def config_of(profile: str, name: str, data: str | Path = "data", **changes: object) -> SweepConfig:
    return read_sweep(f"kolchinsky2018/{name}", profile=profile, changes=changes).config(data)


def stream_of(profile: str) -> dict[str, int]:
    return dict(read_sweep("kolchinsky2018/types", profile=profile).stream or {})


def test_the_full_profile_is_the_setup_of_the_paper() -> None:
    assert stream_of("full") == {"identifiers": 2100, "days": 252}
    types = config_of("full", "types", "data")
    assert types.pattern_sets == tuple(PATTERN_SETS) and len(PATTERN_SETS) == 5
    assert (types.sizes, types.patterns, types.window) == ((3, 4, 5, 6, 7), 100, "20 minutes")
    assert types.strategies == ("any",)
    latency = config_of("full", "latency", "data")
    assert latency.alphas == (0, 0.5, 1, 10, 100) and latency.latency
    assert latency.generators is not None and set(latency.generators) < set(PLAN_GENERATORS)
    assert latency.generators == (
        "GREEDY", "II-RANDOM", "II-GREEDY", "DP-LD", "ZSTREAM-ORD", "DP-B",
    )  # fmt: skip
    for experiment in SWEEPS:
        for profile in STUDY.profiles:
            assert read_sweep(experiment, profile=profile).stream == stream_of(profile)
    strategies = config_of("full", "strategies", "data")
    assert strategies.strategies == ("any", "consuming", "strict_contiguity")
    for config in (latency, strategies):
        assert config.pattern_sets == ("sequence",)
        assert len(config.sizes) * config.patterns == 500
    assert parameters_of("figure_7", "full")["patterns"] == {22: 10}  # 200 of 20 sizes
    assert parameters_of("cost_models", "full")["patterns"] == types.patterns
    assert parameters_of("cost_models", "full")["identifiers"] == 2100


@pytest.mark.parametrize("experiment", SWEEPS)
def test_the_quick_profile_is_less_of_the_same(experiment: str) -> None:
    quick, full = (config_of(name, experiment, "data") for name in STUDY.profiles)
    assert quick.patterns < full.patterns and quick.max_partial_matches is not None
    for name in ("pattern_sets", "sizes", "strategies", "alphas", "latency", "generators"):
        assert getattr(quick, name) == getattr(full, name)
    assert [*quick.workloads] == [*full.workloads] and quick.workloads["sparse"].least_rate is None
    for name, part in quick.workloads.items():
        assert (part.least_rate, part.sizes) == (
            full.workloads[name].least_rate, full.workloads[name].sizes,
        )  # fmt: skip


def test_the_full_regimes_are_of_the_size_of_the_paper() -> None:
    for experiment in SWEEPS:
        workloads = config_of("full", experiment, "data").workloads
        for regime in ("sparse", "dense"):
            assert workloads[regime].patterns == 100 and workloads[regime].sizes == (3, 4, 5, 6, 7)


@pytest.mark.parametrize("profile", STUDY.profiles)
@pytest.mark.parametrize(
    ("own", "first"), [("instances", "types"), ("latency_instances", "latency")]
)
def test_the_second_engine_runs_the_first_patterns_of_the_same(
    profile: str, own: str, first: str
) -> None:
    types, instances = (config_of(profile, name) for name in (first, own))
    assert (instances.generators, instances.alphas) == (types.generators, types.alphas)
    assert [*types.workloads] == [*instances.workloads]
    for name, part in instances.workloads.items():
        same = replace(
            types.workloads[name],
            sizes=part.sizes, patterns=part.patterns, repetitions=part.repetitions,
            evaluators=part.evaluators,
            orders_in_trees=False, partial_match_limit=part.partial_match_limit,
        )  # fmt: skip
        assert part == same and part.patterns <= types.workloads[name].patterns
        assert {3, 7} < {*part.sizes} <= {*types.workloads[name].sizes}
    engines = {"order": "lazy-nfa-instances", "tree": "tree-instances"}
    generators = types.generators or default_generators(user_defined=False)
    ran_in = {cell[:2] for cell in instances.grid(generators).cells()}
    assert ran_in == {(name, engines[PLAN_GENERATORS[name].kind]) for name in generators}


def test_a_change_holds_in_every_regime() -> None:
    few = config_of("quick", "types", patterns=1, least_rate=2.0, sizes=[3])
    assert {(p.patterns, p.least_rate, p.sizes) for p in few.workloads.values()} == {(1, 2.0, (3,))}
    assert few.workloads["dense"].duration == "1 days"


def test_one_folder_wherever_the_data_is_named_from() -> None:
    stream = {"identifiers": 7, "days": 10}
    from_root = data_folder("reports/data", stream, 3)
    assert from_root == Path("reports/data/nasdaq-style-7-10-3")
    beside = data_folder("../reports/data", stream, 3)
    one, other = (
        sweep_folder(path.parent, "types", config_of("quick", "types", path))
        for path in (from_root, beside)
    )
    assert one.name == other.name and one.parent == Path("reports/data/sweeps")
    changed = config_of("quick", "types", from_root, seed=1)
    assert sweep_folder("reports/data", "types", changed).name != one.name
    more = config_of("quick", "types", data_folder("x", {"identifiers": 8, "days": 10}, 3))
    assert sweep_folder("x", "types", more).name != one.name


@pytest.mark.parametrize(
    ("experiment", "name"),
    [("types", "f964d09a"), ("latency", "02e0b68c"), ("strategies", "4184738a")],
)
def test_the_folders_of_finished_sweeps_stay(experiment: str, name: str) -> None:
    """What was measured before is found again: these names were given by the first version."""
    data = data_folder("data", stream_of("quick"), 0)
    first: dict[str, object] = {"regimes": {}, "seed": 0}
    if experiment == "types":
        first |= {"patterns": 12, "repetitions": 3}
    if experiment == "latency":
        first |= {"alphas": [0.0, 0.5, 1.0], "patterns": 16, "repetitions": 3}
    config = config_of("quick", experiment, data, **first)
    assert sweep_folder("data", experiment, config) == Path(f"data/sweeps/{experiment}-{name}")


def test_readers_are_told_what_is_restricted() -> None:
    told = {
        (profile, name): " ".join(restrictions(config_of(profile, name, "data")))
        for profile in STUDY.profiles
        for name in SWEEPS
    }
    assert "more than 10,000,000 partial matches" in told["quick", "types"]
    assert "sparse: Identifiers were drawn again" in told["full", "types"]
    assert "more than 20,000 partial matches" in told["full", "types"]
    assert "partial matches" not in told["full", "strategies"]
    assert "at most 5 expected events per window" in told["full", "types"]
    assert "each of its three sequences" in told["full", "types"]
    assert "100 patterns of each size in each set, each plan run once" in told["full", "types"]
    assert "of its own types" in told["full", "strategies"]
    assert "KL" not in told["full", "latency"]
    assert all("counts for each." in text for text in told.values())
    on_instances = " ".join(restrictions(config_of("quick", "instances")))
    assert "A run ends when it stores more than 200,000 partial matches" in on_instances
    assert "A run ends" not in told["quick", "types"]
    once = restrictions(config_of("full", "types", "data", repetitions=1))
    assert any(sentence.endswith("each plan run once.") for sentence in once)
    own = SweepConfig(data="x", user_patterns=(("mine", "PATTERN SEQ(A a, B b) WITHIN 1 hours"),))
    assert restrictions(own) == ["1 pattern chosen by hand, each plan run 3 times."]
    regimes = {"sparse": {}, "dense": {"least_rate": {"sequence": 8}, "duration": "2 days"}}
    draws = {"dense": {"patterns": 4, "out_of_bounds": 0, "contradictory": 3}}
    said = restrictions(SweepConfig.from_dict({"data": "x", "regimes": regimes}), (), draws)
    assert "dense: Identifiers have at least 8 (sequence) expected events per window." in said
    assert "dense: Patterns run on the first 2 days of the stream." in said
    (rejected,) = (sentence for sentence in said if "rejected" in sentence)
    assert rejected.startswith("dense: For 4 patterns draws were rejected: 3 because their pred")


def test_wrong_names_are_errors() -> None:
    with pytest.raises(ExperimentError, match="profile is one of quick, full, not 'fast'"):
        parameters_of("figure_7", "fast")
    with pytest.raises(ExperimentError, match="unknown key 'pattern'"):
        measured_sweep("kolchinsky2018/types", "quick", "data", pattern=3)
