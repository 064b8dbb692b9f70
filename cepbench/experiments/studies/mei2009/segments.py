"""Plans that stay and plans that follow a stream whose rates and selectivities change.

Source: [mei2009]_, section 6.3, Figure 14.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from cepbench.experiments.studies.mei2009.runs import MAKING
from cepbench.experiments.studies.runs import OF_ONE_KIND, in_settings
from cepbench.experiments.sweeps.cells import OK

#: The plan that follows by the paper's policy.
ADAPTIVE = "adaptive"

#: The segments of the sweep ``drift``, in their order, in the words of the paper's axes.
SEGMENTS = ("1:100:100:100", "sel1 = 1/50", "sel2 = 1/50")

#: What names a run.
_RUN = ("repetition", "evaluator", "generator")

#: The setting that is all segments together.
WHOLE = "all"


def rounds_of(results: pd.DataFrame) -> pd.DataFrame:
    """The rounds of all runs of the sweep ``drift``, whose segments have equal numbers of them.

    One row a run and round: ``repetition``, ``evaluator`` (with :data:`MAKING` if it makes
    matches), ``generator`` (name of the plan or of the adaptive run), ``segment``, ``round`` (from
    1), ``events``, ``seconds``.
    """
    parts = []
    for row in _finished(results):
        seconds = row["batch_seconds"]
        number = np.arange(len(seconds))
        parts.append(
            pd.DataFrame(
                {
                    **{name: row[name] for name in _RUN},
                    "segment": np.array(SEGMENTS)[number * len(SEGMENTS) // len(seconds)],
                    "round": number + 1,
                    "events": row["events"] / len(seconds),
                    "seconds": seconds,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def switches_of(results: pd.DataFrame) -> pd.DataFrame:
    """The switches of all adaptive runs, as :attr:`cepbench.AdaptiveDetector.switches`, with the
    names of the run.
    """
    return pd.DataFrame(
        [
            {name: row[name] for name in _RUN} | switch
            for row in _finished(results)
            for switch in row.get("switches", ())
        ]
    )


def _finished(results: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of finished runs, with their details."""
    for row in results[results["status"] == OK].to_dict("records"):
        making = "" if row["output"] == "count" else MAKING
        named = {"evaluator": row["evaluator"] + making}
        yield {str(name): value for name, value in row.items()} | named | json.loads(row["details"])


def runs_by(rounds: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Throughput of each repetition of :func:`rounds_of` in each setting, for summaries and ledgers.

    Settings are a column: ``segment``, with :data:`WHOLE` behind the segments, or ``round``;
    ``pattern_set`` is the setting, ``pattern_id`` the repetition.
    """
    parts = [rounds.assign(pattern_set=rounds[setting].astype(str))]
    if setting == "segment":
        parts.append(rounds.assign(pattern_set=WHOLE))
    named = ["pattern_set", "repetition", "evaluator", "generator"]
    sums = pd.concat(parts).groupby(named, sort=False)[["events", "seconds"]].sum().reset_index()
    return in_settings(sums, sums["pattern_set"]).assign(
        size=4,
        regime="",
        status=OK,
        events_per_second=sums["events"] / sums["seconds"],
        **OF_ONE_KIND,
    )
