"""A synthetic stream in the style of a year of NASDAQ prices, reproducible from a seed.

Each identifier and day has its own random generator, so the data does not depend on how the work
is divided, and fewer identifiers or days give a part of the same stream.

It models the data of [kolchinsky2018]_, section 6.2: 80.5 million price updates of 2100 identifiers
over a year.

Differs from the paper
----------------------
The paper prints arrival rates of 1 to 45 events *per second*, windows of 20 minutes, 80.5 million
events, 2100 identifiers and one year, which cannot all hold: 80.5 million events are about 8 for
each identifier in 20 minutes of trading. Here the rates are 1 to 45 events *per window of 20
minutes*, 7.8 on average, and a year of all identifiers has about 80.5 million events.

Beyond the paper, the rates can have other bounds, drift, be higher at the opening and the close
than at noon, and come in bursts; and shocks shared by identifiers can be more frequent, which
correlates the predicates of a pattern. Uniform data understates the gain of plans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cepbench.arguments import number, shown, whole
from cepbench.errors import CepbenchError, DatasetError
from cepbench.streams.dataset_folder import MONTH
from cepbench.streams.synthetic import SEED, GeneratedStream, names_of, parameter

#: Minimum and maximum events of an identifier per 20 minutes, and the mean over identifiers.
RATES_PER_WINDOW = (1.0, 45.0)
MEAN_RATE_PER_WINDOW = 7.8

MOST_IDENTIFIERS = 26**4 // 4
#: A day of an identifier is generated at once, each event in its own millisecond.
_MOST_RATE = 1e5

DAY_MILLISECONDS = 13 * 30 * 60_000
WINDOWS_PER_DAY = 19.5
_OPENING_MILLISECONDS = 19 * 30 * 60_000
_MINUTES = DAY_MILLISECONDS // 60_000

#: Exponent of the power law on [1, 45] whose mean is 80.5e6 / (2100 · 252 · 19.5).
_RATE_EXPONENT = 1.36723
_GOLDEN = (5**0.5 - 1) / 2

_DAILY_DEVIATION = 0.01
_WITHIN_DAY_DEVIATION = 0.015
_SHOCK_DEVIATION = 0.005
_SHOCKS_PER_MINUTE = (0.002, 0.004)  # of the market, of a sector
#: Probability that a step is a jump (rare jumps, skewed steps), and the noise of the other steps.
_JUMPS = (0.001, 0.5)
_NOISE = (0.1, 1.0)
#: Random walks are summed in integer multiples of this, so that sums are exact.
_GRAIN = 1e-9

SECTORS = (
    "technology", "health", "retail", "finance", "energy", "industry",
    "media", "telecom", "transport", "materials", "utilities", "leisure",
)  # fmt: skip

#: Identifiers known from the papers, with the index of their sector; synthetic ones follow.
_KNOWN = (
    "MSFT0 GOOG0 INTC0 AAPL0 AMZN2 CSCO7 AMGN1 ORCL0 QCOM7 EBAY2 YHOO6 DELL0 GILD1 COST2 SBUX11 "
    "CMCSA6 FITB3 PCAR5 PAYX5 WYNN11 EXPD8 CTAS5 STLD9 JBHT8 ROST2 BIIB1 CELG1 ADBE0 NVDA0 AMAT0 "
    "SYMC0 ERTS11 SIRI6 LAMR6 ZION3 NTRS3 HBAN3 SIVB3 PTEN4 FWLT5 MICC7 LVLT7 NIHD7 VOD7 UAUA8 "
    "CHRW8 SPLS2 PETM2 BBBY2 ORLY2 CBRL11 DRIV0 APOL5 CTSH0 INFY0 LRCX0 KLAC0 XLNX0 ALTR0 MRVL0 "
    "TEVA1 GENZ1 VRTX1 HOLX1 HSIC1 ESRX1 SIAL9 STRA5 JOYG5 FAST5 ATVI11 MNST2 WFMI2 DISH6 VRSN0"
)

# Purposes of random generators, distinguished by the seed's spawn key.
_FOR_IDENTIFIER, _FOR_DAYS, _FOR_SECTOR, _FOR_RATES, _FOR_DRIFT, _FOR_BURSTS = range(6)

#: Share of the time in bursts, and mean length of a burst in minutes.
_BURSTING, _BURST_MINUTES = 0.1, 5.0

#: Minimum number of files, so that several cores can write a short stream.
_SMALL_FILE_EVENTS = 20_000
_LEAST_FILES = 8


def _day(given: Any, name: str, error: type[CepbenchError]) -> date:
    if not isinstance(given, date):
        raise error(f"{name} is a datetime.date, not {shown(given)}")
    return given


@dataclass(frozen=True)
class NasdaqStyle(GeneratedStream):
    """The stream of some identifiers over some trading days."""

    kind = "nasdaq-style"
    required = ("identifiers", "days")

    #: Number of identifiers; 2100 in the paper.
    identifiers: int = parameter(whole, 2100, least=1, most=MOST_IDENTIFIERS)
    #: Number of trading days (weekdays); a year has 252.
    days: int = parameter(whole, 252, least=1, most=10_000)
    seed: int = SEED(most=None)
    #: The stream begins on the first trading day on or after it.
    first_day: date = parameter(_day, date(2008, 1, 2))  # noqa: RUF009
    #: ``least_rate``, ``most_rate``: minimum and maximum expected events of an identifier per 20
    #: minutes; the rates between follow the same power law for any bounds.
    least_rate: float = parameter(number, RATES_PER_WINDOW[0], above=0.0)
    most_rate: float = parameter(number, RATES_PER_WINDOW[1], most=_MOST_RATE)
    #: Largest factor by which a rate deviates from its mean, drawn for each identifier and segment
    #: of the stream, uniformly in its logarithm; 1 for constant rates. The mean over segments is
    #: preserved.
    drift: float = parameter(number, 1.0, least=1.0, most=100.0)
    #: Length of a segment in minutes of trading; 390 are a day.
    segment_minutes: int = parameter(whole, _MINUTES, least=1, most=None)
    #: Rate at the opening and the close relative to noon, with a parabola between them; 1 for a
    #: constant rate.
    intraday: float = parameter(number, 1.0, least=1.0, most=100.0)
    #: Rate within bursts relative to the rate outside of them; 1 for no bursts. Bursts are shared
    #: by all identifiers of a sector, take a tenth of the time and 5 minutes on average, and
    #: follow a Markov chain with a step per minute.
    bursts: float = parameter(number, 1.0, least=1.0, most=100.0)
    #: Factor on the frequency of the shocks of the market and the sectors, which correlate the
    #: price changes of different identifiers.
    shocks: float = parameter(number, 1.0, least=0.0, most=100.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        number(self.most_rate, "most_rate", DatasetError, least=self.least_rate)

    @property
    def unusual(self) -> dict[str, float]:
        """Parameters other than identifiers, days, seed and first day that are not the defaults."""
        rates, shapes = ("least_rate", "most_rate"), ("drift", "intraday", "bursts", "shocks")
        names = (*rates, "segment_minutes", *shapes)
        values = {name: getattr(self, name) for name in names}
        return {name: v for name, v in values.items() if v != getattr(NasdaqStyle, name)}

    @property
    def name(self) -> str:
        unusual = "".join(f"-{name.replace('_', '-')}-{v:g}" for name, v in self.unusual.items())
        first = "" if self.first_day == NasdaqStyle.first_day else f"-{self.first_day}"
        return f"{self.kind}-{self.identifiers}-{self.days}-{self.seed}{first}{unusual}"

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "identifiers": self.identifiers,
            "days": self.days,
            "seed": self.seed,
            "first_day": self.first_day.isoformat(),
            "arithmetic": self.arithmetic,
            **self.unusual,
        }

    @property
    def notes(self) -> dict[str, str]:
        usual = {"least_rate", "most_rate"}.isdisjoint(self.unusual)
        mean = MEAN_RATE_PER_WINDOW if usual else self.rates.mean()
        return {
            "arrival rates": (
                f"{self.least_rate:g} to {self.most_rate:g} events per identifier and 20 "
                f"minutes, about {mean:.1f} on average (the paper prints per second, which does "
                "not fit its number of events)"
            )
        }

    @property
    def expected(self) -> float:
        return self.expected_events(days=self.days)

    def files(self) -> dict[str, tuple[np.ndarray, int, int]]:
        """By month and alphabetically by symbol: file -> identifiers, first day, day after the last."""
        alphabetical = np.argsort(np.array(self.symbols), kind="stable")
        months = self.dates.astype("datetime64[M]")
        found = {}
        for month in np.unique(months):
            first, last = np.searchsorted(months, [month, month + 1]).tolist()
            expected = self.expected_events(days=last - first)
            files = max(
                math.ceil(expected / self.per_file),
                min(_LEAST_FILES, math.ceil(expected / _SMALL_FILE_EVENTS)),
            )
            parts = np.array_split(alphabetical, min(files, self.identifiers))
            for place, some in enumerate(parts):
                found[f"{MONTH}={month}/part-{place:05d}.parquet"] = some, first, last
        return found

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The identifiers' names."""
        known = [entry.rstrip("0123456789") for entry in _KNOWN.split()]
        taken, names, step = set(known), list(known), 0
        while len(names) < self.identifiers:
            step += 1
            # A step coprime to 26 visits every word of four letters once.
            number = step * 123_457 % 26**4
            name = "".join(chr(65 + number // 26**place % 26) for place in (3, 2, 1, 0))
            if name not in taken:
                names.append(name)
        return tuple(names[: self.identifiers])

    @cached_property
    def sectors(self) -> np.ndarray:
        """Index into :data:`SECTORS` of each identifier; int32, shape (identifiers,)."""
        known = [int(entry.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")) for entry in _KNOWN.split()]
        codes = np.arange(self.identifiers, dtype=np.int32) % len(SECTORS)
        codes[: len(known)] = known[: self.identifiers]
        return codes

    @cached_property
    def rates(self) -> np.ndarray:
        """Expected events of each identifier per 20 minutes; float64, shape (identifiers,).

        Evenly spaced quantiles of a power law, so that few identifiers span the range too.
        """
        start = self._generator(_FOR_RATES, 0).random()
        quantiles = (start + _GOLDEN * np.arange(1, self.identifiers + 1)) % 1.0
        least, most = self.least_rate, self.most_rate
        power = 1 - _RATE_EXPONENT
        return np.asarray((least**power + quantiles * (most**power - least**power)) ** (1 / power))

    @cached_property
    def dates(self) -> np.ndarray:
        """The trading days; datetime64[D], shape (days,)."""
        first = np.busday_offset(np.datetime64(self.first_day, "D"), 0, roll="forward")
        return np.asarray(np.busday_offset(first, np.arange(self.days)))

    def expected_events(self, days: int) -> float:
        """Expected number of events in so many trading days."""
        return float(self.rates.sum() * WINDOWS_PER_DAY * days)

    def events(self, identifiers: np.ndarray, first: int, last: int) -> dict[str, np.ndarray]:
        """The events of some identifiers on the trading days from ``first`` to before ``last``, from 0.

        ``identifier`` (int32), ``time`` (int64, milliseconds since 1970), ``cents`` (int64), and
        ``change`` (int64), the cents since the identifier's previous event; ``has_change`` (bool)
        is false for an identifier's first event. Ordered as ``identifiers``, then by time; the
        times of one identifier are distinct.

        Arrivals are Poisson, with a rate that is constant within a minute. A logarithmic
        price is the day's opening level (a random walk of identifiers and sectors), plus the
        sector's shocks so far, which all its identifiers share, plus a walk with one step per
        event. The steps have mean 0 but are skewed: mostly the price drifts one way, and
        occasionally jumps back. Two identifiers that drift in opposite directions make
        ``a.difference < b.difference`` rare or frequent: its probability ranges from about 0.01 to
        0.95 (0.002 to 0.88 in the paper).
        """
        from_day = max(0, first - 1)  # the first difference needs the previous day's price
        counts, uniform, steps = self._draw(identifiers, from_day, last)
        days = np.tile(np.arange(from_day, last), len(identifiers))
        run = np.repeat(np.arange(len(counts)), counts)
        begin = np.cumsum(counts) - counts

        # Sorted offsets plus their rank are a random set of *distinct* milliseconds.
        offsets = (uniform * (DAY_MILLISECONDS - counts)[run]).astype(np.int64)
        offsets = np.sort(run * DAY_MILLISECONDS + offsets) - run * DAY_MILLISECONDS
        offsets += np.arange(len(run)) - begin[run]

        row = np.repeat(np.arange(len(identifiers)), last - from_day)
        opening, weight, scale = self._of_identifiers(identifiers, last)
        walk = np.cumsum(np.rint(steps * scale[row[run]] / _GRAIN).astype(np.int64))
        walk -= np.concatenate([[0], walk])[begin][run]
        shocks = self._shocks(from_day, last)
        sector = self.sectors[identifiers]
        level = opening[row, days][run] + walk * _GRAIN
        minute = offsets // 60_000
        level += weight[row[run]] * shocks[days[run] - from_day, sector[row[run]], minute]
        cents = np.maximum(1, np.rint(np.exp(level) * 100).astype(np.int64))

        change = np.diff(cents, prepend=0)
        very_first = begin[days == 0]
        midnight = self.dates.astype("datetime64[ms]").astype(np.int64)
        has_change = np.ones(len(run), dtype=bool)
        has_change[very_first] = False
        found = {
            "identifier": identifiers[row[run]].astype(np.int32),
            "time": midnight[days[run]] + _OPENING_MILLISECONDS + offsets,
            "cents": cents,
            "change": np.where(has_change, change, 0),
            "has_change": has_change,
        }
        keep = days[run] >= first
        return {name: values[keep] for name, values in found.items()}

    def table(self, identifiers: np.ndarray, first: int, last: int) -> pa.Table:
        """The events of :meth:`events` in the stored columns.

        ``symbol``, ``ts`` (UTC), ``price`` and ``difference`` (dollars), ``sector``, and
        ``sequence``, which breaks ties of time.
        """
        found = self.events(identifiers, first, last)
        codes = found["identifier"]
        symbols = names_of(codes, self.symbols)
        sectors = names_of(self.sectors[codes], SECTORS)
        return pa.table(
            {
                "symbol": symbols,
                "ts": pa.array(found["time"]).cast(pa.timestamp("ms")),
                "price": found["cents"] / 100,
                "difference": pa.array(found["change"] / 100, mask=~found["has_change"]),
                "sector": sectors,
                "sequence": codes,
            }
        )

    def _generator(self, purpose: int, *index: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(purpose, *index)))

    def _draw(
        self, identifiers: np.ndarray, first: int, last: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of events, and their uniform times and standard steps, by identifier and day."""
        expected = self.rates * WINDOWS_PER_DAY
        counts: list[int] = []
        uniform, steps = [], []
        for identifier in identifiers.tolist():
            jump, noise, side = self._steps_of(identifier)
            deviation = (2 * (1 - jump) ** 2 / jump + (1 - jump) + noise**2) ** 0.5
            for day in range(first, last):
                seed = np.random.SeedSequence([self.seed, identifier, day])
                rng = np.random.Generator(np.random.PCG64(seed))
                arrived = self._arrived(identifier, day)
                # At least one, so that the previous day's price is known.
                count = max(1, int(rng.poisson(expected[identifier] * arrived[-1])))
                counts.append(count)
                times = rng.random(count)
                if len(arrived) > 2:  # inverse of the cumulative arrivals
                    times = np.interp(times * arrived[-1], arrived, np.linspace(0, 1, len(arrived)))
                uniform.append(times)
                step = np.where(
                    rng.random(count) < jump,
                    rng.standard_exponential(count) * ((1 - jump) / jump),
                    -1.0,
                )
                step += noise * rng.standard_normal(count)
                steps.append(step * (side / deviation))
        return np.array(counts), np.concatenate(uniform), np.concatenate(steps)

    def _arrived(self, identifier: int, day: int) -> np.ndarray:
        """Cumulative expected arrivals by minute of a day, as a fraction of a day of constant rate.

        Shape (minutes + 1,), beginning with 0; (2,) for a constant rate.
        """
        factors = [
            factor
            for name, factor in (
                ("drift", self._drifting),
                ("intraday", self._over_the_day),
                ("bursts", self.bursting),
            )
            if getattr(self, name) != 1.0
        ]
        if not factors:
            return np.array([0.0, 1.0])
        rate = np.prod([factor(identifier, day) for factor in factors], axis=0)
        return np.concatenate([[0.0], np.cumsum(rate) / _MINUTES])

    def _drifting(self, identifier: int, day: int) -> np.ndarray:
        """Rate in each minute of a day over the mean one, by drift."""
        segment = (day * _MINUTES + np.arange(_MINUTES)) // self.segment_minutes
        # Drawn from the first segment, so that a shorter stream is a prefix of a longer one.
        drawn = self._generator(_FOR_DRIFT, identifier).random(segment[-1] + 1)
        usual = (self.drift - 1 / self.drift) / (2 * np.log(self.drift))
        return np.asarray(self.drift ** (2 * drawn[segment] - 1) / usual)

    def _over_the_day(self, identifier: int, day: int) -> np.ndarray:
        """Rate in each minute of a day over the mean one, by the time of day."""
        from_noon = np.linspace(-1.0, 1.0, _MINUTES)
        rate = 1.0 + (self.intraday - 1.0) * from_noon**2
        return np.asarray(rate / rate.mean())

    def bursting(self, identifier: int, day: int) -> np.ndarray:
        """Rate in each minute of a day over the mean one, by the bursts of the sector."""
        sector = int(self.sectors[identifier])
        draws = self._generator(_FOR_BURSTS, sector, day).random(_MINUTES)
        ends = 1.0 / _BURST_MINUTES
        begins = ends * _BURSTING / (1.0 - _BURSTING)  # so that the share of bursts is stationary
        bursting = np.empty(_MINUTES, dtype=bool)
        now = draws[0] < _BURSTING
        for minute, draw in enumerate(draws):
            if minute:
                now = draw >= ends if now else draw < begins
            bursting[minute] = now
        mean = 1.0 + _BURSTING * (self.bursts - 1.0)
        return np.where(bursting, self.bursts, 1.0) / mean

    def _steps_of(self, identifier: int) -> tuple[float, float, float]:
        """Probability of jumps, noise, and sign (±1) of an identifier's price changes."""
        draw = self._generator(_FOR_IDENTIFIER, identifier).random(3)
        jump = _JUMPS[0] * (_JUMPS[1] / _JUMPS[0]) ** draw[0]
        noise = _NOISE[0] * (_NOISE[1] / _NOISE[0]) ** draw[1]
        return float(jump), float(noise), 1.0 if draw[2] < 0.5 else -1.0

    def _of_identifiers(
        self, identifiers: np.ndarray, days: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Logarithmic opening prices by day, weights of shocks, and sizes of steps."""
        opening = np.empty((len(identifiers), days))
        weight, scale = np.empty(len(identifiers)), np.empty(len(identifiers))
        of_sector = [
            self._generator(_FOR_DAYS, s).standard_normal(days) for s in range(len(SECTORS))
        ]
        for row, identifier in enumerate(identifiers.tolist()):
            rng = self._generator(_FOR_IDENTIFIER, identifier)
            rng.random(3)  # drawn in _steps_of
            weight[row] = rng.uniform(0.2, 1.2)
            per_day = self.rates[identifier] * WINDOWS_PER_DAY
            scale[row] = _WITHIN_DAY_DEVIATION * rng.lognormal(0, 0.4) / per_day**0.5
            start = rng.normal(3.6, 0.8)
            moves = rng.standard_normal(days) + weight[row] * of_sector[self.sectors[identifier]]
            moves[0] = 0.0
            opening[row] = start + np.cumsum(moves) * (_DAILY_DEVIATION / 2**0.5)
        return opening, weight, scale

    def _shocks(self, first: int, last: int) -> np.ndarray:
        """Cumulative shocks; float64, shape (days, sectors, minutes of a day)."""
        sums = np.empty((last - first, len(SECTORS), _MINUTES))
        for day in range(first, last):
            rng = self._generator(_FOR_SECTOR, day)
            size = rng.standard_normal((1 + len(SECTORS), _MINUTES)) * _SHOCK_DEVIATION
            market, sector = (self.shocks * usual for usual in _SHOCKS_PER_MINUTE)
            happens = rng.random(size.shape)
            shocks = np.where(happens[1:] < sector, size[1:], 0.0)
            shocks += np.where(happens[0] < market, size[0], 0.0)
            sums[day - first] = np.cumsum(shocks, axis=1)
        return sums
