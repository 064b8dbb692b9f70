"""The page of conformance: case × engine, and of each difference one match on a timeline.

``make conformance`` runs it. With ``--random`` it draws cases instead, and prints the smallest ones on which an
engine differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from cepbench.errors import CepbenchError
from cepbench.experiments.conformance.cases import Case, Match, events_of, written
from cepbench.experiments.conformance.drawn import as_text, differences
from cepbench.experiments.conformance.engines import (
    CANNOT_SAY,
    DIFFERS,
    EQUAL,
    NOT_INSTALLED,
    OUTSIDE_ENGINES,
    STATUSES,
    Conformance,
    compare_engines,
)
from cepbench.experiments.conformance.outside import columns_of
from cepbench.experiments.plugins import load_plugins
from cepbench.files import whole_file
from cepbench.markup import element
from cepbench.presentation.reporting.navigation import MORE, Entry, Navigation
from cepbench.presentation.reporting.shell import render, with_contents, write_assets

#: What stands for a status in a table.
_SIGNS = dict(zip(STATUSES, ("=", "<", ">", "≠", "·", "–"), strict=True))

_WIDTH, _HEIGHT, _MARKED = 620, 76, "#D55E00"


def timeline_of(case: Case, match: Match) -> Markup:
    """The events of a case in the order of time, those of a match marked by their variables."""
    times = case.events["ts"].tolist()
    names: dict[int, list[str]] = {}
    for name, its in zip(columns_of(case), match, strict=True):
        for event in events_of((its,)):
            names.setdefault(event, []).append(name)
    # Events of one time stand side by side.
    ranks = [at - times.index(ts) for at, ts in enumerate(times)]
    length = max(times[-1] - times[0], 1)
    scale = (_WIDTH - 60 - 14 * max(ranks)) / length
    places = [20 + (ts - times[0]) * scale + 14 * r for ts, r in zip(times, ranks, strict=True)]
    parts = [element("line", x1=8, x2=_WIDTH - 8, y1=34, y2=34, stroke="currentColor", opacity=0.3)]
    if names:
        low, high = places[min(names)], places[max(names)]
        parts.append(element("line", x1=low, x2=high, y1=34, y2=34, stroke=_MARKED, stroke_width=3))
    for at, x in enumerate(places):
        marked = at in names
        colour = _MARKED if marked else "currentColor"
        text = {"text_anchor": "middle", "font_size": 11, "x": x, "fill": colour}
        parts.append(element("circle", cx=x, cy=34, r=6.0 if marked else 3.5, fill=colour))
        parts.append(element("text", case.events["type"][at], **text, y=54))
        if marked:
            parts.append(element("text", ", ".join(names[at]), **text, y=20, font_weight="bold"))
        if not ranks[at]:
            parts.append(
                element("text", str(times[at]), x=x, y=70, font_size=10, fill="currentColor",
                        text_anchor="middle", opacity=0.6)
            )  # fmt: skip
    label = f"The match {written(match)} among {len(times)} events"
    return element(
        "svg", *parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        width=_WIDTH, role="img", aria_label=label, style="max-width: 100%",
    )  # fmt: skip


def write_page(found: Conformance, folder: Path) -> Path:
    """Write ``index.html`` and the files that it loads; its path."""
    cases = {case.name: case for case in found.cases}
    table = found.table
    themes: dict[str, list[dict[str, Any]]] = {}
    for name, rows in table.groupby("case", sort=False):
        case, records = cases[str(name)], rows.to_dict("records")
        differing = [
            {
                **row,
                "pictures": [
                    (word, timeline_of(case, matches[0]), len(matches) - 1)
                    for word, matches in (("lacks", row["lacking"]), ("beyond", row["beyond"]))
                    if matches
                ],
            }
            for row in records
            if row["status"] in DIFFERS
        ]
        themes.setdefault(case.theme, []).append(
            {"case": case, "rows": records, "differing": differing}
        )
    here = Entry("Conformance", "index.html", MORE)
    page = render(
        "conformance.html.j2",
        heading=repr(found)[1:-1],
        engines=list(dict.fromkeys(table["engine"])),
        counts=found.counts,
        themes=themes,
        signs=_SIGNS,
        cannot=CANNOT_SAY,
        silent=(EQUAL, CANNOT_SAY, NOT_INSTALLED),
        missing=found.missing,
        written=written,
        navigation=Navigation((here,)),
        here=here.link,
    )
    write_assets(folder)
    target = folder / here.link
    with whole_file(target) as unfinished:
        unfinished.write_text(with_contents(page), encoding="utf-8")
    return target


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print, and write the page; 1 if cepbench itself differs, 2 for bad input."""
    parser = argparse.ArgumentParser(description="Conformance cases on outside engines.")
    parser.add_argument("--cases", type=Path, default=Path("conformance/cases"))
    parser.add_argument("--engines", nargs="+", help="by default all that are registered")
    parser.add_argument("--plugin", nargs="+", help="files with @cep.outside_engine")
    parser.add_argument("--out", type=Path, default=Path("reports/conformance"))
    parser.add_argument("--random", type=int, help="so many random cases in place of the files")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    try:
        load_plugins(given.plugin)
        if given.random is not None:
            for name in given.engines or OUTSIDE_ENGINES:
                engine = OUTSIDE_ENGINES.find(name)
                smallest = differences(engine, given.random, given.seed)
                print(f"{engine.name}: {len(smallest)} differences in {given.random} cases")
                for case in smallest:
                    print(as_text(engine, case))
            return 0
        found = compare_engines(given.engines, given.cases)
    except CepbenchError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    print(found.describe())
    print(f"\n{write_page(found, given.out)}")
    own = found.table[found.table["engine"] == "cepbench"]
    return int(not own["status"].eq("equal").all())


if __name__ == "__main__":
    sys.exit(main())
