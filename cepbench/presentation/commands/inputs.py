"""The arguments and options by which commands name a pattern, its events and its statistics."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from cepbench.errors import (
    CepbenchError,
    DatasetError,
    HierarchyError,
    PatternError,
    StatisticsError,
    StreamError,
)
from cepbench.experiments.plugins import load_plugins
from cepbench.files import user_path
from cepbench.presentation.commands import output as out

if TYPE_CHECKING:
    from cepbench.patterns.concepts import ConceptHierarchy
    from cepbench.patterns.model import Pattern
    from cepbench.patterns.row_pattern import RowPattern
    from cepbench.planning.statistics.model import Statistics
    from cepbench.planning.workloads.model import Workload
    from cepbench.streams.datasets.dataset import Dataset
    from cepbench.streams.event_stream import EventStream

    _Asked = TypeVar("_Asked", Pattern, Workload, Pattern | Workload)


#: The dialects of files by the ends of their names.
_DIALECTS = {".sql": "match_recognize", ".eql": "eql", ".yml": "sigma", ".yaml": "sigma"}


@dataclass
class StreamInputs:
    """The arguments and options that name a pattern and its events."""

    text: str | None = None
    data: str | None = None
    pattern_name: str | None = None
    plugin: list[Path] | None = None
    days: int | None = None
    only_types: bool = False
    columns: str | None = None
    hierarchy: Path | None = None
    dialect: str | None = None
    within: str | None = None
    json: bool = False

    def __post_init__(self) -> None:
        if self.dialect is None and self.text is not None:
            self.dialect = _DIALECTS.get(Path(self.text).suffix.lower())

    def check_unread(self, file: Path | None, option: str) -> None:
        """Refuse to write to a file that the command reads, or into a folder of events."""
        if file is None:
            return
        written = os.path.realpath(file)
        given = (self.data, self.text, self.hierarchy, getattr(self, "statistics", None))
        for read in filter(None, (*given, *(self.plugin or ()))):
            # Unlike those of Path, these never raise; a pattern may be its own text.
            path = os.path.realpath(os.path.expanduser(read))
            if written == path or (os.path.isdir(path) and written.startswith(f"{path}{os.sep}")):
                raise typer.BadParameter(
                    f"{file} would overwrite what {read} holds, or be read as a part of it; give another name",
                    param_hint=option,
                )

    def read_pattern(self) -> Pattern:
        """As :meth:`read_queries`, for commands that take one pattern; several are a usage error."""
        found = self.read_queries()
        if found.by_query:
            raise typer.BadParameter(
                f"it has several queries, {', '.join(found.patterns)}; this command takes one pattern",
                param_hint="PATTERN",
            )
        return found

    def read_queries(self, *, needs_data: bool = True) -> Pattern | Workload:
        """The pattern, or of ``Q1 = PATTERN …`` lines the workload; opens the data set and loads plug-ins."""
        from cepbench.patterns.match_recognize import read_match_recognize
        from cepbench.patterns.parse import MATCH_RECOGNIZE, parse
        from cepbench.patterns.row_counterpart import counterpart
        from cepbench.planning.workloads.model import Workload

        if self.data is None and needs_data:
            raise _no_data()
        dataset = self._dataset
        if (self.text is None) == (self.pattern_name is None):
            both = "not both" if self.text else "as text, a file, or - for standard input"
            raise typer.BadParameter(
                f"give PATTERN or --pattern-name, {both}", param_hint="PATTERN"
            )
        if self.text is not None:
            text = _text_of(self.text)
            load_plugins(self.plugin)
            if self.dialect == MATCH_RECOGNIZE:
                return counterpart(read_match_recognize(text))
            if Workload.names_queries(text, self.dialect):
                return Workload.parse(
                    text, dialect=self.dialect, within=self.within, hierarchy=self._concepts
                )
            pattern = parse(text, dialect=self.dialect, within=self.within)
        else:
            if self.data is None:
                raise typer.BadParameter("it requires --data", param_hint="'--pattern-name'")
            if dataset is None:
                raise DatasetError(
                    f"{self.data} is a table without a library of patterns; give the pattern, or the "
                    "name of a data set"
                )
            pattern = dataset.patterns.entry(str(self.pattern_name)).pattern
            load_plugins(self.plugin)
        return pattern.with_hierarchy(self._concepts) if self._concepts else pattern

    def read_row_pattern(self, *, needs_data: bool = True) -> RowPattern | None:
        """The query with MATCH_RECOGNIZE; None in another dialect."""
        from cepbench.patterns.match_recognize import read_match_recognize
        from cepbench.patterns.parse import MATCH_RECOGNIZE

        if self.dialect != MATCH_RECOGNIZE:
            return None
        for name in ("pattern_name", "plugin", "only_types", "hierarchy", "within"):
            if getattr(self, name):
                raise typer.BadParameter(
                    "it is not for SQL", param_hint=f"'--{name.replace('_', '-')}'"
                )
        if self.text is None:
            raise typer.BadParameter("give the query, its file, or -", param_hint="PATTERN")
        if self.data is None and needs_data:
            raise _no_data()
        return read_match_recognize(_text_of(self.text))

    @cached_property
    def _concepts(self) -> ConceptHierarchy | None:
        if self.hierarchy is None:
            return None
        from cepbench.patterns.concepts import ConceptHierarchy

        return ConceptHierarchy(
            _json_in(
                self.hierarchy,
                HierarchyError,
                "it holds a hierarchy such as "
                '{"Company": {"Computer": ["INTC", "DELL"]}, "AMAT": []}',
            )
        )

    @cached_property
    def _dataset(self) -> Dataset | None:
        """The data set, opened; None without ``--data``, and for other Parquet and CSV."""
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
            _check_table(user_path(self.data))
            return None
        with out.progress(f"opening {self.data}"):
            return open_dataset(self.data)

    def read_stream(self, asked: _Asked, *, positions: bool = False) -> tuple[_Asked, EventStream]:
        """The events of ``--data`` that ``--days`` and ``--only-types`` select, and who asks for them.

        Both are under the concept hierarchy that either has. ``positions`` is whether the stream needs
        those of its events in the whole source.
        """
        from cepbench.engines.detection.slices import types_of_matches
        from cepbench.streams.fit import under_one_hierarchy

        types = types_of_matches(asked) if self.only_types else None
        return under_one_hierarchy(asked, self.read_events(types, positions=positions))

    def read_events(
        self, types: list[str] | None = None, *, positions: bool = False
    ) -> EventStream:
        """The events of ``--data`` of some types, or of all, that ``--days`` selects."""
        from cepbench.streams.csv import separator_of
        from cepbench.streams.event_stream import EventStream

        path, type_column, time_column = self.place()
        with out.progress(f"reading {self.data}"):
            if self._dataset is not None:
                stream = self._dataset.stream(types, days=self.days, positions=positions)
            elif self.days is not None:
                raise typer.BadParameter(
                    "what is not a data set is read as a whole", param_hint="'--days'"
                )
            else:
                try:
                    if separator_of(path):
                        stream = EventStream.from_csv(
                            path, type=type_column, time=time_column, sort=True
                        )
                        stream = stream if types is None else stream.of_types(types)
                    else:
                        stream = EventStream.from_parquet(
                            path,
                            type=type_column,
                            time=time_column,
                            types=types,
                            sort=True,
                            positions=positions,
                        ).without_unused_types()
                except StreamError as error:
                    if self.columns or not error.column:
                        raise
                    raise StreamError(f"{error}; --columns TYPE,TIME names other ones") from None
        if stream.was_sorted:
            out.log(
                f"{self.data} is not in order of {time_column}: its events were sorted by it. "
                "Positions are rows of the data as it is"
            )
        if self._concepts is not None:
            stream = stream.with_hierarchy(self._concepts)
        return stream

    def place(self) -> tuple[Path, str, str]:
        """Where the events are, and the columns of type and time, which have to be two."""
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
                f"it is for other tables; the data set {self.data} has the types and times of its "
                f"events in {own[0]},{own[1]}",
                param_hint="'--columns'",
            )
        return self._dataset.path, *own


@dataclass
class Inputs(StreamInputs):
    """The shared arguments and options of commands under :func:`~.options.declared`."""

    statistics: Path | None = None
    seed: int = 0

    def read_statistics(self, asked: Pattern | Workload, stream: EventStream | None) -> Any:
        """The statistics in the file, or those measured on the stream; of a workload by query.

        The file may be the output of ``cepbench data stats --json`` or ``cepbench plan --json``.
        """
        from cepbench.planning.statistics.measure import measure_statistics
        from cepbench.planning.statistics.model import Statistics

        if self.statistics is None:
            if stream is None:
                raise _no_data()
            with out.progress("measuring statistics"):
                return measure_statistics(asked, stream, seed=self.seed)
        content = _json_in(
            self.statistics,
            StatisticsError,
            "give the output of `cepbench data stats NAME --pattern PATTERN --json`, or just "
            '{"rates": {"a": 0.5, "b": 2}, "selectivities": [["a", "b", 0.1]]}',
        )
        if isinstance(content, dict):
            content = content.get("statistics", content)
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

    def plan(
        self,
        asked: Pattern | Workload,
        stream: EventStream | None,
        *,
        planner: str | None,
        generator: str | None,
        evaluator: str | None,
        alpha: float = 0.0,
        last: str | None = None,
    ) -> tuple[Any, Any, Any]:
        """The plan to run, its statistics, and the variable whose event comes last where that matters.

        For an evaluator that runs without the generator's plans it is the pattern's automaton or None,
        and there are no statistics.
        """
        from cepbench.engines.detection.planned import generator_or_automaton
        from cepbench.planning.planners.generate import plan
        from cepbench.planning.planners.sharing.generate import plan_workload

        made: Any
        if asked.by_query:
            statistics, name = self.read_statistics(asked, stream), planner or "CHASE"
            with out.progress(f"planning with {name}"):
                made = plan_workload(
                    asked, statistics, name, delays=True, seed=self.seed, generator=generator,
                    evaluator=evaluator,
                )  # fmt: skip
            return made, statistics, None
        used, made = generator_or_automaton(asked, evaluator, generator)
        if used is None:
            return made, None, None
        statistics = self.read_statistics(asked, stream)
        its_last = last if last or not alpha else last_variable(asked, stream, statistics)
        with out.progress(f"planning with {used.name}"):
            made = plan(asked, statistics, used, seed=self.seed, alpha=alpha, last=its_last)
        return made, statistics, its_last


def check_kind(asked: Pattern | Workload, planner: Any, **of_patterns: Any) -> None:
    """Refuse options of single patterns with several queries, and ``--planner`` with one pattern."""
    if planner and not asked.by_query:
        raise typer.BadParameter(
            "it is for several queries, Q1 = PATTERN … Q2 = PATTERN …, and this is one pattern; give "
            "--generator",
            param_hint="'--planner'",
        )
    for name, value in of_patterns.items():
        if value and asked.by_query:
            raise typer.BadParameter(
                "it is for single patterns, and there are several queries; leave it out",
                param_hint=f"'--{name}'",
            )


def texts(asked: Pattern | Workload) -> dict[str, Any]:
    """The text of the pattern, or those of all queries, as the first key of a JSON document."""
    if not asked.by_query:
        return {"pattern": str(asked)}
    return {"queries": {query: str(its) for query, its in asked.queries.items()}}


def _no_data() -> typer.BadParameter:
    return typer.BadParameter(
        "it is required: the name of a data set, Parquet or a CSV file", param_hint="'--data'"
    )


def last_variable(
    pattern: Pattern, stream: EventStream | None, statistics: Statistics
) -> str | list[str | None] | None:
    """The variable whose event comes last, determined on the data, which is then needed, unless the pattern implies it."""
    from cepbench.planning.costs.temporal import TemporalOrder

    if all(len(TemporalOrder(branch).latest()) == 1 for branch in pattern.branches()):
        return None
    if stream is None:
        raise StatisticsError(
            "--alpha weighs latency, which depends on the variable whose event comes last, and the "
            "pattern does not determine it; give --last, or --data to determine it there"
        )
    from cepbench.experiments.sweeps.measure import expected_last

    with out.progress("finding which event comes last"):
        return expected_last(pattern, stream, statistics)


def _check_table(path: Path) -> None:
    """Raise a DatasetError for a file that is neither Parquet nor CSV, or a folder without Parquet."""
    from cepbench.streams.csv import separator_of
    from cepbench.streams.parquet_layout import begins_as_parquet, parquet_files
    from cepbench.streams.sources import recognized

    if path.is_dir():
        if not parquet_files(path):
            raise DatasetError(f"the folder {path} has neither Parquet files nor a data set")
    elif not begins_as_parquet(path):
        found = recognized(path)
        if found is None and separator_of(path):
            return
        raise DatasetError(
            f"{path} is neither Parquet nor CSV with a line of names. Ingest minute bars and LOBSTER messages "
            f"with `cepbench data ingest {found.kind if found else 'KIND'} {path} --name mine`; the name of a "
            "table of text ends in .csv or .tsv"
        )


def _json_in(file: Path, error: type[CepbenchError], advice: str) -> Any:
    try:
        return json.loads(user_path(file).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as wrong:
        raise error(f"{file} cannot be read as JSON ({_why(wrong)}); {advice}") from None


def _text_of(given: str) -> str:
    """A text with a pattern, that of the file of this name, or for ``-`` of standard input."""
    if given == "-":
        try:
            return sys.stdin.read()
        except UnicodeDecodeError as error:
            raise PatternError(f"standard input is not UTF-8 ({error})") from None
    # Unlike Path.is_file, os.path.isfile never raises.
    if not os.path.isfile(os.path.expanduser(given)) and (
        "(" in given or "[" in given or given.lstrip().upper().startswith("PATTERN ")
    ):
        return given
    try:
        return user_path(given).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PatternError(f"{given} is not UTF-8 ({error}); save it as UTF-8") from None
    except (OSError, ValueError) as error:
        raise PatternError(
            f"{given!r} is neither a pattern nor a readable file ({_why(error)}). A pattern "
            "looks like: PATTERN SEQ(MSFT a, GOOG b) WHERE a.price < b.price WITHIN 20 minutes"
        ) from None


def _why(error: Exception) -> Any:
    return error.strerror if isinstance(error, OSError) and error.strerror else error
