"""What a comparison shows: as a DataFrame, in print, in a notebook, as a chart, in a file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pandas as pd

from cepbench.arguments import choice
from cepbench.engines.runs.result import shown_bytes
from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.cells import OK
from cepbench.files import user_path, whole_file
from cepbench.markup import Html, shortened
from cepbench.text_table import share_bar, table_text, terminal_width, wrapped

if TYPE_CHECKING:
    from altair import TopLevelMixin

#: What is compared → columns of the comparison, in order.
COLUMNS = {
    "generator": (
        "generator", "plan_kind", "evaluator", "plan", "cost", "plan_seconds", "events_per_second",
        "events_per_second_q1", "events_per_second_q3", "runs", "measured_with",
        "peak_partial_matches", "peak_bytes", "comparisons", "work", "matches", "status", "reason",
    ),
    "planner": (
        "planner", "evaluator", "plan", "cost", "plan_seconds", "events_per_second",
        "events_per_second_q1", "events_per_second_q3", "times_naive", "runs", "measured_with",
        "peak_bytes", "reused", "work", "matches", "status", "reason",
    ),
    "method": (
        "method", "seconds", "events_per_second", "seconds_per_slide", "runs", "updates",
        "peak_counters", "peak_objects", "peak_bytes", "work", "values", "status", "reason",
    ),
}  # fmt: skip

#: Ratio of the quartiles of a plan's runs above which a warning of noise is printed.
NOISY = 1.5

#: Characters of a workload's plan that are shown.
_LONGEST_PLAN = 200

# The bars behind the throughputs show the fast plans at a glance.
_PAGE = Html(
    """<pre class="cep-pattern">{{ pattern }}</pre>
<table class="dataframe cep-comparison"><thead><tr>
{% for name in texts.values() %}<th style="text-align:left">{{ name }}</th>{% endfor %}
{% for name in numbers.values() %}<th style="text-align:right">{{ name }}</th>{% endfor %}
</tr></thead><tbody>
{% for row in rows %}
<tr>{% for text in row.texts %}<td>{{ text }}</td>{% endfor %}
{% if row.reason %}
<td colspan="{{ numbers | length }}" style="text-align:left">{{ row.reason }}</td>
{% endif %}
{% for name, cell in row.cells.items() %}
<td style="text-align:right;{% if name == "events_per_second" %}background:linear-gradient(to left,
rgba(31,119,180,.25) {{ row.share }}%,transparent 0){% endif %}">{{ cell }}</td>
{% endfor %}
</tr>
{% endfor %}
</tbody></table>"""
)


#: Columns of texts → their headings; of planners ``plan`` has what is computed from other queries.
_TEXTS = {
    "generator": "plan generator", "planner": "planner", "method": "method", "evaluator": "evaluator",
    "plan": "plan",
}  # fmt: skip


class _Column(NamedTuple):
    """How a column of numbers is shown."""

    heading: str
    form: str = ",.0f"
    times: float = 1.0
    unit: str = ""


#: Columns of numbers → how they are shown, in this order.
_NUMBERS = {
    "cost": _Column("estimated cost", ".3g"),
    "plan_seconds": _Column("planning", ".2f", 1e3, " ms"),
    "seconds": _Column("time", ",.3g", 1e3, " ms"),
    "seconds_per_slide": _Column("time per event", ",.0f", 1e9, " ns"),
    "events_per_second": _Column("events/s"),
    "events_per_second_q1": _Column("middle half of the runs"),
    "times_naive": _Column("× NAIVE", ".2f"),
    "runs": _Column("runs"),
    "updates": _Column("updates"),
    "peak_counters": _Column("peak counters"),
    "peak_objects": _Column("peak objects"),
    "peak_partial_matches": _Column("peak partial matches"),
    "peak_bytes": _Column("peak memory"),
    "comparisons": _Column("comparisons"),
    "reused": _Column("reused"),
    "work": _Column("work"),
    "matches": _Column("matches"),
    "values": _Column("values"),
}


#: Heading in print → the column that it shows as a notebook does, if the comparison has it.
_SHORT = {
    "time": "seconds", "events/s": "events_per_second", "runs": "runs", "updates": "updates",
    "objects": "peak_objects", "stored": "peak_partial_matches", "memory": "peak_bytes",
    "compared": "comparisons", "reused": "reused", "matches": "matches", "values": "values",
}  # fmt: skip

#: Columns of texts in print, first.
_NAMES = ("generator", "planner", "method", "evaluator")


def shown(row: Mapping[Any, Any], name: str) -> str:
    """The text of a number of a row, empty if it is missing."""
    if name == "peak_bytes":
        return shown_bytes(row[name])
    if name == "runs" and not pd.isna(row.get("measured_with")):
        return f"those of {row['measured_with']}"
    if pd.isna(row[name]):
        return ""
    if name == "work":
        return str(row[name])
    _, form, times, unit = _NUMBERS[name]
    upper = f" – {row['events_per_second_q3']:,.0f}" if name == "events_per_second_q1" else ""
    return f"{times * row[name]:{form}}{unit}{upper}"


class Comparison(pd.DataFrame):
    """The result of :func:`cepbench.compare`: a DataFrame that prints as the command does."""

    _metadata: ClassVar = ["pattern", "events"]
    #: The pattern's text.
    pattern: str = ""
    #: The number of events.
    events: int = 0

    @classmethod
    def of(
        cls, rows: Sequence[Mapping[str, Any]], kind: str, pattern: str, events: int
    ) -> Comparison:
        """A comparison with the columns of its kind, a key of :data:`COLUMNS`."""
        made = cls(rows, columns=list(COLUMNS[kind]))
        made.pattern, made.events = pattern, events
        return made

    def text(self, width: int | None = None) -> str:
        """The table as text, with what its columns are; fitted into ``width`` characters if given."""
        shares = self._shares()
        plan = "from other queries" if "planner" in self else "plan" if "plan" in self else "reason"
        rows: list[dict[str, Any]] = []
        for row, share in zip(self.to_dict("records"), shares, strict=True):
            line: dict[str, Any] = {name: row[name] for name in _NAMES if name in row}
            rows.append(line)
            if row["status"] != OK:
                line[plan] = f"{row['status']}: {row['reason']}"
                continue
            line |= {head: shown(row, name) for head, name in _SHORT.items() if name in row}
            line |= {
                "est. cost": _cost(row.get("cost")),
                "": share_bar(share),
                "× NAIVE": row.get("times_naive"),
                plan: row.get("plan") or "",
            }
            if isinstance(row.get("measured_with"), str):
                line["runs"] = f"as {row['measured_with']}"
        time, speed, *others = _SHORT
        heads = [*_NAMES, "est. cost", time, speed, "", "× NAIVE", *others, plan]
        table = table_text(
            rows,
            [head for head in heads if any(line.get(head) not in (None, "") for line in rows)],
            right=["est. cost", *_SHORT],
            shrink=plan,
            less=("compared", "", "stored", "runs"),
            width=width,
        )
        notes = []
        if "events_per_second_q1" in self:
            spread = (self["events_per_second_q3"] / self["events_per_second_q1"]).max()
            if spread > NOISY:
                notes.append(
                    f"The interquartile range of one plan's runs spans a factor of {spread:.2g}; use "
                    "more seconds or events before relying on small ratios."
                )
        equal = ", shared by equal plans" if "measured_with" in self else ""
        notes.append(f"runs: interleaved{equal}; events/s: their median")
        if "comparisons" in self:
            notes.append(
                "stored: peak number of partial matches; compared: pairs tested against conditions"
            )
        lines = [self.pattern, f"{self.events:,} events", "", table, ""]
        return "\n".join([*lines, *(wrapped(note, width) for note in notes)])

    def __repr__(self) -> str:
        return self.text(terminal_width())

    def _shares(self) -> pd.Series[float]:
        """Of the fastest row's speed; 0 where no event was measured."""
        return (self["events_per_second"] / self["events_per_second"].max()).fillna(0.0)

    def plot(self) -> TopLevelMixin:  # type: ignore[override]  # pandas has an accessor there
        """Throughput and peak memory side by side, as an Altair chart that needs no network."""
        from cepbench.presentation.comparison.bars import comparison_bars  # imports altair

        return comparison_bars(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: the rows, the chart, or a page with both.

        Parameters
        ----------
        path : path
            Its suffix says what is written: ``.csv``, ``.json`` or ``.parquet`` the rows, ``.svg`` or
            ``.png`` the chart, ``.html`` a page that needs no network.

        Raises
        ------
        ExperimentError
            If the suffix is another one, or the file cannot be written.
        """
        target = user_path(path)
        kind = choice(target.suffix, "the suffix of a comparison's file", _FILES, ExperimentError)
        try:
            with whole_file(target) as unfinished:
                _FILES[kind](self, str(unfinished))
        except OSError as error:
            raise ExperimentError(f"cannot write {target}: {error.strerror or error}") from error

    def _repr_html_(self) -> str:
        shares = self._shares()
        texts = {name: heading for name, heading in _TEXTS.items() if name in self}
        if "planner" in self:
            texts["plan"] = "computed from others"
        numbers = {name: its.heading for name, its in _NUMBERS.items() if name in self}
        rows: list[dict[str, Any]] = []
        for row, share in zip(self.to_dict("records"), shares, strict=True):
            named = ["" if pd.isna(row[name]) else row[name] for name in texts]
            if "planner" in row:
                named[-1] = shortened(named[-1], _LONGEST_PLAN)
            found = {"texts": named, "reason": "", "share": "", "cells": {}}
            if row["status"] == OK:
                found["share"] = f"{100 * share:.1f}"
                found["cells"] = {name: shown(row, name) for name in numbers}
            else:
                found["reason"] = f"{row['status']}: {row['reason']}"
            rows.append(found)
        return str(_PAGE(pattern=self.pattern, texts=texts, numbers=numbers, rows=rows))


def _cost(cost: float | None) -> str:
    """A cost, which runs without a plan have not."""
    if cost is None or math.isnan(cost):
        return ""
    return f"{cost:.4g}" if math.isfinite(cost) else "∞"


def _save_page(comparison: Comparison, path: str) -> None:
    page = comparison.plot().to_html(inline=True)
    table = comparison._repr_html_()
    with open(path, "w", encoding="utf-8") as file:
        file.write(page.replace("<body>", f"<body>{table}", 1))


#: Suffix → what writes such a file.
_FILES: dict[str, Callable[[Comparison, str], object]] = {
    ".csv": lambda comparison, path: comparison.to_csv(path, index=False),
    ".html": _save_page,
    ".json": lambda comparison, path: comparison.to_json(path, orient="records", indent=1),
    ".parquet": lambda comparison, path: comparison.to_parquet(path),
    ".png": lambda comparison, path: comparison.plot().save(path, "png", ppi=200),
    ".svg": lambda comparison, path: comparison.plot().save(path, "svg"),
}
