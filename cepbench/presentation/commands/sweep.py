"""``cepbench sweep``: run, estimate, list and compare sweeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cepbench.errors import ExperimentError
from cepbench.experiments.plugins import load_plugins
from cepbench.files import user_path
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.options import GROUP, declared, examples
from cepbench.presentation.commands.report import check_notebooks

if TYPE_CHECKING:
    import pandas as pd

    from cepbench.experiments.sweeps.configuration import SweepConfig
    from cepbench.experiments.sweeps.sweep_file import Sweep

app = typer.Typer(help="Sweeps: many patterns, all generators or methods.", **GROUP)

#: Measured bytes on disk and microseconds of one core per event of a generated stream.
BYTES_PER_EVENT = 4.2
MICROSECONDS_PER_EVENT = 3.0

_FOLDER = Path("reports/data")
_SMALL = "--set 'data={identifiers=12, days=1}' --set patterns=1"


@dataclass
class SweepInputs:
    """The shared arguments and options of commands that run or estimate sweeps."""

    sweeps: list[str]
    profile: str | None = None
    master: str | None = None
    changes: list[str] | None = None
    plugin: list[Path] | None = None
    folder: Path = _FOLDER
    json: bool = False

    def read(self) -> list[Sweep]:
        """The sweeps, validated as far as possible without their data."""
        from cepbench.experiments.sweeps.sweep_file import changes_of, read_sweep

        load_plugins(self.plugin)
        changes = changes_of(self.changes)
        sweeps = [read_sweep(name, profile=self.profile, changes=changes) for name in self.sweeps]
        names = [sweep.name for sweep in sweeps]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ExperimentError(f"two sweeps are named {twice}; run one after the other")
        with out.progress("loading evaluators"):
            for sweep in sweeps:
                sweep.check(self.folder)
        for sweep in sweeps:
            out.log(sweep.describe())
        return sweeps

    def finished(self, sweeps: list[Sweep]) -> list[tuple[Sweep, SweepConfig]]:
        """The sweeps with their configurations, if all have been measured; else none of them."""
        from cepbench.experiments.sweeps.store import is_finished
        from cepbench.experiments.sweeps.sweep_file import data_paths, sweep_folder

        found = []
        for sweep in sweeps:
            paths = data_paths(sweep, self.folder)
            if not all(path.exists() for path in paths.values()):
                return []
            config = sweep.config(paths)
            if not is_finished(sweep_folder(self.folder, sweep.name, config), _beside(config)):
                return []
            found.append((sweep, config))
        return found

    def prepare(self, sweeps: list[Sweep]) -> tuple[Any, list[tuple[Sweep, SweepConfig]]]:
        """A Spark session, and the sweeps with their configurations on existing data."""
        from cepbench.experiments.sweeps.on_spark.job import sweep_data
        from cepbench.spark.session import spark_session

        # Before Spark starts: a stream that cannot be generated is an error at once.
        streams = {s.name: s for sweep in sweeps for s in sweep.generated.values()}
        spark = spark_session(self.master)
        cores = spark.sparkContext.defaultParallelism
        out.log(f"Spark on {spark.sparkContext.master}, {cores} cores")
        for stream in streams.values():
            megabytes = BYTES_PER_EVENT * stream.expected / 1e6
            out.log(
                f"stream of {stream.expected:,.0f} events, {megabytes:,.0f} MB; if "
                "it is missing, generating it takes about "
                f"{MICROSECONDS_PER_EVENT * stream.expected / 1e6 / cores:,.0f} s"
            )
        configs = [sweep.config(sweep_data(spark, sweep, self.folder)) for sweep in sweeps]
        return spark, list(zip(sweeps, configs, strict=True))

    def publish(
        self, ready: list[tuple[Sweep, SweepConfig]], report: Path, notebooks: Path
    ) -> list[Path]:
        """Publish finished sweeps by the notebook that runs sweeps from files."""
        from cepbench.presentation.reporting.requests import Request, relative
        from cepbench.presentation.reporting.site import build_report

        requests = [
            Request(
                notebooks / "sweep.ipynb",
                _page_of(sweep.name, sweep.profile),
                {
                    "sweep": relative(sweep.path, notebooks),
                    "profile": sweep.profile or "",
                    "seed": config.seed,
                    "changes": self._changes_for_notebook(sweep, notebooks),
                    "data": relative(self.folder, notebooks),
                },
                {"title": sweep.title, "summary": sweep.description},
            )
            for sweep, config in ready
        ]
        build_report(report, only=requests, plugins=self.plugin or (), on_progress=out.log_state)
        return [report / f"{request.stem}.html" for request in requests]

    def _changes_for_notebook(self, sweep: Sweep, notebooks: Path) -> dict[str, Any] | None:
        """The same changes, with the path of the data relative to the notebook's folder."""
        from cepbench.experiments.sweeps.sweep_file import changes_of
        from cepbench.presentation.reporting.requests import relative

        found = changes_of(self.changes)
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


def _beside(config: SweepConfig) -> list[str]:
    """User-defined generators that are measured beside those of a sweep."""
    from cepbench.planning.planners.registry import user_defined_generators

    return user_defined_generators() if config.generators is None else []


@app.command(
    "run", epilog=examples(f"cepbench sweep run latency --set 'sizes=[3]' \\\n      {_SMALL}")
)
@declared
def run(
    inputs: SweepInputs,
    estimate: bool = False,
    page: bool = False,
    report: Path = Path("reports"),
    notebooks: Path = Path("notebooks"),
) -> None:
    """Run sweeps.

    Every finished measurement is on disk immediately; an interrupted sweep resumes when the same
    command is given again.
    """
    sweeps = inputs.read()
    if page:
        check_notebooks(notebooks)
    spark, ready = None, [] if estimate else inputs.finished(sweeps)
    if not ready:
        spark, ready = inputs.prepare(sweeps)
    if estimate:
        _estimate_all(spark, ready, inputs.folder)
    from cepbench.experiments.sweeps.on_spark.job import finished_results, run_sweep
    from cepbench.experiments.sweeps.store import user_folder
    from cepbench.experiments.sweeps.sweep_file import sweep_folder

    finished = []
    for sweep, config in ready:
        target = sweep_folder(inputs.folder, sweep.name, config)
        own = _beside(config)
        if spark is None:
            out.log(f"{sweep.name}: finished before, in {target}")
            results = finished_results(config, target, own)
        else:
            out.log(f"{sweep.name}: running; finished rows are in {target}")
            results = run_sweep(spark, config, target, user_defined=own)
        outcome = {
            "sweep": sweep.name,
            "profile": sweep.profile,
            "folder": target,
            "results": target / "results.parquet",
            "user_defined_results": {
                name: user_folder(target, name) / "results.parquet" for name in own
            },
            "rows": len(results),
            "statuses": results["status"].value_counts().to_dict(),
            "summary": _summary(results, config.seed),
            "spread": _spread(results),
        }
        finished.append(outcome)
        if not inputs.json:
            _show(outcome)
    if page:
        pages = inputs.publish(ready, report, notebooks)
        for outcome, made in zip(finished, pages, strict=True):
            outcome["page"] = made
            if not inputs.json:
                out.write_line(f"open {made}")
    if inputs.json:
        out.write_json(finished)


@app.command(
    "estimate",
    epilog=examples(f"cepbench sweep estimate latency --set 'sizes=[3]' \\\n      {_SMALL}"),
)
@declared
def estimate(inputs: SweepInputs) -> None:
    """Estimate how long sweeps take, from a sample of their patterns.

    Missing data is generated. Estimates are stored and reused.
    """
    spark, ready = inputs.prepare(inputs.read())
    write = out.log if inputs.json else out.write_line
    tables = _estimate_all(spark, ready, inputs.folder, write=write)
    if inputs.json:
        cores = spark.sparkContext.defaultParallelism
        out.write_json(
            [
                {"sweep": sweep.name, "profile": sweep.profile, "cores": cores, "rows": table}
                for (sweep, _), table in zip(ready, tables, strict=True)
            ]
        )


@app.command("list", epilog=examples("cepbench sweep list"))
@declared
def list_sweeps(folder: Path = _FOLDER, json: bool = False) -> None:
    """List the sweeps of the studies, and the results in the folder."""
    from cepbench.experiments.sweeps.store import COMPLETE, count_rows
    from cepbench.experiments.sweeps.sweep_file import named_sweeps, read_sweep

    sweeps = [
        {"name": name, "title": sweep.title, "profiles": sweep.profiles, "file": sweep.path}
        for name, sweep in ((name, read_sweep(name)) for name in named_sweeps())
    ]
    results = [
        {
            "folder": str(path.parent),
            "complete": (path.parent / COMPLETE).exists(),
            "rows": count_rows(path.parent),
        }
        for path in sorted((folder / "sweeps").glob("*/sweep.json"))
    ]
    if json:
        out.write_json({"sweeps": sweeps, "results": results})
        return
    out.write_table(sweeps, ["name", "profiles", "title"], shrink="title")
    out.write_line()
    if results:
        out.write_table(results, {"results": "folder", "rows": "rows", "complete": "complete"})
    else:
        out.write_line(f"no results in {folder}")


@app.command(
    "compare",
    epilog=examples("cepbench sweep compare reports/data/sweeps/types-f964d09a before.parquet"),
)
@declared
def compare(
    first: str,
    second: str | None = None,
    metric: list[str] | None = None,
    by: list[str] | None = None,
    folder: Path = _FOLDER,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Compare two sweeps pattern by pattern, with the significance of differences.

    Differences of configuration are shown first. Different numbers of matches on the same data are
    an error. `reference` is the sweep of the package that measured what the other one did; alone,
    every sweep in the folder is compared with it.
    """
    from cepbench.experiments.analysis.sweep_comparison import METRICS, compare_sweeps
    from cepbench.experiments.studies.profiles import REFERENCE

    if second is None:
        if first != REFERENCE:
            raise ExperimentError(
                f"compare {first} with what? Name a second sweep, or `{REFERENCE}`"
            )
        _against_reference(folder, seed, json=json)
        return
    named = first, second
    paths = [_results(name, folder) for name in named if name != REFERENCE]
    with out.progress("comparing"):
        sources: list[Any] = [
            _reference_of(paths) if name == REFERENCE else _results(name, folder) for name in named
        ]
        called = [
            name if name == REFERENCE else path.resolve().name
            for name, path in zip(named, sources, strict=True)
        ]
        found = compare_sweeps(
            *sources,
            metrics=metric or METRICS,
            by=by or (),
            names=(called[0], called[1]) if REFERENCE in named else None,
            seed=seed,
        )
    if not json:
        out.write_line(found.describe())
        return
    out.write_json(
        {
            "first": found.names[0],
            "second": found.names[1],
            "same_data": found.same_data,
            "patterns_with_other_counts": found.counts_differ,
            "unequal": found.unequal,
            "differences": found.differences,
            "only_first": len(found.only_first),
            "only_second": len(found.only_second),
            # NaN for missing sizes, which are NA.
            "ratios": found.ratios.astype(object).where(found.ratios.notna()),
        }
    )


def _reference_of(others: list[Path]) -> pd.DataFrame:
    """The results in the package beside another sweep."""
    from cepbench.experiments.studies.against_reference import reference_of
    from cepbench.experiments.studies.reference import read_parts

    if not others:
        raise ExperimentError("the reference cannot be compared with itself; name a sweep")
    return read_parts(reference_of(others[0]).path)


def _against_reference(folder: Path, seed: int, *, json: bool) -> None:
    from cepbench.experiments.studies.against_reference import against_reference

    with out.progress("comparing"):
        rows = list(against_reference(folder, seed=seed))
    if json:
        out.write_json(rows)
        return
    if not rows:
        raise ExperimentError(
            f"{folder} has no finished sweep that the package has results of; "
            "`cepbench sweep run types` measures one"
        )
    numbers = ("runs", "matches", "plans", "work")
    shown = [
        {
            **row,
            **{name: f"{row[name]:,}" for name in numbers},
            "time": f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
        }
        for row in rows
    ]
    columns = {"sweep": "sweep", "profile": "profile", **{name: name for name in numbers}}
    out.write_table(shown, {**columns, "time": "time"}, right=[*numbers, "time"])
    out.write_line(
        "matches, plans, work: runs in which they differ; plans and work also where planning takes costs that "
        "were measured on the machine. time: here divided by the reference, geometric mean over patterns and "
        "streams with its 95 % interval"
    )


def _page_of(sweep: str, profile: str | None) -> str:
    """The name of a sweep's page; without the default profile."""
    from cepbench.experiments.sweeps.sweep_file import DEFAULT_PROFILE
    from cepbench.presentation.reporting.requests import page_name

    return page_name(
        f"sweep_{sweep}" + (f"_{profile}" if profile not in (None, DEFAULT_PROFILE) else "")
    )


def _estimate_all(
    spark: Any, ready: list[tuple[Sweep, SweepConfig]], folder: Path, write: Any = out.log
) -> list[pd.DataFrame]:
    from cepbench.experiments.sweeps.estimate import describe_estimate
    from cepbench.experiments.sweeps.on_spark.job import estimate_sweep
    from cepbench.experiments.sweeps.restrictions import restrictions
    from cepbench.experiments.sweeps.sweep_file import sweep_folder

    cores = spark.sparkContext.defaultParallelism
    tables = []
    for sweep, config in ready:
        table = estimate_sweep(spark, config, sweep_folder(folder, sweep.name, config))
        write(
            "\n".join([f"{sweep.name} ({sweep.title})", *(f"  {s}" for s in restrictions(config))])
        )
        write(describe_estimate(table, cores))
        tables.append(table)
    hours = sum(float(table["hours"].iloc[-1]) for table in tables)
    write(f"in total about {hours:.1f} h on {cores} cores, unless parts are already finished")
    return tables


def _summary(results: pd.DataFrame, seed: int) -> list[dict[str, Any]]:
    """Medians over the patterns of each pattern set, one row per run."""
    from cepbench.experiments.analysis.summary import runs_of, summarize

    table = summarize(results, seed=seed)
    table = table[table["size"].isna() & (table["statistic"] == "median")]
    runs = ["pattern_set", *runs_of(results)]
    counts = table.groupby(runs, sort=False).agg(
        {"patterns": "min", "left_out": "max", "missing": "max"}
    )
    values = table.set_index([*runs, "metric"])["value"].unstack("metric", sort=False)
    wide = counts.join(values)
    return [{str(k): v for k, v in row.items()} for row in wide.reset_index().to_dict("records")]


def _spread(results: pd.DataFrame) -> float:
    """Ratio of the quartiles of the runs of a plan, the median over plans; NaN if there are no repetitions."""
    from cepbench.experiments.analysis.summary import runs_of

    ended = results[results["events_per_second"].notna()]
    runs = ended.groupby(["pattern_id", *runs_of(ended)], dropna=False)["events_per_second"]
    return float((runs.quantile(0.75) / runs.quantile(0.25)).median())


def _show(outcome: dict[str, Any]) -> None:
    import pandas as pd

    from cepbench.experiments.analysis.common_patterns import left_out_notes
    from cepbench.experiments.analysis.summary import VARIED
    from cepbench.presentation.comparison.table import NOISY

    endings = "".join(f", {n:,} {name}" for name, n in outcome["statuses"].items() if name != "ok")
    out.write_line(f"{outcome['sweep']}: {outcome['rows']:,} rows{endings}; {outcome['results']}")
    for name, path in outcome["user_defined_results"].items():
        out.write_line(f"  {name}: {path}")
    rows = outcome["summary"]
    varied = (*VARIED, "strategy", "alpha")
    several = [name for name in varied if len({row[name] for row in rows if name in row}) > 1]
    out.write_table(
        (row | _medians(row) | {"missing": row["missing"] or None} for row in rows),
        {
            "patterns": "pattern_set",
            "generator": "generator",
            "evaluator": "evaluator",
            **{name: name for name in several},
            "events/s": "events/s",
            "memory": "memory",
            "of": "patterns",
            "missing": "missing",
        },
        right=["events/s", "memory", "of", "missing"],
    )
    out.write_line("events/s, memory: medians over patterns of each pattern's median run")
    if outcome["spread"] > NOISY:
        out.write_line(
            f"Half of the runs of a plan span a factor of {outcome['spread']:.2g} (median over plans); give "
            "more seconds or events before relying on small ratios."
        )
    for pattern_set, part in pd.DataFrame(rows).groupby("pattern_set", sort=False):
        for note in left_out_notes(part):
            out.write_line(f"{pattern_set}: {note}")


def _medians(row: dict[str, Any]) -> dict[str, str]:
    """Throughput and memory of a row as texts; a dash without a median."""
    from cepbench.engines.runs.result import shown_bytes

    speed, size = row["events_per_second"], row["peak_bytes"]
    return {
        "events/s": "–" if math.isnan(speed) else f"{speed:,.0f}",
        "memory": "–" if math.isnan(size) else shown_bytes(size),
    }


def _results(named: str, folder: Path) -> Path:
    """A path, or the name of a folder of results."""
    path = user_path(named)
    below = folder / "sweeps" / named
    return below if not path.exists() and below.exists() else path
