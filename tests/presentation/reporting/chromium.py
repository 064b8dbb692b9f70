"""A page in headless Chromium without a network, where there is a Chromium."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--enable-logging=stderr",
    # No name resolves, and nothing listens at the proxy: whatever the page asks for, it fails.
    "--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9",
)  # fmt: skip


@dataclass(frozen=True)
class Opened:
    """A page after its scripts ran: its elements as HTML, and what its console said."""

    html: str
    console: list[str]


def open_page(path: Path, milliseconds: int = 20_000) -> Opened:
    """Open a file; skips the test where there is no Chromium.

    Parameters
    ----------
    path : Path
    milliseconds : int
        Of the page's own time, which runs ahead of the clock while nothing happens.
    """
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed")
    with tempfile.TemporaryDirectory(prefix="cep-", ignore_cleanup_errors=True) as profile:
        done = subprocess.run(
            [
                browser,
                *OPTIONS,
                f"--user-data-dir={profile}",
                f"--virtual-time-budget={milliseconds}",
                "--dump-dom",
                path.resolve().as_uri(),
            ],
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=True,
        )
    return Opened(done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line])
