"""The patterns of ``bench_peers.py``, and how DuckDB, ClickHouse, Polars and NumPy find their matches.

All have a table for each type of events in the order of time, in memory before the clock starts: ``id``, ``ts``
in seconds, ``x`` and ``k``; ClickHouse has one with a dictionary of types. Two events of a match are less than a window apart: a join of neighbouring *buckets* of time,
each as long as the window, is an equality join. In the order of time the partners of an event are a *range* of
rows between two binary searches, which Polars and NumPy list and then test. What must not happen in between is
bounded by the next event of its type, by an as-of join; neighbours in a partition are window functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from polars_frames import each_between, pl, rows_until

#: Later than all events.
NEVER = 1 << 40


@dataclass(frozen=True)
class Task:
    """A pattern, ``{}`` for the seconds of its window, and the steps in which others join it.

    Attributes
    ----------
    name, text : str
    steps : tuple of (str, str, str, str)
        Variable, type, condition on the event, and condition on it and those before (``x`` of ``a`` is
        ``a_x``); in SQL, empty for none.
    in_order : bool
        Whether each event comes after the one before.
    key : bool
        Whether all events have one ``k``.
    forbidden : (str, str), optional
        Type and condition of events that must not come between the first and the second.
    """

    name: str
    text: str
    steps: tuple[tuple[str, str, str, str], ...] = ()
    in_order: bool = True
    key: bool = False
    forbidden: tuple[str, str] | None = None

    @property
    def names(self) -> list[str]:
        """The variables of a match."""
        return [name for name, *_ in self.steps]


_RARE = "x < 0.02"
_SEQUENCE = (("a", "A", "", ""), ("b", "B", "", "a_x + 0.95 < b_x"), ("c", "C", "", "b_x < c_x"))
_OF_RARE = tuple((name, name.upper(), _RARE, "") for name in "abc")

TASKS = (
    Task(
        "condition",
        "PATTERN SEQ(A a, B b, C c) WHERE a.x + 0.95 < b.x AND b.x < c.x WITHIN {} units",
        _SEQUENCE,
    ),
    Task(
        "constants",
        "PATTERN SEQ(A a, B b, C c) WHERE a.x < 0.02 AND b.x < 0.02 AND c.x < 0.02 WITHIN {} units",
        _OF_RARE,
    ),
    Task(
        "AND",
        "PATTERN AND(A a, B b, C c) WHERE a.x + 0.95 < b.x AND b.x < c.x WITHIN {} units",
        _SEQUENCE,
        in_order=False,
    ),
    Task(
        "inner NOT",
        "PATTERN SEQ(A a, NOT(B n), C c) WHERE a.x < 0.1 AND n.x < 0.1 AND c.x < 0.1 WITHIN {} units",
        (("a", "A", "x < 0.1", ""), ("c", "C", "x < 0.1", "")),
        forbidden=("B", "x < 0.1"),
    ),
    Task(
        "Kleene",
        "PATTERN SEQ(A a, KL(B b), C c) WHERE a.x < 0.02 AND b.x < 0.02 AND c.x < 0.02 WITHIN {} units",
    ),
    Task(
        "keyed",
        "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x < b.x AND b.x < c.x WITHIN {} units",
        (("a", "A", "", ""), ("b", "B", "", "a_x < b_x"), ("c", "C", "", "b_x < c_x")),
        key=True,
    ),
    Task(
        "neighbours",
        "PATTERN SEQ(ANY a, ANY b, ANY c) WHERE a.x < b.x AND b.x < c.x "
        "STRATEGY partition_contiguity(k) WITHIN {} units",
    ),
)

#: Of SQL: a list as rows, the bucket of a time, and the next row of its partition.
_WORDS = {
    "duckdb": ("unnest([{}])", "{} // {}", "lead({0}, {1}) OVER w"),
    "clickhouse": (
        "arrayJoin([{}])",
        "intDiv({}, {})",
        "leadInFrame({0}, {1}, 0) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ),
}


def in_sql(task: Task, window: int, dialect: str) -> str:
    """The query of a task for ids; "" if there is none."""
    listed, bucket, lead = _WORDS[dialect]
    if task.name == "neighbours":
        later = ", ".join(
            f"{lead.format(column, places)} AS {variable}_{column}"
            for places, variable in ((1, "b"), (2, "c"))
            for column in ("id", "ts", "x")
        )
        return (
            f"SELECT id, b_id, c_id FROM (SELECT id, ts, x, {later} FROM events "
            "WINDOW w AS (PARTITION BY k ORDER BY id)) WHERE x < b_x AND b_x < c_x "
            f"AND ts < b_ts AND b_ts < c_ts AND c_ts - ts <= {window}"
        )
    parts: list[str] = []
    by_type = dialect == "duckdb"
    for place, (name, kind, where, on) in enumerate(task.steps):
        columns = ", ".join(f"{column} AS {name}_{column}" for column in ("id", "ts", "x"))
        key = ", k" if task.key else ""
        source = _source(kind, where, by_type=by_type)
        if not place:
            its = f"SELECT {columns}{key} FROM {source}"
            if task.forbidden:
                forbidden = _source(*task.forbidden, by_type=by_type)
                its = (
                    f"SELECT f.*, CASE WHEN n.ts > 0 THEN n.ts ELSE {NEVER} END AS until "
                    f"FROM (SELECT {columns}, 1 AS one FROM {source}) f ASOF LEFT JOIN "
                    f"(SELECT ts, 1 AS one FROM {forbidden}) n "
                    f"ON f.one = n.one AND f.{name}_ts < n.ts"
                )
            parts.append(f"r0 AS ({its})")
            continue
        first, before = task.names[0], task.names[place - 1]
        earliest, latest, times = f"{first}_ts", f"{before}_ts", f"{name}_ts"
        buckets = (0, 1)
        if not task.in_order:
            all_before = ", ".join(f"{its}_ts" for its in task.names[:place])
            earliest = latest = all_before
            if place > 1:
                earliest, latest = f"least({all_before})", f"greatest({all_before})"
            buckets = (-1, 0, 1)
            timed = f"{times} <= {earliest} + {window} AND {times} >= {latest} - {window}"
        else:
            timed = f"{times} > {latest} AND {times} <= {earliest} + {window}"
        if task.forbidden:
            timed += f" AND {times} <= until"
        of = bucket.format(earliest, window)
        spread = listed.format(", ".join(f"{of} + {shift}" for shift in buckets))
        parts.append(
            f"r{place} AS (SELECT * FROM (SELECT *, {spread} AS bucket{place} FROM r{place - 1}) l "
            f"JOIN (SELECT {columns}{key}, {bucket.format('ts', window)} AS bucket{place} "
            f"FROM {source}) r USING (bucket{place}{key}) "
            f"WHERE {timed}{f' AND {on}' if on else ''})"
        )
    shown = ", ".join(f"{name}_id" for name in task.names)
    return f"WITH {', '.join(parts)} SELECT {shown} FROM r{len(parts) - 1}" if parts else ""


def _source(kind: str, where: str, *, by_type: bool) -> str:
    """The events of a type, in a table of their own or not, that satisfy a condition."""
    tests = [*([] if by_type else [f"type = '{kind}'"]), *([where] if where else [])]
    table = kind if by_type else "events"
    return f"{table} WHERE {' AND '.join(tests)}" if tests else table


Tables = Mapping[str, pl.DataFrame]


def in_polars(task: Task, window: int, tables: Tables) -> Iterator[tuple[str, pl.LazyFrame]]:
    """The names of ways in which Polars finds the ids, and the frames."""
    if task.name == "neighbours":
        later = {
            f"{variable}_{column}": pl.col(column).shift(-places).over("k")
            for places, variable in ((1, "b"), (2, "c"))
            for column in ("id", "ts", "x")
        }
        rising = pl.sql_expr(
            f"x < b_x AND b_x < c_x AND ts < b_ts AND b_ts < c_ts AND c_ts - ts <= {window}"
        )
        events = tables["events"].lazy().with_columns(**later)
        yield "shift", events.filter(rising).select("id", "b_id", "c_id")
    elif task.steps:
        shown = [f"{name}_id" for name in task.names]
        yield "buckets", _joined(task, window, tables, ranges=False).select(shown)
        if not task.key:
            yield "ranges", _joined(task, window, tables, ranges=True).select(shown)


def _joined(task: Task, window: int, tables: Tables, *, ranges: bool) -> pl.LazyFrame:
    rows = pl.LazyFrame()
    for place, (name, kind, where, on) in enumerate(task.steps):
        table = tables[kind]
        if where:
            table = table.filter(pl.sql_expr(where))
        table = table.set_sorted("ts")
        renamed = {column: f"{name}_{column}" for column in ("id", "ts", "x")}
        if not place:
            rows = table.lazy().rename(renamed)
            if task.forbidden:
                other, forbidden = task.forbidden
                next_ones = (
                    tables[other].filter(pl.sql_expr(forbidden)).select(until="ts", its="ts")
                )
                rows = rows.join_asof(
                    next_ones.set_sorted("its").lazy(), left_on=f"{name}_ts", right_on="its",
                    strategy="forward", allow_exact_matches=False,
                ).with_columns(pl.col("until").fill_null(NEVER))  # fmt: skip
            continue
        times = [pl.col(f"{its}_ts") for its in task.names[:place]]
        if task.in_order:
            begin, end = times[-1] + 1, times[0] + window
        else:
            begin, end = pl.max_horizontal(times) - window, pl.min_horizontal(times) + window
        if task.forbidden:
            end = pl.min_horizontal(end, "until")
        its_time = pl.col(f"{name}_ts")
        if ranges:
            rows = each_between(
                rows,
                table,
                rows_until(table, begin, including=False),
                rows_until(table, end, including=True),
                **{new: table[old] for old, new in renamed.items()},
            )
        else:
            low, shifts = (
                pl.min_horizontal(times) // window,
                (0, 1) if task.in_order else (-1, 0, 1),
            )
            keys = ["bucket", "k"] if task.key else ["bucket"]
            of = table.lazy().rename(renamed).with_columns(bucket=its_time // window)
            rows = (
                rows.with_columns(bucket=pl.concat_list([low + shift for shift in shifts]))
                .explode("bucket")
                .join(of if task.key else of.drop("k"), on=keys)
                .filter((its_time >= begin) & (its_time <= end))
            )
        if on:
            rows = rows.filter(pl.sql_expr(on))
    return rows


#: Pairs that NumPy lists at a time, some that fit the processor's caches.
_PAIRS = 1 << 18

#: By type the columns, and those of all events.
Arrays = Mapping[str, Mapping[str, np.ndarray]]


def in_numpy(task: Task, window: int, arrays: Arrays) -> np.ndarray | None:
    """The ids of each match, a row a variable; None if this is written for no such pattern."""
    if task.name == "neighbours":
        its = arrays["events"]
        order = np.argsort(its["k"], kind="stable")
        k, ts, x, ids = (its[column][order] for column in ("k", "ts", "x", "id"))
        rises = (x[:-1] < x[1:]) & (k[:-1] == k[1:]) & (ts[:-1] < ts[1:])
        first = np.flatnonzero(rises[:-1] & rises[1:])
        first = first[ts[first + 2] - ts[first] <= window]
        return np.stack([ids[first], ids[first + 1], ids[first + 2]])
    if not task.steps or task.key:
        return None
    fitting = []
    for _, kind, where, _ in task.steps:
        its = arrays[kind]
        kept = _holds(where, its) if where else slice(None)
        fitting.append({column: its[column][kept] for column in ("id", "ts", "x")})
    first, second = fitting[:2]
    if task.forbidden:
        other = arrays[task.forbidden[0]]
        times = np.append(other["ts"][_holds(task.forbidden[1], other)], NEVER)
        first["until"] = times[np.searchsorted(times, first["ts"], "right")]
    span = (2 - task.in_order) * window
    near = len(second["ts"]) * span / max(1, np.ptp(arrays["events"]["ts"]))
    size = max(1, int(_PAIRS / max(1.0, near)))
    parts = [
        _in_numpy(
            task,
            window,
            [{column: its[at : at + size] for column, its in first.items()}, *fitting[1:]],
        )
        for at in range(0, max(1, len(first["ts"])), size)
    ]
    return np.concatenate(parts, axis=1)


def _in_numpy(task: Task, window: int, fitting: list[dict[str, np.ndarray]]) -> np.ndarray:
    """The ids of the matches of some events of the first variable, given those that fit each."""
    rows: dict[str, np.ndarray] = {}
    for place, ((name, _, _, on), its) in enumerate(zip(task.steps, fitting, strict=True)):
        if not place:
            rows = {f"{name}_{column}": values for column, values in its.items()}
            continue
        before = [rows[f"{its}_ts"] for its in task.names[:place]]
        if task.in_order:
            begin, end = before[-1] + 1, before[0] + window
        else:
            begin, end = np.max(before, axis=0) - window, np.min(before, axis=0) + window
        if task.forbidden:
            end = np.minimum(end, rows[f"{task.names[0]}_until"])
        low, high = np.searchsorted(its["ts"], begin), np.searchsorted(its["ts"], end, "right")
        lengths = np.maximum(high - low, 0)
        left = np.repeat(np.arange(len(lengths)), lengths)
        right = np.arange(len(left)) + np.repeat(low - (np.cumsum(lengths) - lengths), lengths)
        if on:
            # Only what the condition reads is gathered before it.
            tested = {
                column: rows[column][left] if column in rows else its["x"][right]
                for column in re.findall(r"\w+_x", on)
            }
            passes = _holds(on, tested)
            left, right = left[passes], right[passes]
        rows = {column: values[left] for column, values in rows.items()}
        rows |= {f"{name}_{column}": its[column][right] for column in ("id", "ts", "x")}
    return np.stack([rows[f"{name}_id"] for name in task.names])


def _holds(condition: str, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Where ``left < right`` holds, whose sides are sums of columns and numbers."""
    left, right = (
        sum(
            float(term) if term[0].isdigit() else columns[term]  # type: ignore[misc]
            for term in side.split(" + ")
        )
        for side in condition.split(" < ")
    )
    return np.asarray(left < right)
