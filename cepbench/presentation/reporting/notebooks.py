"""Notebooks as functions of parameters; several may run at the same time, each in its kernel."""

from __future__ import annotations

import ast
import itertools
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

import nbformat
import papermill
from jupyter_client.manager import AsyncKernelManager
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from cepbench.errors import ReportError
from cepbench.presentation.reporting.parameters import checked_parameters, unknown_parameter
from cepbench.presentation.reporting.provenance import machine, versions

#: A line that Python prints for a warning.
_WARNING = re.compile(r"^.*\b\w*Warning: .*$", re.MULTILINE)

#: Folder for the sockets of all kernels while notebooks are run, and numbers for their names.
_runtime: list[str] = []
_numbers = itertools.count()

_kernels: WeakSet[_Kernel] = WeakSet()


class _Kernel(AsyncKernelManager):
    """A kernel that can be ended from another thread than the one that talks to it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _kernels.add(self)

    def kill_now(self) -> None:
        process = getattr(self.provisioner, "process", None)
        if process is not None:
            process.kill()

    async def _async_interrupt_kernel(self) -> None:
        """Send nothing: jupyter_client interrupts a kernel, even an idle one, before it shuts down.

        ipykernel logs such an interrupt as an error now and then. ``interrupt_kernel`` still sends it.
        """


def parameters_of(notebook: str | Path) -> dict[str, str]:
    """Parameter → default value in a notebook's ``parameters`` cell, as Python text; ReportError without it."""
    path = Path(notebook)
    if not path.is_file():
        raise ReportError(f"there is no notebook {path}; run this at the root of the project")
    try:
        found = papermill.inspect_notebook(path)
    except (nbformat.ValidationError, nbformat.reader.NotJSONError, KeyError) as error:
        raise ReportError(f"{path} is no notebook that Jupyter can read: {error}") from error
    return {name: entry["default"] for name, entry in found.items()}


def literals(parameters: Mapping[str, str]) -> dict[str, Any]:
    """The default values among the texts of :func:`parameters_of` that are literals."""
    found = {}
    for name, text in parameters.items():
        with suppress(ValueError, SyntaxError):
            found[name] = ast.literal_eval(text)
    return found


def run_notebook(
    notebook: str | Path,
    executed: str | Path,
    parameters: Mapping[str, Any],
    *,
    metadata: Mapping[str, Any] | None = None,
    strict: bool = False,
) -> nbformat.NotebookNode:
    """Run a notebook, which stays as it is, in a new kernel, in its folder.

    The notebook with its outputs is written to ``executed``, also when a cell fails; if none does,
    the machine and the versions of packages are in its metadata, under ``cepbench``, beside the
    metadata given, such as its title. Parameters replace the defaults of its ``parameters`` cell.
    Where ``strict``, a warning that a cell prints is an error.

    Raises ReportError if the notebook is missing or has no parameter of a given name, a value is
    invalid, see :func:`cepbench.presentation.reporting.parameters.checked_parameters`, or a cell
    fails.
    """
    path, target = Path(notebook), Path(executed)
    known = parameters_of(path)
    for name in parameters:
        if name not in known:  # papermill would only warn
            raise unknown_parameter(name, known, path.name)
    checked = checked_parameters(parameters, literals(known), path.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with quiet_kernels() as runtime:
        try:
            done = papermill.execute_notebook(
                path,
                target,
                checked,
                # The folder of the kernel; ``cwd=`` would be that of this whole process meanwhile.
                resources={"metadata": {"path": str(path.parent)}},
                start_timeout=300,  # a busy machine imports slowly
                progress_bar=False,
                # Written at its end: before and after each cell takes as long as the charts of a page.
                request_save_on_cell_execute=False,
                autosave_cell_every=0,
                kernel_manager_class=_Kernel,
                # Files instead of ports: no other user of the machine can reach the kernel. Of a
                # name of its own: by default they are ``kernel-ipc-1`` … in the notebook's
                # folder, where two kernels that start at once take each other's.
                config=Config(
                    {"KernelManager": {"transport": "ipc", "ip": f"{runtime}/{next(_numbers)}"}}
                ),
            )
        except PapermillExecutionError as error:
            raise ReportError(
                f"{path.name}, cell {error.exec_count}: {error.ename}: {error.evalue}\n"
                f"The notebook as far as it came is in {target}"
            ) from error
        done.metadata.update(metadata or {})
        done.metadata["cepbench"] = {"machine": machine(), "versions": versions()}
        nbformat.write(done, target)
    if strict:
        _refuse_warnings(path.name, done)
    return done


def _refuse_warnings(name: str, executed: nbformat.NotebookNode) -> None:
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            text = output.get("text", "") if output.output_type == "stream" else ""
            found = _WARNING.search(text) if output.get("name") == "stderr" else None
            if found:
                raise ReportError(f"{name}, cell {cell.execution_count} warns: {found[0].strip()}")


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """A notebook, executed or not."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=nbformat.warnings.MissingIDFieldWarning)
        return nbformat.read(path, as_version=4)


def kill_kernels() -> None:
    """End all kernels at once; the notebooks in them fail."""
    for kernel in list(_kernels):
        kernel.kill_now()


@contextmanager
def quiet_kernels() -> Iterator[str]:
    """A folder with a short name for the sockets of kernels, without their start-up messages.

    The environment is that of the whole process: to run several notebooks at the same time, enter
    this around all of them.
    """
    if _runtime:
        yield _runtime[0]
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
            yield runtime
        finally:
            _runtime.clear()
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
