"""``cepbench data``: data sets listed, made, ingested, described and measured."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepbench.commands.completion import complete_data
from cepbench.commands.options import GROUP, JsonOption, SeedOption, examples
from cepbench.commands.output import progress, remark, say, write_json, write_table
from cepbench.errors import DatasetError

if TYPE_CHECKING:
    from cepbench.datasets.dataset import Dataset
    from cepbench.datasets.declaration import Entry

#: Streams of more expected events than this are made by Spark; a loop takes a second for a million.
LOOP_EVENTS = 5_000_000

_KINDS = ("minute-bars", "lobster")

app = typer.Typer(help="Data sets: list, make, ingest, describe and measure them.", **GROUP)

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=complete_data,
        help="Such as nasdaq-style/quick, or the path of a data set's folder.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master", metavar="URL", help="The Spark master; by default all cores of this machine."
    ),
]


@app.command("list", epilog=examples("cepbench data list"))
def list_datasets(as_json: JsonOption = False) -> None:
    """List the data sets, and how to get those that are not here."""
    from pandas import NA

    from cepbench.datasets.catalogue import list_datasets as listed

    rows = []
    for name, row in listed().to_dict("index").items():
        events = None if row["events"] is NA else row["events"]
        rows.append((name, events, row["at hand"], row["about"]))
    if as_json:
        keys = ("name", "events", "at_hand", "about")
        write_json([dict(zip(keys, row, strict=True)) for row in rows])
    else:
        write_table(rows, ("data set", "events", "at hand", "what it is"), shrink=3)


@app.command(
    epilog=examples(
        "cepbench data make nasdaq-style/quick",
        "cepbench data make nasdaq-style/mine --identifiers 20 --days 2",
    )
)
def make(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A declared one, or a new name for one of yours.")
    ],
    identifiers: Annotated[
        int | None, typer.Option(min=1, help="Of yours: how many stocks, for nasdaq-style.")
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, help="Of yours: trading days, for nasdaq-style.")
    ] = None,
    events: Annotated[
        int | None, typer.Option(min=1, help="Of yours: how many events, for ten-symbols.")
    ] = None,
    seed: SeedOption = 0,
    master: MasterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a data set that is drawn from a seed.

    More than 5 million events are made by Spark, less in a loop without Java. What is there
    already and made from the same parameters stays as it is.
    """
    from cepbench.datasets.making import MAKERS
    from cepbench.datasets.opening import find_entry, open_entry, unknown

    entry, variant = find_entry(name)
    if entry is None:
        raise unknown(name)
    if entry.kind not in MAKERS:
        raise DatasetError(
            f"{entry.name} comes from files of your own: cepbench data ingest {entry.name} FILES"
        )
    given = {"identifiers": identifiers, "days": days, "events": events}
    sizes = {option: value for option, value in given.items() if value is not None}
    variant = variant or entry.default
    declared = entry.variants.get(variant)
    if declared is not None:
        if sizes or seed:
            raise typer.BadParameter(
                f"{entry.name}/{variant} is declared in dataset.toml; to choose the size or seed, "
                f"give it another name, such as {entry.name}/mine"
            )
        if declared.made != "committed":
            _make(entry, declared.path, dict(declared.parameters), master)
    else:
        _make(entry, entry.own(variant), {**sizes, "seed": seed}, master)
    _show(open_entry(entry, variant), as_json)


@app.command(
    epilog=examples(
        "cepbench data ingest minute-bars datasets/minute-bars/sample.txt --name mine",
        "cepbench data ingest lobster AAPL_2012-06-21_message.csv --output books/aapl",
    )
)
def ingest(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="minute-bars or lobster.")],
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES", help="Text files, plain or gzip.")
    ],
    name: Annotated[
        str | None, typer.Option(help="Its name in the catalogue: KIND/NAME afterwards.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Or a folder of its own for it.")
    ] = None,
    date: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="lobster: the day, if no file name tells it."),
    ] = None,
    sort: Annotated[
        bool, typer.Option("--sort", help="Rows may come in any order of time.")
    ] = False,
    master: MasterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read files of your own into a data set, by Spark.

    Rows that cannot be read are kept in quarantine with their number and the reason.
    """
    from cepbench.datasets.declaration import nearest
    from cepbench.datasets.opening import find_entry, unknown

    if kind not in _KINDS:
        raise typer.BadParameter(f"unknown kind {kind!r}; {nearest(kind, _KINDS)}")
    if (name is None) == (output is None):
        raise typer.BadParameter("say where it goes: by --name, or by --output")
    if date is not None and kind != "lobster":
        raise typer.BadParameter("--date is for lobster; minute bars have their day in every row")
    if output is None:
        entry, _ = find_entry(kind)
        if entry is None:
            raise unknown(kind)
        if name in entry.variants:
            raise typer.BadParameter(f"{kind}/{name} is declared in dataset.toml; choose another")
        output = entry.own(str(name))
    for file in files:
        if not file.is_file():  # Spark takes seconds to start, only to say the same
            raise DatasetError(f"there is no file {file}")
    from cepbench.spark.ingest import ingest_lobster, ingest_minute_bars

    spark = _session(master)
    if kind == "lobster":
        day = None if date is None else date.date()
        report = ingest_lobster(spark, files, output, date=day, sort=sort)
    else:
        report = ingest_minute_bars(spark, files, output, sort=sort)
    if as_json:
        write_json(
            {
                "path": report.path,
                "events": report.events,
                "quarantined": report.quarantined,
                "files": report.declaration.notes["files"],
                "reasons": report.reasons,
            }
        )
        return
    say(report.describe())
    opened = f"{kind}/{name}" if name else output
    remark(f'open it by cep.open_dataset("{opened}")')


@app.command(epilog=examples("cepbench data describe nasdaq-style/sample"))
def describe(name: NameArgument, as_json: JsonOption = False) -> None:
    """Say what a data set is: size, types, columns, source, and its library of patterns."""
    from cepbench.datasets.opening import open_dataset

    _show(open_dataset(name), as_json)


@app.command(
    epilog=examples(
        "cepbench data stats nasdaq-style/sample",
        "cepbench data stats nasdaq-style/sample --pattern rare-last",
    )
)
def stats(
    name: NameArgument,
    pattern: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="A name in its library, or the text of a pattern."),
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Measure how often events of each type arrive, or all that a pattern's plans are made from."""
    from cepbench.datasets.opening import open_dataset

    dataset = open_dataset(name)
    if pattern is None:
        _show_rates(dataset, as_json)
    else:
        _show_statistics(dataset, pattern, seed, as_json)


def _make(entry: Entry, path: Path, parameters: dict[str, Any], master: str | None) -> None:
    from cepbench.datasets.making import MAKERS, make_in_one_step
    from cepbench.streams.dataset_folder import DECLARATION
    from cepbench.streams.nasdaq_files import KIND
    from cepbench.streams.nasdaq_style import NasdaqStyle

    wanted = {"identifiers", "days"} if entry.kind == KIND else {"events"}
    if set(parameters) - {"seed"} != wanted:
        options = " and ".join(f"--{option}" for option in sorted(wanted, reverse=True))
        raise typer.BadParameter(f"for a data set of your own, {entry.name} needs {options}")
    if (path / DECLARATION).exists():
        MAKERS[entry.kind](path, **parameters)  # refuses one of other parameters
        remark(f"{path} is there already")
        return
    expected = 0.0
    if entry.kind == KIND:
        expected = NasdaqStyle(**parameters).expected_events(days=parameters["days"])
    if expected > LOOP_EVENTS:
        from cepbench.spark.generate import generate_nasdaq_style

        generate_nasdaq_style(_session(master), path, **parameters)
    else:
        make_in_one_step(entry.kind, path, parameters)


def _show(dataset: Dataset, as_json: bool) -> None:
    if not as_json:
        say(dataset.describe())
        return
    library = dataset.patterns
    entries = [library.entry(key) for key in library]
    write_json(
        {
            "name": dataset.name,
            "kind": dataset.kind,
            "path": dataset.path,
            "events": dataset.events,
            "types": dataset.counts.to_dict(),
            "columns": dataset.schema.reset_index(),
            "parameters": dataset.declaration.parameters if dataset.declaration else {},
            "patterns": {
                e.name: {"text": e.text, "shows": e.shows, "source": e.source} for e in entries
            },
        }
    )


def _show_rates(dataset: Dataset, as_json: bool) -> None:
    from cepbench.statistics.arrivals import arrival_table, arrivals_in, arrivals_in_file

    files = sorted(dataset.path.glob("**/[!._]*.parquet")) if dataset.path.is_dir() else []
    files = [file for file in files if file.parent.name[0] != "_"]
    parts = []
    if files:
        with progress("counting events", len(files), "file") as bar:
            for file in files:
                parts.append(arrivals_in_file(file))
                bar.update()
    else:
        parts.append(arrivals_in(dataset.stream(attributes=[])))
    table = arrival_table(parts, dataset.counts.index)
    if as_json:
        write_json(table.reset_index())
        return
    ordered = table.sort_values("events", ascending=False, kind="stable")
    rows = [
        (name, row["events"], 60 * row["rate"], 60 * row["standard_error"])
        for name, row in ordered.to_dict("index").items()
    ]
    write_table(rows, ("type", "events", "per minute", "±"))


def _show_statistics(dataset: Dataset, pattern: str, seed: int, as_json: bool) -> None:
    from cepbench.datasets.declaration import nearest
    from cepbench.patterns.parse import parse
    from cepbench.statistics.measure import measure_statistics

    if pattern in dataset.patterns:
        parsed = dataset.patterns[pattern]
    elif " " in pattern.strip():
        parsed = parse(pattern)
    else:
        raise DatasetError(
            f"the library of {dataset.name} has no pattern {pattern!r}; "
            f"{nearest(pattern, dataset.patterns)}"
        )
    # Contiguity depends on events of all types.
    whole = "contiguity" in parsed.strategy.name
    with progress("measuring"):
        stream = dataset.stream(None if whole else parsed)
        measured = measure_statistics(parsed, stream, seed=seed)
    if as_json:
        write_json({"pattern": str(parsed), "seed": seed, "statistics": measured.to_dict()})
        return
    say(parsed.describe())
    say(measured.describe())


def _session(master: str | None) -> Any:
    """A Spark session, which ends with this process; Java takes some seconds to start."""
    from cepbench.spark.session import spark_session

    with progress("starting Spark"):
        return spark_session(master)
