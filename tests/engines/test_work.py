"""Work in the papers' words: one vocabulary, counted as by hand, however the stream is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.aggregation.protocol import AggregateMetrics
from cepbench.engines.runs.result import Metrics
from cepbench.engines.runs.work import WORDS, Work
from cepbench.errors import CepbenchError, EvaluationError
from tests.budgets import examples
from tests.engines.work_by_hand import Event, Query, a_seq, sase

QUERIES = (
    Query("SEQ(A a, B b, C c)", ("A", "B", "C")),
    Query("SEQ(A a, B b, C c)", ("A", "B", "C"), "next"),
    Query("SEQ(A a, A b, B c)", ("A", "A", "B")),
    Query("SEQ(A a, KL(A b), B c)", ("A", "A+", "B")),
    Query("SEQ(KL(A a), B b)", ("A+", "B"), "next"),
    Query(
        "SEQ(A a, KL(B b), C c) WHERE a.x < b.x",
        ("A", "B+", "C"),
        begin=lambda chosen, event: chosen[0].x < event.x,
        take=lambda chosen, event: chosen[0].x < event.x,
        read=lambda run, is_loop: run.chosen[0].x if run.item == 1 else None,
    ),
    Query(
        "SEQ(A a, KL(B b)) WHERE b[i].x > b[i-1].x",
        ("A", "B+"),
        take=lambda chosen, event: event.x > chosen[-1].x,
        read=lambda run, is_loop: run.chosen[-1].x if is_loop else None,
    ),
    Query(
        "SEQ(A a, KL(B b)) WHERE b[i].x > b[i-1].x",
        ("A", "B+"),
        "next",
        take=lambda chosen, event: event.x > chosen[-1].x,
        read=lambda run, is_loop: run.chosen[-1].x if is_loop else None,
    ),
)

AGGREGATED = {
    "SEQ(A a, B b, C c) AGG COUNT": (("A", "B", "C"), 1),
    "SEQ(A a, A b, C c) AGG COUNT": (("A", "A", "C"), 1),
    # The matches, the sum, and the values in it.
    "SEQ(A a, B b) AGG COUNT, SUM(b.x)": (("A", "B"), 3),
}


@st.composite
def streams(draw: st.DrawFn, *, ties: bool = True) -> list[Event]:
    """A few events, in the order of time, often at the same one."""
    steps = st.sampled_from([0, 0, 1, 2] if ties else [1, 2])
    rows = draw(
        st.lists(st.tuples(st.sampled_from("AABBCD"), steps, st.integers(0, 2)), max_size=14)
    )
    now, events = 0, []
    for kind, step, x in rows:
        now += step
        events.append(Event(kind, now, float(x)))
    return events


def stream_of(events: list[Event]) -> cep.EventStream:
    frame = pd.DataFrame(events, columns=Event._fields)
    return cep.EventStream.from_pandas(
        frame.astype({"type": pd.CategoricalDtype([*"ABCD"]), "time": "int64", "x": "float64"}),
        type="type",
        time="time",
    )


def cut(stream: cep.EventStream, cuts: list[int]) -> Iterator[cep.EventStream]:
    edges = [0, *sorted(min(each, len(stream)) for each in cuts), len(stream)]
    return (stream[first:last] for first, last in pairwise(edges))


CUTS = st.lists(st.integers(0, 14), max_size=5)


def live_work(pattern: str, pieces: Iterator[cep.EventStream], **how: object) -> Work:
    detector = cep.Detector(pattern, **how)
    for piece in pieces:
        detector.push(piece)
    detector.flush()
    return detector.metrics().work


# -- the vocabulary -----------------------------------------------------------------------------


def test_only_words_of_the_vocabulary_count() -> None:
    for metrics in (Metrics, AggregateMetrics):
        with pytest.raises(
            EvaluationError, match=r"no word 'run_visit'; .* did you mean 'run_visits'"
        ):
            metrics(work={"run_visit": 3})
        assert metrics(work={"run_visits": 3}).to_dict()["run_visits"] == 3
    for number in (1.5, -1, True, "3"):
        with pytest.raises(EvaluationError, match="run_visits must be"):
            Work({"run_visits": number})
    with pytest.raises(EvaluationError, match="other names than run_visits"):
        Metrics(details={"run_visits": 1})


def test_work_is_shown_and_added() -> None:
    work = Work.total([Work({"rows_read": 1200, "products": 3}), {"products": 4, "delta": 0}])
    assert work == {"rows_read": 1200, "products": 7, "delta": 0}
    assert work.text() == "1,200 rows read, 7 products, 0 delta"
    assert str(work) == "Work({'rows_read': 1200, 'products': 7, 'delta': 0})"
    assert work.describe().startswith("rows read")
    assert "[qi2014]_, section 4.2" in work._repr_html_()


def test_two_metrics_are_words() -> None:
    one, other = Metrics(comparisons=4), Metrics(work={"comparisons": 4, "run_visits": 2})
    assert one.work == {"comparisons": 4} and other.comparisons == 4
    assert "comparisons" not in Metrics().work


def test_every_word_says_what_it_means_and_where() -> None:
    for name, word in WORDS.items():
        assert name.isidentifier() and word.meaning.endswith(".") and word.source.startswith("[")
    described = Path(cep.__file__).parents[1].joinpath("docs/engine.md").read_text(encoding="utf-8")
    assert [word for word in WORDS if f"`{word}`" not in described] == []


#: The words of engines on SEQ(A a, KL(B b), C c), and of methods on SEQ(A a, B b, C c).
_PLANS = {"partial_matches_created", "comparisons"}
_OF_RUNS = {"run_visits", "edges_evaluated", "events_reprocessed", "buffer_writes"}
_COUNTED = {"counters_updated"}
SAID = {
    "lazy-nfa": _PLANS, "tree": _PLANS, "sase": _OF_RUNS, "sase-backtrack": _OF_RUNS,
    "sase-basic": _OF_RUNS | {"pointers_followed"}, "zstream": _PLANS, "stack-nfa": _PLANS,
    "hierarchical-stacks": _PLANS, "lazy-nfa-instances": _PLANS, "tree-instances": _PLANS,
    "a-seq": _COUNTED | {"rows_created", "rows_expired", "rows_read"}, "window-product": _COUNTED,
    "dpc": _COUNTED, "greta": _COUNTED, "two-step": _PLANS, "order-statistics": set(),
}  # fmt: skip

EVENTS = [Event(kind, time, 0.0) for time, kind in enumerate("ABABCDC")]


def test_every_engine_says_its_words_and_no_others() -> None:
    stream = stream_of(EVENTS)
    said = {}
    for evaluator, entry in cep.EVALUATORS.items():
        text = "SEQ(A a, B b, C c) WITHIN 9 units"
        plan = None if entry.without_plan else cep.OrderPlan(("a", "b", "c"))
        try:
            found = cep.evaluate(f"PATTERN {text}", stream, plan, evaluator=evaluator)
        except CepbenchError:
            plan = cep.TreePlan((("a", "b"), "c"))
            found = cep.evaluate(f"PATTERN {text}", stream, plan, evaluator=evaluator)
        said[evaluator] = set(found.metrics.work)
        assert found.metrics.work.items() <= found.metrics.to_dict().items()
    for method in cep.AGGREGATORS:
        text = "SEQ(A a, B b, C c) AGG COUNT WITHIN 9 units"
        found = cep.aggregate(f"PATTERN {text}", stream, method)
        said[method] = set(found.metrics.work)
        assert found.metrics.work.items() <= found.metrics.to_dict().items()
    assert said == SAID


def test_a_workload_says_what_it_reuses() -> None:
    queries = {
        "general": "PATTERN SEQ(A a, C c) WITHIN 9 units",
        "special": "PATTERN SEQ(A a, B b, C c) WITHIN 9 units",
    }
    workload = cep.Workload(queries)
    plan = cep.WorkloadPlan(workload, sources={"general": None, "special": "general"})
    found = cep.evaluate(workload, stream_of(EVENTS), plan, evaluator="hierarchical-stacks")
    steps = found.steps
    for word in ("assembled", "types_tested", "source_matches", "reused", "delta"):
        assert found.metrics.work[word] == steps[word].sum() == found.metrics.to_dict()[word]
    assert found["special"].metrics.work["reused"] == 6
    assert found.metrics.work["delta"] == found["general"].metrics.matches == 4


def test_queries_that_share_counters_multiply() -> None:
    """Figure 11: a value is a product for each row of the last segment."""
    queries = {
        "q1": "PATTERN SEQ(A a, B b, C c) AGG COUNT WITHIN 9 units",
        "q2": "PATTERN SEQ(D d, B b, C c) AGG COUNT WITHIN 9 units",
    }
    workload = cep.Workload(queries)
    plan = cep.WorkloadPlan(workload, {"q1": (1,), "q2": (1,)})
    events = [Event(kind, time, 0.0) for time, kind in enumerate("ABBDBCC")]
    found = cep.aggregate(workload, stream_of(events), sharing=plan)
    # Of q1 three B follow the A, of q2 one the D; each C multiplies them, the last C is the second one.
    assert found.metrics.work["products"] == 2 * (3 + 1)
    assert found.metrics.work["rows_read"] == 2 * (3 + 1)
    assert found.metrics.work["rows_created"] == 1 + 1 + 3
    assert found.metrics.updates == sum(
        found.metrics.work[word] for word in ("counters_updated", "products")
    )


# -- counted by hand ----------------------------------------------------------------------------

#: The words of the twin that each engine says, when it lists matches.
OF_TWIN = {
    "sase-basic": ("run_visits", "edges_evaluated", "buffer_writes", "pointers_followed"),
    "sase-backtrack": ("run_visits", "edges_evaluated", "buffer_writes"),
    "sase": ("run_visits", "edges_evaluated", "buffer_writes"),
}


@pytest.mark.parametrize("engine", OF_TWIN)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.pattern)
@given(data=st.data(), cuts=CUTS)
@examples(4)
def test_runs_work_as_counted_by_hand(
    query: Query, engine: str, data: st.DataObject, cuts: list[int]
) -> None:
    # Under next, runs of one loop that differ in their last events are merged later.
    events = data.draw(streams(ties=engine != "sase" or query.strategy == "any"))
    by_hand = sase(events, query, engine)
    due = {word: by_hand[word] for word in OF_TWIN[engine]}
    work = live_work(query.pattern, cut(stream_of(events), cuts), evaluator=engine)
    assert {word: work[word] for word in due} == due
    counted = live_work(
        query.pattern, cut(stream_of(events), cuts), evaluator=engine, output="count"
    )
    for word in ("run_visits", "edges_evaluated"):
        # Under any, sase often counts without runs.
        assert counted.get(word, due[word]) == due[word]


@pytest.mark.parametrize("text", AGGREGATED)
@given(events=streams(), cuts=CUTS)
def test_prefix_counters_work_as_counted_by_hand(
    text: str, events: list[Event], cuts: list[int]
) -> None:
    items, totals = AGGREGATED[text]
    aggregator = cep.Aggregator(f"PATTERN {text} WITHIN 3 units", "a-seq")
    for piece in cut(stream_of(events), cuts):
        aggregator.push(piece)
    assert aggregator.metrics.work == a_seq(events, items, 3, totals)


@given(events=streams(), cuts=CUTS)
def test_prefix_counters_of_partitions_are_those_of_their_streams(
    events: list[Event], cuts: list[int]
) -> None:
    aggregator = cep.Aggregator(
        "PATTERN SEQ(A a, B b, C c) GROUP BY x AGG COUNT WITHIN 3 units", "a-seq"
    )
    for piece in cut(stream_of(events), cuts):
        aggregator.push(piece)
    due: Counter[str] = Counter()
    for x in {event.x for event in events}:
        # The time of the whole stream goes on in each.
        last = events[-1]._replace(type="D", x=x)
        due += a_seq([*(e for e in events if e.x == x), last], ("A", "B", "C"), 3, 1)
    assert {word: number for word, number in aggregator.metrics.work.items() if number} == due


#: In the order of the pattern, so that an event is compared with what may come before it alone.
IN_ORDER = {
    "lazy-nfa-instances": cep.OrderPlan(tuple("abc")),
    "tree-instances": cep.TreePlan((("a", "b"), "c")),
}


@pytest.mark.parametrize("engine", IN_ORDER)
@given(events=streams(), cuts=CUTS)
def test_instances_compare_nothing_of_one_timestamp(
    engine: str, events: list[Event], cuts: list[int]
) -> None:
    """Without conditions, all that is compared is in order and within the window, and fits."""
    pattern = "PATTERN SEQ(A a, B b, C c) WITHIN 4 units"
    detector = cep.Detector(pattern, IN_ORDER[engine], evaluator=engine)
    for piece in cut(stream_of(events), cuts):
        detector.push(piece)
    detector.flush()
    metrics = detector.metrics()
    assert metrics.comparisons == metrics.work["partial_matches_created"] + metrics.matches


@pytest.mark.parametrize("engine", [*IN_ORDER, *OF_TWIN])
def test_events_of_one_timestamp_are_no_work(engine: str) -> None:
    """Until one of a later timestamp comes."""
    events = [Event(kind, 0, float(x)) for x, kind in enumerate("ABC" * 40)]
    pieces = cut(stream_of([*events, Event("B", 1, 0.0)]), [7, 50, 119])
    pattern = "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x WITHIN 4 units"
    work = live_work(pattern, pieces, evaluator=engine, plan=IN_ORDER.get(engine))
    # Of the 40 events of type A one is not larger than the B, which a run that backtracks reads twice.
    reads = 40 + (engine == "sase-backtrack")
    assert work["comparisons" if engine in IN_ORDER else "run_visits"] == reads


# -- however the stream is cut ------------------------------------------------------------------

#: Words that may differ although all matches are wanted, and engines whose words all may.
VARYING = {"comparisons", "events_reprocessed"}
VARIES = {"stack-nfa", "zstream"}

PATTERNS = (
    "SEQ(A a, B b, C c)",
    "SEQ(A a, B b, C c) WHERE a.x < b.x",
    "SEQ(A a, B b, C c) WHERE b.x <= c.x AND a.x = c.x",
    "SEQ(A a, NOT(D n), B b, C c) WHERE n.x < a.x",
)


@pytest.mark.parametrize("evaluator", [e for e in SAID if e in cep.EVALUATORS and e not in VARIES])
@given(events=streams(), cuts=CUTS, text=st.sampled_from(PATTERNS))
@examples(4)
def test_work_is_the_same_however_the_stream_is_cut(
    evaluator: str, events: list[Event], cuts: list[int], text: str
) -> None:
    pattern = f"PATTERN {text} WITHIN 4 units"
    stream = stream_of(events)
    plan = None if cep.EVALUATORS[evaluator].without_plan else cep.OrderPlan(("b", "c", "a"))
    if plan and "order" not in cep.EVALUATORS[evaluator].kinds:
        plan = cep.TreePlan((("b", "c"), "a"))
    whole = cep.evaluate(pattern, stream, plan, evaluator=evaluator).metrics.work
    pieces = live_work(pattern, cut(stream, cuts), plan=plan, evaluator=evaluator)
    exact = [word for word in whole if word not in VARYING]
    assert exact and [whole[word] for word in exact] == [pieces[word] for word in exact]


@pytest.mark.parametrize("method", ["a-seq", "window-product", "greta"])
@given(events=streams(), cuts=CUTS)
def test_methods_work_the_same_however_the_stream_is_cut(
    method: str, events: list[Event], cuts: list[int]
) -> None:
    pattern = "PATTERN SEQ(A a, B b, C c) WHERE [x] AGG COUNT WITHIN 4 units"
    stream = stream_of(events)
    whole = cep.aggregate(pattern, stream, method).metrics.work
    aggregator = cep.Aggregator(pattern, method)
    for piece in cut(stream, cuts):
        aggregator.push(piece)
    pieces = aggregator.metrics.work
    exact = [word for word in whole if word not in VARYING]
    assert exact and [whole[word] for word in exact] == [pieces[word] for word in exact]


def test_work_survives_snapshots_and_the_past() -> None:
    pattern, stream = QUERIES[0].pattern, stream_of(EVENTS)
    for evaluator in ("sase-basic", "sase"):
        detector = cep.Detector(pattern, evaluator=evaluator)
        detector.push(stream[:4])
        restored = cep.Detector.restore(detector.snapshot())
        restored.push(stream[4:])
        whole = cep.evaluate(pattern, stream, evaluator=evaluator).metrics.work
        assert restored.metrics().work == whole
    aggregator = cep.Aggregator("PATTERN SEQ(A a, B b, C c) AGG COUNT WITHIN 3 units", "a-seq")
    aggregator.push(stream[:4])
    restored = cep.Aggregator.restore(aggregator.snapshot())
    restored.push(stream[4:])
    assert restored.metrics.work == a_seq(EVENTS, ("A", "B", "C"), 3, 1)


# -- where it is shown --------------------------------------------------------------------------


def test_explanations_and_comparisons_show_work() -> None:
    stream = stream_of(EVENTS)
    pattern = "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x WITHIN 9 units"
    work = cep.evaluate(pattern, stream, evaluator="sase-basic").metrics.work
    plan = cep.automaton(pattern)
    explained = cep.explain(pattern, plan, stream=stream, evaluator="sase-basic")
    assert f"{work['run_visits']:,} run visits, {work['edges_evaluated']:,} edges evaluated" in (
        " ".join(explained.describe(10**6).split())
    )
    table = cep.compare(
        pattern, stream, evaluators=["sase-basic", "tree"], repetitions=1, seconds=0
    )
    shown = table.set_index("evaluator")["work"]
    assert f"{work['run_visits']:,} run visits" in shown["sase-basic"]
    assert "partial matches" in shown["tree"].iloc[0] and "run visits" in table._repr_html_()
