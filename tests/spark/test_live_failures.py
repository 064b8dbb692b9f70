"""Processes of a stream's detection are killed; ``tests.spark.live_failures`` kills a hundred."""

from __future__ import annotations

from pathlib import Path

from tests.spark import live_failures


def test_each_match_once_after_kills(tmp_path: Path) -> None:
    live_failures.write_stream(tmp_path / "events", 1, files=6)
    killed = live_failures.run(tmp_path, ["python", "driver"], "lot", 0)
    assert killed.total() == 2
    matches, late = live_failures.compare(tmp_path)
    assert matches > 20
    assert 5 < late < 30
