"""docs/language.md says what the parser does."""

import re
from pathlib import Path

import pytest

from cepbench.patterns.parse import parse

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
#: Where the fragments of a section's table stand in a whole pattern.
FRAMES = {
    "Structure": "PATTERN {} WITHIN 9 s",
    "Conditions": "PATTERN SEQ(A a, NOT(N n), KL(B b), C c) WHERE {} WITHIN 9 s",
    "Order and strategy": "PATTERN SEQ(A a) {} WITHIN 9 s",
    "Results": "PATTERN SEQ(A a, KL(B b), C c) WITHIN 9 s {}",
}


def rows() -> list[tuple[str, str, str]]:
    """Section, spelling and canonical form of every spelling: the first of its row; a default is not written."""
    found = []
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        title = section.splitlines()[0]
        for row in re.findall(r"^\| (`.*) \|$", section, re.MULTILINE) if title in FRAMES else []:
            written, meaning = re.split(r"(?<!\\) \| ", row)
            spellings = [one.replace("\\|", "|") for one in re.findall(r"`(.*?)`", written)]
            canonical = "" if "(default)" in meaning else spellings[0]
            found += [(title, one, canonical) for one in spellings]
    return found


def test_the_tables_were_found() -> None:
    assert len(rows()) > 50
    assert {title for title, _, _ in rows()} == set(FRAMES)


@pytest.mark.parametrize(("title", "written", "canonical"), rows())
def test_spellings_of_the_tables(title: str, written: str, canonical: str) -> None:
    frame = FRAMES[title]
    expected = str(parse(frame.format(canonical)))
    assert str(parse(frame.format(written))) == expected
    assert expected.split() == frame.format(canonical).replace("9 s", "9 seconds").split()


@pytest.mark.parametrize(
    "text",
    [
        text
        for block in re.findall(r"```cep\n(.*?)```", PAGE, re.DOTALL)
        for text in block.split("\n\n")
    ],
)
def test_whole_examples(text: str) -> None:
    values = {"low": 3, "W": "1 hour"} if "low" in text else {}
    parse(text, values)


def card() -> list[str]:
    """Every spelling of the card, as a whole pattern."""
    lines = PAGE.partition("## ")[0].splitlines()
    spellings = [each for line in lines for each in re.findall(r"`([^`]+)`", line)
                 if line.startswith("| ")]  # fmt: skip
    frames = (
        (("SEQ(", "AND(", "OR("), "PATTERN {} WITHIN 9 s"),
        (
            ("WHERE ", "ORDER BY ", "STRATEGY ", "OUTPUT ", "GROUP BY "),
            "PATTERN SEQ(A a, KL(B b), C c) {} WITHIN 9 s",
        ),
        (("RETURN ",), "PATTERN SEQ(A a, KL(B b)) WITHIN 9 s {}"),
        (("GROUP(",), "PATTERN SEQ(A a, {}) WITHIN 9 s"),
        (("WITHIN ",), "PATTERN SEQ(A a) {}"),
        (("b.", "b[", "sum("), "PATTERN SEQ(A a, KL(B b), C c) WHERE {} WITHIN 9 s"),
    )
    found = []
    for text in spellings:
        condition = text if " > " in text or "WHERE" in text else f"{text} > a.price"
        for beginnings, frame in frames:
            if text.startswith(beginnings):
                found.append(frame.format(condition if text[0] in "bs" else text))
    return found


def test_the_card_is_on_one_screen_and_parses() -> None:
    assert PAGE.startswith("# The pattern language: card")
    assert PAGE.index("\n## ") < 1700  # letters
    assert len(card()) == 28
    for text in card():
        parse(text, low=3) if ":low" in text else parse(text)
