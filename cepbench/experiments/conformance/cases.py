"""Conformance cases: plain files with a stream, a pattern, its matches and the rule they turn on.

A folder of cases has a folder for each theme, with ``cases.toml``, a table for each case::

    [equal-timestamps]
    rule = "3 order"
    stream = "ties.csv"
    pattern = "PATTERN SEQ(A a, B b) WITHIN 4 units"
    expected = ["0 1", "0 4"]

A match is a text: the ids of the events bound to each variable in written order, those of a set with
commas in between (``,`` for none), ``-`` for a variable that a branch lacks. A query with MATCH_RECOGNIZE has a number for
each measure. A stream is a CSV file with the columns ``id`` (0, 1, …), ``type``, ``ts`` (whole numbers that
never decrease) and attributes; an empty cell is a missing value. ``texts.toml`` has the texts of a case in
other languages, see :data:`LANGUAGES`; one under ``texts`` in ``cases.toml`` is written by hand and comes first.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from cepbench.arguments import kind_of
from cepbench.errors import CannotSayError, CaseError, CepbenchError, did_you_mean
from cepbench.files import user_path
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import MATCH_RECOGNIZE, parse
from cepbench.patterns.row_pattern import RowPattern
from cepbench.streams.event_stream import EventStream

#: The languages that a case can be written in, beside ours.
LANGUAGES = ("sql", "match_recognize", "flink_cep", "ceql")

#: Before the reason in the place of a text.
CANNOT = "cannot say: "

#: For each variable of a match its event, its events, or None; for each measure a number.
Match = tuple[int | tuple[int, ...] | None, ...]

_KEYS = {"rule": str, "stream": str, "pattern": str, "expected": list}
_MAY = {"texts": dict, "note": str}


@dataclass(frozen=True)
class Case:
    """A stream, a pattern in several languages, and its matches."""

    #: ``theme/name``.
    name: str
    #: The rule of SEMANTICS that the matches turn on, or of the standard of SQL.
    rule: str
    #: The columns ``id``, ``type``, ``ts`` and attributes.
    events: pd.DataFrame = field(compare=False, repr=False)
    text: str
    expected: tuple[Match, ...]
    #: Language -> text, or ``cannot say`` and the reason.
    texts: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def theme(self) -> str:
        """The folder that it is in."""
        return self.name.partition("/")[0]

    @cached_property
    def pattern(self) -> Pattern | RowPattern:
        """The parsed text."""
        return parse(self.text, dialect=MATCH_RECOGNIZE if is_row_pattern(self.text) else None)

    @cached_property
    def stream(self) -> EventStream:
        """The events as a stream; the positions are the ids."""
        return EventStream.from_pandas(self.events, type="type", time="ts")

    def text_in(self, language: str) -> str:
        """The text in a language; CannotSayError with the reason if there is none."""
        text = self.texts.get(language, f"{CANNOT}the case has no text in {language}")
        if text.startswith(CANNOT):
            raise CannotSayError(text.removeprefix(CANNOT))
        return text


def is_row_pattern(text: str) -> bool:
    """Whether a text is a query with MATCH_RECOGNIZE."""
    return "MATCH_RECOGNIZE" in text.upper()


def written(match: Match) -> str:
    """A match as text."""
    return " ".join(
        "-"
        if its is None
        else ",".join(map(str, its)) or ","
        if isinstance(its, tuple)
        else str(its)
        for its in match
    )


def match_of(text: str) -> Match:
    """The match of a text; a ValueError if it is none."""
    return tuple(
        None
        if part == "-"
        else tuple(int(p) for p in part.split(",") if p)
        if "," in part
        else int(part)
        for part in text.split()
    )


def events_of(match: Match) -> Iterator[int]:
    """The ids of a match."""
    for its in match:
        yield from its if isinstance(its, tuple) else () if its is None else (its,)


def alike(matches: Iterable[Match]) -> Counter[Match]:
    """The matches as a multiset in which a set of one event is the event."""
    return Counter(
        tuple(its[0] if isinstance(its, tuple) and len(its) == 1 else its for its in match)
        for match in matches
    )


def read_cases(folder: str | Path) -> list[Case]:
    """All cases in a folder of a theme, or in the folders of all themes.

    Raises
    ------
    CaseError
        If there are none, or a file is broken: it names the file, the case and the key.
    """
    files = sorted([*user_path(folder).glob("cases.toml"), *user_path(folder).glob("*/cases.toml")])
    if not files:
        raise CaseError(
            f"{folder}: no file cases.toml, nor one in a folder of it; give that of a theme"
        )
    return [case for file in files for case in _cases_in(file)]


def _cases_in(file: Path) -> Iterator[Case]:
    tables = _tables_of(file)
    texts = _tables_of(beside) if (beside := file.with_name("texts.toml")).exists() else {}
    for name in texts.keys() - tables.keys():
        raise _broken(beside, name, "", f"no case of this name{did_you_mean(name, tables)}")
    streams: dict[str, pd.DataFrame] = {}
    for name, table in tables.items():
        for key, kind in (_KEYS | _MAY).items():
            given = table.get(key)
            if not isinstance(given, kind) and not (key in _MAY and given is None):
                wanted = {str: "a text", list: "a list of texts", dict: "a table"}[kind]
                what = "missing" if given is None else kind_of(given)
                raise _broken(file, name, key, f"must be {wanted}, and is {what}")
        for key in table.keys() - _KEYS.keys() - _MAY.keys():
            raise _broken(file, name, key, f"is no key{did_you_mean(key, _KEYS | _MAY)}")
        hand = table.get("texts", {})
        for key, text in (hand | texts.get(name, {})).items():
            if key not in LANGUAGES or not isinstance(text, str):
                where = f"texts.{key}"
                raise _broken(file, name, where, f"must be a text in {', '.join(LANGUAGES)}")
        if table["stream"] not in streams:
            streams[table["stream"]] = _events_of(file, name, table["stream"])
        events = streams[table["stream"]]
        case = Case(
            f"{file.parent.name}/{name}",
            table["rule"],
            events,
            table["pattern"],
            _expected(file, name, table["expected"], events),
            texts.get(name, {}) | hand,
            table.get("note", ""),
        )
        try:
            case.pattern  # noqa: B018 - an error of the text is the file's
        except CepbenchError as error:
            raise _broken(file, name, "pattern", str(error)) from error
        yield case


def _tables_of(file: Path) -> dict[str, dict[str, Any]]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CaseError(f"{file}: {error}") from error
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise _broken(file, name, "", f"must be a table of a case, and is {kind_of(table)}")
    return tables


def _events_of(file: Path, name: str, given: str) -> pd.DataFrame:
    path = file.parent / given
    try:
        events = pd.read_csv(path, dtype={"type": str}, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:
        raise _broken(file, name, "stream", f"{path}: {error}") from error
    lacking = [column for column in ("id", "type", "ts") if column not in events.columns]
    if lacking:
        raise _broken(file, name, "stream", f"{path} has no column {lacking[0]}")
    if events["id"].tolist() != list(range(len(events))):
        raise _broken(file, name, "stream", f"{path}: the column id must be 0, 1, 2, …")
    if not len(events):
        kinds = {"id": "int64", "ts": "int64", "type": "str"}
        return events.astype({name: kinds.get(str(name), "float64") for name in events})
    if events["ts"].dtype.kind != "i" or not events["ts"].is_monotonic_increasing:
        raise _broken(file, name, "stream", f"{path}: ts must be whole numbers that never decrease")
    return events


def _expected(file: Path, name: str, given: list[Any], events: pd.DataFrame) -> tuple[Match, ...]:
    found = []
    for text in given:
        try:
            match = match_of(text)
        except (AttributeError, ValueError) as error:
            raise _broken(
                file, name, "expected", f'{text!r} is no match, such as "0 1,2 4"'
            ) from error
        if not set(events_of(match)) <= set(range(len(events))):
            raise _broken(file, name, "expected", f"{text!r} has an id that is not in the stream")
        found.append(match)
    return tuple(found)


def _broken(file: Path, case: str, key: str, problem: str) -> CaseError:
    where = f"[{case}]{' ' if key else ''}{key}"
    return CaseError(f"{file}: {where}: {problem}", (case, key))
