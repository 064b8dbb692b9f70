"""Plans as given: the work of each operator beside a twin that evaluates the paper's algorithms by hand."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import TreePlan
from cepbench.planning.plans.tree import leaves, post_order
from tests.engines.detection.strategies import stream_of
from tests.naive.matcher import naive_matches

pytestmark = pytest.mark.kernel

WORK = ["inputs_tried", "conditions_tested", "records_made"]
WINDOW = 6
#: Two variables → whether their events satisfy the condition between them.
CONDITIONS = {("a", "b"): "<", ("b", "c"): ">", ("a", "d"): "<", ("b", "n"): ">", ("c", "n"): "<"}
Event = tuple[int, float]
Record = dict[str, Event]


def holds(pair: tuple[str, str], record: Record) -> bool:
    left, right = (record[name][1] for name in pair)
    return left < right if CONDITIONS[pair] == "<" else left > right


class Twin:
    """A plan of a SEQ of plain variables, by records in lists: Algorithms 1 and 2 and a filter.

    ``n``, which stands between ``b`` and ``c``, is negated by NSEQ beside one of these, by a filter on
    ``top`` of their lowest node, or not at all.
    """

    def __init__(self, tree: Any, conditions: list[tuple[str, str]], negation: str):
        self.tree, self.conditions, self.negation = tree, conditions, negation
        self.leaves: dict[str, list[tuple[Event, bool]]] = {}
        self.last = sorted(self.variables(tree))[-1]
        self.old: dict[Any, list[Record]] = {}
        self.work: Counter[tuple[str, str]] = Counter()

    def variables(self, tree: Any) -> list[str]:
        return [tree] if isinstance(tree, str) else [x for t in tree for x in self.variables(t)]

    def count(self, node: str, tried: int = 0, tested: int = 0, made: int = 0) -> None:
        self.work.update(
            dict(zip(((node, name) for name in WORK), (tried, tested, made), strict=True))
        )

    def round(self, events: list[tuple[str, Event]]) -> None:
        for name, event in events:
            self.leaves.setdefault(name, []).append((event, True))
        finals = [event[0] for event, is_new in self.leaves.get(self.last, ()) if is_new]
        if not finals:
            return
        self.eat = min(finals) - WINDOW
        if self.negation in ("b", "c"):
            for event, is_new in self.leaves.get(self.negation, ()):
                if is_new and event[0] >= self.eat:
                    self.negate(event)
        self.evaluate(self.tree)
        for name, its in self.leaves.items():
            self.leaves[name] = [(event, False) for event, _ in its]

    def negate(self, event: Event) -> None:
        tied = [pair for pair in self.conditions if "n" in pair]
        tested, is_before = 0, self.negation == "c"
        negated = [n for n, _ in self.leaves.get("n", ())]  # those of one time as they came
        for n in reversed(negated) if is_before else negated:
            if n[0] < self.eat or not (n[0] < event[0] if is_before else n[0] > event[0]):
                continue
            tested += len(tied)
            if all(holds(pair, {self.negation: event, "n": n}) for pair in tied):
                break
        self.count("n", 1, tested, 1)

    def is_negated(self, record: Record) -> tuple[bool, int]:
        """Also how many conditions were tested, from the latest event on."""
        tied, tested = [pair for pair in self.conditions if "n" in pair], 0
        for n, _ in reversed(self.leaves.get("n", ())):
            if record["b"][0] < n[0] < record["c"][0]:
                tested += len(tied)
                if all(holds(pair, {**record, "n": n}) for pair in tied):
                    return True, tested
        return False, tested

    def evaluate(self, tree: Any) -> tuple[list[Record], list[Record]]:
        """The old and the new records of a node."""
        if isinstance(tree, str):
            its = [(e, is_new) for e, is_new in self.leaves.get(tree, ()) if e[0] >= self.eat]
            return [{tree: e} for e, new in its if not new], [{tree: e} for e, new in its if new]
        (left, new_left), (right, new_right) = map(self.evaluate, tree)
        names = sorted(self.variables(tree))
        own = [
            pair for pair in self.conditions
            if {*pair} <= {*names} and not any({*pair} <= {*self.variables(t)} for t in tree)
        ]  # fmt: skip
        made = []
        for one, other in (*product(left, new_right), *product(new_left, right + new_right)):
            ends = max(e[0] for e in one.values()), max(e[0] for e in other.values())
            starts = min(e[0] for e in one.values()), min(e[0] for e in other.values())
            if ends[0] >= starts[1] or ends[1] - starts[0] > WINDOW:
                continue
            record = {**one, **other}
            meets = self.negation != "" and {"b", "c"} <= {*names}
            meets = meets and not any({"b", "c"} <= {*self.variables(t)} for t in tree)
            if meets and self.negation != "top" and self.is_negated(record)[0]:
                continue  # out of the bound that NSEQ sets
            passes = all(holds(pair, record) for pair in own)
            self.count(", ".join(names), 1, len(own), passes)
            if passes and meets and self.negation == "top":
                negated, tested = self.is_negated(record)
                self.count("n", 1, tested, not negated)
                passes = not negated
            if passes:
                made.append(record)
        old = [r for r in self.old.get(tree, ()) if min(e[0] for e in r.values()) >= self.eat]
        self.old[tree] = old + made
        return old, made


TREES = (
    ((("a", "b"), "c"), "d"), ("a", ("b", ("c", "d"))), (("a", "b"), ("c", "d")),
    ("a", (("b", "c"), "d")),
)  # fmt: skip


@pytest.mark.parametrize("tree", TREES, ids=["left-deep", "right-deep", "bushy", "inner"])
@given(data=st.data())
def test_the_work_of_each_operator_is_that_of_the_algorithms(
    tree: Any, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    negation = data.draw(st.sampled_from(["", "b", "c", "top"]))
    ties = {"b": [("b", "n")], "c": [("c", "n")], "top": [("b", "n"), ("c", "n")]}.get(negation, [])
    own = data.draw(
        st.sets(st.sampled_from([("a", "b"), ("b", "c"), ("a", "d"), *ties])).map(sorted)
    )
    size = data.draw(st.sampled_from([1, 3, 10, 100]))
    output = data.draw(st.sampled_from(["count", "matches"]))
    events = pd.DataFrame(
        {
            "type": rng.choice(list("ABCDN"), count),
            "time": np.cumsum(rng.integers(0, 3, count)),
            "x": rng.integers(0, 4, count).astype(float),
        }
    )
    structure = "SEQ(A a, B b, NOT(N n), C c, D d)" if negation else "SEQ(A a, B b, C c, D d)"
    where = " AND ".join(f"{x}.x {CONDITIONS[x, y]} {y}.x" for x, y in own)
    text = f"PATTERN {structure} {f'WHERE {where}' if where else ''} WITHIN {WINDOW} units"
    twin = Twin(tree, own, negation)
    rows = list(
        zip(events["type"].str.lower(), zip(events["time"], events["x"], strict=True), strict=True)
    )
    for begin in range(0, count, size):
        twin.round(rows[begin : begin + size])
    lowest = next(node for node in post_order(tree) if {"b", "c"} <= {*leaves(node)})
    below = leaves(lowest) if negation == "top" else negation
    placed = {"n": tuple(below)} if negation else {}
    detector = Detector(
        parse(text), TreePlan(tree, placements=placed), evaluator="zstream", output=output,
        options={"as_given": True, "batch_size": size},
    )  # fmt: skip
    detector.push(stream_of(events))
    detector.finish()
    nodes = detector.node_metrics().set_index("variables")[WORK]
    found = {
        (node, name): value
        for node, its in nodes.iterrows()
        for name, value in its.items()
        if value
    }
    assert found == {key: value for key, value in twin.work.items() if value}
    metrics = detector.metrics()
    assert metrics.matches == len(naive_matches(parse(text), events))
    for name in WORK:
        assert metrics.work[name] == nodes[name].sum()


def test_query_7_pays_for_its_pairs() -> None:
    """Table 2: NEG makes each pair and is asked for it; NSEQ makes a record of each final event."""
    events = pd.DataFrame({"type": list("AAANAC" * 20), "time": range(120)})
    made = {}
    for name, below in (("NSEQ", ("c",)), ("NEG", ("a", "c"))):
        result = evaluate(
            "PATTERN SEQ(A a, NOT(N n), C c) WITHIN 5 units", stream_of(events),
            TreePlan(("a", "c"), placements={"n": below}), evaluator="zstream", output="count",
            options={"as_given": True},
        )  # fmt: skip
        made[name] = result.nodes.set_index("variables")["records_made"].to_dict()
    assert made["NSEQ"] == {"a": 0, "c": 0, "n": 20, "a, c": 20}
    assert made["NEG"] == {"a": 0, "c": 0, "n": 20, "a, c": 80}


def test_groups_are_refused_by_name() -> None:
    pattern = "PATTERN SEQ(A a, GROUP(B b, +), C c) WITHIN 9 units"
    events = pd.DataFrame({"type": list("ABC"), "time": range(3)})
    with pytest.raises(
        UnsupportedPatternError, match="as_given=True evaluates SEQ, AND, OR and NOT"
    ):
        evaluate(
            pattern, stream_of(events), TreePlan(("a", "c")), evaluator="zstream",
            options={"as_given": True},
        )  # fmt: skip
