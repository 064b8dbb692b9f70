"""CPU seconds of compiling, by engine: ``python benchmarks/bench_compiling.py [--out rows.parquet]``.

The first ``cep.evaluate`` of a plain sequence, by each engine of the registry in a process of its own with an
empty folder of caches; then again in another process, which finds all compiled. Only that call is timed:
imports, the stream and the plan are made before. The whole takes minutes; ``--engines`` chooses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from command_line import parser_of, write
from every_engine import ENGINES, plan_for

import cepbench as cep

PATTERN = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 50 units"


def first_evaluation(engine: str) -> dict[str, float]:
    """Time the first evaluation of this process."""
    rng = np.random.default_rng(0)
    table = {"type": rng.choice(list("ABCDE"), 1000), "ts": np.arange(1000), "x": rng.random(1000)}
    stream = cep.EventStream.from_pandas(pd.DataFrame(table), type="type", time="ts")
    pattern, plan = cep.parse(PATTERN), plan_for(engine, "abc")
    wall, cpu = time.perf_counter(), time.process_time()
    cep.evaluate(pattern, stream, plan, evaluator=engine)
    return {"cpu_seconds": time.process_time() - cpu, "seconds": time.perf_counter() - wall}


def in_process(engine: str, caches: Path) -> dict[str, float]:
    """The first evaluation of a new process with these caches."""
    run = subprocess.run(
        [sys.executable, __file__, "--one", engine],
        env=os.environ | {"XDG_CACHE_HOME": str(caches)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(run.stdout)
    return found


def measure(repetitions: int, engines: Sequence[str] = ENGINES) -> pd.DataFrame:
    """One row an engine and repetition, of which standard error shows the CPU seconds as they are known.

    Returns
    -------
    DataFrame
        ``engine``, ``repetition``, ``cpu_seconds`` and ``seconds`` of the first evaluation with empty
        caches, ``cached_cpu_seconds`` of one that finds all compiled, the number of ``compilations``, and
        the ``bytes`` of the caches.
    """
    rows: list[dict[str, Any]] = []
    for repetition in range(repetitions):
        for engine in engines:
            with tempfile.TemporaryDirectory() as name:
                caches = Path(name)
                empty = in_process(engine, caches)
                # One file for each compiled signature, besides an index for each function.
                kept = [path for path in caches.rglob("*") if path.is_file()]
                rows.append(
                    {
                        "engine": engine,
                        "repetition": repetition,
                        **empty,
                        "compilations": sum(path.suffix == ".nbc" for path in kept),
                        "bytes": sum(path.stat().st_size for path in kept),
                        "cached_cpu_seconds": in_process(engine, caches)["cpu_seconds"],
                    }
                )
                print(f"{engine}: {empty['cpu_seconds']:.1f} s", file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> str:
    """A line an engine, with medians over the repetitions.

    Parameters
    ----------
    rows : DataFrame
        As :func:`measure` gives them.
    """
    lines = [
        f"  {'':<22}{'CPU [min, max]':>24}{'wall':>9}{'all cached, CPU':>17}{'compilations':>14}"
        f"{'cache':>10}"
    ]
    for name, its in rows.groupby("engine", sort=False):
        cpu = its["cpu_seconds"]
        middle = its.drop(columns=["engine"]).median()
        spread = f"{middle['cpu_seconds']:.1f} [{cpu.min():.1f}, {cpu.max():.1f}] s"
        lines.append(
            f"  {name:<22}{spread:>24}{middle['seconds']:>7.1f} s"
            f"{middle['cached_cpu_seconds']:>15.2f} s{middle['compilations']:>14.0f}"
            f"{middle['bytes'] / 1e6:>7.1f} MB"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = parser_of("CPU seconds of compiling, by engine.", repetitions=1)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--one", choices=ENGINES, help="one here, with the caches that there are")
    given = parser.parse_args(arguments)
    if given.one:
        print(json.dumps(first_evaluation(given.one)))
        return
    rows = measure(given.repetitions, given.engines)
    print(f"compiling, {given.repetitions} repetitions, cepbench {cep.__version__}: {PATTERN}")
    print(summary(rows))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
