"""Engines by their protocol: declared, opened, run by all front ends, refused what they lack."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.arguments import whole
from cepbench.engines.detection.registry import default_evaluator, evaluator_for
from cepbench.engines.detection.tasks import constructs_of, options_of
from cepbench.engines.runs.latency import Latency
from cepbench.engines.runs.protocol import CONSTRUCTS, Option
from cepbench.engines.runs.result import Metrics
from cepbench.errors import (
    EvaluationError,
    SnapshotError,
    UnsupportedPatternError,
    UnsupportedTaskError,
)
from cepbench.experiments.conformance.evaluator_checks import check_stream
from cepbench.kernels import clock
from tests.engines.detection.dummy_engine import DECLARED, EveryCombination

BUILT_IN = [entry.name for entry in cep.EVALUATORS.values() if entry.is_builtin]
PATTERN = cep.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 30 units")
ORDER = cep.OrderPlan(["c", "a", "b"])
STREAM = check_stream()

NAME = "every-combination"


@pytest.fixture(autouse=True)
def registered() -> None:
    cep.plan_evaluator(NAME, **DECLARED)(EveryCombination)


def expected() -> pd.DataFrame:
    return cep.evaluate(PATTERN, STREAM, ORDER).matches


# One engine through all front ends


def test_evaluate_without_a_plan() -> None:
    result = cep.evaluate(PATTERN, STREAM, evaluator=NAME)
    pd.testing.assert_frame_equal(result.matches, expected())
    assert result.plan is None and "no plan" in result.describe()
    assert result.metrics.events == len(STREAM) and result.metrics.seconds > 0
    assert np.isnan(result.metrics.peak_bytes)
    counted = cep.evaluate(PATTERN, STREAM, evaluator=NAME, output="count")
    assert counted.metrics.matches == len(expected())


def test_what_only_one_engine_counts() -> None:
    metrics = cep.evaluate(PATTERN, STREAM, evaluator=NAME).metrics
    assert metrics.details["tried"] > len(expected())
    assert metrics.to_dict()["tried"] == metrics.details["tried"]
    assert "tried" in metrics.describe()
    assert cep.evaluate(PATTERN, STREAM, ORDER).metrics.details == {}
    with pytest.raises(EvaluationError, match="other names than matches"):
        Metrics(details={"matches": 1.0})


@pytest.mark.parametrize("name", [*BUILT_IN, NAME])
def test_a_detector_starts_at_any_position(name: str) -> None:
    plan = ORDER if "order" in cep.EVALUATORS[name].kinds else None
    whole_stream = cep.Detector(PATTERN, plan, evaluator=name, position=1_000)
    shifted = whole_stream.push(STREAM)
    assert whole_stream.position == 1_000 + len(STREAM)
    assert whole_stream.metrics().events == len(STREAM)
    pd.testing.assert_frame_equal(
        shifted.sort_values(["c", "a", "b"], ignore_index=True),
        expected().sort_values(["c", "a", "b"], ignore_index=True) + 1_000,
    )
    with pytest.raises(EvaluationError, match="position must be at least 0"):
        cep.Detector(PATTERN, plan, evaluator=name, position=-1)


def test_latency() -> None:
    result = cep.evaluate(PATTERN, STREAM, evaluator=NAME, latency=True)
    assert result.latency is not None and result.latency.count == len(expected())
    assert cep.evaluate(PATTERN, STREAM, evaluator=NAME).latency is None
    seconds = np.array([1e-9, 1e-6, 1e-3, 1.0])
    of_samples = Latency.of(seconds)
    assert of_samples.count == 4
    middles = clock.seconds_of_bins()[np.flatnonzero(of_samples.histogram)]
    assert np.allclose(middles, seconds, rtol=0.012)


def test_a_function_sees_comparisons_and_finds_all_matches() -> None:
    seen = []

    @cep.plan_evaluator("sees", without_plan=True)
    def sees(pattern: cep.Pattern, stream: cep.EventStream, plan: object) -> pd.DataFrame:
        seen.append(pattern)
        return cep.evaluate(pattern, stream, evaluator=NAME).matches

    pattern = cep.parse("PATTERN SEQ(A a, B b) WHERE [k] OUTPUT non_overlap WITHIN 30 units")
    result = cep.evaluate(pattern, STREAM, evaluator="sees")
    assert str(seen[0]) == "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 30 units"
    expected = cep.evaluate(pattern, STREAM, cep.OrderPlan(["a", "b"])).matches
    assert len(expected)
    pd.testing.assert_frame_equal(result.matches, expected)
    assert result.metrics.matches == len(expected)


def test_an_engine_opened_by_a_partial_belongs_to_cepbench() -> None:
    sase = cep.EVALUATORS["sase"]
    assert replace(sase, open=partial(sase.open)).is_builtin
    assert not replace(sase, open=partial(EveryCombination)).is_builtin


def test_compared_with_others() -> None:
    cep.plan_evaluator("mine", kinds=("order", "tree"))(
        lambda pattern, stream, plan: cep.evaluate(pattern, stream, evaluator=NAME).matches
    )
    table = cep.compare(
        PATTERN, STREAM, generators=["GREEDY"], evaluators=["tree", "mine"], repetitions=1,
        seconds=0,
    )  # fmt: skip
    assert set(table["status"]) == {"ok"} and table["matches"].nunique() == 1


def test_the_check_of_evaluators() -> None:
    report = cep.check_evaluator(NAME)
    assert report.passed, report.describe()
    statuses = report.table.groupby("pattern")["status"].agg(set)
    assert statuses[["sequence", "conjunction", "nested"]].tolist() == [{"ok"}] * 3
    assert statuses[["negation", "kleene", "consuming"]].tolist() == [{"refused"}] * 3
    assert set(report.table["check"]) == {
        "matches", "count", "batches", "start within a stream", "snapshots", "latency", "default",
    }  # fmt: skip


class Forgetful(EveryCombination):
    """Forgets what it has when it is restored, and when a batch ends."""

    def push(self, batch):
        self._kept = []
        return super().push(batch)

    def restore(self, state):
        raise KeyError("state")


def test_what_the_check_finds_in_a_run() -> None:
    cep.plan_evaluator("forgetful", **DECLARED)(Forgetful)
    table = cep.check_evaluator("forgetful", patterns=["sequence"]).table
    wrong = table[table["status"] == "error"].set_index("check")["reason"]
    assert set(wrong.index) == {"batches", "start within a stream", "snapshots"}
    assert "matches are not found" in wrong["batches"]
    assert "the evaluator forgetful failed: KeyError('state')" in wrong["snapshots"]


def test_what_the_check_finds_in_declarations() -> None:
    options = {"windows": Option(0, partial(whole, least=1))}
    cep.plan_evaluator("mine", **{**DECLARED, "options": options})(EveryCombination)
    report = cep.check_evaluator("mine", patterns=["sequence"])
    assert not report.passed and "windows must be at least 1, not 0" in report.describe()

    class Refusing(EveryCombination):
        def __init__(self, task):
            raise UnsupportedPatternError("no SEQ today")

    cep.plan_evaluator("mine", **DECLARED)(Refusing)
    report = cep.check_evaluator("mine", patterns=["sequence"])
    assert not report.passed
    assert "no SEQ today (it is declared: leave it out of constructs" in report.describe()


# What is refused


def test_what_a_counting_run_without_snapshots_cannot_do() -> None:
    class Counting:
        def __init__(self, task):
            self.names = {variable.type for variable in task.pattern.positive}

        def push(self, batch):
            codes = [code for code, name in enumerate(batch.type_names) if name in self.names]
            return int(np.isin(batch.type_codes, codes).sum())

        def finish(self):
            return 0

        def metrics(self):
            return Metrics()

    cep.plan_evaluator("counting", without_plan=True, outputs=("count",))(Counting)
    one = "PATTERN SEQ(A a) WITHIN 1 units"
    with pytest.raises(UnsupportedTaskError, match='cannot give output="matches"; lazy-nfa, tree'):
        cep.evaluate(one, STREAM, evaluator="counting")
    detector = cep.Detector(one, evaluator="counting", output="count")
    assert sum(detector.push(batch) for batch in STREAM.batches(50)) == len(
        cep.evaluate(one, STREAM, cep.OrderPlan(["a"])).matches
    )
    with pytest.raises(
        UnsupportedTaskError, match=r"cannot save its state; lazy-nfa, tree, .*every"
    ):
        detector.snapshot()
    assert cep.check_evaluator("counting", patterns=["no match"]).passed is False


def test_constructs_of_patterns() -> None:
    found = {
        text: constructs_of(cep.parse(f"PATTERN {text} WITHIN 1 units"))
        for text in (
            "SEQ(A a, NOT(B n), KL(C c))",
            "SEQ(A a, AND(B b, C c))",
            "OR(SEQ(A a, B b), AND(A a, B b))",
            "SEQ(A a, OR(B b, C c))",
            "SEQ(A a, OR(AND(B b, C c), D d))",
            "SEQ(A a, GROUP(B b, +))",
        )
    }
    assert list(found.values()) == [
        {"SEQ", "NOT", "KL"},
        {"SEQ", "AND", "nesting"},
        {"OR", "SEQ", "AND"},
        {"SEQ", "OR"},
        {"SEQ", "OR", "AND", "nesting"},
        {"SEQ", "GROUP"},
    ]
    concepts = cep.ConceptHierarchy({"A": ["B"]})
    found |= {
        name: constructs_of(
            cep.parse(f"PATTERN SEQ({name} a, C c) WITHIN 3 units").with_hierarchy(concepts)
        )
        for name in "AB"
    }
    assert (found["A"], found["B"]) == ({"SEQ", "concept"}, {"SEQ"})
    assert set.union(*found.values()) == set(CONSTRUCTS)


# Options and names


def test_options() -> None:
    its = evaluator_for(NAME)
    assert options_of(its, None) == {"windows": 1}
    assert options_of(its, {"windows": 3.0}) == {"windows": 3}
    for given, message in (
        ({"window": 1}, "no option 'window'; it has windows; did you mean 'windows'"),
        ({"windows": 0}, f"{NAME}: windows must be at least 1, not 0"),
        ([("windows", 1)], "options must be a mapping"),
    ):
        with pytest.raises(EvaluationError) as caught:
            cep.evaluate(PATTERN, STREAM, evaluator=NAME, options=given)
        assert message in str(caught.value)
    with pytest.raises(EvaluationError, match="tree has no option 'windows'; it has none"):
        cep.Detector(PATTERN, ORDER, evaluator="tree", options={"windows": 1})


def test_options_of_a_function() -> None:
    @cep.plan_evaluator("mine", options={"lacking": Option(0, partial(whole, least=0))})
    def mine(pattern, stream, plan, *, lacking):
        return cep.evaluate(pattern, stream, plan).matches.iloc[lacking:]

    found = cep.evaluate(PATTERN, STREAM, ORDER, evaluator="mine", options={"lacking": 3})
    assert found.metrics.matches == len(expected()) - 3
    assert len(cep.evaluate(PATTERN, STREAM, ORDER, evaluator="mine").matches) == len(expected())


@pytest.mark.parametrize("name", ["Lazy_NFA", "LAZY-NFA", "lazy_nfa"])
def test_names_ignore_case_and_hyphens(name: str) -> None:
    assert evaluator_for(name).name == "lazy-nfa"
    assert cep.Detector(PATTERN, ORDER, evaluator=name).evaluator == "lazy-nfa"
    cep.plan_evaluator("Every_Combination", **DECLARED)(EveryCombination)
    assert list(cep.EVALUATORS) == [*BUILT_IN, "Every_Combination"]
    with pytest.raises(EvaluationError, match="lazy-nfa is the name of a built-in evaluator"):
        cep.plan_evaluator(name)(EveryCombination)


def test_defaults_by_kind_of_plan() -> None:
    assert [default_evaluator(kind).name for kind in ("order", "tree")] == ["lazy-nfa", "tree"]
    with pytest.raises(EvaluationError, match="no evaluator runs zigzag plans"):
        default_evaluator("zigzag")


@pytest.mark.parametrize(
    ("declared", "function", "message"),
    [
        ({"kinds": ()}, EveryCombination, "neither plans of any kind nor without a plan"),
        ({"constructs": ["NOR"]}, EveryCombination, "each of constructs is one of SEQ, AND"),
        ({"strategies": ["all"]}, EveryCombination, "each of strategies is one of any"),
        ({"outputs": ["table"]}, EveryCombination, "each of outputs is one of matches, count"),
        ({"options": {"a": 1}}, EveryCombination, "options are a mapping of names to"),
        ({"latency": True}, len, "a function gives all matches and measures nothing else"),
        ({"node_times": True}, EveryCombination, "are no runs, as they lack node_table"),
        ({}, int, "objects of int are no runs, as they lack push, finish, metrics"),
    ],
)
def test_declarations_that_make_no_sense(declared, function, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        cep.plan_evaluator("mine", **declared)(function)
    assert message in str(caught.value)


# Runs that do not keep to the protocol


class Failing(EveryCombination):
    """Fails at the second batch."""

    def push(self, batch):
        if self._kept:
            raise ValueError("no more")
        return super().push(batch)

    def metrics(self):
        return {"seconds": 1.0}

    def snapshot(self):
        return {"kept": self._kept}


def test_errors_of_a_run_are_named() -> None:
    cep.plan_evaluator("failing", **DECLARED)(Failing)
    detector = cep.Detector(PATTERN, evaluator="failing")
    detector.push(STREAM[:50])
    with pytest.raises(EvaluationError, match="gave a dict as its metrics"):
        detector.metrics()
    with pytest.raises(SnapshotError, match="'run/kept' is list, no array; the snapshot"):
        detector.snapshot()
    with pytest.raises(EvaluationError, match="the evaluator failing failed: ValueError"):
        detector.push(STREAM[50:])
    with pytest.raises(
        EvaluationError,
        match=r"this detector failed in a push .EvaluationError: the evaluator failing",
    ):
        detector.push(STREAM[50:])


def test_metrics_that_fail_leave_the_detector_whole() -> None:
    class Silent(EveryCombination):
        def metrics(self):
            raise RuntimeError("none today")

    cep.plan_evaluator("silent", **DECLARED)(Silent)
    detector = cep.Detector(PATTERN, evaluator="silent")
    detector.push(STREAM[:50])
    with pytest.raises(EvaluationError, match="silent failed: RuntimeError"):
        detector.metrics()
    detector.push(STREAM[50:])


def test_positions_of_a_batch_that_is_still_to_come() -> None:
    class Early(EveryCombination):
        def push(self, batch):
            return super().push(batch) + 50

    cep.plan_evaluator("early", **DECLARED)(Early)
    with pytest.raises(EvaluationError, match="which has 50 events so far; positions count from 7"):
        cep.Detector(PATTERN, evaluator="early", position=7).push(STREAM[:50])


BRANCHES = "PATTERN OR(SEQ(A a, B b), SEQ(B b, A a)) WITHIN 30 units"
PAIR, SETS = "PATTERN SEQ(A a, B b) WITHIN 30 units", "PATTERN SEQ(A a, KL(B b)) WITHIN 30 units"


@pytest.mark.parametrize(
    ("text", "columns", "words"),
    [
        (PAIR, {"a": [0.7], "b": [2]}, "a column a that does not hold positions, such as np.float64(0.7)"),
        (PAIR, {"a": [np.nan], "b": [2]}, "a column a that does not hold positions"),
        (PAIR, {"a": ["0"], "b": [2]}, "a column a that does not hold positions, such as '0'"),
        (PAIR, {"a": pd.to_timedelta([0]), "b": [2]}, "a column a that does not hold positions"),
        (PAIR, {"a": [(0,)], "b": [2]}, "a column a that does not hold positions, such as (0,)"),
        (SETS, {"a": [0], "b": [(2.5,)]}, "a column b that does not hold tuples of different positions"),
        (SETS, {"a": [0], "b": ["24"]}, "a column b that does not hold tuples of different positions"),
        (SETS, {"a": [0], "b": [(2, 2)]}, "a column b that does not hold tuples of different positions"),
        (BRANCHES, {"a": [0, 0], "b": [2, 4], "branch": [0, 2]}, "a match of branch np.int64(2); branches are"),
        (BRANCHES, {"a": [0], "b": [2], "branch": [np.nan]}, "a match of branch np.float64(nan); branches are"),
        (BRANCHES, {"a": [0], "b": [2], "branch": ["0"]}, "a match of branch '0'; branches are numbered from 0 to 1"),
    ],
)  # fmt: skip
def test_matches_that_are_none(text: str, columns: dict, words: str) -> None:
    cep.plan_evaluator("mine", without_plan=True)(lambda *_: pd.DataFrame(columns))
    with pytest.raises(EvaluationError) as refused:
        cep.evaluate(text, STREAM, evaluator="mine")
    assert words in str(refused.value)


def test_whole_numbers_of_any_type_are_positions() -> None:
    columns = {
        "a": pd.Series([0.0, 1], dtype=object),
        "b": pd.Series([np.uint8(2), 3.0], dtype=object),
    }
    cep.plan_evaluator("mine", without_plan=True)(lambda *_: pd.DataFrame(columns))
    found = cep.evaluate(PAIR, STREAM, evaluator="mine").matches
    assert found.to_numpy().tolist() == [[0, 2], [1, 3]]


def test_one_column_twice() -> None:
    twice = pd.DataFrame([[0, 2, 3]], columns=["a", "b", "b"])
    cep.plan_evaluator("mine", without_plan=True)(lambda *_: twice)
    with pytest.raises(EvaluationError, match="mine have the column b twice"):
        cep.evaluate(PAIR, STREAM, evaluator="mine")


@pytest.mark.parametrize("number", [-5, True, np.timedelta64(5, "ns"), 5.0, None])
def test_numbers_that_no_matches_have(number: object) -> None:
    cep.plan_evaluator("mine", without_plan=True)(lambda *_: number)
    with pytest.raises(EvaluationError, match="the evaluator mine returned"):
        cep.evaluate(PAIR, STREAM, evaluator="mine", output="count")


def test_an_evaluator_ends_nothing_but_its_run() -> None:
    cep.plan_evaluator("mine", without_plan=True)(lambda *_: sys.exit(3))
    with pytest.raises(EvaluationError, match=r"the evaluator mine failed: SystemExit\(3\)"):
        cep.evaluate(PAIR, STREAM, evaluator="mine")


def test_an_evaluator_changes_no_stream() -> None:
    frame = pd.DataFrame({"type": ["B", "A"], "time": [2, 1], "x": pd.array([1, None], "Int64")})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", sort=True)

    @cep.plan_evaluator("mine", without_plan=True)
    def mine(pattern, stream, plan):
        stream.attributes["x"][:] = 0.0

    with pytest.raises(EvaluationError, match=r"the evaluator mine failed: .* read-only"):
        cep.evaluate(PAIR, stream, evaluator="mine")
