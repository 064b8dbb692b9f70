"""``python -m cepbench.reporting``: the report of this project's notebooks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cepbench.errors import CepbenchError
from cepbench.experiments.profiles import PROFILES
from cepbench.reporting.site import NOTEBOOKS, build_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the report; 0 if it is there, 1 if something that it says went wrong."""
    parser = argparse.ArgumentParser(prog="python -m cepbench.reporting", description=__doc__)
    parser.add_argument("--profile", choices=PROFILES, default="quick")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="reports", help="folder of the report")
    parser.add_argument("--notebooks", default="notebooks", help="folder of the notebooks")
    parser.add_argument(
        "--only", choices=NOTEBOOKS, action="append", help="one notebook; may be repeated"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="measure again what an earlier report has finished"
    )
    given = parser.parse_args(arguments)
    try:
        index = build_report(
            given.output,
            profile=given.profile,
            seed=given.seed,
            notebooks=given.notebooks,
            stems=given.only or NOTEBOOKS,
            parameters={"fresh": True} if given.fresh else None,
            say=lambda line: print(line, flush=True),
        )
    except CepbenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"open {index}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
