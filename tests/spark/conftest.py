"""A shell of IPython with the extension of cepbench, for tests that run cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[InteractiveShell]:
    found = InteractiveShell.instance(ipython_dir=str(tmp_path))
    found.history_manager.enabled = False
    found.run_line_magic("load_ext", "cepbench")
    yield found
    found.reset()
    InteractiveShell.clear_instance()
