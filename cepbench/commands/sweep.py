"""``cepbench sweep``: sweeps from files; run, estimated, listed, compared."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepbench.commands.completion import complete_profiles, complete_sweeps
from cepbench.commands.options import GROUP, JsonOption, PluginOption, SeedOption, examples
from cepbench.commands.output import progress, remark, say, write_json, write_table
from cepbench.commands.report import NotebooksOption, check_notebooks
from cepbench.errors import ExperimentError
from cepbench.plugins import load_plugins

if TYPE_CHECKING:
    import pandas as pd

    from cepbench.sweeps.configuration import SweepConfig
    from cepbench.sweeps.sweep_file import Sweep

app = typer.Typer(help="Sweeps: many patterns, all plan generators, one file.", **GROUP)

#: Bytes on the disk and microseconds of one core for an event of a generated stream, as measured.
BYTES_PER_EVENT = 4.2
MICROSECONDS_PER_EVENT = 3.0

SweepsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE|NAME...",
        autocompletion=complete_sweeps,
        help="Sweep files, or names that `cepbench sweep list` shows.",
    ),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_profiles,
        help="Profile of the file; without it quick, if it has that one.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark master; without it $CEPBENCH_SPARK_MASTER, or all cores of this machine.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Another value of a key, written as in the file; may be repeated.",
    ),
]
FolderOption = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Of generated streams and of results.")
]

_FOLDER = Path("reports/data")
_SMALL = "--set 'data={identifiers=12, days=1}' --set patterns=1"


@app.command(
    "run",
    epilog=examples(f"cepbench sweep run latency --set 'sizes=[3]' \\\n      {_SMALL}"),
)
def run(
    sweeps: SweepsArgument,
    profile: ProfileOption = None,
    master: MasterOption = None,
    changes: SetOption = None,
    plugin: PluginOption = None,
    folder: FolderOption = _FOLDER,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say first how long all of them will take.")
    ] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Publish each as a page of the report.")
    ] = False,
    report: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Of the report that gets the pages.")
    ] = Path("reports"),
    notebooks: NotebooksOption = Path("notebooks"),
    json: JsonOption = False,
) -> None:
    """Run sweeps, or resume those that were stopped.

    What is finished is on the disk at once; running the same command again loses and repeats
    nothing.
    """
    wanted = _read(sweeps, profile, changes, plugin)
    if page:
        check_notebooks(notebooks)
    spark, ready = _prepare(wanted, master, folder)
    if estimate:
        _estimate_all(spark, ready, folder)
    from cepbench.planners.registry import own_generators
    from cepbench.sweeps.on_spark.job import run_sweep
    from cepbench.sweeps.sweep_file import sweep_folder
    from cepbench.sweeps.user_parts import own_folder

    finished = []
    for sweep, config in ready:
        target = sweep_folder(folder, sweep.name, config)
        remark(f"{sweep.name}: running; what is finished is in {target}")
        own = own_generators() if config.generators is None else []
        results = run_sweep(spark, config, target, own=own)
        statuses = {str(k): int(v) for k, v in results["status"].value_counts().items()}
        outcome = {
            "sweep": sweep.name,
            "profile": sweep.profile,
            "folder": str(target),
            "results": str(target / "results.parquet"),
            "own_results": {
                name: str(own_folder(target, name) / "results.parquet") for name in own
            },
            "rows": len(results),
            "statuses": statuses,
            "summary": _summary(results, config.seed),
        }
        finished.append(outcome)
        if not json:
            _show(outcome)
    if page:
        pages = _publish(ready, changes, plugin, folder, report, notebooks)
        for outcome, made in zip(finished, pages, strict=True):
            outcome["page"] = str(made)
            if not json:
                say(f"open {made}")
    if json:
        write_json(finished)


@app.command(
    "estimate",
    epilog=examples(f"cepbench sweep estimate latency --set 'sizes=[3]' \\\n      {_SMALL}"),
)
def estimate(
    sweeps: SweepsArgument,
    profile: ProfileOption = None,
    master: MasterOption = None,
    changes: SetOption = None,
    plugin: PluginOption = None,
    folder: FolderOption = _FOLDER,
    json: JsonOption = False,
) -> None:
    """Say how long sweeps will take, from a sample of their patterns.

    The data is made if it is not there. Estimates are kept; asking again costs nothing.
    """
    wanted = _read(sweeps, profile, changes, plugin)
    spark, ready = _prepare(wanted, master, folder)
    tables = _estimate_all(spark, ready, folder, say=remark if json else say)
    if json:
        cores = spark.sparkContext.defaultParallelism
        write_json(
            [
                {"sweep": sweep.name, "profile": sweep.profile, "cores": cores, "rows": table}
                for (sweep, _), table in zip(ready, tables, strict=True)
            ]
        )


@app.command("list", epilog=examples("cepbench sweep list"))
def list_sweeps(folder: FolderOption = _FOLDER, json: JsonOption = False) -> None:
    """The sweeps of the studies, and those whose results are in the folder."""
    from cepbench.sweeps.store import COMPLETE, count_rows
    from cepbench.sweeps.sweep_file import named_sweeps, read_sweep

    known = {name: read_sweep(name) for name in named_sweeps()}
    there = [
        {
            "folder": str(path.parent),
            "complete": (path.parent / COMPLETE).exists(),
            "rows": count_rows(path.parent),
        }
        for path in sorted((folder / "sweeps").glob("*/sweep.json"))
    ]
    if json:
        sweeps = [
            {"name": name, "title": sweep.title, "profiles": sweep.profiles,
             "file": str(sweep.path)}
            for name, sweep in known.items()
        ]  # fmt: skip
        write_json({"sweeps": sweeps, "results": there})
        return
    write_table(
        ([name, ", ".join(sweep.profiles), sweep.title] for name, sweep in known.items()),
        ["name", "profiles", "title"],
        shrink=2,
    )
    say()
    if not there:
        say(f"no results in {folder}")
        return
    write_table(
        ([row["folder"], row["rows"], "complete" if row["complete"] else "unfinished"]
         for row in there),
        ["results", "rows", ""],
    )  # fmt: skip


@app.command(
    "compare",
    epilog=examples("cepbench sweep compare reports/data/sweeps/types-f964d09a before.parquet"),
)
def compare(
    first: Annotated[str, typer.Argument(metavar="FIRST", help="Folder of a sweep, or Parquet.")],
    second: Annotated[
        str, typer.Argument(metavar="SECOND", help="The other one; ratios are second / first.")
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Column of the results; may be repeated."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="pattern_set or size, each by itself; or both."),
    ] = None,
    folder: FolderOption = _FOLDER,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Compare two sweeps pattern by pattern, and say which differences are significant.

    What else differs is printed first. Other numbers of matches on the same data are an error.
    """
    from cepbench.analysis.sweep_comparison import METRICS, compare_sweeps

    with progress("comparing"):
        found = compare_sweeps(
            _results(first, folder),
            _results(second, folder),
            metrics=metric or METRICS,
            by=by or (),
            seed=seed,
        )
    if not json:
        say(found.describe())
        return
    write_json(
        {
            "first": found.names[0],
            "second": found.names[1],
            "same_data": found.same_data,
            "patterns_with_other_counts": found.counts_differ,
            "differences": found.differences,
            "only_first": len(found.only_first),
            "only_second": len(found.only_second),
            "ratios": [
                {name: value if value == value else None for name, value in row.items()}
                for row in found.ratios.astype(
                    {"size": float} if "size" in (by or ()) else {}
                ).to_dict("records")
            ],
        }
    )


def _publish(
    ready: list[tuple[Sweep, SweepConfig]],
    changes: list[str] | None,
    plugin: list[Path] | None,
    folder: Path,
    report: Path,
    notebooks: Path,
) -> list[Path]:
    """Pages of finished sweeps, drawn by the notebook that runs sweeps from files."""
    from cepbench.reporting.requests import Request, relative
    from cepbench.reporting.site import build_report

    requests = [
        Request(
            notebooks / "sweep.ipynb",
            _page_of(sweep.name, sweep.profile),
            {
                "sweep": relative(sweep.path, notebooks),
                "profile": sweep.profile or "",
                "seed": config.seed,
                "changes": _changes_for_notebook(sweep, changes, notebooks),
                "data": relative(folder, notebooks),
            },
            {"title": sweep.title, "summary": sweep.description},
        )
        for sweep, config in ready
    ]
    build_report(report, only=requests, plugins=plugin or (), say=remark)
    return [report / f"{request.stem}.html" for request in requests]


def _changes_for_notebook(
    sweep: Sweep, changes: list[str] | None, notebooks: Path
) -> dict[str, Any] | None:
    """The same changes, and the path of the data as it is seen from the folder of the notebook."""
    from cepbench.reporting.requests import relative
    from cepbench.sweeps.sweep_file import change_of

    found = dict(change_of(text) for text in changes or ())
    paths = {
        name: relative(Path(data), notebooks)
        for name, data in sweep.data.items()
        if isinstance(data, str) and Path(data).exists()
    }
    if "" in paths:
        found["data"] = paths[""]
    elif paths:
        found["streams"] = {**sweep.data, **paths}
    return found or None


def _page_of(sweep: str, profile: str | None) -> str:
    """The page of a sweep; the usual profile is not in its name."""
    from cepbench.reporting.requests import page_name
    from cepbench.sweeps.sweep_file import DEFAULT_PROFILE

    return page_name(
        f"sweep_{sweep}" + (f"_{profile}" if profile not in (None, DEFAULT_PROFILE) else "")
    )


def _read(
    sources: list[str], profile: str | None, changes: list[str] | None, plugin: list[Path] | None
) -> list[Sweep]:
    """The sweeps, checked as far as that goes without their data."""
    from cepbench.sweeps.sweep_file import change_of, read_sweep

    load_plugins(plugin)
    set_otherwise = dict(change_of(text) for text in changes or ())
    sweeps = [read_sweep(name, profile=profile, changes=set_otherwise) for name in sources]
    names = [sweep.name for sweep in sweeps]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ExperimentError(f"two sweeps are called {twice}; run one after the other")
    with progress("loading evaluators"):
        for sweep in sweeps:
            sweep.cells()
    for sweep in sweeps:
        remark(sweep.describe())
    return sweeps


def _prepare(
    sweeps: list[Sweep], master: str | None, folder: Path
) -> tuple[Any, list[tuple[Sweep, SweepConfig]]]:
    """A Spark session, and the sweeps with their configurations on data that is there."""
    from cepbench.spark.session import spark_session
    from cepbench.sweeps.on_spark.data import sweep_data

    # Before Spark starts: a stream that cannot be made is an error at once.
    styles = [sweep.generated.values() for sweep in sweeps]
    spark = spark_session(master)
    cores = spark.sparkContext.defaultParallelism
    remark(f"Spark on {spark.sparkContext.master}, {cores} cores")
    for style in dict.fromkeys(itertools.chain.from_iterable(styles)):
        expected = style.expected_events(days=style.days)
        remark(
            f"stream of {expected:,.0f} events, {BYTES_PER_EVENT * expected / 1e6:,.0f} MB; if it is "
            "not there, making it takes about "
            f"{MICROSECONDS_PER_EVENT * expected / 1e6 / cores:,.0f} s"
        )
    return spark, [(sweep, sweep.config(sweep_data(spark, sweep, folder))) for sweep in sweeps]


def _estimate_all(
    spark: Any, ready: list[tuple[Sweep, SweepConfig]], folder: Path, say: Any = remark
) -> list[pd.DataFrame]:
    """Tell the estimate of every sweep, and of all together."""
    from cepbench.sweeps.estimate import describe_estimate
    from cepbench.sweeps.on_spark.estimate import estimate_sweep
    from cepbench.sweeps.restrictions import restrictions
    from cepbench.sweeps.sweep_file import sweep_folder

    cores = spark.sparkContext.defaultParallelism
    tables = []
    for sweep, config in ready:
        table = estimate_sweep(spark, config, sweep_folder(folder, sweep.name, config))
        say("\n".join([f"{sweep.name} ({sweep.title})", *(f"  {s}" for s in restrictions(config))]))
        say(describe_estimate(table, cores))
        tables.append(table)
    hours = sum(float(table["hours"].iloc[-1]) for table in tables)
    say(f"all in all about {hours:.1f} h on {cores} cores, unless parts are finished already")
    return tables


def _summary(results: pd.DataFrame, seed: int) -> list[dict[str, Any]]:
    """Medians over the patterns of each pattern set, a row a run."""
    from cepbench.analysis.summary import RUN, summarize

    table = summarize(results, seed=seed)
    table = table[table["size"].isna() & (table["statistic"] == "median")]
    runs = ["pattern_set", *RUN]
    counts = table.groupby(runs, sort=False).agg(
        {"patterns": "min", "left_out": "max", "missing": "max"}
    )
    values = table.set_index([*runs, "metric"])["value"].unstack("metric", sort=False)
    wide = counts.join(values)
    return [{str(k): v for k, v in row.items()} for row in wide.reset_index().to_dict("records")]


def _show(outcome: dict[str, Any]) -> None:
    import pandas as pd

    from cepbench.analysis.common_patterns import left_out_notes

    endings = "".join(f", {n:,} {name}" for name, n in outcome["statuses"].items() if name != "ok")
    say(f"{outcome['sweep']}: {outcome['rows']:,} rows{endings}; {outcome['results']}")
    for name, path in outcome["own_results"].items():
        say(f"  of which {name}: {path}")
    rows = outcome["summary"]
    several = [name for name in ("strategy", "alpha") if len({row[name] for row in rows}) > 1]
    write_table(
        (
            [
                row["pattern_set"], row["generator"], row["evaluator"],
                *(str(row[name]) for name in several),
                *_medians(row), row["patterns"], row["missing"] or "",
            ]
            for row in rows
        ),
        ["patterns", "generator", "evaluator", *several, "events/s", "memory", "of", "missing"],
        right=["events/s", "memory", "of", "missing"],
    )  # fmt: skip
    say("events/s, memory: medians over the patterns, of which each counts by its median run")
    for pattern_set, part in pd.DataFrame(rows).groupby("pattern_set", sort=False):
        for note in left_out_notes(part):
            say(f"{pattern_set}: {note}")


def _medians(row: dict[str, Any]) -> tuple[str, str]:
    """Throughput and memory of a row as texts; a dash for a run that has no median."""
    from cepbench.evaluators.result import shown_bytes

    speed, size = row["events_per_second"], row["peak_bytes"]
    return (
        "–" if math.isnan(speed) else f"{speed:,.0f}",
        "–" if math.isnan(size) else shown_bytes(size),
    )


def _results(named: str, folder: Path) -> Path:
    """A path, or the name of a folder of results."""
    path = Path(named)
    below = folder / "sweeps" / named
    return below if not path.exists() and below.exists() else path
