"""Plans that cost models choose against all others: ``bench_cost_models.py [--out rows.parquet]``.

The P3 of the detection benchmark as it is and written backwards, along every order and every tree,
in turns; the time of a plan is its quickest run, and ratios are of one run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pandas as pd
from command_line import parser_of, write

import cepbench as cep
from cepbench.experiments.studies.kolchinsky2018.plan_space import COSTS, regrets, time_every_plan
from cepbench.streams.ten_symbols import ten_symbols

PATTERNS = {
    "P3": "SEQ(s3 a, s6 b, s9 c)",
    "P3 backwards": "SEQ(s9 a, s6 b, s3 c)",
}


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = parser_of("Every plan of P3, and what cost models say.", events=200_000, repetitions=7)
    given = parser.parse_args(arguments)
    kept = []
    table = ten_symbols(given.events, given.seed)
    table["ts"] = pd.to_datetime(table["ts"], unit="ms")
    stream = cep.EventStream.from_pandas(table, type="symbol", time="ts")
    for name, structure in PATTERNS.items():
        text = f"PATTERN {structure} WHERE a.difference < b.difference WITHIN 5 minutes"
        found = time_every_plan(
            cep.parse(text), stream, repetitions=given.repetitions, seed=given.seed
        )
        kept.append(found.assign(pattern=name))
        print(f"{name}: {text}\n  {len(stream):,} events, {found['matches'].iloc[0]:,} matches")
        shown = found[["plan", *COSTS, "pairs_compared", "seconds", "times_trivial", "chosen_by"]]
        print(
            shown.to_string(
                index=False,
                formatters={
                    **dict.fromkeys([*COSTS, "pairs_compared"], "{:,.0f}".format),
                    "seconds": lambda seconds: f"{1e3 * seconds:.1f} ms",
                    "times_trivial": "{:.2f}".format,
                },
            )
        )
        print(regrets(found).round(2).to_string(index=False), end="\n\n")
    write(pd.concat(kept, ignore_index=True), given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
