"""Mistakes with concepts and workloads: each is a named error that says where, what and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench import errors

H = cep.ConceptHierarchy
TRADES = H({"Company": {"Computer": ["INTC", "DELL"], "Finance": ["QQQ"]}, "AMAT": []})
OTHER = H({"Company": ["INTC"]})
QUERIES = {
    "q1": "PATTERN SEQ(Computer a, Finance b, AMAT c) WITHIN 20 seconds",
    "q2": "PATTERN SEQ(Computer a, AMAT c) WITHIN 20 seconds",
    "q3": "PATTERN SEQ(INTC a, Finance b, AMAT c) WITHIN 20 seconds",
}
WORKLOAD = cep.Workload(QUERIES, hierarchy=TRADES)
SCRATCH: dict[str, Any] = dict.fromkeys(QUERIES)
FRAME = pd.DataFrame(
    {"symbol": ["DELL", "QQQ", "AMAT"], "ts": pd.date_range("2026-01-05", periods=3, freq="s")}
)
STREAM = cep.EventStream.from_pandas(FRAME, type="symbol", time="ts", hierarchy=TRADES)
UNDER_OTHER = STREAM.with_hierarchy(OTHER)
Q2 = WORKLOAD.patterns["q2"]
RATES = {query: cep.Statistics(rates={"a": 1.0}) for query in QUERIES}


def of(*texts: str, hierarchy: Any = TRADES) -> cep.Workload:
    queries = {f"q{number}": f"PATTERN {text}" for number, text in enumerate(texts, 1)}
    return cep.Workload(queries, hierarchy=hierarchy)


def plan(workload: cep.Workload = WORKLOAD, **sources: Any) -> cep.WorkloadPlan:
    return cep.WorkloadPlan(workload, sources={**dict.fromkeys(workload.patterns), **sources})


AND = of("AND(Computer a, AMAT c) WITHIN 20 seconds", "SEQ(Computer a, AMAT c) WITHIN 20 seconds")
KL = of(
    "SEQ(Computer a, KL(Finance b), AMAT c) WITHIN 20 seconds",
    "SEQ(Computer a, AMAT c) WITHIN 20 seconds",
)
COUNTED = of("SEQ(Computer a, AMAT c) AGG COUNT WITHIN 20 seconds")

MISTAKES: dict[str, tuple[Callable[[], Any], type[errors.CepbenchError], str]] = {
    "two parents": (lambda: H({"A": ["C"], "B": ["C"]}), errors.HierarchyError,
                    "'C' has two parents, 'A' and 'B'; leave out one"),
    "a circle of concepts": (lambda: H({"A": ["B"], "B": ["A"]}), errors.HierarchyError,
                             "a circle: 'A' below 'B' below 'A'.*leave out"),
    "no hierarchy": (lambda: cep.Workload(QUERIES, hierarchy={"A": ["B"]}), errors.HierarchyError,
                     "write cep.ConceptHierarchy"),
    "unknown name": (lambda: TRADES.parent("INTL"), errors.HierarchyError, "did you mean 'INTC'"),
    "another hierarchy, evaluate": (lambda: cep.evaluate(WORKLOAD, UNDER_OTHER), errors.StreamError,
                                    "another concept hierarchy than the workload"),
    "another hierarchy, Detector": (lambda: cep.Detector(WORKLOAD).push(UNDER_OTHER),
                                    errors.StreamError, "another concept hierarchy"),
    "another hierarchy, statistics": (lambda: cep.measure_statistics(WORKLOAD, UNDER_OTHER),
                                      errors.StreamError, "query 'q1': .*another concept hierarchy"),
    "another hierarchy, compare": (lambda: cep.compare(WORKLOAD, UNDER_OTHER), errors.StreamError,
                                   "another concept hierarchy than the workload"),
    "another hierarchy, stacks": (lambda: WORKLOAD.stacks(UNDER_OTHER), errors.HierarchyError,
                                  "another concept hierarchy"),
    "a concept without a hierarchy": (
        lambda: cep.measure_statistics(of("A a WITHIN 9 seconds", hierarchy=None),
                                       STREAM.with_hierarchy(None), missing_types="error"),
        errors.StreamError, "query 'q1': no event of type 'A'.*a concept needs a hierarchy"),
    "unknown query": (lambda: plan(q4="q1"), errors.PlanError, "'q4' that the workload has not"),
    "unknown source": (lambda: plan(q2="q11"), errors.PlanError, "did you mean 'q1'"),
    "left-out queries": (lambda: cep.WorkloadPlan(WORKLOAD, sources={"q1": None}), errors.PlanError,
                         "leaves out q2, q3; the source of a query .* from scratch is None"),
    "a circle of sources": (lambda: plan(q1="q2", q2="q1"), errors.PlanError,
                            "a circle: q1 from q2 from q1; compute one of them from scratch"),
    "no refinement": (lambda: plan(of("SEQ(A a) WITHIN 5 s", "SEQ(B b) WITHIN 5 s"), q2="q1"),
                      errors.PlanError, "neither refines the other; workload.refinements lists"),
    "no workload": (lambda: cep.WorkloadPlan("q1", sources={}), errors.PlanError,  # type: ignore
                    "write cep.WorkloadPlan"),
    "the plan of another": (lambda: cep.evaluate(WORKLOAD, STREAM, plan(AND)), errors.PlanError,
                            "of another workload"),
    "AND on stacks": (lambda: cep.evaluate(AND, STREAM, evaluator="hierarchical-stacks"),
                      errors.UnsupportedPatternError,
                      "query 'q1': .* hierarchical-stacks cannot run AND; lazy-nfa.* can"),
    "KL on stacks": (lambda: cep.evaluate(KL, STREAM, evaluator="hierarchical-stacks"),
                     errors.UnsupportedPatternError,
                     "query 'q1': .* hierarchical-stacks cannot run KL; lazy-nfa.* can"),
    "the graph of AND": (lambda: AND.graph, errors.UnsupportedPatternError, "query 'q1': .* SEQ"),
    "AGG": (lambda: cep.evaluate(COUNTED, STREAM), errors.EvaluationError,
            "query 'q1': .* cep.aggregate"),
    "statistics of some": (lambda: cep.plan_workload(WORKLOAD, {"q1": RATES["q1"]}),
                           errors.StatisticsError, "query 'q1'.*'b'|no statistics of query 'q2'"),
    "statistics of some items": (lambda: cep.plan_workload(WORKLOAD, RATES), errors.StatisticsError,
                                 "query 'q1': there is no rate .* variable 'b', only for a"),
    "statistics of a pattern": (lambda: cep.plan_workload(WORKLOAD, RATES["q1"]),  # type: ignore
                                errors.StatisticsError, "a mapping of its queries"),
    "a workload for a pattern": (lambda: cep.to_sql(WORKLOAD), errors.PatternError,  # type: ignore
                                 "not a Workload; give one of its queries"),
    "an unknown result": (lambda: cep.evaluate(WORKLOAD, STREAM)["q7"], errors.EvaluationError,
                          "no query 'q7'; it has q1, q2, q3"),
    "a type not below": (lambda: cep.concept_drill_down(Q2, TRADES, {"a": "QQQ"}),
                         errors.PatternError, "'QQQ' is not below it; below it are INTC, DELL"),
    "a type above": (lambda: cep.concept_drill_down(Q2, TRADES, {"a": "Company"}),
                     errors.PatternError, "'Company' is not below it"),
    "a type below a leaf": (lambda: cep.concept_drill_down(Q2, TRADES, {"c": "QQQ"}),
                            errors.PatternError, "below it is none"),
    "a negated type below": (
        lambda: cep.concept_drill_down(
            cep.parse("PATTERN SEQ(Computer a, NOT(Finance n), AMAT c) WITHIN 9 s"), TRADES,
            {"n": "QQQ"},
        ),
        errors.PatternError, "'QQQ' is not above it; above it are Company"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    make, kind, message = MISTAKES[mistake]
    with pytest.raises(kind, match=message) as caught:
        make()
    assert len(str(caught.value)) < 400
