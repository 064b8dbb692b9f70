"""Tables on a page: without numbers of rows, with thousands set apart and texts on the left; long ones folded."""

from __future__ import annotations

import re

_FRAME = re.compile(r'<table border="1" class="dataframe">.*?</table>', re.DOTALL)
_ROW = re.compile(r"<tr.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<td>(.*?)</td>", re.DOTALL)
_NUMBERED = re.compile(r"(<tr>\s*)<th>\d+</th>")
_NUMBER = re.compile(r"[-−]?(\d+)(\.\d+)?(e[+-]?\d+)?%?")
_MISSING = ("NaN", "NaT", "None", "&lt;NA&gt;", "")

#: Rows of a table that is seen without a click, where others than its reader ask for it.
_MOST_ROWS = 24

#: A whole number of five digits is hard to read in one piece, and then those beside it have commas, too.
_LARGE = re.compile(r"<td>[-−]?\d{5}")


def readable_frames(html: str) -> str:
    """Change the tables that pandas wrote into an output; others, such as styled ones, stay as they are."""
    return _FRAME.sub(lambda found: _readable(found[0]), html)


def folded_if_long(html: str) -> str:
    """A table with more rows than a reader compares at a glance as a line that opens."""
    rows = html.count("<tr") - html.partition("<tbody>")[0].count("<tr")
    if rows <= _MOST_ROWS or "<svg" in html:  # with a drawing
        return html
    return f"<details><summary>A table of {rows} rows</summary>{html}</details>"


def _readable(frame: str) -> str:
    head, _, body = frame.partition("<tbody>")
    rows = [_CELL.findall(row) for row in _ROW.findall(body)]
    names = re.findall(r"<tr>\s*<th>(.*?)</th>", body)
    if names == [str(place) for place in range(len(rows))] and head.count("<tr") == 1:
        body = _NUMBERED.sub(r"\1", body)
        head = head.replace("<th></th>", "", 1)
    texts = [
        not any(map(_NUMBER.fullmatch, (cell for cell in column if cell not in _MISSING)))
        for column in zip(*rows, strict=True)
    ]
    first, end, more = head.partition("</tr>")
    before, *heads = re.split("(?=<th>)", first)
    if len(heads) >= len(texts):  # names of levels are before those of columns
        is_text = [False] * (len(heads) - len(texts)) + texts
        first = before + "".join(map(_aligned, heads, is_text))
    parts = bool(_LARGE.search(body))
    body = _ROW.sub(lambda row: _row(row[0], texts, parts=parts), body)
    return f"{first}{end}{more}<tbody>{body}"


def _row(row: str, texts: list[bool], *, parts: bool) -> str:
    places = iter(texts)

    def written(cell: re.Match[str]) -> str:
        return _aligned(f"<td>{_shown(cell[1], parts=parts)}</td>", next(places))

    return _CELL.sub(written, row)


def _aligned(cell: str, is_text: bool) -> str:
    return cell.replace(">", ' class="text">', 1) if is_text else cell


def _shown(cell: str, *, parts: bool) -> str:
    if cell in _MISSING[:-1]:
        return "–"
    number = _NUMBER.fullmatch(cell)
    if not number or not parts:
        return cell
    return cell.replace(number[1], f"{int(number[1]):,}", 1)
