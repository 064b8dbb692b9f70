"""The conformance cases: what they expect is what the naive twins find, their texts are our translations.

``python -m tests.experiments.conformance.test_conformance_cases`` writes both into the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from cepbench.experiments.conformance.adapters import kinds_of
from cepbench.experiments.conformance.cases import Case, alike, read_cases, written
from cepbench.experiments.conformance.translation import texts_of
from cepbench.patterns.row_pattern import RowPattern
from tests.contract.cases import twin
from tests.naive.row_patterns import naive_rows

FOLDER = Path(__file__).parents[3] / "conformance" / "cases"
CASES = read_cases(FOLDER)


def expected(case: Case) -> list[str]:
    """The matches by the naive twin, as texts in order."""
    events = case.events.rename(columns={"ts": "time"})
    if isinstance(case.pattern, RowPattern):
        rows = [
            {str(k): None if pd.isna(v) else v for k, v in row.items()}
            for row in case.events.to_dict("records")
        ]
        names = [measure.name for measure in case.pattern.measures]
        found = [tuple(row[name] for name in names) for row in naive_rows(case.pattern, rows, "ts")]
    else:
        found = [match for _, match in twin(case.pattern, events)]
    return sorted(written(match) for match in alike(found).elements())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_expects_what_the_twin_finds(case: Case) -> None:
    assert sorted(map(written, alike(case.expected).elements())) == expected(case)


def test_texts_are_translations() -> None:
    for theme in sorted(FOLDER.iterdir()):
        its = [case for case in CASES if case.theme == theme.name]
        written_there = (theme / "texts.toml").read_text(encoding="utf-8")
        assert written_there == "".join(texts(its)), theme.name


def texts(cases: list[Case]) -> Iterator[str]:
    """The file of the texts of a theme, piece by piece."""
    for case in cases:
        yield f"[{case.name.partition('/')[2]}]\n"
        for language, text in texts_of(case.pattern, kinds_of(case.events)).items():
            shown = f"'''\n{text}'''" if "\n" in text or '"' in text else json.dumps(text)
            yield f"{language} = {shown}\n"
        yield "\n"


def main() -> None:
    """Write what the twins find, and the texts."""
    for theme in sorted(FOLDER.iterdir()):
        (theme / "texts.toml").unlink(missing_ok=True)
    for theme, cases in by_theme().items():
        file = FOLDER / theme / "cases.toml"
        content = file.read_text(encoding="utf-8")
        for case in cases:
            head = re.escape(f"[{case.name.partition('/')[2]}]\n")
            listed = json.dumps(expected(case))
            content = re.sub(
                rf"({head}(?:(?!expected)[^\[].*\n)*?)expected = .*\n",
                lambda its, listed=listed: f"{its.group(1)}expected = {listed}\n",
                content,
            )
        file.write_text(content, encoding="utf-8")
        (file.with_name("texts.toml")).write_text("".join(texts(cases)), encoding="utf-8")


def by_theme() -> dict[str, list[Case]]:
    """The cases of each folder."""
    found: dict[str, list[Case]] = {}
    for case in read_cases(FOLDER):
        found.setdefault(case.theme, []).append(case)
    return found


if __name__ == "__main__":
    main()
