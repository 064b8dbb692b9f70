"""``cepbench data``: list, make, ingest, describe and measure data sets."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from cepbench.errors import DatasetError
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.options import GROUP, declared, examples

if TYPE_CHECKING:
    from cepbench.streams.datasets.dataset import Dataset
    from cepbench.streams.datasets.declaration import Entry

#: Above this expected number of events Spark generates a stream; a loop takes 1 s per million.
LOOP_EVENTS = 5_000_000

app = typer.Typer(help="Data sets: list, make, ingest, describe and measure them.", **GROUP)


@app.command("list", epilog=examples("cepbench data list"))
@declared
def list_datasets(json: bool = False) -> None:
    """List the data sets, and how to obtain missing ones."""
    from pandas import NA

    from cepbench.streams.datasets.catalogue import list_datasets as listed

    rows = [
        {
            "name": name,
            "events": None if row["events"] is NA else row["events"],
            "at_hand": row["at hand"],
            "about": row["about"],
        }
        for name, row in listed().to_dict("index").items()
    ]
    if json:
        out.write_json(rows)
        return
    columns = {"data set": "name", "events": "events", "at hand": "at_hand", "what it is": "about"}
    out.write_table(rows, columns, shrink="what it is")


@app.command(
    epilog=examples(
        "cepbench data make nasdaq-style/quick",
        "cepbench data make nasdaq-style/mine --identifiers 20 --days 2",
        "cepbench data make stock-rates/mine --events 5000 \\\n"
        "      --set 'rates={IBM=1,Sun=50,Oracle=1}'",
    )
)
@declared
def make(
    name: str,
    identifiers: int | None = None,
    days: int | None = None,
    events: int | None = None,
    changes: list[str] | None = None,
    seed: int = 0,
    master: str | None = None,
    json: bool = False,
) -> None:
    """Generate a synthetic data set from a seed.

    Spark generates data sets of more than 5 million events, or with --master any; smaller ones need
    no Java. An existing data set with the same parameters is not generated again.
    """
    from cepbench.experiments.sweeps.sweep_file import changes_of
    from cepbench.streams.datasets.opening import find_entry, open_entry, unknown
    from cepbench.streams.generated import GENERATED

    entry, variant = find_entry(name)
    if entry is None:
        raise unknown(name)
    if entry.kind not in GENERATED:
        raise DatasetError(
            f"{entry.name} is ingested from your files: cepbench data ingest {entry.name} FILES"
        )
    given = {"identifiers": identifiers, "days": days, "events": events, "seed": seed or None}
    sizes = {option: value for option, value in given.items() if value is not None}
    changed = changes_of(changes)
    for option in sizes.keys() & changed.keys():
        raise typer.BadParameter(f"{option} is given by --{option}, too", param_hint="'--set'")
    sizes |= changed
    variant = variant or entry.default
    declared = entry.variants.get(variant)
    if declared is not None:
        if sizes:
            raise typer.BadParameter(
                f"{entry.name}/{variant} is declared in dataset.toml; to choose the size or seed, "
                f"use another name, such as {entry.name}/mine"
            )
        if declared.made != "committed":
            _make(entry, declared.path, dict(declared.parameters), master)
    else:
        _make(entry, entry.undeclared(variant), {"seed": 0, **sizes}, master)
    _show(open_entry(entry, variant), json)


@app.command(
    epilog=examples(
        "cepbench data ingest minute-bars datasets/minute-bars/sample.txt --name mine",
        "cepbench data ingest lobster AAPL_2012-06-21_message.csv --output books/aapl",
    )
)
@declared
def ingest(
    kind: Literal["minute-bars", "lobster"],
    files: list[Path],
    name: str | None = None,
    output: Path | None = None,
    date: datetime | None = None,
    sort: bool = False,
    master: str | None = None,
    json: bool = False,
) -> None:
    """Ingest files into a data set.

    Spark ingests files of more than 50 MB together, or with --master any; smaller ones need no Java.
    Malformed rows are quarantined with their row number and the reason.
    """
    from cepbench.streams.datasets.opening import find_entry, unknown

    if (name is None) == (output is None):
        raise typer.BadParameter("give one of --name and --output")
    if date is not None and kind != "lobster":
        raise typer.BadParameter("--date is for lobster; minute bars have their day in every row")
    if output is None:
        entry, _ = find_entry(kind)
        if entry is None:
            raise unknown(kind)
        if name in entry.variants:
            raise typer.BadParameter(f"{kind}/{name} is declared in dataset.toml; choose another")
        output = entry.undeclared(str(name))
    from cepbench.streams.sources import FORMATS, source_files

    files = source_files(files, FORMATS[kind])  # before Spark is started
    from cepbench.spark.ingest import HERE_BYTES, ingest_lobster, ingest_minute_bars

    is_small = sum(file.stat().st_size for file in files) <= HERE_BYTES
    spark = None if is_small and master is None else _session(master)
    # A job of Spark has a bar of its own.
    with nullcontext() if spark else out.progress("ingesting"):
        if kind == "lobster":
            day = None if date is None else date.date()
            report = ingest_lobster(spark, files, output, date=day, sort=sort)
        else:
            report = ingest_minute_bars(spark, files, output, sort=sort)
    if json:
        out.write_json(
            {
                "path": report.path,
                "events": report.events,
                "quarantined": report.quarantined,
                "files": report.declaration.notes["files"],
                "reasons": report.reasons,
                "warning": report.warning,
            }
        )
    else:
        out.write_line(report.describe())
    opened = f"{kind}/{name}" if name else output
    out.log(f'open it with cep.open_dataset("{opened}")')


@app.command(epilog=examples("cepbench data describe nasdaq-style/sample"))
@declared
def describe(name: str, json: bool = False) -> None:
    """Show a data set: size, types, columns, source, and its library of patterns."""
    from cepbench.streams.datasets.opening import open_dataset

    _show(open_dataset(name), json)


@app.command(
    epilog=examples(
        "cepbench data stats nasdaq-style/sample",
        "cepbench data stats nasdaq-style/sample --pattern rare-last",
    )
)
@declared
def stats(name: str, pattern: str | None = None, seed: int = 0, json: bool = False) -> None:
    """Measure arrival rates by type, or all statistics of a pattern."""
    from cepbench.streams.datasets.opening import open_dataset

    dataset = open_dataset(name)
    if pattern is None:
        _show_rates(dataset, json)
    else:
        _show_statistics(dataset, pattern, seed, json)


def _make(entry: Entry, path: Path, parameters: dict[str, Any], master: str | None) -> None:
    from cepbench.streams.dataset_folder import DECLARATION, begin_dataset
    from cepbench.streams.generated import GENERATED, make_in_one_step, stream_of

    required = GENERATED[entry.kind].required
    if not parameters.keys() >= {*required}:
        options = " and ".join(f"--{option}" for option in required)
        raise typer.BadParameter(f"a new {entry.name} data set needs {options}")
    stream = stream_of(entry.kind, parameters)
    if (path / DECLARATION).exists():
        begin_dataset(path, kind=stream.kind, parameters=stream.parameters)  # an error if others
        out.log(f"{path} already exists")
    elif master is not None or stream.expected > LOOP_EVENTS:
        from cepbench.spark.generate import generate_stream

        generate_stream(_session(master), path, stream)
    else:
        make_in_one_step(path, stream)


def _show(dataset: Dataset, as_json: bool) -> None:
    if not as_json:
        out.write_line(dataset.describe())
        return
    library = dataset.patterns
    out.write_json(
        {
            "name": dataset.name,
            "kind": dataset.kind,
            "path": dataset.path,
            "events": dataset.events,
            "types": dataset.counts.to_dict(),
            "columns": dataset.schema.reset_index(),
            "parameters": dataset.declaration.parameters if dataset.declaration else {},
            "patterns": {
                e.name: {"text": e.text, "shows": e.shows, "source": e.source}
                for e in map(library.entry, library)
            },
        }
    )


def _show_rates(dataset: Dataset, as_json: bool) -> None:
    from cepbench.planning.statistics.arrivals import arrival_table, arrivals_in, arrivals_in_file
    from cepbench.streams.dataset_folder import type_column
    from cepbench.streams.parquet_layout import parquet_files

    files = parquet_files(dataset.path) if dataset.path.is_dir() else []
    parts = []
    if files:
        with out.progress("counting events", len(files), "file") as bar:
            for file in files:
                parts.append(arrivals_in_file(file, type_column(dataset.kind)))
                bar.update()
    else:
        parts.append(arrivals_in(dataset.stream(attributes=[])))
    table = arrival_table(parts, dataset.counts.index)
    if as_json:
        out.write_json(table.reset_index())
        return
    unit, seconds = ("per minute", 60) if parts[0].is_datetime else ("per tick", 1)
    by_unit = (seconds * table[["rate", "standard_error"]]).assign(events=table["events"])
    ordered = by_unit.sort_values("events", ascending=False, kind="stable")
    columns = {"type": "type", "events": "events", unit: "rate", "±": "standard_error"}
    out.write_table(ordered.rename_axis("type").reset_index().to_dict("records"), columns)


def _show_statistics(dataset: Dataset, pattern: str, seed: int, as_json: bool) -> None:
    from cepbench.patterns.parse import parse
    from cepbench.planning.statistics.measure import measure_statistics

    is_text = " " in pattern.strip() and pattern not in dataset.patterns
    parsed = parse(pattern) if is_text else dataset.patterns.entry(pattern).pattern
    # Contiguity depends on events of all types.
    whole = "contiguity" in parsed.strategy.name
    with out.progress("measuring"):
        stream = dataset.stream(None if whole else parsed)
        measured = measure_statistics(parsed, stream, seed=seed)
    if as_json:
        out.write_json({"pattern": str(parsed), "seed": seed, "statistics": measured.to_dict()})
        return
    out.write_line(parsed.describe())
    out.write_line(measured.describe())


def _session(master: str | None) -> Any:
    """A Spark session; starting Java takes some seconds."""
    from cepbench.spark.session import spark_session

    with out.progress("starting Spark"):
        return spark_session(master)
