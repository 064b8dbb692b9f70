"""Without plan and evaluator the engine of the least expected time runs a pattern."""

from __future__ import annotations

import pytest

import cepbench as cep
from cepbench.engines.detection.planned import sampled
from cepbench.errors import UnsupportedPatternError
from cepbench.planning.costs import unit_costs
from cepbench.planning.costs.engine_work import FORMS
from tests.drawn_events import below, drawn_stream, uniform


def _stream(events: int) -> cep.EventStream:
    return drawn_stream(
        events, "ABCN", p=[0.3, 0.3, 0.3, 0.1], within=events, id=below(3), x=uniform
    )


STREAM = _stream(400)


@pytest.fixture
def cheapest(tmp_path, monkeypatch):
    """Store costs by which some engines take the least time, in this order, whatever their work."""
    monkeypatch.setenv("CEPBENCH_UNIT_COSTS", str(tmp_path))

    def cheapest(*engines: str, scanned: float = 0.0, apart: float = 1e6) -> None:
        order = [*engines, *(name for name in FORMS if name not in engines)]
        costs = {
            name: dict.fromkeys(kinds, 0.0) | {"opened": apart * order.index(name.split(",")[0])}
            for name, kinds in unit_costs.FIXED["alone"].items()
        }
        costs["tree"]["scanned"] = scanned
        unit_costs.store({**unit_costs.FIXED, "alone": costs})
        unit_costs.unit_costs.cache_clear()

    yield cheapest
    unit_costs.unit_costs.cache_clear()


@pytest.mark.parametrize(
    "body",
    [
        "SEQ(A a, B b, C c)",
        "SEQ(A a, NOT(N n), B b) WHERE a.x < b.x",
        "SEQ(A a, KL(B b), C c) WHERE b[i].x > b[i-1].x",
        "AND(A a, B b) WHERE [id]",
        "AND(A a, B b, C c) WHERE a.x < b.x AND b.x > c.x AND a.id = b.id AND b.id = c.id",
        "OR(SEQ(A a, B b), SEQ(B d, C c))",
        "SEQ(A a, GROUP(B b, +), C c)",
        "SEQ(A a, KL(B b), C c) STRATEGY next",
        "SEQ(A a, B b) STRATEGY strict_contiguity",
        "SEQ(A a, B b) STRATEGY consuming",
        "SEQ(A a, B b, C c) OUTPUT non_overlap",
    ],
)
@pytest.mark.parametrize("output", ["count", "arrow"])
def test_every_engine_to_choose_from_finds_the_same(body: str, output: str) -> None:
    text = f"PATTERN {body} WITHIN 6 units"
    result = cep.evaluate(text, STREAM, output=output)
    assert result.choice is not None and result.evaluator == result.choice.evaluator
    # All are estimated only now.
    assert result.evaluator == next(iter(result.choice.seconds))
    times = [*result.choice.seconds.values()]
    assert times[0] <= min(times) + 2e-4 and len(times) == len(result.choice.frame())
    statistics = cep.measure_statistics(text, STREAM)
    for name in result.choice.seconds:
        runs_plans = not cep.EVALUATORS[name].without_plan
        plan = cep.plan(text, statistics) if runs_plans else None
        its = cep.evaluate(text, STREAM, plan, evaluator=name, output=output)
        assert its.metrics.matches == result.metrics.matches, name


def test_a_stream_keeps_the_last_samples() -> None:
    """By size and window: what is sampled again is what a fresh stream gives, whatever was sampled before."""
    stream = _stream(60_000)
    texts = [
        f"PATTERN SEQ(A a, B b, C c) WHERE a.x < {x} AND b.id = c.id WITHIN {window} units"
        for window in (5, 9, 2_000, 40, 60, 5, 9_000)
        for x in (0.3, 0.6)
    ]
    for text in texts:
        pattern = cep.parse(text)
        statistics, active = sampled(pattern, stream)
        fresh = sampled(pattern, stream.with_hierarchy(None))
        assert (statistics.to_dict(), active) == (fresh[0].to_dict(), fresh[1])
        kept = dict(stream.samples)
        sampled(pattern, stream)
        assert kept == stream.samples and 1 <= len(kept) <= 4
        # Nothing that depends on the conditions.
        assert all(len(its) == 2 for its in kept.values())
    assert sampled(cep.parse(texts[0].replace("0.3", "0.9")), stream)[0] != statistics


def test_items_are_counted_without_joins_and_many_rows_of_more_than_three_are_not() -> None:
    stream = _stream(60_000)
    choices = [
        cep.evaluate(f"PATTERN SEQ({items}) WITHIN 50000 units", stream, output="count").choice
        for items in ("A a, A b, A c", "A a, A b, A c, A d")
    ]
    assert [its.evaluator for its in choices] == ["zstream", "sase"]
    assert choices[0].seconds["zstream"] < 0.1 < choices[1].seconds["zstream"]
    text = "PATTERN SEQ(A a, B b, C c, N d) WITHIN 300 units"
    four = cep.evaluate(text, stream, output="count").choice
    assert four.evaluator == "zstream" and four.seconds["zstream"] < 0.01


def test_all_are_estimated_where_the_fastest_is_not_able(cheapest) -> None:
    cheapest("zstream", "sase")
    text = "PATTERN SEQ(A a, KL(B b), C c) WITHIN 5 units"  # zstream has no KL
    assert cep.evaluate(text, STREAM, output="arrow").evaluator == "sase"


def test_the_choice_is_that_of_all_estimates(cheapest) -> None:
    """Whatever engines cost: those that are not estimated at once would not have been chosen."""
    pattern = cep.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 30 units")
    chosen = set()
    for place, name in enumerate(FORMS):
        for scanned in (0.0, 2e3):
            cheapest(*[its for its in FORMS if its != name][: place % 3], name, scanned=scanned)
            for options in (None, {"batch_size": 99}):
                result = cep.evaluate(pattern, STREAM, options=options, output="arrow")
                assert result.evaluator == next(iter(result.choice.seconds))
                chosen.add(result.evaluator)
    assert len(chosen) > 4


def test_only_engines_that_declare_what_is_needed(cheapest) -> None:
    cheapest("sase", "stack-nfa", "zstream")
    seq = "PATTERN SEQ(A a, B b) WITHIN 5 units"
    assert cep.evaluate(seq, STREAM).evaluator == "sase"
    both = "PATTERN AND(A a, B b) WHERE a.x < b.x WITHIN 5 units"
    assert cep.evaluate(both, STREAM).evaluator == "zstream"
    # By ranks of values.
    assert cep.evaluate(both, STREAM, output="count").evaluator == "sase"
    assert cep.evaluate(both, STREAM, output="count", node_times=True).evaluator == "zstream"
    for more in ("a.y < b.y", "a.x + b.x < 1"):
        other = both.replace("WITHIN", f"AND {more} WITHIN").replace(".y", ".id")
        assert cep.evaluate(other, STREAM, output="count").evaluator == "zstream"
    either = "PATTERN OR(AND(A a, B b), SEQ(A a, B b)) WHERE a.x < b.x WITHIN 5 units"
    assert cep.evaluate(either, STREAM, output="count").evaluator == "zstream"
    consuming = "PATTERN SEQ(A a, B b) STRATEGY consuming WITHIN 5 units"
    assert cep.evaluate(consuming, STREAM).evaluator == "tree"
    assert cep.evaluate(seq, STREAM, node_times=True).evaluator == "sase"
    assert cep.evaluate(seq, STREAM, latency=True).evaluator == "zstream"
    options = {"batch_size": 100}
    assert cep.evaluate(seq, STREAM, options=options).evaluator == "zstream"
    cheapest("zstream")
    assert cep.evaluate(seq, STREAM, output="compressed").evaluator == "sase"


def test_a_pattern_without_automaton_is_run_by_another_engine(cheapest) -> None:
    cheapest("sase", "sase-basic", "sase-backtrack", "tree")
    # An automaton would have to store all events of b.
    unbounded = "PATTERN SEQ(A a, KL(B b), C c) WHERE b.x * c.x < 0.5 WITHIN 5 units"
    with pytest.raises(UnsupportedPatternError):
        cep.evaluate(unbounded, STREAM, evaluator="sase")
    assert cep.evaluate(unbounded, STREAM).evaluator == "tree"
    names = [f"v{number}" for number in range(70)]
    many = f"PATTERN SEQ({', '.join(f'N {name}' for name in names)}) WITHIN 90 units"
    assert cep.evaluate(many, STREAM, output="count").evaluator == "tree"


def test_each_query_of_a_workload_that_may_take_long_has_its_engine(cheapest) -> None:
    queries = {"one": "SEQ(A a, B b)", "two": "SEQ(A a, B b, C c)", "three": "AND(A a, C c)"}
    workload = cep.Workload({q: f"PATTERN {its} WITHIN 5 units" for q, its in queries.items()})
    cheapest("sase", "zstream")
    for plan in (None, "CHASE"):
        found = cep.evaluate(workload, STREAM, plan, output="count")
        assert {its.evaluator for its in found.values()} == {"tree"}
    cheapest("sase", "zstream", scanned=1e4)
    for output, conjunction in (("count", "sase"), ("arrow", "zstream")):
        found = cep.evaluate(workload, STREAM, output=output)
        assert [its.evaluator for its in found.values()] == ["sase", "sase", conjunction]
        for query, its in found.items():
            assert its.choice is not None and its.choice.evaluator == its.evaluator
            alone = cep.evaluate(workload.patterns[query], STREAM, output="count")
            assert its.metrics.matches == alone.metrics.matches
    plan = cep.WorkloadPlan(workload, sources={"one": None, "two": "one", "three": None})
    found = cep.evaluate(workload, STREAM, plan)
    assert [its.evaluator for its in found.values()] == ["tree", "down", "tree"]
    found = cep.evaluate(workload, STREAM, evaluator="zstream")
    assert all(its.choice is None and its.evaluator == "zstream" for its in found.values())


def test_what_is_given_is_kept() -> None:
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 5 units"
    result = cep.evaluate(text, STREAM, evaluator="hierarchical-stacks")
    assert (result.evaluator, result.choice) == ("hierarchical-stacks", None)
    for plan, engine in (
        (cep.OrderPlan(["c", "a", "b"]), "lazy-nfa"),
        (cep.TreePlan((("a", "b"), "c")), "tree"),
    ):
        result = cep.evaluate(text, STREAM, plan)
        assert (result.evaluator, result.choice) == (engine, None)
    # Nothing has a rate in a window of no length.
    result = cep.evaluate("PATTERN AND(A a, B b) WITHIN 0 units", STREAM)
    assert (result.evaluator, result.choice) == ("tree", None)


@pytest.mark.parametrize("where", ["a.x < 2", "a[i].x > a[i-1].x", "a[2..].x > min(a[..i-1].x)"])
def test_conditions_on_the_first_event_of_a_set_do_not_make_the_set_small(where: str) -> None:
    text = f"PATTERN SEQ(KL(A a), B b) WHERE a[1].x < 0.05 AND {where} WITHIN 400 units"
    result = cep.evaluate(text, STREAM, output="count")
    assert result.evaluator == "sase" and result.metrics.matches > 1e8
    assert str(result.choice).endswith("over a year")


def test_results_and_explanations_say_what_was_chosen() -> None:
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 5 units"
    result = cep.evaluate(text, STREAM)
    first, second = [*result.choice.seconds][:2]
    assert f"{first} was chosen" in result.describe() and f"; {second} " in result.describe()
    statistics = cep.measure_statistics(text, STREAM)
    plan = cep.plan(text, statistics)
    for found, where in (
        (cep.explain(text, plan, statistics), "a million events"),
        (cep.explain(text, plan, stream=STREAM), "this stream"),
        (cep.explain(text, stream=STREAM), "this stream"),
        (cep.explain(text, statistics=statistics), "a million events"),
    ):
        assert {*found.choice.seconds} <= {*FORMS} and len(found.choice.seconds) > 5
        assert f"Expected times to count the matches of {where}: " in found.describe(1000)
    assert cep.explain(text).choice is None


def test_batches_of_matches_are_those_of_the_engine_chosen(cheapest) -> None:
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 5 units"
    expected = cep.evaluate(text, STREAM, evaluator="stack-nfa", output="count").metrics.matches
    for engine in ("sase", "zstream", "stack-nfa"):
        cheapest(engine)
        assert sum(batch.num_rows for batch in cep.match_batches(text, STREAM)) == expected


def test_statistics_of_a_long_stream_are_sampled_all_over_it() -> None:
    stream = _stream(60_000)
    pattern = cep.parse("PATTERN SEQ(A a, B b, N n) WHERE a.x < 0.3 AND a.id = b.id WITHIN 9 units")
    its, active = sampled(pattern, stream)
    exact = cep.measure_statistics(pattern, stream)
    for name, rate in exact.rates.items():
        assert its.rates[name] == pytest.approx(rate, rel=0.1)
    for pair, selectivity in exact.selectivities.items():
        assert its.selectivities[pair] == pytest.approx(selectivity, rel=0.15)
    assert active == pytest.approx(60_000, rel=0.05)


def test_among_engines_that_are_about_as_fast_the_first_is_chosen(cheapest) -> None:
    sequence = "PATTERN SEQ(A a, B b) WITHIN 5 units"
    following = "PATTERN SEQ(A a, B b) STRATEGY next WITHIN 5 units"
    for nanoseconds, engines in ((1e4, ["tree", "sase"]), (1e6, ["sase-backtrack"] * 2)):
        cheapest("sase-backtrack", "sase-basic", apart=nanoseconds)
        assert [cep.evaluate(its, STREAM).evaluator for its in (sequence, following)] == engines
