"""Trades of companies in a concept hierarchy: the stream of E-Cube's experiments.

Trades come at equal distances of time; fewer events are the beginning of more.

It stands for the real trades of [liu2011]_, section VII: 10,000 tuples, replayed at 1000 a second.

Differs from the paper
----------------------
The paper prints no rate of a company. Here all have the same rate unless ``rates`` says otherwise.
Prices and volumes are uniform and independent, since no query of the experiments reads them. The
text of Figure 12 lists nine companies, but not which are below which concept; section VII-E says it
of six, and three each is our reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from cepbench.arguments import elements, whole
from cepbench.errors import CepbenchError, DatasetError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.seeds import counted_draws, uniform
from cepbench.streams.parquet_files import under_hierarchy
from cepbench.streams.stock_rates import check_names, relative_rates
from cepbench.streams.synthetic import SEED, GeneratedStream, drawn_from, names_of, parameter

#: Figure 12; Education for its "Educational co." and the queries' EDUCATION.
HIERARCHY = ConceptHierarchy(
    {
        "Company": {
            "Computer": ["INTC", "MSFT", "DELL"],
            "Finance": ["QQQ", "FCF", "ROM"],
            "Education": ["EFC", "ANAT", "OREL"],
        }
    }
)

#: The companies of Figure 12, then those that only the queries of section VII name.
COMPANIES = (
    *HIERARCHY.leaves("Company"),
    "AMAT", "Fidelity", "iStar", "ESW", "PESI", "Setfocus", "Lazard",
)  # fmt: skip

#: Nanoseconds between two trades of one company, if its rate is 1: 1000 trades of all in a second.
_BETWEEN = len(COMPANIES) * 1_000_000

#: Prices, in cents, and volumes.
_PRICES, _VOLUMES = (1_000, 9_999), (1, 1_000)


def _segments(given: Any, name: str, error: type[CepbenchError]) -> list[dict[str, float]]:
    return [relative_rates(each) for each in elements(given, name, "[{DELL = 0.1}]", error)]


@dataclass(frozen=True)
class CompanyTrades(GeneratedStream):
    """Trades of all companies in :data:`COMPANIES`; a DatasetError if a company is unknown."""

    kind = "company-trades"

    events: int = parameter(whole, least=1)
    seed: int = SEED()
    #: Factors of the companies' rates; others have 1, which is 1000 trades a second of all
    #: companies together. A higher rate of one shortens the distance between trades and leaves the
    #: others' rates.
    rates: Mapping[str, float] = parameter(relative_rates, dict)
    #: Parameter sets in a row, each for an equal share of the events: rates that replace some of
    #: the stream's.
    segments: Sequence[Mapping[str, float]] = parameter(_segments, ())

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._drawn  # raises errors of names

    def table(self, first: int, last: int) -> pa.Table:
        """The trades from ``first`` to before ``last``, in the stored columns.

        ``symbol`` (the company), ``ts`` (whole microseconds from 1970), ``price`` (cents), ``volume``
        (shares).
        """
        draws = counted_draws(self.seed, first, last - first)
        share = uniform(draws[:, 0])
        codes = np.empty(last - first, np.int32)
        times = np.empty(last - first, np.int64)
        ends = [self.events * k // len(self._drawn) for k in range(len(self._drawn) + 1)]
        began = 0
        for (begin, end), (shares, gap) in zip(pairwise(ends), self._drawn, strict=True):
            inside = slice(*(np.clip((begin, end), first, last) - first))
            codes[inside] = np.searchsorted(shares, share[inside], side="right")
            times[inside] = began + gap * (np.arange(first, last)[inside] - begin)
            began += gap * (end - begin)
        table = pa.table(
            {
                "symbol": names_of(codes, COMPANIES),
                "ts": (times // 1000).view("datetime64[us]"),
                "price": drawn_from(draws[:, 1], *_PRICES),
                "volume": drawn_from(draws[:, 2], *_VOLUMES),
            }
        )
        return under_hierarchy(table, HIERARCHY)

    @cached_property
    def _drawn(self) -> list[tuple[np.ndarray, int]]:
        """By segment: cumulative shares of the companies, and nanoseconds between trades."""
        found = []
        for segment in self.segments or [{}]:
            rates = {**self.rates, **segment}
            check_names(rates, COMPANIES, "rates")
            total = np.cumsum([rates.get(company, 1.0) for company in COMPANIES])
            if total[-1] == 0.0:
                raise DatasetError("rates: at least one company needs a rate above 0")
            found.append((total / total[-1], round(_BETWEEN / total[-1])))
        return found
