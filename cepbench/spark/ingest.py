"""Ingesting source files into a data set, as Spark jobs or in this process; malformed rows are quarantined."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark import TaskContext
from pyspark.sql import SparkSession

from cepbench.errors import DatasetError
from cepbench.files import user_path
from cepbench.markup import Html
from cepbench.patterns.concepts import ConceptHierarchy, hierarchy_from
from cepbench.spark.jobs import run_job, watched
from cepbench.streams.dataset_folder import (
    MONTH,
    QUARANTINE,
    STAGING,
    Declaration,
    discard_unfinished,
    finish_dataset,
    unfinished_dataset,
)
from cepbench.streams.parquet_files import table_writer, under_hierarchy
from cepbench.streams.sources import (
    BAD_ROWS,
    LOBSTER,
    MINUTE_BARS,
    SourceFormat,
    lobster_day,
    price_steps,
    read_rows,
    source_files,
)

#: Offset of ``sequence`` between files.
_FILE_ROWS = 1 << 40

#: What events of a partition are sorted by.
_ORDER = ("symbol", "ts", "sequence")

#: Events per task that sorts and writes.
_TASK_EVENTS = 2_000_000

#: Up to this size of all files together, a process alone ends before Spark has started.
HERE_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class FileReport:
    """Rows of one source file: events, quarantined, and their sum."""

    name: str
    rows: int
    events: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The result of an ingest: the data set's path and declaration."""

    path: Path
    declaration: Declaration

    @property
    def files(self) -> tuple[FileReport, ...]:
        """One report per source file."""
        return tuple(FileReport(**report) for report in self.declaration.notes["files"])

    @property
    def reasons(self) -> Mapping[str, int]:
        """Reason → number of rows quarantined for it."""
        return self.declaration.notes["reasons"]

    @property
    def events(self) -> int:
        """The number of events."""
        return self.declaration.events

    @property
    def quarantined(self) -> int:
        """The number of malformed rows."""
        return sum(file.quarantined for file in self.files)

    @property
    def warning(self) -> str:
        """That most rows of a file are malformed, which is unlikely for files of this kind; or empty."""
        for file in self.files:
            if file.quarantined > file.events:
                reason = next(iter(self.reasons))
                return (
                    f"{file.quarantined:,} of the {file.rows:,} rows of {file.name} are no "
                    f"{self.declaration.kind} (most often: {reason}); check that it is such a file"
                )
        return ""

    def quarantine(self) -> pd.DataFrame:
        """The malformed rows: file, row number (from 1), text, reason."""
        return ds.dataset(self.path / QUARANTINE, format="parquet").to_table().to_pandas()

    def describe(self) -> str:
        """A line for the total, one per file, and one per reason."""
        lines = [
            f"{self.events:,} events of {len(self.declaration.counts)} types in {self.path}; "
            f"{self.quarantined:,} rows in quarantine"
        ]
        lines += [
            f"  {file.name}: {file.rows:,} rows, {file.events:,} events, "
            f"{file.quarantined:,} in quarantine"
            for file in self.files
        ]
        lines += [f"  {count:,} × {reason}" for reason, count in self.reasons.items()]
        lines += filter(None, [self.warning])
        return "\n".join(lines)

    __str__ = __repr__ = describe

    def _repr_html_(self) -> str:
        return str(_PAGE(report=self, heading=self.describe().splitlines()[0]))


_PAGE = Html(
    """<p>{{ heading }}</p>
<table><tr><th>file</th><th>rows</th><th>events</th><th>in quarantine</th></tr>
{% for file in report.files %}
<tr><td>{{ file.name }}</td>
{% for number in (file.rows, file.events, file.quarantined) %}
<td>{{ "{:,}".format(number) }}</td>{% endfor %}</tr>
{% endfor %}
</table>
<ul>{% for reason, count in report.reasons.items() %}
<li>{{ "{:,}".format(count) }} × {{ reason }}</li>{% endfor %}</ul>"""
)


def ingest_minute_bars(
    spark: SparkSession | None,
    files: str | Path | Iterable[str | Path],
    path: str | Path,
    *,
    sort: bool = False,
    hierarchy: ConceptHierarchy | None = None,
    progress: bool = True,
) -> IngestReport:
    """Ingest one-minute bars, ``ticker,YYYYMMDDhhmm,open,high,low,close,volume``.

    Parameters
    ----------
    spark : SparkSession, optional
        None ingests in this process, which is faster up to about :data:`HERE_BYTES`.
    files : path or iterable of paths
        Text files without a header, plain or gzip-compressed. Events of equal time are in the order
        of files and rows.
    path : path
        Folder of the data set, on a file system that all workers share, as are the files.
    sort : bool
        Whether rows may be in any order of time; otherwise a row earlier than a preceding good row
        is quarantined.
    hierarchy : ConceptHierarchy, optional
        The concepts above the tickers, which the files then state.
    progress : bool
        Whether to show a progress bar after a few seconds.

    Returns
    -------
    IngestReport
        With the numbers of events and quarantined rows, by file and reason. A complete data set
        from the same files, under the same hierarchy, is kept.

    Raises
    ------
    DatasetError
        If a file cannot be opened, or its first rows are of another kind, if no row is valid, if the
        folder has other content, or another process writes there.

    Notes
    -----
    Columns: ``symbol``, ``ts`` (as in the file, interpreted as UTC), ``open``, ``high``, ``low``,
    ``close``, ``volume``, ``price`` (the close), ``difference`` (to the ticker's previous bar;
    missing in the first) and ``sequence``.
    """
    sources = [(file, None) for file in source_files(files, MINUTE_BARS)]
    return _ingest(spark, MINUTE_BARS, sources, path, sort, hierarchy, progress)


def ingest_lobster(
    spark: SparkSession | None,
    files: str | Path | Iterable[str | Path],
    path: str | Path,
    *,
    date: date | None = None,
    sort: bool = False,
    hierarchy: ConceptHierarchy | None = None,
    progress: bool = True,
) -> IngestReport:
    """Ingest order-book messages of one instrument in LOBSTER's format.

    Parameters
    ----------
    spark, files, path, sort, hierarchy, progress
        See :func:`ingest_minute_bars`.
    date : date, optional
        The day of the messages; by default taken from each file's name, as in LOBSTER's files.

    Raises
    ------
    DatasetError
        See :func:`ingest_minute_bars`; also if a file's day is unknown.

    Notes
    -----
    Columns: ``symbol``, the message type and direction, such as ``submission_buy``; ``ts``, with
    nanoseconds (as in the file, interpreted as UTC; further digits are rounded); ``order_id``,
    ``size``, ``price`` in dollars, ``difference`` (to the previous message of the same type and
    direction) and ``sequence``. Messages without an order (auctions, trading halts) are
    quarantined.
    """
    dated = [(file, lobster_day(file, date)) for file in source_files(files, LOBSTER)]
    return _ingest(spark, LOBSTER, dated, path, sort, hierarchy, progress)


def _ingest(
    spark: SparkSession | None,
    form: SourceFormat,
    files: Sequence[tuple[Path, date | None]],
    path: str | Path,
    sort: bool,
    hierarchy: ConceptHierarchy | None,
    progress: bool,
) -> IngestReport:
    path = user_path(path).resolve()
    stored = _stored(form, hierarchy_from(hierarchy))
    parameters: dict[str, Any] = {
        "files": [
            {"name": file.name, "sha256": _digest(file), "date": day and day.isoformat()}
            for file, day in files
        ],
        "sort": sort,
    }
    if hierarchy is not None:
        parameters["hierarchy"] = {name: list(its) for name, its in hierarchy.mapping.items()}
    with unfinished_dataset(path, kind=form.kind, parameters=parameters) as declaration:
        if declaration is None:
            items = [(number, file, day) for number, (file, day) in enumerate(files)]
            stage = partial(_stage, form, path, sort)
            if spark is None:
                found = [stage(item) for item in items]
            else:
                found = run_job(spark, stage, items, name="ingest", progress=progress)
            reports = [report for report, _ in found]
            reasons = sum((counts for _, counts in found), Counter())
            events = sum(report.events for report in reports)
            if not events:
                problem = _without_events(form, path, reports)
                discard_unfinished(path)
                raise problem
            if spark is None:
                counts = _write_here(stored, path)
            else:
                counts = _write_events(spark, stored, path, events, progress)
            declaration = Declaration(
                kind=form.kind,
                parameters=parameters,
                events=sum(counts.values()),
                counts=counts,
                columns={field.name: str(field.type) for field in stored},
                notes={
                    "files": [asdict(report) for report in reports],
                    "reasons": dict(reasons.most_common()),
                },
            )
            finish_dataset(path, declaration)
    return IngestReport(path, declaration)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _stored(form: SourceFormat, hierarchy: ConceptHierarchy | None) -> pa.Schema:
    """The columns of the data set, with the concepts above its types."""
    fields = [field for field in form.schema if field.name != "row"]
    fields = [*fields, pa.field("difference", pa.float64()), pa.field("sequence", pa.int64())]
    schema = pa.schema(fields)
    return schema if hierarchy is None else under_hierarchy(schema.empty_table(), hierarchy).schema


def _stage(
    form: SourceFormat, path: Path, sort: bool, item: tuple[int, Path, date | None]
) -> tuple[FileReport, Counter[str]]:
    """Split a file's rows into events and quarantined ones; in a Spark worker."""
    number, file, day = item
    # Spark has no nanoseconds, so times pass through it as integers.
    staged = form.schema.set(1, pa.field("ts", pa.int64())).append(pa.field("sequence", pa.int64()))
    kept = pa.schema([("file", pa.string()), *BAD_ROWS])
    name = f"file-{number:05d}.parquet"
    reasons: Counter[str] = Counter()
    events = bad = 0

    with (
        table_writer(path / STAGING / name, staged) as good_rows,
        table_writer(path / QUARANTINE / name, kept) as bad_rows,
    ):
        for rows in read_rows(file, form, day=day, sort=sort):
            moments = rows.events.column("ts").cast(pa.timestamp("ns")).cast(pa.int64())
            sequence = pc.add(rows.events.column("row"), number * _FILE_ROWS)
            table = rows.events.set_column(1, "ts", moments)
            good_rows(table.append_column("sequence", sequence))
            names = pa.array([file.name] * len(rows.bad), pa.string())
            bad_rows(rows.bad.add_column(0, "file", names))
            events, bad = events + len(rows.events), bad + len(rows.bad)
            reasons.update(
                re.sub(r"row \d+", "a row", text) for text in rows.bad.column("reason").to_pylist()
            )
    return FileReport(file.name, events + bad, events, bad), reasons


def _without_events(form: SourceFormat, path: Path, reports: Sequence[FileReport]) -> DatasetError:
    """That no row is valid, with the first one."""
    names = ", ".join(report.name for report in reports)
    rows = ds.dataset(path / QUARANTINE, format="parquet").head(1).to_pylist()
    seen = (
        "there are no rows"
        if not rows
        else f"the first is {rows[0]['text'][:80]!r} ({rows[0]['reason']})"
    )
    return DatasetError(
        f"no row of {names} is valid, so nothing was written: {seen}; a row of {form.kind} is "
        f"{form.line}"
    )


def _write_here(schema: pa.Schema, path: Path) -> dict[str, int]:
    """As :func:`_write_events`, in this process."""
    staged = ds.dataset(path / STAGING, format="parquet").to_table()
    keys = [(name, "ascending") for name in _ORDER]
    counted = _write_partition(schema, path, 0, staged.sort_by(keys).to_batches())
    return dict(sorted(zip(*counted.to_pydict().values(), strict=True)))


def _write_events(
    spark: SparkSession, schema: pa.Schema, path: Path, events: int, progress: bool
) -> dict[str, int]:
    """Sort the staged events, add differences, and write them by month; counts by type."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = TaskContext.get().partitionId()  # type: ignore[union-attr]
        yield _write_partition(schema, path, part, batches)

    staged = spark.read.parquet(str(path / STAGING))
    written = (
        staged.repartition(-(-events // _TASK_EVENTS), "symbol")
        .sortWithinPartitions(*_ORDER)
        .mapInArrow(write, "symbol string, events long")
    )
    with watched(spark, "ingest", progress=progress):
        counted = written.toPandas()
    return {str(name): int(count) for name, count in sorted(counted.itertuples(index=False))}


def _write_partition(
    schema: pa.Schema, path: Path, number: int, batches: Iterable[pa.RecordBatch]
) -> pa.RecordBatch:
    """Write the events of some types, sorted by type and time, into files by month."""
    part = f"part-{number:05d}.parquet"
    counts: Counter[str] = Counter()
    last: tuple[str | None, float] = (None, 0.0)
    with ExitStack() as files:
        writers: dict[str, Callable[[pa.Table], None]] = {}
        for batch in batches:
            if not len(batch):
                continue
            symbols = batch.column("symbol").to_numpy(zero_copy_only=False)
            prices = batch.column("price").to_numpy()
            steps = price_steps(symbols, prices, last)
            last = symbols[-1], prices[-1]
            counts.update(symbols)
            moments = batch.column("ts").cast(pa.timestamp("ns"))
            table = pa.Table.from_batches([batch]).append_column("difference", steps)
            table = table.set_column(table.column_names.index("ts"), "ts", moments)
            months = np.asarray(moments.to_numpy(zero_copy_only=False), "datetime64[M]")
            for month in np.unique(months):
                name = str(month)
                if name not in writers:
                    file = path / f"{MONTH}={name}" / part
                    writers[name] = files.enter_context(table_writer(file, schema))
                inside = table.filter(pa.array(months == month))
                writers[name](inside.select(schema.names).cast(schema))
    return pa.RecordBatch.from_pydict(
        {"symbol": list(counts), "events": list(counts.values())},
        schema=pa.schema([("symbol", pa.string()), ("events", pa.int64())]),
    )
