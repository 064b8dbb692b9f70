"""From the start of the explorer in JupyterLab to lines of code that can be shared, as a user goes."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import cepbench as cep
from cepbench.presentation.exploration.what_if import WhatIf
from tests.presentation.reporting.browser import browser

START = 'import cepbench as cep\n\napp = cep.explore("nasdaq-style/sample", "rare-last")\napp'
_SECONDS = 60.0


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """JupyterLab on this machine, for the notebooks of a folder; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
            f"--ServerApp.root_dir={folder}", "--IdentityProvider.token=", "--allow-root",
            "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    end = time.monotonic() + _SECONDS
    try:
        while True:
            try:
                urllib.request.urlopen(f"{address}/api", timeout=1).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < end, "JupyterLab did not start"
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=_SECONDS)


@pytest.mark.xdist_group("notebooks")
def test_from_the_first_cell_to_shared_code(tmp_path: Path) -> None:
    notebook = new_notebook(cells=[new_code_cell(START)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, tmp_path / "mine.ipynb")
    button = "[...document.querySelectorAll('button')].find(b => b.innerText.includes('{}'))"
    with browser(local=True) as chromium, jupyterlab(tmp_path) as address:
        chromium.open(f"{address}/doc/tree/mine.ipynb", 1440)
        chromium.wait("document.body.innerText.includes('Python 3 (ipykernel) | Idle')")
        chromium.evaluate("void jupyterapp.commands.execute('runmenu:run-all')")
        chromium.wait(f"!!{button.format('share as code')}")
        assert not chromium.evaluate("document.body.innerText.includes('changed numbers')")
        # The window is the first slider; a key moves it a step.
        chromium.evaluate("document.querySelector('.noUi-handle').focus()")
        for kind in ("keyDown", "keyUp"):
            chromium.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight",
                          windowsVirtualKeyCode=39)  # fmt: skip
        chromium.wait("document.body.innerText.includes('plans are for changed numbers: window')")
        chromium.evaluate(f"{button.format('share as code')}.click()")
        chromium.wait("!!document.querySelector('.cep-code')")
        code = chromium.evaluate("document.querySelector('.cep-code').textContent")
    found: dict[str, object] = {}
    exec(code, found)
    plans, pattern = found["plans"], cep.open_dataset("nasdaq-style/sample").patterns["rare-last"]
    assert isinstance(plans, WhatIf) and found["pattern"] == pattern
    assert plans.pattern.window.length > pattern.window.length  # as it was moved
    assert set(plans.plans) >= {"TRIVIAL", "DP-B"}
