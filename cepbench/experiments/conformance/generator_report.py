"""The report of a plan generator's checks: findings, and a table of costs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pandas as pd

from cepbench.experiments.conformance.checker import Report
from cepbench.experiments.sweeps.cells import OK, REFUSED
from cepbench.planning.planners.registry import TOLERANCE
from cepbench.planning.plans.notes import from_log

#: Imports of the lines that reproduce findings.
IMPORTS = (
    "from cepbench.experiments.conformance.generator_problems import check_problem\n"
    "from cepbench.planning.planners.generate import plan_problem"
)


@dataclass(frozen=True)
class Finding:
    """One violation of the contract."""

    #: A key of :data:`cepbench.experiments.conformance.generator_checks.CHECKS`.
    check: str
    problem: str
    #: What happened and what to do; a predicate whose subject is the generator.
    message: str
    #: Python that reproduces it, after :data:`IMPORTS`; may be empty.
    line: str


@dataclass(frozen=True, repr=False)
class GeneratorReport(Report):
    """The result of :func:`cepbench.check_generator`; its text has Python for each check that failed."""

    generator: str
    plan_kind: str
    seed: int
    #: Check → what a generator does to pass it.
    checks: Mapping[str, str]
    #: By check, small problems first.
    findings: tuple[Finding, ...]
    #: Names of the problems that were planned, and of the rest.
    tried: tuple[str, ...]
    left_out: tuple[str, ...]
    #: One row a problem and generator, of ``generator`` and of the default generators of the same kind
    #: of plan: ``problem``, ``size``, ``generator``, ``status``, ``reason``, ``seconds``,
    #: ``plan_log_cost`` (natural logarithm) and ``log_distance``, that over the least cost; missing
    #: where it is not known.
    costs: pd.DataFrame = field(repr=False)

    @property
    def passed(self) -> bool:
        """Whether there are no findings; high costs are none."""
        return not self.findings

    @property
    def table(self) -> pd.DataFrame:
        """Plan quality: one row a generator, those nearest to the least cost first.

        ``generator``; ``plans_made`` and ``refused`` (problems); ``optimal`` (share of plans of
        least cost); ``median``, ``p95`` and ``worst`` of the cost over the least cost, infinity
        beyond a float; ``worst_problem``; ``seconds`` (median) and ``most_seconds`` of a plan. Only
        problems that ``generator`` planned count.
        """
        planned = self._own.loc[self._own["status"] == OK, "problem"]
        rows = []
        for generator, every in self.costs.groupby("generator", sort=False):
            group = every[every["problem"].isin(planned)]
            known = group[group["log_distance"].notna()].set_index("problem")["log_distance"]
            rows.append(
                {
                    "generator": generator,
                    "plans_made": int((group["status"] == OK).sum()),
                    "refused": int((every["status"] == REFUSED).sum()),
                    "optimal": (known <= TOLERANCE).mean(),
                    # Observed ratios, without interpolation.
                    **{
                        name: from_log(known.quantile(share, interpolation="higher"))
                        for name, share in _SHARES.items()
                    },
                    "worst_problem": known.idxmax() if len(known) else None,
                    "seconds": group["seconds"].dropna().median(),
                    "most_seconds": group["seconds"].max(),
                }
            )
        return pd.DataFrame(rows).sort_values(
            ["median", "p95", "worst"], kind="stable", na_position="last", ignore_index=True
        )

    @property
    def _own(self) -> pd.DataFrame:
        """The rows of the checked generator."""
        return self.costs[self.costs["generator"] == self.generator]

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

    def _lines(self) -> list[str]:
        lines = []
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
        if (self._own["status"] == OK).any():
            lines += ["", f"Cost of its plans over the least cost of any {self.plan_kind}:", ""]
            table = pd.DataFrame(self._shown_rows(), columns=list(_SHOWN))
            lines += textwrap.indent(table.to_string(index=False), "  ").splitlines()
        return lines

    def _extent(self, found: list[Finding]) -> str:
        count = len({finding.problem for finding in found})
        if count == len(self.tried):
            return "on any problem" if count > 1 else "on this problem"
        return f"on {count} of {len(self.tried)} problems"

    def _notes(self) -> Iterator[str]:
        """Remarks that are no findings."""
        refused = self._own[self._own["status"] == REFUSED]
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


#: Column of the table -> quantile of the problems.
_SHARES = {"median": 0.5, "p95": 0.95, "worst": 1.0}

#: Headings of the columns that are shown.
_SHOWN = ("plan generator", "plans", "optimal", "median", "95 %", "worst", "worst on", "planning")


def shown_ratio(ratio: float) -> str:
    """A ratio in a few characters; empty for NaN."""
    if math.isnan(ratio):
        return ""
    if math.isinf(ratio):
        return "> 10^308"
    return f"{ratio:.2f}" if ratio < 1000 else f"{ratio:.2g}"
