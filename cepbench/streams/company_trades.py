"""Trades of companies in a concept hierarchy: the stream of E-Cube's experiments.

Trades come at equal distances of time. Each has random numbers of its own, counted by its position,
so the events do not depend on how the work is divided, and fewer events are the beginning of more.

It stands for the real trades of [liu2011]_, section VII: 10,000 tuples, replayed at 1000 a second.

Differs from the paper
----------------------
The paper prints no rate of a company. Here all have the same rate unless ``rates`` says otherwise.
Prices and volumes are uniform and independent, since no query of the experiments reads them. The
text of Figure 12 lists nine companies, but not which are below which concept; section VII-E says it
of six, and three each is our reading.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from cepbench.arguments import elements, whole
from cepbench.errors import DatasetError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.seeds import counted_draws, uniform
from cepbench.streams.parquet_files import under_hierarchy
from cepbench.streams.stock_rates import check_names, relative_rates
from cepbench.streams.ticks import Ticks

#: To be incremented with every change of the arithmetic below, which outdates stored data.
ARITHMETIC = 1

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

#: Cents.
_LOWEST_PRICE, _HIGHEST_PRICE = 1_000, 9_999
_MOST_VOLUME = 1000


@dataclass(frozen=True)
class CompanyTrades(Ticks):
    """Trades of all companies in :data:`COMPANIES`.

    Parameters
    ----------
    events : int
    seed : int
    rates : mapping of str to float
        Factors of the companies' rates; others have 1, which is 1000 trades a second of all companies
        together. A higher rate of one shortens the distance between trades and leaves the others' rates.
    segments : sequence of mapping
        Parameter sets in a row, each for an equal share of the events: rates that replace some of the
        stream's.

    Raises
    ------
    DatasetError
        If a number is out of range, or a company is unknown.

    Examples
    --------
    >>> CompanyTrades(1000, rates={"DELL": 0.1}).table(0, 1000).num_rows
    1000
    """

    kind: ClassVar[str] = "company-trades"
    required: ClassVar[tuple[str, ...]] = ("events",)

    events: int
    seed: int = 0
    rates: Mapping[str, float] = field(default_factory=dict)
    segments: Sequence[Mapping[str, float]] = ()

    def __post_init__(self) -> None:
        segments = elements(self.segments, "segments", "[{DELL = 0.1}]", DatasetError)
        checked: dict[str, Any] = {
            "events": whole(self.events, "events", DatasetError, least=1),
            "seed": whole(self.seed, "seed", DatasetError, least=0),
            "rates": relative_rates(self.rates),
            "segments": [relative_rates(segment) for segment in segments],
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        _ = self._drawn  # raises errors of names

    @property
    def name(self) -> str:
        """Of a folder beside those of other streams."""
        text = json.dumps(self.parameters, sort_keys=True)
        return f"{self.kind}-{self.events}-{self.seed}-{zlib.crc32(text.encode()):08x}"

    @property
    def parameters(self) -> dict[str, Any]:
        """All that decides the events, for the data set's declaration."""
        return {
            "events": self.events,
            "seed": self.seed,
            "arithmetic": ARITHMETIC,
            "rates": self.rates,
            "segments": self.segments,
        }

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
        prices = draws[:, 1] % np.uint64(_HIGHEST_PRICE - _LOWEST_PRICE + 1)
        table = pa.table(
            {
                "symbol": pa.DictionaryArray.from_arrays(codes, pa.array(COMPANIES)),
                "ts": (times // 1000).view("datetime64[us]"),
                "price": _LOWEST_PRICE + prices.astype(np.int64),
                "volume": 1 + (draws[:, 2] % np.uint64(_MOST_VOLUME)).astype(np.int64),
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
