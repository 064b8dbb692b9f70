"""One checker of what users register: checks with a row for each run, and the report of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from cepbench.arguments import choice, texts
from cepbench.errors import (
    ExperimentError,
    PlanGeneratorError,
    PlanningRefusedError,
    UnsupportedPatternError,
)
from cepbench.experiments.sweeps.cells import ERROR, OK, REFUSED
from cepbench.markup import Html
from cepbench.registry import Entry, Registry
from cepbench.streams.event_stream import EventStream

#: The row of a run, which it may add to, and the run, which returns what is wrong.
Check = tuple[dict[str, object], Callable[[], str | None]]

_Live = TypeVar("_Live", bound=Any)

_PAGE = Html(
    "<div><p><b>{{ heading }}</b></p><pre>{% for line in lines %}{{ line }}\n{% endfor %}</pre></div>"
)


class Report:
    """What checks of an implementation found, as a line, as text and as HTML."""

    def _heading(self) -> str:
        raise NotImplementedError

    def _lines(self) -> list[str]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{self._heading()}>"

    def describe(self) -> str:
        """The report as text."""
        return "\n".join([self._heading(), "", *self._lines()])

    def _repr_html_(self) -> str:
        return str(_PAGE(heading=self._heading(), lines=self._lines()))


@dataclass(frozen=True, repr=False)
class CheckReport(Report):
    """Runs of an implementation, compared with a reference; its text has a line a pattern."""

    name: str
    seed: int
    #: A row for each run: ``pattern``, its ``text``, ``check``, perhaps ``plan``, ``status`` (``ok``,
    #: ``refused``, ``error``), ``reason``, ``seconds``, and the number that was expected.
    table: pd.DataFrame
    #: What that number counts, and its column.
    counted: str
    #: The result in one line, with the fields ``name``, ``seed``, ``verdict`` and ``refused``, a number
    #: of runs.
    heading: str

    @property
    def passed(self) -> bool:
        """Whether no check failed and at least one pattern was run."""
        return bool((self.table["status"] != ERROR).all() and (self.table["status"] == OK).any())

    def _heading(self) -> str:
        number = self.table["status"].value_counts()
        verdict = "passed" if self.passed else "FAILED"
        return self.heading.format(
            name=self.name,
            seed=self.seed,
            verdict=f"{verdict}: {number.get(OK, 0)} of {len(self.table)} runs",
            refused=number.get(REFUSED, 0),
        )

    def _lines(self) -> list[str]:
        lines = []
        for name, runs in self.table.groupby("pattern", sort=False):
            wrong = runs[runs["status"] == ERROR]
            if len(wrong):
                one = wrong.iloc[0]
                along = f", along {one['plan']}" if one.get("plan") else ""
                where = f"{one['check']}: {one['text']}{along}"
                lines += [f"  FAILED   {name:<17}  {one['reason']}", f"{'':30}{where}"]
            elif (runs["status"] == REFUSED).all():
                lines.append(f"  refused  {name:<17}  {runs['reason'].iloc[0]}")
            else:
                tried = ", ".join(dict.fromkeys(runs["check"]))
                number = runs[self.counted].iloc[0]
                lines.append(f"  ok       {name:<17}  {number} {self.counted}: {tried}")
        return lines


def checked(checks: Iterable[Check], columns: Iterable[str]) -> pd.DataFrame:
    """The table of runs; a pattern or a problem that is refused is no failure."""
    rows = []
    for row, run in checks:
        began = time.perf_counter()
        try:
            reason = run()
            row |= {"status": ERROR if reason else OK, "reason": reason}
        except (UnsupportedPatternError, PlanningRefusedError) as error:
            row |= {"status": REFUSED, "reason": str(error)}
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # any error is a finding
            row |= {"status": ERROR, "reason": f"{type(error).__name__}: {error}"}
        rows.append(row | {"seconds": time.perf_counter() - began})
    return pd.DataFrame(rows, columns=list(columns))


def chosen_patterns(patterns: Any, known: Mapping[str, str]) -> list[str]:
    """The keys of patterns to run, checked; by default all."""
    wanted = texts(known if patterns is None else patterns, "patterns", ExperimentError)
    return [choice(name, "each of patterns", known, ExperimentError) for name in wanted]


def entry_of(
    registry: Registry[Entry], given: Any, function: str, kind: str, decorated: str
) -> Entry:
    """The entry of a name, or of a function that was registered: that whose attribute ``function`` it is.

    The error says what ``kind`` it is not registered as, and the line to write above it, ``decorated``.
    """
    if not callable(given):
        return registry.find(given)
    for entry in registry.values():
        if getattr(entry, function) is given:
            return entry
    name = getattr(given, "__name__", "my_idea")
    line = decorated.format(name=name.upper().replace("_", "-"))
    raise PlanGeneratorError(f"{name} is not registered as {kind}; write {line}")


def batches(
    live: _Live, stream: EventStream, seed: int, *, restored: bool
) -> Iterator[tuple[_Live, Any]]:
    """A live run and what it returns for each of seven random batches.

    With ``restored`` it is saved and restored after each batch.
    """
    cuts = np.sort(np.random.default_rng([seed, 1]).integers(0, len(stream), 6)).tolist()
    for begin, end in pairwise([0, *cuts, len(stream)]):
        found = live.push(stream[begin:end])
        if restored:
            live = type(live).restore(live.snapshot())
        yield live, found
