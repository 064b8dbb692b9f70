"""What reports of checks with a row for each run share: a verdict, text and HTML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import pandas as pd

from cepbench.experiments.sweeps.cells import ERROR, OK, REFUSED
from cepbench.markup import Html

_PAGE = Html(
    "<div><p><b>{{ heading }}</b></p><pre>{% for line in lines %}{{ line }}\n{% endfor %}</pre></div>"
)


class CheckReport(ABC):
    """Runs of patterns that were compared with a reference.

    Attributes
    ----------
    table : DataFrame
        A row for each run: ``pattern``, ``text``, ``check``, ``status`` (``ok``, ``refused``,
        ``error``), ``reason``, perhaps ``plan``, and the number that was expected.
    counted : str
        What that number counts, and its column.
    """

    table: pd.DataFrame
    counted: ClassVar[str]

    def __repr__(self) -> str:
        return f"<{self._heading()}>"

    @property
    def passed(self) -> bool:
        """Whether no check failed and at least one pattern was run."""
        return bool((self.table["status"] != ERROR).all() and (self.table["status"] == OK).any())

    def describe(self) -> str:
        """The report as text, a line a pattern."""
        return "\n".join([self._heading(), "", *self._lines()])

    def _repr_html_(self) -> str:
        return str(_PAGE(heading=self._heading(), lines=self._lines()))

    @abstractmethod
    def _heading(self) -> str:
        """The result in one line."""

    def _verdict(self) -> str:
        ok = int((self.table["status"] == OK).sum())
        return f"{'passed' if self.passed else 'FAILED'}: {ok} of {len(self.table)} runs"

    def _refused(self) -> int:
        return int((self.table["status"] == REFUSED).sum())

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
