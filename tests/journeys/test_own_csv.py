"""From a user's CSV file to a page that opens anywhere, as a user goes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from tests.presentation.reporting.browser import Browser

QUERY = "PATTERN SEQ(login a, view b, buy c) WHERE a.user = b.user AND b.user = c.user WITHIN 10 minutes"


@pytest.mark.xdist_group("notebooks")
def test_from_a_csv_file_to_a_page(chromium: Browser, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    count = 600
    frame = pd.DataFrame(
        {
            "when": pd.Timestamp("2026-03-01") + pd.to_timedelta(np.arange(count) * 7, unit="s"),
            "kind": rng.choice(["login", "view", "buy"], count, p=[0.3, 0.6, 0.1]),
            "user": rng.integers(0, 40, count),
        }
    )
    frame.to_csv(tmp_path / "clicks.csv", index=False)
    stream = cep.EventStream.from_csv(tmp_path / "clicks.csv", type="kind", time="when")
    generators = ["TRIVIAL", "EFREQ", "DP-LD"]
    table = cep.compare(QUERY, stream, generators=generators, repetitions=1, seconds=0.0)
    table.save(tmp_path / "page.html")
    chromium.open(tmp_path / "page.html", 1280)
    chromium.wait("document.querySelectorAll('svg.marks, img').length > 0")
    text = chromium.evaluate("document.body.textContent")
    assert chromium.console == []
    matches = len(cep.evaluate(QUERY, stream).matches)
    assert matches > 0 and f"{matches:,}" in text
    for name in generators:
        assert name in text
