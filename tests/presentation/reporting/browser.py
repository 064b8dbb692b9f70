"""One headless Chromium for many pages, asked over its debugging pipe: sizes, clicks, pictures."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--enable-logging=stderr",
    # No name resolves, and nothing listens at the proxy: whatever the page asks for, it fails.
    "--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9",
)  # fmt: skip

_SECONDS = 60.0  # more than any page takes, also on a busy machine

#: The protocol's pipes are the file descriptors 3 and 4.
_START = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 10) for pipe in sys.argv[1:3]]
for pipe, wanted in zip(pipes, (3, 4)):
    os.dup2(pipe, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A tab without a network, but for servers on this machine where it is ``local``. Whatever its
    console says is kept in ``console``.
    """

    def __init__(self, commands: int, answers: int, *, local: bool = False) -> None:
        self._commands, self._answers = commands, answers
        self._read = b""
        self._number = 0
        self._session: str | None = None
        self.console: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # Nothing is reachable; a request would be told by the console.
        self.call("Network.emulateNetworkConditions", offline=not local, latency=0,
                  downloadThroughput=0, uploadThroughput=0)  # fmt: skip

    def open(self, path: Path | str, width: int, *, height: int = 900, dark: bool = False) -> None:
        """Open a file or an address in a window of such a width and wait until its charts are drawn."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.console.clear()
        url = path if isinstance(path, str) else path.resolve().as_uri()
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")
        self.wait(
            "[...document.querySelectorAll('.chart')].every("
            "place => place.dataset.drawn === place.clientWidth + '')"
        )

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def html(self) -> str:
        """The elements of the page as they are now."""
        return self.evaluate("document.documentElement.outerHTML")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + _SECONDS
        while not self.evaluate(condition):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.05)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Save what is seen, or the whole page, as PNG."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def printed(self) -> bytes:
        """The page as PDF, as it would be printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol and its answer."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                return message["result"]
            self._listen(message)

    def _listen(self, message: dict[str, Any]) -> None:
        told = message.get("params", {})
        if message.get("method") == "Log.entryAdded":
            self.console.append(told["entry"]["text"])
        elif message.get("method") == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(part.get("value")) for part in told["args"]))
        elif message.get("method") == "Runtime.exceptionThrown":
            self.console.append(told["exceptionDetails"]["text"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            assert select.select([self._answers], [], [], _SECONDS)[0], (
                "the browser does not answer"
            )
            piece = os.read(self._answers, 1 << 16)
            assert piece, "the browser is gone"
            self._read += piece
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)


@contextmanager
def browser(*, local: bool = False) -> Iterator[Browser]:
    """A browser for the time of a test; skips it where there is no Chromium.

    Parameters
    ----------
    local : bool
        Whether it reaches servers on 127.0.0.1.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed")
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(prefix="cep-", ignore_cleanup_errors=True) as profile:
        rules = [OPTIONS[-2] + ", EXCLUDE 127.0.0.1"] if local else []
        options = [*OPTIONS, *rules, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(theirs_in), str(theirs_out), found, *options],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Browser(ours_out, ours_in, local=local)
        finally:
            process.terminate()
            process.wait(timeout=_SECONDS)
            os.close(ours_out)
            os.close(ours_in)
