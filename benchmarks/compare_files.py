"""The plan generators on files of your own: minute bars or LOBSTER order-book messages.

    python benchmarks/compare_files.py --minute-bars bars.txt --window "5 minutes" --out results
    python benchmarks/compare_files.py --lobster AAPL_2012-06-21_message.csv --window "2 seconds" \
        --attribute price --max-partial-matches 1e5 --out results

Ingests the files, draws sequence and conjunction patterns over their event types, measures
statistics, runs every plan of every generator and prints a summary as Markdown. Patterns and runs
of the same options are taken up again where a killed run stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from cepbench.errors import CepbenchError
from cepbench.experiments.analysis.common_patterns import left_out_notes
from cepbench.experiments.analysis.summary import paired_ratios, summarize
from cepbench.experiments.sweeps.cells import OK
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.on_spark.job import run_sweep
from cepbench.spark.ingest import ingest_lobster, ingest_minute_bars
from cepbench.spark.session import spark_session

#: Pairs of generators that the paper compares in figures.
PAIRS = (("DP-LD", "EFREQ"), ("DP-LD", "GREEDY"), ("DP-B", "ZSTREAM"), ("DP-B", "ZSTREAM-ORD"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; 1 if it cannot be made."""
    options = _options(arguments)
    ingest = ingest_lobster if options.lobster else ingest_minute_bars
    files = [Path(file).resolve() for file in options.lobster or options.minute_bars]
    named = hashlib.sha256("\n".join(map(str, files)).encode()).hexdigest()[:8]
    data = options.out / f"data-{files[0].stem}-{named}"
    config = {
        "pattern_sets": ["sequence", "conjunction"],
        "sizes": options.sizes,
        "patterns": options.patterns,
        "window": options.window,
        "attribute": options.attribute,
        "max_partial_matches": options.max_partial_matches,
        "repetitions": options.repetitions,
        "seed": options.seed,
    }
    try:
        spark = spark_session()
        report = ingest(spark, files, data)
        print(f"{report}\n", flush=True)
        sweep = SweepConfig.from_dict({"data": data, **config})
        options_name = hashlib.sha256(repr(sorted(config.items())).encode()).hexdigest()[:8]
        results = run_sweep(spark, sweep, options.out / f"sweep-{named}-{options_name}")
    except CepbenchError as error:
        print(f"compare_files: {error}", file=sys.stderr)
        return 1
    print(f"configuration: {config}\n")
    print("\n".join(summary_lines(results, seed=options.seed)))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    defaults = SweepConfig(data="")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--minute-bars", nargs="+", metavar="FILE")
    source.add_argument("--lobster", nargs="+", metavar="FILE")
    parser.add_argument("--out", type=Path, required=True, help="folder for events and results")
    parser.add_argument("--window", default=defaults.window, help="the text after WITHIN")
    parser.add_argument("--attribute", default=defaults.attribute, help="what predicates compare")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(defaults.sizes))
    parser.add_argument("--patterns", type=int, default=8, help="of each size in each set")
    parser.add_argument("--max-partial-matches", type=float, help="see SweepConfig")
    parser.add_argument("--repetitions", type=int, default=defaults.repetitions)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    return parser.parse_args(arguments)


def summary_lines(results: pd.DataFrame, *, seed: int) -> Iterator[str]:
    """What a sweep found, as Markdown.

    Parameters
    ----------
    results : DataFrame
        As :func:`cepbench.experiments.sweeps.on_spark.job.run_sweep` returns it.
    seed : int
        Of the bootstrap.
    """
    endings = ", ".join(f"{n:,} {status}" for status, n in results["status"].value_counts().items())
    patterns = results["pattern_id"].nunique()
    matches = results[results["status"] == OK].groupby("pattern_id")["matches"].first()
    yield f"{patterns} patterns, {len(results):,} rows: {endings}; {matches.sum():,} matches"
    for reason in results["reason"].dropna().unique()[:3]:
        yield f"- {reason}"
    metrics = ["events_per_second", "peak_partial_matches", "peak_bytes"]
    averages = summarize(results, metrics, seed=seed)
    averages = averages[averages["size"].isna() & (averages["statistic"] == "median")]
    key = ["pattern_set", "generator", "metric"]
    wide = averages.set_index(key)["value"].unstack("metric", sort=False)
    yield from left_out_notes(averages[averages["metric"] == "events_per_second"])
    yield from (
        "",
        "| set | generator | events/s | × TRIVIAL [95 %] | peak partial matches | peak bytes |",
        "|---|---|---:|---:|---:|---:|",
    )
    gains = {
        (row["pattern_set"], row["generator"]): _interval(row)
        for name in results["generator"].unique()
        for row in _ratios(results, name, "TRIVIAL", ["pattern_set"], seed)
    }
    for (pattern_set, generator), row in wide.iterrows():
        yield (
            f"| {pattern_set} | {generator} | {row['events_per_second']:,.0f} "
            f"| {gains[pattern_set, generator]} | {row['peak_partial_matches']:,.0f} "
            f"| {row['peak_bytes']:,.0f} |"
        )
    yield from (
        "",
        "| set | size | pair | throughput ratio [95 %] | patterns |",
        "|---|---|---|---|---|",
    )
    for generator, baseline in PAIRS:
        for row in _ratios(results, generator, baseline, ["pattern_set", "size"], seed):
            size = "all" if pd.isna(row["size"]) else row["size"]
            yield (
                f"| {row['pattern_set']} | {size} | {generator} / {baseline} "
                f"| {_interval(row)} | {row['patterns']} |"
            )


def _ratios(
    results: pd.DataFrame, generator: str, baseline: str, by: Sequence[str], seed: int
) -> list[dict]:
    """Geometric means of the ratios of throughput, paired by pattern."""
    found = paired_ratios(results, "events_per_second", generator, baseline, by, seed=seed)
    return found[found["statistic"] == "geometric mean"].to_dict("records")


def _interval(row: dict) -> str:
    return f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


if __name__ == "__main__":
    sys.exit(main())
