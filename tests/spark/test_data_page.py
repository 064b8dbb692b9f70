"""docs/data.md: its code runs from top to bottom and prints what stands below each piece."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cepbench.errors import CepbenchError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs" / "data.md"
#: A piece of code, and what it prints where that is shown.
PIECE = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


def printed(code: str, names: dict[str, Any]) -> str:
    """What a piece of code prints, or the error that it ends with."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(PAGE), "exec"), names)
    except CepbenchError as error:
        return f"{type(error).__name__}: {error}\n"
    return out.getvalue()


def test_the_page_is_true(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CEPBENCH_DATASETS", raising=False)
    names: dict[str, Any] = {"__name__": "__page__"}
    pieces = PIECE.findall(PAGE.read_text(encoding="utf-8"))
    assert len(pieces) > 9
    for code, shown in pieces:
        assert _trimmed(printed(code, names)) == _trimmed(shown), code
    assert os.listdir("own") == ["bars"]


def _trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]
