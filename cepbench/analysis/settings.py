"""Settings: regime, engine and number of predicates, under each of which a claim is judged."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

#: Evaluator → engine. An engine has an evaluator for orders and one for trees.
ENGINES = {
    "lazy-nfa": "columnar",
    "tree": "columnar",
    "lazy-nfa-instances": "instances",
    "tree-instances": "instances",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same for all rows that one check compares; empty where a table does not say.

    Attributes
    ----------
    regime : str
        Of the workload, as a sweep file names it.
    engine : str
        A value of :data:`ENGINES`, or the name of another evaluator.
    predicates : str
        Predicates of a pattern of n events: ``n/2`` or ``n``.
    """

    regime: str = ""
    engine: str = ""
    predicates: str = ""


def by_setting(table: pd.DataFrame) -> list[tuple[Setting, pd.DataFrame]]:
    """Rows of each setting of a results table, in the order in which the table has them.

    Parameters
    ----------
    table : DataFrame
        With ``regime``, ``evaluator`` and ``predicates`` where these vary.
    """
    table = table.reset_index(drop=True)
    engines = [ENGINES.get(name, name) for name in table.get("evaluator", [""] * len(table))]
    keys = pd.DataFrame({"engine": engines}, index=table.index).assign(
        **{name: table.get(name, "") for name in ("regime", "predicates")}
    )
    names = ["regime", "engine", "predicates"]
    keys = keys.fillna("").astype(str)
    return [
        (Setting(*map(str, which)), table.loc[part.index])
        for which, part in keys.groupby(names, sort=False)
    ]
