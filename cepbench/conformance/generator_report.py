"""What was found about a plan generator, as text, as a table and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from cepbench.markup import Html
from cepbench.planners.registry import TOLERANCE
from cepbench.plans.notes import from_log
from cepbench.sweeps.cells import OK, REFUSED

#: What the lines that plan a problem again begin with.
IMPORTS = (
    "from cepbench.conformance.generator_problems import check_problem\n"
    "from cepbench.planners.generate import plan_problem"
)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes
    ----------
    check : str
        A key of :data:`cepbench.conformance.generator_checks.CHECKS`.
    problem : str
        Name of the planning problem.
    message : str
        What happened and what to do; begins with a verb, the generator is what it speaks of.
    line : str
        Python that plans the problem again, after :data:`IMPORTS`; may be empty.
    """

    check: str
    problem: str
    message: str
    line: str


@dataclass(frozen=True)
class GeneratorReport:
    """What :func:`cepbench.check_generator` found.

    Attributes
    ----------
    generator, plan_kind : str
        Its name, and the kind of its plans.
    seed : int
    checks : mapping of str to str
        Check -> what a generator does that passes it.
    findings : tuple of Finding
        All that is wrong, check by check, small problems first.
    tried, left_out : tuple of str
        Names of the problems that were planned, and of those that were not any more.
    costs : DataFrame
        One row a problem and generator, of ``generator`` and of the default generators of the
        same kind of plan: ``problem``, ``size``, ``generator``, ``status``, ``reason``,
        ``seconds``, ``plan_log_cost`` (natural logarithm) and ``log_distance``, that over the
        least cost; missing where it is not known.
    """

    generator: str
    plan_kind: str
    seed: int
    checks: Mapping[str, str]
    findings: tuple[Finding, ...]
    tried: tuple[str, ...]
    left_out: tuple[str, ...]
    costs: pd.DataFrame = field(repr=False)

    def __repr__(self) -> str:
        return f"<{self._heading()}>"

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong; costs, however high, are no fault."""
        return not self.findings

    @property
    def table(self) -> pd.DataFrame:
        """How good the plans are: one row a generator, those nearest to the least cost first.

        Returns
        -------
        DataFrame
            ``generator``; ``plans_made`` and ``refused`` (problems); ``optimal`` (share of plans
            of least cost); ``median``, ``p95`` and ``worst`` of the cost over the least cost,
            infinity beyond a float; ``worst_problem``; ``seconds`` (median) and ``most_seconds``
            of a plan. Only problems that ``generator`` has a plan for count.
        """
        own = self.costs[self.costs["generator"] == self.generator]
        planned = own.loc[own["status"] == OK, "problem"]
        rows = []
        for generator, every in self.costs.groupby("generator", sort=False):
            group = every[every["problem"].isin(planned)]
            known = group[group["log_distance"].notna()]
            logs = known["log_distance"].to_numpy(float)
            seconds = group["seconds"].dropna()
            rows.append(
                {
                    "generator": generator,
                    "plans_made": int((group["status"] == OK).sum()),
                    "refused": int((every["status"] == REFUSED).sum()),
                    "optimal": float(np.mean(logs <= TOLERANCE)) if len(logs) else math.nan,
                    **{name: _at(logs, share) for name, share in _SHARES.items()},
                    "worst_problem": known["problem"].iloc[logs.argmax()] if len(logs) else None,
                    "seconds": seconds.median() if len(seconds) else math.nan,
                    "most_seconds": seconds.max() if len(seconds) else math.nan,
                }
            )
        table = pd.DataFrame(rows).sort_values(
            ["median", "p95", "worst"], kind="stable", na_position="last"
        )
        return table.reset_index(drop=True)

    def describe(self) -> str:
        """All of it as text, with a line of Python for each check that failed."""
        lines = [self._heading(), ""]
        for check, text in self.checks.items():
            found = self._of(check)
            if not found:
                lines.append(f"  ok      {text}")
                continue
            lines.append(f"  FAILED  {text}: not {self._extent(found)}")
            lines.append(f"          {found[0].problem}: {self.generator} {found[0].message}")
            lines += [f"          >>> {found[0].line}"] if found[0].line else []
        lines += [f"  {note}" for note in self._notes()]
        if any(finding.line for finding in self.findings):
            lines += ["", "The lines need these before them:", *IMPORTS.splitlines()]
        if self._has_plans:
            lines += ["", f"Cost of its plans over the least cost of any {self.plan_kind}:", ""]
            lines += _aligned([list(_SHOWN), *self._shown_rows()])
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return str(
            _PAGE(
                report=self,
                heading=self._heading(),
                checks=[
                    (text, found[0] if (found := self._of(check)) else None, self._extent(found))
                    for check, text in self.checks.items()
                ],
                notes=list(self._notes()),
                imports=IMPORTS if any(finding.line for finding in self.findings) else "",
                columns=_SHOWN,
                rows=list(self._shown_rows()) if self._has_plans else [],
            )
        )

    @property
    def _has_plans(self) -> bool:
        own = self.costs[self.costs["generator"] == self.generator]
        return bool((own["status"] == OK).any())

    def _of(self, check: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.check == check]

    def _heading(self) -> str:
        failed = sum(bool(self._of(check)) for check in self.checks)
        verdict = (
            f"passed all {len(self.checks)} checks"
            if self.passed
            else f"FAILED {failed} of {len(self.checks)} checks"
        )
        return (
            f"{self.generator} ({self.plan_kind} plans) {verdict} on {len(self.tried)} planning "
            f"problems, seed {self.seed}"
        )

    def _extent(self, found: list[Finding]) -> str:
        count = len({finding.problem for finding in found})
        if count == len(self.tried):
            return "on any problem" if count > 1 else "on this problem"
        return f"on {count} of {len(self.tried)} problems"

    def _notes(self) -> Iterator[str]:
        """What is no fault and should be known."""
        refused = self.costs[
            (self.costs["generator"] == self.generator) & (self.costs["status"] == REFUSED)
        ]
        if len(refused):
            yield (
                f"Refused {len(refused)} of {len(self.tried)} problems, such as "
                f"{refused['problem'].iloc[0]}: {refused['reason'].iloc[0]}"
            )
        if self.left_out:
            yield f"{len(self.left_out)} larger problems were not tried after that."

    def _shown_rows(self) -> Iterator[list[str]]:
        for row in self.table.to_dict("records"):
            yield [
                str(row["generator"]),
                str(row["plans_made"]),
                "" if math.isnan(row["optimal"]) else f"{row['optimal']:.0%}",
                *(shown_ratio(row[name]) for name in _SHARES),
                row["worst_problem"] or "",
                "" if math.isnan(row["seconds"]) else f"{1e3 * row['seconds']:.2f} ms",
            ]


#: Column of the table -> which share of the problems is not above it.
_SHARES = {"median": 0.5, "p95": 0.95, "worst": 1.0}

#: Headings of what is shown of the table.
_SHOWN = ("plan generator", "plans", "optimal", "median", "95 %", "worst", "worst on", "planning")

_PAGE = Html(
    """<div class="cep-generator-report"><p><b>{{ heading }}</b></p>
<table class="dataframe cep-checks"><tbody>
{% for text, finding, extent in checks %}
<tr><td style="vertical-align:top;font-weight:bold">{{ "✗" if finding else "✓" }}</td>
<td style="text-align:left;vertical-align:top;font-weight:{{ "bold" if finding else "normal" }}">
{{- text }}</td><td style="text-align:left">
{% if finding %}
not {{ extent }}.<br/><i>{{ finding.problem }}</i>: {{ report.generator }} {{ finding.message }}
{%- if finding.line %}<br/><code>{{ finding.line }}</code>{% endif %}
{% endif %}
</td></tr>
{% endfor %}
</tbody></table>
{% for note in notes %}<p>{{ note }}</p>{% endfor %}
{% if imports %}<p>The lines need these before them:</p><pre>{{ imports }}</pre>{% endif %}
{% if rows %}
<p>Cost of its plans over the least cost of any {{ report.plan_kind }}:</p>
<table class="dataframe cep-distances"><thead><tr>
{% for column in columns %}<th>{{ column }}</th>{% endfor %}
</tr></thead><tbody>
{% for row in rows %}
<tr{% if row[0] == report.generator %} style="font-weight:bold"{% endif %}>
{% for cell in row %}<td>{{ cell }}</td>{% endfor %}
</tr>
{% endfor %}
</tbody></table>
{% endif %}
</div>"""
)


def _at(logs: np.ndarray, share: float) -> float:
    """Ratio that this share of the problems is not above: one that was met, nothing between."""
    return from_log(np.quantile(logs, share, method="higher")) if len(logs) else math.nan


def shown_ratio(ratio: float) -> str:
    """A ratio in a few letters; nothing for one that is not known."""
    if math.isnan(ratio):
        return ""
    if math.isinf(ratio):
        return "> 10^308"
    return f"{ratio:.2f}" if ratio < 1000 else f"{ratio:.2g}"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            f"{cell:<{width}}" if k in (0, 6) else f"{cell:>{width}}"
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
