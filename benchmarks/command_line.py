"""What the command lines of the benchmarks share."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd


def parser_of(
    description: str, *, repetitions: int, events: int | None = None
) -> argparse.ArgumentParser:
    """A parser of ``--repetitions`` and ``--out``, and with a number of events of ``--events``, ``--seed``.

    Parameters
    ----------
    description : str
    repetitions, events : int
        Their defaults.
    """
    parser = argparse.ArgumentParser(description=description)
    if events is not None:
        parser.add_argument("--events", type=int, default=events)
        parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repetitions", type=int, default=repetitions)
    parser.add_argument("--out", type=_parquet, help="where to write the rows: a .parquet file")
    return parser


def _parquet(name: str) -> Path:
    if not name.endswith(".parquet"):
        raise argparse.ArgumentTypeError(f"{name}: the name must end in .parquet")
    return Path(name)


def write(rows: pd.DataFrame, out: Path | None) -> None:
    """Write the rows if a file is given."""
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        rows.to_parquet(out, index=False)
        print(f"{len(rows)} rows in {out}")
