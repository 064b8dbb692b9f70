"""Inputs of commands: patterns, events, statistics."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cepbench.commands.output import progress
from cepbench.errors import DatasetError, PatternError, StatisticsError

if TYPE_CHECKING:
    from cepbench.datasets.dataset import Dataset
    from cepbench.patterns.model import Pattern
    from cepbench.statistics.model import Statistics
    from cepbench.streams.event_stream import EventStream


#: The first bytes of every Parquet file.
_PARQUET = b"PAR1"


@dataclass(frozen=True)
class Source:
    """The source of a command's events.

    Attributes
    ----------
    name : str
        As given: the name of a data set, or a path.
    dataset : Dataset or None
        None for other Parquet.
    columns : str
        Columns of type and time, comma-separated, for such Parquet.
    """

    name: str
    dataset: Dataset | None
    columns: str

    def pattern(self, name: str) -> Pattern:
        """A pattern of the data set's library.

        Raises
        ------
        DatasetError
            If the name is unknown, or there is no library.
        """
        if self.dataset is None:
            raise DatasetError(
                f"{self.name} is Parquet without a library of patterns; give the pattern, or the "
                "name of a data set"
            )
        return self.dataset.patterns.entry(name).pattern

    def stream(
        self,
        pattern: Pattern,
        *,
        days: int | None,
        only_types: bool,
        positions: bool = False,
    ) -> EventStream:
        """The events, optionally of the first days or of the pattern's types only.

        Parameters
        ----------
        pattern : Pattern
        days : int or None
        only_types : bool
        positions : bool
            Whether the stream needs the positions of its events in the whole source.

        Raises
        ------
        DatasetError, StreamError
            If they cannot be read.
        """
        from cepbench.streams.event_stream import EventStream

        with progress(f"reading {self.name}"):
            if self.dataset is not None:
                types = pattern if only_types else None
                return self.dataset.stream(types, days=days, positions=positions)
            if days is not None:
                raise typer.BadParameter(
                    "Parquet that is not a data set is read as a whole", param_hint="'--days'"
                )
            type_column, time_column = self._columns()
            return EventStream.from_parquet(
                self.name,
                type=type_column,
                time=time_column,
                types=[variable.type for variable in pattern.variables] if only_types else None,
                sort=True,
                positions=positions,
            )

    def _columns(self) -> tuple[str, str]:
        type_column, comma, time_column = self.columns.partition(",")
        if not comma:
            raise typer.BadParameter(
                f"{self.columns!r} is one column; give two, such as symbol,ts",
                param_hint="'--columns'",
            )
        return type_column.strip(), time_column.strip()


def source_of(data: str | None, columns: str) -> Source:
    """The source for the options ``--data`` and ``--columns``.

    Raises
    ------
    typer.BadParameter
        If ``data`` is None.
    DatasetError
        If there is no such data set or path.
    """
    if data is None:
        raise typer.BadParameter(
            "it is required: the name of a data set, or Parquet", param_hint="'--data'"
        )
    from cepbench.datasets.catalogue import folders
    from cepbench.datasets.opening import open_dataset
    from cepbench.streams.dataset_folder import read_declaration

    if (
        data.partition("/")[0] not in folders()
        and os.path.exists(data)  # unlike Path.exists, never raises
        and not read_declaration(data)
    ):
        _check_parquet(Path(data))
        return Source(data, None, columns)
    with progress(f"opening {data}"):
        return Source(data, open_dataset(data), columns)


def _check_parquet(path: Path) -> None:
    """Raise a DatasetError for a file of another kind, or a folder without Parquet."""
    if path.is_dir():
        if not any(path.rglob("*.parquet")):
            raise DatasetError(f"the folder {path} has neither Parquet files nor a data set")
        return
    with path.open("rb") as file:
        if file.read(len(_PARQUET)) != _PARQUET:
            raise DatasetError(
                f"{path} is not Parquet. Ingest minute bars and LOBSTER messages with `cepbench "
                f"data ingest KIND {path} --name mine`; convert other tables with pandas: "
                'pandas.read_csv("events.csv", parse_dates=["time"]).to_parquet("events.parquet")'
            )


def read_pattern(text: str | None, name: str | None, source: Source | None) -> Pattern:
    """The pattern of a command's arguments.

    Parameters
    ----------
    text : str or None
        Pattern text, a file with it, or ``-`` for standard input.
    name : str or None
        Of a pattern in the source's library.
    source : Source or None

    Raises
    ------
    PatternError
        If it is not a valid pattern, or the file cannot be read.
    DatasetError
        If the name is unknown.
    """
    from cepbench.patterns.parse import parse

    if (text is None) == (name is None):
        both = "not both" if text else "as text, a file, or - for standard input"
        raise typer.BadParameter(f"give PATTERN or --pattern-name, {both}", param_hint="PATTERN")
    if name is not None:
        if source is None:
            raise typer.BadParameter("it requires --data", param_hint="'--pattern-name'")
        return source.pattern(name)
    assert text is not None
    if text == "-":
        try:
            return parse(sys.stdin.read())
        except UnicodeDecodeError as error:
            raise PatternError(f"standard input is not UTF-8 ({error})") from None
    if not _is_file(text) and ("(" in text or text.lstrip().upper().startswith("PATTERN ")):
        return parse(text)
    try:
        return parse(Path(text).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PatternError(
            f"{text!r} is neither a pattern nor a readable file ({_why(error)}). A pattern "
            "looks like: PATTERN SEQ(MSFT a, GOOG b) WHERE a.price < b.price WITHIN 20 minutes"
        ) from None


def _is_file(text: str) -> bool:
    """Whether a file has this name; never raises."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def read_statistics(
    file: Path | None, pattern: Pattern, stream: EventStream | None, seed: int
) -> Statistics:
    """The statistics in a file, or those measured on the stream.

    The file may be the output of ``cepbench data stats --json`` or ``cepbench plan --json``.

    Raises
    ------
    StatisticsError
        If the file has no statistics.
    """
    from cepbench.statistics.model import Statistics

    if file is None:
        from cepbench.statistics.measure import measure_statistics

        assert stream is not None  # checked by the caller
        with progress("measuring statistics"):
            return measure_statistics(pattern, stream, seed=seed)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StatisticsError(
            f"{file} cannot be read as JSON ({_why(error)}); give the output of "
            "`cepbench data stats NAME --pattern PATTERN --json`, or just "
            '{"rates": {"a": 0.5, "b": 2}, "selectivities": [["a", "b", 0.1]]}'
        ) from None
    if isinstance(content, dict):
        content = content.get("statistics", content)
    return Statistics.from_dict(content)


def _why(error: Exception) -> Any:
    return error.strerror if isinstance(error, OSError) and error.strerror else error
