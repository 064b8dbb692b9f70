"""A month of a web server's log, with the numbers that ZStream's web access experiment prints.

It stands for the log of [mei2009]_, section 6.5, which is not public: 1.5 million records from 22
February to 22 March 2009, with the accesses to publications, projects and courses of Table 4.
Every day has random numbers of its own, so fewer days are the beginning of more.

Differs from the paper
----------------------
Of the log only its size, its days, its columns and the numbers of Table 4 are known. Chosen here:
other pages are accessed too, the numbers of days and hours follow a week and a day, and visitors
and pages are drawn independently, by Zipf's law. A real visitor's accesses come in sessions.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property

import numpy as np
import pyarrow as pa

from cepbench.arguments import whole
from cepbench.seeds import counted_draws, uniform
from cepbench.streams.synthetic import SEED, GeneratedStream, names_of, parameter

FIRST_DAY, DAYS = date(2009, 2, 22), 29

#: Description -> accesses in the month, URL, number of pages. The first three: Table 4.
PAGES: dict[str, tuple[int, str, int]] = {
    "Publication": (6_775, "/publications/{}.pdf", 400),
    "Project": (11_610, "/projects/{}/", 40),
    "Course": (16_083, "/courses/{}/", 30),
    "Home": (150_000, "/", 1),
    "People": (215_532, "/people/{}/", 120),
    "Image": (1_100_000, "/images/{}.png", 2_000),
}

VISITORS = 50_000

#: Relative accesses by hour of the day, and by day of the week from Monday.
_HOURS = (6, 5, 4, 3, 3, 3, 4, 6, 9, 12, 14, 15, 15, 16, 17, 17, 16, 15, 13, 12, 11, 10, 9, 7)
_WEEK = (10, 11, 11, 11, 9, 6, 6)

# Purposes of random numbers.
_OF_COUNTS, _OF_RECORDS = range(2)


@dataclass(frozen=True)
class WebLog(GeneratedStream):
    """The records of the first days of the month, of which 29 are all."""

    kind = "web-log"
    required = ("days",)

    days: int = parameter(whole, DAYS, least=1, most=DAYS)
    seed: int = SEED(most=None)

    @property
    def notes(self) -> dict[str, str]:
        return {"days": f"the first {self.days} of {DAYS}, {FIRST_DAY:%d %B %Y} on"}

    @property
    def expected(self) -> float:
        return float(self.counts[: self.days].sum())

    @cached_property
    def counts(self) -> np.ndarray:
        """Records by day and description, all days; int64, shape (29, descriptions).

        Systematic sampling: rounding the cumulative number from a random start keeps the sum of
        the month exact.
        """
        weights = np.array([_WEEK[(FIRST_DAY.weekday() + day) % 7] for day in range(DAYS)])
        cumulative = np.concatenate([[0], np.cumsum(weights)]) / weights.sum()
        records = np.array([number for number, _, _ in PAGES.values()])
        start = uniform(counted_draws(self.seed, 0, len(PAGES), _OF_COUNTS)[:, 0])
        return np.diff(np.floor(cumulative[:, None] * records + start).astype(np.int64), axis=0)

    def files(self) -> dict[str, tuple[int]]:
        """A file for each day, counted from 0."""
        return {f"part-{day:05d}.parquet": (day,) for day in range(self.days)}

    def table(self, day: int) -> pa.Table:
        """The records of a day in the order of time, in the stored columns.

        ``symbol`` and ``Description`` (the kind of page), ``ts`` (UTC, whole seconds), ``IP
        address``, ``Access-URL``.
        """
        kinds = np.repeat(np.arange(len(PAGES), dtype=np.int32), self.counts[day])
        draws = counted_draws(self.seed, 0, len(kinds), _OF_RECORDS, day)
        hours = np.concatenate([[0], np.cumsum(_HOURS)]) / sum(_HOURS)
        moments = np.interp(uniform(draws[:, 0]), hours, np.arange(25) * 3600.0)
        order = np.argsort(moments, kind="stable")
        kinds, draws, moments = kinds[order], draws[order], moments[order]
        midnight = np.datetime64(FIRST_DAY, "ms") + np.timedelta64(day, "D")
        visitors, numbers = np.unique(_zipf(draws[:, 1], VISITORS), return_inverse=True)
        urls, firsts, sizes = _urls()
        pages = np.empty(len(kinds), np.int32)
        for kind in range(len(PAGES)):
            inside = kinds == kind
            pages[inside] = firsts[kind] + _zipf(draws[inside, 2], sizes[kind])
        described = names_of(kinds, PAGES)
        return pa.table(
            {
                "symbol": described,
                "ts": midnight + (1000 * moments.astype(np.int64)).astype("m8[ms]"),
                "IP address": names_of(numbers, map(_address, visitors.tolist())),
                "Access-URL": names_of(pages, urls),
                "Description": described,
            }
        )


@cache
def _zipf_shares(size: int) -> np.ndarray:
    shares = np.cumsum(1.0 / np.arange(1, size + 1))
    return np.asarray(shares / shares[-1])


def _zipf(bits: np.ndarray, size: int) -> np.ndarray:
    """Ranks from 0, of frequencies 1, 1/2, 1/3, …"""
    return np.searchsorted(_zipf_shares(size), uniform(bits), side="right")


def _address(visitor: int) -> str:
    """An address of the private network 10.0.0.0/8, different for each visitor."""
    # An odd factor permutes the residues of a power of two.
    host = (visitor + 1) * 0x9E3779B1 % 2**24
    return f"10.{host >> 16}.{host >> 8 & 255}.{host & 255}"


@cache
def _urls() -> tuple[list[str], list[int], list[int]]:
    """URLs of all pages, and by description the first one's index and their number."""
    urls: list[str] = []
    firsts, sizes = [], []
    for _, form, size in PAGES.values():
        firsts.append(len(urls))
        sizes.append(size)
        urls += [form.format(page + 1) for page in range(size)]
    return urls, firsts, sizes
