"""Settings: regime, engine and number of predicates, under each of which a claim is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from cepbench.experiments.analysis.summary import in_order_of

#: Evaluator → engine. An engine has an evaluator for orders and one for trees.
ENGINES = {
    "lazy-nfa": "columnar",
    "tree": "columnar",
    "lazy-nfa-instances": "event by event",
    "tree-instances": "event by event",
}


def engines_of(table: pd.DataFrame) -> list[str]:
    """The engine of each row, by its ``evaluator``; empty where a table has none."""
    return [ENGINES.get(name, name) for name in table.get("evaluator", [""] * len(table))]


def per_engine(
    results: pd.DataFrame, tabulate: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """A table of each engine's runs, whose patterns may differ, one below the other.

    ``tabulate`` makes a table, with the column ``regime`` where it varies, of the rows of one engine. The
    tables are by regime, then engine, with the column ``engine``.
    """
    engines = pd.Series(engines_of(results), index=results.index)
    tables = [
        tabulate(part).assign(engine=engine)
        for engine, part in results.groupby(engines, sort=False)
    ]
    found = pd.concat(tables, ignore_index=True)
    if "regime" not in found:
        return found
    return in_order_of(results["regime"].unique(), found, "regime").reset_index(drop=True)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same for all rows that one check compares; empty where a table does not say."""

    #: Of the workload, as a sweep file names it.
    regime: str = ""
    #: A value of :data:`ENGINES`, or the name of another evaluator.
    engine: str = ""
    #: Predicates of a pattern of n events: ``n/2`` or ``n``.
    predicates: str = ""


def by_setting(table: pd.DataFrame) -> list[tuple[Setting, pd.DataFrame]]:
    """Rows of each setting, by ``regime``, ``evaluator`` and ``predicates`` where these vary, in their order."""
    table = table.reset_index(drop=True)
    columns = {name: table.get(name, "") for name in ("regime", "predicates")}
    keys = pd.DataFrame({**columns, "engine": engines_of(table)}, index=table.index)
    names = ["regime", "engine", "predicates"]
    keys = keys.fillna("").astype(str)
    return [
        (Setting(*map(str, which)), table.loc[part.index])
        for which, part in keys.groupby(names, sort=False)
    ]
