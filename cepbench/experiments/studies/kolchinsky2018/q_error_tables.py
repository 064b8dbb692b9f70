"""Tables of q-errors by model and node, their causes, and the regrets of plans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cepbench.experiments.studies.kolchinsky2018.node_counts import restricted
from cepbench.experiments.studies.kolchinsky2018.q_errors import MODELS
from cepbench.patterns.parse import parse
from cepbench.planning.costs.q_error import FEWEST_MATCHES

#: An event in at least this share of a node's matches decides alone how many there are.
HEAVY = 0.5

#: A factor that explains something.
_MUCH = 1.25

#: What conditions a node has, from what the models can say least wrong to most.
KINDS = ("no condition", "one condition", "several, apart", "several, sharing a variable")


def distinct_nodes(table: pd.DataFrame, fewest: int = FEWEST_MATCHES) -> pd.DataFrame:
    """One row a pattern, set of variables and model, of those with so many matches in the stream or more.

    Nodes over the same variables have the same numbers in every plan; ``nodes`` says how many of
    the pattern's plans have them, ``kind`` what conditions there are, one of :data:`KINDS`. The
    table is that of :func:`cepbench.experiments.studies.kolchinsky2018.q_errors.plan_nodes`.
    """
    key = ["pattern_id", "branch", "variables", "model"]
    kept = table[(table["matches"] >= fewest) & table["estimated"].notna()]
    times = kept.groupby(key).size().rename("nodes").reset_index()
    found = kept.drop_duplicates(key).merge(times, on=key, how="left").reset_index(drop=True)
    several = np.where(found["linked"].astype(bool), KINDS[3], KINDS[2])
    few = np.where(found["conditions"] == 0, KINDS[0], KINDS[1])
    return found.assign(kind=np.where(found["conditions"] > 1, several, few))


def q_error_summary(nodes: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Median, 95th percentile and largest q-error, and the median of estimated / measured, by columns.

    Of :func:`distinct_nodes`, or of ``plan_nodes`` to count a node in each plan.
    """
    groups = nodes.groupby(list(by), sort=False)
    found = groups["q_error"].agg(
        nodes="size", median="median", p95=lambda q: q.quantile(0.95), largest="max"
    )
    return found.assign(median_ratio=groups["ratio"].median()).reset_index()


def worst_nodes(nodes: pd.DataFrame, number: int = 10, model: str = "exact") -> pd.DataFrame:
    """The nodes of :func:`distinct_nodes` that a model is furthest off at, one a pattern, and why.

    ``pattern_id``, ``operator``, ``variables``, ``conditions`` (those among them), an estimate a
    model, ``measured``, ``matches``, ``heaviest``, ``q_error`` (of the model), ``joint_q_error``
    and ``why``.
    """
    key = ["pattern_id", "branch", "variables"]
    wide = nodes.pivot(index=key, columns="model", values=["estimated", "q_error"])
    chosen = nodes[nodes["model"] == model].sort_values("q_error", ascending=False)
    rows = []
    for _, node in chosen.drop_duplicates("pattern_id").head(number).iterrows():
        its = wide.loc[tuple(node[key])]
        branch = parse(node["pattern"]).branches()[node["branch"]]
        part = restricted(branch, node["variables"].split(", "))
        rows.append(
            {
                "pattern_id": node["pattern_id"],
                "operator": str(part.operator),
                "variables": node["variables"],
                "conditions": " AND ".join(map(str, part.conditions)),
                **{name: its["estimated", name] for name in MODELS},
                **{name: node[name] for name in ("measured", "matches", "heaviest", "q_error")},
                "joint_q_error": its["q_error", "joint"],
                "why": _why(node, its["estimated"]),
            }
        )
    return pd.DataFrame(rows)


def _why(node: pd.Series, estimated: pd.Series) -> str:
    """What explains a node's error, from what was estimated and measured there."""
    found = []
    order = estimated["adjacent"] / estimated["exact"]
    if node["model"] == "adjacent" and order > _MUCH:
        found.append(f"order in time is counted for neighbours only, {order:.1f} times 1/k!")
    together = estimated["joint"] / estimated["exact"]
    if max(together, 1 / together) > _MUCH:
        often = f"{together:.1f} times more" if together > 1 else f"{1 / together:.1f} times less"
        found.append(
            f"conditions that share a variable hold together {often} often than independent ones"
        )
    if node["heaviest"] >= HEAVY:
        found.append(f"one event is in {node['heaviest']:.0%} of the matches")
    return "; ".join(found) or "nothing that is looked for here"


def plan_regrets(table: pd.DataFrame) -> pd.DataFrame:
    """Regret of trusting a model: partial matches of its cheapest plan over the least of any plan.

    Of ``plan_nodes``, one row a pattern, kind of plan and model: ``pattern_set``, ``size``,
    ``pattern_id``, ``plan_kind``, ``model``, ``plan`` (that of the least estimated sum over its
    nodes), and ``regret``: the measured sum over its nodes, divided by the least one of any plan
    that a generator made. A pattern is left out for all models if one of them chose a plan of which
    a node was not measured.
    """
    key = ["pattern_set", "size", "pattern_id", "plan_kind"]
    parts = ["model", "plan", "branch", "node"]
    known = table.drop_duplicates([*key, *parts])
    plans = known.groupby([*key, "model", "plan"], sort=False)
    # A node without a number is not one of 0: its plan has no sum.
    sums = plans[["estimated", "measured"]].sum().where(plans[["estimated", "measured"]].count().eq(
        plans.size(), axis="index"))  # fmt: skip
    rows = []
    for place, its in sums.reset_index().groupby([*key, "model"], sort=False):
        usable = its.dropna(subset=["estimated"])
        if len(usable):
            chosen = usable.loc[usable["estimated"].idxmin()]
            regret = chosen["measured"] / usable["measured"].min()
            rows.append((*place, chosen["plan"], regret))
    found = pd.DataFrame(rows, columns=[*key, "model", "plan", "regret"])
    whole = found["regret"].notna().groupby([found[name] for name in key]).transform("all")
    return found[whole].reset_index(drop=True)
