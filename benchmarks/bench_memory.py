"""Memory of detection: ``python benchmarks/bench_memory.py [--out rows.parquet]``.

Patterns that store many partial matches over synthetic streams of one, three and ten times the
length, with the same rates, pushed batch by batch as they would arrive. Each runs in a process of
its own, which says the most bytes that the detector counted, and by how much the process itself
grew: its memory after each push against that before the first one, kernels loaded. The stream is
made a batch at a time, so nothing but the detector could grow with it.

Bytes are given per stored partial match or event. Memory has to depend on the window and not on
the length. So that chance has no part in that, a longer stream is the shortest one again and
again: a random one would have larger extremes the longer it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from command_line import parser_of, write

import cepbench as cep
from cepbench.engines.joins.engine import warm_up
from cepbench.streams.ten_symbols import ten_symbols

#: Name -> pattern and the order of its plan: frequent events first, so that much is stored.
PATTERNS = {
    "SEQ": (
        "PATTERN SEQ(s9 a, s8 b, s0 c) WHERE a.difference < b.difference "
        "AND b.difference < c.difference WITHIN 20 minutes",
        "abc",
    ),
    "AND": (
        "PATTERN AND(s8 a, s7 b, s0 c) WHERE a.difference < b.difference "
        "AND b.difference < c.difference WITHIN 10 minutes",
        "abc",
    ),
    "Kleene": (
        "PATTERN SEQ(s7 a, KL(s2 b), s0 c) WHERE b[i].difference > b[i-1].difference "
        "AND a.difference < c.difference WITHIN 4 minutes",
        "abc",
    ),
}

#: How many times the shortest stream.
LENGTHS = (1, 3, 10)

#: Events pushed at a time.
BATCH = 5_000


def batches(events: int, times: int, seed: int) -> Iterator[cep.EventStream]:
    """A stream of ten symbols in pieces, so many times over; arrival rates never change."""
    begin = 0
    for _ in range(times):
        for number, first in enumerate(range(0, events, BATCH)):
            table = ten_symbols(min(BATCH, events - first), seed + number)
            shifted = table["ts"] + begin
            begin = int(shifted.iloc[-1]) + 1
            yield cep.EventStream.from_pandas(
                table.assign(ts=pd.to_datetime(shifted, unit="ms")), type="symbol", time="ts"
            )


def resident_bytes() -> int | None:
    """What this process takes of the machine's memory now; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def detect(name: str, events: int, times: int, seed: int) -> dict[str, Any]:
    """Run one pattern in this process, and say what it took."""
    text, order = PATTERNS[name]
    pattern = cep.parse(text)
    warm_up()
    # Once through all that a run loads for the first time.
    for batch in batches(BATCH // 10, 1, seed):
        cep.Detector(pattern, cep.OrderPlan(list(order)), output="count").push(batch)
    detector = cep.Detector(pattern, cep.OrderPlan(list(order)), output="count")
    before = resident_bytes()
    most = before
    for batch in batches(events, times, seed):
        detector.push(batch)
        now = resident_bytes()
        most = max(most, now) if most is not None and now is not None else None
    metrics = detector.metrics()
    stored = metrics.peak_partial_matches + metrics.peak_buffered_events
    return {
        "pattern": name,
        "times": times,
        "events": events * times,
        "seed": seed,
        "matches": metrics.matches,
        "peak_partial_matches": metrics.peak_partial_matches,
        "peak_buffered_events": metrics.peak_buffered_events,
        "peak_bytes": metrics.peak_bytes,
        "bytes_per_stored": metrics.peak_bytes / max(stored, 1),
        "grown_bytes": None if before is None or most is None else most - before,
    }


def measure(
    events: int, repetitions: int, seed: int, patterns: Sequence[str] = tuple(PATTERNS)
) -> pd.DataFrame:
    """One row a pattern, length and repetition, each from a fresh process."""
    rows = []
    for repetition in range(repetitions):
        for name in patterns:
            for times in LENGTHS:
                given = [name, str(events), str(times), str(seed + 10_000 * repetition)]
                run = subprocess.run(
                    [sys.executable, __file__, "--one", *given],
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                rows.append({"repetition": repetition, **json.loads(run.stdout)})
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> str:
    """Medians over the repetitions, a line a length, and the ratio of bytes to the shortest."""
    lines = []
    for name, its in rows.groupby("pattern", sort=False):
        lines += [
            f"{name}: {PATTERNS[name][0]}",
            f"  {'':>4}{'events':>12}{'partial matches':>17}{'peak bytes':>14}{'a stored one':>14}"
            f"{'process grew by':>17}   peak bytes / those of 1x",
        ]
        peaks = its.pivot(index="repetition", columns="times", values="peak_bytes")
        for times, own in its.groupby("times"):
            ratios = peaks[times] / peaks[peaks.columns[0]]
            grown = own["grown_bytes"].median()
            lines.append(
                f"  {f'{times}x':>4}{own['events'].iloc[0]:>12,}"
                f"{own['peak_partial_matches'].median():>17,.0f}{own['peak_bytes'].median():>14,.0f}"
                f"{own['bytes_per_stored'].median():>12.1f} B"
                + (f"{grown / 2**20:>13.1f} MiB" if pd.notna(grown) else f"{'–':>17}")
                + f"   {ratios.median():.2f} [{ratios.min():.2f}, {ratios.max():.2f}]"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = parser_of("Memory of detection over ever longer streams.", repetitions=2)
    parser.add_argument("--events", type=int, default=20_000, help="of the shortest stream")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patterns", nargs="+", choices=tuple(PATTERNS), default=list(PATTERNS))
    parser.add_argument(
        "--one",
        nargs=4,
        metavar=("PATTERN", "EVENTS", "TIMES", "SEED"),
        help="run one here, and print what it took as JSON",
    )
    given = parser.parse_args(arguments)
    if given.one:
        print(json.dumps(detect(given.one[0], *map(int, given.one[1:]))))
        return
    rows = measure(given.events, given.repetitions, given.seed, given.patterns)
    print(
        f"memory, {given.events:,} events and more, seed {given.seed}, "
        f"{given.repetitions} repetitions, batches of {BATCH:,}"
    )
    print(summary(rows))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
