"""When the plan matters: gains of plan generators against expected partial matches per event.

The sweep ``kolchinsky2018/map`` draws patterns in classes of rates and selectivities, so that a
class is known before anything runs. Where a pattern lies on the map, its expected partial matches
per event, follows from statistics alone, too.

``python -m cepbench.experiments.studies.kolchinsky2018.gain_map FOLDER`` prints the classes of a finished sweep
as :mod:`cepbench.planning.planners.stakes` reads them.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.averages import GEOMETRIC_MEAN, with_interval
from cepbench.experiments.analysis.settings import ENGINES
from cepbench.experiments.analysis.summary import log_ratios, per_pattern
from cepbench.experiments.analysis.time_model import TimeModel, fastest_runs
from cepbench.experiments.studies.kolchinsky2018.planning import read_measured
from cepbench.experiments.sweeps.cells import OK
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.store import read_results
from cepbench.patterns.parse import parse
from cepbench.planning.costs.creation import created_per_event
from cepbench.planning.planners.generate import plan
from cepbench.planning.statistics.model import Statistics

#: Generator and baseline of the comparisons on the map.
COMPARISONS = (("DP-LD", "EFREQ"), ("DP-LD", "TRIVIAL"), ("DP-B", "ZSTREAM"))

#: The comparison of the best with the worst plan that ran in an engine, orders and trees together.
EXTREMES = "best / worst plan"

#: The comparison that the rule for users is made of: that of the best with the written order.
OF_RULE = "DP-LD / TRIVIAL"

#: Metric → whether more of it is better. A plan without partial matches counts as if it had one.
GAINS = {"events_per_second": True, "peak_bytes": False, "partial_matches_created": False}

#: Bounds between the classes of expected partial matches per event.
BOUNDS = (1.0, 10.0, 100.0)

#: Evaluators of one engine, for orders and for trees.
EVALUATORS: Mapping[str, Sequence[str]] = {
    engine: [name for name, its in ENGINES.items() if its == engine] for engine in ENGINES.values()
}

_PATTERN = ["regime", "pattern_set", "size", "pattern_id"]


def regime_classes(config: SweepConfig) -> pd.DataFrame:
    """The classes of rates and selectivities that the regimes of a sweep stand for.

    ``regime``, ``rates`` (``4–12``: expected events of an identifier per window) and
    ``selectivity`` (``0.1``: the middle of the bounds that predicates are drawn for).
    """
    rows = []
    for name, part in config.workloads.items():
        if part.selectivities is None or part.most_rate is None:
            raise ExperimentError(
                f"regime {name!r} has no most_rate or no selectivities; the map needs both"
            )
        middle = math.sqrt(math.prod(part.selectivities))
        rates = f"{part.least_rate or 0:g}–{part.most_rate:g}"
        rows.append({"regime": name, "rates": rates, "selectivity": f"{float(f'{middle:.1g}'):g}"})
    return pd.DataFrame(rows)


def expected_created(results: pd.DataFrame, folder: str | Path) -> pd.DataFrame:
    """Partial matches and matches per event that every plan of a finished sweep is expected to create.

    The folder has the statistics that the plans were made from. Columns ``pattern_id``,
    ``generator``, ``expected`` and ``expected_matches``.
    """
    statistics = read_measured(folder, "statistics")
    columns = ["pattern_id", "generator", "pattern", "seed", "time_selectivity"]
    planned = results[results["plan"].notna()][columns]
    rows = []
    for row in planned.drop_duplicates(columns[:2]).to_dict("records"):
        pattern = parse(row["pattern"])
        its = Statistics.from_dict(statistics[row["pattern_id"]])
        time_selectivity = row["time_selectivity"]
        made = plan(
            pattern, its, row["generator"], seed=int(row["seed"]), time_selectivity=time_selectivity
        )
        found = created_per_event(pattern, made, its, time_selectivity=time_selectivity)
        rows.append((row["pattern_id"], row["generator"], found.partial_matches, found.matches))
    names = ["pattern_id", "generator", "expected", "expected_matches"]
    return pd.DataFrame(rows, columns=names)


def gain_rows(results: pd.DataFrame, expected: pd.DataFrame, classes: pd.DataFrame) -> pd.DataFrame:
    """One row a pattern, engine, comparison and metric: its place on the map and its gain.

    Of the results of a finished sweep with regimes, with the tables of :func:`expected_created` and
    :func:`regime_classes`: ``regime``, ``rates``, ``selectivity``, ``pattern_set``, ``size``,
    ``pattern_id``; ``engine``, ``comparison``, ``metric``; ``expected`` and ``measured``, partial
    matches per event in the plan compared with; ``gain``, how many times better the other plan is
    (missing where a run failed or both ended at the limit); ``bound``, whether the gain is a bound,
    since one of the runs ended at the limit of partial matches.
    """
    counted = results.assign(
        partial_matches_created=results["partial_matches_created"].clip(lower=1)
    )
    per_event = "partial_matches_per_event"
    created = per_pattern(counted, [per_event], ["generator", "evaluator"], bounds=True)
    key = ["pattern_id", "generator", "evaluator"]
    created = created[[*key, per_event]].rename(columns={per_event: "measured"})
    tables = [
        pairs.assign(engine=engine, comparison=comparison, metric=metric)
        for engine, evaluators in EVALUATORS.items()
        for comparison, metric, pairs in _pairs(counted, evaluators)
    ]
    if not tables:
        raise ExperimentError(
            f"the sweep has none of the comparisons of the map: {', '.join(map(str, COMPARISONS))}"
        )
    rows = pd.concat(tables, ignore_index=True)
    rows = rows.merge(expected, on=["pattern_id", "generator"], how="left")
    rows = rows.merge(created, on=key, how="left")
    rows = rows.merge(classes, on="regime", how="left")
    return rows[
        ["regime", "rates", "selectivity", "pattern_set", "size", "pattern_id", "engine",
         "comparison", "metric", "expected", "measured", "gain", "bound"]
    ]  # fmt: skip


def _pairs(
    results: pd.DataFrame, evaluators: Sequence[str]
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Comparison, metric, and a row a pattern with its gain and the plan compared with."""
    runs = results[["generator", "evaluator"]].drop_duplicates()
    # Evaluators of trees run orders, too; those of orders come first.
    ranked = pd.concat([runs[runs["evaluator"] == name] for name in evaluators])
    ran_in = ranked.drop_duplicates("generator").set_index("generator")["evaluator"]
    own = results[results["evaluator"].isin(evaluators)]
    for metric, more in GAINS.items():
        sign = 1.0 if more else -1.0

        def between(generator: str, baseline: str, metric: str = metric) -> pd.DataFrame:
            return log_ratios(
                own, metric, generator, baseline, ["regime"],
                run={"evaluator": ran_in[generator]}, baseline_run={"evaluator": ran_in[baseline]},
            )  # fmt: skip

        for generator, baseline in COMPARISONS:
            if generator in ran_in and baseline in ran_in:
                pairs = between(generator, baseline)
                gain = np.exp(sign * pairs["log_ratio"])
                found = pairs.assign(gain=gain, generator=baseline, evaluator=ran_in[baseline])
                yield f"{generator} / {baseline}", metric, found
        if len(ran_in) > 1:
            first = ran_in.index[0]
            gains = pd.concat(
                [
                    between(name, first).assign(generator=name, evaluator=ran_in[name])
                    for name in ran_in.index
                ],
                ignore_index=True,
            )
            yield EXTREMES, metric, _extremes(gains, sign)


def _extremes(pairs: pd.DataFrame, sign: float) -> pd.DataFrame:
    """The gain of the best over the worst of all plans of each pattern."""
    usable = pairs[pairs["log_ratio"].notna()]
    usable = usable.assign(better=sign * usable["log_ratio"]).sort_values("better", kind="stable")
    of_pattern = usable.groupby(_PATTERN, sort=False)
    worst, best = of_pattern.head(1).set_index(_PATTERN), of_pattern.tail(1).set_index(_PATTERN)
    gain = np.exp(best["better"].reindex(worst.index) - worst["better"])
    bound = worst["bound"] | best["bound"].reindex(worst.index)
    return worst.assign(gain=gain, bound=bound).reset_index()


def class_labels() -> list[str]:
    """Texts of the classes of expected partial matches per event."""
    inner = [f"{low:g} to {high:g}" for low, high in pairwise(BOUNDS)]
    return [f"below {BOUNDS[0]:g}", *inner, f"{BOUNDS[-1]:g} and more"]


def gains_by_class(rows: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Geometric mean of the gains in each class of expected partial matches per event.

    Of :func:`gain_rows`: ``engine``, ``comparison``, ``metric``, ``class``, ``expected`` (geometric
    mean), ``value``, ``low``, ``high`` (95 % bootstrap over patterns), ``p10`` and ``p90`` of the
    patterns, ``patterns``, ``bounds`` (those whose gain is a bound) and ``left_out`` (without a
    gain).
    """
    labels = class_labels()
    columns = ["engine", "metric", "comparison"]
    # Groups are in the order of their values in the rows.
    placed = rows.assign(
        rank=np.searchsorted(BOUNDS, rows["expected"], side="right"),
        **{name: pd.Categorical(rows[name], rows[name].unique()) for name in columns},
    )
    found: list[dict[str, Any]] = []
    groups: Any = placed.groupby([*columns, "rank"], observed=True)
    for (engine, metric, comparison, rank), part in groups:
        usable = part[part["gain"].notna()]
        if usable.empty:
            continue
        gains = usable["gain"].to_numpy(float)
        logs = with_interval(gains, GEOMETRIC_MEAN, seed, 2000, comparison, metric, rank)
        found.append(
            {
                "engine": engine, "comparison": comparison, "metric": metric, "class": labels[rank],
                "expected": float(np.exp(np.log(usable["expected"].clip(lower=1e-9)).mean())),
                **logs,
                "p10": float(np.quantile(gains, 0.1)), "p90": float(np.quantile(gains, 0.9)),
                "patterns": len(usable), "bounds": int(usable["bound"].sum()),
                "left_out": len(part) - len(usable),
            }
        )  # fmt: skip
    return pd.DataFrame(found)


def gains_by_regime(rows: pd.DataFrame) -> pd.DataFrame:
    """Geometric mean of the gains in throughput of each class of rates and selectivities, as a table.

    Rows by ``engine``, ``comparison``, ``pattern_set`` and ``rates``; a column for each
    selectivity.
    """
    own = rows[(rows["metric"] == "events_per_second") & rows["gain"].notna()]
    logs = own.assign(gain=np.log(own["gain"].astype(float)))
    means = logs.pivot_table(
        index=["engine", "comparison", "pattern_set", "rates"], columns="selectivity",
        values="gain", sort=False,
    )  # fmt: skip
    return means.apply(np.exp)[own["selectivity"].unique()]


def predicted_gains(
    results: pd.DataFrame, rows: pd.DataFrame, models: Sequence[TimeModel]
) -> pd.DataFrame:
    """The gains in throughput that models of the engines' time, one for each, predict from the counts of runs.

    The rows of :func:`gain_rows` that compare two generators by ``events_per_second`` and whose
    runs both ended well, with ``predicted``.
    """
    tables = []
    for model in models:
        own = results[(results["evaluator"] == model.evaluator) & (results["status"] == OK)]
        first = own.drop_duplicates(["pattern_id", "generator"])
        seconds = first.assign(predicted=model.seconds(first)).pivot(
            index="pattern_id", columns="generator", values="predicted"
        )
        engine = ENGINES[model.evaluator]
        for generator, baseline in COMPARISONS:
            if not {generator, baseline} <= set(seconds.columns):
                continue
            part = rows[
                (rows["engine"] == engine)
                & (rows["comparison"] == f"{generator} / {baseline}")
                & (rows["metric"] == "events_per_second")
                & ~rows["bound"]
            ]
            its = seconds.reindex(part["pattern_id"])
            ratio = (its[baseline] / its[generator]).to_numpy(float)
            tables.append(part.assign(predicted=ratio)[np.isfinite(ratio)])
    return pd.concat(tables, ignore_index=True)


def predicted_times(results: pd.DataFrame, models: Sequence[TimeModel]) -> pd.DataFrame:
    """Measured and predicted seconds of the runs that the models were fitted to.

    ``evaluator``, ``regime``, ``pattern_id``, ``plan``, ``seconds``, ``predicted`` and
    ``residual``, predicted / measured − 1.
    """
    tables = []
    for model in models:
        runs = fastest_runs(results[results["evaluator"] == model.evaluator])
        found = runs[["evaluator", "regime", "pattern_id", "plan", "seconds"]].assign(
            predicted=model.seconds(runs)
        )
        tables.append(found.assign(residual=found["predicted"] / found["seconds"] - 1.0))
    return pd.concat(tables, ignore_index=True)


def stakes_file(by_class: pd.DataFrame, provenance: Mapping[str, object]) -> str:
    """The text of ``planning/planners/stakes.toml``: what the best order gained in each class.

    The classes are those of :func:`gains_by_class`, the provenance what they were measured with.
    """
    chosen = by_class[
        (by_class["comparison"] == OF_RULE)
        & (by_class["metric"] == "events_per_second")
        & (by_class["engine"] == next(iter(EVALUATORS)))
    ].set_index("class")
    lines = [
        f"# Gains in throughput of {OF_RULE} by expected partial matches per event in the written",
        "# order, measured by the sweep kolchinsky2018/map. Made by",
        "#   python -m cepbench.experiments.studies.kolchinsky2018.gain_map FOLDER",
        "# with the folder of the sweep's results.",
        *(f"{key} = {json.dumps(str(value))}" for key, value in provenance.items()),
    ]
    for label, low, high in zip(class_labels(), (0.0, *BOUNDS), (*BOUNDS, math.inf), strict=True):
        if label in chosen.index:
            row = chosen.loc[label]
            lines += [
                "",
                "[[classes]]",
                f"least = {low}",
                f"below = {high}",
                *(f"{name} = {row[key]:.2f}" for name, key in
                  (("gain", "value"), ("low", "p10"), ("high", "p90"))),
                f"patterns = {row['patterns']}",
            ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _stakes_of_folder(folder: str | Path) -> str:
    results = read_results(folder)
    configuration = json.loads(results["configuration"].iloc[0])
    known = {each.name for each in fields(SweepConfig)}
    config = SweepConfig(**{key: its for key, its in configuration.items() if key in known})
    rows = gain_rows(results, expected_created(results, folder), regime_classes(config))
    first = results.iloc[0]
    provenance = {name: first[name] for name in ("cepbench_version", "cpu")} | {
        "patterns": results["pattern_id"].nunique(),
        "runs": len(results),
        "measured": first["started_at"].date(),
    }
    return stakes_file(gains_by_class(rows), provenance)


if __name__ == "__main__":
    sys.stdout.write(_stakes_of_folder(sys.argv[1]))
