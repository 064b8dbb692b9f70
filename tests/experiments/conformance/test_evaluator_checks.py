"""Evaluators of users: registered, run by the same calls, and held against all others."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.detection import registry
from cepbench.engines.detection.tasks import constructs_of
from cepbench.engines.runs.protocol import CONSTRUCTS
from cepbench.errors import (
    EvaluationError,
    ExperimentError,
    UnsupportedPatternError,
    UnsupportedTaskError,
)
from cepbench.experiments.conformance.evaluator_checks import PATTERNS, check_stream
from tests.budgets import covering
from tests.naive.matcher import naive_matches

check_evaluator = cep.check_evaluator


def borrowed(pattern, stream, plan):
    """What an evaluator of cepbench's own finds, in another order."""
    return cep.evaluate(pattern, stream, plan, evaluator="tree").matches[::-1]


def registered(function, **options):
    cep.plan_evaluator("mine", **options)(function)
    return "mine"


#: Patterns with items of a concept.
CONCEPTS = {"concept", "overlapping types"}

PATTERN = cep.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 30 units")
ORDER = cep.OrderPlan(["c", "a", "b"])


#: Of our own those that differ in what they declare: to the others the contract is applied.
SOME = covering(
    cep.EVALUATORS,
    lambda name: (tuple(cep.EVALUATORS[name].kinds), bool(cep.EVALUATORS[name].options)),
)


@pytest.mark.parametrize("name", SOME)
def test_the_projects_own_evaluators_pass(name: str) -> None:
    report = check_evaluator(name, seed=3)
    assert report.passed, report.describe()
    entry = cep.EVALUATORS[name]
    patterns = {
        key: cep.parse(f"PATTERN {text} WITHIN 30 units").with_hierarchy(check_stream().hierarchy)
        for key, text in PATTERNS.items()
    }
    runs = {
        key: pattern.strategy.name in entry.strategies
        and constructs_of(pattern) <= {*entry.constructs}
        for key, pattern in patterns.items()
    }
    counted = {
        key: bool(constructs_of(pattern) & {*entry.counted}) for key, pattern in patterns.items()
    }
    is_option = report.table["pattern"] == "options"
    assert is_option.any() == bool(entry.options)
    assert (report.table["status"][is_option] == "ok").all()
    table = report.table[~is_option]
    # Of patterns that it only counts matches are not listed.
    counts = table["pattern"].map(counted) & (table["status"] == "ok")
    expected = np.where(table["pattern"].map(runs) | counts, "ok", "refused")
    assert (table["status"] == expected).all()
    assert counts.any() == bool(entry.counted) and not counts[table["pattern"] == "nested"].any()
    assert repr(report) == f"<{report.describe().splitlines()[0]}>"
    assert list(table["pattern"].unique()) == list(PATTERNS)
    some = table.groupby("pattern")["matches"].first()
    assert (some.drop("no match") > 0).all() and some["no match"] == 0


@pytest.mark.parametrize("name", ["sequence", "kleene", "negation", "concept"])
def test_what_is_expected_is_what_trying_all_combinations_finds(name: str) -> None:
    """The check's stream is not too easy: a naive matcher finds the same in it."""
    stream = check_stream(0)[:18]
    text = f"PATTERN {PATTERNS[name]} WITHIN 30 units"
    pattern = cep.parse(text).with_hierarchy(stream.hierarchy)
    found = cep.evaluate(pattern, stream, cep.OrderPlan(list(pattern.positive_names))).matches
    assert len(found) > 0
    assert set(map(tuple, found.to_numpy())) == naive_matches(pattern, stream.to_pandas())


def test_an_evaluator_of_ones_own_is_everywhere() -> None:
    name = registered(borrowed)
    stream = check_stream(1)
    result = cep.evaluate(PATTERN, stream, ORDER, evaluator=name)
    own = cep.evaluate(PATTERN, stream, ORDER)
    pd.testing.assert_frame_equal(result.matches, own.matches)
    assert result.evaluator == "mine" and result.arrow.num_rows == len(own.matches)
    assert result.metrics.matches == own.metrics.matches
    assert result.metrics.seconds > 0 and np.isnan(result.metrics.peak_bytes)
    assert "mine" in result.describe() and "mine" in result._repr_html_()
    counted = cep.evaluate(PATTERN, stream, ORDER, evaluator=name, output="count")
    assert counted.metrics.matches == len(own.matches)
    table = cep.compare(
        PATTERN,
        stream,
        generators=["GREEDY", "DP-B"],
        evaluators=["tree", name],
        repetitions=1,
        seconds=0,
    )
    assert list(table["evaluator"]) == ["tree", "mine", "tree", "mine"]
    assert set(table["status"]) == {"ok"} and table["matches"].nunique() == 1
    assert "mine" in table._repr_html_() and "nan" not in table._repr_html_()
    # Where nothing is said the project's own still run.
    assert cep.evaluate(PATTERN, stream, ORDER).evaluator == "lazy-nfa"


@pytest.mark.parametrize("name", ["kleene", "disjunction"])
def test_sets_and_branches_are_taken_as_they_are_given(name: str) -> None:
    registered(borrowed)
    stream = check_stream(2)
    pattern = cep.parse(f"PATTERN {PATTERNS[name]} WITHIN 30 units")
    plan = cep.plan(pattern, cep.measure_statistics(pattern, stream))
    result = cep.evaluate(pattern, stream, plan, evaluator="mine")
    pd.testing.assert_frame_equal(
        result.matches, cep.evaluate(pattern, stream, plan).matches, check_dtype=False
    )


def test_concepts_have_to_be_declared() -> None:
    """An evaluator that compares an event's own type with an item's would lose matches."""

    def of_own_types(pattern, stream, plan):
        return borrowed(pattern.with_hierarchy(None), stream.with_hierarchy(None), plan)

    stream = check_stream()
    with pytest.raises(
        UnsupportedPatternError, match=r"mine cannot run items of a concept \(X\); .*tree.*declare"
    ):
        cep.evaluate(
            "PATTERN SEQ(X b, C c) WITHIN 5 units",
            stream,
            cep.OrderPlan(["b", "c"]),
            evaluator=registered(of_own_types),
        )
    for function in (of_own_types, borrowed):
        registry.EVALUATORS.remove("mine")
        name = registered(function, constructs=CONSTRUCTS)
        report = check_evaluator(name, patterns=[*CONCEPTS, "sequence"])
        assert report.passed == (function is borrowed)
        wrong = report.table.loc[report.table["status"] != "ok", "pattern"]
        assert set(wrong) == (set() if report.passed else CONCEPTS)


def test_what_the_check_finds() -> None:
    def lossy(pattern, stream, plan):
        return borrowed(pattern, stream, plan).iloc[1:]

    def doubling(pattern, stream, plan):
        found = borrowed(pattern, stream, plan)
        return pd.concat([found, found.iloc[:1]])

    def wrong_on_kleene(pattern, stream, plan):
        found = borrowed(pattern, stream, plan)
        for name in found:
            if found[name].map(type).eq(tuple).any():
                found[name] = found[name].map(lambda one: one[:1])
        return found

    def picky(pattern, stream, plan):
        if len(pattern.branches()) > 1:
            raise UnsupportedPatternError("mine runs no OR")
        return borrowed(pattern, stream, plan)

    for function, failing, message in (
        (lossy, {*PATTERNS} - {"no match", *CONCEPTS}, "1 matches are not found, such as a = "),
        (doubling, {*PATTERNS} - {"no match", *CONCEPTS}, "1 are none, or found twice, such as "),
        (wrong_on_kleene, {"kleene"}, "(positions in check_stream)"),
    ):
        registry.EVALUATORS.remove("mine")
        report = check_evaluator(registered(function))
        wrong = report.table[report.table["status"] == "error"]
        assert not report.passed
        assert set(wrong["pattern"]) == failing
        refused = report.table.set_index("pattern").loc[[*CONCEPTS]]
        assert set(refused["status"]) == {"refused"}
        assert message in wrong["reason"].iloc[0]
        assert wrong["reason"].iloc[0] in report.describe()
        assert message in "".join(ET.fromstring(report._repr_html_()).itertext())
    registry.EVALUATORS.remove("mine")
    report = check_evaluator(registered(picky))
    assert not report.passed and "mine runs no OR (it is declared" in report.describe()
    report = check_evaluator(registered(picky, constructs=set(CONSTRUCTS) - {"OR"}))
    assert report.passed
    refused = "refused  disjunction        the evaluator mine cannot run OR; {} can"
    others = [each.name for each in registry.EVALUATORS.values() if each.name != "mine"]
    assert refused.format(", ".join(others)) in report.describe()
    assert not check_evaluator("mine", patterns=["disjunction"]).passed


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "returned None; it has to return a DataFrame of the columns a, b, c"),
        (pd.DataFrame({"a": [1], "b": [2]}), "lack the column c; there are a, b. A column holds"),
        (pd.DataFrame({"a": [1], "b": ["x"], "c": [2]}), "column b that does not hold posi"),
        (pd.DataFrame({"a": [1], "b": [2], "c": [160]}), "position of c that is not in the str"),
        (pd.DataFrame({"a": [-1], "b": [2], "c": [3]}), "position of a that is not in the str"),
    ],
)
def test_what_is_no_table_of_matches_is_told(returned, message) -> None:
    registered(lambda pattern, stream, plan: returned)
    with pytest.raises(EvaluationError, match="the evaluator mine") as caught:
        cep.evaluate(PATTERN, check_stream(), ORDER, evaluator="mine")
    assert "mine" in str(caught.value) and message in str(caught.value)
    assert not check_evaluator("mine", patterns=["sequence"]).passed


def test_sets_of_something_else_are_told() -> None:
    registered(lambda pattern, stream, plan: pd.DataFrame({"a": [1], "b": [2], "c": [3]}))
    report = check_evaluator("mine", patterns=["kleene"])
    assert "a column b that does not hold tuples of different positions" in report.describe()


def test_an_error_of_an_evaluator_is_named() -> None:
    registered(lambda pattern, stream, plan: 1 / 0)
    with pytest.raises(EvaluationError, match="the evaluator mine failed: ZeroDivisionError"):
        cep.evaluate(PATTERN, check_stream(), ORDER, evaluator="mine")


def test_what_an_evaluator_of_ones_own_cannot_do_is_told() -> None:
    registered(borrowed)
    stream = check_stream()
    with pytest.raises(
        UnsupportedTaskError,
        match=r"mine cannot take a stream in batches; lazy-nfa, tree, .* can; it",
    ):
        cep.Detector(PATTERN, ORDER, evaluator="mine")
    with pytest.raises(UnsupportedTaskError, match="mine cannot measure latency; lazy-nfa, tree"):
        cep.evaluate(PATTERN, stream, ORDER, evaluator="mine", latency=True)
    result = cep.evaluate(PATTERN, stream, ORDER, evaluator="mine")
    with pytest.raises(EvaluationError, match="mine counts nothing at the nodes"):
        _ = result.nodes
    with pytest.raises(EvaluationError, match="output is one of"):
        cep.evaluate(PATTERN, stream, ORDER, evaluator="mine", output="all")
    with pytest.raises(cep.CepbenchError, match="lacks variable"):
        cep.evaluate(PATTERN, stream, cep.OrderPlan(["a", "b"]), evaluator="mine")


def test_an_evaluator_of_orders_refuses_trees() -> None:
    registered(borrowed, kinds=["order"])
    bushy = cep.TreePlan((("a", "b"), ("c", "d")))
    pattern = cep.parse("PATTERN SEQ(A a, B b, C c, D d) WITHIN 30 units")
    with pytest.raises(UnsupportedTaskError, match="mine cannot run tree plans; lazy-nfa, tree"):
        cep.evaluate(pattern, check_stream(), bushy, evaluator="mine")
    assert set(check_evaluator("mine", patterns=["sequence"]).table["generator"]) == {
        "TRIVIAL", "DP-LD",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (lambda: cep.plan_evaluator(""), "needs a name"),
        (
            lambda: cep.plan_evaluator("mine", kinds=["orders"]),
            "each of kinds is one of order, tree",
        ),
        (lambda: cep.plan_evaluator("mine")(3), "is a function or a class, not 3"),
        (lambda: cep.plan_evaluator("tree")(borrowed), "tree is the name of a built-in evaluator"),
    ],
)
def test_a_registration_that_makes_no_sense(register, message) -> None:
    with pytest.raises(EvaluationError, match=message):
        register()


def test_running_a_cell_again_replaces_the_function() -> None:
    def cell(number):
        @cep.plan_evaluator("mine")
        def mine(pattern, stream, plan):
            return number

        return mine

    cell(1)
    second = cell(2)
    assert cep.EVALUATORS["mine"].function is second
    cep.plan_evaluator("mine")(borrowed)  # another function of that name too
    assert cep.EVALUATORS["mine"].function is borrowed


def test_unknown_names_are_told() -> None:
    with pytest.raises(EvaluationError, match="did you mean 'tree'"):
        check_evaluator("treee")
    with pytest.raises(ExperimentError, match=r"each of patterns is one of sequence, .*, not 'x'"):
        check_evaluator("tree", patterns=["x"])
