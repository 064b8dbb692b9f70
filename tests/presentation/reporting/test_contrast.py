"""Text can be read against its ground, by day and by night: WCAG 2.2, level AA, computed."""

from __future__ import annotations

import re

import pytest

from cepbench.presentation.reporting.ledger import LOOKS
from cepbench.presentation.reporting.shell import TEMPLATES, code_colours

SHEET = (TEMPLATES / "site.css").read_text(encoding="utf-8")
NIGHT = "@media screen and (prefers-color-scheme: dark) {"
AA = 4.5

TEXTS = [
    (text, ground)
    for text in ("text", "quiet", "link", *(look for look, *_ in LOOKS.values()))
    for ground in ("page", "panel")
] + [("text", "mark")]
TEXTS += [("on-verdict", look) for look in ("holds", "exceeds", "in-work", "partly", "fails")]


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def variables(text: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", text.partition("}")[0]))


BY_DAY, BY_NIGHT = variables(SHEET), variables(SHEET.partition(NIGHT)[2])


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize(("text", "ground"), TEXTS)
def test_text_can_be_read(text: str, ground: str) -> None:
    assert set(BY_NIGHT) == set(BY_DAY)
    for colours in (BY_DAY, BY_NIGHT):
        assert contrast(colours[text], colours[ground]) >= AA, (text, ground)


def test_code_can_be_read() -> None:
    by_day, _, by_night = code_colours().partition(NIGHT)
    for sheet, colours in ((by_day, BY_DAY), (by_night, BY_NIGHT)):
        # Rules of marked lines, of errors and of what other languages have are not met in Python.
        tokens = re.findall(
            r"\.highlight \.(?:c1|k|kn|kc|n|nb|nc|nd|nf|nn|o|ow|s1|s2|sd|mi|mf|p|si|sa)"
            r" \{ color: (#[0-9A-Fa-f]{6})", sheet
        )  # fmt: skip
        assert len(tokens) > 10
        assert min(contrast(token, colours["panel"]) for token in tokens) >= AA
