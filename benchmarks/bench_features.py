"""What each construct costs: ``python benchmarks/bench_features.py [--out rows.parquet]``.

One pattern over a synthetic stream of ten symbols, plain, and with one construct or strategy more
each: negation in its three places, Kleene closure, events that are used up, contiguity, OR and
nesting. All run on the same events along the plan that DP-B makes from measured statistics, once
before anything is timed and then in turns, so that the ratio to the plain sequence is one of the
same run. Compilation, statistics and planning are not part of any time.

A ratio is no verdict by itself: another construct has other matches, whose number stands beside.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd
from command_line import parser_of, write

import cepbench as cep
from cepbench.engines.runs.result import Metrics
from cepbench.streams.ten_symbols import ten_symbols

#: What the others are compared with.
PLAIN = "SEQ"

_THREE = "s2 a, s5 b, s8 c"
_WHERE = "WHERE a.difference < b.difference"
_WITHIN = "WITHIN 2 minutes"

#: Name of a construct -> a pattern that has it and is otherwise as plain as can be.
FEATURES = {
    PLAIN: f"PATTERN SEQ({_THREE}) {_WHERE} {_WITHIN}",
    "AND": f"PATTERN AND({_THREE}) {_WHERE} {_WITHIN}",
    "equal values": f"PATTERN SEQ({_THREE}) WHERE [venue] {_WITHIN}",
    "negation inside": f"PATTERN SEQ(s2 a, NOT(s1 n), s5 b, s8 c) {_WHERE} "
    f"AND n.difference > a.difference {_WITHIN}",
    "negation at the end": f"PATTERN SEQ({_THREE}, NOT(s1 n)) {_WHERE} "
    f"AND n.difference > c.difference {_WITHIN}",
    "negation under AND": f"PATTERN AND({_THREE}, NOT(s1 n)) {_WHERE} "
    f"AND n.difference > a.difference {_WITHIN}",
    "Kleene": f"PATTERN SEQ(s5 a, KL(s1 b), s8 c) {_WHERE} {_WITHIN}",
    "Kleene, rising": f"PATTERN SEQ(s2 a, KL(s3 b), s8 c) {_WHERE} "
    f"AND b[i].difference > b[i-1].difference {_WITHIN}",
    "group of all": "PATTERN SEQ(s5 a, GROUP(s1 b, +), s8 c) WHERE a.difference < c.difference "
    f"AND sum(b.difference) > 0 {_WITHIN}",
    "group of three": "PATTERN SEQ(s5 a, GROUP(s1 b, 3), s8 c) WHERE a.difference < c.difference "
    f"AND sum(b.difference) > 0 {_WITHIN}",
    "consuming": f"PATTERN SEQ({_THREE}) {_WHERE} STRATEGY consuming {_WITHIN}",
    "strict contiguity": f"PATTERN SEQ({_THREE}) {_WHERE} STRATEGY strict_contiguity {_WITHIN}",
    "partition contiguity": f"PATTERN SEQ({_THREE}) {_WHERE} "
    f"STRATEGY partition_contiguity(venue) {_WITHIN}",
    "OR": f"PATTERN OR(SEQ({_THREE}), SEQ(s1 d, s4 e, s7 f)) {_WITHIN}",
    "nested": f"PATTERN SEQ(s2 a, AND(s5 b, s8 c)) {_WHERE} {_WITHIN}",
}

#: Values of the attribute ``venue``, by which partition contiguity divides the stream.
VENUES = 20


def events_of(events: int, seed: int) -> cep.EventStream:
    """The stream of ten symbols, each event at a venue drawn at random."""
    table = ten_symbols(events, seed)
    venues = np.random.default_rng([seed, 1]).integers(VENUES, size=len(table))
    table = table.assign(ts=pd.to_datetime(table["ts"], unit="ms"), venue=venues)
    return cep.EventStream.from_pandas(table, type="symbol", time="ts")


def contestants(
    stream: cep.EventStream, features: Sequence[str], seed: int
) -> Iterator[tuple[str, str, Callable[[], Metrics]]]:
    """Each construct, counted and listed: what one run took and did."""
    for feature in features:
        pattern = cep.parse(FEATURES[feature])
        plan = cep.plan(pattern, cep.measure_statistics(pattern, stream, seed=seed), "DP-B")
        for output in ("count", "matches"):

            def run(pattern=pattern, plan=plan, output=output) -> Metrics:  # type: ignore[no-untyped-def]
                return cep.evaluate(pattern, stream, plan, output=output).metrics

            yield feature, output, run


def measure(
    events: int, repetitions: int, seed: int, features: Sequence[str] = tuple(FEATURES)
) -> pd.DataFrame:
    """One row a construct, output and repetition."""
    stream = events_of(events, seed)
    runs = list(contestants(stream, list(dict.fromkeys([PLAIN, *features])), seed))
    matches = {(feature, output): run().matches for feature, output, run in runs}
    for feature in FEATURES:
        found = {number for (name, _), number in matches.items() if name == feature}
        if len(found) > 1:
            raise SystemExit(f"{feature}: {found} matches, counted and listed")
    rows = []
    for repetition in range(repetitions):
        for feature, output, run in runs:
            metrics = run()
            rows.append(
                {
                    "feature": feature,
                    "output": output,
                    "repetition": repetition,
                    "events": events,
                    "seed": seed,
                    "matches": metrics.matches,
                    "partial_matches_created": metrics.partial_matches_created,
                    "seconds": metrics.seconds,
                    "events_per_second": events / metrics.seconds,
                }
            )
    return with_ratios(pd.DataFrame(rows))


def with_ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """With each run's time over that of the plain sequence in the same repetition."""
    key = ["output", "repetition"]
    plain = rows[rows["feature"] == PLAIN].set_index(key)["seconds"]
    base = plain.reindex(pd.MultiIndex.from_frame(rows[key])).to_numpy()
    return rows.assign(times_plain=rows["seconds"] / base)


def summary(rows: pd.DataFrame) -> str:
    """Medians, with the least and the most ratio in brackets."""
    lines = []
    for output, its in rows.groupby("output", sort=False):
        lines += [
            f"output={output}",
            f"  {'':<22}{'events/s':>12}{'matches':>14}{'partial matches':>17}"
            f"   time / that of {PLAIN}",
        ]
        for feature, own in its.groupby("feature", sort=False):
            ratios = own["times_plain"].tolist()
            lines.append(
                f"  {feature:<22}{own['events_per_second'].median():>12,.0f}"
                f"{own['matches'].iloc[0]:>14,}{own['partial_matches_created'].iloc[0]:>17,}"
                f"   {statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = parser_of("What each construct costs in detection.", events=200_000, repetitions=5)
    parser.add_argument("--features", nargs="+", choices=tuple(FEATURES), default=list(FEATURES))
    given = parser.parse_args(arguments)
    rows = measure(given.events, given.repetitions, given.seed, given.features)
    print(
        f"constructs, {given.events:,} events, seed {given.seed}, {given.repetitions} repetitions"
    )
    print(summary(rows))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
