"""Kernels of notebooks, forked from a process that has imported what notebooks import.

Importing takes a notebook longer than half of them compute. The process that is forked is
:mod:`multiprocessing`'s fork server: it runs no threads, and ends with this process.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import multiprocessing
import os
import signal
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from typing import Any
from weakref import WeakSet

import nbformat
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets.config import Config

from cepbench.presentation.figures.offline import without_pictures

#: Imported once. A module that is missing here costs each kernel its import, and nothing else.
IMPORTED = (
    "ipykernel.kernelapp",
    "IPython.core.completer",
    "matplotlib.backends.backend_svg",
    "matplotlib_inline.config",
    "cepbench.experiments.studies.measured",
    "cepbench.experiments.sweeps.on_spark.job",
    "cepbench.presentation.figures.interactive",
    "cepbench.presentation.figures.static",
    "cepbench.presentation.reporting.opening",
    "cepbench.presentation.reporting.verdicts",
)

#: What ipykernel is started by, and what a fork does instead.
_LAUNCHER = ["-m", "ipykernel_launcher"]

#: Folder for the sockets of all kernels while notebooks are run, and numbers for their names.
_runtime: list[str] = []
_numbers = itertools.count()

_kernels: WeakSet[Kernel] = WeakSet()


class Kernel(AsyncKernelManager):
    """A kernel that can be ended from another thread than the one that talks to it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _kernels.add(self)

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
        self.cwd = settings.get("cwd") or os.getcwd()
        fork = await asyncio.to_thread(_Fork, cmd[3:], self.cwd, environment)
        self.process, self.pid, self.pgid = fork, fork.pid, fork.pid
        return self.connection_info


class _Fork:
    """A forked kernel, with the part of :class:`subprocess.Popen` that a provisioner uses."""

    stdin = stdout = stderr = None

    def __init__(
        self, arguments: Sequence[str], folder: str, environment: Mapping[str, str]
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(IMPORTED))
        self._process: ForkServerProcess = context.Process(
            target=_serve, args=(list(arguments), folder, dict(environment)), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        return int(self._process.pid or 0)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self.poll()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _serve(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be a kernel, in a group of processes of its own, as one that is started afresh."""
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # Children of multiprocessing may have no children of their own, and start them as they were started;
    # a kernel has what a new process has.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    multiprocessing.set_start_method(None, force=True)
    sys.argv = [_LAUNCHER[-1], *arguments]
    without_pictures()
    try:
        IPKernelApp.launch_instance([*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])
    finally:
        atexit._run_exitfuncs()  # multiprocessing ends a child without them


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
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        _runtime.append(runtime)
        try:
            yield _sockets(runtime)
        finally:
            _runtime.clear()
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _sockets(folder: str) -> Config:
    """Files instead of ports: no other user of the machine can reach the kernel.

    Of a name of its own: by default they are ``kernel-ipc-1`` … in the notebook's folder, where two
    kernels that start at once take each other's.
    """
    return Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/{next(_numbers)}"}})
