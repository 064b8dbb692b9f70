"""What commands read: patterns, events, statistics."""

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


#: How every Parquet file begins.
_PARQUET = b"PAR1"


@dataclass(frozen=True)
class Source:
    """Where a command's events come from.

    Attributes
    ----------
    name : str
        As it was given: of a data set, or a path.
    dataset : Dataset or None
        None for Parquet that is no data set.
    columns : str
        Names of the columns with type and time, with a comma between, for such Parquet.
    """

    name: str
    dataset: Dataset | None
    columns: str

    def pattern(self, name: str) -> Pattern:
        """A pattern of the data set's library.

        Raises
        ------
        DatasetError
            If there is none of that name, or no library.
        """
        if self.dataset is None:
            raise DatasetError(
                f"{self.name} is Parquet without a library of patterns; give the pattern itself, "
                "or the name of a data set"
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
        """The events, maybe of the first days or of the pattern's types alone.

        Parameters
        ----------
        pattern : Pattern
        days : int or None
        only_types : bool
        positions : bool
            Whether the stream must know where its events stand in all of the source.

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
                    "Parquet that is no data set is read as a whole", param_hint="'--days'"
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
                f"{self.columns!r} names one column; give two, such as symbol,ts",
                param_hint="'--columns'",
            )
        return type_column.strip(), time_column.strip()


def source_of(data: str | None, columns: str) -> Source:
    """Where the events are.

    Raises
    ------
    typer.BadParameter
        If that was not said.
    DatasetError
        If there is no such data set or path.
    """
    if data is None:
        raise typer.BadParameter(
            "say where the events are: the name of a data set, or Parquet", param_hint="'--data'"
        )
    from cepbench.datasets.catalogue import folders
    from cepbench.datasets.opening import open_dataset
    from cepbench.streams.dataset_folder import read_declaration

    if (
        data.partition("/")[0] not in folders()
        and os.path.exists(data)  # unlike Path's, false for what can be no path at all
        and not read_declaration(data)
    ):
        _check_parquet(Path(data))
        return Source(data, None, columns)
    with progress(f"opening {data}"):
        return Source(data, open_dataset(data), columns)


def _check_parquet(path: Path) -> None:
    """Refuse a file of another kind, and a folder without any Parquet.

    Raises
    ------
    DatasetError
        With what to do.
    """
    if path.is_dir():
        if not any(path.rglob("*.parquet")):
            raise DatasetError(f"there is no Parquet below the folder {path}, and no data set")
        return
    with path.open("rb") as file:
        if file.read(len(_PARQUET)) != _PARQUET:
            raise DatasetError(
                f"{path} is no Parquet. Minute bars and LOBSTER's messages are read by `cepbench "
                f"data ingest KIND {path} --name mine`; of other tables pandas makes Parquet: "
                'pandas.read_csv("events.csv", parse_dates=["time"]).to_parquet("events.parquet")'
            )


def read_pattern(text: str | None, name: str | None, source: Source | None) -> Pattern:
    """The pattern that a command was given.

    Parameters
    ----------
    text : str or None
        Pattern text, the file of one, or ``-`` for standard input.
    name : str or None
        One of the source's library.
    source : Source or None

    Raises
    ------
    PatternError
        If it is no pattern, or a file that cannot be read.
    DatasetError
        If there is no such name.
    """
    from cepbench.patterns.parse import parse

    if (text is None) == (name is None):
        both = "not both" if text else "its text, the file of one, or - for standard input"
        raise typer.BadParameter(f"give PATTERN or --pattern-name, {both}", param_hint="PATTERN")
    if name is not None:
        if source is None:
            raise typer.BadParameter("it needs --data", param_hint="'--pattern-name'")
        return source.pattern(name)
    assert text is not None
    if text == "-":
        try:
            return parse(sys.stdin.read())
        except UnicodeDecodeError as error:
            raise PatternError(f"standard input is no text in UTF-8 ({error})") from None
    if not _is_file(text) and ("(" in text or text.lstrip().upper().startswith("PATTERN ")):
        return parse(text)
    try:
        return parse(Path(text).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PatternError(
            f"{text!r} is no pattern, and no file of one can be read ({_why(error)}). A pattern "
            "looks like: PATTERN SEQ(MSFT a, GOOG b) WHERE a.price < b.price WITHIN 20 minutes"
        ) from None


def _is_file(text: str) -> bool:
    """Whether a file has this name; a long text, or one with odd characters, is none."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def read_statistics(
    file: Path | None, pattern: Pattern, stream: EventStream | None, seed: int
) -> Statistics:
    """The statistics in a file, or else those of the stream.

    The file may also be what ``cepbench data stats --json`` or ``cepbench plan --json`` wrote.

    Raises
    ------
    StatisticsError
        If the file holds none.
    """
    from cepbench.statistics.model import Statistics

    if file is None:
        from cepbench.statistics.measure import measure_statistics

        assert stream is not None  # what was given was seen to
        with progress("measuring statistics"):
            return measure_statistics(pattern, stream, seed=seed)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StatisticsError(
            f"{file} cannot be read as JSON ({_why(error)}); it must hold what "
            "`cepbench data stats NAME --pattern PATTERN --json` writes, or just "
            '{"rates": {"a": 0.5, "b": 2}, "selectivities": [["a", "b", 0.1]]}'
        ) from None
    if isinstance(content, dict):
        content = content.get("statistics", content)
    return Statistics.from_dict(content)


def _why(error: Exception) -> Any:
    return error.strerror if isinstance(error, OSError) and error.strerror else error
