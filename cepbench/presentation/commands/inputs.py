"""The arguments and options by which commands name a pattern, its events and its statistics."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepbench.errors import DatasetError, HierarchyError, PatternError, StatisticsError
from cepbench.experiments.plugins import load_plugins
from cepbench.files import user_path
from cepbench.presentation.commands.completion import complete_data, complete_pattern_names
from cepbench.presentation.commands.options import JsonOption, PluginOption, SeedOption
from cepbench.presentation.commands.output import log, progress

if TYPE_CHECKING:
    from cepbench.patterns.concepts import ConceptHierarchy
    from cepbench.patterns.model import Pattern
    from cepbench.planning.plans.model import AnyPlan
    from cepbench.planning.statistics.model import Statistics
    from cepbench.planning.workloads.model import Workload
    from cepbench.streams.datasets.dataset import Dataset
    from cepbench.streams.event_stream import EventStream


@dataclass
class StreamInputs:
    """The arguments and options that name a pattern and its events."""

    text: Annotated[
        str | None,
        typer.Argument(
            metavar="PATTERN",
            show_default=False,
            help="Pattern text, a file with it, or - for standard input. Most commands take "
            "several queries, too, each on lines that begin with its name: Q1 = PATTERN ….",
        ),
    ] = None
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            "-d",
            metavar="NAME|PATH",
            autocompletion=complete_data,
            help="A data set such as nasdaq-style/quick, or Parquet.",
        ),
    ] = None
    pattern_name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete_pattern_names,
            help="A pattern of the data set's library, instead of PATTERN.",
        ),
    ] = None
    plugin: PluginOption = None
    days: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Only the first days of a data set.")
    ] = None
    only_types: Annotated[
        bool,
        typer.Option(
            "--only-types",
            help="Read only events of the pattern's types, for data that exceeds memory.",
        ),
    ] = False
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE,TIME",
            help="Columns of event type and time in your Parquet; by default symbol,ts.",
        ),
    ] = None
    hierarchy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='Concepts above event types as JSON: {"Company": {"Computer": ["INTC", "DELL"]}}.',
        ),
    ] = None
    dialect: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Read PATTERN as a paper prints it: zstream, sase+, a-seq or e-cube.",
        ),
    ] = None
    within: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="The window of queries of a dialect that have none."),
    ] = None
    json: JsonOption = False

    def read_pattern(self, *, needs_data: bool = True) -> Pattern:
        """The pattern; opens the data set and loads the plug-ins, too.

        Raises
        ------
        typer.BadParameter
            If ``--data`` is missing, or not exactly one pattern is given.
        PatternError
            If it is not a valid pattern, or its file cannot be read.
        DatasetError
            If there is no such data set or path, or the pattern's name is unknown.
        """
        found = self.read_queries(needs_data=needs_data)
        if found.by_query:
            raise typer.BadParameter(
                f"it has several queries, {', '.join(found.patterns)}; this command takes one pattern",
                param_hint="PATTERN",
            )
        return found

    def read_queries(self, *, needs_data: bool = True) -> Pattern | Workload:
        """As :meth:`read_pattern`; of a text of ``Q1 = PATTERN …`` lines the workload."""
        from cepbench.patterns.parse import parse
        from cepbench.planning.workloads.model import Workload

        given = self._given(needs_data=needs_data)
        if isinstance(given, str) and Workload.names_queries(given, self.dialect):
            return Workload.parse(
                given, dialect=self.dialect, within=self.within, hierarchy=self._concepts
            )
        pattern = given
        if isinstance(pattern, str):
            pattern = parse(pattern, dialect=self.dialect, within=self.within)
        return pattern.with_hierarchy(self._concepts) if self._concepts else pattern

    @cached_property
    def _concepts(self) -> ConceptHierarchy | None:
        """The hierarchy of ``--hierarchy``."""
        if self.hierarchy is None:
            return None
        from cepbench.patterns.concepts import ConceptHierarchy

        try:
            content = json.loads(user_path(self.hierarchy).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:
            raise HierarchyError(
                f"{self.hierarchy} cannot be read as JSON ({_why(error)}); it holds a hierarchy such as "
                '{"Company": {"Computer": ["INTC", "DELL"]}, "AMAT": []}'
            ) from None
        return ConceptHierarchy(content)

    def _given(self, *, needs_data: bool) -> Pattern | str:
        """The pattern of the library, or the text."""
        if self.data is None and needs_data:
            raise _no_data()
        dataset = self._dataset
        if (self.text is None) == (self.pattern_name is None):
            both = "not both" if self.text else "as text, a file, or - for standard input"
            raise typer.BadParameter(
                f"give PATTERN or --pattern-name, {both}", param_hint="PATTERN"
            )
        if self.text is not None:
            given: Pattern | str = _text_of(self.text)
        elif self.data is None:
            raise typer.BadParameter("it requires --data", param_hint="'--pattern-name'")
        elif dataset is None:
            raise DatasetError(
                f"{self.data} is Parquet without a library of patterns; give the pattern, or the "
                "name of a data set"
            )
        else:
            given = dataset.patterns.entry(str(self.pattern_name)).pattern
        load_plugins(self.plugin)
        return given

    @cached_property
    def _dataset(self) -> Dataset | None:
        """The data set, opened; None without ``--data`` and for other Parquet."""
        if self.data is None:
            return None
        from cepbench.streams.dataset_folder import read_declaration
        from cepbench.streams.datasets.catalogue import folders
        from cepbench.streams.datasets.opening import open_dataset

        if (
            self.data.partition("/")[0] not in folders()
            # Unlike Path.exists, never raises.
            and os.path.exists(os.path.expanduser(self.data))
            and not read_declaration(self.data)
        ):
            _check_parquet(user_path(self.data))
            return None
        with progress(f"opening {self.data}"):
            return open_dataset(self.data)

    def read_stream(self, pattern: Pattern | Workload, *, positions: bool = False) -> EventStream:
        """The events of ``--data`` that ``--days`` and ``--only-types`` select.

        Parameters
        ----------
        pattern : Pattern or Workload
        positions : bool
            Whether the stream needs the positions of its events in the whole source.

        Raises
        ------
        DatasetError, StreamError
            If they cannot be read.
        """
        stream = self._read(pattern, positions=positions)
        return stream if self._concepts is None else stream.with_hierarchy(self._concepts)

    def _read(self, pattern: Pattern | Workload, *, positions: bool) -> EventStream:
        from cepbench.streams.event_stream import EventStream

        with progress(f"reading {self.data}"):
            if self._dataset is not None:
                self.place()  # checks the columns
                types = pattern.types if self.only_types else None
                return self._dataset.stream(types, days=self.days, positions=positions)
            if self.days is not None:
                raise typer.BadParameter(
                    "Parquet that is not a data set is read as a whole", param_hint="'--days'"
                )
            path, type_column, time_column = self.place()
            stream = EventStream.from_parquet(
                path,
                type=type_column,
                time=time_column,
                types=pattern.types if self.only_types else None,
                sort=True,
                positions=positions,
            )
        if stream.was_sorted:
            log(
                f"{self.data} is not in order of {time_column}: its events were sorted by it. "
                "Positions are rows of the data as it is"
            )
        return stream

    def place(self) -> tuple[Path, str, str]:
        """Where the events are, and the columns of type and time.

        Raises
        ------
        typer.BadParameter
            If the columns are not two.
        """
        from cepbench.streams.dataset_folder import type_column

        given = self.columns or "symbol,ts"
        its_type, comma, its_time = (part.strip() for part in given.partition(","))
        if not comma:
            raise typer.BadParameter(
                f"{self.columns!r} is one column; give two, such as symbol,ts",
                param_hint="'--columns'",
            )
        if self._dataset is None:
            return user_path(str(self.data)), its_type, its_time
        own = type_column(self._dataset.kind), "ts"
        if self.columns and (its_type, its_time) != own:
            raise typer.BadParameter(
                f"it is for other Parquet; the data set {self.data} has the types and times of its "
                f"events in {own[0]},{own[1]}",
                param_hint="'--columns'",
            )
        return self._dataset.path, *own


@dataclass
class Inputs(StreamInputs):
    """The shared arguments and options of commands under :func:`~.options.with_shared`."""

    statistics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read rates and selectivities from a file, as written by `cepbench data stats "
            "--json`, instead of measuring them.",
        ),
    ] = None
    seed: SeedOption = 0

    def read_statistics(self, asked: Pattern | Workload, stream: EventStream | None) -> Any:
        """The statistics in the file, or without one those measured on the stream; of a workload by query.

        The file may be the output of ``cepbench data stats --json`` or ``cepbench plan --json``.

        Raises
        ------
        typer.BadParameter
            If there is neither a file nor a stream.
        StatisticsError
            If the file has no statistics, or none of a query.
        """
        from cepbench.planning.statistics.measure import measure_statistics
        from cepbench.planning.statistics.model import Statistics

        if self.statistics is None:
            if stream is None:
                raise _no_data()
            with progress("measuring statistics"):
                return measure_statistics(asked, stream, seed=self.seed)
        content = self._statistics_in(self.statistics)
        if not asked.by_query:
            return Statistics.from_dict(content)
        content = content if isinstance(content, dict) else {}
        missing = [query for query in asked.queries if query not in content]
        if missing:
            raise StatisticsError(
                f"{self.statistics} has no statistics of query {', '.join(missing)}; for a workload "
                'it holds {"q1": {"rates": {"a": 0.5}}, …}, as `cepbench plan --json` writes it'
            )
        return {query: Statistics.from_dict(content[query]) for query in asked.queries}

    @staticmethod
    def _statistics_in(file: Path) -> Any:
        try:
            content = json.loads(user_path(file).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:
            raise StatisticsError(
                f"{file} cannot be read as JSON ({_why(error)}); give the output of "
                "`cepbench data stats NAME --pattern PATTERN --json`, or just "
                '{"rates": {"a": 0.5, "b": 2}, "selectivities": [["a", "b", 0.1]]}'
            ) from None
        return content.get("statistics", content) if isinstance(content, dict) else content


def _no_data() -> typer.BadParameter:
    return typer.BadParameter(
        "it is required: the name of a data set, or Parquet", param_hint="'--data'"
    )


def run_alone(evaluator: str | None, generators: Sequence[str] | None) -> bool:
    """Whether an evaluator is named that runs without the plans of these generators.

    None for the default generators.
    """
    from cepbench.engines.detection.registry import evaluator_for
    from cepbench.engines.detection.tasks import runs_without
    from cepbench.planning.planners.registry import generators_from

    if evaluator is None:
        return False
    kinds = [generator.kind for generator in generators_from(generators)]
    return runs_without(evaluator_for(evaluator), kinds)


def automaton_for(pattern: Pattern, evaluator: str) -> AnyPlan | None:
    """The automaton of a pattern, for an evaluator that runs automata."""
    from cepbench.engines.automata.compilation import automaton
    from cepbench.engines.detection.registry import evaluator_for
    from cepbench.engines.detection.tasks import runs_some

    return automaton(pattern) if runs_some(evaluator_for(evaluator), "automaton") else None


def last_variable(
    pattern: Pattern, stream: EventStream | None, statistics: Statistics
) -> str | list[str | None] | None:
    """The variable whose event comes last, determined on the data unless the pattern implies it.

    Raises
    ------
    StatisticsError
        If the data is needed and missing.
    """
    from cepbench.planning.costs.temporal import TemporalOrder

    if all(len(TemporalOrder(branch).latest()) == 1 for branch in pattern.branches()):
        return None
    if stream is None:
        raise StatisticsError(
            "--alpha weighs latency, which depends on the variable whose event comes last, and the "
            "pattern does not determine it; give --last, or --data to determine it there"
        )
    from cepbench.experiments.sweeps.profiler import expected_last

    with progress("finding which event comes last"):
        return expected_last(pattern, stream, statistics)


def _check_parquet(path: Path) -> None:
    """Raise a DatasetError for a file of another kind, or a folder without Parquet."""
    from cepbench.streams.parquet_layout import begins_as_parquet, parquet_files
    from cepbench.streams.sources import recognized

    if path.is_dir():
        if not parquet_files(path):
            raise DatasetError(f"the folder {path} has neither Parquet files nor a data set")
    elif not begins_as_parquet(path):
        found = recognized(path)
        raise DatasetError(
            f"{path} is not Parquet. Ingest minute bars and LOBSTER messages with `cepbench "
            f"data ingest {found.kind if found else 'KIND'} {path} --name mine`; convert other tables with pandas: "
            'pandas.read_csv("events.csv", parse_dates=["time"]).to_parquet("events.parquet")'
        )


def _text_of(given: str) -> str:
    """A text with a pattern, that of the file of this name, or for ``-`` of standard input."""
    if given == "-":
        try:
            return sys.stdin.read()
        except UnicodeDecodeError as error:
            raise PatternError(f"standard input is not UTF-8 ({error})") from None
    # Unlike Path.is_file, os.path.isfile never raises.
    if not os.path.isfile(os.path.expanduser(given)) and (
        "(" in given or given.lstrip().upper().startswith("PATTERN ")
    ):
        return given
    try:
        return user_path(given).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise PatternError(
            f"{given!r} is neither a pattern nor a readable file ({_why(error)}). A pattern "
            "looks like: PATTERN SEQ(MSFT a, GOOG b) WHERE a.price < b.price WITHIN 20 minutes"
        ) from None


def _why(error: Exception) -> Any:
    return error.strerror if isinstance(error, OSError) and error.strerror else error
