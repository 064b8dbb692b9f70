"""Random workloads with parts in common, and plans for them."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
from hypothesis import strategies as st

import cepbench as cep
from tests.engines.detection.constructs import affordable
from tests.engines.detection.strategies import event_frames, stream_of


class WorkloadCase(NamedTuple):
    """A plan of a workload, and events."""

    plan: cep.WorkloadPlan
    events: pd.DataFrame

    @property
    def workload(self) -> cep.Workload:
        return self.plan.workload

    @property
    def stream(self) -> cep.EventStream:
        return stream_of(self.events)


#: An item by the name of its variable, and a condition.
_ITEMS = [
    ("A {0}", ""), ("B {0}", ""), ("C {0}", ""), ("A {0}", "{0}.x > 0"), ("B {0}", "{0}.y < 2"),
    ("KL(B {0})", ""), ("KL(A {0})", "{0}[i].x > 0"), ("KL(C {0})", "{0}[1].y > 0"), ("NOT(C {0})", ""),
    ("NOT(D {0})", ""), ("NOT(D {0})", "{0}.x > 0"),
]  # fmt: skip
_VALUES = ["COUNT({0})", "COUNT({0}.s)", "SUM({0}.y)", "AVG({0}.x)", "MIN({0}.y)", "MAX({0}.x)"]


@st.composite
def workload_cases(draw: st.DrawFn) -> WorkloadCase:
    """Two or three queries, with and without partitions, cut anywhere."""
    items = st.sampled_from(_ITEMS)
    common = draw(st.lists(items, min_size=1, max_size=3))
    order = draw(st.sampled_from(["", "", "ORDER BY arrival"]))
    queries = {
        f"Q{number}": draw(_queries(common, items, order))
        for number in range(draw(st.integers(2, 3)))
    }
    workload = cep.Workload(queries)
    cuts = {
        name: sorted(draw(st.sets(st.integers(1, len(pattern.positive) - 1), max_size=3)))
        for name, pattern in workload.patterns.items()
    }
    events = draw(event_frames("ABCD", most=16))
    for pattern in workload.patterns.values():
        events = affordable(pattern, events)
    return WorkloadCase(cep.WorkloadPlan(workload, cuts, draw(st.booleans())), events)


@st.composite
def _queries(
    draw: st.DrawFn,
    common: list[tuple[str, str]],
    items: st.SearchStrategy[tuple[str, str]],
    order: str,
) -> str:
    """The text of a query with the common items somewhere."""
    before = draw(st.lists(items, max_size=1))
    behind = draw(st.lists(items, max_size=2))
    # NOT is neither first nor last, and two items at least can be cut.
    listed = [("A {0}", ""), *before, *common, *behind, ("C {0}", "")]
    if draw(st.booleans()) and not listed[1][0].startswith("NOT"):
        del listed[0]
    positive = [f"v{k}" for k, (item, _) in enumerate(listed) if "NOT" not in item]
    if len(positive) < 2:
        listed = [("B {0}", ""), *listed]
        positive = [f"v{k}" for k, (item, _) in enumerate(listed) if "NOT" not in item]
    structure = ", ".join(item.format(f"v{k}") for k, (item, _) in enumerate(listed))
    conditions = [its.format(f"v{k}") for k, (_, its) in enumerate(listed) if its]
    grouping = draw(st.sampled_from(["", "", "", "GROUP BY s", "[s]"]))
    if grouping.startswith("["):
        conditions.append(grouping)
        grouping = ""
    asked = ["COUNT"] * draw(st.integers(0, 1)) + [
        value.format(draw(st.sampled_from(positive)))
        for value in draw(st.lists(st.sampled_from(_VALUES), min_size=1, max_size=2, unique=True))
    ]
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    window = draw(st.sampled_from(["9", "13", "25", "< 10"]))
    values = ", ".join(dict.fromkeys(asked))
    within = f"WITHIN {window} units"
    return f"PATTERN SEQ({structure}) {where} {order} {grouping} AGG {values} {within}"
