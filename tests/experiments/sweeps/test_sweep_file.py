"""Sweep files: what they mean, and mistakes told with file, line and the nearest known key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.sweep_file import (
    KEYS,
    SWEEP_FOLDERS,
    USER_SECONDS,
    change_of,
    changes_of,
    data_folder,
    find_sweep,
    named_sweeps,
    read_sweep,
)
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.streams.stock_rates import StockRates

FULL = """\
title = "All keys"
description = "Every key once."
data = { identifiers = 12, days = 1 }

pattern_sets = ["sequence", "kleene"]
sizes = [3, 4]
patterns = 5
window = "5 minutes"
attribute = "price"
max_partial_matches = 1e4
max_kleene_events = 3

generators = ["GREEDY", "dp-b"]
evaluators = ["lazy-nfa", "tree"]
strategies = ["any", "consuming"]
alphas = [0, 0.5]
latency = true
share_equal_plans = true
repetitions = 2
seed = 7
time_selectivity = "exact"
partial_match_limit = 1_000_000

[user_patterns]
rising = '''
PATTERN SEQ(N0001 a, N0002 b)
WHERE a.price < b.price
WITHIN 5 minutes
'''

[profile.quick]
patterns = 1
data = "nasdaq-style/quick"

[profile.long]
seed = 8
outputs = ["count", "arrow"]
least_rate = { kleene = 2 }
most_rate = 40
predicates = "n"
selectivities = [0.002, 0.88]
duration = "3 days"
batch_size = 128
seconds = 0.5
[profile.long.regimes.dense]
least_rate = 8

[profile.many]
orders_in_trees = false
cost = "comparisons"
windows = ["5 minutes", "1 hours"]
stream_defaults = { days = 1 }
plans = { backwards = { order = ["b", "a"] }, pair = { tree = ["a", "b"] } }
policies = { adaptive = { policy = "bound", gain = 0.2 } }
[profile.many.streams]
sample = "nasdaq-style/sample"
[profile.many.streams.slow]
identifiers = 12
most_rate = 20.0
drift = 4
[profile.many.options.tree]
block = [64, 1024]
eager = true
[[profile.many.options.lazy-nfa]]
block = 16
"""


OF_METHODS = """\
data = "x"
methods = ["two-step", "a-seq"]
sharing = ["none", "PRETREE"]
repetitions = 1
[user_workloads]
both = '''
Q1 = PATTERN SEQ(A a, B b) AGG COUNT WITHIN 5 minutes
Q2 = PATTERN SEQ(A a, C c)
  AGG COUNT WITHIN 5 minutes
'''
"""

OF_PLANNERS = """\
data = "x"
planners = ["NAIVE", "CHASE"]
evaluators = ["tree"]
[user_workloads]
one = "q1 = PATTERN SEQ(A a, B b) WITHIN 5 minutes"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key_reaches_the_configuration(tmp_path: Path) -> None:
    path = write(tmp_path, FULL)
    content = tomllib.loads(FULL)
    profiles = content.pop("profile")
    of_methods, of_planners = tomllib.loads(OF_METHODS), tomllib.loads(OF_PLANNERS)
    of_workloads = {*of_methods, *of_planners}
    assert {*content, *profiles["long"], *profiles["many"]} | of_workloads == set(KEYS)
    assert read_sweep(write(tmp_path, OF_PLANNERS)).config("x") == SweepConfig(
        data="x",
        planners=("NAIVE", "CHASE"),
        evaluators=("tree",),
        seconds=USER_SECONDS,
        user_workloads=(("one", "q1 = PATTERN SEQ(A a, B b) WITHIN 5 minutes"),),
    )
    methods = read_sweep(write(tmp_path, OF_METHODS)).config("x")
    assert methods == SweepConfig(
        data="x",
        methods=("two-step", "a-seq"),
        sharing=("none", "PRETREE"),
        repetitions=1,  # which is all that is asked for
        user_workloads=(
            (
                "both",
                "Q1 = PATTERN SEQ(A a, B b) AGG COUNT WITHIN 5 minutes\n"
                "Q2 = PATTERN SEQ(A a, C c) AGG COUNT WITHIN 5 minutes",
            ),
        ),
    )
    path = write(tmp_path, FULL)
    sweep = read_sweep(path, profile="long")
    expected = SweepConfig(
        data="events",
        pattern_sets=("sequence", "kleene"),
        sizes=(3, 4),
        patterns=5,
        window="5 minutes",
        attribute="price",
        max_partial_matches=1e4,
        max_kleene_events=3,
        least_rate=(("kleene", 2.0),),
        most_rate=40.0,
        predicates="n",
        selectivities=(0.002, 0.88),
        duration="3 days",
        regimes=(("dense", '{"least_rate": 8}'),),
        strategies=("any", "consuming"),
        alphas=(0, 0.5),
        latency=True,
        share_equal_plans=True,
        generators=("GREEDY", "dp-b"),
        evaluators=("lazy-nfa", "tree"),
        repetitions=2,
        seed=8,
        outputs=("count", "arrow"),
        time_selectivity="exact",
        partial_match_limit=1_000_000,
        batch_size=128,
        seconds=0.5,
        user_patterns=(
            ("rising", "PATTERN SEQ(N0001 a, N0002 b) WHERE a.price < b.price WITHIN 5 minutes"),
        ),
    )
    assert sweep.config("events") == expected
    # No field has its default, or the test would not see that it gets lost.
    plain = SweepConfig(data="x")
    for name in expected.to_dict():
        assert getattr(expected, name) != getattr(plain, name), name
    assert (sweep.name, sweep.title, sweep.description) == ("mine", "All keys", "Every key once.")
    assert sweep.stream == sweep.data[""] == {"identifiers": 12, "days": 1}
    assert (sweep.seed, sweep.profile) == (8, "long")
    assert sweep.profiles == ("quick", "long", "many")
    # GREEDY's orders in both evaluators and DP-B's trees in one, everything twice.
    assert len(sweep.cells()) == 3 * 2 * 2 * 2 * 2
    for part in (
        "All keys",
        "12 identifiers",
        "dense: 20 drawn",
        "1 user-defined",
        "0, 0.5",
        "dp-b",
    ):
        assert part in sweep.describe()


def test_profile_and_changes_replace_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, FULL)
    quick = read_sweep(path)  # the profile of this name needs no asking
    assert (quick.profile, quick.data, quick.stream) == (
        "quick",
        {"": "nasdaq-style/quick"},
        None,
    )
    assert quick.config("x").patterns == 1 and quick.seed == 7
    changed = read_sweep(path, profile="long", changes={"seed": 9, "data": Path("here")})
    assert (changed.seed, changed.data) == (9, {"": "here"})
    bare = read_sweep(write(tmp_path, 'data = "d"\npattern_sets = ["kleene"]'))
    assert (bare.profile, bare.profiles, bare.title) == (None, (), "mine")
    # A user's sweep measures long enough, and equal plans once; a study's as it says.
    assert bare.config("d") == SweepConfig(
        data="d", pattern_sets=("kleene",), seconds=USER_SECONDS, share_equal_plans=True
    )
    said = read_sweep(
        write(tmp_path, 'data = "d"\npattern_sets = ["kleene"]\nshare_equal_plans = false'),
        changes={"seconds": 0.0},
    )
    assert said.config("d") == SweepConfig(data="d", pattern_sets=("kleene",))
    assert read_sweep("mei2009/rates").config("d").seconds == 0.1
    monkeypatch.chdir(SWEEP_FOLDERS["agrawal2008"])
    assert read_sweep("merging.toml").config("d") == read_sweep("agrawal2008/merging").config("d")
    assert read_sweep("agrawal2008/merging").config("d").seconds == 0.0


def test_streams_windows_and_options_vary(tmp_path: Path) -> None:
    sweep = read_sweep(write(tmp_path, FULL), profile="many")
    slow = {"identifiers": 12, "days": 1, "most_rate": 20.0, "drift": 4}
    # They take the place of the file's data and window.
    assert sweep.data == {"sample": "nasdaq-style/sample", "slow": slow} and sweep.stream is None
    style = NasdaqStyle(12, 1, seed=7, most_rate=20, drift=4)
    assert sweep.generated == {"slow": style}
    assert data_folder("x", slow, 7) == Path("x/nasdaq-style-12-1-7-most-rate-20-drift-4")
    paths = {"sample": "here", "slow": "there"}
    config = sweep.config(paths)
    assert config.cost == "comparisons" and "cost" not in SweepConfig(data="x").to_dict()
    assert config.data_of == paths and config.windows == ("5 minutes", "1 hours")
    assert dict(config.options) == {
        "tree": ('{"block": 64, "eager": true}', '{"block": 1024, "eager": true}'),
        "lazy-nfa": ('{"block": 16}',),
    }
    assert "window" not in config.to_dict() and "data" not in config.to_dict()
    for part in (
        "stream slow",
        "most_rate 20.0, drift 4",
        "windows     5 minutes, 1 hours",
        "1024",
    ):
        assert part in sweep.describe()
    # Generators first, then plans.
    planned = config.grid(["GREEDY"]).plan_generators()
    kinds = [(name, generator.kind) for name, generator in planned.items()]
    assert kinds == [("GREEDY", "order"), ("backwards", "order"), ("pair", "tree")]
    assert SweepConfig.from_dict(config.to_dict()) == config
    # A caller's data takes the place of a profile's streams.
    changed = read_sweep(tmp_path / "mine.toml", profile="many", changes={"data": "there"})
    assert changed.data == {"": "there"} and changed.config("x").streams == ()


TICKS = """\
stream_defaults = { kind = "stock-rates", events = 500, rates = { IBM = 1, Sun = 2, Oracle = 3 } }
user_patterns = ["one-predicate"]
seed = 3
[streams.all]
selectivities = { "IBM > Sun" = 1 }
[streams.few]
selectivities = { "IBM > Sun" = 0.25 }
seed = 4
[streams.log]
kind = "web-log"
days = 2
rates = { IBM = 1 }
[plans.left-deep]
tree = [["a", "b"], "c"]
[profile.quick]
[profile.long]
stream_defaults = { kind = "stock-rates", events = 900 }
"""


def test_a_stream_may_have_a_window_of_its_own(tmp_path: Path) -> None:
    ticks = TICKS.replace('[streams.log]\nkind = "web-log"\ndays = 2\nrates = { IBM = 1 }\n', "")
    text = ticks.replace("seed = 4\n", 'window = "7 units"\n')
    sweep = read_sweep(write(tmp_path, text))
    config = sweep.config("x")
    assert config.windows_on("few") == ("7 units",) and config.windows_on("all") == ("",)
    assert SweepConfig.from_dict(config.to_dict()) == config
    assert "window" not in sweep.generated["few"].parameters
    for stream, window in (("few", "7 units"), ("all", "")):
        assert {cell.window for cell in config.grid([], stream).cells()} == {window}
    plain = read_sweep(write(tmp_path, ticks)).config("x")
    assert config.folder_name("mine") != plain.folder_name("mine")
    with pytest.raises(ExperimentError, match="the window of few must be a time such as"):
        read_sweep(write(tmp_path, text.replace("7 units", "seven")))


def test_streams_of_other_kinds(tmp_path: Path) -> None:
    text = TICKS.replace('[streams.log]\nkind = "web-log"\ndays = 2\nrates = { IBM = 1 }\n', "")
    sweep = read_sweep(write(tmp_path, text))
    rates = {"IBM": 1, "Sun": 2, "Oracle": 3}
    assert sweep.generated == {
        "all": StockRates(500, 3, rates, {"IBM > Sun": 1}),
        "few": StockRates(500, 4, rates, {"IBM > Sun": 0.25}),
    }
    assert len({data_folder("x", data, 3) for data in sweep.data.values()}) == 2
    # Without generators only the plans run.
    assert sweep.config("x").generators == () and len(sweep.cells()) == 3
    assert dict(sweep.config("x").user_patterns).keys() == {"one-predicate"}
    for part in ("generated stock-rates stream of 500 events", "plans       left-deep"):
        assert part in sweep.describe()
    longer = read_sweep(tmp_path / "mine.toml", profile="long")
    assert [stream.events for stream in longer.generated.values()] == [900, 900]  # type: ignore[attr-defined]


def test_patterns_are_taken_from_the_library_of_the_data(tmp_path: Path) -> None:
    library = cep.open_dataset("nasdaq-style/sample").patterns
    for data in ('"nasdaq-style/quick"', "{identifiers = 12, days = 1}"):
        path = write(tmp_path, f'data = {data}\nuser_patterns = ["four-stocks", "kleene"]')
        config = read_sweep(path).config("x")
        assert dict(config.user_patterns) == {
            name: str(library[name]) for name in ("four-stocks", "kleene")
        }
    for data, names, message in (
        ('"nasdaq-style"', '["for-stocks"]', "line 2: .*no pattern 'for-stocks'.*four-stocks"),
        ('"here.parquet"', '["kleene"]', r"line 2: .*'here\.parquet' is no data set of the cata"),
    ):
        with pytest.raises(ExperimentError, match=rf"mine\.toml, {message}"):
            read_sweep(write(tmp_path, f"data = {data}\nuser_patterns = {names}"))


def test_the_sweeps_of_studies_are_files_named_with_and_without_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = named_sweeps()
    assert {name.partition("/")[0] for name in named} == set(SWEEP_FOLDERS)
    for study, folder in SWEEP_FOLDERS.items():
        for path in folder.glob("*.toml"):
            assert find_sweep(f"{study}/{path.stem}") == find_sweep(path.stem) == path
    (tmp_path / "latency.toml").write_text('data = "mine"')
    monkeypatch.setitem(SWEEP_FOLDERS, "other2030", tmp_path)
    assert find_sweep("other2030/latency") == tmp_path / "latency.toml"
    with pytest.raises(ExperimentError, match=r"several.*kolchinsky2018/latency, other2030/late"):
        find_sweep("latency")
    for name in named:
        for profile in read_sweep(name).profiles:
            sweep = read_sweep(name, profile=profile)
            assert sweep.title and sweep.description and sweep.cells()


PATTERN_OF_PLANS = 'data = "x"\n[user_patterns]\nq = "PATTERN A a; B b WITHIN 1 units"\n'
PLAN, POLICY = 'tree = ["a", "b"]', 'policy = "bound"'
ONE_PLAN = f"{PATTERN_OF_PLANS}[plans.p]\n{PLAN}\n"
ONE_POLICY = f"{PATTERN_OF_PLANS}[policies.p]\n{POLICY}\n"

SEEDS = """\
pattern_sets = ["kleene"]
stream_defaults = { kind = "stock-ticker", seed = [0, 4] }
[streams.a]
events = 5
window = "7 units"
[streams.b]
events = 6
seed = [2]
[streams.c]
events = 7
seed = 3
"""

#: A file, and what is wrong in it: what stands there, what instead, and the words of the error.
MISTAKES = {
    "keys and values": (FULL, {
        ("sizes = [3", "size = [3"): r"line 6: unknown key 'size'; .*did you mean 'sizes'",
        ("generators", "generator"):
            r"line 13: unknown key 'generator'; .*did you mean 'generators'",
        ("[profile.quick]", "[profil.quick]"): "line 31: .*did you mean 'profile'",
        ("patterns = 1\n", "paterns = 1\n"):
            "line 32: unknown key 'paterns'; .*did you mean 'patterns'",
        ("seed = 7", "seed = -7"): "line 20: seed must be at least 0, not -7",
        ('["GREEDY", "dp-b"]', '"GREEDY"'): "line 13: generators must be a list",
        ("patterns = 1\n", 'patterns = "1"\n'): "line 32: patterns must be a whole number, not '1'",
        ('"consuming"', '"nxt"'): "line 15: each of strategies is one of any, .*, not 'nxt'",
        ('"consuming"', '"partition_contiguity"'):
            "line 15: each of strategies: .*partition_contiguity",
        ('"kleene"', '"loops"'): "line 5: each of pattern_sets is one of .*, not 'loops'",
        ('"5 minutes"', '"soon"'): "line 8: window must be a time such as .*, not 'soon'",
        ("WHERE a.price <", "WHERE c.price <"):
            r"line 25: pattern 'rising': line 2, column 7: .*\n  WHERE c.price",
        ("seed = 7", "seed = "): r"is no TOML: .*line 20",
        ('title = "All keys"', "title = 3"): "line 1: title must be a text, not 3",
        ('"nasdaq-style/quick"', "3"): "line 33: data must be the name of .*, not 3",
        ('"nasdaq-style/quick"', "{day = 3}"): "line 33: unknown key 'day'; .*did you mean 'days'",
        ('"nasdaq-style/quick"', "{days = 3}"): "line 33: data: a nasdaq-style stream needs ident",
        ('["sequence", "kleene"]', "[]"): "line 6: sizes is about patterns that are",
        (FULL, 'title = "T"'): "the sweep names no data",
        (FULL, 'data = "x"\nstreams = {a = "y"}'): "line 2: a sweep has data or streams, not both",
        (FULL, "streams = {}"): "line 1: streams must be tables .*, not {}",
        (FULL, '[streams]\na = "x"\nb = 3'): "line 3: stream 'b' must be the name of .*, not 3",
        (FULL, '[streams]\n"a b" = "x"'): "line 2: stream 'a b': a stream's name has only",
        (FULL, "[streams.a]\nidentifiers = 1\ndays = 1\n[streams.b]\nidentifiers = 1\nday = 1"):
            "line 6: unknown key 'day'; .*did you mean 'days'",
        (FULL, "data = {identifiers = 3, days = 1, drift = 0.5}"): "line 1: data: drift must be",
        (FULL, 'data = "x"\nwindows = ["soon"]'): "line 2: each of windows must be a time",
        (FULL, 'data = "x"\nwindow = "1 hours"\nwindows = ["2 hours"]'):
            "line 3: a sweep has window or windows, not both",
        (FULL, 'data = "x"\n[options]\ntree = 3'): "line 3: options of 'tree': 3 must be a table",
        (FULL, 'data = "x"\n[options.tree]\nblock = []'):
            r"line 2: options of 'tree': {'block': \[\]} must be",
        (FULL, 'data = "x"\n[options.tree]\nblock = [1, 1]'):
            "line 2: options of 'tree' names something twice",
        (FULL, 'data = "x"\nprofile = "quick"'): "line 2: profiles are tables",
        (FULL, 'data = "x"\nprofile.quick = 3'): "line 2: profiles are tables",
    }),
    "streams of other kinds": (TICKS, {
        ("days = 2", "days = 2"): "line 9: unknown key 'events'",
        ('kind = "stock-rates", events = 500', "events = 500"): "line 4: unknown key 'events'",
        ('kind = "stock-rates", ev', 'kind = "stock", ev'): "line 4: stream 'all': kind is one of",
        ("IBM > Sun", "IBM > Snu"): "line 4: stream 'all': selectivities: .* did you mean 'Sun'",
        ("stream_defaults =", "stream_default ="): "line 1: .* did you mean 'stream_defaults'",
        ("events = 500", "events = 0"): "line 4: stream 'all': events must be at least 1",
        (TICKS, 'data = "x"\nstream_defaults = 3'): "line 2: stream_defaults must be a table",
    }),
    "plans": (ONE_PLAN, {
        (PLAN, 'tree = ["a", "b", "c"]'): "line 4: plan 'p': .* is not a tree",
        (PLAN, 'bush = ["a", "b"]'):
            "line 4: plan 'p': the kind of a plan is one of order, tree, automaton, not 'bush'",
        (PLAN, 'tree = ["a", "a"]'): "line 4: plan 'p': .*'a'",
        (PLAN, 'tree = ["a", "b"]\norder = ["a"]'):
            "line 4: plan 'p': a plan is one shape under its kind",
    }),
    "policies": (ONE_POLICY, {
        (POLICY, 'policy = "every"'):
            r"line \d: policy 'p': policy is one of threshold, amortized, bound, static, clairvoyant",
        (POLICY, 'generator = "DP-B"'): r"line \d: policy 'p': policy is one of",
        (POLICY, 'policy = "bound"\ngenerator = "D"'):
            r"line \d: policy 'p': no plan generator 'D'",
        (POLICY, 'policy = "bound"\ngain = -1'): r"line \d: policy 'p': gain must be at least 0",
        (POLICY, 'policy = "bound"\ncost = "time"'):
            r"line \d: policy 'p': cost is one of throughput",
        (POLICY, 'policy = "bound"\nevery = 3'): r"line \d: unknown key 'every'",
    }),
    "seeds": (SEEDS, {
        ("[2]", "[]"): "line 8: .*seed",
        ("[2]", "[1, 1]"): "line 8: .*seed",
        ("[2]", "[-1]"): "line 8: .*seed",
        ("[2]", "[\"x\"]"): "line 8: .*seed",
        ("[2]", "[0.5]"): "line 8: .*seed",
    }),
}  # fmt: skip


@pytest.mark.parametrize(
    ("of", "there", "instead"),
    [
        pytest.param(of, *replaced, id=f"{of}: {words:.60}")
        for of, (_, rows) in MISTAKES.items()
        for replaced, words in rows.items()
    ],
)
def test_mistakes_are_told_with_their_place(
    tmp_path: Path, of: str, there: str, instead: str
) -> None:
    text, messages = MISTAKES[of]
    assert there in text
    with pytest.raises(ExperimentError, match=rf"mine\.toml[,:]? {messages[there, instead]}"):
        read_sweep(write(tmp_path, text.replace(there, instead, 1)))


def test_plans_and_policies_have_names_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="plan 'dp_b'"):
        read_sweep(write(tmp_path, ONE_PLAN.replace("plans.p", "plans.dp_b")))
    taken = f"{ONE_POLICY}[plans.p]\n{PLAN}"
    with pytest.raises(ExperimentError, match="policy 'p': a plan has this name"):
        read_sweep(write(tmp_path, taken))


def test_a_mistake_of_the_caller_is_not_the_files(tmp_path: Path) -> None:
    path = write(tmp_path, FULL)
    for changes, message in (
        ({"seed": "x"}, "seed must be a whole number, not 'x'"),
        ({"pattern": 3}, "unknown key 'pattern'; .*did you mean 'patterns'"),
        ({"data": ""}, "data must be the name of .*, not ''"),
    ):
        with pytest.raises(ExperimentError, match=message) as told:
            read_sweep(path, changes=changes)
        assert "mine.toml" not in str(told.value)
    with pytest.raises(
        ExperimentError, match=r"profile of .* is one of quick, long, many, not 'ful'"
    ):
        read_sweep(path, profile="ful")
    with pytest.raises(ExperimentError, match="has no profiles; leave 'quick' out"):
        read_sweep(write(tmp_path, 'data = "x"'), profile="quick")


def test_generators_and_evaluators_are_looked_up_when_they_are_needed(tmp_path: Path) -> None:
    path = write(tmp_path, FULL.replace("dp-b", "DP-C"))
    sweep = read_sweep(path)  # it may be one of the reader's own, not registered here
    with pytest.raises(ExperimentError, match=r"mine\.toml: no plan generator 'DP-C'"):
        sweep.cells()
    path = write(tmp_path, FULL.replace('"lazy-nfa", "tree"', '"lazy-nfa"'))
    with pytest.raises(ExperimentError, match=r"mine\.toml: .*none of the evaluators"):
        read_sweep(path).cells()


TOP = """\
data = { identifiers = 120, days = 1 }
pattern_sets = ["sequence"]
sizes = [3]
"""


@pytest.mark.parametrize(
    ("added", "line", "message"),
    [
        ('cost = "thruput"', 4, "cost: no cost model 'thruput'; .*did you mean 'throughput'"),
        ('alphas = [0.5]\ncost = "zstream"', 4, "alphas: .*the cost zstream takes no such weight"),
        ('generators = ["GREDY"]', 4, "generators: no plan generator 'GREDY'; .*mean 'GREEDY'"),
        ('generators = ["greedy", "GREEDY"]', 4, "GREEDY is named twice, in other letters"),
        ("generators = []", 4, "nothing is named that the sweep could run"),
        ('evaluators = ["tre"]', 4, "evaluators: no evaluator 'tre'; .*did you mean 'tree'"),
        ("options = {tre = {}}", 4, "options: no evaluator 'tre'; .*did you mean 'tree'"),
        ("options = {tree = {x = 1}}", 4, "options: the evaluator tree has no option 'x'"),
        ('attribute = "diference"', 4, "no attribute 'diference'; .*did you mean 'difference'"),
        (
            '[user_patterns]\np = "PATTERN SEQ(MSFT a, GOOGL b) WITHIN 1 hours"',
            5, "pattern 'p': the data has no event of type 'GOOGL'",
        ),
        (
            '[user_patterns]\np = "PATTERN SEQ(MSFT a, GOOG b) WHERE a.prise > 3 WITHIN 1 hours"',
            5, "pattern 'p': the data has no attribute 'prise'; .*did you mean 'price'",
        ),
        ('[profile.quick]\ncost = "thruput"', 5, "cost: no cost model 'thruput'"),
        ("[profile.quick]\nsizes = [3, 300]", 5, "pattern size 300: the data has only 120 types"),
        ('[profile.quick]\ndata = "nasdaq-style/smple"', 5, "data: .*'smple'.*mean 'sample'"),
        ('[profile.quick]\ndata = "nowhere.parquet"', 5, "data: no data set or path"),
    ],
)  # fmt: skip
def test_everything_is_checked_before_anything_is_generated(
    tmp_path: Path, added: str, line: int, message: str
) -> None:
    sweep = read_sweep(write(tmp_path, f"{TOP}{added}\n"))
    with pytest.raises(ExperimentError, match=rf"mine\.toml, line {line}: .*{message}"):
        sweep.check(tmp_path / "data")
    assert not (tmp_path / "data").exists()
    read_sweep(write(tmp_path, TOP)).check(tmp_path / "data")


def test_what_a_caller_changes_is_checked_and_is_not_the_files(tmp_path: Path) -> None:
    sweep = read_sweep(write(tmp_path, TOP), changes={"cost": "thruput"})
    with pytest.raises(ExperimentError, match=r"^cost: no cost model 'thruput'"):
        sweep.check(tmp_path)


def test_names_in_data_that_is_there_already(tmp_path: Path) -> None:
    frame = pd.DataFrame({"symbol": ["A", "B"], "ts": [1, 2], "price": [1.0, 2.0]})
    frame.to_parquet(tmp_path / "events.parquet")
    top = 'data = "events.parquet"\n[user_patterns]\np = "PATTERN SEQ(A a, {} b) {} WITHIN 9 units"'
    read_sweep(write(tmp_path, top.format("B", ""))).check(tmp_path)
    with pytest.raises(ExperimentError, match=r"line 3: pattern 'p': .*no event of type 'C'"):
        read_sweep(write(tmp_path, top.format("C", ""))).check(tmp_path)
    with pytest.raises(ExperimentError, match=r"line 3: pattern 'p': .*no attribute 'prise'"):
        read_sweep(write(tmp_path, top.format("B", "WHERE a.prise < 3"))).check(tmp_path)
    text = top.replace("events.parquet", "nasdaq-style/sample").format("MSFTX", "")
    text = text.replace("A a", "MSFT a")
    with pytest.raises(ExperimentError, match="no event of type 'MSFTX'"):
        read_sweep(write(tmp_path, text)).check(tmp_path)
    gap = "WHERE b.ts - a.ts <= 3 units"  # of the time, which is no attribute
    read_sweep(write(tmp_path, top.format("B", gap))).check(tmp_path)
    frame.to_parquet(tmp_path / "folders", partition_cols=["symbol"])
    (tmp_path / "folders" / "README.md").write_text("no event")
    folders = top.replace("events.parquet", "folders")
    read_sweep(write(tmp_path, folders.format("B", gap))).check(tmp_path)
    with pytest.raises(ExperimentError, match=r"line 3: pattern 'p': .*no event of type 'C'"):
        read_sweep(write(tmp_path, folders.format("C", ""))).check(tmp_path)
    (tmp_path / "events.parquet").write_text("no Parquet")
    with pytest.raises(ExperimentError, match=r"line 1: data: .*cannot be read as Parquet"):
        read_sweep(write(tmp_path, top.format("B", ""))).check(tmp_path)


def test_streams_and_rates_that_contradict(tmp_path: Path) -> None:
    text = '[streams.a]\nidentifiers = 12\ndays = 1\nwindow = "5 minuts"'
    with pytest.raises(
        ExperimentError, match=r"mine\.toml, line 4: the window of a must be a time"
    ):
        read_sweep(write(tmp_path, text))
    for added, message in (
        ("least_rate = 8\nmost_rate = 1", "line 4: least_rate is 8 and most_rate 1"),
        ("max_partial_matches = -3", "line 4: max_partial_matches must be at least 0, not -3"),
        ("[regimes.a]\nleast_rate = {sequence = 9}\nmost_rate = 1", "line 5: least_rate is 9"),
    ):
        with pytest.raises(ExperimentError, match=rf"mine\.toml, {message}"):
            read_sweep(write(tmp_path, TOP + added))


def test_a_list_of_seeds_makes_a_stream_of_each(tmp_path: Path) -> None:
    sweep = read_sweep(write(tmp_path, SEEDS))
    drawn = {name: (its.size, its.parameters["seed"]) for name, its in sweep.generated.items()}
    assert drawn == {"a-seed0": (5, 0), "a-seed4": (5, 4), "b-seed2": (6, 2), "c": (7, 3)}
    config = sweep.config(dict.fromkeys(drawn, "x"))
    assert dict(config.stream_windows) == {"a-seed0": "7 units", "a-seed4": "7 units"}


def test_files_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExperimentError, match=r"there is no file .*other\.toml"):
        find_sweep(tmp_path / "other.toml")
    with pytest.raises(ExperimentError, match=r"unknown sweep 'latncy'.*did you mean 'latency'"):
        find_sweep("latncy")
    # A file beside the reader goes before a name of the package.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latency").write_text('data = "mine"')
    assert read_sweep("latency").data == {"": "mine"}


def test_changes_are_written_as_in_a_file() -> None:
    assert change_of("patterns=10") == ("patterns", 10)
    assert change_of('pattern_sets=["sequence"]') == ("pattern_sets", ["sequence"])
    assert change_of("data={identifiers=3, days=1}") == ("data", {"identifiers": 3, "days": 1})
    assert change_of("max_partial_matches=inf") == ("max_partial_matches", float("inf"))
    for wrong in ("patterns", "patterns=", "patterns=many", "window=5 minutes"):
        with pytest.raises(ExperimentError, match="must be FIELD=VALUE"):
            change_of(wrong)
    with pytest.raises(ExperimentError, match="--set patterns: it is given twice"):
        changes_of(["patterns=10", "seed=1", "patterns=11"])
