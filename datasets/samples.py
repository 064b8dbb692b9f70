"""Regenerates the committed samples: ``python datasets/samples.py``.

All are synthetic and drawn from a seed; none contains third-party data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from cepbench.streams.company_trades import CompanyTrades
from cepbench.streams.evacuation import Evacuation
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.streams.parquet_files import write_table
from cepbench.streams.stock_rates import StockRates
from cepbench.streams.stock_ticker import StockTicker
from cepbench.streams.ten_symbols import TenSymbols
from cepbench.streams.ticker_trades import TickerTrades
from cepbench.streams.web_log import WebLog

#: Malformed rows as they occur in practice: position and text.
_BAD_BARS = (
    (40, "MSFT,200801020940,n/a,35.20,35.10,35.15,900"),
    (95, "GOOG,200801020951,50.10,50.00,50.20,50.05,1200"),
    (300, "INTC,200801020931,22.10,22.15,22.05,22.12,800"),
    (700, "AAPL,200801021210,31.00,31.05"),
)
_BAD_MESSAGES = (
    (500, "{time},7,0,0,-1,-1"),
    (620, "{time},7,0,0,1,-1"),
    (900, "34200.5,1,999,100,1000000,1"),
)

#: Probabilities of LOBSTER's message types 1 to 5 while there are open orders.
_MESSAGE_TYPES = (0.50, 0.05, 0.30, 0.12, 0.03)
_MESSAGES_PER_SECOND = 2.0
_OPENING_SECOND = 34_200


def nasdaq_sample() -> pa.Table:
    """Two days of 75 identifiers: the beginning of ``nasdaq-style/quick`` and of the full stream."""
    style = NasdaqStyle(identifiers=75, days=2, seed=0)
    table = style.table(np.arange(style.identifiers), 0, style.days)
    return _in_order(table)


def _in_order(table: pa.Table) -> pa.Table:
    """The rows by time, without their numbers, which a single file does not need."""
    ordered = table.sort_by([("ts", "ascending"), ("sequence", "ascending")])
    return ordered.drop_columns(["sequence"])


def minute_bars_sample() -> str:
    """A day of one-minute bars of eight tickers, from price updates, with four malformed rows."""
    style = NasdaqStyle(identifiers=12, days=1, seed=3)
    updates = style.table(np.arange(style.identifiers), 0, 1).to_pandas()
    updates["minute"] = updates["ts"].dt.floor("min")
    bars = updates.groupby(["minute", "symbol"], observed=True, sort=True)["price"].agg(
        ["first", "max", "min", "last", "size"]
    )
    volumes = np.random.default_rng(3).lognormal(7, 0.8, len(bars)) * bars["size"].to_numpy()
    rows = [
        f"{symbol},{minute:%Y%m%d%H%M},{first:.2f},{high:.2f},{low:.2f},{last:.2f},{volume:.0f}"
        for ((minute, symbol), (first, high, low, last, _)), volume in zip(
            bars.iterrows(), volumes, strict=True
        )
    ]
    for place, row in _BAD_BARS:
        rows.insert(place, row)
    return "\n".join(rows) + "\n"


def lobster_sample(messages: int = 2_400) -> str:
    """Messages of a synthetic order book in LOBSTER's format, with three malformed rows."""
    rng = np.random.default_rng(5)
    gaps = rng.exponential(1 / _MESSAGES_PER_SECOND, messages)
    nanoseconds = np.cumsum(np.maximum(1, (gaps * 1e9).astype(np.int64)))
    book: dict[int, tuple[int, int, int]] = {}  # order id → size, cents, direction
    middle, rows = 10_000, []
    for number, moment in enumerate(nanoseconds.tolist()):
        middle += int(rng.integers(-1, 2))
        time = f"{_OPENING_SECOND + moment // 10**9}.{moment % 10**9:09d}"
        kind = int(rng.choice(5, p=_MESSAGE_TYPES)) + 1 if book else 1
        if kind in (1, 5):  # a new order, or the execution of a hidden one
            direction = 1 if rng.random() < 0.5 else -1
            size = int(rng.integers(1, 11)) * 20
            cents = middle - direction * int(rng.integers(1, 12))
            order = 10_000 + number if kind == 1 else 0
            if kind == 1:
                book[order] = size, cents, direction
        else:
            direction = 1 if rng.random() < 0.5 else -1
            side = [order for order, entry in book.items() if entry[2] == direction] or list(book)
            if kind == 4:  # the best price of a side is executed first
                order = max(side, key=lambda order: book[order][1] * book[order][2])
            else:  # mostly recent orders are cancelled
                order = side[-1 - min(len(side) - 1, int(rng.exponential(4)))]
            size, cents, direction = book.pop(order)
            if kind == 2 and size > 20:
                book[order] = size - 20, cents, direction
                size = 20
        rows.append(f"{time},{kind},{order},{size},{cents * 100},{direction}")
    for place, row in _BAD_MESSAGES:
        rows.insert(place, row.format(time=rows[place].partition(",")[0]))
    return "\n".join(rows) + "\n"


#: File below the catalogue → its content.
SAMPLES: Mapping[str, Callable[[], pa.Table | str]] = {
    "company-trades/sample.parquet": lambda: CompanyTrades(10_000).table(0, 10_000),
    "evacuation/sample.parquet": lambda: _in_order(Evacuation(1_400).table(0, 1_400)),
    "nasdaq-style/sample.parquet": nasdaq_sample,
    "stock-rates/sample.parquet": lambda: StockRates(10_000).table(0, 10_000),
    "stock-ticker/sample.parquet": lambda: StockTicker(10_000).table(0, 10_000),
    "ten-symbols/sample.parquet": TenSymbols(8_000).table,
    "ticker-trades/sample.parquet": lambda: TickerTrades(10_000).table(0, 10_000),
    "web-log/sample.parquet": lambda: WebLog().table(0).slice(0, 10_000),
    "minute-bars/sample.txt": minute_bars_sample,
    "lobster/sample_2026-01-05_message.csv": lobster_sample,
}


def write_samples(root: Path) -> None:
    """Write every sample below a folder."""
    for name, make in SAMPLES.items():
        content = make()
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            (root / name).write_text(content, encoding="utf-8", newline="\n")
        else:
            write_table(content, root / name)


if __name__ == "__main__":
    write_samples(Path(__file__).parent)
