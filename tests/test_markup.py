"""Whatever is put into HTML or SVG as text is shown as text."""

from __future__ import annotations

import jinja2
import pytest

from cepbench.markup import Html, element, shortened

HOSTILE = '<script>alert("x")</script>'


def test_templates_escape_values_and_keep_what_they_made() -> None:
    paragraph = Html("<p>{{ text }}</p>")
    assert "<script" not in paragraph(text=HOSTILE)
    assert Html("<div>{{ inner }}</div>")(inner=paragraph(text="a")) == "<div><p>a</p></div>"
    with pytest.raises(jinja2.UndefinedError, match="text"):
        paragraph()


def test_elements_escape_texts_and_attributes() -> None:
    shown = element("g", element("title", HOSTILE), HOSTILE, fill='red" onclick="y', x=1.25)
    assert "<script" not in shown and 'onclick="y' not in shown
    assert 'x="1.2"' in shown and shown.count("<title>") == 1
    assert element("line", stroke_width=2, fill=None) == '<line stroke-width="2"/>'


def test_long_texts_end_in_an_ellipsis() -> None:
    assert shortened("abcdef", 6) == "abcdef" and shortened("abcdefg", 6) == "abcde…"
