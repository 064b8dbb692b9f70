"""The patterns of ``bench_detection.py`` and how others find their matches, the best that we found.

All get one table a symbol, sorted by time: ``position`` (of 32 bits), ``ts`` in milliseconds, and
``d``. The queries here are DuckDB's. A join on time alone compares all pairs; dividing time into
buckets as long as the window makes it a hash join of neighbouring buckets. Cepbench counts matches
at the root of a plan without listing them, and so may everybody: where an event is compared with
nothing but time, running counts (of rows up to a time, found by as-of joins) tell how many there
are; of pairs that have to meet within the window, running counts of their ends do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from numpy_counts import COUNTS, Arrays
from polars_frames import FRAMES, Frame

import cepbench as cep


@dataclass(frozen=True)
class Query:
    """A query with ``{shown}`` for what it shows: the number of rows, or the positions."""

    text: str
    positions: str = ""

    @property
    def counting(self) -> str:
        """The query for the number of matches."""
        return self.text.format(shown="count(*)")

    @property
    def listing(self) -> str | None:
        """The query for positions; None if it can only count."""
        return self.text.format(shown=self.positions) if self.positions else None


@dataclass(frozen=True)
class Task:
    """A pattern, and ways to find its matches.

    Attributes
    ----------
    name, text : str
    queries : dict of str to Query
        For DuckDB, by name.
    frames : dict of str to Frame
        For Polars, by name.
    counts : callable, optional
        For NumPy: from arrays to the number of matches.
    """

    name: str
    text: str
    queries: dict[str, Query] = field(default_factory=dict)
    frames: dict[str, Frame] = field(default_factory=dict)
    counts: Callable[[Arrays], int] | None = None

    @cached_property
    def pattern(self) -> cep.Pattern:
        """The parsed pattern."""
        return cep.parse(self.text)


#: Pairs of a and c, and of b and d, of P4.
_PAIRS = """
    a AS (SELECT *, ts // 120000 k FROM s1),
    b AS (SELECT *, ts // 120000 k FROM s3),
    c AS (SELECT *, unnest([ts // 120000 - 1, ts // 120000, ts // 120000 + 1]) k FROM s5),
    d AS (SELECT *, unnest([ts // 120000 - 1, ts // 120000, ts // 120000 + 1]) k FROM s7),
    ac AS (SELECT a.position pa, c.position pc, k, least(a.ts, c.ts) low, greatest(a.ts, c.ts) high
           FROM a JOIN c USING (k)
           WHERE c.ts BETWEEN a.ts - 120000 AND a.ts + 120000 AND a.d < c.d),
    bd AS (SELECT b.position pb, d.position pd, least(b.ts, d.ts) low, greatest(b.ts, d.ts) high
           FROM b JOIN d USING (k)
           WHERE d.ts BETWEEN b.ts - 120000 AND b.ts + 120000 AND b.d < d.d)"""

TASKS = (
    Task(
        "P3",
        "PATTERN SEQ(s3 a, s6 b, s9 c) WHERE a.difference < b.difference WITHIN 5 minutes",
        {
            "buckets": Query(
                """
                WITH a AS (SELECT *, unnest([ts // 300000, ts // 300000 + 1]) k FROM s3),
                     b AS (SELECT *, ts // 300000 k FROM s6),
                     c AS (SELECT *, ts // 300000 k FROM s9),
                     ab AS (SELECT a.position pa, b.position pb, a.ts ta, b.ts tb,
                                   unnest([k, k + 1]) k
                            FROM a JOIN b USING (k)
                            WHERE b.ts > a.ts AND b.ts <= a.ts + 300000 AND a.d < b.d)
                SELECT {shown} FROM ab JOIN c USING (k)
                WHERE c.ts > tb AND c.ts <= ta + 300000""",
                "pa AS a, pb AS b, c.position AS c",
            ),
            "running counts": Query(
                """
                WITH c AS (SELECT ts, max(rowid) + 1 n FROM s9 GROUP BY ts),
                     a AS (SELECT s3.ts, d, coalesce(n, 0) n,
                                  unnest([s3.ts // 300000, s3.ts // 300000 + 1]) k
                           FROM s3 ASOF LEFT JOIN c ON s3.ts + 300000 >= c.ts),
                     b AS (SELECT s6.ts, d, coalesce(n, 0) n, s6.ts // 300000 k
                           FROM s6 ASOF LEFT JOIN c ON s6.ts >= c.ts)
                SELECT sum(a.n - b.n) FROM a JOIN b USING (k)
                WHERE b.ts > a.ts AND b.ts <= a.ts + 300000 AND a.d < b.d"""
            ),
        },
        FRAMES["P3"],
        COUNTS["P3"],
    ),
    Task(
        "P4",
        "PATTERN AND(s1 a, s3 b, s5 c, s7 d) "
        "WHERE a.difference < c.difference AND b.difference < d.difference WITHIN 2 minutes",
        {
            "buckets": Query(
                f"""
                WITH {_PAIRS},
                acb AS (SELECT pa, pc, b.position pb, k, least(low, ts) low,
                               greatest(high, ts) high, d bd
                        FROM (SELECT * REPLACE (unnest([k - 1, k, k + 1]) AS k) FROM ac)
                        JOIN b USING (k)
                        WHERE ts BETWEEN high - 120000 AND low + 120000)
                SELECT {{shown}} FROM acb JOIN d USING (k)
                WHERE d.ts BETWEEN high - 120000 AND low + 120000 AND bd < d.d""",
                "pa AS a, pb AS b, pc AS c, d.position AS d",
            ),
            "pairs of pairs": Query(
                f"""
                WITH {_PAIRS},
                p AS (SELECT * REPLACE (low // 120000 AS k) FROM ac),
                q AS (SELECT *, unnest([low // 120000 - 1, low // 120000, low // 120000 + 1]) k
                      FROM bd)
                SELECT {{shown}} FROM p JOIN q USING (k)
                WHERE greatest(p.high, q.high) - least(p.low, q.low) <= 120000""",
                "pa AS a, pb AS b, pc AS c, pd AS d",
            ),
            # Pairs of b and d that end in time, without those that begin too early: none of these
            # ends too late.
            "running counts": Query(
                f"""
                WITH {_PAIRS},
                ends AS (SELECT high, sum(count(*)) OVER (ORDER BY high) n FROM bd GROUP BY high),
                begins AS (SELECT low, sum(count(*)) OVER (ORDER BY low) n FROM bd GROUP BY low),
                last AS (SELECT low + 120000 t, count(*) m FROM ac GROUP BY low),
                first AS (SELECT high - 120000 t, count(*) m FROM ac GROUP BY high)
                SELECT (SELECT sum(m * n) FROM last ASOF JOIN ends ON t >= high)
                     - coalesce((SELECT sum(m * n) FROM first ASOF JOIN begins ON t > low), 0)"""
            ),
        },
        FRAMES["P4"],
        COUNTS["P4"],
    ),
    Task(
        "P5",
        "PATTERN SEQ(s0 a, s2 b, s4 c, s6 d, s8 e) "
        "WHERE a.difference < b.difference AND c.difference < e.difference WITHIN 1 minutes",
        {
            "buckets": Query(
                """
                WITH a AS (SELECT *, unnest([ts // 60000, ts // 60000 + 1]) k FROM s0),
                     b AS (SELECT *, ts // 60000 k FROM s2),
                     c AS (SELECT *, ts // 60000 k FROM s4),
                     d AS (SELECT *, ts // 60000 k FROM s6),
                     e AS (SELECT *, ts // 60000 k FROM s8),
                     ab AS (SELECT a.position pa, b.position pb, a.ts ta, b.ts tb,
                                   unnest([k, k + 1]) k
                            FROM a JOIN b USING (k)
                            WHERE b.ts > a.ts AND b.ts <= a.ts + 60000 AND a.d < b.d),
                     abc AS (SELECT pa, pb, position pc, ta, ts tc, d dc, unnest([k, k + 1]) k
                             FROM ab JOIN c USING (k) WHERE ts > tb AND ts <= ta + 60000),
                     abcd AS (SELECT pa, pb, pc, position pd, ta, ts td, dc, unnest([k, k + 1]) k
                              FROM abc JOIN d USING (k) WHERE ts > tc AND ts <= ta + 60000)
                SELECT {shown} FROM abcd JOIN e USING (k)
                WHERE ts > td AND ts <= ta + 60000 AND dc < d""",
                "pa AS a, pb AS b, pc AS c, pd AS d, position AS e",
            ),
            "running counts": Query(
                """
                WITH n AS (SELECT ts, max(rowid) + 1 n FROM s6 GROUP BY ts),
                     a AS (SELECT *, unnest([ts // 60000, ts // 60000 + 1]) k FROM s0),
                     b AS (SELECT *, ts // 60000 k FROM s2),
                     c AS (SELECT s4.ts, d, coalesce(n, 0) n, s4.ts // 60000 k
                           FROM s4 ASOF LEFT JOIN n ON s4.ts >= n.ts),
                     e AS (SELECT s8.ts, d, coalesce(n, 0) n, s8.ts // 60000 k
                           FROM s8 ASOF LEFT JOIN n ON s8.ts > n.ts),
                     ab AS (SELECT a.ts ta, b.ts tb, unnest([k, k + 1]) k
                            FROM a JOIN b USING (k)
                            WHERE b.ts > a.ts AND b.ts <= a.ts + 60000 AND a.d < b.d),
                     abc AS (SELECT ta, ts tc, d dc, n, unnest([k, k + 1]) k
                             FROM ab JOIN c USING (k) WHERE ts > tb AND ts <= ta + 60000)
                SELECT sum(e.n - abc.n) FROM abc JOIN e USING (k)
                WHERE ts > tc AND ts <= ta + 60000 AND dc < d"""
            ),
        },
        FRAMES["P5"],
        COUNTS["P5"],
    ),
)
