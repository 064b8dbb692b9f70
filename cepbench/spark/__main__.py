"""``python -m cepbench.spark``: the sweeps behind the paper's figures, from data to results.

Generates the stream, estimates from a sample how long the sweeps will take, and runs them. What is
killed goes on where it was when the same command is given again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from cepbench.errors import CepbenchError, ExperimentError
from cepbench.experiments.cells import OK
from cepbench.experiments.configuration import SweepConfig
from cepbench.experiments.estimate import describe_estimate
from cepbench.experiments.profiles import (
    EXPERIMENTS,
    PROFILES,
    data_folder,
    restrictions,
    stream_parameters,
    sweep_config,
    sweep_folder,
)
from cepbench.spark.estimate import estimate_sweep
from cepbench.spark.generate import generate_nasdaq_style
from cepbench.spark.session import spark_session
from cepbench.spark.sweep import run_sweep
from cepbench.streams.nasdaq_style import NasdaqStyle

#: Bytes on the disk and microseconds of one core for an event of the generated stream, as measured.
BYTES_PER_EVENT = 4.2
MICROSECONDS_PER_EVENT = 3.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate, estimate, run; 0 if all results are there, 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m cepbench.spark", description=__doc__)
    parser.add_argument("--profile", choices=PROFILES, default="full")
    parser.add_argument(
        "--experiment",
        choices=list(EXPERIMENTS),
        action="append",
        help="one of the sweeps; may be repeated; all by default",
    )
    parser.add_argument("--master", help="Spark master; by default $CEPBENCH_SPARK_MASTER or local")
    parser.add_argument("--data", default="reports/data", help="folder of stream and results")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--identifiers", type=int, default=0, help="by default as the profile says")
    parser.add_argument("--days", type=int, default=0, help="by default as the profile says")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="another value of a field of SweepConfig, in JSON; may be repeated",
    )
    parser.add_argument(
        "--estimate-only", action="store_true", help="only say how long the sweeps would take"
    )
    given = parser.parse_args(arguments)
    try:
        _run(given)
    except CepbenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _run(given: argparse.Namespace) -> None:
    changes = dict(map(_changed, given.set))
    stream = stream_parameters(given.profile, identifiers=given.identifiers, days=given.days)
    data = data_folder(given.data, stream, given.seed)
    configs = {
        name: sweep_config(given.profile, name, data, **{"seed": given.seed, **changes})
        for name in given.experiment or EXPERIMENTS
    }
    spark = spark_session(given.master)
    cores = spark.sparkContext.defaultParallelism
    _say(f"Spark on {spark.sparkContext.master}, {cores} cores")
    expected = NasdaqStyle(stream["identifiers"], stream["days"], given.seed).expected_events(
        days=stream["days"]
    )
    _say(
        f"stream {data}: {expected:,.0f} events are expected, "
        f"{BYTES_PER_EVENT * expected / 1e6:,.0f} MB; if it is not there, making it takes about "
        f"{MICROSECONDS_PER_EVENT * expected / 1e6 / cores:,.0f} s"
    )
    declaration = generate_nasdaq_style(
        spark, data, identifiers=stream["identifiers"], days=stream["days"], seed=given.seed
    )
    _say(f"{declaration.events:,} events of {len(declaration.counts):,} identifiers")
    hours = [_estimate(spark, given.data, name, config) for name, config in configs.items()]
    _say(f"all in all about {sum(hours):.1f} h on {cores} cores, unless parts are finished already")
    if given.estimate_only:
        return
    for name, config in configs.items():
        folder = sweep_folder(given.data, name, config)
        _say(f"{name}: running; what is finished is in {folder}")
        results = run_sweep(spark, config, folder)
        failed = results[results["status"] != OK]["status"].value_counts()
        endings = "".join(f", {count:,} {status}" for status, count in failed.items())
        _say(f"{name}: {len(results):,} rows{endings}")


def _estimate(spark: Any, root: str, name: str, config: SweepConfig) -> float:
    """Tell the estimate of one sweep; its hours."""
    _say(f"\n{name} ({EXPERIMENTS[name]})")
    for sentence in restrictions(config):
        _say(f"  {sentence}")
    table = estimate_sweep(spark, config, sweep_folder(root, name, config))
    _say(describe_estimate(table, spark.sparkContext.defaultParallelism))
    return float(table["hours"].iloc[-1])


def _changed(text: str) -> tuple[str, Any]:
    field, sign, value = text.partition("=")
    try:
        return field, json.loads(value if sign else "")
    except ValueError:
        raise ExperimentError(
            f"--set {text}: it must be FIELD=VALUE with a value in JSON, such as patterns=10 or "
            'pattern_sets=["sequence"]'
        ) from None


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
