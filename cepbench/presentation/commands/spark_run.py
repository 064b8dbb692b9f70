"""``cepbench run --spark``: one plan on a stream, in slices on the cores of a cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cepbench.files import whole_folder
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.inputs import Inputs

if TYPE_CHECKING:
    from cepbench.patterns.model import Pattern


def run_on_spark(
    inputs: Inputs,
    pattern: Pattern,
    generator: str | None,
    evaluator: str | None,
    output: Path | None,
    master: str | None,
) -> None:
    """Count the matches, or write them as a folder of Parquet files."""
    if inputs.days is not None:
        raise typer.BadParameter("--spark takes all of the data", param_hint="'--days'")
    if output is not None and (output.suffix != ".parquet" or output.exists()):
        raise typer.BadParameter(
            "--spark writes a new folder of Parquet files, whose name ends with .parquet",
            param_hint="'--output'",
        )
    from cepbench.streams.csv import separator_of

    path, type_column, time_column = inputs.place()
    if separator_of(path):
        raise typer.BadParameter("it reads Parquet, not CSV; leave it out", param_hint="'--spark'")

    import pandas as pd

    from cepbench.engines.detection.planned import generator_for
    from cepbench.planning.planners.generate import plan
    from cepbench.spark.detection import DetectionJob
    from cepbench.spark.session import spark_session

    with out.progress("starting Spark"):
        spark = spark_session(master)
    planned = None
    if inputs.statistics is not None:
        generator = generator or generator_for([pattern], evaluator).name
        planned = plan(pattern, inputs.read_statistics(pattern, None), generator, seed=inputs.seed)
    kind = "count" if output is None else "matches"
    job = DetectionJob.of(path, pattern, time_column, type_column, None, None, evaluator, kind)
    made = job.slices(planned, generator, None)
    job = job.divided(made)
    for line in made.describe().splitlines():
        out.log(line)
    began = time.perf_counter()
    if output is None:
        counted = pd.concat(job.at_once(made, lambda found: found.toPandas()))
    else:
        with whole_folder(output.resolve()) as folder:
            job.at_once(made, lambda found: found.write.parquet(str(folder), mode="append"))
    elapsed = time.perf_counter() - began
    shown: Any = made.plans[0]
    outcome = {
        "pattern": str(pattern),
        "generator": shown and shown.generator,
        "plan": shown and shown.text,
        "master": spark.sparkContext.master,
        "tasks": made.tasks,
        "elapsed": elapsed,
        "output": output,
    }
    if output is None:
        outcome |= {
            "events": int(counted["events"].sum()),
            "copied": int(counted["copied"].sum()),
            "matches": int(counted["matches"].sum()),
            "seconds": float(counted["seconds"].sum()),
        }
    else:
        outcome["matches"] = spark.read.parquet(str(output.resolve())).count()
    if inputs.json:
        out.write_json(outcome)
        return
    out.write_text(
        f"{shown.describe().splitlines()[0] if shown else 'without a plan'}, run by Spark"
    )
    out.write_line()
    names = ["tasks", "events", "copied", "matches", "seconds", "elapsed"]
    out.write_table([outcome], [name for name in names if name in outcome])
    if output is not None:
        out.write_line(f"{outcome['matches']:,} matches are in {output}.")
