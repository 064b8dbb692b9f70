"""Kernels of notebooks, forked from a process that has imported what notebooks import.

Importing takes a notebook longer than half of them compute. The process that is forked is
:mod:`cepbench.presentation.reporting.kernel_server`; it ends with this process.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any
from weakref import WeakSet

import nbformat
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets.config import Config

from cepbench.errors import ReportError
from cepbench.presentation.reporting.memory import peak_of

#: What ipykernel is started by, and what a fork does instead.
_LAUNCHER = ["-m", "ipykernel_launcher"]

_SERVER = ("-m", "cepbench.presentation.reporting.kernel_server")

#: The server of this process, once it has been started.
_server: list[subprocess.Popen[str]] = []
_asking = Lock()

#: Folder for the sockets of all kernels while notebooks are run, and numbers for their names.
_runtime: list[str] = []
_numbers = itertools.count()

_kernels: WeakSet[Kernel] = WeakSet()

#: The sockets of a kernel that has ended -> the most memory that it had, in bytes.
peaks: dict[str, int | None] = {}


class Kernel(AsyncKernelManager):
    """A kernel that can be ended from another thread than the one that talks to it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _kernels.add(self)

    # AsyncKernelManager's, which its stubs take for the one that waits.
    async def shutdown_kernel(  # type: ignore[override]
        self, now: bool = False, restart: bool = False
    ) -> None:
        process = getattr(self.provisioner, "process", None)
        if process is not None:
            peaks[self.ip] = peak_of(process.pid)
        await super().shutdown_kernel(now, restart)

    def kill_now(self) -> None:
        process = getattr(self.provisioner, "process", None)
        if process is not None:
            process.kill()

    async def _async_pre_start_kernel(self, **settings: Any) -> tuple[list[str], dict[str, Any]]:
        """Start by forking; jupyter_client finds other ways by entry points of installed packages."""
        self.kernel_id = self.kernel_id or str(uuid.uuid4())
        if self.provisioner is None:
            self.provisioner = _Forking(
                kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self
            )
        return await super()._async_pre_start_kernel(**settings)

    async def _async_interrupt_kernel(self) -> None:
        """Send nothing: jupyter_client interrupts a kernel, even an idle one, before it shuts down.

        ipykernel logs such an interrupt as an error now and then. ``interrupt_kernel`` still sends it.
        """


class _Forking(LocalProvisioner):
    """Starts ipykernel by a fork; kernels of other environments and languages as ever."""

    process: Any = None

    async def launch_kernel(self, cmd: list[str], **settings: Any) -> Any:
        if cmd[:3] != [sys.executable, *_LAUNCHER]:
            return await super().launch_kernel(cmd, **settings)
        environment = {**os.environ, **settings.get("env", {})}
        # The server may have begun in another folder.
        self.cwd = os.path.abspath(settings.get("cwd") or os.curdir)
        fork = await asyncio.to_thread(_Fork, cmd[3:], self.cwd, environment)
        self.process, self.pid, self.pgid = fork, fork.pid, fork.pid
        return self.connection_info


class _Fork:
    """A forked kernel, with the part of :class:`subprocess.Popen` that a provisioner uses."""

    stdin = stdout = stderr = None

    def __init__(
        self, arguments: Sequence[str], folder: str, environment: Mapping[str, str]
    ) -> None:
        self.pid = _forked({"arguments": arguments, "folder": folder, "environment": environment})

    def poll(self) -> int | None:
        """None while it runs, else 0: its exit code is known to the server alone, which waits for none."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.02)
        return 0

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _forked(request: Mapping[str, Any]) -> int:
    """The process of a new kernel."""
    with _asking:
        if not _server or _server[0].poll() is not None:
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            _server[:] = [subprocess.Popen([sys.executable, *_SERVER], **pipes)]
            atexit.register(_server[0].__exit__, None, None, None)
        asked, told = _server[0].stdin, _server[0].stdout
        assert asked is not None and told is not None
        with suppress(BrokenPipeError):  # then there is no answer
            asked.write(json.dumps(request) + "\n")
            asked.flush()
        answer = told.readline()
        if not answer:
            # The next kernel may have better luck.
            with suppress(BrokenPipeError), _server.pop():
                pass
    if not answer:
        raise ReportError(
            "the process that starts kernels of notebooks has ended; what it printed before says why"
        )
    return int(answer)


def kill_kernels() -> None:
    """End all kernels at once; the notebooks in them fail."""
    for kernel in list(_kernels):
        kernel.kill_now()


@contextmanager
def quiet_kernels() -> Iterator[Config]:
    """Kernels' sockets in a folder with a short name, and no start-up messages; gives their configuration.

    The environment is that of the whole process: to run several notebooks at the same time, enter
    this around all of them.
    """
    if _runtime:
        yield _sockets(_runtime[0])
        return
    with tempfile.TemporaryDirectory(prefix="cep-") as runtime, warnings.catch_warnings():
        # A cell without an id is how papermill 2.7 injects parameters.
        warnings.filterwarnings("ignore", category=nbformat.warnings.MissingIDFieldWarning)
        settings = {
            "JUPYTER_RUNTIME_DIR": runtime,  # a socket's path may have 107 bytes, a home has many
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        before = {name: os.environ[name] for name in settings if name in os.environ}
        os.environ.update(settings)
        _runtime.append(runtime)
        try:
            yield _sockets(runtime)
        finally:
            _runtime.clear()
            for name in settings:
                del os.environ[name]
            os.environ.update(before)


def _sockets(folder: str) -> Config:
    """Files instead of ports: no other user of the machine can reach the kernel.

    Of a name of its own: by default they are ``kernel-ipc-1`` … in the notebook's folder, where two
    kernels that start at once take each other's.
    """
    return Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/{next(_numbers)}"}})
