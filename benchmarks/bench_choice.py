"""Whether the engine that is chosen is the fastest: ``python benchmarks/bench_choice.py [--out rows.parquet]``.

Patterns of which some engines take many times as long as others, and the queries of the studies' sweeps on their
generated streams, counted and listed, on every engine that can run them, along the default plan. A row
is a run: the processor's seconds, the least of the repetitions, those expected, and whether the engine was chosen.
The report has the ratio of the chosen one to the fastest, that of the engine of the plan's kind, by which it was chosen
before, the q-errors of expected times, and what choosing takes, planning included.

Engines that are expected to take more than a second, and far more than the best one, are left out, and so are lists
of more than two million matches. Runs are made in a process of their own, which is ended where one takes longer than
the limit: that many seconds then stand for it, and for its part in the ratios.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection

import numpy as np
import pandas as pd
import pyarrow as pa
from command_line import parser_of, write

import cepbench as cep
from cepbench.engines.detection.chosen import chosen
from cepbench.engines.detection.planned import default_plan, sampled
from cepbench.engines.detection.registry import default_evaluator
from cepbench.engines.detection.tasks import evaluator_without_plan
from cepbench.engines.runs.protocol import Arguments
from cepbench.errors import CepbenchError, MissingTypeWarning
from cepbench.experiments.sweeps.sweep_file import Sweep, named_sweeps, read_sweep
from cepbench.experiments.sweeps.workload import draw_workload
from cepbench.planning.costs.q_error import q_error
from cepbench.streams.dataset_folder import type_column
from cepbench.streams.fit import check_types
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.streams.synthetic import GeneratedStream
from cepbench.streams.ten_symbols import ten_symbols

_V = "b[i].price < b[i-1].price AND b[1].price < a.price AND c.price > a.price"
_SIX = "SEQ(s1 a, s2 b, s3 c, s4 d, s5 e, s6 f)"

#: Name → pattern over the stream of ten symbols.
PATTERNS = {
    **{
        f"V shape, {minutes} min": f"PATTERN SEQ(s8 a, KL(s5 b), s8 c) WHERE {_V} WITHIN {minutes} minutes"
        for minutes in (1, 2, 4)
    },
    "six frequent types": f"PATTERN {_SIX} WITHIN 30 seconds",
    "six, equal venues": f"PATTERN {_SIX} WHERE [venue] WITHIN 2 minutes",
    **{
        f"strict contiguity, {minutes} min": "PATTERN SEQ(s2 a, s5 b, s8 c) WHERE a.difference < b.difference "
        f"STRATEGY strict_contiguity WITHIN {minutes} minutes"
        for minutes in (1, 100)
    },
    "partition contiguity, 100 min": "PATTERN SEQ(s2 a, s5 b, s8 c) WHERE a.difference < b.difference "
    "STRATEGY partition_contiguity(venue) WITHIN 100 minutes",
    "next": "PATTERN SEQ(s8 a, KL(s5 b), s2 c) WHERE [venue] STRATEGY next WITHIN 5 minutes",
    "negation": "PATTERN SEQ(s2 a, NOT(s1 n), s5 b, s8 c) WHERE a.difference < b.difference WITHIN 2 minutes",
    "conjunction": "PATTERN AND(s2 a, s5 b, s8 c) WHERE a.difference < b.difference WITHIN 2 minutes",
    "disjunction": "PATTERN OR(SEQ(s2 a, s5 b, s8 c), SEQ(s1 d, s4 e, s7 f)) WITHIN 1 minutes",
    "group": "PATTERN SEQ(s5 a, GROUP(s1 b, +), s8 c) WHERE a.difference < c.difference WITHIN 1 minutes",
    "equal values": "PATTERN SEQ(s2 a, s5 b, s8 c) WHERE [venue] WITHIN 10 minutes",
    "filters": "PATTERN SEQ(s2 a, s5 b, s8 c) WHERE a.difference > 1 AND c.difference > 1 WITHIN 5 minutes",
}

#: As many matches are counted, and not listed.
_MOST = 2_000_000


def symbols(events: int, seed: int) -> cep.EventStream:
    """The stream of ten symbols with a venue, and a price that is the sum of the differences of all."""
    table = ten_symbols(events, seed)
    venues = np.random.default_rng([seed, 1]).integers(20, size=len(table))
    price = 100 + 0.1 * table["difference"].cumsum()
    table = table.assign(ts=pd.to_datetime(table["ts"], unit="ms"), venue=venues, price=price)
    return cep.EventStream.from_pandas(table, type="symbol", time="ts")


def _stream(generated: GeneratedStream, events: int) -> cep.EventStream:
    """The first events of a stream of a sweep."""
    files = [*generated.files().values()][:1]
    if isinstance(generated, NasdaqStyle):
        # A file has some identifiers on all days.
        generated = replace(generated, days=1)
        files = [*generated.files().values()]
    parts = [generated.table(*part) for part in files]
    table = pa.concat_tables(parts).sort_by("ts").slice(0, events)
    return cep.EventStream.from_arrow(table, type=type_column(generated.kind), time="ts")


def of_sweep(
    sweep: Sweep, events: int, seed: int
) -> Iterator[tuple[str, cep.Pattern, cep.EventStream]]:
    """Name, pattern and stream of the queries of a sweep on the first and the last of its streams."""
    config = sweep.config("data" if "" in sweep.data else dict.fromkeys(sweep.data, "data"))
    streams = [*sweep.generated.items()]
    for name, generated in dict([*streams[:1], *streams[-1:]]).items():
        stream = _stream(generated, events)
        texts = dict(config.user_patterns)
        for regime, part in config.workloads.items():
            if part.pattern_sets:
                window = part.windows[0] if part.windows else part.window
                seconds = cep.parse(f"PATTERN SEQ(A a, B b) WITHIN {window}").window.seconds
                length = np.ptp(stream.timestamps) / 1e9
                each = {
                    type: n * seconds / length for type, n in stream.counts_by_type().items() if n
                }
                for spec in draw_workload(
                    each, pattern_sets=part.pattern_sets, sizes=(3, 5), patterns=1, seed=seed, window=window,
                    attribute=part.attribute, regime=regime,
                ):  # fmt: skip
                    texts[spec.pattern_id] = spec.text
        for key, text in texts.items():
            for pattern in [cep.parse(text)]:
                yield f"{sweep.name} {name} {key}", pattern.without_aggregate(), stream
        for key, text in config.user_workloads:
            for query, pattern in cep.Workload.parse(text).patterns.items():
                yield f"{sweep.name} {name} {key} {query}", pattern.without_aggregate(), stream


#: Source, name, pattern and stream.
Case = tuple[str, str, cep.Pattern, cep.EventStream]


class Runs:
    """Runs of engines in a process of their own, which keeps what is loaded until one takes too long."""

    def __init__(self, cases: Sequence[Case], repetitions: int, limit: float) -> None:
        self.cases = cases
        self.repetitions = repetitions
        self.limit = limit
        self._process: multiprocessing.Process | None = None
        self._pipe: Connection

    def seconds(
        self, number: int, engine: str, runs_plan: bool, output: str
    ) -> tuple[float, int, bool] | None:
        """The processor's seconds of a run of a case, its matches and whether it ended; None if refused."""
        fork = multiprocessing.get_context("fork")
        if self._process is None:
            self._pipe, theirs = fork.Pipe()
            self._process = fork.Process(target=self._answer, args=(theirs,), daemon=True)
            self._process.start()
        self._pipe.send((number, engine, runs_plan, output))
        found = []
        for _ in range(1 + self.repetitions):
            if not self._pipe.poll(self.limit):
                self.end()
                return self.limit, 0, False
            if (its := self._pipe.recv()) is None:
                return None
            found.append(its)
        return (*min(found), True)

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _answer(self, pipe: Connection) -> None:
        warnings.simplefilter("ignore")  # cases whose types are missing were left out before
        while True:
            number, engine, runs_plan, output = pipe.recv()
            *_, pattern, stream = self.cases[number]
            plan = default_plan(pattern, sampled(pattern, stream)[0]) if runs_plan else None
            try:
                for _ in range(1 + self.repetitions):
                    began = time.process_time()
                    result = cep.evaluate(
                        pattern, stream, plan, evaluator=engine, output=output,
                        partial_match_limit=5_000_000,
                    )  # fmt: skip
                    pipe.send((time.process_time() - began, result.metrics.matches))
            except CepbenchError:
                pipe.send(None)


def measure(runs: Runs, number: int, output: str) -> list[dict[str, object]]:
    """A row an engine that can run the pattern of a case."""
    source, name, pattern, stream = runs.cases[number]
    asked = Arguments(evaluator=None, options=None, output=output, partial_match_limit=5_000_000)
    times = []
    for _ in range(1 + runs.repetitions):
        began = time.process_time()
        its = chosen(pattern, stream, asked, whole_stream=True)
        times.append(time.process_time() - began)
    if its.choice is None:
        return []
    has_plan = default_plan(pattern, sampled(pattern, stream)[0]) is not None
    before = evaluator_without_plan(pattern.strategy.name) or default_evaluator("tree")
    least = min(its.choice.seconds.values())
    rows: list[dict[str, object]] = []
    for engine, expected in its.choice.seconds.items():
        if expected > max(1.0, 2 * least) and engine != before.name:
            continue
        runs_plan = has_plan and not cep.EVALUATORS[engine].without_plan
        if found := runs.seconds(number, engine, runs_plan, output):
            seconds, matches, ended = found
            rows.append(
                {
                    "source": source,
                    "pattern": name,
                    "output": output,
                    "engine": engine,
                    "seconds": seconds,
                    "ended": ended,
                    "expected": expected,
                    "matches": float(min(matches, 1 << 1000)),
                    "is_chosen": engine == its.choice.evaluator,
                    "is_before": engine == before.name,
                    "choosing_seconds": min(times),
                }
            )
    return rows


def summary(rows: pd.DataFrame) -> str:
    """The ratios to the fastest engine, by study and in all, and the errors of expected times."""
    lines, ratios = [], []
    studies: dict[str, list[float]] = {}
    for (source, name, output), its in rows.groupby(["source", "pattern", "output"], sort=False):
        best = its.loc[its["seconds"].idxmin()]
        if not best["ended"]:
            lines.append(f"{name[:62]:<63}{output:<6}no engine ended within the limit")
            continue
        one, before = (its.loc[its[key], "seconds"].min() for key in ("is_chosen", "is_before"))
        engine = its.loc[its["is_chosen"], "engine"].iloc[0] if its["is_chosen"].any() else "failed"
        choosing = its["choosing_seconds"].iloc[0]
        ratios.append((one / best["seconds"], before / best["seconds"], choosing, best["seconds"]))
        studies.setdefault(source, []).append(ratios[-1][0])
        lines.append(
            f"{name[:62]:<63}{output:<6}{engine:<20}{best['engine']:<20}{1e3 * best['seconds']:>8.1f} ms"
            f"{ratios[-1][0]:>7.2f}{ratios[-1][1]:>8.2f}{1e3 * choosing:>7.1f} ms"
        )
    for source, of_chosen in studies.items():
        lines.append(
            f"{source:<20}{len(of_chosen):>5} runs, chosen to fastest median {np.nanmedian(of_chosen):.2f}, within "
            f"1.5 times {np.mean(np.array(of_chosen) <= 1.5):.0%}, at most {np.nanmax(of_chosen):.2f}"
        )
    chosen_ones, before_ones, choosing, best_ones = np.array(ratios).T
    lines.append(
        f"of the fastest: chosen median {np.nanmedian(chosen_ones):.2f}, within 1.5 times "
        f"{np.mean(chosen_ones <= 1.5):.0%}, at most {np.nanmax(chosen_ones):.2f}; by kind "
        f"{np.nanmedian(before_ones):.2f}, {np.mean(before_ones <= 1.5):.0%}, {np.nanmax(before_ones):.2f}"
    )
    allowed = np.mean((choosing <= 0.002) | (choosing <= 0.02 * best_ones))
    lines.append(
        f"choosing: median {1e3 * np.median(choosing):.2f} ms, {allowed:.0%} within 2 ms or 2 % of the run"
    )
    for engine, its in rows[rows["ended"]].groupby("engine"):
        errors = q_error(its["expected"], its["seconds"])
        lines.append(
            f"{engine:<20}{len(its):>5} runs, q-error median {np.median(errors):.2f}, 90 % below "
            f"{np.quantile(errors, 0.9):.2f}"
        )
    return "\n".join(lines)


def of_sweeps(studies: Sequence[str], events: int, seed: int) -> Iterator[Case]:
    """The queries of the sweeps of these studies, all if none is named."""
    for source in named_sweeps():
        study = source.partition("/")[0]
        if not studies or study in studies:
            try:
                sweep = read_sweep(source, profile="quick")
                yield from ((study, *case) for case in of_sweep(sweep, events, seed))
            except CepbenchError as error:
                print(f"{source} is left out: {error}", file=sys.stderr)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = parser_of("Whether the engine chosen is the fastest.", events=50_000, repetitions=2)
    parser.add_argument("--studies", nargs="*", help="only the queries of these studies")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds a run may take")
    given = parser.parse_args(arguments)
    cases: list[Case] = []
    if given.studies is None:
        stream = symbols(given.events, given.seed)
        cases += [
            ("these patterns", name, cep.parse(text), stream) for name, text in PATTERNS.items()
        ]
    cases += of_sweeps(given.studies or [], given.events, given.seed)
    runs = Runs(cases, given.repetitions, given.limit)
    rows: list[dict[str, object]] = []
    seen = set()
    for number, (_, _, pattern, its) in enumerate(cases):
        if (str(pattern), id(its)) in seen:
            continue
        seen.add((str(pattern), id(its)))
        with suppress(CepbenchError, MissingTypeWarning), warnings.catch_warnings():
            warnings.simplefilter("error", MissingTypeWarning)
            check_types(pattern, its)
            counted = measure(runs, number, "count")
            rows += counted
            if max((row["matches"] for row in counted if row["ended"]), default=_MOST) < _MOST:
                rows += measure(runs, number, "arrow")
    runs.end()
    frame = pd.DataFrame(rows)
    print(summary(frame))
    write(frame, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
